//! What holds between the first weighed version and the last: the effect, and whether a dearer build pays.

use super::gather::Gathered;
use crate::history::{BreakEven, Effect, History, Series};
use crate::sample::Sample;
use crate::stats::paired;
use crate::subject::Role;

use super::steps::LEVEL;

/// The effect from the first weighed version to the last, from readings taken side by side.
pub(super) fn whole(gathered: &Gathered<'_>) -> Option<Effect> {
    let (first, last) = (gathered.points.first()?, gathered.points.last()?);
    if first.version == last.version {
        return None;
    }
    let (from, to) = (first.version, last.version);
    if gathered.exact {
        let ratio = if first.value == last.value { 1.0 } else { last.value / first.value };
        return Some(Effect { from, to, ratio, interval: None, surely: first.value != last.value });
    }
    let (early, late) = (gathered.cells.first()?, gathered.cells.last()?);
    let ratios: Vec<f64> =
        early.iter().filter_map(|(block, value)| late.get(block).map(|there| there - value)).collect();
    match paired::effect_of_log_ratios(&ratios, LEVEL) {
        Ok(effect) if gathered.cannot.is_none() => {
            let surely = !effect.interval.contains(1.0);
            Some(Effect { from, to, ratio: effect.ratio, interval: Some(effect.interval), surely })
        }
        _ => {
            let ratio = if first.value == last.value { 1.0 } else { last.value / first.value };
            Some(Effect { from, to, ratio, interval: None, surely: false })
        }
    }
}

/// For each subject, what its last version costs more to build and to run than its first.
pub(super) fn break_even(
    history: &History,
    series: &[Series],
    root: impl Fn(usize) -> usize,
) -> Vec<BreakEven> {
    let mut subjects: Vec<&str> = Vec::new();
    for one in series {
        if !subjects.contains(&one.subject.as_str()) {
            subjects.push(&one.subject);
        }
    }
    let of = |subject: &&str| {
        let timed = |key: &str| series.iter().find(|one| one.subject == *subject && one.metric == key);
        let (wall, cpu) = (timed("time.wall"), timed("time.cpu"));
        let sure = |time: &&Series| time.whole.as_ref().is_some_and(|whole| whole.surely);
        // On a busy machine processor time is often all that is known of time.
        let time = wall.filter(sure).or(cpu.filter(sure)).or(wall).or(cpu)?;
        let whole = time.whole.as_ref()?;
        let builds = [whole.from, whole.to].map(|version| build(history, root(version)));
        let [Some(before), Some(after)] = builds else { return None };
        let build = after - before;
        let run = time.points.last()?.value - time.points.first()?.value;
        let (build_surely, run_surely) = (builds_differ(series, before, after), whole.surely);
        let opposed = build * run < 0.0 && build_surely && run_surely;
        let runs = opposed.then(|| (build / run).abs());
        let (subject, from, to) = ((*subject).to_owned(), whole.from, whole.to);
        Some(BreakEven { subject, from, to, build, run, build_surely, run_surely, runs })
    };
    let told = |one: &BreakEven| one.build_surely || one.run_surely;
    subjects.iter().filter_map(of).filter(told).collect()
}

/// Single builds of one version differ by this much, relative, where nothing better is known.
const BUILDS_DIFFER: f64 = 0.1;

/// Whether two build times, each of a single build as a rule, differ by more than builds differ anyway.
fn builds_differ(series: &[Series], before: f64, after: f64) -> bool {
    let builds = series.iter().find(|one| one.metric == "build.time");
    let noise = builds.map_or(0.0, |one| one.twins.unwrap_or(0.0).max(one.noise));
    (after / before).ln().abs() > 3.0 * noise.max(BUILDS_DIFFER)
}

/// The median time that building a version took, in nanoseconds.
fn build(history: &History, version: usize) -> Option<f64> {
    let commit = &history.versions[version].commit;
    let arms = history.run.arms_of(Role::Subject).filter(|arm| arm.version.as_ref() == Some(commit));
    let samples: Vec<&Sample> = arms.filter_map(|arm| arm.sample("build.time")).collect();
    let readings = &samples.iter().find(|sample| !sample.readings.is_empty())?.readings;
    Some(crate::stats::quantile::median(readings))
}
