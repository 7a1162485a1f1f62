//! Decides where to weigh more versions: which versions differ, and between which of them a change lies that no single
//! pair of versions shows clearly.

use super::journal::Journal;
use super::scope::Scope;
use crate::history::schedule::{VersionProgress, neighbours};
use scruple_core::history::{Graph, VersionState, find_changes};
use scruple_core::metric::Quality;
use scruple_core::subject::Arm;
use scruple_core::verdict::{Verdict, compare_noisy};
use scruple_stats::sorting;

/// How many times, at different moments, the versions on both sides of an exact change are counted.
const VISITS: u32 = 2;

/// Where the versions that cause changes are still looked for.
pub(super) struct OpenQuestions {
    pub(super) graph: Graph,
    suspected: Vec<SuspectedVersions>,
    /// Versions that need to be counted again. The next one to count is at the end.
    pub(super) again: Vec<usize>,
}

/// The versions, weighed or not, that may have caused a change of one metric of one subject.
pub(super) struct SuspectedVersions {
    set: Vec<usize>,
    subject: String,
    metric: String,
    /// The absolute logarithm of the change's ratio.
    size: f64,
}

impl SuspectedVersions {
    /// Whether the set contains the second of two versions, or a version between them.
    fn holds(&self, graph: &Graph, one: usize, other: usize) -> bool {
        self.set.contains(&other)
            || graph.between(one, other).iter().any(|version| *version != one && self.set.contains(version))
    }
}

/// Returns the largest difference of two versions beyond noise in an exact metric or in time, as [`log_ratio`] does; 0
/// if there is none. Costs of builds do not count, because almost every commit changes them.
fn compared(journal: &Journal, a: usize, b: usize) -> f64 {
    let (left, right) = (journal.arms_of(a), journal.arms_of(b));
    let margin = journal.history.run.terms.margin;
    let of = |left: &&Arm| {
        // Arms with different parameters do different work, so that their figures cannot be compared.
        let same = |right: &&&Arm| left.name == right.name && left.params == right.params;
        let right = right.iter().find(same)?;
        let weighed = left.figures.keys().filter(|key| !key.starts_with("build."));
        weighed.map(|key| beyond_noise(left, right, key, margin)).max_by(f64::total_cmp)
    };
    left.iter().filter_map(of).fold(0.0, f64::max)
}

/// Returns the difference of two arms in this metric, if it is exact or a time and they differ beyond noise, else 0.
fn beyond_noise(left: &Arm, right: &Arm, key: &str, margin: f64) -> f64 {
    let (Some(old), Some(new)) = (left.sample(key), right.sample(key)) else { return 0.0 };
    if old.quality == Quality::Exact
        && new.quality == Quality::Exact
        && let (Some(old), Some(new)) = (old.visits(), new.visits())
    {
        let differences = old.iter().zip(&new).map(|(old, new)| log_ratio(*old, *new));
        return differences.min_by(f64::total_cmp).unwrap_or(0.0);
    }
    if !matches!(key, "time.wall" | "time.cpu") {
        return 0.0;
    }
    let (old, new) = old.paired(new);
    let found = compare_noisy(&old, &new, true, margin, 0.99);
    match found.verdict {
        Verdict::Different | Verdict::Small => found.evidence.effect().map_or(0.0, |ratio| ratio.ln().abs()),
        Verdict::Same | Verdict::CantTell => 0.0,
    }
}

/// Returns the absolute logarithm of the ratio of two values: 0 if they are equal, infinity if they have no ratio.
fn log_ratio(old: f64, new: f64) -> f64 {
    match old == new {
        true => 0.0,
        false if old / new > 0.0 => (old / new).ln().abs(),
        false => f64::INFINITY,
    }
}

impl OpenQuestions {
    /// Creates the questions about versions that follow each other in this order.
    pub(super) fn new(graph: Graph) -> OpenQuestions {
        OpenQuestions { graph, suspected: Vec::new(), again: Vec::new() }
    }

    /// Returns by how much two versions differ, as [`log_ratio`] does, or by how much one of the suspected changes
    /// between them changes its metric.
    pub(super) fn difference(
        &self,
        journal: &Journal,
        unclear: &[&SuspectedVersions],
        a: usize,
        b: usize,
    ) -> f64 {
        let graph = &self.graph;
        let suspected = unclear.iter().filter(|one| one.holds(graph, a, b)).map(|one| one.size);
        let builds = self.suspected.iter().filter(|one| one.metric.starts_with("build."));
        let builds =
            builds.filter(|one| one.holds(graph, a, b)).map(|one| self.difference_in(journal, one, a, b));
        let weighed = journal.difference(a, b, || compared(journal, a, b));
        suspected.chain(builds).fold(weighed, f64::max)
    }

    /// Returns the difference of two versions in the metric of a suspected change.
    fn difference_in(&self, journal: &Journal, one: &SuspectedVersions, a: usize, b: usize) -> f64 {
        let has = |arm: &&Arm| arm.name == one.subject && arm.sample(&one.metric).is_some();
        let arm = |index: usize| journal.arms_of(index).into_iter().find(has);
        match (arm(a), arm(b)) {
            (Some(left), Some(right)) => {
                beyond_noise(left, right, &one.metric, journal.history.run.terms.margin)
            }
            _ => 0.0,
        }
    }

    /// Returns the sets in which no two neighbours differ clearly enough to identify the version that caused the
    /// change. All versions of such a set are weighed.
    pub(super) fn unclear(
        &self,
        journal: &Journal,
        scope: &Scope,
        seen: &[VersionProgress],
    ) -> Vec<&SuspectedVersions> {
        if self.suspected.is_empty() {
            return Vec::new();
        }
        let pairs = neighbours(seen, &self.graph, scope.effort.first());
        let is_answered = |one: &SuspectedVersions| {
            let mut within = pairs.iter().filter(|(a, b)| one.holds(&self.graph, *a, *b));
            within.any(|(a, b)| self.difference_in(journal, one, *a, *b) > 0.0)
        };
        self.suspected.iter().filter(|one| !is_answered(one)).collect()
    }

    /// Finds the changes that may come from versions that were not weighed.
    pub(super) fn narrow(&mut self, journal: &Journal) {
        let judgement = find_changes(&journal.view());
        let open = |index: &usize| {
            matches!(
                journal.history.entries[*index].version.state,
                VersionState::Skipped | VersionState::Queued
            )
        };
        for series in &judgement.series {
            let changes = series.changes.iter().filter(|change| change.set.iter().any(open));
            self.suspected.extend(changes.map(|change| SuspectedVersions {
                set: change.set.clone(),
                subject: series.subject.clone(),
                metric: series.metric.clone(),
                size: log_ratio(change.from, change.to).max(f64::MIN_POSITIVE),
            }));
        }
    }

    /// Returns the next version on either side of an exact change that was not counted again yet. Counting again is
    /// necessary because a program may depend on things outside the repository, which two consecutive counts do not
    /// reveal.
    pub(super) fn unconfirmed(&mut self, journal: &Journal, scope: &Scope) -> Option<usize> {
        if scope.time_only || scope.given.is_some() {
            return None;
        }
        if self.again.is_empty() {
            let entries = &journal.history.entries;
            let original = |index: usize| match &entries[index].version.same_as {
                Some(same) => entries.iter().position(|entry| entry.version.commit == *same).unwrap_or(index),
                None => index,
            };
            let judged = find_changes(&journal.view()).series;
            let counts =
                judged.iter().filter(|one| (one.exact || one.shifting) && !one.metric.starts_with("build."));
            let sides = sorting::distinct(
                counts.flat_map(|series| series.borders.as_flattened()).copied().map(original),
            );
            let open = |index: &usize| {
                entries[*index].version.state == VersionState::Built && entries[*index].counted < VISITS
            };
            self.again = sides.into_iter().rev().filter(open).collect();
        }
        self.again.pop()
    }
}
