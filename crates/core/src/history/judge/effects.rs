//! What holds between the first weighed version and the last: the effect, and whether a dearer build pays.

use super::gather::Gathered;
use crate::history::{BreakEven, Costs, Effect, History, Point, Series};
use crate::sample::Sample;
use crate::stats::paired;
use crate::subject::{Arm, Role, Subject};

use super::steps::LEVEL;

/// The effect from the first weighed version to the last, from readings taken side by side.
pub(super) fn whole(gathered: &Gathered) -> Option<Effect> {
    let (first, last) = (gathered.points.first()?, gathered.points.last()?);
    if first.version == last.version {
        return None;
    }
    let (from, to) = (first.version, last.version);
    if gathered.exact || gathered.shifting {
        let ratio = if first.value == last.value { 1.0 } else { last.value / first.value };
        let surely = gathered.exact && first.value != last.value;
        return Some(Effect { from, to, ratio, interval: None, surely });
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
    // What one iteration costs, or one unit more of the work, is nothing to set a build against.
    let launched = |subject: &&&str| {
        let whole = |arm: &Arm| matches!(arm.subject, Subject::Command { .. }) && arm.name == **subject;
        history.run.arms_of(Role::Subject).any(whole)
    };
    let of = |subject: &&str| {
        let timed = |key: &str| series.iter().find(|one| one.subject == *subject && one.metric == key);
        let (wall, cpu) = (timed("time.wall"), timed("time.cpu"));
        let sure = |time: &&Series| time.whole.as_ref().is_some_and(|whole| whole.surely);
        // On a busy machine processor time is often all that is known of time.
        let time = wall.filter(sure).or(cpu.filter(sure)).or(wall).or(cpu)?;
        let whole = time.whole.as_ref()?;
        let costs = |version: usize, point: &Point| {
            Some(Costs { build: build(history, root(version))?, run: point.value })
        };
        let before = costs(whole.from, time.points.first()?)?;
        let after = costs(whole.to, time.points.last()?)?;
        let builds = series.iter().find(|one| one.metric == "build.time");
        let noise = builds.map_or(0.0, |one| one.twins.unwrap_or(0.0).max(one.noise));
        Some(BreakEven::of(subject, (whole.from, whole.to), (before, after), noise, whole.surely))
    };
    subjects.iter().filter(launched).filter_map(of).filter(BreakEven::is_told).collect()
}

/// The median time that building a version took, in nanoseconds.
fn build(history: &History, version: usize) -> Option<f64> {
    let commit = &history.versions[version].commit;
    let arms = history.run.arms_of(Role::Subject).filter(|arm| arm.version.as_ref() == Some(commit));
    let samples: Vec<&Sample> = arms.filter_map(|arm| arm.sample("build.time")).collect();
    let readings = &samples.iter().find(|sample| !sample.readings.is_empty())?.readings;
    Some(crate::stats::quantile::median(readings))
}
