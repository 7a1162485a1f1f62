//! What is to be said against the figures of a run, the generator's own faults first.

use super::plan::Plan;
use super::record::Failure;
use super::result::LoadResult;
use super::shared::Ended;
use scruple_core::unit::{Unit, grouped, quantity};
use serde::{Deserialize, Serialize};

/// Something that is to be said against the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// A stable word for it.
    pub code: String,
    /// Whether it makes the figures void, rather than only worth a remark.
    pub voids: bool,
    /// A sentence that says what was seen and what may help.
    pub text: String,
}

impl Doubt {
    fn new(code: &str, voids: bool, text: String) -> Doubt {
        Doubt { code: code.to_owned(), voids, text }
    }
}

/// The lateness that is never held against the generator, in nanoseconds: what the kernel needs to wake a thread.
const PUNCTUAL: f64 = 50_000.0;

/// The lateness that is always held against it: by then it also reads answers late, so that the response is no measure.
const TARDY: f64 = 5_000_000.0;

pub(crate) fn doubts(plan: &Plan, result: &LoadResult, priority_refused: bool) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    doubts.extend(late(result));
    doubts.extend(starved(result));
    doubts.extend(ended(result));
    if plan.rate().is_none() && result.generator.busy() > 0.95 {
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
            format!(
                "only {} requests were measured: fewer than ten of them are beyond the 99th percentile",
                result.response.count()
            ),
        ));
    }
    doubts.extend(delayed_acknowledgements(result));
    if priority_refused {
        doubts.push(Doubt::new(
            "priority-refused",
            false,
            "the system does not allow a real-time priority here, so other programs can delay the generator"
                .to_owned(),
        ));
    }
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
    let text = format!("{seen}. {} requests/s are more than it can do with {connections}", grouped(rate));
    Some(Doubt::new("rate-not-met", false, text))
}

/// The generator was late when it adds more than a tenth to the latency that it reports, or more than the kernel's
/// ordinary wake-up where that is more.
fn late(result: &LoadResult) -> Option<Doubt> {
    for (name, q) in [("median", 0.5), ("99th percentile", 0.99)] {
        let late = result.lateness.quantile(q)? as f64;
        let response = result.response.quantile(q)? as f64;
        if late > (response / 10.0).clamp(PUNCTUAL, TARDY) {
            let text = format!(
                "the generator itself was late: the {name} of its lateness is {:.3} ms where that of the response is \
                 {:.3} ms. Give it a core of its own or a real-time priority, lower the rate, or add threads",
                late / 1e6,
                response / 1e6
            );
            return Some(Doubt::new("generator-late", true, text));
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
        Ended::Planned => ("no-answers", "not one request was answered well".to_owned()),
        Ended::Interrupted => {
            ("interrupted", "the run was interrupted; the figures are of its part".to_owned())
        }
        Ended::ServerGone => (
            "server-gone",
            format!(
                "the server accepted no more connections, {:.1} s into the run",
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
