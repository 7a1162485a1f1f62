//! Generated histories with planted changes.

use scruple_core::history::{History, Version, VersionState};
use scruple_core::metric::{Metric, Pass, Quality, metric};
use scruple_core::run::Run;
use scruple_core::sample::{Figure, Sample};
use scruple_core::subject::{Arm, Role, Subject};
use scruple_core::unit::Unit;
use scruple_stats::rng::Pcg;

use crate::noise::normal;

/// A range of `n` built versions without readings.
pub fn range(n: usize) -> History {
    let commit = |i: usize| format!("{i:040x}");
    let version = |i: usize| Version::built(commit(i), i.checked_sub(1).map(commit).into_iter().collect());
    let run = Run { id: "run".to_owned(), ..Run::of(Vec::new()) };
    History {
        repository: "planted".to_owned(),
        remote: None,
        range: "first..last".to_owned(),
        versions: (0..n).map(version).collect(),
        run,
    }
}

/// The arm of a subject at a version. Adds the arm if it does not exist.
fn arm<'a>(history: &'a mut History, subject: &str, version: usize) -> &'a mut Arm {
    let commit = history.versions[version].commit.clone();
    let arms = &mut history.run.arms;
    let there = arms.iter().position(|arm| arm.name == subject && arm.version.as_ref() == Some(&commit));
    let place = there.unwrap_or_else(|| {
        let command = Subject::Command { argv: vec![subject.to_owned()] };
        arms.push(Arm { version: Some(commit), ..Arm::new(subject, command, Role::Subject) });
        arms.len() - 1
    });
    &mut arms[place]
}

/// Sets the readings of a metric at a version, one for each of `blocks`.
pub fn read(
    history: &mut History,
    subject: &str,
    key: &str,
    version: usize,
    readings: &[f64],
    blocks: &[u32],
) {
    let metric = metric(key)
        .cloned()
        .unwrap_or_else(|| Metric::custom(key, Unit::Nanoseconds, Quality::Noisy, Pass::Timing));
    let sample = Sample {
        unit: metric.unit,
        pass: metric.pass,
        quality: metric.quality,
        source: "planted".to_owned(),
        readings: readings.to_vec(),
        blocks: blocks.to_vec(),
    };
    arm(history, subject, version).figures.insert(key.to_owned(), Figure::Sample(sample));
}

/// Weighs versions in turns: each block has its own machine speed, and each reading its own noise. Versions whose level
/// is not positive are not weighed.
pub fn weigh(
    history: &mut History,
    subject: &str,
    key: &str,
    levels: &[f64],
    blocks: u32,
    noise: f64,
    pcg: &mut Pcg,
) {
    let speeds: Vec<f64> = (0..blocks).map(|_| (0.1 * normal(pcg)).exp()).collect();
    let numbers: Vec<u32> = (0..blocks).collect();
    for (version, &level) in levels.iter().enumerate().filter(|(_, level)| **level > 0.0) {
        let mut one = |speed: &f64| {
            let disturbed = if pcg.unit() < 0.05 { 1.0 + pcg.unit() } else { 1.0 };
            level * speed * disturbed * (noise * normal(pcg)).exp()
        };
        let readings: Vec<f64> = speeds.iter().map(&mut one).collect();
        read(history, subject, key, version, &readings, &numbers);
    }
}

/// Sets an exact count of each version, with two readings.
pub fn count(history: &mut History, subject: &str, key: &str, values: &[f64]) {
    for (version, &value) in values.iter().enumerate() {
        read(history, subject, key, version, &[value, value], &[0, 1]);
    }
}

/// Marks a version as having the same binary as an earlier one.
pub fn same(history: &mut History, version: usize, as_version: usize) {
    history.versions[version].state = VersionState::SameBinary;
    history.versions[version].same_as = Some(history.versions[as_version].commit.clone());
}
