//! Classifies cuts between levels as steps, spikes and reverts, and finds the versions that may have caused them.

use super::gather::{GatheredSeries, SameArtefacts};
use super::noisy::JudgedSeries;
use super::steps::{Cut, Steps};
use super::version_groups::{ArtefactGroup, ArtefactGroups};
use crate::history::{Change, ChangeForm, Graph, History, Series};
use crate::metric::Better;
use scruple_stats::sorting;

/// A level that lasts for at most this many versions and then returns is a spike.
const FEW: usize = 3;

/// Levels that differ by at most this many standard errors count as the same.
const ALIKE: f64 = 2.5;

/// The versions of a series, their descent and their artefacts.
pub(super) struct SeriesVersions<'a> {
    pub history: &'a History,
    pub graph: &'a Graph,
    pub artefacts: &'a SameArtefacts,
}

/// Classifies the cuts of a series as changes. The levels with their errors decide which ones are the same.
pub(super) fn changes(
    range: &SeriesVersions<'_>,
    gathered: &GatheredSeries,
    judged: &JudgedSeries,
) -> Vec<Change> {
    let (places, steps) = (&judged.places, &judged.steps);
    let mut cuts: Vec<&Cut> = steps.cuts.iter().collect();
    sorting::by_key(&mut cuts, |cut| places.all[cut.at].first());
    let mut changes: Vec<Change> = Vec::new();
    let mut named: Vec<&Cut> = Vec::new();
    let mut ends_of_spikes: Vec<usize> = Vec::new();
    for &cut in &cuts {
        if ends_of_spikes.contains(&cut.at) || both_sides(range.graph, places, steps, cut, gathered.exact) {
            continue;
        }
        let levels = [cut.from, cut.to].map(|part| judged.level(part, cut.at));
        let mut change = change(range, gathered, places, steps, cut, levels);
        let back =
            cuts.iter().filter(|back| back.from == cut.to && same_level(steps, back.to, cut.from, cut));
        let last = back.filter_map(|back| Some((*back, places.link(&steps.forest, back.at)?)));
        let few = |until: usize| range.graph.between(places.all[cut.at].first(), until).len() <= FEW;
        if let Some((back, until)) = last.into_iter().find(|(_, until)| few(*until)) {
            change.form = ChangeForm::Spike;
            change.until = Some(until);
            change.p = change.p.max(back.p);
            ends_of_spikes.push(back.at);
        } else if let Some(undone) = undone(steps, &changes, &named, cut) {
            change.form = ChangeForm::Revert;
            change.undoes = Some(changes[undone].at);
        }
        changes.push(change);
        named.push(cut);
    }
    changes
}

/// Whether two levels are the same within their errors, and nearer to each other than half the step of `cut`.
fn same_level(steps: &Steps, one: usize, other: usize, cut: &Cut) -> bool {
    let (one, other) = (steps.levels[one], steps.levels[other]);
    let away = (one.0 - other.0).abs();
    let step = (steps.levels[cut.to].0 - steps.levels[cut.from].0).abs();
    away <= ALIKE * one.1.hypot(other.1) && away < step / 2.0
}

/// Index of the latest change before `cut` that the cut reverts and that no change in between has reverted.
fn undone(steps: &Steps, changes: &[Change], named: &[&Cut], cut: &Cut) -> Option<usize> {
    let mut behind = vec![cut.from];
    while let Some(earlier) = behind.last().and_then(|part| steps.cuts.iter().find(|cut| cut.to == *part)) {
        behind.push(earlier.from);
    }
    let taken_back = |change: &Change| changes.iter().any(|later| later.undoes == Some(change.at));
    let candidates = changes.iter().zip(named).enumerate().rev();
    candidates
        .filter(|(_, (change, earlier))| {
            change.form != ChangeForm::Spike && !taken_back(change) && behind.contains(&earlier.to)
        })
        .find(|(_, (_, earlier))| same_level(steps, earlier.from, cut.to, cut))
        .map(|(number, _)| number)
}

/// Whether the new level of a cut is above that of one version that it directly follows and below that of another. Such
/// a merge is worse than one parent and better than the other. The change of each parent is named at the commit that
/// made it.
fn between_parents(places: &ArtefactGroups, steps: &Steps, cut: &Cut) -> bool {
    let own = steps.levels[cut.to].0;
    let parents = places.all[cut.at].after.iter().filter_map(|version| places.of.get(version));
    let (below, above): (Vec<f64>, Vec<f64>) =
        parents.map(|place| steps.levels[steps.parts[*place]].0).partition(|level| *level < own);
    !below.is_empty() && above.iter().any(|level| *level > own)
}

/// Whether a merge only combines the changes of its parents since they diverged: then it changes nothing itself.
fn both_sides(graph: &Graph, places: &ArtefactGroups, steps: &Steps, cut: &Cut, exact: bool) -> bool {
    let after = &places.all[cut.at].after;
    let Some((first, others)) = after.split_first() else { return false };
    let level = |version: usize| {
        let known = |version: usize| places.of.contains_key(&version);
        let version =
            if known(version) { Some(version) } else { graph.nearest(version, known).0.first().copied() };
        version.and_then(|version| places.of.get(&version)).map(|place| steps.levels[steps.parts[*place]])
    };
    let Some(first_level) = level(*first) else { return false };
    // The expected level if the effects of both sides add, the expected level if they multiply, and the squared error.
    let unit = |level: f64| if exact { level } else { level.exp() };
    let (mut sum, mut product, mut error) = (unit(first_level.0), first_level.0, first_level.1.powi(2));
    for other in others {
        let base = graph.base(*first, *other).and_then(level);
        let (Some(other), Some(base)) = (level(*other), base) else { return false };
        sum += unit(other.0) - unit(base.0);
        product += other.0 - base.0;
        error += other.1.powi(2) + base.1.powi(2);
    }
    let own = steps.levels[cut.to];
    if exact {
        return !others.is_empty() && sum == own.0;
    }
    let near = |expected: f64| (expected - own.0).abs() <= ALIKE * (error + own.1.powi(2)).sqrt();
    !others.is_empty() && (near(product) || near(sum.ln()))
}

fn change(
    range: &SeriesVersions<'_>,
    gathered: &GatheredSeries,
    places: &ArtefactGroups,
    steps: &Steps,
    cut: &Cut,
    [from, to]: [f64; 2],
) -> Change {
    let weighed = places.all[cut.at].first();
    let mut before = weighed;
    let mut set: Vec<usize> = Vec::new();
    let mut candidates: Vec<&ArtefactGroup> =
        cut.candidates.iter().map(|place| &places.all[*place]).collect();
    sorting::by_key(&mut candidates, |place| place.first());
    for (number, place) in candidates.into_iter().enumerate() {
        let Some(link) = places.of.get(&place.first()).and_then(|at| places.link(&steps.forest, *at)) else {
            continue;
        };
        if number == 0 {
            before = link;
        }
        // Ancestors of the version with the old level did not cause the new level.
        let old = range.graph.ancestry(link, 0);
        set.extend(place.between.iter().filter(|version| !old.has(**version)));
        set.push(place.first());
    }
    set.sort_unstable();
    set.dedup();
    set.retain(|&version| range.artefacts.may_change(range.graph, version));
    let at = set.iter().copied().rfind(|&version| version <= weighed).unwrap_or(weighed);
    let set = if set.is_empty() { vec![at] } else { set };
    let lower = gathered.metric.better == Better::Lower;
    let visits = |at: usize| places.all[at].seen.visits.first().copied();
    let [from, to] = match steps.forest.compared(cut.at).map(|before| (visits(before), visits(cut.at))) {
        // The level may have drifted in between, so the readings on both sides of the change are used.
        Some((Some(before), Some(here))) if gathered.shifting => [before, here],
        _ => [from, to],
    };
    Change {
        form: ChangeForm::Step,
        at,
        before,
        until: None,
        undoes: None,
        from,
        to,
        ratio: cut.ratio,
        interval: cut.interval,
        p: cut.p,
        better: (from != to
            && !between_parents(places, steps, cut)
            && !range.graph.diverged_before(&places.all[cut.at].after))
        .then_some((to < from) == lower),
        accepted: accepted(range.history, gathered, &set),
        set,
    }
}

/// The reason that a version of the set gives for accepting a change of this metric of this subject.
fn accepted(history: &History, gathered: &GatheredSeries, set: &[usize]) -> Option<String> {
    let acceptances = set.iter().flat_map(|&version| &history.versions[version].accepted);
    acceptances
        .filter(|acceptance| acceptance.subject.as_deref().is_none_or(|subject| subject == gathered.subject))
        .find(|acceptance| {
            acceptance.metric.as_deref().is_none_or(|pattern| gathered.metric.matches(pattern))
        })
        .map(|acceptance| acceptance.reason.clone())
}

/// Other changes that may show which version of its set caused a noisy change.
struct Hint<'a> {
    subject: &'a str,
    metric: &'a str,
    at: usize,
    step: f64,
}

/// The changes of these series that one version certainly caused.
fn hints<'a>(series: impl Iterator<Item = &'a Series>) -> Vec<Hint<'a>> {
    let certain = |series: &'a Series| {
        let alone = series.changes.iter().filter(|change| change.set.len() == 1);
        alone.map(move |change| Hint {
            subject: &series.subject,
            metric: &series.metric,
            at: change.at,
            step: change.ratio.ln(),
        })
    };
    series.flat_map(certain).collect()
}

/// The version of the best hint for a change: a hint in the same direction, else one at the version that is most
/// probable anyway, else the largest.
fn best<'a>(hints: impl Iterator<Item = &'a Hint<'a>>, change: &Change) -> Option<usize> {
    let step = change.ratio.ln();
    let rank = |hint: &Hint<'_>| ((hint.step > 0.0) == (step > 0.0), hint.at == change.at);
    let best = hints
        .max_by(|one, other| rank(one).cmp(&rank(other)).then(one.step.abs().total_cmp(&other.step.abs())));
    best.map(|hint| hint.at)
}

/// Moves `at` of noisy changes to the version of their set at which another metric of the same subject changed. The set
/// itself stays. A related metric that changed in the same direction, such as processor time beside wall time, tells most
/// about the cause; else a change of the work does, which a count shows. Reverts follow the changes that they revert.
pub(super) fn sharpen(series: &mut [Series]) {
    let found: Vec<Option<usize>> = {
        let related = hints(series.iter().filter(|series| !series.exact));
        let counts =
            hints(series.iter().filter(|series| series.exact && !series.metric.starts_with("build.")));
        let family = |metric: &str| metric.split('.').next().map(str::to_owned);
        let better = |series: &Series, change: &Change| {
            let inside = |hint: &&Hint<'_>| hint.subject == series.subject && change.set.contains(&hint.at);
            let alike = |hint: &&Hint<'_>| {
                family(hint.metric) == family(&series.metric)
                    && (hint.step > 0.0) == (change.ratio.ln() > 0.0)
            };
            best(related.iter().filter(inside).filter(alike), change)
                .or_else(|| best(counts.iter().filter(inside), change))
        };
        let noisy = series.iter().filter(|series| !series.exact);
        noisy.flat_map(|series| series.changes.iter().map(|change| better(series, change))).collect()
    };
    let mut found = found.into_iter();
    for series in series.iter_mut().filter(|series| !series.exact) {
        let moved: Vec<(usize, usize)> = series
            .changes
            .iter()
            .zip(&mut found)
            .map(|(change, found)| (change.at, found.unwrap_or(change.at)))
            .collect();
        for (change, (_, at)) in series.changes.iter_mut().zip(&moved) {
            change.at = *at;
            let undone = moved.iter().find(|(before, _)| change.undoes == Some(*before));
            change.undoes = undone.map(|(_, at)| *at);
        }
    }
}
