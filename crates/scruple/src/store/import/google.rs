//! Reads the JSON of google-benchmark: a reading for each repetition, or the aggregates if only these were written.

use super::figures::{
    add, add_absence, add_iterations, add_own, add_summary, nanoseconds, own_key, round_if_nearly_whole,
};
use super::{ImportError, Imported, case, clean, grouped, moment};
use scruple_core::harmless_text::list_names;
use scruple_core::metric::Quality;
use scruple_core::subject::{Arm, Parameter};
use scruple_core::unit::Unit;
use scruple_stats::sorting::SortedMap;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
struct GoogleBenchmarkFile {
    #[serde(default)]
    context: Map<String, Value>,
    benchmarks: Vec<GoogleBenchmark>,
}

#[derive(Deserialize)]
struct GoogleBenchmark {
    name: String,
    run_name: Option<String>,
    aggregate_name: Option<String>,
    #[serde(default)]
    threads: Option<f64>,
    iterations: Option<f64>,
    real_time: Option<f64>,
    cpu_time: Option<f64>,
    time_unit: Option<String>,
    error_message: Option<String>,
    skip_message: Option<String>,
    bytes_per_second: Option<f64>,
    items_per_second: Option<f64>,
    allocs_per_iter: Option<f64>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// The fields, in addition to those of the struct, that are not counters of the benchmark.
const FIELDS: [&str; 16] = [
    "family_index",
    "per_family_instance_index",
    "run_type",
    "repetitions",
    "repetition_index",
    "aggregate_unit",
    "label",
    "big_o",
    "rms",
    "cpu_coefficient",
    "real_coefficient",
    "error_occurred",
    "skipped",
    "max_bytes_used",
    "total_allocated_bytes",
    "net_heap_growth",
];

/// Reads a document.
pub(super) fn read(text: &str) -> Result<Imported, ImportError> {
    let document: GoogleBenchmarkFile = serde_json::from_str(text)?;
    let mut imported = context(&document.context);
    let program = document.context.get("executable").and_then(Value::as_str).unwrap_or("google-benchmark");
    let name = |row: &&GoogleBenchmark| row.run_name.clone().unwrap_or_else(|| row.name.clone());
    let mut groups = grouped(&document.benchmarks, name);
    // The rows of complexity fits are ignored, because Scruple fits growth itself.
    groups.retain(|(_, rows)| {
        rows.iter().any(|row| !matches!(row.aggregate_name.as_deref(), Some("BigO" | "RMS")))
    });
    let names: Vec<BenchmarkName<'_>> =
        groups.iter().map(|(name, rows)| BenchmarkName::of(name, rows)).collect();
    let mut without_work = Vec::new();
    for ((name, rows), parts) in groups.iter().zip(&names) {
        let alone = names.iter().filter(|other| other.is_like(parts)).count() == 1;
        let arm = arm(name, rows, program, (parts, alone))?;
        if arm.sample("google.bytes_per_second").or(arm.sample("google.items_per_second")).is_some() {
            without_work.push(arm.name.clone());
        }
        imported.arms.push(arm);
    }
    if !without_work.is_empty() {
        let names = list_names(without_work.iter().map(String::as_str));
        let text = format!(
            "the work of {names} is left out, because rates of several threads do not show what one iteration does; \
             the rates are kept as they are"
        );
        imported.remark("work-left-out", text);
    }
    imported.finished()
}

fn context(context: &Map<String, Value>) -> Imported {
    let text = |key: &str| context.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut imported =
        Imported::of(format!("google-benchmark {}", clean(text("library_version"))).trim_end());
    imported.started = moment(text("date"));
    imported.provenance.cores = context.get("num_cpus").and_then(Value::as_u64).unwrap_or(0) as u32;
    let load = context.get("load_avg").and_then(|load| load.get(0)?.as_f64());
    imported.provenance.load = load.filter(|load| load.is_finite()).unwrap_or(0.0);
    imported.note("host", text("host_name"));
    imported.note("library_build_type", text("library_build_type"));
    if text("library_build_type") == "debug" {
        imported.remark(
            "debug-library",
            "the library of google-benchmark was built for debugging, which makes its loop slower",
        );
    }
    imported
}

/// Creates the arm of a benchmark. Settings are named only if this benchmark has other ones as well.
fn arm(
    name: &str,
    rows: &[&GoogleBenchmark],
    program: &str,
    (parts, alone): (&BenchmarkName<'_>, bool),
) -> Result<Arm, ImportError> {
    let path = match alone || parts.settings.is_empty() {
        true => parts.path.clone(),
        false => format!("{} [{}]", parts.path, parts.settings.join(", ")),
    };
    let mut arm = case(&path, &[&clean(program)], parts.params.clone());
    if let Some(why) = rows.iter().find_map(|row| row.error_message.as_ref().or(row.skip_message.as_ref())) {
        add_absence(&mut arm, "time.wall", why);
        return Ok(arm);
    }
    let iterations: Vec<&GoogleBenchmark> =
        rows.iter().copied().filter(|row| row.aggregate_name.is_none()).collect();
    if iterations.is_empty() {
        return aggregate(arm, rows);
    }
    type Time = fn(&GoogleBenchmark) -> Option<f64>;
    let times: [(&str, Time); 2] = [("time.wall", |row| row.real_time), ("time.cpu", |row| row.cpu_time)];
    for (key, of) in times {
        let readings = iterations.iter().map(|row| time(row, of(row))).collect::<Result<Vec<_>, _>>()?;
        add(&mut arm, key, Quality::Noisy, "google-benchmark, each repetition", readings)?;
    }
    let counts: Vec<f64> = iterations.iter().filter_map(|row| row.iterations).collect();
    if counts.iter().any(|count| *count < 1.0) {
        return Err(ImportError::of(name, "it had no iterations"));
    }
    if counts.len() == iterations.len() {
        add_iterations(&mut arm, "google-benchmark", counts)?;
    }
    if let Some(allocations) = iterations[0].allocs_per_iter {
        add(&mut arm, "alloc.objects", Quality::Near, "the benchmark’s memory manager", vec![allocations])?;
    }
    match parts.threads {
        None => work(&mut arm, name, iterations[0])?,
        Some(_) => rates(&mut arm, &iterations)?,
    }
    own_counters(&mut arm, &iterations)?;
    Ok(arm)
}

fn time(row: &GoogleBenchmark, value: Option<f64>) -> Result<f64, ImportError> {
    let wrong = |what: String| ImportError::of(&row.name, what);
    let value = value.ok_or_else(|| wrong("it has no time".to_owned()))?;
    let unit = row.time_unit.as_deref().unwrap_or("ns");
    let factor =
        nanoseconds(unit).ok_or_else(|| wrong(format!("‘{}’ is not a unit of time", clean(unit))))?;
    Ok(value * factor)
}

/// Adds the median of the repetitions, or their mean, if the file has no repetitions.
fn aggregate(mut arm: Arm, rows: &[&GoogleBenchmark]) -> Result<Arm, ImportError> {
    let of = |name: &str| rows.iter().find(|row| row.aggregate_name.as_deref() == Some(name));
    let Some(row) = of("median").or_else(|| of("mean")) else {
        return Err(ImportError::of(&arm.name, "it has neither repetitions nor their median or mean"));
    };
    let word = row.aggregate_name.as_deref().unwrap_or_default();
    let source = format!("google-benchmark, {word} of repetitions");
    add_summary(&mut arm, "time.wall", &source, time(row, row.real_time)?)?;
    add_summary(&mut arm, "time.cpu", &source, time(row, row.cpu_time)?)?;
    Ok(arm)
}

/// Adds the work of one iteration: the rate multiplied by the time that the rate refers to.
fn work(arm: &mut Arm, name: &str, row: &GoogleBenchmark) -> Result<(), ImportError> {
    let of_wall = name.contains("/real_time") || name.contains("/manual_time");
    let seconds = time(row, if of_wall { row.real_time } else { row.cpu_time })? / 1e9;
    for (key, rate) in [("work.bytes", row.bytes_per_second), ("work.items", row.items_per_second)] {
        if let Some(rate) = rate {
            add(
                arm,
                key,
                Quality::Near,
                "google-benchmark, rate × time",
                vec![round_if_nearly_whole(rate * seconds)],
            )?;
        }
    }
    Ok(())
}

fn own_counters(arm: &mut Arm, rows: &[&GoogleBenchmark]) -> Result<(), ImportError> {
    let names = rows[0].others.keys().filter(|name| !FIELDS.contains(&name.as_str()));
    for name in names {
        let readings: Vec<f64> = rows.iter().filter_map(|row| row.others.get(name)?.as_f64()).collect();
        if readings.len() == rows.len() {
            add_own(arm, &own_key("google", name), counter_unit(name), "counter of the benchmark", readings)?;
        }
    }
    Ok(())
}

/// Adds the rates of a benchmark with several threads as they are, because the work of one iteration is not known.
fn rates(arm: &mut Arm, rows: &[&GoogleBenchmark]) -> Result<(), ImportError> {
    type Rate = fn(&GoogleBenchmark) -> Option<f64>;
    let rates: [(&str, Rate); 2] =
        [("bytes_per_second", |row| row.bytes_per_second), ("items_per_second", |row| row.items_per_second)];
    for (name, of) in rates {
        let readings: Option<Vec<f64>> = rows.iter().map(|row| of(row)).collect();
        if let Some(readings) = readings {
            add_own(arm, &own_key("google", name), counter_unit(name), "rate of all threads", readings)?;
        }
    }
    Ok(())
}

/// The unit of a counter. The file does not say which ones are rates, so that only names do.
fn counter_unit(name: &str) -> Unit {
    let ends = ["_per_second", "_per_sec", "_per_s", "PerSecond", "/second", "/sec", "/s"];
    match ends.into_iter().find_map(|end| name.strip_suffix(end)) {
        Some(what) => Unit::Other(format!("{}/s", clean(what)).into()),
        None => Unit::Count,
    }
}

/// The parts of a name: `BM_Sort/1024/order:2/real_time/threads:4` has the path `BM_Sort`, the parameters n=1024, order=2
/// and threads=4, and the setting `real_time`.
struct BenchmarkName<'a> {
    path: String,
    params: SortedMap<String, Parameter>,
    threads: Option<f64>,
    settings: Vec<&'a str>,
}

impl<'a> BenchmarkName<'a> {
    fn of(name: &'a str, rows: &[&GoogleBenchmark]) -> BenchmarkName<'a> {
        const SETTINGS: [&str; 4] = ["repeats", "iterations", "min_time", "min_warmup_time"];
        let mut path: Vec<&str> = Vec::new();
        let mut arguments: Vec<(Option<&str>, &str)> = Vec::new();
        let mut settings: Vec<&str> = Vec::new();
        for (index, part) in name.split('/').enumerate() {
            match part.split_once(':') {
                _ if index == 0 => path.push(part),
                Some(("threads", _)) => {}
                Some((key, _)) if SETTINGS.contains(&key) => settings.push(part),
                Some((key, value)) if !value.starts_with(':') => arguments.push((Some(key), value)),
                _ if part.parse::<i64>().is_ok() => arguments.push((None, part)),
                _ if ["real_time", "process_time", "manual_time"].contains(&part) => settings.push(part),
                _ => path.push(part),
            }
        }
        let mut params: SortedMap<String, Parameter> = arguments
            .iter()
            .enumerate()
            .map(|(index, (key, value))| {
                let key = match key {
                    Some(key) => clean(key),
                    None if arguments.len() == 1 => "n".to_owned(),
                    None => format!("n{index}"),
                };
                (key, Parameter::parse(&clean(value)))
            })
            .collect();
        let threads = rows.iter().find_map(|row| row.threads).filter(|threads| *threads > 1.0);
        if let Some(threads) = threads {
            params.insert("threads".to_owned(), Parameter::Number(threads));
        }
        BenchmarkName { path: path.join("/"), params, threads, settings }
    }

    /// Whether another benchmark differs in nothing but its settings.
    fn is_like(&self, other: &BenchmarkName<'_>) -> bool {
        self.path == other.path && self.params == other.params
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmarks_that_differ_in_settings_only_are_told_apart_by_them() {
        let row = |name: &str| {
            format!("{{\"name\": \"{name}\", \"real_time\": 1, \"cpu_time\": 1, \"threads\": 1}}")
        };
        let rows =
            ["A", "A/real_time", "A/iterations:5/real_time", "A/7/real_time", "B/process_time"].map(row);
        let imported = read(&format!("{{\"benchmarks\": [{}]}}", rows.join(","))).expect("readable");
        let names: Vec<&str> = imported.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, ["A", "A [real_time]", "A [iterations:5, real_time]", "A (n=7)", "B"]);
    }

    #[test]
    fn the_work_of_several_threads_is_left_out_with_a_remark() {
        let row = |name: &str, threads: u32| {
            format!(
                "{{\"name\": \"{name}\", \"real_time\": 2, \"cpu_time\": 4, \"threads\": {threads}, \
                 \"items_per_second\": 1e9}}"
            )
        };
        let rows = [row("A/real_time", 1), row("B/real_time/threads:2", 2)];
        let imported = read(&format!("{{\"benchmarks\": [{}]}}", rows.join(","))).expect("readable");
        let work = |arm: usize| imported.arms[arm].sample("work.items").map(|sample| sample.readings.clone());
        assert_eq!((work(0), work(1)), (Some(vec![2.0]), None));
        assert_eq!(imported.warnings.len(), 1);
        assert!(imported.warnings[0].text.contains("‘B (threads=2)’"), "{}", imported.warnings[0].text);
        let rate = imported.arms[1].sample("google.items_per_second").expect("the rate itself");
        assert_eq!((rate.readings.as_slice(), rate.unit.name()), (&[1e9][..], "items/s"));
    }

    #[test]
    fn a_counter_whose_name_is_a_rate_is_one_and_more_of_it_is_better() {
        let counters = "\"frames_per_second\": 3e6, \"hits/s\": 5, \"hits\": 7";
        let row = format!("{{\"name\": \"A\", \"real_time\": 2, \"cpu_time\": 2, {counters}}}");
        let imported = read(&format!("{{\"benchmarks\": [{row}]}}")).expect("readable");
        let unit = |key: &str| imported.arms[0].sample(key).expect("a counter").unit.clone();
        assert_eq!(unit("google.frames_per_second").name(), "frames/s");
        let rates =
            ["google.frames_per_second", "google.hits_s", "google.hits"].map(|key| unit(key).is_rate());
        assert_eq!(rates, [true, true, false]);
    }
}
