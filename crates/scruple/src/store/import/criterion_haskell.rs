//! Reads results of criterion (Haskell): the report of `--json` with every batch, or the summary of `--csv`.

use super::figures::{add, add_iterations, add_summary, check_iterations};
use super::{ImportError, Imported, case, csv_records};
use scruple_core::metric::Quality;
use scruple_core::subject::Arm;
use scruple_stats::sorting::SortedMap;
use serde::Deserialize;

#[derive(Deserialize)]
struct CriterionFile(String, String, Vec<CriterionReport>);

#[derive(Deserialize)]
struct CriterionReport {
    #[serde(rename = "reportName")]
    name: String,
    #[serde(rename = "reportKeys")]
    keys: Vec<String>,
    #[serde(rename = "reportMeasured")]
    batches: Vec<Vec<Option<f64>>>,
}

/// Reads a report or a summary.
pub(super) fn read(text: &str) -> Result<Imported, ImportError> {
    if text.trim_start().starts_with('[') { report(text) } else { summary(text) }
}

fn report(text: &str) -> Result<Imported, ImportError> {
    let CriterionFile(tool, version, reports) = serde_json::from_str(text)?;
    if !tool.starts_with("criteri") {
        return Err(ImportError::at("line 1", "it is not a report of criterion"));
    }
    let mut imported = Imported::of(&format!("criterion {}", super::clean(&version)));
    for report in &reports {
        imported.arms.push(arm(report)?);
    }
    imported.finished()
}

fn arm(report: &CriterionReport) -> Result<Arm, ImportError> {
    let mut arm = case(&report.name, &["criterion"], SortedMap::new());
    let column = |key: &str| -> Result<Vec<Option<f64>>, ImportError> {
        let Some(position) = report.keys.iter().position(|known| known == key) else {
            return Ok(Vec::new());
        };
        let cell = |batch: &Vec<Option<f64>>| match batch.len() == report.keys.len() {
            true => Ok(batch[position]),
            false => Err(ImportError::of(
                &report.name,
                format!("a batch has {} figures, and there are {} keys", batch.len(), report.keys.len()),
            )),
        };
        report.batches.iter().map(cell).collect()
    };
    let iterations: Vec<f64> = column("iters")?.into_iter().flatten().collect();
    if iterations.len() != report.batches.len() {
        return Err(ImportError::of(&report.name, "a batch does not say how many iterations it had"));
    }
    check_iterations(&report.name, &iterations)?;
    for (key, name) in [("time.wall", "time"), ("time.cpu", "cpuTime")] {
        let column: Vec<f64> = column(name)?.into_iter().flatten().collect();
        if column.len() == iterations.len() {
            let readings = column.iter().zip(&iterations).map(|(time, n)| time * 1e9 / n).collect();
            add(&mut arm, key, Quality::Noisy, "criterion, each batch", readings)?;
        }
    }
    counters(&mut arm, &iterations, column)?;
    add_iterations(&mut arm, "criterion", iterations)?;
    Ok(arm)
}

/// Adds the counters of the runtime, from the batch with most iterations, since the cost of the batch itself is
/// smallest relative to it.
fn counters(
    arm: &mut Arm,
    iterations: &[f64],
    column: impl Fn(&str) -> Result<Vec<Option<f64>>, ImportError>,
) -> Result<(), ImportError> {
    let largest = (0..iterations.len()).max_by(|a, b| iterations[*a].total_cmp(&iterations[*b]));
    let Some(largest) = largest else { return Ok(()) };
    let source = "criterion, the batch of most iterations";
    for (key, name, factor, quality) in [
        ("alloc.bytes", "allocated", 1.0, Quality::Near),
        ("gc.count", "numGcs", 1.0, Quality::Near),
        ("gc.time", "gcWallSeconds", 1e9, Quality::Noisy),
    ] {
        // A runtime without statistics leaves these fields empty; some versions write a negative number instead.
        if let Some(total) = column(name)?.get(largest).copied().flatten().filter(|total| *total >= 0.0) {
            add(arm, key, quality, source, vec![total * factor / iterations[largest]])?;
        }
    }
    Ok(())
}

fn summary(text: &str) -> Result<Imported, ImportError> {
    let mut imported = Imported::of("criterion");
    for (line, record) in csv_records::records(text, ',')? {
        let cell = |index: usize| record.get(index).map(String::as_str).unwrap_or_default();
        // criterion appends to an existing file, and writes the head again.
        if cell(0) == "Name" && cell(1) == "Mean" {
            continue;
        }
        let place = || format!("line {line}");
        if record.len() != 7 {
            return Err(ImportError::at(place(), format!("there are {} columns, not 7", record.len())));
        }
        let mean: f64 = cell(1).parse().map_err(|_| {
            ImportError::at(place(), format!("‘{}’ is not a time in seconds", super::clean(cell(1))))
        })?;
        let mut arm = case(cell(0), &["criterion"], SortedMap::new());
        add_summary(&mut arm, "time.wall", "criterion, mean", mean * 1e9)?;
        imported.arms.push(arm);
    }
    imported.finished()
}
