//! Converts replies of bench programs into readings, and the limits that cases declare.

use super::cases::arm_name;
use super::neighbours::CoreState;
use scruple_core::judge::resolution_key;
use scruple_core::judge::witnesses::{ADDITIONS, BESIDE, CYCLE, WAITED, WITNESS};
use scruple_core::limit::{Bound, Limit};
use scruple_core::metric::{Metric, Pass, Quality, metric};
use scruple_core::protocol::{BatchReply, Case, Counter, Hello, LoopKind, LooseNumber, OnceReply};
use scruple_core::run::Run;
use scruple_core::sample::Reading;
use scruple_core::subject::Parameter;
use scruple_core::unit::{Unit, exact as text, parse_quantity};
use scruple_measure::scheduler_waits::Threads;

/// Returns the readings of one batch: times for one iteration, the number of iterations, and the other readings of the
/// case.
pub(crate) fn of_batch(case: &Case, reply: &BatchReply) -> Vec<Reading> {
    let mut readings = Vec::new();
    for key in ["time.wall", "time.cpu"] {
        if let (Some(metric), Some(value)) = (metric(key), reply.reading(key)) {
            readings.push(Reading::of(metric, value / reply.iterations as f64, "clocks of the program"));
        }
    }
    readings.push(own("batch.iterations", Unit::Count, reply.iterations as f64));
    if reply.threads.len() > 1 && case.concurrency.is_none() {
        let rates: Vec<f64> = reply
            .threads
            .iter()
            .filter_map(|thread| Some(thread.iterations as f64 / thread.wall?.max(1.0)))
            .collect();
        readings.push(own("threads.fairness", Unit::Ratio, jain(&rates)));
    }
    readings.extend(declared(case, &reply.readings));
    readings
}

/// Returns the readings of a block that are kept with the tare: the slowest witness of the program, or else Scruple's
/// own beside the block, the state of the core, and the share of the block in which the program waited for a core.
pub(crate) fn readings_of_tare(
    replies: &[BatchReply],
    beside: Option<f64>,
    core: CoreState,
    waited: Option<f64>,
) -> Vec<Reading> {
    let witness = replies.iter().filter_map(|reply| reply.reading("witness")).reduce(f64::max);
    let of = |key, unit, value: Option<f64>, source: &str| {
        value.map(|value| Reading { source: source.to_owned(), ..own(key, unit, value) })
    };
    let beside = beside.filter(|_| witness.is_none());
    let witness = witness.map(|witness| own(WITNESS, Unit::Nanoseconds, witness));
    let beside = of(BESIDE, Unit::Nanoseconds, beside, "independent additions");
    let cycle = of(CYCLE, Unit::Nanoseconds, core.cycle, "a chain of additions");
    let additions = of(ADDITIONS, Unit::Count, core.additions, "independent additions");
    let waited = of(WAITED, Unit::Ratio, waited, "the kernel's scheduler");
    [witness, beside, cycle, additions, waited].into_iter().flatten().collect()
}

/// Returns how long the thread that ran the batches of a block waited for a core, in nanoseconds, by the scheduler's
/// records before and after the block. It is the thread that the program names. Waits of other threads, such as those
/// of a collector or of work in the background, did not delay the batches. If the named thread slept for most of the
/// time, other threads did the work, and the thread that ran most stands for them; it also does if no thread is named.
pub(super) fn waited_of_one(replies: &[BatchReply], before: &Threads, after: &Threads) -> f64 {
    let busiest = after.since(before).busiest_waited as f64;
    let total = |key| replies.iter().map(|reply| reply.reading(key)).sum::<Option<f64>>();
    let waits = replies.iter().map(|reply| after.waited_since(before, reply.thread?));
    let named = waits.collect::<Option<Vec<_>>>().and_then(|waits| waits.into_iter().max());
    let (Some(waited), Some(wall), Some(cpu)) = (named, total("time.wall"), total("time.cpu")) else {
        return busiest;
    };
    // The thread may also have waited outside of the timed parts. In these it waited only while it did not run.
    let idle = (wall - cpu).max(0.0);
    let waited = (waited as f64).min(idle);
    if idle - waited > wall / 2.0 { waited.max(busiest) } else { waited }
}

/// Returns how long threads of a block waited for a core, in nanoseconds; `None` for cases of one thread.
pub(crate) fn waited(replies: &[BatchReply]) -> Option<f64> {
    replies.iter().map(BatchReply::waited).sum()
}

/// Returns the readings of a check.
pub(crate) fn of_once(case: &Case, once: &OnceReply) -> Vec<Reading> {
    declared(case, &once.readings).collect()
}

fn declared<'a>(
    case: &'a Case,
    readings: &'a scruple_stats::sorting::SortedMap<String, LooseNumber>,
) -> impl Iterator<Item = Reading> + 'a {
    case.readings.iter().filter_map(|counter| match readings.get(&counter.key) {
        Some(LooseNumber::Number(value)) if value.is_finite() => {
            let noisy = declaration(counter);
            Some(Reading::of(&noisy, *value, "the case itself").with_quality(Quality::Noisy))
        }
        _ => None,
    })
}

pub(super) fn own(key: &str, unit: Unit, value: f64) -> Reading {
    Reading::of(&Metric::custom(key, unit, Quality::Noisy, Pass::Timing), value, "clocks of the program")
}

/// Returns Jain's index of fairness (Jain, Chiu and Hawe 1984): 1 if all values are equal, 1/n if all but one are zero.
fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    if squares > 0.0 { sum * sum / (values.len() as f64 * squares) } else { 1.0 }
}

/// Returns the limits that a case declares. An invalid limit causes a remark instead of an error.
pub(crate) fn limits_of(
    case: &Case,
    threads: u32,
    label: Option<&str>,
    hello: &Hello,
    run: &mut Run,
) -> Vec<Limit> {
    let arm = arm_name(case, threads, label);
    let own = || hello.counters.iter().chain(&case.readings).map(declaration);
    let mut limits = Vec::new();
    for (key, declared) in &case.budgets {
        let unit = metric(key).cloned().or_else(|| own().find(|metric| metric.key == key.as_str()));
        let unit = unit.map_or(Unit::Count, |metric| metric.unit);
        let against = declared.against.clone().filter(|name| name != "baseline");
        for (declared_bound, least) in [(&declared.max, false), (&declared.min, true)] {
            let Some(declared_bound) = declared_bound else { continue };
            match bound(&unit, declared_bound, least) {
                Ok(bound) => {
                    let sign = if least { ">=" } else { "<=" };
                    let other = against.as_ref().map_or(String::new(), |name| format!(" against ‘{name}’"));
                    let text = format!("{key}{sign}{declared_bound}{other}");
                    let (arm, metric, against) = (arm.clone(), key.clone(), against.clone());
                    limits.push(Limit { arm, metric, bound, against, text });
                }
                Err(why) => {
                    run.warn("budget", format!("the limit of ‘{arm}’ for {key} cannot be read: {why}"));
                }
            }
        }
    }
    limits
}

fn bound(unit: &Unit, declared: &Parameter, least: bool) -> Result<Bound, String> {
    let absolute = |value: f64| if least { Bound::AtLeast(value) } else { Bound::AtMost(value) };
    let relative = |ratio: f64| if least { Bound::AtLeastTimes(ratio) } else { Bound::AtMostTimes(ratio) };
    match declared {
        Parameter::Number(number) => Ok(absolute(*number)),
        Parameter::Text(text) => match text.strip_suffix('%') {
            Some(percent) => percent
                .trim()
                .parse()
                .map(|percent: f64| relative(1.0 + percent / 100.0))
                .map_err(|_| format!("‘{text}’ is not a change such as +5%")),
            None => parse_quantity(text, unit).map(absolute),
        },
    }
}

/// Returns the reading of each counter for one iteration: the case's count less the tare's, divided by the iterations.
/// Counters of the whole batch are returned unchanged. A coarse counter has a second reading, its possible error.
pub(super) fn net_readings(counters: &[Counter], replies: &[BatchReply]) -> Vec<Reading> {
    let of = |kind: LoopKind| replies.iter().find(|reply| reply.kind == kind);
    let (Some(case), Some(tare)) = (of(LoopKind::Case), of(LoopKind::Tare)) else { return Vec::new() };
    let mut readings = Vec::new();
    for counter in counters {
        let Some(value) = case.reading(&counter.key) else { continue };
        let metric = declaration(counter);
        let of =
            |value: f64| Reading::of(&metric, value, "counters of the program").with_quality(counter.quality);
        if counter.per_batch {
            readings.push(of(value));
            continue;
        }
        let tare = tare.reading(&counter.key).unwrap_or(0.0) / tare.iterations as f64;
        let raw = value / case.iterations as f64;
        // A negative difference means zero if the counter is not exact. If it is exact, the tare counts too much.
        readings.push(match counter.quality {
            Quality::Exact if raw < tare => Reading::absent(
                &metric,
                format!(
                    "its tare has {} and the case itself {}, so the cost of the body is unknown",
                    text(tare, &metric.unit),
                    text(raw, &metric.unit)
                ),
            ),
            _ => of((raw - tare).max(0.0)),
        });
        if let Some(step) = counter.granularity {
            // Both case and tare may miss one step at their start or end.
            let resolution = Metric::custom(
                &resolution_key(&metric.key),
                metric.unit.clone(),
                Quality::Exact,
                Pass::Counting,
            );
            let missed = 2.0 * step / case.iterations as f64;
            readings.push(Reading::of(&resolution, missed, "the counter's step, divided by the iterations"));
        }
    }
    readings
}

/// Returns the metric of a counter: the built-in one with the same key, or one that the program brings.
pub(crate) fn declaration(counter: &Counter) -> Metric {
    let key = match counter.key.as_str() {
        "alloc.count" => "alloc.objects",
        "malloc.freed_bytes" => "malloc.freed",
        key => key,
    };
    metric(key).cloned().unwrap_or_else(|| {
        Metric::custom(key, Unit::from(counter.unit.clone()), counter.quality, Pass::Counting)
    })
}

/// Returns how long a batch kept a core busy, in nanoseconds. With several threads this is the mean processor time,
/// because the span from the first start to the last end depends more on the scheduler than on the work.
pub(crate) fn length(reply: &BatchReply) -> Option<f64> {
    let wall = reply.reading("time.wall");
    match reply.threads.len() {
        0 | 1 => wall,
        threads => {
            reply.reading("time.cpu").map(|cpu| cpu / threads as f64).filter(|time| *time > 0.0).or(wall)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch that thread 2 ran, with this processor time of 1000 ns.
    fn batch(ran: u64, thread: &str) -> BatchReply {
        let line =
            format!(r#"{{"id":0,"kind":"c","iterations":1,"time.wall":1000,"time.cpu":{ran}{thread}}}"#);
        serde_json::from_str(&line).expect("a batch")
    }

    #[test]
    fn only_the_thread_that_ran_the_batch_counts_as_waiting() {
        // Thread 1 works in the background, and ran and waited more than thread 2, which ran the batch.
        let before = Threads::of([(1, 100, 100), (2, 100, 100)]);
        let after = Threads::of([(1, 4100, 5100), (2, 1080, 130)]);
        let waited = |ran, thread| waited_of_one(&[batch(ran, thread)], &before, &after);
        assert_eq!(waited(960, r#","thread":2"#), 30.0);
        assert_eq!(waited(990, r#","thread":2"#), 10.0, "the rest was outside of the timed part");
        assert_eq!(waited(5, r#","thread":2"#), 5000.0, "it slept while another worked");
        assert_eq!((waited(960, ""), waited(960, r#","thread":9"#)), (5000.0, 5000.0), "no such thread");
    }
}
