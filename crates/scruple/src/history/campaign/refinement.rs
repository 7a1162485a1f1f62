//! Decides where to weigh more versions: which versions differ, and between which of them a change lies that no single
//! pair of versions shows clearly.

use super::journal::Journal;
use super::{Campaign, ERROR};
use crate::history::schedule::{Seen, neighbours};
use scruple_core::history::{Graph, State, find_changes};
use scruple_core::metric::{Pass, Quality};
use scruple_core::subject::Arm;
use scruple_core::verdict::{Verdict, compare_noisy};

/// The versions, weighed or not, that may have caused a change of one metric of one subject.
pub(super) struct Suspected {
    set: Vec<usize>,
    subject: String,
    metric: String,
}

impl Suspected {
    /// Whether the set contains the second of two versions, or a version between them.
    pub(super) fn holds(&self, graph: &Graph, one: usize, other: usize) -> bool {
        self.set.contains(&other)
            || graph.between(one, other).iter().any(|version| *version != one && self.set.contains(version))
    }
}

/// Whether two versions differ beyond noise in an exact metric or in time.
pub(super) fn differ(journal: &Journal, a: usize, b: usize) -> bool {
    journal.differ(a, b, || compared(journal, a, b))
}

fn compared(journal: &Journal, a: usize, b: usize) -> bool {
    let (left, right) = (journal.arms_of(a), journal.arms_of(b));
    let margin = journal.history.run.terms.margin;
    let different = |left: &&Arm| {
        // Arms with different parameters do different work, so that their figures cannot be compared.
        let same = |right: &&&Arm| left.name == right.name && left.params == right.params;
        let right = right.iter().find(same);
        right.is_some_and(|right| left.figures.keys().any(|key| clearly(left, right, key, margin)))
    };
    left.iter().any(different)
}

/// Whether two arms differ beyond noise in this metric, if it is exact or a time.
fn clearly(left: &Arm, right: &Arm, key: &str, margin: f64) -> bool {
    let (Some(old), Some(new)) = (left.sample(key), right.sample(key)) else { return false };
    if old.pass == Pass::Build {
        return false;
    }
    if old.quality == Quality::Exact
        && new.quality == Quality::Exact
        && let (Some(old), Some(new)) = (old.visits(), new.visits())
    {
        return old.iter().zip(&new).all(|(old, new)| old != new);
    }
    if !matches!(key, "time.wall" | "time.cpu") {
        return false;
    }
    let (old, new) = old.paired(new);
    let verdict = compare_noisy(&old, &new, true, margin, 0.99).verdict;
    matches!(verdict, Verdict::Different | Verdict::Small)
}

impl Campaign {
    /// Returns the sets in which no two neighbours differ clearly enough to identify the version that caused the
    /// change. All versions of such a set are weighed.
    pub(super) fn unclear(&self, seen: &[Seen]) -> Vec<&Suspected> {
        let pairs = neighbours(seen, &self.questions.graph, self.scope.effort.first());
        let told = |one: &Suspected| {
            let has = |arm: &&Arm| arm.name == one.subject && arm.sample(&one.metric).is_some();
            let arm = |index: usize| self.journal.arms_of(index).into_iter().find(has);
            let mut within = pairs.iter().filter(|(a, b)| one.holds(&self.questions.graph, *a, *b));
            within.any(|(a, b)| match (arm(*a), arm(*b)) {
                (Some(left), Some(right)) => {
                    clearly(left, right, &one.metric, self.journal.history.run.terms.margin)
                }
                _ => false,
            })
        };
        self.questions.suspected.iter().filter(|one| !told(one)).collect()
    }

    /// Finds the changes that may come from versions that were not weighed.
    pub(super) fn narrow(&mut self) {
        let judgement = find_changes(&self.journal.view(), ERROR);
        let open = |index: &usize| {
            matches!(self.journal.history.entries[*index].version.state, State::Skipped | State::Queued)
        };
        for series in &judgement.series {
            let changes = series.changes.iter().filter(|change| change.set.iter().any(open));
            self.questions.suspected.extend(changes.map(|change| Suspected {
                set: change.set.clone(),
                subject: series.subject.clone(),
                metric: series.metric.clone(),
            }));
        }
    }
}
