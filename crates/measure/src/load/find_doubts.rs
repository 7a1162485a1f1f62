//! The doubts about the figures of a run, the generator's own faults first.

use super::doubt::Doubt;
use super::failure::Failure;
use super::plan::Plan;
use super::result::LoadResult;
use super::shared::Ended;
use scruple_core::unit::{Unit, grouped, quantity};

/// Below this lateness of the generator there is no remark, in nanoseconds: the kernel's time to wake a thread.
const PUNCTUAL: f64 = 50_000.0;

pub(crate) fn doubts(plan: &Plan, result: &LoadResult) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    doubts.extend(late(plan, result));
    doubts.extend(starved(result));
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
        && result.answered > 0
    {
        doubts.extend(not_met(plan, result, rate));
    }
    if result.response.count() > 0 && result.response.count() < 1000 {
        doubts.push(Doubt::new(
            "few-requests",
            false,
            match result.response.count() {
                1 => "only one request was measured: nothing is known of percentiles".to_owned(),
                few => format!(
                    "only {few} requests were measured: fewer than ten of them are beyond the 99th percentile"
                ),
            },
        ));
    }
    doubts.extend(delayed_acknowledgements(result));
    doubts
}

/// The server did not keep up with the rate.
fn not_met(plan: &Plan, result: &LoadResult, rate: f64) -> Option<Doubt> {
    let unsent = result.failures.of(Failure::Unsent);
    let never =
        || format!("{} requests of {} were never sent", grouped(unsent as f64), grouped(result.due as f64));
    let seen = match (result.behind, unsent) {
        (0, 0) => return None,
        (0, _) => format!("{}: the server keeps every connection busy", never()),
        (behind, _) => format!(
            "the server fell behind: it answered {}/s, and what was due in {} kept it busy for {} more{}",
            grouped(result.rate()),
            quantity(result.span as f64, &Unit::Nanoseconds),
            quantity(behind as f64, &Unit::Nanoseconds),
            if unsent > 0 { format!("; {}", never()) } else { String::new() }
        ),
    };
    let connections = match plan.connections.max(plan.grow_to) {
        1 => "1 connection".to_owned(),
        several => format!("{} connections", grouped(f64::from(several))),
    };
    let asked = match &plan.scenario {
        None => format!("{} requests/s are", grouped(rate)),
        Some(_) => "as many sessions are".to_owned(),
    };
    let text = format!("{seen}. {asked} more than it can do with {connections}");
    Some(Doubt::new("rate-not-met", false, text))
}

/// A generator that was late by more than the plan allows makes the figures void. One that was late by less, but by
/// more than a tenth of what it reports, made the server look slower than it is, which is reported.
fn late(plan: &Plan, result: &LoadResult) -> Option<Doubt> {
    let time = |nanoseconds: f64| quantity(nanoseconds, &Unit::Nanoseconds);
    let late = result.lateness.quantile(0.99)? as f64;
    let limit = plan.lateness.as_nanos() as f64;
    if late > limit {
        let text = format!(
            "the generator itself was late: by {} at the 99th percentile, where {} are allowed. Give it a core of its own \
             (--threads 1@CORE) or a real-time priority (--priority), lower the rate, or add threads (--threads)",
            time(late),
            time(limit)
        );
        return Some(Doubt::new("generator-late", true, text));
    }
    for (name, q) in [("median", 0.5), ("99th percentile", 0.99)] {
        let (late, response) = (result.lateness.quantile(q)? as f64, result.response.quantile(q)? as f64);
        if late > (response / 10.0).max(PUNCTUAL) {
            let text = format!(
                "the {name} of the response, {}, has a part that is the generator’s own: it was late by {} itself",
                time(response),
                time(late)
            );
            return Some(Doubt::new("generator-unpunctual", false, text));
        }
    }
    None
}

fn starved(result: &LoadResult) -> Option<Doubt> {
    let share = result.generator.starved();
    (share > 0.05).then(|| {
        let text = format!(
            "the generator waited for a core {:.0} % of the time and was preempted {} times: other programs compete with \
             it, so latencies include its own",
            share * 100.0,
            result.generator.preempted
        );
        Doubt::new("generator-starved", share > 0.2, text)
    })
}

fn ended(result: &LoadResult) -> Option<Doubt> {
    let (code, text) = match result.ended {
        Ended::Planned if result.answered > 0 => return None,
        Ended::Aborted => return None,
        Ended::Planned => ("no-answers", "not one request was answered well".to_owned()),
        Ended::Interrupted => {
            ("interrupted", "the run was interrupted; the figures are of its part".to_owned())
        }
        Ended::ServerGone => (
            "server-gone",
            format!(
                "the server accepted no more connections, {:.1} s after the first request",
                result.span as f64 / 1e9
            ),
        ),
    };
    Some(Doubt::new(code, result.ended != Ended::Interrupted, text))
}

/// Two small writes on one connection wait for each other for 40 ms, the kernel's delayed acknowledgement.
fn delayed_acknowledgements(result: &LoadResult) -> Option<Doubt> {
    let p50 = result.service.quantile(0.5)?;
    (39_000_000..=45_000_000).contains(&p50).then(|| {
        let text = "the median answer takes 40 ms, which is the kernel's delay of acknowledgements: the server probably \
                    writes head and content separately without TCP_NODELAY"
            .to_owned();
        Doubt::new("delayed-acknowledgements", false, text)
    })
}
