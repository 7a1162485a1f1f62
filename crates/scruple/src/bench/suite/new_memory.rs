//! Says which cases were timed while their runtime took new memory from the kernel.
//!
//! A runtime with a large young generation first fills that with objects, page by page, and each page that it has not
//! used before costs a page fault. A short process ends before the first collection, so that all of its iterations
//! contain such faults: 110 objects in Java took 1.7 µs, and 0.16 µs where memory had been used before.

use super::cases::{Cases, Weighed};
use super::programs::Programs;
use super::record::SuiteRecord;
use scruple_core::harmless_text::list_names;
use scruple_stats::quantile::median;

/// The least time of a page fault, in nanoseconds: the kernel clears a page of 4 KiB. In virtual machines it is up to 2 µs.
const FAULT: f64 = 250.0;

/// The share of the time of an iteration from which page faults are notable.
const NOTABLE: f64 = 0.05;

/// What to do in the languages whose runtimes take memory for long before they use any again.
const REMEDIES: [(&str, &str); 2] = [
    ("java", "java -XX:+AlwaysPreTouch takes the memory beforehand"),
    ("haskell", "a smaller nursery (+RTS -A1m) is used again sooner"),
];

/// What to do about such faults in the program of a case; `None` if its runtime has none for long.
pub(super) fn remedy(programs: &Programs, weighed: &Weighed) -> Option<&'static str> {
    let hello = programs.sides[weighed.side].hello.as_ref()?;
    Some(REMEDIES.iter().find(|(language, _)| *language == hello.language)?.1)
}

/// Adds one remark about the cases whose times contain such faults.
pub(super) fn add_remark(programs: &Programs, cases: &Cases, record: &mut SuiteRecord) {
    let rate = |weighed: &Weighed| weighed.faults.0 as f64 / weighed.faults.1 as f64;
    let is_notable = |weighed: &&Weighed| {
        let time = record.run.arms[weighed.arm].sample("time.wall");
        time.is_some_and(|time| rate(weighed) * FAULT > NOTABLE * median(&time.readings))
    };
    let found: Vec<&Weighed> =
        cases.weighed.iter().filter(|weighed| weighed.is_open()).filter(is_notable).collect();
    let by_rate = |one: &&&Weighed, other: &&&Weighed| rate(one).total_cmp(&rate(other));
    let Some(most) = found.iter().max_by(by_rate) else { return };
    let was = if found.len() == 1 { "was" } else { "were" };
    let text = format!(
        "{} {was} timed while the runtime took new memory from the kernel ({:.2} page faults in an iteration of ‘{}’); a \
         program that runs for longer uses memory again, and may be much faster; {}",
        list_names(found.iter().map(|weighed| record.name(weighed))),
        rate(most),
        record.name(most),
        remedy(programs, most).unwrap_or_default()
    );
    record.run.warn("new-memory", text);
}
