//! Converts the command line into the plan of a load: its pace, its length and its connections.

use super::servers::TargetServer;
use crate::cli::values;
use crate::fault::Fault;
use crate::load::args::LoadArgs;
use scruple_core::unit::{Unit, parse_quantity};
use scruple_measure::load::{Arrivals, GeneratorThreads, Model, Pace, Plan, Request, WarmUp};
use std::time::Duration;

/// Returns the plan of the whole load. Each server has its own requests.
///
/// # Errors
/// The options contradict each other or are invalid.
pub fn plan(args: &LoadArgs, side: &TargetServer, seed: u64) -> Result<Plan, Fault> {
    let amount = &args.amount;
    let users = ScenarioSettings::of(args, side)?;
    args.refuse_budget_without_search()?;
    let pace = match (&amount.rate, args.slo()) {
        _ if users.pace.is_some() => users.pace.unwrap_or(Pace::Closed),
        (Some(text), None) => {
            let (rates, arrivals) = rates(text)?;
            if rates.1.is_some() {
                return Err(Fault::usage(format!(
                    "‘{text}’ is a range, which only a search has: give one rate, or limits with --slo"
                )));
            }
            Pace::Open { rate: rates.0, arrivals }
        }
        (Some(_), Some(_)) | (None, _) => Pace::Closed,
    };
    if args.windows(1) == 0 {
        return Err(Fault::usage("zero windows have no requests: give --windows at least 1"));
    }
    let (connections, grow_to) = match &amount.connections {
        Some(text) => connections(text)?,
        None => (users.most.unwrap_or(CONNECTIONS), 0),
    };
    if grow_to > 0 && pace == Pace::Closed && args.slo().is_none() {
        return Err(Fault::usage("connections are added only when a request is due: give a --rate as well"));
    }
    let (threads, cores) = threads(&amount.threads)?;
    let plan = Plan {
        requests: side.requests.clone(),
        order: side.order,
        scenario: side.scenario.clone(),
        pace,
        connections,
        grow_to,
        streams: args.connection.http2.unwrap_or(1),
        keep_alive: !args.connection.no_keep_alive,
        threads: GeneratorThreads { cores, priority: amount.priority, ..GeneratorThreads::of(threads) },
        duration: match users.duration {
            Some(duration) => duration,
            None => values::duration(args.duration())?,
        },
        max_requests: amount.requests,
        timeout: values::duration(&args.connection.timeout)?,
        warm_up: match amount.warm_up.as_str() {
            // A rise or fall of the load that the scenario describes is not a warm-up.
            "auto" if users.duration.is_some() => WarmUp::Off,
            "auto" => WarmUp::Auto,
            "off" => WarmUp::Off,
            time => WarmUp::For(values::duration(time)?),
        },
        seed,
        ..Plan::of(Request::get("/"))
    };
    plan.validate().map_err(Fault::usage)?;
    Ok(plan)
}

/// The default number of connections.
const CONNECTIONS: u32 = 10;

/// The settings that the scenario determines, so that the command line must not set them.
#[derive(Default)]
struct ScenarioSettings {
    pace: Option<Pace>,
    duration: Option<Duration>,
    /// The largest number of concurrent users, each of whom has a connection.
    most: Option<u32>,
}

impl ScenarioSettings {
    fn of(args: &LoadArgs, side: &TargetServer) -> Result<ScenarioSettings, Fault> {
        let Some(scenario) = &side.scenario else { return Ok(ScenarioSettings::default()) };
        let amount = &args.amount;
        let refused = |what: &str, why: &str| Err(Fault::usage(format!("the scenario has {what}: {why}")));
        let closed = scenario.model == Some(Model::Closed);
        if let (recorded @ 1.., Some(duration)) = (scenario.recorded(), scenario.duration()) {
            if args.slo().is_some() {
                return refused("times of its own", "a search cannot use them; leave --slo out");
            }
            let rate = recorded as f64 / duration.as_secs_f64();
            let pace = Pace::Open { rate, arrivals: Arrivals::Constant };
            return Ok(ScenarioSettings { pace: Some(pace), duration: Some(duration), most: None });
        }
        if args.slo().is_some() && (closed || scenario.duration().is_some()) {
            return refused(
                "stages or users of its own",
                "a search for the highest rate needs an open model without stages; leave --slo or the stages out",
            );
        }
        let Some(duration) = scenario.duration() else {
            return match (scenario.model, &amount.rate, args.slo()) {
                (Some(Model::Open), None, None) => refused(
                    "an open model without stages",
                    "give --rate sessions per second, or add a [[stage]]",
                ),
                (Some(Model::Closed), Some(_), _) => refused(
                    "a closed model",
                    "--connections gives the number of its users; leave --rate out, or write model = \"open\"",
                ),
                _ => Ok(ScenarioSettings::default()),
            };
        };
        if amount.rate.is_some() || amount.duration.is_some() {
            return refused(
                "stages",
                "they say how much is sent and how long; leave --rate and --duration out",
            );
        }
        if !matches!(amount.warm_up.as_str(), "auto" | "off") {
            return refused("stages", "let the first of them be the warm-up, and leave --warmup out");
        }
        // The rate is the mean over the stages, because it changes with them.
        let sessions: f64 =
            scenario.stages.iter().map(|s| (s.from + s.to) / 2.0 * s.duration.as_secs_f64()).sum();
        if sessions <= 0.0 {
            return refused("stages", "all of them are at 0; give one of them a rate or users");
        }
        let open = Pace::Open { rate: sessions / duration.as_secs_f64(), arrivals: Arrivals::Constant };
        Ok(ScenarioSettings {
            pace: Some(if closed { Pace::Closed } else { open }),
            duration: Some(duration),
            most: closed.then(|| scenario.most_users()),
        })
    }
}

/// Parses `2000`, `100..1M`, or either after `poisson:`. Returns the first rate, the last one if there is one, and the
/// distribution of the gaps.
///
/// # Errors
/// The text has none of these forms.
pub fn rates(text: &str) -> Result<((f64, Option<f64>), Arrivals), Fault> {
    let (arrivals, rates) = match text.strip_prefix("poisson:") {
        Some(rates) => (Arrivals::Poisson, rates),
        None => (Arrivals::Constant, text),
    };
    let rates = match rates.split_once("..") {
        None => (rate(rates)?, None),
        Some((from, to)) => (rate(from)?, Some(rate(to)?)),
    };
    match rates {
        (from, Some(to)) if to < from => Err(Fault::usage(format!(
            "in ‘{text}’ the first rate is the higher one: write the lower one first"
        ))),
        rates => Ok((rates, arrivals)),
    }
}

/// Parses a rate such as `2000`, `2k` or `2000/s`.
fn rate(text: &str) -> Result<f64, Fault> {
    let plain = text.trim().strip_suffix("/s").unwrap_or(text);
    match parse_quantity(plain, &Unit::Count) {
        Ok(rate) if rate > 0.0 => Ok(rate),
        _ => {
            Err(Fault::usage(format!("‘{text}’ is not a rate: give requests per second, such as 2000 or 2k")))
        }
    }
}

/// Parses `10`, or `10..40` for the number of connections that are opened and the largest number.
fn connections(text: &str) -> Result<(u32, u32), Fault> {
    let wrong = || {
        Fault::usage(format!("‘{text}’ is not a number of connections: give a number such as 10, or 10..40"))
    };
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    match text.split_once("..") {
        None => Ok((number(text)?, 0)),
        Some((few, many)) => match (number(few)?, number(many)?) {
            (few, many) if many >= few => Ok((few, many)),
            _ => Err(wrong()),
        },
    }
}

/// Parses `2`, or `2@0,1` for threads on these cores.
fn threads(text: &str) -> Result<(u32, Vec<usize>), Fault> {
    let wrong = || {
        Fault::usage(format!(
            "‘{text}’ is not a number of threads: give a number such as 2, or 2@0,1 for cores"
        ))
    };
    let (count, cores) = text.split_once('@').unwrap_or((text, ""));
    let cores =
        cores.split(',').filter(|core| !core.is_empty()).map(|core| core.parse().map_err(|_| wrong()));
    Ok((count.parse().map_err(|_| wrong())?, cores.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_with_and_without_their_unit() {
        assert_eq!(rate("2k").ok(), Some(2000.0));
        assert_eq!(rate("500/s").ok(), Some(500.0));
        assert!(rate("0").is_err() && rate("fast").is_err());
        assert_eq!(rates("poisson:10..1k").ok(), Some(((10.0, Some(1000.0)), Arrivals::Poisson)));
        assert!(rates("10..5").is_err() && rates("..5").is_err() && rates("poisson:").is_err());
    }

    #[test]
    fn connections_and_threads_are_read_with_what_is_behind_them() {
        assert_eq!((connections("10").ok(), connections("1..5").ok()), (Some((10, 0)), Some((1, 5))));
        assert!(connections("5..1").is_err() && connections("-1").is_err() && connections("..").is_err());
        assert_eq!((threads("2").ok(), threads("2@0,3").ok()), (Some((2, vec![])), Some((2, vec![0, 3]))));
        assert!(threads("@1").is_err() && threads("1@a").is_err());
    }
}
