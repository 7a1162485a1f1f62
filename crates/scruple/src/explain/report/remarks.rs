//! Writes the sentences below the tables: what limits the conclusions, what is known about time, and what counted.

use crate::explain::findings::Findings;
use crate::explain::times::Time;
use crate::profile::read::KnownCallers;
use scruple_core::explain::Count;
use scruple_core::unit::{Unit, change_between, quantity, share};
use scruple_measure::calltree::DEFINITION;

/// The share of code without names from which it is mentioned.
const NAMELESS: f64 = 0.1;

/// The share of changed functions from which the source is probably not the cause, and the smallest number of functions
/// for this conclusion.
const ALL: f64 = 0.7;
const SEVERAL: usize = 3;

/// Writes further remarks on an explanation.
pub fn remarks(found: &Findings) -> Vec<String> {
    let mut lines = found.all_remarks();
    lines.extend(match found.kind.callers {
        KnownCallers::Contexts => None,
        KnownCallers::Calls => Some(format!(
            "{} tells how often a function calls another, not what these calls cost: each call of a function counts with \
             the mean cost of all its calls",
            found.kind.format
        )),
        KnownCallers::Unknown => Some(format!(
            "profiles of {} hold no callers, so a difference is listed at the function that shows it, which may not \
            be the one that causes it",
            found.kind.format
        )),
    });
    if found.kind.sampled.is_some() {
        lines.push(
            "samples differ by chance: a row counts if it differs by at least 4 standard deviations, with samples \
             taken as independent"
                .to_owned(),
        );
    }
    let (changed, compared) = found.changed;
    if changed >= SEVERAL && changed as f64 >= ALL * compared as f64 {
        lines.push(format!(
            "{changed} of {compared} functions of the program are not the same code in both: another compiler or \
             other flags, or a change of all of them"
        ));
    }
    if !found.is_nameless() && found.nameless.iter().any(|part| *part >= NAMELESS) {
        let part = found.nameless.iter().copied().fold(0.0, f64::max);
        lines.push(format!(
            "{} of the instructions are of code without a name, and cannot be attributed",
            share(part)
        ));
    }
    lines.extend(time(found).filter(|time| time.contradicts).map(|time| time.text));
    lines
}

/// Writes the sentences that limit no conclusion: what is known about time, and which builds are used again.
pub fn notes(found: &Findings) -> Vec<String> {
    let time = time(found).filter(|time| !time.contradicts).map(|time| time.text);
    time.into_iter().chain(found.notes.iter().cloned()).collect()
}

/// Writes which tool counted, and what an instruction is.
pub fn counted(found: &Findings) -> Option<String> {
    found.counted_by.as_ref().map(|by| format!("Counted by {by}: {DEFINITION}."))
}

/// What is said about time.
struct TimeSentence {
    text: String,
    /// Whether time contradicts the instructions.
    contradicts: bool,
}

/// Writes the sentence about time, if time was measured and instructions are explained.
fn time(found: &Findings) -> Option<TimeSentence> {
    let time = found.time.as_ref().filter(|_| found.main().count == Count::Instructions)?;
    let (first, second) = found.main().totals;
    Some(time_sentence(time, second / first.max(1.0)))
}

/// Writes the sentence about these times, if the instructions have this ratio.
fn time_sentence(time: &Time, counted: f64) -> TimeSentence {
    let text = |value: f64| quantity(value, &Unit::Nanoseconds);
    let medians = format!("{} → {}", text(time.medians.0), text(time.medians.1));
    let Some(effect) = &time.effect else {
        let text = format!("Processor time is {medians}, of too few launches to say more.");
        return TimeSentence { text, contradicts: false };
    };
    let (low, high) = (effect.interval.low, effect.interval.high);
    let known = low > 1.0 || high < 1.0;
    let between = change_between(effect.ratio, low, high);
    let contradicts = time.contradicts(counted);
    let text = match (known, contradicts) {
        (_, true) => format!(
            "processor time does not follow the instructions: {medians} ({between}); instructions do not show the effects \
             of caches, of the kernel, or of waiting"
        ),
        (true, false) => format!("Processor time agrees: {medians} ({between})."),
        (false, false) => format!("Processor time does not distinguish them: {medians} ({between})."),
    };
    TimeSentence { text, contradicts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_about_time_follows_from_times_and_instructions() {
        let said = |blocks: u32, factor: f64, counted: f64| {
            let each = |factor: f64| -> Vec<f64> {
                let swing = |block: u32| if block.is_multiple_of(2) { 1.01 } else { 1.0 / 1.01 };
                (0..blocks).map(|block| 1e6 * factor * swing(block)).collect()
            };
            let steady = vec![1e6; blocks as usize];
            let sentence = time_sentence(&Time::of(&[steady, each(factor)]).expect("times"), counted);
            (sentence.text, sentence.contradicts)
        };
        let is = |(text, contradicts): &(String, bool), begins: &str, warns: bool| {
            assert!(text.starts_with(begins) && *contradicts == warns, "{text}");
        };
        is(&said(1, 1.5, 1.5), "Processor time is 1.00 ms → ", false);
        is(&said(8, 1.5, 1.5), "Processor time agrees: 1.00 ms → ", false);
        is(&said(16, 1.0, 1.001), "Processor time does not distinguish them: 1.00 ms → ", false);
        is(&said(16, 1.5, 1.0), "processor time does not follow the instructions: 1.00 ms → ", true);
    }
}
