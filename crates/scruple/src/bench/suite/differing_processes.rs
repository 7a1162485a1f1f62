//! Says which cases differ from process to process.

use super::cases::{Cases, Weighed};
use super::programs::Programs;
use super::record::SuiteRecord;
use scruple_core::judge::Groups;
use scruple_core::run::Run;
use scruple_core::unit::{Unit, quantity};

/// The most cases that get a remark each.
const NAMED: usize = 5;

/// The cases whose processes fall into two groups. In comparisons, pairs of processes show what matters.
fn groups<'a>(
    programs: &Programs,
    cases: &'a Cases,
    run: &'a Run,
) -> impl Iterator<Item = (&'a Weighed, Groups)> {
    let alone = programs.sides.len() == 1;
    let timed = cases.weighed.iter().filter(move |weighed| alone && weighed.is_open());
    timed.filter_map(|weighed| Some((weighed, Groups::of(&run.arms[weighed.arm], &run.arms[weighed.tare])?)))
}

/// Whether processes of a case fall into two groups, so that further ones show how often each occurs.
pub(super) fn any(programs: &Programs, cases: &Cases, run: &Run) -> bool {
    groups(programs, cases, run).next().is_some()
}

/// Adds remarks about the cases whose processes fall into two groups.
pub(super) fn add_remarks(programs: &Programs, cases: &Cases, record: &mut SuiteRecord) {
    let time = |value: f64| quantity(value, &Unit::Nanoseconds);
    let certain = groups(programs, cases, &record.run).filter(|(_, groups)| groups.are_certain());
    let mut sentences: Vec<String> = certain
        .map(|(weighed, Groups { low, high })| {
            let (name, few, many) = (record.name(weighed), time(low.0), time(high.0));
            format!(
                "processes of ‘{name}’ differ: {few} in {} of them, {many} in {}; the interval holds both",
                low.1, high.1
            )
        })
        .collect();
    let others = sentences.len().saturating_sub(NAMED);
    sentences.truncate(NAMED);
    if others > 0 {
        sentences.push(format!("processes of {others} further cases differ as well"));
    }
    sentences.into_iter().for_each(|text| record.run.warn("processes", text));
}
