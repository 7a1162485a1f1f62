//! Reads results of criterion.rs: a folder for each benchmark, with `benchmark.json`, `sample.json` and
//! `estimates.json`.

use super::figures::{add, add_iterations, add_summary, check_iterations};
use super::{ImportError, Imported, case};
use scruple_core::metric::Quality;
use scruple_core::sorting::SortedMap;
use scruple_core::subject::{Arm, Parameter};
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

/// What `critcmp --export` writes: the folders of a baseline as one text, without the batches.
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
        imported.arms.push(arm(folder)?);
    }
    imported.finished()
}

/// Reads a baseline of critcmp, or a `sample.json` or `estimates.json` without its folder, for example from a pipe.
pub(super) fn read_one(text: &str) -> Result<Imported, ImportError> {
    if is_of_critcmp(text) {
        let baseline: CritcmpBaseline = serde_json::from_str(text)?;
        let mut imported = Imported::of("criterion.rs");
        for benchmark in baseline.benchmarks.into_values() {
            let mut arm = named(&benchmark.criterion_benchmark_v1)?;
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

fn arm(folder: &CriterionFolder) -> Result<Arm, ImportError> {
    let within = |name: &'static str| {
        move |error: serde_json::Error| {
            let error = ImportError::from(error);
            let slash = if folder.place.is_empty() { "" } else { "/" };
            ImportError::at(format!("{}{slash}{name}, {}", folder.place, error.place), error.what)
        }
    };
    let mut arm = match &folder.benchmark {
        Some(text) => named(&serde_json::from_str(text).map_err(within("benchmark.json"))?)?,
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

fn named(benchmark: &CriterionBenchmark) -> Result<Arm, ImportError> {
    let mut path = benchmark.group_id.clone();
    if let Some(function) = &benchmark.function_id {
        path = format!("{path}/{function}");
    }
    let params =
        benchmark.value_str.iter().map(|value| ("value".to_owned(), Parameter::parse(&super::clean(value))));
    let mut arm = case(&path, &["criterion.rs"], params.collect());
    let units = [("Bytes", "work.bytes"), ("BytesDecimal", "work.bytes"), ("Elements", "work.items")];
    for (unit, key) in units {
        let amount = benchmark.throughput.as_ref().and_then(|throughput| throughput.get(unit)?.as_f64());
        if let Some(amount) = amount {
            add(&mut arm, key, Quality::Exact, "declared", vec![amount])?;
        }
    }
    Ok(arm)
}
