//! Judges one series by the method that its readings require.

use scruple_stats::sorting::SortedMap;

use super::exact;
use super::forest::Forest;
use super::gather::GatheredSeries;
use super::interleaved::{self, Cells};
use super::steps::{Cut, LEVEL, SearchInput, SlowDrift, Steps, steps};
use super::version_groups::{ArtefactGroup, ArtefactGroups, VersionReadings};
use crate::history::{Graph, READINGS};
use crate::metric::Pass;
use scruple_stats::changepoint::{self, SeriesOptions};
use scruple_stats::paired;
use scruple_stats::quantile::median;

/// The smallest relative standard deviation that is assumed between equal builds, whose code and data have different
/// addresses. A range that shows a larger one is judged by that.
const LAYOUT: f64 = 0.002;

/// A series with its cuts.
pub(super) struct JudgedSeries {
    /// Whether the series was judged as a noisy one, whose cuts have probabilities.
    pub noisy: bool,
    /// Whether the levels are logarithms.
    pub logarithmic: bool,
    /// The places of the series that were searched for changes.
    pub places: ArtefactGroups,
    pub steps: Steps,
    /// The effect of each block on the logarithms.
    pub blocks: SortedMap<u32, f64>,
    pub cannot: Option<String>,
}

impl JudgedSeries {
    fn without_changes(places: ArtefactGroups, cannot: Option<String>) -> JudgedSeries {
        JudgedSeries {
            noisy: false,
            logarithmic: false,
            places,
            steps: Steps::default(),
            blocks: SortedMap::new(),
            cannot,
        }
    }

    /// The level with this number, in the unit of the metric, as it is at a place.
    pub fn level(&self, part: usize, place: usize) -> f64 {
        let level = self.steps.levels[part].0 + self.steps.drift_at(place);
        if self.logarithmic { level.exp() } else { level }
    }

    /// Whether a stricter error leads to the same changes.
    pub fn is_final(&self, gathered: &GatheredSeries) -> bool {
        gathered.exact || gathered.shifting || (self.is_unchanged() && self.steps.power.is_some())
    }

    /// Whether neither a change nor two modes were found.
    pub fn is_unchanged(&self) -> bool {
        self.steps.cuts.is_empty() && self.steps.modes.is_none()
    }

    /// Takes the detectable step from a judgement at a stricter error.
    pub fn with_detectable_of(mut self, stricter: &JudgedSeries) -> JudgedSeries {
        self.steps.detectable = stricter.steps.detectable;
        self
    }

    /// Adapts a final judgement to a stricter error, which changes only the detectable step.
    pub fn at(mut self, error: f64) -> JudgedSeries {
        if let Some(power) = self.steps.power {
            self.steps.detectable = power.detectable(error);
        }
        self
    }

    /// The probability of each cut in noise alone; empty for exact series.
    pub fn probabilities(&self) -> impl Iterator<Item = f64> {
        self.steps.cuts.iter().filter(|_| self.noisy).map(|cut| cut.p)
    }

    /// The number of tests that the series counts for in the correction for multiple tests.
    pub fn tests(&self) -> usize {
        if self.noisy { self.steps.cuts.len().max(1) } else { 0 }
    }
}

pub(super) fn judged(graph: &Graph, gathered: &GatheredSeries, error: f64, least: f64) -> JudgedSeries {
    let all = ArtefactGroups::of(graph, gathered.reads.iter());
    if gathered.exact || gathered.shifting {
        let steps = exact::steps(&all);
        return JudgedSeries { steps, ..JudgedSeries::without_changes(all, None) };
    }
    if gathered.cannot.is_some() {
        return JudgedSeries::without_changes(all, gathered.cannot.clone());
    }
    if all.all.len() < 2 {
        // Versions with the same artefacts cannot differ, which is a result.
        let cannot = (gathered.points.len() < 2).then(|| "only one version was weighed".to_owned());
        return JudgedSeries::without_changes(all, cannot);
    }
    let typical = median(&gathered.points.iter().map(|point| point.value).collect::<Vec<f64>>());
    let tick = gathered.resolution / typical;
    let least =
        if gathered.counted { 0.0 } else { least }.max(tick / 2.0).max((gathered.floor / typical).ln_1p());
    let beside = SharedReadings::of(&all);
    // Where versions were built once, all builds have the same block, although they were built one after another.
    let built_apart = gathered.metric.pass == Pass::Build && beside.most() < READINGS;
    if beside.none() || built_apart {
        return match gathered.own_series {
            false if beside.most() > 1 => {
                JudgedSeries::without_changes(all, Some(too_few(beside.most(), gathered)))
            }
            true => judge_given_values(graph, gathered, all, error, least),
            false => JudgedSeries::without_changes(all, Some(one_after_another(gathered))),
        };
    }
    // A version with too few readings in blocks with other versions counts as not weighed.
    let enough = |read: &&VersionReadings| beside.readings(&all, read.version) >= READINGS;
    let places = ArtefactGroups::of(graph, gathered.reads.iter().filter(enough));
    if places.all.len() < 2 {
        let most = gathered.reads.iter().map(|read| beside.readings(&all, read.version)).max().unwrap_or(0);
        return JudgedSeries::without_changes(all, Some(too_few(most, gathered)));
    }
    let cells: Vec<Cells> = places.all.iter().map(|place| place.seen.cells.clone()).collect();
    let Some(fit) = interleaved::fit(&cells, tick.max(1e-9) / 12_f64.sqrt()) else {
        let why = "the versions were not weighed in the same rounds often enough to be compared";
        return JudgedSeries::without_changes(all, Some(why.to_owned()));
    };
    let confirm = |one: &[usize], other: &[usize]| confirmed(&cells, one, other);
    let layout = if gathered.counted { 0.0 } else { LAYOUT * LAYOUT };
    let same_binary = SameBinary::of(gathered, &fit);
    let beyond = if same_binary.is_certain() { same_binary.variance } else { 0.0 };
    let variance =
        |(place, variance): (&ArtefactGroup, &f64)| variance + layout + beyond / place.weighed as f64;
    let variances: Vec<f64> = places.all.iter().zip(&fit.variances).map(variance).collect();
    let known = SearchInput {
        values: &fit.centres,
        variances: &variances,
        freedom: fit.freedom,
        same_binary_variance: same_binary.variance,
        error,
        least,
        newest: places.newest,
        confirm: &confirm,
    };
    let steps = steps(&known, places.forest());
    JudgedSeries { noisy: true, logarithmic: true, steps, places, blocks: fit.blocks, cannot: None }
}

/// The reason why versions weighed one after another are not judged: a change of the machine between two versions would
/// look like a change of the code.
fn one_after_another(gathered: &GatheredSeries) -> String {
    let once = gathered.points.iter().all(|point| point.readings.len() < 2);
    let read = match (gathered.metric.pass, once) {
        (Pass::Build, true) => "each version was built once, one after another",
        (Pass::Build, false) => "the versions were built one after another",
        _ => "the versions were weighed one after another",
    };
    let advice = match gathered.metric.pass {
        Pass::Build => format!("; use --builds {READINGS}"),
        _ => String::new(),
    };
    format!("{read}, so a change of the machine looks like a change of a version{advice}")
}

fn too_few(most: usize, gathered: &GatheredSeries) -> String {
    let (readings, are) = if most == 1 { ("reading", "is") } else { ("readings", "are") };
    let option = if gathered.metric.pass == Pass::Build { "--builds" } else { "--rounds" };
    format!(
        "{most} {readings} of a version in rounds with others {are} too few: at least {READINGS} are needed; use {option} {READINGS}"
    )
}

/// For each place, the number of readings that were taken in blocks with another place.
struct SharedReadings(Vec<usize>);

impl SharedReadings {
    fn of(places: &ArtefactGroups) -> SharedReadings {
        let mut sizes: SortedMap<u32, usize> = SortedMap::new();
        for block in places.all.iter().flat_map(|place| place.seen.cells.keys()) {
            *sizes.entry(*block).or_insert(0) += 1;
        }
        let shared = |cells: &Cells| cells.keys().filter(|block| sizes[block] > 1).count();
        SharedReadings(places.all.iter().map(|place| shared(&place.seen.cells)).collect())
    }

    fn none(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }

    /// The largest number of readings that a place has in blocks with others.
    fn most(&self) -> usize {
        self.0.iter().copied().max().unwrap_or(0)
    }

    fn readings(&self, places: &ArtefactGroups, version: usize) -> usize {
        places.of.get(&version).map_or(0, |place| self.0[*place])
    }
}

/// How much versions with the same artefacts differ from each other, although each was weighed.
struct SameBinary {
    /// The variance between them beyond what their readings explain.
    variance: f64,
    /// The variance that their readings explain.
    explained: f64,
    /// The number of independent differences.
    free: f64,
}

impl SameBinary {
    fn of(gathered: &GatheredSeries, fit: &interleaved::InterleavedFit) -> SameBinary {
        let centre = |cells: &Cells| {
            let values: Vec<f64> = cells.iter().map(|(block, value)| value - fit.blocks[block]).collect();
            median(&values)
        };
        // Versions that were not judged may be in blocks that the fit does not contain.
        let fitted = |read: &&VersionReadings| {
            !read.copied && read.seen.cells.keys().all(|block| fit.blocks.contains_key(block))
        };
        let mut groups: SortedMap<usize, Vec<f64>> = SortedMap::new();
        for read in gathered.reads.iter().filter(fitted) {
            groups.entry(read.root).or_default().push(centre(&read.seen.cells));
        }
        let (mut squares, mut free) = (0.0, 0.0);
        for values in groups.values() {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            squares += values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
            free += values.len() as f64 - 1.0;
        }
        let explained = median(&fit.variances);
        let variance = if free > 0.0 { (squares / free - explained).max(0.0) } else { 0.0 };
        SameBinary { variance, explained, free }
    }

    /// Whether equal binaries differ by more than three standard errors more than their readings explain. Then other
    /// binaries differ as much without a reason in their source.
    fn is_certain(&self) -> bool {
        self.variance > 3.0 * (2.0 / self.free).sqrt() * self.explained
    }
}

/// Whether the readings of two groups of places differ block by block; true where they share too few blocks to decide.
fn confirmed(cells: &[Cells], one: &[usize], other: &[usize]) -> bool {
    let mut sides: SortedMap<u32, [Vec<f64>; 2]> = SortedMap::new();
    for (side, places) in [one, other].into_iter().enumerate() {
        for (block, value) in places.iter().flat_map(|place| &cells[*place]) {
            sides.entry(*block).or_default()[side].push(*value);
        }
    }
    let both = sides.into_values().filter(|[left, right]| !left.is_empty() && !right.is_empty());
    let ratios: Vec<f64> = both.map(|[left, right]| median(&right) - median(&left)).collect();
    match paired::effect_of_log_ratios(&ratios, LEVEL) {
        Ok(effect) => !effect.interval.contains(1.0),
        Err(_) => true,
    }
}

/// Judges a series that the user brought: every change of the values counts, whatever caused it. Only the line of first
/// parents is judged, since that is the order of the values.
fn judge_given_values(
    graph: &Graph,
    gathered: &GatheredSeries,
    all: ArtefactGroups,
    error: f64,
    least: f64,
) -> JudgedSeries {
    let line = all.forest().line_to(all.newest);
    let on_line =
        |read: &&VersionReadings| all.of.get(&read.version).is_some_and(|place| line.contains(place));
    let places = ArtefactGroups::of(graph, gathered.reads.iter().filter(on_line));
    let logs: Vec<Vec<f64>> =
        places.all.iter().map(|place| place.seen.cells.values().copied().collect()).collect();
    let centres: Vec<f64> = logs.iter().map(|logs| median(logs)).collect();
    let logarithmic = !gathered.differences;
    let values: Vec<f64> =
        centres.iter().map(|centre| if logarithmic { centre.exp() } else { *centre }).collect();
    let errors = errors(&logs, &centres);
    // The steps of single values are those of the series itself.
    let resolution = if errors.is_empty() { 0.0 } else { gathered.resolution };
    let options = SeriesOptions { error, errors: &errors, resolution, ..SeriesOptions::default() };
    match changepoint::noisy(&values, &options) {
        Ok(series) => {
            let steps = match logarithmic {
                true => of(&series, values.len(), least),
                false => of_differences(&series, values.len()),
            };
            JudgedSeries { noisy: true, logarithmic, steps, places, blocks: SortedMap::new(), cannot: None }
        }
        Err(why) => {
            let why = match why {
                paired::Why::TooFew { have, need } => {
                    format!("{have} values are too few: at least {need} are needed")
                }
                why => why.to_string(),
            };
            JudgedSeries::without_changes(all, Some(why))
        }
    }
}

/// The standard error of the centre of each version, from the spread of all readings; empty where each version has a
/// single reading.
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

/// The cuts of a series in which steps are differences. Each ratio is infinite and gives only the direction.
fn of_differences(series: &changepoint::FoundChanges, n: usize) -> Steps {
    let forest = Forest::line(n);
    let starts: Vec<usize> = series.changes.iter().map(|change| change.at).collect();
    let (parts, count) = forest.parts(&starts);
    let length = |part: usize| parts.iter().filter(|&&other| other == part).count().max(1) as f64;
    let levels = (0..count).map(|part| (series.levels[part], series.noise / length(part).sqrt())).collect();
    let cut = |(number, change): (usize, &changepoint::ChangePoint)| Cut {
        at: change.at,
        candidates: (change.first..=change.last).collect(),
        from: number,
        to: number + 1,
        ratio: if change.step.rises() { f64::INFINITY } else { f64::NEG_INFINITY },
        interval: change.interval,
        p: change.p,
    };
    let cuts = series.changes.iter().enumerate().map(cut).collect();
    let drift =
        series.background.as_ref().map(|slow| SlowDrift { added: slow.curve.clone(), range: slow.range });
    Steps { cuts, parts, levels, forest, noise: series.noise, modes: series.modes, drift, ..Steps::default() }
}

fn of(series: &changepoint::FoundChanges, n: usize, least: f64) -> Steps {
    // The values are exponentials of logarithms here, so every step has a ratio.
    let ratio = |change: &changepoint::ChangePoint| change.step.ratio().filter(|r| r.ln().abs() >= least);
    let kept: Vec<(&changepoint::ChangePoint, f64)> =
        series.changes.iter().filter_map(|change| Some((change, ratio(change)?))).collect();
    // The levels on both sides of a step that is too small to report are joined.
    let mut starts = vec![0];
    starts.extend(series.changes.iter().map(|change| change.at));
    let end = |i: usize| starts.get(i + 1).copied().unwrap_or(n);
    let mut levels: Vec<(f64, f64)> = Vec::new();
    let mut weight = 0.0;
    for (i, level) in series.levels.iter().enumerate() {
        let length = (end(i) - starts[i]) as f64;
        match levels.last_mut() {
            Some(last) if !kept.iter().any(|(cut, _)| cut.at == starts[i]) => {
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
    let forest = Forest::line(n);
    let (parts, _) = forest.parts(&kept.iter().map(|(change, _)| change.at).collect::<Vec<usize>>());
    let cut = |(number, (change, ratio)): (usize, &(&changepoint::ChangePoint, f64))| Cut {
        at: change.at,
        candidates: (change.first..=change.last).collect(),
        from: number,
        to: number + 1,
        ratio: *ratio,
        interval: change.interval,
        p: change.p,
    };
    let cuts = kept.iter().enumerate().map(cut).collect();
    let half = n as f64 / 2.0;
    let detectable = (4.0 * series.noise * (2.0 / half).sqrt()).max(least);
    let drift = series.background.as_ref().map(|slow| SlowDrift {
        added: slow.curve.iter().map(|factor| factor.ln()).collect(),
        range: slow.range,
    });
    Steps {
        cuts,
        parts,
        levels,
        forest,
        noise: series.noise,
        modes: series.modes.map(|modes| modes.map(f64::ln)),
        detectable: Some(detectable),
        power: None,
        drift,
    }
}
