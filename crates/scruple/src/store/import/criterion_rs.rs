//! Reads results of criterion.rs: a folder for each benchmark, with `benchmark.json`, `sample.json` and
//! `estimates.json`.

use super::figures::{add, add_iterations, add_summary, check_iterations};
use super::{ImportError, Imported, case};
use scruple_core::metric::Quality;
use scruple_core::subject::{Arm, Parameter};
use scruple_stats::sorting::SortedMap;
use serde::Deserialize;
use serde_json::Value;

/// The texts of one benchmark.
#[derive(Debug, Default)]
pub struct CriterionFolder {
    /// The path of the folder, for error messages.
    pub place: String,
    /// The content of `benchmark.json`.
    pub benchmark: Option<String>,
    /// The content of `sample.json`.
    pub sample: Option<String>,
    /// The content of `estimates.json`.
    pub estimates: Option<String>,
}

#[derive(Deserialize)]
struct CriterionBenchmark {
    group_id: String,
    function_id: Option<String>,
    value_str: Option<String>,
    throughput: Option<Value>,
}

#[derive(Deserialize)]
struct Batches {
    iters: Vec<f64>,
    times: Vec<f64>,
}

#[derive(Deserialize)]
struct Estimates {
    mean: CriterionEstimate,
    slope: Option<CriterionEstimate>,
}

#[derive(Deserialize)]
struct CriterionEstimate {
    point_estimate: f64,
}

/// The output of `critcmp --export`: the folders of a baseline as one text, without the batches.
#[derive(Deserialize)]
struct CritcmpBaseline {
    benchmarks: SortedMap<String, CritcmpBenchmark>,
}

#[derive(Deserialize)]
struct CritcmpBenchmark {
    criterion_benchmark_v1: CriterionBenchmark,
    criterion_estimates_v1: Estimates,
}

/// Whether a text is a baseline that critcmp wrote. It does not belong to the folder that it is in.
pub(super) fn is_of_critcmp(text: &str) -> bool {
    text.contains("\"criterion_benchmark_v1\"")
}

/// Whether a text is one of the three files, or a baseline that critcmp wrote.
pub(super) fn recognises(text: &str) -> bool {
    let has = |words: [&str; 2]| words.iter().all(|word| text.contains(word));
    has(["\"group_id\"", "\"full_id\""])
        || has(["\"iters\"", "\"times\""])
        || has(["\"confidence_interval\"", "\"point_estimate\""])
}

/// Reads the benchmarks of these folders.
pub fn read(folders: &[CriterionFolder]) -> Result<Imported, ImportError> {
    let mut imported = Imported::of("criterion.rs");
    for folder in folders {
        let arm = arm(folder, &mut imported)?;
        imported.arms.push(arm);
    }
    imported.finished()
}

/// Reads a baseline of critcmp, or a `sample.json` or `estimates.json` without its folder, for example from a pipe.
pub(super) fn read_one(text: &str) -> Result<Imported, ImportError> {
    if is_of_critcmp(text) {
        let baseline: CritcmpBaseline = serde_json::from_str(text)?;
        let mut imported = Imported::of("criterion.rs");
        for benchmark in baseline.benchmarks.into_values() {
            let mut arm = named(&benchmark.criterion_benchmark_v1, &mut imported)?;
            add_estimate(&mut arm, benchmark.criterion_estimates_v1)?;
            imported.arms.push(arm);
        }
        return imported.finished();
    }
    let text = Some(text.to_owned());
    let folder = match text.as_ref().is_some_and(|text| text.contains("\"iters\"")) {
        true => CriterionFolder { sample: text, ..CriterionFolder::default() },
        false => CriterionFolder { estimates: text, ..CriterionFolder::default() },
    };
    read(&[folder])
}

fn arm(folder: &CriterionFolder, imported: &mut Imported) -> Result<Arm, ImportError> {
    let within = |name: &'static str| {
        move |error: serde_json::Error| {
            let error = ImportError::from(error);
            let slash = if folder.place.is_empty() { "" } else { "/" };
            ImportError::at(format!("{}{slash}{name}, {}", folder.place, error.place), error.what)
        }
    };
    let mut arm = match &folder.benchmark {
        Some(text) => named(&serde_json::from_str(text).map_err(within("benchmark.json"))?, imported)?,
        None => case("benchmark", &["criterion.rs"], SortedMap::new()),
    };
    if let Some(text) = &folder.sample {
        let batches: Batches = serde_json::from_str(text).map_err(within("sample.json"))?;
        if batches.iters.len() != batches.times.len() {
            let (iterations, times) = (batches.iters.len(), batches.times.len());
            let what = format!("it has iterations of {iterations} batches and times of {times}");
            return Err(ImportError::of(&arm.name, what));
        }
        if batches.iters.is_empty() {
            return Err(ImportError::of(&arm.name, "it has no batches"));
        }
        check_iterations(&arm.name, &batches.iters)?;
        let readings = batches.times.iter().zip(&batches.iters).map(|(time, n)| time / n).collect();
        add(&mut arm, "time.wall", Quality::Noisy, "criterion.rs, each batch", readings)?;
        add_iterations(&mut arm, "criterion.rs", batches.iters)?;
    } else if let Some(text) = &folder.estimates {
        add_estimate(&mut arm, serde_json::from_str(text).map_err(within("estimates.json"))?)?;
    } else {
        return Err(ImportError::at(folder.place.clone(), "there is neither sample.json nor estimates.json"));
    }
    Ok(arm)
}

fn add_estimate(arm: &mut Arm, estimates: Estimates) -> Result<(), ImportError> {
    let (source, estimate) = match estimates.slope {
        Some(slope) => ("criterion.rs, slope", slope),
        None => ("criterion.rs, mean", estimates.mean),
    };
    add_summary(arm, "time.wall", source, estimate.point_estimate)
}

fn named(benchmark: &CriterionBenchmark, imported: &mut Imported) -> Result<Arm, ImportError> {
    let mut path = benchmark.group_id.clone();
    if let Some(function) = &benchmark.function_id {
        path = format!("{path}/{function}");
    }
    let params =
        benchmark.value_str.iter().map(|value| ("value".to_owned(), Parameter::parse(&super::clean(value))));
    let mut arm = case(&path, &["criterion.rs"], params.collect());
    let Some(throughput) = &benchmark.throughput else { return Ok(arm) };
    let amounts = declared_work(throughput).unwrap_or_else(|| {
        let what = super::clean(&throughput.to_string());
        let text = format!("the throughput of ‘{}’ is of an unknown kind and left out: {what}", arm.name);
        imported.remark("throughput-left-out", text);
        Vec::new()
    });
    for (key, amount) in amounts {
        add(&mut arm, key, Quality::Exact, "declared", vec![amount])?;
    }
    Ok(arm)
}

/// The work of an iteration, or nothing if its kind is unknown. criterion.rs writes one kind, and critcmp writes all
/// that it knows, with null for the others.
fn declared_work(throughput: &Value) -> Option<Vec<(&'static str, f64)>> {
    let mut amounts = Vec::new();
    for (kind, amount) in throughput.as_object()?.iter().filter(|(_, amount)| !amount.is_null()) {
        match kind.as_str() {
            "Bits" => amounts.push(("work.bytes", amount.as_f64()? / 8.0)),
            "Bytes" | "BytesDecimal" => amounts.push(("work.bytes", amount.as_f64()?)),
            "Elements" => amounts.push(("work.items", amount.as_f64()?)),
            "ElementsAndBytes" => {
                amounts.push(("work.items", amount.get("elements")?.as_f64()?));
                amounts.push(("work.bytes", amount.get("bytes")?.as_f64()?));
            }
            _ => return None,
        }
    }
    Some(amounts)
}
