//! Reads results of other benchmark tools, and converts them into runs.
//!
//! Each format has a plain function from text to [`Imported`]. Readings keep the order in which the tool wrote them. If
//! a tool wrote only a summary, that figure is the only reading; it is marked as estimated, and its source names the
//! summary. What a file does not contain stays absent.

pub mod args;
pub mod criterion_haskell;
pub mod criterion_rs;
pub mod csv_records;
#[cfg(test)]
mod damaged_files;
pub mod error;
pub mod figures;
mod file_text;
pub mod go;
pub mod google;
pub mod hyperfine;
pub mod jmh;
pub mod pytest;
pub mod scruple_json;
pub mod series;
mod summaries;
mod tasty_bench;
#[cfg(test)]
pub mod tests;
pub mod verb;
pub mod weigh;

pub use error::ImportError;

use clap::ValueEnum;
use scruple_core::provenance::Provenance;
use scruple_core::run::Warning;
use scruple_core::subject::{Arm, Parameter, Role, Subject, with_values};
use scruple_stats::sorting::{self, SortedMap};
use std::collections::BTreeSet;

/// The formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// criterion (Haskell): the report of --json, or the summary of --csv.
    Criterion,
    /// criterion.rs: the folder target/criterion, the files in its ‘new’ folders, or what critcmp --export wrote.
    CriterionRs,
    /// google-benchmark: JSON.
    GoogleBenchmark,
    /// The output of go test -bench, as text or as events of -json.
    Go,
    /// hyperfine: the file of --export-json.
    Hyperfine,
    /// JMH: JSON.
    Jmh,
    /// pytest-benchmark: JSON.
    PytestBenchmark,
    /// Your own series: CSV with a header or JSON, of commits or times and values; also Otava's CSV.
    Series,
    /// asv: files of .asv/results, one for each commit, which together make a series.
    Asv,
    /// Scruple: what --json or --export-json wrote of a run or a history.
    Scruple,
    /// tasty-bench: the file of --csv.
    TastyBench,
    /// weigh: its tables, plain or Markdown.
    Weigh,
}

impl Format {
    /// Returns the name of the tool.
    pub fn tool(self) -> &'static str {
        match self {
            Format::Criterion => "criterion",
            Format::CriterionRs => "criterion.rs",
            Format::GoogleBenchmark => "google-benchmark",
            Format::Go => "go test",
            Format::Hyperfine => "hyperfine",
            Format::Jmh => "JMH",
            Format::PytestBenchmark => "pytest-benchmark",
            Format::Series => "a series",
            Format::Asv => "asv",
            Format::Scruple => "Scruple",
            Format::TastyBench => "tasty-bench",
            Format::Weigh => "weigh",
        }
    }

    /// Returns advice on how to make the tool write a readable file.
    pub fn advice(self) -> &'static str {
        match self {
            Format::Criterion => "write it again with --json FILE",
            Format::CriterionRs => "run `cargo bench` again and name the folder target/criterion",
            Format::GoogleBenchmark => "write it again with --benchmark_out=FILE --benchmark_out_format=json",
            Format::Go => "write it again with `go test -bench . > FILE`",
            Format::Hyperfine => "write it again with --export-json FILE",
            Format::Jmh => "write it again with -rf json -rff FILE",
            Format::PytestBenchmark => "write it again with --benchmark-json=FILE",
            Format::Series => {
                "give it a header with ‘commit’ or ‘time’, and ‘value’ or a column for each metric"
            }
            Format::Asv => "name the files or the folder of .asv/results",
            Format::Scruple => {
                "write it again with `scruple show RUN --json > FILE`, or of a history with `scruple history report RUN --json > FILE`"
            }
            Format::TastyBench => "write it again with --csv FILE",
            Format::Weigh => "write its output to the file again",
        }
    }
}

/// The content of a file of another tool.
#[derive(Debug, Default)]
pub struct Imported {
    /// The time at which the tool ran, in milliseconds since 1970, if the file contains it.
    pub started: Option<i64>,
    /// The environment in which the tool ran, as far as the file describes it.
    pub provenance: Provenance,
    /// The benchmarks, as arms.
    pub arms: Vec<Arm>,
    /// The remarks that a reader needs in order not to be misled.
    pub warnings: Vec<Warning>,
    /// The id, the label and other properties of the run, if Scruple wrote the file.
    pub identity: Option<scruple_json::RunIdentity>,
    /// The versions, if Scruple wrote the file and it is a history.
    pub history: Option<scruple_json::HistoryRange>,
}

impl Imported {
    fn of(tool: &str) -> Imported {
        let provenance = Provenance { tool: Some(tool.to_owned()), ..Provenance::default() };
        Imported { provenance, ..Imported::default() }
    }

    fn remark(&mut self, code: &str, text: impl Into<String>) {
        self.warnings.push(Warning { code: code.to_owned(), text: text.into() });
    }

    /// Records a fact about the environment, unless it is empty.
    fn note(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.provenance.environment.insert(key.to_owned(), clean(value));
        }
    }

    /// Completes an import: makes the names unique, and sets the machine class.
    fn finished(mut self) -> Result<Imported, ImportError> {
        if self.arms.is_empty() {
            return Err(ImportError::at("the whole text", "it has no benchmarks"));
        }
        for arm in &mut self.arms {
            arm.name = match clean(&arm.name) {
                name if name.trim().is_empty() => UNNAMED.to_owned(),
                name => name,
            };
        }
        make_unique(&mut self.arms);
        let provenance = &mut self.provenance;
        let host = provenance.environment.get("host").map_or("unknown", String::as_str);
        let machine = if provenance.cpu.is_empty() { host } else { &provenance.cpu };
        let tool = provenance.tool.as_deref().unwrap_or("").split(' ').next().unwrap_or("");
        provenance.machine_class = format!("{tool}/{}", machine.replace(['/', ' '], "-"));
        Ok(self)
    }
}

/// The name of things that have no name in the file.
const UNNAMED: &str = "unnamed";

/// Reads a text in this format.
pub fn read(format: Format, text: &str) -> Result<Imported, ImportError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format {
        Format::Criterion => criterion_haskell::read(text),
        Format::CriterionRs => criterion_rs::read_one(text),
        Format::GoogleBenchmark => google::read(text),
        Format::Go => go::read(text),
        Format::Hyperfine => hyperfine::read(text),
        Format::Jmh => jmh::read(text),
        Format::PytestBenchmark => pytest::read(text),
        Format::Series | Format::Asv => Err(ImportError::at("the whole text", "a series is not a run")),
        Format::Scruple => scruple_json::read(text),
        Format::TastyBench => tasty_bench::read(text),
        Format::Weigh => weigh::read(text),
    }
}

/// Returns the format of a text, which is recognised by words that only this tool writes. A truncated text is
/// recognised as well, so that its error message can name the tool.
pub fn recognise(text: &str) -> Option<Format> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let has = |word: &str| text.contains(word);
    if text.starts_with(['{', '[']) {
        return match () {
            () if text.starts_with("[\"criteri") => Some(Format::Criterion),
            () if scruple_json::recognises(text) || scruple_json::is_table(text) => Some(Format::Scruple),
            () if has("\"primaryMetric\"") || has("\"jmhVersion\"") => Some(Format::Jmh),
            () if series::asv::recognises(text) => Some(Format::Asv),
            () if has("\"machine_info\"") => Some(Format::PytestBenchmark),
            () if has("\"context\"") => Some(Format::GoogleBenchmark),
            () if has("\"results\"") => Some(Format::Hyperfine),
            () if has("\"Action\"") => Some(Format::Go),
            () if criterion_rs::recognises(text) => Some(Format::CriterionRs),
            () if series::json::recognises(text) => Some(Format::Series),
            () => None,
        };
    }
    if text.starts_with("Name,Mean,") {
        Some(Format::Criterion)
    } else if tasty_bench::recognises(text) {
        Some(Format::TastyBench)
    } else if scruple_json::is_table(text) {
        Some(Format::Scruple)
    } else if go::recognises(text) {
        Some(Format::Go)
    } else if weigh::recognises(text) {
        Some(Format::Weigh)
    } else if series::columns::recognises(text) {
        Some(Format::Series)
    } else {
        None
    }
}

/// Creates the arm of a benchmark. The groups in `path` are separated by `/`.
fn case(path: &str, program: &[&str], params: SortedMap<String, Parameter>) -> Arm {
    let path = match path.trim_matches('/') {
        "" => UNNAMED.to_owned(),
        path => clean(path),
    };
    let name = with_values(&path, &params);
    let program = program.iter().map(|word| (*word).to_owned()).collect();
    Arm { params, ..Arm::new(name, Subject::case(path, program), Role::Subject) }
}

/// Converts a JSON value into a parameter: a number, a text, or the JSON text of anything else.
fn parameter(value: &serde_json::Value) -> Parameter {
    match value {
        serde_json::Value::String(text) => Parameter::parse(text),
        other => Parameter::parse(&other.to_string()),
    }
}

/// Makes a name from a file harmless, so that it cannot control a terminal.
fn clean(text: &str) -> String {
    scruple_core::harmless_text::plain(text)
}

/// Numbers the arms that have the same name, so that each can be found again.
fn make_unique(arms: &mut [Arm]) {
    let mut taken: BTreeSet<String> = sorting::set(arms.iter().map(|arm| arm.name.clone()));
    let mut seen: SortedMap<String, u32> = SortedMap::new();
    for arm in arms {
        let count = seen.entry(arm.name.clone()).or_default();
        *count += 1;
        while *count > 1 {
            let name = format!("{} #{count}", arm.name);
            if taken.insert(name.clone()) {
                arm.name = name;
                break;
            }
            *count += 1;
        }
    }
}

/// Groups things by their key, in the order in which the keys first appear.
fn grouped<T, K: Ord + Clone>(things: &[T], key: impl Fn(&&T) -> K) -> Vec<(K, Vec<&T>)> {
    let mut groups: Vec<(K, Vec<&T>)> = Vec::new();
    let mut positions: SortedMap<K, usize> = SortedMap::new();
    for thing in things {
        let key = key(&thing);
        let position = *positions.entry(key.clone()).or_insert_with(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        groups[position].1.push(thing);
    }
    groups
}

/// Converts a time such as `2026-11-20T10:00:00+00:00` to milliseconds since 1970.
fn moment(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(|moment| moment.as_millisecond())
}
