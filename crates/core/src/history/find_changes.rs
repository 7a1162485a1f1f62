//! Finds the changes of a range of versions from its readings.
//!
//! A metric whose readings repeat in every version is exact: any change is real. All other metrics are noisy. Where
//! their versions were weighed in turns, the common effect of blocks is removed, and each version's own readings give
//! its uncertainty ([`interleaved`], [`steps`]). A series of values that the user brought is cut by
//! [`changepoint`](scruple_stats::changepoint). Among the changes of all noisy series together, the share of false ones
//! is kept below the requested error ([`false_discovery`]).

mod build_noise;
mod classify;
mod confirm_on_nodes;
mod effects;
mod exact;
mod forest;
mod gather;
mod interleaved;
mod noisy;
mod partition;
mod steps;
mod version_groups;

use super::{Graph, History, Judgement, Point, Series};
use classify::SeriesVersions;
use gather::{GatheredSeries, SameArtefacts};
use noisy::JudgedSeries;
use scruple_stats::median_interval::median_interval;
use scruple_stats::quantile::median;
use scruple_stats::{Interval, false_discovery};
use steps::{LEVEL, Steps};
use version_groups::ArtefactGroups;

/// The false discovery rate of reports: the accepted share of false changes among those reported.
const ERROR: f64 = 0.05;

/// The accepted probability of a false change in one series of values that the user brought. It is smaller, since the
/// machine may have drifted between them.
const ERROR_OF_GIVEN: f64 = 0.01;

/// Finds the changes of every metric of every subject.
pub fn find_changes(history: &History) -> Judgement {
    let (artefacts, graph) = (SameArtefacts::of(history), Graph::of(&history.versions));
    let gathered = gather::gather(history, &artefacts);
    // Half the margin within which a difference does not matter: the code layout of a build alone may change as much.
    let least = (history.run.terms.margin / 2.0).max(0.0).ln_1p();
    let found: Vec<JudgedSeries> =
        gathered.iter().map(|one| noisy::judged(&graph, one, ERROR, least)).collect();
    let tests = found.iter().map(JudgedSeries::tests).sum();
    let most = if history.run.provenance.tool.is_some() { ERROR_OF_GIVEN } else { ERROR };
    let stricter = false_discovery::bound(&probabilities(&found), tests, ERROR).min(most);
    // A series without a change at the laxer error has none at the stricter one, but perhaps a slow drift.
    let mut judged: Vec<JudgedSeries> = gathered
        .iter()
        .zip(found)
        .map(|(one, judged)| match (judged.is_final(one), judged.is_unchanged()) {
            (true, _) => judged.at(stricter),
            (false, true) => judged.with_detectable_of(&noisy::judged(&graph, one, stricter, least)),
            (false, false) => noisy::judged(&graph, one, stricter, least),
        })
        .collect();
    adjust(&mut judged, tests);
    let range = SeriesVersions { history, graph: &graph, artefacts: &artefacts };
    let whole = |(one, judged): (&GatheredSeries, &JudgedSeries)| series(&range, one, judged);
    let mut series: Vec<Series> = gathered.iter().zip(&judged).map(whole).collect();
    classify::sharpen(&mut series);
    confirm_on_nodes::confirm(history, &mut series);
    let break_even = effects::break_even(history, &series, |version| artefacts.root(version));
    Judgement { series, break_even }
}

/// The p-values of all tests, in increasing order.
fn probabilities(judged: &[JudgedSeries]) -> Vec<f64> {
    let mut p: Vec<f64> = judged.iter().flat_map(JudgedSeries::probabilities).collect();
    p.sort_unstable_by(f64::total_cmp);
    p
}

/// Adjusts the p-values of changes for the number of tests.
fn adjust(judged: &mut [JudgedSeries], tests: usize) {
    let p = probabilities(judged);
    let adjusted = false_discovery::adjusted(&p, tests);
    for cut in judged.iter_mut().filter(|one| one.noisy).flat_map(|one| &mut one.steps.cuts) {
        let rank = p.partition_point(|p| *p < cut.p);
        cut.p = adjusted.get(rank).copied().unwrap_or(1.0);
    }
}

fn series(range: &SeriesVersions<'_>, gathered: &GatheredSeries, judged: &JudgedSeries) -> Series {
    let (steps, places) = (&judged.steps, &judged.places);
    let points = points(gathered, judged);
    Series {
        subject: gathered.subject.clone(),
        metric: gathered.metric.key.clone().into_owned(),
        unit: gathered.metric.unit.clone(),
        better: gathered.metric.better,
        exact: gathered.exact,
        shifting: gathered.shifting,
        changes: classify::changes(range, gathered, judged),
        borders: borders(places, steps),
        by_nodes: Vec::new(),
        levels: stretches(judged),
        noise: (judged.noisy || gathered.exact).then_some(steps.noise),
        same_binary_noise: same_binary_noise(&points, range.artefacts),
        modes: steps.modes.map(|modes| if judged.logarithmic { modes.map(f64::exp) } else { modes }),
        slow_drift: steps.drift.as_ref().map(|drift| drift.range),
        detectable: steps.detectable.map(f64::exp_m1),
        whole: effects::overall_effect(range.graph, gathered, judged),
        cannot: judged.cannot.clone(),
        points,
    }
}

/// The points of a series with the effects of their blocks removed.
fn points(gathered: &GatheredSeries, judged: &JudgedSeries) -> Vec<Point> {
    if !judged.logarithmic {
        return gathered.points.clone();
    }
    let corrected = |(point, read): (&Point, &version_groups::VersionReadings)| {
        let met = |block: &u32| judged.blocks.get(block).copied().unwrap_or(0.0);
        let logs: Vec<f64> = read.seen.cells.iter().map(|(block, value)| value - met(block)).collect();
        let interval: Option<Interval> = median_interval(&logs, LEVEL).map(|i| i.map(f64::exp));
        // The cells hold one reading for each process, or the readings themselves.
        let value = median(&logs).exp();
        Point { value, interval, ..point.clone() }
    };
    gathered.points.iter().zip(&gathered.reads).map(corrected).collect()
}

/// The stretches of consecutive versions in the list that have the same level: first version, last version, level. With
/// a slow drift, each version has a level of its own.
fn stretches(judged: &JudgedSeries) -> Vec<(usize, usize, f64)> {
    let (places, steps) = (&judged.places, &judged.steps);
    let mut stretches: Vec<(usize, usize, f64)> = Vec::new();
    let mut part = None;
    for (version, place) in &places.of {
        let Some(here) = steps.parts.get(*place) else { continue };
        match stretches.last_mut().filter(|_| part == Some(here) && steps.drift.is_none()) {
            Some(last) => last.1 = *version,
            None => stretches.push((*version, *version, judged.level(*here, *place))),
        }
        part = Some(here);
    }
    stretches
}

/// The pairs of versions between which the level changes.
fn borders(places: &ArtefactGroups, steps: &Steps) -> Vec<[usize; 2]> {
    let border = |cut: &steps::Cut| Some([places.link(&steps.forest, cut.at)?, places.all[cut.at].first()]);
    let mut borders: Vec<[usize; 2]> = steps.cuts.iter().filter_map(border).collect();
    borders.sort_unstable();
    borders
}

/// The relative standard deviation of values within groups of versions that have the same artefacts and were each
/// weighed; `None` where there are no such groups.
fn same_binary_noise(points: &[Point], artefacts: &SameArtefacts) -> Option<f64> {
    let (mut squares, mut free) = (0.0, 0.0);
    let mut roots: Vec<usize> = points.iter().map(|point| artefacts.root(point.version)).collect();
    roots.sort_unstable();
    roots.dedup();
    for root in roots {
        let own = points.iter().filter(|point| !point.copied && artefacts.root(point.version) == root);
        let values: Vec<f64> = own.map(|point| point.value).collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        if values.len() > 1 {
            let relative = |value: &f64| if mean > 0.0 { ((value - mean) / mean).powi(2) } else { 0.0 };
            squares += values.iter().map(relative).sum::<f64>();
            free += values.len() as f64 - 1.0;
        }
    }
    (free > 0.0).then(|| (squares / free).sqrt())
}
