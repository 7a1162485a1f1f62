//! JSON in the format of hyperfine's `--export-json`, for programs that read that format.
//!
//! Times are in seconds. Figures that Scruple did not read are omitted or null, and never 0.

use super::Report;
use crate::render::json::written;
use scruple_core::subject::{Arm, Role};
use scruple_stats::quantile::median;
use scruple_stats::sorting::SortedMap;
use serde::Serialize;

#[derive(Serialize)]
struct HyperfineFile<'a> {
    results: Vec<HyperfineResult<'a>>,
}

/// The keys of a result, in the order in which hyperfine writes them.
#[derive(Serialize)]
struct HyperfineResult<'a> {
    command: &'a str,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    user: Option<f64>,
    system: Option<f64>,
    min: f64,
    max: f64,
    times: Vec<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    memory_usage_byte: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exit_codes: Vec<i32>,
    #[serde(skip_serializing_if = "SortedMap::is_empty")]
    parameters: SortedMap<&'a str, String>,
}

/// Writes the arms whose time was read.
pub fn text(report: &Report<'_>) -> String {
    let run = report.run;
    // Any other exit code ends the run or causes a remark.
    let succeeded = !run.warnings.iter().any(|one| matches!(one.code.as_str(), "exit-code" | "signal"));
    let results = run.arms_of(Role::Subject).filter_map(|arm| entry(arm, succeeded)).collect();
    written(&HyperfineFile { results })
}

fn entry(arm: &Arm, succeeded: bool) -> Option<HyperfineResult<'_>> {
    let seconds = |key: &str| -> Option<Vec<f64>> {
        Some(arm.sample(key)?.readings.iter().map(|reading| reading / 1e9).collect())
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let times = seconds("time.wall").filter(|times| !times.is_empty())?;
    let centre = mean(&times);
    let squares: f64 = times.iter().map(|time| (time - centre).powi(2)).sum();
    let memory = arm.sample("memory.peak").map_or(&[][..], |sample| &sample.readings);
    Some(HyperfineResult {
        command: &arm.name,
        mean: centre,
        stddev: (times.len() > 1).then(|| (squares / (times.len() - 1) as f64).sqrt()),
        median: median(&times),
        user: seconds("time.user").map(|values| mean(&values)),
        system: seconds("time.sys").map(|values| mean(&values)),
        min: times.iter().copied().fold(f64::INFINITY, f64::min),
        max: times.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        memory_usage_byte: memory.iter().map(|bytes| *bytes as u64).collect(),
        exit_codes: if succeeded { vec![0; times.len()] } else { Vec::new() },
        parameters: SortedMap::from_iter(
            arm.params.iter().map(|(name, value)| (name.as_str(), value.to_string())),
        ),
        times,
    })
}
