//! What is wrong with an answer of a bench program, in words.

use super::full_name;
use scruple_core::protocol::{Batch, BatchReply, Case, Kind, Loose, Reply};
use scruple_core::subject::Parameter;
use scruple_measure::bench::BenchError;
use std::collections::BTreeSet;

/// An error about the answer to a request.
pub(super) fn wrong(request: &str, why: impl Into<String>) -> BenchError {
    BenchError::Garbled { request: request.chars().take(60).collect(), line: why.into() }
}

/// An error about an answer to some other request.
pub(super) fn unexpected(request: &str, reply: &Reply) -> BenchError {
    let of = match reply {
        Reply::Error(_) => "an error",
        Reply::Hello(_) => "what ‘hello’ is answered with",
        Reply::Case { .. } => "a case",
        Reply::End { .. } => "an end",
        Reply::Block { .. } => "what ‘block’ is answered with",
        Reply::Once(_) => "what ‘once’ is answered with",
        Reply::Reset { .. } => "what ‘reset’ is answered with",
        Reply::Bye { .. } => "what ‘bye’ is answered with",
    };
    wrong(request, format!("it is {of}"))
}

/// What is wrong with the answer to a block of batches. The elements of a queue's batch are what the program says.
pub(super) fn fault_in(batches: &[Batch], block: &[BatchReply], queue: bool) -> Option<String> {
    if block.len() != batches.len() {
        return Some(format!("it has {} of {} batches", block.len(), batches.len()));
    }
    batches.iter().zip(block).find_map(|(batch, reply)| {
        let name = |kind: Kind| if kind == Kind::Case { "case" } else { "tare" };
        let asked = batch.iterations * u64::from(batch.threads.max(1));
        if (reply.id, reply.kind) != (batch.id, batch.kind) {
            return Some(format!(
                "it is about {} {} where {} {} was asked for",
                name(reply.kind),
                reply.id,
                name(batch.kind),
                batch.id
            ));
        }
        if reply.iterations == 0 || (!queue && reply.iterations != asked) {
            return Some(format!("it is about {} iterations where {asked} were asked for", reply.iterations));
        }
        fault_in_times(reply)
    })
}

fn fault_in_times(reply: &BatchReply) -> Option<String> {
    if !reply.readings.contains_key("time.wall") {
        return Some("it is without a time.wall".to_owned());
    }
    ["time.wall", "time.cpu"].into_iter().find_map(|key| match reply.readings.get(key) {
        Some(Loose::Number(time)) if *time < 0.0 => Some(format!("it has a negative time, {key} {time}")),
        Some(Loose::Other(_)) => Some(format!("its {key} is no number")),
        _ => None,
    })
}

/// What is wrong with the cases that a program declares.
pub(super) fn fault_in_cases(cases: &[Case]) -> Option<String> {
    let mut names = BTreeSet::new();
    let twice = cases.iter().map(full_name).find(|name| !names.insert(name.clone()))?;
    Some(format!("two cases are called ‘{twice}’"))
}

/// A case whose name and parameters no terminal obeys and no table is broken by.
pub(super) fn harmless(mut case: Case) -> Case {
    let clean = |text: &str| text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    case.name = clean(&case.name);
    let params = std::mem::take(&mut case.params).into_iter().map(|(name, value)| {
        let value = match value {
            Parameter::Text(text) => Parameter::Text(clean(&text)),
            number => number,
        };
        (clean(&name), value)
    });
    case.params = params.collect();
    case
}
