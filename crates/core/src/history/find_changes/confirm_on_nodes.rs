//! Confirms the changes of noisy metrics on a farm: nodes differ, so a change that all pairs together show need not
//! hold for the class of machines.

use crate::history::{ByNodes, History, Series, over_nodes};

/// Replaces the effects of noisy changes, and those between the ends, by their effects over the nodes. A change is
/// removed, and the levels around it are joined, if its interval over the nodes contains a ratio of 1 or is not known.
pub(super) fn confirm(history: &History, all: &mut [Series]) {
    if history.run.provenance.nodes.len() < 2 {
        return;
    }
    for series in all.iter_mut().filter(|one| !one.exact && !one.shifting) {
        let levels = series.levels.clone();
        let around = |version: usize| {
            let level = levels.iter().find(|(first, last, _)| (*first..=*last).contains(&version));
            level.map_or(version..=version, |(first, last, _)| *first..=*last)
        };
        for mut change in std::mem::take(&mut series.changes) {
            let (before, after) = (around(change.before), around(change.at));
            let Some(found) = over_nodes(history, (&series.subject, &series.metric), before, after) else {
                // Fewer than two nodes have weighed both sides, so the change stays as it is.
                series.changes.push(change);
                continue;
            };
            let effect = found.joined.as_ref().map(|joined| joined.effect).map_err(|why| *why);
            let stands = effect.is_ok_and(|effect| !effect.interval.contains(1.0));
            series.by_nodes.push(ByNodes { at: change.at, stands, found });
            match effect {
                Ok(effect) if stands => {
                    (change.ratio, change.interval) = (effect.ratio, Some(effect.interval));
                    series.changes.push(change);
                }
                _ => {
                    series.borders.retain(|[_, at]| *at != change.at);
                    join_with_previous(&mut series.levels, change.at);
                }
            }
        }
        replace_overall_effect(history, series);
    }
}

/// Replaces the effect between the first and the last version by that over the nodes. Where they are on different
/// levels, it is the effect between these levels.
fn replace_overall_effect(history: &History, series: &mut Series) {
    let Some(whole) = series.whole.as_mut().filter(|whole| !whole.same_artefacts) else { return };
    let level = |version: usize| {
        let level = series.levels.iter().find(|(first, last, _)| (*first..=*last).contains(&version));
        level.map_or(version..=version, |(first, last, _)| *first..=*last)
    };
    let (from, to) = match (level(whole.from), level(whole.to)) {
        (from, to) if from == to => (whole.from..=whole.from, whole.to..=whole.to),
        levels => levels,
    };
    let Some(found) = over_nodes(history, (&series.subject, &series.metric), from, to) else { return };
    let effect = found.joined.map(|joined| joined.effect).ok();
    whole.ratio = effect.map_or(whole.ratio, |effect| effect.ratio);
    whole.interval = effect.map(|effect| effect.interval);
    whole.surely = effect.is_some_and(|effect| !effect.interval.contains(1.0));
}

/// Joins the level that begins at version `at` with the level before it.
fn join_with_previous(levels: &mut Vec<(usize, usize, f64)>, at: usize) {
    let Some(place) = levels.iter().position(|(first, last, _)| (*first..=*last).contains(&at)) else {
        return;
    };
    if place == 0 {
        return;
    }
    let (first, last, level) = levels.remove(place);
    let before = &mut levels[place - 1];
    let (old, new) = ((before.1 - before.0 + 1) as f64, (last - first + 1) as f64);
    before.2 = (before.2 * old + level * new) / (old + new);
    before.1 = last;
}
