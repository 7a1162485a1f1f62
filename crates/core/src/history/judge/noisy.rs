//! One series, judged by the rule that its readings call for.

use std::collections::BTreeMap;

use super::forms;
use super::gather::{Gathered, Place};
use super::steps::{Cut, Known, LEVEL, Steps, steps};
use super::turns::{self, Cells};
use crate::changepoint::{self, Options};
use crate::stats::paired;
use crate::stats::quantile::median;

/// The standard deviation between builds of which none is better, relative: code and data come to lie at other
/// addresses. It is the least that is assumed; a range that shows more is judged by what it shows.
const LAYOUT: f64 = 0.002;

/// A series with its cuts.
pub(super) struct Judged {
    /// Whether levels are logarithms, and probabilities anything but 0.
    pub noisy: bool,
    pub steps: Steps,
    /// What each block added to the logarithms.
    pub blocks: BTreeMap<u32, f64>,
    pub cannot: Option<String>,
}

impl Judged {
    fn unjudged(cannot: String) -> Judged {
        Judged { noisy: false, steps: Steps::default(), blocks: BTreeMap::new(), cannot: Some(cannot) }
    }

    /// The probabilities of its changes in noise alone; none of an exact series.
    pub fn probabilities(&self) -> impl Iterator<Item = f64> {
        self.steps.cuts.iter().filter(|_| self.noisy).map(|cut| cut.p)
    }

    /// How many chances it had to be wrong.
    pub fn tests(&self) -> usize {
        if self.noisy { self.steps.cuts.len().max(1) } else { 0 }
    }
}

pub(super) fn judged(gathered: &Gathered, error: f64, least: f64) -> Judged {
    if gathered.exact || gathered.shifting {
        let steps = forms::exact(gathered);
        return Judged { noisy: false, steps, blocks: BTreeMap::new(), cannot: None };
    }
    if let Some(cannot) = &gathered.cannot {
        return Judged::unjudged(cannot.clone());
    }
    if gathered.places.len() < 2 {
        // Several versions with the same artefacts cannot have changed anything, which is an answer.
        let cannot = (gathered.points.len() < 2).then(|| "only one version was weighed".to_owned());
        return Judged { noisy: false, steps: Steps::default(), blocks: BTreeMap::new(), cannot };
    }
    let cells: Vec<Cells> = gathered.places.iter().map(|place| place.cells.clone()).collect();
    let typical = median(&gathered.points.iter().map(|point| point.value).collect::<Vec<f64>>());
    let tick = gathered.resolution / typical;
    let least = if gathered.counted { 0.0 } else { least }.max(tick / 2.0);
    match turns::fit(&cells, tick.max(1e-9) / 12_f64.sqrt()) {
        Some(fit) => {
            let confirm = |from: usize, middle: usize, to: usize| confirmed(&cells, from, middle, to);
            let layout = if gathered.counted { 0.0 } else { LAYOUT * LAYOUT };
            let variances: Vec<f64> = fit.variances.iter().map(|variance| variance + layout).collect();
            let known = Known {
                values: &fit.centres,
                variances: &variances,
                freedom: fit.freedom,
                twins: twins(gathered, &fit),
                error,
                least,
                confirm: &confirm,
            };
            Judged { noisy: true, steps: steps(&known), blocks: fit.blocks, cannot: None }
        }
        None => apart(&gathered.places, error, least, gathered.resolution),
    }
}

/// The variance between visits of the same artefacts beyond what their readings explain.
fn twins(gathered: &Gathered, fit: &turns::Turns) -> f64 {
    let centre = |cells: &Cells| {
        let values: Vec<f64> = cells.iter().map(|(block, value)| value - fit.blocks[block]).collect();
        median(&values)
    };
    let own = gathered.points.iter().zip(&gathered.cells).zip(&gathered.roots);
    let mut groups: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for ((_, cells), root) in own.filter(|((point, _), _)| !point.copied) {
        groups.entry(*root).or_default().push(centre(cells));
    }
    let (mut squares, mut free) = (0.0, 0.0);
    for values in groups.values() {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        squares += values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        free += values.len() as f64 - 1.0;
    }
    if free > 0.0 { (squares / free - median(&fit.variances)).max(0.0) } else { 0.0 }
}

/// Whether the readings of two neighbouring stretches differ block by block; where they share too few blocks to tell,
/// nothing speaks against it.
fn confirmed(cells: &[Cells], from: usize, middle: usize, to: usize) -> bool {
    let mut sides: BTreeMap<u32, [Vec<f64>; 2]> = BTreeMap::new();
    for (i, cells) in cells.iter().enumerate().take(to).skip(from) {
        for (block, value) in cells {
            sides.entry(*block).or_default()[usize::from(i >= middle)].push(*value);
        }
    }
    let both = sides.into_values().filter(|[left, right]| !left.is_empty() && !right.is_empty());
    let ratios: Vec<f64> = both.map(|[left, right]| median(&right) - median(&left)).collect();
    match paired::effect_of_log_ratios(&ratios, LEVEL) {
        Ok(effect) => !effect.interval.contains(1.0),
        Err(_) => true,
    }
}

/// Versions that were weighed one after the other, so that what the machine did meanwhile is in their differences.
fn apart(places: &[Place], error: f64, least: f64, resolution: f64) -> Judged {
    let logs: Vec<Vec<f64>> = places.iter().map(|place| place.cells.values().copied().collect()).collect();
    let centres: Vec<f64> = logs.iter().map(|logs| median(logs)).collect();
    let values: Vec<f64> = centres.iter().map(|centre| centre.exp()).collect();
    let errors = errors(&logs, &centres);
    // Versions of one block were visited in random order, so that drift does not follow the range.
    let shared = places.iter().filter(|place| place.cells.keys().eq(places[0].cells.keys())).count();
    let drift = (shared == places.len()).then_some(0.0);
    let options = Options { error, errors: &errors, drift, resolution };
    match changepoint::noisy(&values, &options) {
        Ok(series) => Judged {
            noisy: true,
            steps: of(&series, values.len(), least),
            blocks: BTreeMap::new(),
            cannot: None,
        },
        Err(why) => {
            let mut unjudged = Judged::unjudged(match why {
                paired::Why::TooFew { have, need } => format!(
                    "{have} versions, not weighed in turns or read once only, are too few; at least {need} are needed"
                ),
                why => why.to_string(),
            });
            unjudged.steps.levels = Vec::new();
            unjudged
        }
    }
}

/// The standard error of each version's centre from the spread of all readings; empty where there is one reading each.
fn errors(logs: &[Vec<f64>], centres: &[f64]) -> Vec<f64> {
    let residuals = logs.iter().zip(centres).filter(|(logs, _)| logs.len() > 1);
    let away: Vec<f64> =
        residuals.flat_map(|(logs, centre)| logs.iter().map(move |log| (log - centre).abs())).collect();
    if away.is_empty() {
        return Vec::new();
    }
    let scale = 1.4826 * median(&away);
    logs.iter().map(|logs| 1.2533 * scale / (logs.len() as f64).sqrt()).collect()
}

fn of(series: &changepoint::Series, n: usize, least: f64) -> Steps {
    let keeps = |change: &&changepoint::ChangePoint| change.ratio.ln().abs() >= least;
    let cut = |change: &changepoint::ChangePoint| Cut {
        at: change.at,
        first: change.first,
        last: change.last,
        ratio: change.ratio,
        interval: change.interval,
        p: change.p,
    };
    let kept: Vec<Cut> = series.changes.iter().filter(keeps).map(cut).collect();
    // Levels on either side of a step too small to name are one level.
    let mut starts = vec![0];
    starts.extend(series.changes.iter().map(|change| change.at));
    let end = |i: usize| starts.get(i + 1).copied().unwrap_or(n);
    let mut levels: Vec<(f64, f64)> = Vec::new();
    let mut weight = 0.0;
    for (i, level) in series.levels.iter().enumerate() {
        let length = (end(i) - starts[i]) as f64;
        match levels.last_mut() {
            Some(last) if !kept.iter().any(|cut| cut.at == starts[i]) => {
                last.0 = (last.0 * weight + level.ln() * length) / (weight + length);
                weight += length;
                last.1 = series.noise / weight.sqrt();
            }
            _ => {
                weight = length;
                levels.push((level.ln(), series.noise / length.sqrt()));
            }
        }
    }
    let half = n as f64 / 2.0;
    let detectable = (4.0 * series.noise * (2.0 / half).sqrt()).max(least);
    Steps {
        cuts: kept,
        levels,
        noise: series.noise,
        modes: series.modes.map(|modes| modes.map(f64::ln)),
        detectable: Some(detectable),
    }
}
