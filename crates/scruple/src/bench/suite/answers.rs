//! Checks the answers of bench programs, and describes what is wrong with them.

use scruple_core::harmless_text::plain;
use scruple_core::metric::metric;
use scruple_core::protocol::{Batch, BatchReply, Case, LoopKind, LooseNumber, Reply};
use scruple_core::subject::Parameter;
use scruple_measure::bench::{BenchError, garbled};
use std::sync::OnceLock;
use std::time::Duration;

/// Creates the error for an answer that belongs to another kind of request.
pub(crate) fn unexpected(request: &str, reply: &Reply) -> BenchError {
    let of = match reply {
        Reply::Error(_) => "an error",
        Reply::Stalled(_) => "a case that makes no progress",
        Reply::Hello(_) => "the answer to ‘hello’",
        Reply::Case { .. } => "a case",
        Reply::End { .. } => "an end",
        Reply::Block { .. } => "the answer to ‘block’",
        Reply::Once(_) => "the answer to ‘once’",
        Reply::Loaded(_) => "the answer to ‘loaded’",
        Reply::Reset { .. } => "the answer to ‘reset’",
        Reply::Bye { .. } => "the answer to ‘bye’",
    };
    garbled(request, format!("it is {of}"))
}

/// Describes what is wrong with the answer to a block of batches, if anything. `elapsed` is the time of the block by
/// the host's clock. The number of iterations in a batch of a queue is the one that the program reports.
pub(crate) fn fault_in(
    batches: &[Batch],
    block: &[BatchReply],
    queue: bool,
    elapsed: Duration,
) -> Option<String> {
    if block.len() != batches.len() {
        return Some(format!("it has {} of {} batches", block.len(), batches.len()));
    }
    let claimed: f64 = block.iter().filter_map(|reply| reply.reading("time.wall")).sum();
    let fault = batches.iter().zip(block).find_map(|(batch, reply)| {
        let name = |kind: LoopKind| if kind == LoopKind::Case { "case" } else { "tare" };
        let asked = batch.iterations * u64::from(batch.threads.max(1));
        if (reply.id, reply.kind) != (batch.id, batch.kind) {
            return Some(format!(
                "it is about {} {}, but {} {} was requested",
                name(reply.kind),
                reply.id,
                name(batch.kind),
                batch.id
            ));
        }
        if reply.iterations == 0 || (!queue && reply.iterations != asked) {
            return Some(format!("it is about {} iterations, but {asked} were requested", reply.iterations));
        }
        fault_in_times(reply).or_else(|| fault_in_counts(reply)).or_else(|| impossible(reply, elapsed))
    });
    fault.or_else(|| {
        let whole = Duration::from_nanos(claimed as u64);
        (whole > most_within(elapsed)).then(|| format!("its batches took {whole:.1?} of {elapsed:.1?}"))
    })
}

/// Returns the longest time that a program's clock may report for a time on the host's clock. Two clocks of one machine
/// differ slightly, and each has a limited resolution.
fn most_within(elapsed: Duration) -> Duration {
    elapsed.mul_f64(1.01) + Duration::from_micros(100)
}

/// The number of iterations that takes a measurable time on any clock, even if each takes a fraction of a cycle. A
/// smaller number counts as measurable too, if the host waited at least the given time for it.
const NOT_NOTHING: u64 = 10_000_000;
const HARDLY_NOTHING: (u64, Duration) = (1_000_000, Duration::from_millis(100));

/// Describes which time of a batch is impossible, given that the host waited only for `elapsed`.
fn impossible(reply: &BatchReply, elapsed: Duration) -> Option<String> {
    let most = most_within(elapsed).as_nanos() as f64;
    // Several threads may use several processors. Clocks of processor time may have a resolution of several
    // milliseconds.
    // This takes two dozen system calls, and would otherwise be asked after every batch.
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    let processors = *PROCESSORS.get_or_init(available) as f64;
    let ticks = Duration::from_millis(20).as_nanos() as f64;
    let (wall, cpu) = (reply.reading("time.wall")?, reply.reading("time.cpu"));
    if wall > most {
        return Some(format!(
            "it says that a batch took {wall:e} ns, which is impossible: the answer came after {elapsed:.1?}"
        ));
    }
    if cpu.is_some_and(|cpu| cpu > processors * most + ticks) {
        let cpu = cpu.unwrap_or_default();
        return Some(format!(
            "it says that a batch used {cpu:e} ns of processor time, which is impossible: the answer came after {elapsed:.1?}"
        ));
    }
    let count = reply.iterations;
    let many = count >= NOT_NOTHING || count >= HARDLY_NOTHING.0 && elapsed >= HARDLY_NOTHING.1;
    (wall == 0.0 && many).then(|| format!("its clock stands still: {count} iterations took 0 ns"))
}

fn fault_in_times(reply: &BatchReply) -> Option<String> {
    if !reply.readings.contains_key("time.wall") {
        return Some("it has no time.wall".to_owned());
    }
    ["time.wall", "time.cpu"].into_iter().find_map(|key| match reply.readings.get(key) {
        Some(LooseNumber::Number(time)) if *time < 0.0 => {
            Some(format!("it has a negative time, {key} {time}"))
        }
        Some(LooseNumber::Other(_)) => Some(format!("its {key} is not a number")),
        _ => None,
    })
}

/// The first number that a signed counter of 64 bits cannot hold. One that was decremented below zero shows such numbers.
const BEYOND_COUNTERS: f64 = (1u64 << 63) as f64;

/// Describes which count of a batch no counter can hold, if any. Readings with keys of their own may have any value.
fn fault_in_counts(reply: &BatchReply) -> Option<String> {
    let counts = reply.readings.keys().filter(|key| {
        ["alloc.", "malloc.", "gc."].into_iter().any(|group| key.starts_with(group)) && metric(key).is_some()
    });
    counts.map(|key| (key, reply.reading(key))).find_map(|(key, count)| {
        let count = count.filter(|count| count.abs() >= BEYOND_COUNTERS)?;
        Some(format!("its {key} is {count:e}, which no counter of 64 bits can reach"))
    })
}

/// The largest amount of work of one iteration, so that its throughput is a number.
const MOST_WORK: f64 = 1e18;

/// Describes what is wrong with the declaration of a case, if anything.
pub(crate) fn fault_in_case(case: &Case) -> Option<String> {
    if case.max_iterations == Some(0) {
        return Some(format!("‘{}’ has max_iterations 0, and a batch has at least one", case.name));
    }
    let amount = case.throughput.as_ref()?.amount;
    (!(0.0..=MOST_WORK).contains(&amount)).then(|| {
        format!(
            "‘{}’ has a throughput of {amount:e} in an iteration, and 0 to {MOST_WORK:e} is possible",
            case.name
        )
    })
}

/// Makes the name, the group and the parameters of a case harmless for terminals and tables. A case whose iterations do
/// no work has no throughput.
pub(crate) fn harmless(mut case: Case) -> Case {
    case.name = plain(&case.name);
    case.group = case.group.as_deref().map(plain);
    let params = std::mem::take(&mut case.params).into_iter().map(|(name, value)| {
        let value = match value {
            Parameter::Text(text) => Parameter::Text(plain(&text)),
            number => number,
        };
        (plain(&name), value)
    });
    case.params = params.collect();
    case.throughput = case.throughput.filter(|work| work.amount != 0.0);
    case
}
