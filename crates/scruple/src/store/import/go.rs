//! Reads the output of `go test -bench`: a line for each run of each benchmark, as text or inside the events of
//! `-json`.

use super::figures::{
    add, add_absence, add_iterations, add_own, add_summary, check_iterations, nanoseconds, own_key,
};
use super::{ImportError, Imported, case, clean, grouped, moment};
use scruple_core::metric::Quality;
use scruple_core::sample::{BLOCKS_OF_A_PROCESS, Figure};
use scruple_core::subject::{Arm, Parameter};
use scruple_core::unit::Unit;
use scruple_stats::sorting::{self, SortedMap};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The largest number of a process. A file may name a package as often as it likes.
const LAST_PROCESS: u32 = u32::MAX / BLOCKS_OF_A_PROCESS - 1;

/// A line with results.
struct BenchmarkLine<'a> {
    package: &'a str,
    /// The name without the prefix `Benchmark` and without the number of processors.
    name: &'a str,
    processors: Option<u32>,
    /// The number of processes of the package whose lines come before: a file may hold several outputs.
    process: u32,
    iterations: f64,
    figures: Vec<(f64, &'a str)>,
}

#[derive(Deserialize)]
struct GoTestEvent {
    #[serde(rename = "Time")]
    time: Option<String>,
    #[serde(rename = "Package")]
    package: Option<String>,
    #[serde(rename = "Output")]
    output: Option<String>,
}

/// Whether a text has a line with results, or a typical first line of such an output.
pub(super) fn recognises(text: &str) -> bool {
    text.lines().take(10_000).any(|line| {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let counted = words.next().is_some_and(|word| word.parse::<u64>().is_ok());
        (is_benchmark(name) && counted) || line.starts_with("goos: ") || line.starts_with("goarch: ")
    })
}

fn is_benchmark(word: &str) -> bool {
    word.strip_prefix("Benchmark").is_some_and(|rest| !rest.starts_with(char::is_lowercase))
}

/// Reads an output, as text or as events.
pub(super) fn read(text: &str) -> Result<Imported, ImportError> {
    if !text.trim_start().starts_with('{') {
        return of_text(text);
    }
    let mut started = None;
    let mut outputs: Vec<(String, String)> = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let event: GoTestEvent = serde_json::from_str(line).map_err(|error| {
            let column = error.column();
            let what = ImportError::from(error).what;
            ImportError::at(format!("line {}, column {column}", index + 1), what)
        })?;
        started = started.or_else(|| moment(event.time.as_deref()?));
        let (package, output) = (event.package.unwrap_or_default(), event.output.unwrap_or_default());
        match outputs.iter_mut().find(|(known, _)| *known == package) {
            Some((_, text)) => text.push_str(&output),
            None => outputs.push((package, output)),
        }
    }
    let text: String = outputs.into_iter().map(|(_, output)| output).collect();
    Ok(Imported { started, ..of_text(&text)? })
}

fn of_text(text: &str) -> Result<Imported, ImportError> {
    let mut imported = Imported::of("go test");
    let lines = lines(text, &mut imported)?;
    let processors: Vec<Option<u32>> = sorting::distinct(lines.iter().map(|line| line.processors));
    if let (1, Some(Some(processors))) = (processors.len(), processors.first()) {
        imported.note("GOMAXPROCS", &processors.to_string());
    }
    let identity =
        |line: &&BenchmarkLine<'_>| (line.package.to_owned(), line.name.to_owned(), line.processors);
    for ((package, name, of), group) in &grouped(&lines, identity) {
        let (path, mut params) = path_and_params(name);
        let path = format!("{package}/{path}");
        if processors.len() > 1 {
            params.insert("GOMAXPROCS".to_owned(), Parameter::Number(f64::from(of.unwrap_or(1))));
        }
        let program: &[&str] = if package.is_empty() { &["go", "test"] } else { &["go", "test", package] };
        let mut arm = case(&path, program, params);
        figures(&mut arm, group)?;
        imported.arms.push(arm);
    }
    imported.finished()
}

/// Returns the lines with results. The contents of headings and failures are added to `imported`.
fn lines<'a>(text: &'a str, imported: &mut Imported) -> Result<Vec<BenchmarkLine<'a>>, ImportError> {
    let mut found: Vec<BenchmarkLine<'a>> = Vec::new();
    let mut package = "";
    let mut processes: SortedMap<&str, u32> = SortedMap::new();
    // If a benchmark prints something, that text is between its name and its figures, which are on different lines.
    let mut open: Option<&str> = None;
    let mut named: Vec<&str> = Vec::new();
    let mut failed: Vec<&str> = Vec::new();
    let count = text.lines().count();
    for (index, line) in text.lines().enumerate() {
        if let Some((key, value)) = line.split_once(": ") {
            match key {
                "pkg" => {
                    package = value.trim();
                    *processes.entry(package).or_default() += 1;
                }
                "cpu" => imported.provenance.cpu = clean(value.trim()),
                "goos" | "goarch" => imported.note(key, value.trim()),
                key if key.ends_with("--- FAIL") => {
                    let name = value.trim();
                    failed.push(name.strip_prefix("Benchmark").unwrap_or(name));
                    imported.remark("go-failed", format!("‘{}’ failed", clean(name)))
                }
                _ => {}
            }
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(first), last) = (words.first(), words.last()) else { continue };
        let own = is_benchmark(first);
        if own && words.get(1).is_none_or(|word| word.parse::<f64>().is_err()) {
            open = (!line.contains("--- FAIL") && !line.contains("--- SKIP")).then_some(*first);
            named.extend(open);
            continue;
        }
        let (name, words) = match open {
            _ if own => (*first, &words[1..]),
            Some(name) if last.is_some_and(|unit| unit.contains("/")) && are_figures(&words) => {
                (name, &words[..])
            }
            _ => continue,
        };
        open = None;
        let Ok(iterations) = words[0].parse::<f64>() else { continue };
        let cut =
            || ImportError::at(format!("line {}", index + 1), "the figures of a benchmark end in the middle");
        if words.len() < 3 || words.len().is_multiple_of(2) {
            return Err(cut());
        }
        let figure = |pair: &[&'a str]| Some((pair[0].parse::<f64>().ok()?, pair[1]));
        let figures: Option<Vec<_>> = words[1..].chunks(2).map(figure).collect();
        let figures = figures.ok_or_else(cut)?;
        // A unit that was cut short may look like another unit. Therefore the unit at the end of an incomplete last
        // line must be known.
        let known = |unit: &str| {
            ["ns/op", "MB/s", "B/op", "allocs/op"].contains(&unit)
                || found.iter().flat_map(|line| &line.figures).any(|(_, seen)| *seen == unit)
        };
        if index + 1 == count && !text.ends_with('\n') && !figures.last().is_some_and(|(_, unit)| known(unit))
        {
            return Err(cut());
        }
        let name = name.strip_prefix("Benchmark").unwrap_or(name);
        let process = processes.get(package).map_or(0, |count| count - 1).min(LAST_PROCESS);
        found.push(BenchmarkLine { package, name, processors: None, process, iterations, figures });
    }
    find_processors(&mut found);
    named.dedup();
    for name in named {
        let whole = name.strip_prefix("Benchmark").unwrap_or(name);
        let (plain, _) = split_processors(whole);
        // A benchmark that only runs others has no figures of its own. Where no name ends with the
        // processors, a number that looks like theirs is a part of the name.
        let below = |line: &BenchmarkLine<'_>| {
            let rests = [plain, whole].map(|name| line.name.strip_prefix(name));
            rests.into_iter().flatten().any(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let failed = failed.iter().any(|failed| split_processors(failed).0 == plain);
        if !failed && !found.iter().any(below) {
            let message = format!("‘{}’ is left out: it has no line of results", clean(name));
            imported.remark("go-left-out", message);
        }
    }
    Ok(found)
}

/// Whether these words are the number of iterations followed by pairs of a number and a unit.
fn are_figures(words: &[&str]) -> bool {
    let number = |word: &str| word.parse::<f64>().is_ok();
    words.len() >= 3
        && !words.len().is_multiple_of(2)
        && words[0].parse::<u64>().is_ok()
        && words[1..].chunks(2).all(|pair| number(pair[0]) && !number(pair[1]))
}

/// Splits the names of benchmarks from their numbers of processors.
fn find_processors(lines: &mut [BenchmarkLine<'_>]) {
    // The name of a sub-benchmark may itself end in a number, but the name of a function has no ‘-’. All benchmarks of a
    // package run with the same numbers of processors.
    let of_functions = lines.iter().filter(|line| !line.name.contains('/'));
    let known: BTreeSet<(&str, Option<u32>)> =
        of_functions.map(|line| (line.package, split_processors(line.name).1)).collect();
    for line in lines {
        let (name, processors) = split_processors(line.name);
        let has_function = known.iter().any(|(package, _)| *package == line.package);
        if !has_function || known.contains(&(line.package, processors)) {
            (line.name, line.processors) = (name, processors);
        }
    }
}

/// Splits a name from the number of processors, which Go appends unless it is 1.
fn split_processors(name: &str) -> (&str, Option<u32>) {
    match name.rsplit_once('-').map(|(name, number)| (name, number.parse::<u32>())) {
        Some((name, Ok(number))) if number > 1 && !name.is_empty() => (name, Some(number)),
        _ => (name, None),
    }
}

/// Splits a name into its path and parameters. Sub-benchmarks of the form `key=value` are parameters.
fn path_and_params(name: &str) -> (String, SortedMap<String, Parameter>) {
    let mut params = SortedMap::new();
    let mut path = Vec::new();
    for part in name.split('/') {
        match part.split_once('=').filter(|(key, _)| !key.is_empty() && !path.is_empty()) {
            Some((key, value)) => {
                params.insert(clean(key), Parameter::parse(&clean(value)));
            }
            None => path.push(part),
        }
    }
    (path.join("/"), params)
}

fn figures(arm: &mut Arm, lines: &[&BenchmarkLine<'_>]) -> Result<(), ImportError> {
    let mut units: Vec<&str> = Vec::new();
    for (_, unit) in lines.iter().flat_map(|line| &line.figures) {
        if !units.contains(unit) {
            units.push(unit);
        }
    }
    let of = |line: &BenchmarkLine<'_>, unit: &str| {
        line.figures.iter().find(|(_, known)| *known == unit).map(|(value, _)| *value)
    };
    let each = "go test, each run";
    for unit in units {
        let readings: Vec<f64> = lines.iter().filter_map(|line| of(line, unit)).collect();
        match unit {
            "ns/op" => add(arm, "time.wall", Quality::Noisy, each, readings)?,
            "B/op" => add(arm, "alloc.bytes", Quality::Near, each, readings)?,
            "allocs/op" => add(arm, "alloc.objects", Quality::Near, each, readings)?,
            // Go rounds the rate to two decimals.
            "MB/s" if readings[0] < 1.0 => {
                let why = format!("{:.2} MB/s is too coarse to tell the bytes of an iteration", readings[0]);
                add_absence(arm, "work.bytes", &why);
            }
            "MB/s" => {
                let (rate, time) = (of(lines[0], "MB/s"), of(lines[0], "ns/op"));
                if let Some(bytes) = rate.zip(time).map(|(rate, time)| (rate * time / 1e3).round()) {
                    add_summary(arm, "work.bytes", "go test, MB/s × ns/op", bytes)?;
                }
            }
            _ => {
                let (unit_of, factor) = own_unit(unit);
                let readings = readings.iter().map(|reading| reading * factor).collect();
                add_own(arm, &own_key("go", unit), unit_of, "metric of the benchmark", readings)?;
            }
        }
    }
    let iterations: Vec<f64> = lines.iter().map(|line| line.iterations).collect();
    check_iterations(&arm.name, &iterations)?;
    add_iterations(arm, "go test", iterations)?;
    let mut next: SortedMap<u32, u32> = SortedMap::new();
    let block = |line: &&BenchmarkLine<'_>| {
        let block = next.entry(line.process).or_insert(line.process * BLOCKS_OF_A_PROCESS);
        *block += 1;
        *block - 1
    };
    let blocks: Vec<u32> = lines.iter().map(block).collect();
    for figure in arm.figures.values_mut() {
        if let Figure::Sample(sample) = figure
            && sample.readings.len() == blocks.len()
        {
            sample.blocks.clone_from(&blocks);
        }
    }
    Ok(())
}

/// Returns the unit of a metric that the benchmark defines, and the factor to Scruple's unit. For example, `p99-ns` and
/// `ns/frob` are nanoseconds.
fn own_unit(name: &str) -> (Unit, f64) {
    let unit = name.strip_suffix("/op").unwrap_or(name);
    let last = unit.rsplit('-').next().unwrap_or(unit);
    let what = last.split('/').next().unwrap_or(last);
    match (what, nanoseconds(what)) {
        _ if name.ends_with("/s") => (Unit::from(clean(name)), 1.0),
        ("B" | "bytes", _) => (Unit::Bytes, 1.0),
        // A single letter is more likely a word of the benchmark than minutes or hours.
        (_, Some(factor)) if what.len() > 1 || what == "s" => (Unit::Nanoseconds, factor),
        _ => (Unit::from(clean(name)), 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_and_remarks(text: &str) -> (Vec<String>, Vec<String>) {
        let imported = read(text).expect("readable");
        let names = imported.arms.iter().map(|arm| arm.name.clone()).collect();
        (names, imported.warnings.into_iter().map(|warning| warning.text).collect())
    }

    #[test]
    fn each_output_in_a_file_is_a_process_and_each_line_has_iterations() {
        let output = "pkg: p\nBenchmarkF \t 5 \t 1 ns/op\nBenchmarkF \t 5 \t 2 ns/op\n";
        let imported = read(&output.repeat(2)).expect("readable");
        let sample = imported.arms[0].sample("time.wall").expect("times");
        assert_eq!(sample.by_process(), [[1.0, 2.0], [1.0, 2.0]]);
        let many =
            read(&format!("{}BenchmarkF \t 5 \t 1 ns/op\n", "pkg: p\n".repeat(5_000))).expect("readable");
        assert_eq!(many.arms[0].sample("time.wall").expect("times").by_process(), [[1.0]]);
        let error = read("pkg: p\nBenchmarkF \t 0 \t 1 ns/op\n").expect_err("no iteration");
        assert!(error.to_string().contains("batch 1 of 1 has no iterations"), "{error}");
    }

    #[test]
    fn a_number_that_no_function_runs_with_belongs_to_the_name() {
        let one = "pkg: p\nBenchmarkF \t 5 \t 1 ns/op\nBenchmarkG/utf-8 \t 5 \t 1 ns/op\n";
        assert_eq!(names_and_remarks(one).0, ["p/F", "p/G/utf-8"]);
        let two = format!("{one}BenchmarkF-2 \t 5 \t 1 ns/op\nBenchmarkG/utf-8-2 \t 5 \t 1 ns/op\n");
        let expected = [
            "p/F (GOMAXPROCS=1)",
            "p/G/utf-8 (GOMAXPROCS=1)",
            "p/F (GOMAXPROCS=2)",
            "p/G/utf-8 (GOMAXPROCS=2)",
        ];
        assert_eq!(names_and_remarks(&two).0, expected);
        // Without a function nothing shows which it is; a number of processors is more likely.
        assert_eq!(names_and_remarks("pkg: p\nBenchmarkG/a-8 \t 5 \t 1 ns/op\n").0, ["p/G/a"]);
    }

    #[test]
    fn a_rate_that_go_has_rounded_to_nothing_is_not_work_of_0_bytes() {
        let work = |rate: &str| {
            let text = format!("BenchmarkA-2 \t 54 \t 441523 ns/op \t {rate} MB/s\n");
            let arm = of_text(&text).expect("readable").arms.remove(0);
            (arm.sample("work.bytes").map(|sample| sample.readings[0]), arm.absent("work.bytes").is_some())
        };
        assert_eq!(
            [work("0.00"), work("0.01"), work("2.00")],
            [(None, true), (None, true), (Some(883.0), false)]
        );
    }

    #[test]
    fn a_benchmark_whose_name_ends_in_a_number_is_not_said_to_be_left_out() {
        let text =
            "pkg: p\n=== RUN   BenchmarkG/utf-8\nBenchmarkG/utf-8\nBenchmarkG/utf-8-2 \t 5 \t 1 ns/op\n";
        assert_eq!(names_and_remarks(text), (vec!["p/G/utf-8".to_owned()], Vec::new()));
    }
}
