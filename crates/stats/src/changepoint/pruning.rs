//! Removes cuts that are significant but do not point to a version, or whose step may be zero.

use super::LEVEL;
use super::confidence_set::{PlacedCut, placed};
use super::fit::LevelFit;
use super::scaled_series::Scaled;
use super::selection::{SelectedCuts, without_chance_cuts};
use super::step_size::Noise;
use super::stretches::{SHORTEST, bounds};

/// In series of fewer values every remaining cut is reported, unless their noise is uneven and the step may be zero.
const FEWEST: usize = 40;

/// A cut is reported only if the change came within three versions of its place with at least this probability, since a
/// change must point to a version.
const SURE: f64 = 0.4;

/// A stretch of the shortest length counts as outliers if the levels before and after it differ by less than this share
/// of the step into it. Among many values a few outliers may follow each other.
const RETURN: f64 = 0.25;

/// Short stretches count as outliers only in series of at least this many values.
const MANY: usize = 200;

/// Removes cuts that cannot be placed, cuts smaller than `least` on the scale of the series, and cuts that a few
/// outliers in a row caused.
pub(super) fn pruned(series: &Scaled, mut steps: SelectedCuts, error: f64, least: f64) -> SelectedCuts {
    loop {
        let found = excursion(series, &steps.fit)
            .or_else(|| doubtful(series, &steps.fit, least))
            .or_else(|| without_direction(series, &steps.fit));
        let Some(gone) = found else { break };
        let cuts = steps.fit.cuts.iter().copied().filter(|cut| !gone.contains(cut)).collect();
        let mut rest = without_chance_cuts(series, LevelFit::of(series, cuts), error);
        // A cut that was judged together with a background keeps that probability if it is the larger one.
        for (cut, chance) in rest.fit.cuts.iter().zip(&mut rest.chances) {
            let before = steps.fit.cuts.iter().position(|other| other == cut);
            *chance = before.map_or(*chance, |i| chance.max(steps.chances[i]));
        }
        steps = rest;
    }
    steps
}

/// The cut with the least certain step, if the interval of that step contains zero: then it is not known in which
/// direction the level changed. In noise of several sizes, the likelihood alone may keep such a cut.
fn without_direction(series: &Scaled, fit: &LevelFit) -> Option<Vec<usize>> {
    if series.len() < FEWEST && !series.uneven {
        return None;
    }
    let noise = Noise::estimate(series, &fit.cuts);
    let certainty = |i: usize| {
        let (step, reach) = noise.step(&fit.cuts, i, series.len(), LEVEL);
        step.abs() / reach
    };
    let weakest = (0..fit.cuts.len()).map(|i| (i, certainty(i))).min_by(|a, b| a.1.total_cmp(&b.1))?;
    (weakest.1 <= 1.0).then(|| vec![fit.cuts[weakest.0]])
}

/// Both cuts around the first stretch that consists of outliers.
fn excursion(series: &Scaled, fit: &LevelFit) -> Option<Vec<usize>> {
    if series.len() < MANY {
        return None;
    }
    let ends = bounds(&fit.cuts, series.len());
    let inner = |i: &usize| {
        let [before, here, after] = [fit.levels[i - 1], fit.levels[*i], fit.levels[i + 1]];
        ends[i + 1] - ends[*i] <= SHORTEST && (after - before).abs() < RETURN * (here - before).abs()
    };
    (1..fit.levels.len().saturating_sub(1)).find(inner).map(|i| vec![ends[i], ends[i + 1]])
}

/// The smallest cut if its step is below `least`; else the cut whose place is least certain, if that is less certain
/// than [`SURE`].
fn doubtful(series: &Scaled, fit: &LevelFit, least: f64) -> Option<Vec<usize>> {
    if series.len() < FEWEST {
        return None;
    }
    let step = |i: &usize| (fit.levels[i + 1] - fit.levels[*i]).abs();
    let all = || 0..fit.cuts.len();
    let smallest = all().min_by(|a, b| step(a).total_cmp(&step(b)))?;
    if step(&smallest) < least {
        return Some(vec![fit.cuts[smallest]]);
    }
    let sure = |i: usize| -> PlacedCut { placed(series, fit, i) };
    let worst = all().map(|i| (i, sure(i).near)).min_by(|a, b| a.1.total_cmp(&b.1))?;
    (worst.1 < SURE).then(|| vec![fit.cuts[worst.0]])
}
