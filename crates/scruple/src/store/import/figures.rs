//! Converts the numbers of imported files into the figures of an arm.

use super::ImportError;
use scruple_core::metric::{Metric, Pass, Quality, metric};
use scruple_core::sample::{Figure, Sample};
use scruple_core::subject::Arm;
use scruple_core::unit::Unit;

/// Adds readings of a declared metric in their order, each in a block of its own.
///
/// Returns an error if a time, a size or a count is negative or not a number, since no tool writes that on purpose.
pub(super) fn add(
    arm: &mut Arm,
    key: &str,
    quality: Quality,
    source: &str,
    readings: Vec<f64>,
) -> Result<(), ImportError> {
    let declared = match metric(key) {
        Some(metric) => metric.clone(),
        None => Metric::custom(key, work_unit(key), quality, Pass::Counting),
    };
    if let Some(wrong) = readings.iter().find(|reading| !(reading.is_finite() && **reading >= 0.0)) {
        return Err(ImportError::of(&arm.name, format!("{wrong} is not a possible reading of {key}")));
    }
    insert(arm, &declared, quality, source, readings)
}

fn work_unit(key: &str) -> Unit {
    if key == "work.bytes" { Unit::Bytes } else { Unit::Count }
}

/// Adds the single figure of a tool that writes no readings.
pub(super) fn add_summary(arm: &mut Arm, key: &str, source: &str, value: f64) -> Result<(), ImportError> {
    add(arm, key, Quality::Estimated, source, vec![value])
}

/// Adds readings of a metric that the benchmark declares.
pub(super) fn add_own(
    arm: &mut Arm,
    key: &str,
    unit: Unit,
    source: &str,
    readings: Vec<f64>,
) -> Result<(), ImportError> {
    if readings.iter().any(|reading| !reading.is_finite()) {
        return Err(ImportError::of(&arm.name, format!("a reading of {key} is not a finite number")));
    }
    let own = Metric::custom(key, unit, Quality::Noisy, Pass::Timing);
    insert(arm, &own, Quality::Noisy, source, readings)
}

/// Checks that every batch has iterations, by which its figures are divided; else the error names the first without.
pub(super) fn check_iterations(name: &str, iterations: &[f64]) -> Result<(), ImportError> {
    match iterations.iter().position(|count| *count < 1.0) {
        None => Ok(()),
        Some(batch) => {
            let what = format!("batch {} of {} has no iterations", batch + 1, iterations.len());
            Err(ImportError::of(name, what))
        }
    }
}

/// Adds the iterations of each batch, from which a fit can estimate the time of an iteration.
pub(super) fn add_iterations(arm: &mut Arm, source: &str, readings: Vec<f64>) -> Result<(), ImportError> {
    add_own(arm, "batch.iterations", Unit::Count, source, readings)
}

/// Records why a metric is absent.
pub(super) fn add_absence(arm: &mut Arm, key: &str, why: &str) {
    arm.figures.insert(key.to_owned(), Figure::Absent { absent: super::clean(why) });
}

fn insert(
    arm: &mut Arm,
    metric: &Metric,
    quality: Quality,
    source: &str,
    readings: Vec<f64>,
) -> Result<(), ImportError> {
    if readings.is_empty() {
        return Ok(());
    }
    let count = u32::try_from(readings.len())
        .map_err(|_| ImportError::of(&arm.name, "there are more readings than can be numbered"))?;
    let sample = Sample {
        unit: metric.unit.clone(),
        pass: metric.pass,
        quality,
        source: source.to_owned(),
        readings,
        blocks: (0..count).collect(),
    };
    arm.figures.insert(metric.key.clone().into_owned(), Figure::Sample(sample));
    Ok(())
}

/// Shifts the block numbers of an arm, so that its blocks differ from those of other arms.
pub(super) fn shift_blocks(arm: &mut Arm, by: u32) {
    for figure in arm.figures.values_mut() {
        if let Figure::Sample(sample) = figure {
            sample.blocks.iter_mut().for_each(|block| *block = block.saturating_add(by));
        }
    }
}

/// Returns the length of a unit of time in nanoseconds. The units have the names that tools use.
pub(super) fn nanoseconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" | "sec" => 1e9,
        "min" | "m" => 60e9,
        "h" | "hr" => 3600e9,
        "day" => 86400e9,
        _ => return None,
    })
}

/// Rounds a product to a whole number if it differs from one only by rounding errors.
pub(super) fn round_if_nearly_whole(value: f64) -> f64 {
    let rounded = value.round();
    if (value - rounded).abs() <= 1e-6 * rounded.abs() { rounded } else { value }
}

/// Returns the key of a metric that a benchmark declares: the name of the tool, a dot, and the metric's name in lower
/// case.
pub(super) fn own_key(tool: &str, name: &str) -> String {
    let mut key = format!("{tool}.");
    for c in name.trim_start_matches('·').chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '.' => key.push(c.to_ascii_lowercase()),
            _ if key.ends_with(['_', '.']) => {}
            _ => key.push('_'),
        }
    }
    key.trim_end_matches(['_', '.']).to_owned()
}
