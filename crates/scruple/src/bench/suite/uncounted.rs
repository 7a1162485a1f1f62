//! The cases that were not counted, or not as often as others.

use super::record::SuiteRecord;
use crate::progress::in_words;
use scruple_core::harmless_text::list_names;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The arms of the cases that are not counted, at all or in all processes.
#[derive(Default)]
pub(super) struct UncountedCases {
    /// Those that the budget does not suffice for.
    pub(super) whole: BTreeSet<usize>,
    pub(super) in_part: BTreeSet<usize>,
    /// Those that failed while they were counted, and why.
    pub(super) failed: BTreeMap<usize, String>,
}

impl UncountedCases {
    /// Names the cases, and what to do.
    pub(super) fn add_remarks(&self, record: &mut SuiteRecord, budget: Duration) {
        let budget = in_words(budget);
        for (arms, what) in [(&self.whole, "not counted"), (&self.in_part, "counted in one process only")] {
            if !arms.is_empty() {
                let names = arms.iter().map(|arm| record.run.arms[*arm].name.as_str());
                let text = format!(
                    "allocations of {} are {what}: the budget ended ({budget} for counting); raise --budget, select with \
                     --filter, or use --count-only",
                    list_names(names)
                );
                record.run.warn("left-out", text);
            }
        }
        for (arm, why) in &self.failed {
            let name = &record.run.arms[*arm].name;
            let text = format!("‘{name}’ failed while it was counted: {why}");
            record.run.warn("count-failed", text);
        }
    }
}
