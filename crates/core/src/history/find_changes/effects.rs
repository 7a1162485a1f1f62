//! The effect between the first and the last weighed version, and whether a costlier build pays off.

use super::gather::GatheredSeries;
use super::noisy::JudgedSeries;
use super::steps::LEVEL;
use crate::history::{BreakEven, Graph, History, Series, VersionCosts, VersionEffect};
use crate::metric::Pass;
use crate::sample::Sample;
use crate::subject::{Arm, Role, Subject};
use scruple_stats::Interval;
use scruple_stats::sorting;
use scruple_stats::{normal, paired};

/// Shifting counts of two versions certainly differ where their difference exceeds this times the largest shift within
/// a version.
const MUCH: f64 = 2.0;

/// With a load per core above this, wall time depends more on other programs than on the subject.
const BUSY: f64 = 0.5;

/// The degrees of freedom that are assumed for the error of a level.
const FEW: f64 = 5.0;

/// The effect between the first and the last weighed version along the line of first parents: from readings taken side
/// by side or, where there are too few, from the levels of both.
///
/// Versions with the same artefacts do not differ, whatever their readings say. Only the cost of building them can.
pub(super) fn overall_effect(
    graph: &Graph,
    gathered: &GatheredSeries,
    judged: &JudgedSeries,
) -> Option<VersionEffect> {
    let effect = effect_of_ends(graph, gathered, judged)?;
    let root =
        |version: usize| gathered.reads.iter().find(|read| read.version == version).map(|read| read.root);
    let measured = !gathered.exact && gathered.metric.pass != Pass::Build && !gathered.own_series;
    match measured && root(effect.from) == root(effect.to) {
        true => Some(VersionEffect { interval: None, surely: false, same_artefacts: true, ..effect }),
        false => Some(effect),
    }
}

fn effect_of_ends(graph: &Graph, gathered: &GatheredSeries, judged: &JudgedSeries) -> Option<VersionEffect> {
    let last = gathered.points.last()?;
    let line = graph.line_to(last.version);
    let place = gathered.points.iter().position(|point| line.contains(&point.version))?;
    let first = &gathered.points[place];
    if first.version == last.version {
        return None;
    }
    let (from, to) = (first.version, last.version);
    let ratio = if first.value == last.value { 1.0 } else { last.value / first.value };
    let without_interval = |surely: bool| VersionEffect {
        from,
        to,
        ratio,
        interval: None,
        surely,
        levels: None,
        same_artefacts: false,
    };
    if gathered.exact {
        return Some(without_interval(first.value != last.value));
    }
    let (early, late) = (&gathered.reads[place].seen, &gathered.reads.last()?.seen);
    if gathered.shifting {
        // A drift may explain the difference of the ends, unless it is much larger than any shift within a version.
        let spread = |visits: &[f64]| {
            let (least, most) =
                visits.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), count| {
                    (least.min(*count), most.max(*count))
                });
            most - least
        };
        let shift = gathered.reads.iter().map(|read| spread(&read.seen.visits)).fold(0.0, f64::max);
        return Some(without_interval((last.value - first.value).abs() > MUCH * shift));
    }
    if judged.cannot.is_some() {
        return Some(without_interval(false));
    }
    if gathered.differences {
        return Some(of_differences(judged, from, to).unwrap_or(without_interval(false)));
    }
    let ratios: Vec<f64> = early
        .cells
        .iter()
        .filter_map(|(block, value)| late.cells.get(block).map(|there| there - value))
        .collect();
    if let Ok(effect) = paired::effect_of_log_ratios(&ratios, LEVEL) {
        let surely = beyond(effect.interval, gathered, first.value);
        return Some(VersionEffect {
            from,
            to,
            ratio: effect.ratio,
            interval: Some(effect.interval),
            surely,
            levels: None,
            same_artefacts: false,
        });
    }
    let of_levels = of_levels(judged, from, to, |interval| beyond(interval, gathered, first.value));
    Some(of_levels.unwrap_or(without_interval(false)))
}

/// Whether an interval of a ratio excludes every difference that identical programs may have.
fn beyond(interval: Interval, gathered: &GatheredSeries, from: f64) -> bool {
    let least = 1.0 + gathered.floor / from;
    interval.low > least || interval.high < 1.0 / least
}

/// The effect between the levels of two versions; `None` where they have the same level. `beyond` says whether an
/// interval of the ratio shows a difference.
fn of_levels(
    judged: &JudgedSeries,
    from: usize,
    to: usize,
    beyond: impl Fn(Interval) -> bool,
) -> Option<VersionEffect> {
    let found = LevelDifference::between(judged, from, to)?;
    let interval = found.interval().map(f64::exp);
    found.effect(found.whole().exp(), interval, beyond(interval))
}

/// The effect between the levels of two versions whose levels are not logarithms; `None` where they have the same
/// level. The ratio is infinite and gives only the direction; the interval is that of the difference.
fn of_differences(judged: &JudgedSeries, from: usize, to: usize) -> Option<VersionEffect> {
    let found = LevelDifference::between(judged, from, to)?;
    let interval = found.interval();
    let ratio = if found.whole() > 0.0 { f64::INFINITY } else { f64::NEG_INFINITY };
    found.effect(ratio, interval, !interval.contains(0.0))
}

/// The difference between the levels of two versions, on the scale of the levels.
struct LevelDifference {
    /// The versions.
    versions: [usize; 2],
    /// The levels, with the drift, in the unit of the metric.
    levels: [f64; 2],
    /// What the steps between the versions add.
    steps: f64,
    /// What the slow drift adds.
    drift: f64,
    /// Whether the series drifts at all.
    drifts: bool,
    /// Half the width of the interval of `steps`.
    error: f64,
}

impl LevelDifference {
    fn between(judged: &JudgedSeries, from: usize, to: usize) -> Option<LevelDifference> {
        let known = |version: usize| {
            let place = *judged.places.of.get(&version)?;
            Some((place, *judged.steps.parts.get(place)?))
        };
        let ((early, old), (late, new)) = (known(from)?, known(to)?);
        let levels = [judged.level(old, early), judged.level(new, late)];
        let drift = judged.steps.drift_at(late) - judged.steps.drift_at(early);
        // The whole is not known more exactly than the steps beside its two levels, for the errors of their levels: that
        // of a step to a level of few values in between is larger.
        let beside = judged.steps.cuts.iter().filter(|cut| cut.from == old || cut.to == new);
        let unit = |bound: f64| if judged.logarithmic { bound.ln() } else { bound };
        let error_of = |from: usize, to: usize| judged.steps.levels[from].1.hypot(judged.steps.levels[to].1);
        let widths = beside.filter_map(|cut| {
            let half = (unit(cut.interval?.high) - unit(cut.interval?.low)) / 2.0;
            Some(half * error_of(old, new) / error_of(cut.from, cut.to)).filter(|width| width.is_finite())
        });
        let widest = widths.fold(0.0, f64::max);
        let error = (normal::student(LEVEL, FEW) * error_of(old, new)).max(widest);
        let (old, new) = (judged.steps.levels[old], judged.steps.levels[new]);
        let drifts = judged.steps.drift.is_some();
        Some(LevelDifference { versions: [from, to], levels, steps: new.0 - old.0, drift, drifts, error })
    }

    fn whole(&self) -> f64 {
        self.steps + self.drift
    }

    fn interval(&self) -> Interval {
        Interval { low: self.steps - self.error, high: self.steps + self.error, level: LEVEL }
    }

    /// The effect with this ratio and interval; `None` where the levels are the same. `beyond` says whether the interval
    /// shows a difference.
    ///
    /// A slow drift belongs to the effect. There is no interval then, because how exactly the drift is known is not
    /// estimated, and the versions surely differ only if the steps between them lead in the same direction.
    fn effect(&self, ratio: f64, interval: Interval, beyond: bool) -> Option<VersionEffect> {
        let [from, to] = self.versions;
        (self.whole() != 0.0).then(|| VersionEffect {
            from,
            to,
            ratio,
            interval: (!self.drifts).then_some(interval),
            surely: beyond && self.agrees(),
            levels: Some(self.levels),
            same_artefacts: false,
        })
    }

    /// Whether the steps lead in the direction of the whole difference.
    fn agrees(&self) -> bool {
        self.steps * self.whole() > 0.0
    }
}

/// For each subject, how much more its last version costs to build and to run than its first.
pub(super) fn break_even(
    history: &History,
    series: &[Series],
    root: impl Fn(usize) -> usize,
) -> Vec<BreakEven> {
    let subjects = sorting::each_once(series.iter().map(|one| one.subject.as_str()));
    // The cost of an iteration, or of a unit of work, cannot be compared with the cost of a build.
    let launched = |subject: &&&str| {
        let whole = |arm: &Arm| matches!(arm.subject, Subject::Command { .. }) && arm.name == **subject;
        history.run.arms_of(Role::Subject).any(whole)
    };
    let of = |subject: &&str| {
        let timed = |key: &str| series.iter().find(|one| one.subject == *subject && one.metric == key);
        let (wall, cpu) = (timed("time.wall"), timed("time.cpu"));
        let sure = |time: &&Series| time.whole.as_ref().is_some_and(|whole| whole.surely);
        // On a busy machine wall time depends mostly on other programs.
        let busy = history.run.provenance.load > BUSY * f64::from(history.run.provenance.cores.max(1));
        let wall = wall.filter(|_| !busy || cpu.is_none());
        let time = wall.filter(sure).or(cpu.filter(sure)).or(wall).or(cpu)?;
        let whole = time.whole.as_ref()?;
        let builds = series.iter().find(|one| one.metric == "build.time");
        let built = |version: usize| {
            let level = |one: &Series| {
                let here = |level: &&(usize, usize, f64)| (level.0..=level.1).contains(&version);
                one.levels.iter().find(here).map(|level| level.2)
            };
            let own = |one: &Series| {
                one.points.iter().find(|point| point.version == version).map(|point| point.value)
            };
            builds.and_then(level).or(builds.and_then(own)).or_else(|| build(history, root(version)))
        };
        let costs = |version: usize| {
            let point = time.points.iter().find(|point| point.version == version)?;
            Some(VersionCosts { build: built(version)?, run: point.value })
        };
        let build_surely = builds.and_then(|one| one.whole.as_ref()).is_some_and(|whole| whole.surely);
        let surely = [build_surely, whole.surely];
        let ends = (costs(whole.from)?, costs(whole.to)?);
        Some(BreakEven::of(subject, (whole.from, whole.to), ends, surely))
    };
    subjects.iter().filter(launched).filter_map(of).filter(BreakEven::is_certain).collect()
}

/// The median time that building a version took, in nanoseconds.
fn build(history: &History, version: usize) -> Option<f64> {
    let commit = &history.versions[version].commit;
    let arms = history.run.arms_of(Role::Subject).filter(|arm| arm.version.as_ref() == Some(commit));
    let samples: Vec<&Sample> = arms.filter_map(|arm| arm.sample("build.time")).collect();
    let readings = &samples.iter().find(|sample| !sample.readings.is_empty())?.readings;
    Some(scruple_stats::quantile::median(readings))
}
