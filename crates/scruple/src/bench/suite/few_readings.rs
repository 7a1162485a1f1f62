//! Says which cases have too few readings for an interval, and what gives them more.

use super::cases::Cases;
use super::record::SuiteRecord;
use scruple_core::harmless_text::list_names;
use scruple_core::judge::undisturbed_blocks;
use scruple_core::subject::Arm;
use scruple_stats::paired::blocks_needed;

/// Adds a remark about the timed cases without a net. Such cases are so slow that the budget sufficed for a few
/// iterations only.
pub(super) fn add_remark(cases: &Cases, record: &mut SuiteRecord) {
    let (run, needed) = (&record.run, blocks_needed(record.run.terms.level));
    let readings = |arm: &Arm, tare: &Arm| {
        Some(undisturbed_blocks::counted(arm.sample("time.wall")?, tare).readings.len())
    };
    let without: Vec<&str> = cases
        .weighed
        .iter()
        .filter(|weighed| weighed.is_open())
        .map(|weighed| (&run.arms[weighed.arm], &run.arms[weighed.tare]))
        .filter(|(arm, tare)| readings(arm, tare).is_some_and(|readings| readings < needed))
        .map(|(arm, _)| arm.name.as_str())
        .collect();
    let verb = match without.len() {
        0 => return,
        1 => "has",
        _ => "have",
    };
    let text = format!(
        "{} {verb} fewer than {needed} readings, which give no net and no interval; raise --budget, or \
         select fewer cases with --filter",
        list_names(&without)
    );
    record.run.warn("few-readings", text);
}
