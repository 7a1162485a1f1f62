//! Reads the JSON of JMH: a reading for each iteration, with a fresh process for each fork.

use super::figures::{add, add_own, nanoseconds, own_key};
use super::{ImportError, Imported, case, clean, parameter};
use scruple_core::metric::Quality;
use scruple_core::sample::{BLOCKS_OF_A_PROCESS, Figure};
use scruple_core::subject::{Arm, Parameter};
use scruple_core::unit::Unit;
use scruple_stats::sorting::SortedMap;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

#[derive(Deserialize)]
struct JmhBenchmark {
    benchmark: String,
    mode: String,
    #[serde(default)]
    threads: Option<f64>,
    params: Option<SortedMap<String, Value>>,
    #[serde(rename = "primaryMetric")]
    primary: JmhMetric,
    #[serde(rename = "secondaryMetrics", default)]
    secondary: SortedMap<String, JmhMetric>,
    #[serde(rename = "jmhVersion")]
    version: Option<String>,
    #[serde(rename = "jdkVersion")]
    jdk: Option<String>,
    #[serde(rename = "vmName")]
    vm: Option<String>,
    #[serde(rename = "vmVersion")]
    vm_version: Option<String>,
    #[serde(rename = "jvmArgs", default)]
    arguments: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct JmhMetric {
    #[serde(rename = "scoreUnit")]
    unit: String,
    /// The scores of the iterations of each fork. A score that is not a number is written as text.
    #[serde(rename = "rawData")]
    raw: Option<Vec<Vec<Value>>>,
    /// The sampled calls of the iterations of each fork.
    #[serde(rename = "rawDataHistogram")]
    histogram: Option<Vec<Vec<SampledCalls>>>,
}

/// The calls that were sampled in one iteration: pairs of a time and the number of calls that took it.
type SampledCalls = Vec<(f64, f64)>;

/// Reads a document.
pub(super) fn read(text: &str) -> Result<Imported, ImportError> {
    let benchmarks: Vec<JmhBenchmark> = serde_json::from_str(text)?;
    let first = benchmarks.first();
    let version = first.and_then(|first| first.version.as_deref()).unwrap_or_default();
    let mut imported = Imported::of(format!("JMH {}", clean(version)).trim_end());
    if let Some(first) = first {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        imported.note("jdk", &text(&first.jdk));
        imported.note("vm", format!("{} {}", text(&first.vm), text(&first.vm_version)).trim());
        imported.note("jvmArgs", &first.arguments.clone().unwrap_or_default().join(" "));
    }
    let mut modes: SortedMap<&str, BTreeSet<&str>> = SortedMap::new();
    for benchmark in &benchmarks {
        modes.entry(&benchmark.benchmark).or_default().insert(&benchmark.mode);
    }
    for benchmark in &benchmarks {
        // One method may be run in several modes, whose figures differ in meaning.
        let alone = modes.get(benchmark.benchmark.as_str()).is_none_or(|modes| modes.len() == 1);
        imported.arms.push(arm(benchmark, alone)?);
    }
    imported.finished()
}

fn arm(benchmark: &JmhBenchmark, alone: bool) -> Result<Arm, ImportError> {
    let mut params: SortedMap<_, _> = SortedMap::from_iter(
        benchmark.params.iter().flatten().map(|(name, value)| (clean(name), parameter(value))),
    );
    let threads = benchmark.threads.unwrap_or(1.0);
    if threads > 1.0 {
        params.insert("threads".to_owned(), Parameter::Number(threads));
    }
    let path = match benchmark.benchmark.rsplit_once('.') {
        Some((class, method)) => format!("{class}/{method}"),
        None => benchmark.benchmark.clone(),
    };
    let path = if alone { path } else { format!("{path} [{}]", benchmark.mode) };
    let mut arm = case(&path, &["JMH"], params);
    times(&mut arm, benchmark, threads)?;
    // Percentiles of sampled calls summarise the primary metric, and are not metrics of their own.
    let percentile = |name: &str| name.starts_with("p0.") || name == "p1.00";
    for (name, metric) in benchmark.secondary.iter().filter(|(name, _)| !percentile(name)) {
        secondary(&mut arm, name, metric)?;
    }
    Ok(arm)
}

/// Adds the primary metric as the time of one operation.
fn times(arm: &mut Arm, benchmark: &JmhBenchmark, threads: f64) -> Result<(), ImportError> {
    let metric = &benchmark.primary;
    let wrong = |what: &str| ImportError::of(&benchmark.benchmark, what);
    let unit = || wrong(&format!("‘{}’ is not a unit of a score", clean(&metric.unit)));
    let (top, bottom) = metric.unit.split_once('/').ok_or_else(unit)?;
    if let Some(histogram) = &metric.histogram {
        let factor = nanoseconds(top).ok_or_else(unit)?;
        let means = histogram
            .iter()
            .map(|fork| fork.iter().filter_map(|pairs| mean(pairs)).map(|mean| mean * factor).collect())
            .collect();
        let source = "JMH, mean of the sampled calls of each iteration";
        return add_forks(arm, "time.wall", Quality::Sampled, source, means);
    }
    let forks = numbers(metric.raw.as_ref()).ok_or_else(|| wrong("a score is not a number"))?;
    if top == "ops" {
        let factor = nanoseconds(bottom).ok_or_else(unit)?;
        if forks.iter().flatten().any(|score| *score <= 0.0) {
            return Err(wrong("a throughput is not above 0, so an operation has no time"));
        }
        // The threads work at the same time, so the time of one operation is the number of threads divided by the
        // throughput.
        let times = scaled(forks, |score| threads * factor / score);
        let (quality, source) = match threads > 1.0 {
            true => (Quality::Estimated, "JMH, threads / throughput of each iteration"),
            false => (Quality::Noisy, "JMH, 1 / throughput of each iteration"),
        };
        return add_forks(arm, "time.wall", quality, source, times);
    }
    let factor = nanoseconds(top).ok_or_else(unit)?;
    add_forks(arm, "time.wall", Quality::Noisy, "JMH, each iteration", scaled(forks, |score| score * factor))
}

fn mean(pairs: &[(f64, f64)]) -> Option<f64> {
    let calls: f64 = pairs.iter().map(|(_, count)| count).sum();
    (calls > 0.0).then(|| pairs.iter().map(|(time, count)| time * count).sum::<f64>() / calls)
}

/// Adds the metrics of profilers and the counters of the benchmark. Figures that are not numbers are left out.
fn secondary(arm: &mut Arm, name: &str, metric: &JmhMetric) -> Result<(), ImportError> {
    let Some(forks) = numbers(metric.raw.as_ref()).filter(|forks| forks.iter().any(|fork| !fork.is_empty()))
    else {
        return Ok(());
    };
    if name.trim_start_matches('·') == "gc.alloc.rate.norm" {
        return add_forks(arm, "alloc.bytes", Quality::Near, "JMH, profiler gc", forks);
    }
    let (unit, factor) = match metric.unit.as_str() {
        "counts" | "#" => (Unit::Count, 1.0),
        "B" | "B/op" | "bytes" => (Unit::Bytes, 1.0),
        text => match nanoseconds(text.strip_suffix("/op").unwrap_or(text)) {
            Some(factor) => (Unit::Nanoseconds, factor),
            None => (rate(text), 1.0),
        },
    };
    let readings = forks.into_iter().flatten().map(|score| score * factor).collect();
    add_own(arm, &own_key("jmh", name), unit, "JMH, each iteration", readings)
}

fn rate(text: &str) -> Unit {
    Unit::from(match text.strip_suffix("/sec") {
        Some(what) => format!("{}/s", clean(what)),
        None => clean(text),
    })
}

fn numbers(raw: Option<&Vec<Vec<Value>>>) -> Option<Vec<Vec<f64>>> {
    raw?.iter().map(|fork| fork.iter().map(Value::as_f64).collect()).collect()
}

fn scaled(forks: Vec<Vec<f64>>, scale: impl Fn(f64) -> f64) -> Vec<Vec<f64>> {
    forks.into_iter().map(|fork| fork.into_iter().map(&scale).collect()).collect()
}

/// Adds readings with block numbers that distinguish the forks.
fn add_forks(
    arm: &mut Arm,
    key: &str,
    quality: Quality,
    source: &str,
    forks: Vec<Vec<f64>>,
) -> Result<(), ImportError> {
    let in_fork = |(number, fork): (usize, &Vec<f64>)| {
        let first = (number as u32).saturating_mul(BLOCKS_OF_A_PROCESS);
        (0..fork.len() as u32).map(move |index| first.saturating_add(index)).collect::<Vec<u32>>()
    };
    let numbered: Vec<u32> = forks.iter().enumerate().flat_map(in_fork).collect();
    let readings: Vec<f64> = forks.into_iter().flatten().collect();
    if readings.is_empty() {
        return Err(ImportError::of(&arm.name, "it has no readings"));
    }
    add(arm, key, quality, source, readings)?;
    if let Some(Figure::Sample(sample)) = arm.figures.get_mut(key) {
        sample.blocks = numbered;
    }
    Ok(())
}
