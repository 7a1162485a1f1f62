//! Finds the origin of regressions: the functions, and the lines that the change touched.

use super::summary::WeighedRun;
use crate::explain::counted_launches::Effort;
use crate::explain::hunks::Hunk;
use crate::explain::verb::{self, at_revisions};
use crate::inspect::calls;
use crate::versions::{Recipe, SubjectTemplate};
use scruple_core::explain::{Count, Explanation};
use scruple_core::gate::{self, GateOutcome, GateRules};
use scruple_core::judge;
use std::time::Duration;

/// A function that contributes to a regression.
pub struct RegressionOrigin {
    /// The name of the subject.
    pub subject: String,
    /// The key of the metric.
    pub metric: String,
    /// The name of the function.
    pub function: String,
    /// The additional cost of the function, in the unit of the metric.
    pub delta: f64,
    /// The part of the source change that touches the function.
    pub hunk: Option<Hunk>,
}

/// What is needed to build and run the measured subjects again.
pub struct WeighedSubjects<'a> {
    /// The path or URL of the repository.
    pub place: &'a str,
    /// The reference commit.
    pub first: &'a str,
    /// The other commit; `None` means the working tree.
    pub second: Option<&'a str>,
    /// How versions are built.
    pub recipe: &'a Recipe,
    /// The subjects that were measured.
    pub subjects: &'a [SubjectTemplate],
    /// The time limit of a launch.
    pub limit: Duration,
}

/// The largest number of functions that are named for each metric.
const NAMED: usize = 3;

/// The largest number of subjects that are explained.
const SUBJECTS: usize = 3;

/// Returns the functions that cause deciding regressions of commands. The list is empty if they cannot be determined;
/// the gate does not depend on it.
pub fn origins(weighed: &[WeighedRun], rules: &GateRules, at: &WeighedSubjects<'_>) -> Vec<RegressionOrigin> {
    let mut wanted: Vec<(&SubjectTemplate, Vec<String>)> = Vec::new();
    for one in weighed.iter().filter(|one| one.fault.is_none()) {
        let judged = judge::compare_pairs(&judge::pairs(&one.run), &one.run.terms);
        for found in gate::findings(&one.run, &judged, rules) {
            let template = at.subjects.iter().find(|subject| subject.name == found.subject && !subject.bench);
            let Some(template) = template.filter(|_| found.gates && found.outcome == GateOutcome::Regression)
            else {
                continue;
            };
            match wanted.iter_mut().find(|(known, _)| known.name == template.name) {
                Some((_, metrics)) => metrics.push(found.metric),
                None => wanted.push((template, vec![found.metric])),
            }
        }
    }
    let Ok(counter) = calls::any_counter("say where regressions come from") else { return Vec::new() };
    let mut origins = Vec::new();
    for (template, metrics) in wanted.into_iter().take(SUBJECTS) {
        let revisions = verb::AtRevisions {
            place: at.place,
            first: at.first,
            second: at.second,
            recipe: at.recipe.clone(),
            subject: template,
            limit: at.limit,
        };
        let effort = Effort {
            count: Count::Instructions,
            runs: 3,
            once: true,
            strict: true,
            time: false,
            lines: false,
            apart: false,
        };
        let Ok((found, _)) = at_revisions(&revisions, &counter, &effort) else { continue };
        for metric in metrics {
            let Some(explanation) = found.explanations.iter().find(|one| explains(one, &metric)) else {
                continue;
            };
            let worse = found.shown_rows(explanation).filter(|row| row.delta > 0.0).take(NAMED);
            origins.extend(worse.map(|row| RegressionOrigin {
                subject: template.name.clone(),
                metric: metric.clone(),
                function: row.name.clone(),
                delta: row.delta,
                hunk: found.hunk_of(explanation, row).cloned(),
            }));
        }
    }
    origins
}

/// Whether an explanation is about this metric.
fn explains(explanation: &Explanation, metric: &str) -> bool {
    match explanation.count {
        Count::Instructions => metric == "instructions",
        Count::Allocations => metric == "malloc.count",
        Count::Bytes => metric == "malloc.bytes",
        Count::AtPeak => metric == "malloc.requested_peak",
        Count::AtEnd => metric == "malloc.requested_live",
        Count::Frees => metric == "malloc.frees",
    }
}
