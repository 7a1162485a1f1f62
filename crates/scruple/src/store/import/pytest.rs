//! Reads the JSON of pytest-benchmark: every round if the data were saved, and otherwise the median of the rounds.

use super::figures::{add, add_summary};
use super::{ImportError, Imported, case, clean, moment, parameter};
use scruple_core::metric::Quality;
use scruple_core::subject::Arm;
use scruple_stats::sorting::SortedMap;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct PytestBenchmarkFile {
    #[serde(default)]
    machine_info: Value,
    #[serde(default)]
    commit_info: Value,
    benchmarks: Vec<PytestBenchmark>,
    datetime: Option<String>,
    version: Option<String>,
}

#[derive(Deserialize)]
struct PytestBenchmark {
    name: String,
    fullname: Option<String>,
    params: Option<SortedMap<String, Value>>,
    #[serde(default)]
    options: Value,
    stats: Stats,
}

#[derive(Deserialize)]
struct Stats {
    median: Option<f64>,
    data: Option<Vec<f64>>,
}

/// Reads a document.
pub(super) fn read(text: &str) -> Result<Imported, ImportError> {
    let document: PytestBenchmarkFile = serde_json::from_str(text)?;
    let version = clean(document.version.as_deref().unwrap_or_default());
    let mut imported = Imported::of(format!("pytest-benchmark {version}").trim_end());
    // Some versions write the time without a zone; it is then universal time.
    let datetime = document.datetime.as_deref().unwrap_or_default();
    imported.started = moment(datetime).or_else(|| moment(&format!("{datetime}Z")));
    read_environment(&mut imported, &document.machine_info, &document.commit_info);
    for benchmark in &document.benchmarks {
        imported.arms.push(arm(benchmark)?);
    }
    imported.finished()
}

fn read_environment(imported: &mut Imported, machine: &Value, commit: &Value) {
    let text = |value: &Value, key: &str| clean(value.get(key).and_then(Value::as_str).unwrap_or_default());
    // Before version 3.1 the processor was a plain text.
    let cpu = &machine["cpu"];
    imported.provenance.cpu = text(cpu, "brand_raw");
    if imported.provenance.cpu.is_empty() {
        imported.provenance.cpu = text(cpu, "brand");
    }
    imported.provenance.cores = cpu["count"].as_u64().unwrap_or(0) as u32;
    imported.provenance.kernel = text(machine, "release");
    imported.provenance.os = text(machine, "system");
    for (key, name) in
        [("host", "node"), ("python", "python_version"), ("implementation", "python_implementation")]
    {
        imported.note(key, &text(machine, name));
    }
    let id = text(commit, "id");
    if !id.is_empty() && id != "unknown" {
        imported.provenance.commit = Some(id);
        imported.provenance.dirty = commit["dirty"].as_bool();
    }
}

fn arm(benchmark: &PytestBenchmark) -> Result<Arm, ImportError> {
    let params: SortedMap<_, _> = SortedMap::from_iter(
        benchmark.params.iter().flatten().map(|(name, value)| (clean(name), parameter(value))),
    );
    let full = benchmark.fullname.as_ref().unwrap_or(&benchmark.name);
    // The brackets repeat the parameters, which are stored separately.
    let path = match full.split_once('[') {
        Some((path, _)) if !params.is_empty() => path,
        _ => full.as_str(),
    };
    let mut arm = case(&path.replace("::", "/"), &["pytest"], params);
    let timer = benchmark.options.get("timer").and_then(Value::as_str).unwrap_or_default();
    let key = if ["process_time", "thread_time"].contains(&timer) { "time.cpu" } else { "time.wall" };
    match (&benchmark.stats.data, benchmark.stats.median) {
        (Some(data), _) if !data.is_empty() => {
            let readings = data.iter().map(|seconds| seconds * 1e9).collect();
            add(&mut arm, key, Quality::Noisy, "pytest-benchmark, each round", readings)?;
        }
        (_, Some(median)) => add_summary(&mut arm, key, "pytest-benchmark, median of rounds", median * 1e9)?,
        _ => return Err(ImportError::of(&benchmark.name, "it has neither data nor a median")),
    }
    Ok(arm)
}
