//! Finds the doubts about the figures of a run, those about the generator first.

use super::doubt::Doubt;
use super::failure::Failure;
use super::generator_delays::PUNCTUAL;
use super::http1::FOREIGN;
use super::plan::Plan;
use super::result::{Ended, LoadResult, RequestTimes};
use scruple_core::knee::BEHIND;
use scruple_core::plural;
use scruple_core::unit::{Unit, grouped, quantity};

/// A figure is remarked on where the generator's delay is more than this share of it.
const PART: f64 = 0.05;

/// The server's closing of connections is remarked on where it follows more than this share of the answers.
const CLOSED: f64 = 0.005;

pub(crate) fn doubts(plan: &Plan, result: &LoadResult) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    doubts.extend(late(plan, result).or_else(|| delayed(result)));
    doubts.extend(starved(plan, result));
    doubts.extend(ended(result));
    if !plan.by_clock() && result.generator.busy() > 0.95 {
        doubts.push(Doubt::new(
            "generator-busy",
            false,
            format!(
                "the generator used {:.0} % of its cores, so the rate may be its own limit and not the server's: add a thread",
                result.generator.busy() * 100.0
            ),
        ));
    }
    if let Some(rate) = plan.rate()
        && result.ended == Ended::Planned
        && result.counts.answered > 0
    {
        doubts.extend(not_met(plan, result, rate));
    }
    doubts.extend(few_requests(result.times.response.count()));
    doubts.extend(delayed_acknowledgements(result));
    doubts.extend(closing(plan, result));
    doubts.extend(repeated(result));
    doubts.extend(few_connections(plan, result));
    doubts.extend(failed_connections(result));
    doubts
}

/// The doubt about the percentiles of fewer than 1000 requests.
pub fn few_requests(requests: u64) -> Option<Doubt> {
    let text = match requests {
        0 | 1000.. => return None,
        1 => "only one request was measured: percentiles are not known".to_owned(),
        few => format!(
            "only {few} requests were measured: fewer than ten of them are beyond the 99th percentile"
        ),
    };
    Some(Doubt::new("few-requests", false, text))
}

/// The doubt that the server did not keep up with the rate.
fn not_met(plan: &Plan, result: &LoadResult, rate: f64) -> Option<Doubt> {
    let unsent = result.counts.failures.of(Failure::Unsent);
    let never = || {
        format!(
            "{} requests of {} were never sent",
            grouped(unsent as f64),
            grouped(result.counts.due as f64)
        )
    };
    let late = result.least_rate() < result.rate() * (1.0 - BEHIND);
    let seen = match (result.behind, unsent) {
        (0, 0) => return None,
        (0, _) => format!("{}: the server keeps every connection busy", never()),
        (behind, _) => format!(
            "the server fell behind: it answered {}{}/s, and what was due in {} took it {} longer{}",
            if late { "at most " } else { "" },
            grouped(result.rate()),
            quantity(result.span as f64, &Unit::Nanoseconds),
            format_args!(
                "{}{}",
                if late { "at least " } else { "" },
                quantity(behind as f64, &Unit::Nanoseconds)
            ),
            if unsent > 0 { format!("; {}", never()) } else { String::new() }
        ),
    };
    let connections = connections(plan.connections.max(plan.grow_to));
    let asked = match &plan.scenario {
        None => format!("{} requests/s are", grouped(rate)),
        Some(_) => "This number of sessions is".to_owned(),
    };
    let text = format!("{seen}. {asked} more than it can answer over {connections}");
    Some(Doubt::new("rate-not-met", false, text))
}

/// The doubt about a generator that was later than the plan allows. The figures are then known between bounds, unless
/// it was late with most requests: the load was then not the requested one, and the figures are void.
fn late(plan: &Plan, result: &LoadResult) -> Option<Doubt> {
    let limit = plan.lateness.as_nanos() as u64;
    let [middle, most] = [0.5, 0.99].map(|q| result.times.lateness.quantile(q).unwrap_or(0));
    (most > limit).then(|| {
        let (void, by, at) = match middle > limit {
            true => (true, middle, "with most requests"),
            false => (false, most, "at the 99th percentile"),
        };
        let text = format!(
            "the generator itself was late: by {} {at}, where {} are allowed. Give it a core of its own \
             (--threads 1@CORE) or a real-time priority (--priority), lower the rate, or add threads (--threads)",
            time(by as f64),
            time(limit as f64)
        );
        Doubt::new("generator-late", void, text)
    })
}

/// The doubt about a server on this machine if its generator has a priority or cores of its own: other programs may
/// keep the server from a core, and the generator does not notice.
pub(crate) fn busy_machine(plan: &Plan, result: &LoadResult) -> Option<Doubt> {
    let late = result.tick_lateness.quantile(0.99).unwrap_or(0);
    (u128::from(late) > plan.lateness.as_nanos()).then(|| {
        let text = format!(
            "the machine was busy: a thread of ordinary priority beside the generator woke {} late at the 99th \
             percentile, so the server may have waited for a core as well, and may alone be quicker. Load it when the \
             machine is less busy",
            time(late as f64)
        );
        Doubt::new("machine-busy", false, text)
    })
}

/// The doubt about a generator that was late by less, which makes the server look slower than it is.
fn delayed(result: &LoadResult) -> Option<Doubt> {
    delay_bounds(&result.times).is_some().then(|| {
        let text = "other work on the machine delayed the generator".to_owned();
        Doubt::new("generator-unpunctual", false, text)
    })
}

/// Says how many responses contain a delay of the generator, and the bounds of the figures that contain a noticeable
/// one; `None` if there are none.
pub fn delay_bounds(times: &RequestTimes) -> Option<String> {
    if times.delayed.count() == 0 {
        return None;
    }
    let least = times.delayed.least_of(&times.response);
    let spans: Vec<String> =
        [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("the longest", 1.0)]
            .into_iter()
            .filter_map(|(name, q)| {
                let (low, high) = (least.quantile(q)? as f64, times.response.quantile(q)? as f64);
                let apart = high - low > (high * PART).max(PUNCTUAL as f64);
                apart.then(|| format!("{name} is between {} and {}", time(low), time(high)))
            })
            .collect();
    (!spans.is_empty()).then(|| {
        let [delayed, all] = [times.delayed.count(), times.response.count()].map(|n| grouped(n as f64));
        format!("{delayed} of {all} responses contain its delay: {}", spans.join(", "))
    })
}

fn time(nanoseconds: f64) -> String {
    quantity(nanoseconds, &Unit::Nanoseconds)
}

/// In an open loop the delays of the generator are known request by request. In a closed one a generator without a core
/// sends fewer requests.
fn starved(plan: &Plan, result: &LoadResult) -> Option<Doubt> {
    let share = result.generator.starved();
    (share > 0.05).then(|| {
        let text = waits(share, result.generator.preempted);
        Doubt::new("generator-starved", share > 0.2 && plan.rate().is_none(), text)
    })
}

fn waits(share: f64, preempted: u64) -> String {
    let preempted = match preempted {
        0 => String::new(),
        1 => " and was preempted once".to_owned(),
        n => format!(" and was preempted {} times", grouped(n as f64)),
    };
    format!(
        "the generator waited for a core {:.0} % of the time{preempted}: other programs compete with it",
        share * 100.0
    )
}

fn ended(result: &LoadResult) -> Option<Doubt> {
    let (code, text) = match result.ended {
        Ended::Planned if result.counts.answered > 0 => return None,
        Ended::Aborted => return None,
        Ended::Planned => {
            let failures = &result.counts.failures;
            let foreign = [Failure::ClosedEarly, Failure::Garbage];
            let not_http = failures.total() > 0
                && foreign.map(|class| failures.of(class)).iter().sum::<u64>() == failures.total()
                && failures.causes().keys().all(|(_, cause)| FOREIGN.contains(&cause.as_str()));
            let text = match not_http {
                true => {
                    "no request got an answer in HTTP: does this server speak another protocol, or TLS? ‘scruple load’ \
                     speaks HTTP only; ‘scruple run’ weighs a client of another protocol"
                }
                false => "no request was answered without failure",
            };
            ("no-answers", text.to_owned())
        }
        Ended::Interrupted => {
            let waited = result.unanswered.longest;
            // Some requests never have an answer when the run is interrupted. They matter only if they waited longer
            // than any answer took.
            let unusual = result.times.response.max().is_none_or(|longest| waited > longest);
            let without = match unusual && waited > 0 {
                true => format!(
                    ", when {} had no answer; the oldest had waited {}",
                    plural::grouped(result.unanswered.requests, "request"),
                    time(waited as f64)
                ),
                false => String::new(),
            };
            let text = format!("the run was interrupted; the figures cover the time until then{without}");
            ("interrupted", text)
        }
        Ended::ServerGone => (
            "server-gone",
            match result.parts.iter().rfind(|part| part.arrived > 0) {
                Some(last) => format!(
                    "the server accepted no more connections; its last answer came within {} of the first request",
                    time(last.to.max(0) as f64)
                ),
                None => "the server accepted no more connections, and had answered nothing".to_owned(),
            },
        ),
    };
    Some(Doubt::new(code, result.ended != Ended::Interrupted, text))
}

/// The doubt about a median of 40 to 50 ms: 40 ms may be the kernel's delay of acknowledgements, which occurs if two
/// small writes on one connection wait for each other. A server may also need this time itself.
fn delayed_acknowledgements(result: &LoadResult) -> Option<Doubt> {
    let p50 = result.times.service.quantile(0.5)?;
    (39_000_000..=50_000_000).contains(&p50).then(|| {
        let text = format!(
            "the median answer takes {}: if the server itself is quicker, 40 ms of it are the kernel's delay of \
             acknowledgements, as of a server that writes head and content separately without TCP_NODELAY",
            time(p50 as f64)
        );
        Doubt::new("delayed-acknowledgements", false, text)
    })
}

/// The doubt about a server that closes connections after answers, so that the next request waits for a new one.
fn closing(plan: &Plan, result: &LoadResult) -> Option<Doubt> {
    let counts = result.parts.iter().map(|part| &part.counts);
    let answered: u64 = counts.map(|counts| counts.answered + counts.failures.of_answers()).sum();
    let closed = result.closings.min(answered);
    (plan.keep_alive && closed as f64 > CLOSED * answered as f64).then(|| {
        let [closed, answered] = [closed, answered].map(|count| grouped(count as f64));
        let took = result.connect.quantile(0.5).map_or(String::new(), |median| {
            format!(", which takes {} at the median", time(median as f64))
        });
        let text = format!(
            "the server closed the connection after {closed} of {answered} answers: later responses may wait for a new one{took}"
        );
        Doubt::new("server-closes", false, text)
    })
}

/// The doubt about requests that the server did not process at first.
fn repeated(result: &LoadResult) -> Option<Doubt> {
    (result.repeated > 0).then(|| {
        let text = format!(
            "the server left a request unprocessed {}: it refused it (GOAWAY, REFUSED_STREAM), or closed or reset \
             the connection, probably before it read it. Each was sent again, as clients do, and its time contains all attempts",
            plural::grouped(result.repeated, "time")
        );
        Doubt::new("sent-again", false, text)
    })
}

/// The doubt about a server that handles fewer connections at a time than the load has: requests on the others time out
/// although the server is not slow.
fn few_connections(plan: &Plan, result: &LoadResult) -> Option<Doubt> {
    let handled = result.connections_at_a_time().filter(|_| plan.keep_alive)?;
    let (of, mute) = (&result.connections, result.connections.mute);
    let text = format!(
        "all {} time-outs are on {} on which the server answered nothing, while it answered on {}: it handles no more \
         connections at a time, and is not slow. Load it with -c {handled} or --no-keep-alive",
        grouped(of.mute_timeouts as f64),
        connections(mute),
        connections(handled),
    );
    Some(Doubt::new("few-connections", false, text))
}

/// The doubt about connections that failed without a request, so that no failed request shows them.
fn failed_connections(result: &LoadResult) -> Option<Doubt> {
    let failures = &result.idle_failures;
    let each: Vec<String> = failures
        .each()
        .map(|(class, count)| format!("{} × {}", grouped(count as f64), failures.describe(class)))
        .collect();
    let total = failures.total();
    (total > 0).then(|| {
        let text = format!(
            "{} failed while no request waited for one: {}",
            plural::grouped(total, "connection"),
            each.join(", ")
        );
        Doubt::new("idle-failures", false, text)
    })
}

fn connections(count: u32) -> String {
    plural::grouped(u64::from(count), "connection")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_is_preempted_once_or_several_times() {
        let rest = ": other programs compete with it";
        let waited = "the generator waited for a core 12 % of the time";
        assert_eq!(waits(0.12, 0), format!("{waited}{rest}"));
        assert_eq!(waits(0.12, 1), format!("{waited} and was preempted once{rest}"));
        assert_eq!(waits(0.12, 1200), format!("{waited} and was preempted 1,200 times{rest}"));
    }
}
