//! The figures of one process's runtime, and how the figures of a process tree become readings.

use super::Runtime;
use scruple_core::metric::{Metric, Pass, Quality, metric};
use scruple_core::sample::Reading;
use scruple_core::unit::Unit;
use scruple_stats::sorting;

/// Why a runtime that counts references has no figures of a collector.
pub(super) const NO_COLLECTOR: &str = "it counts references and has no collector";

/// How the figures of several processes are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The sum: for bytes, counts and times.
    Sum,
    /// The largest: for pauses and peaks.
    Max,
}

/// One number that a runtime reported.
#[derive(Clone, Debug, PartialEq)]
pub struct RuntimeFigure {
    /// The metric's key: a declared one, or `<runtime>.<word>` for a number that only this runtime has.
    pub key: &'static str,
    /// The unit of the number.
    pub unit: Unit,
    /// The quality of the number.
    pub quality: Quality,
    /// How the figure is combined with those of other processes.
    pub merge: Merge,
    /// The number.
    pub value: f64,
}

impl RuntimeFigure {
    /// Creates a figure of a declared metric, or of one that only the runtime has. The last word of the key of the
    /// latter determines its unit.
    pub(super) fn of(key: &'static str, value: f64, quality: Quality) -> RuntimeFigure {
        let last = key.rsplit(['.', '_']).next().unwrap_or("");
        let unit = match metric(key) {
            Some(metric) => metric.unit.clone(),
            None if matches!(
                last,
                "bytes" | "copied" | "promoted" | "slop" | "capacity" | "malloced" | "live"
            ) =>
            {
                Unit::Bytes
            }
            None if matches!(last, "time" | "init" | "mutator" | "max") => Unit::Nanoseconds,
            None => Unit::Count,
        };
        let merge = match last {
            "max" | "peak" | "capacity" | "slop" => Merge::Max,
            _ => Merge::Sum,
        };
        RuntimeFigure { key, unit, quality, merge, value }
    }

    pub(super) fn exact(key: &'static str, value: f64) -> RuntimeFigure {
        RuntimeFigure::of(key, value, Quality::Exact)
    }

    pub(super) fn near(key: &'static str, value: f64) -> RuntimeFigure {
        RuntimeFigure::of(key, value, Quality::Near)
    }

    pub(super) fn noisy(key: &'static str, value: f64) -> RuntimeFigure {
        RuntimeFigure::of(key, value, Quality::Noisy)
    }

    pub(super) fn estimated(key: &'static str, value: f64) -> RuntimeFigure {
        RuntimeFigure::of(key, value, Quality::Estimated)
    }
}

/// The report of one process of a runtime.
#[derive(Clone, Debug, PartialEq)]
pub struct RuntimeReport {
    /// The runtime.
    pub runtime: Runtime,
    /// The process id.
    pub pid: i32,
    /// The process's figures, or why it reported none.
    pub figures: Result<Vec<RuntimeFigure>, String>,
    /// Why this process did not report figures that its runtime can report.
    pub missing: Option<String>,
}

/// The metrics that every runtime is asked for.
pub const COMMON: &[&str] = &[
    "alloc.bytes",
    "alloc.objects",
    "gc.count",
    "gc.minor",
    "gc.major",
    "gc.time",
    "gc.pause_max",
    "heap.live_max",
    "heap.peak",
];

/// The text in the source of a figure that precedes the runtimes that never report their part of it.
pub const WITHOUT: &str = "; without ";

/// The times of collections, for which zero is not a valid value.
const TIMES: [&str; 2] = ["gc.time", "gc.pause_max"];

/// The key of the largest live size after a requested full collection. It is read only to find leaks.
pub const LIVE: &str = "heap.live";

/// The key of the largest live size that is possible at the end, in runtimes that cannot be made to collect there.
pub const LIVE_AT_MOST: &str = "heap.live_at_most";

/// The reading of [`LIVE`] or [`LIVE_AT_MOST`] for the whole process tree. If it is absent, its source names the runtimes
/// that were recognised.
pub(super) fn live(key: &str, reports: &[RuntimeReport], nothing: &str) -> Reading {
    let metric = Metric::custom(key, Unit::Bytes, Quality::Near, Pass::Counting);
    match total(reports, key) {
        Ok(total) => Reading::of(&metric, total.value, &total.source).with_quality(total.quality),
        Err(why) => Reading {
            source: words_of(reports).join(", "),
            ..Reading::absent(&metric, why.unwrap_or_else(|| nothing.to_owned()))
        },
    }
}

fn words_of(reports: &[RuntimeReport]) -> Vec<&'static str> {
    sorting::each_once(reports.iter().map(|process| process.runtime.word()))
}

/// The runtimes whose names are in the source of an absent reading of [`LIVE`].
pub fn recognised(live: &Reading) -> impl Iterator<Item = Runtime> {
    live.source.split(", ").filter_map(Runtime::from_word)
}

/// The readings of a whole process tree. `nothing` is the reason for absence if no process reported a runtime.
pub(super) fn readings(reports: &[RuntimeReport], nothing: &str) -> Vec<Reading> {
    let mut readings: Vec<Reading> = COMMON
        .iter()
        .filter_map(|key| metric(key))
        .map(|metric| match total(reports, &metric.key) {
            Ok(total) => Reading::of(metric, total.value, &total.source).with_quality(total.quality),
            Err(why) => Reading::absent(metric, why.unwrap_or_else(|| nothing.to_owned())),
        })
        .collect();
    let mut extras: Vec<&RuntimeFigure> = Vec::new();
    for figure in reports.iter().flat_map(|report| report.figures.iter().flatten()) {
        if metric(figure.key).is_none()
            && ![LIVE, LIVE_AT_MOST].contains(&figure.key)
            && !extras.iter().any(|other| other.key == figure.key)
        {
            extras.push(figure);
        }
    }
    for figure in extras {
        let metric = Metric::custom(figure.key, figure.unit.clone(), figure.quality, Pass::Counting);
        if let Ok(total) = total(reports, figure.key) {
            readings.push(Reading::of(&metric, total.value, &total.source).with_quality(total.quality));
        }
    }
    readings
}

struct Total {
    value: f64,
    quality: Quality,
    source: String,
}

/// The total of one metric. The error is why there is none, or `None` if no runtime was recognised at all.
fn total(reports: &[RuntimeReport], key: &str) -> Result<Total, Option<String>> {
    if let Some(why) = partial(reports, key) {
        return Err(Some(why));
    }
    let mut total: Option<(f64, Quality)> = None;
    let mut sources: Vec<(Runtime, usize)> = Vec::new();
    for process in reports {
        let Some(figure) = process.figures.iter().flatten().find(|figure| figure.key == key) else {
            continue;
        };
        total = Some(match (total, figure.merge) {
            (None, _) => (figure.value, figure.quality),
            (Some((value, quality)), Merge::Sum) => (value + figure.value, quality.max(figure.quality)),
            (Some((value, quality)), Merge::Max) => (value.max(figure.value), quality.max(figure.quality)),
        });
        match sources.iter_mut().find(|(runtime, _)| *runtime == process.runtime) {
            Some((_, count)) => *count += 1,
            None => sources.push((process.runtime, 1)),
        }
    }
    match total {
        // The clock of some runtimes ticks in milliseconds, but a collection always takes time: 0 means unknown.
        Some((0.0, _)) if TIMES.contains(&key) && !never_collected(reports) => {
            let word = reports.first().map_or("the runtime", |process| process.runtime.word());
            Err(Some(format!("{word}: the collections took less than its clock can measure")))
        }
        Some((value, quality)) => {
            let mut source = source(&sources);
            let without = runtimes_lacking(reports, key);
            if !without.is_empty() {
                source.push_str(WITHOUT);
                source.push_str(&without.join(", "));
            }
            Ok(Total { value, quality, source })
        }
        None => Err(reports.first().map(|process| match &process.missing {
            Some(why) if process.runtime.counts(key) => why.clone(),
            _ if key == "heap.live_max" && process.runtime.counts(key) && never_collected(reports) => {
                format!("{}: no collection determined what is alive", process.runtime.word())
            }
            _ => process.runtime.lacks(key),
        })),
    }
}

/// The runtimes in the tree that never count this, although they may do it.
fn runtimes_lacking(reports: &[RuntimeReport], key: &str) -> Vec<&'static str> {
    let mut without = Vec::new();
    for runtime in reports.iter().map(|process| process.runtime) {
        let may_do_it = runtime.why_not(key).is_some_and(|why| why != NO_COLLECTOR);
        if may_do_it && !without.contains(&runtime.word()) {
            without.push(runtime.word());
        }
    }
    without
}

fn never_collected(reports: &[RuntimeReport]) -> bool {
    reports.iter().all(|process| collections(process).is_none_or(|count| count == 0.0))
}

/// Why a total must be absent; `None` if it may be shown. A partial sum is never shown as the total: one process that
/// does not report what its runtime counts makes the total absent.
fn partial(reports: &[RuntimeReport], key: &str) -> Option<String> {
    let has = |process: &&RuntimeReport| process.figures.iter().flatten().any(|figure| figure.key == key);
    let any = reports.iter().any(|process| has(&process));
    let silent: Vec<&RuntimeReport> = reports
        .iter()
        .filter(|process| process.runtime.counts(key) || [LIVE, LIVE_AT_MOST].contains(&key))
        .filter(|process| match &process.figures {
            Err(_) => true,
            Ok(_) => any && !has(process) && !(key == "heap.live_max" && collections(process) == Some(0.0)),
        })
        .collect();
    let first = silent.first()?;
    let word = first.runtime.word();
    let why = match (&first.figures, &first.missing) {
        (Err(why), _) => why.clone(),
        (Ok(_), Some(why)) => why.to_owned(),
        (Ok(_), None) => format!("{word} did not report it there"),
    };
    let all = reports.iter().filter(|process| process.runtime == first.runtime).count();
    Some(match (all, &first.figures) {
        (1, _) => why,
        (_, Err(_)) => format!("{} of {all} {word} processes reported nothing: {why}", silent.len()),
        (_, Ok(_)) => format!("{} of {all} {word} processes did not report it: {why}", silent.len()),
    })
}

fn collections(process: &RuntimeReport) -> Option<f64> {
    process.figures.iter().flatten().find(|figure| figure.key == "gc.count").map(|figure| figure.value)
}

fn source(sources: &[(Runtime, usize)]) -> String {
    let parts: Vec<String> = sources
        .iter()
        .map(|(runtime, count)| match count {
            1 => runtime.word().to_owned(),
            count => format!("{} × {count}", runtime.word()),
        })
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(runtime: Runtime, bytes: Option<f64>) -> RuntimeReport {
        let figures = match bytes {
            Some(bytes) => Ok(vec![
                RuntimeFigure::exact("alloc.bytes", bytes),
                RuntimeFigure::noisy("gc.pause_max", bytes),
            ]),
            None => Err("it was killed".to_owned()),
        };
        RuntimeReport { runtime, pid: 1, figures, missing: None }
    }

    fn value(readings: &[Reading], key: &str) -> Result<f64, String> {
        readings.iter().find(|reading| reading.key == key).expect("a reading").value.clone()
    }

    #[test]
    fn bytes_of_a_tree_are_added_and_pauses_are_not() {
        let all = readings(&[process(Runtime::Ghc, Some(10.0)), process(Runtime::Ghc, Some(4.0))], "none");
        assert_eq!(value(&all, "alloc.bytes"), Ok(14.0));
        assert_eq!(value(&all, "gc.pause_max"), Ok(10.0));
        assert_eq!(all[0].source, "ghc × 2");
    }

    #[test]
    fn collections_below_the_tick_of_a_clock_took_an_unknown_time() {
        let mut one = process(Runtime::Racket, Some(0.0));
        let pause = |one: &RuntimeReport| value(&readings(std::slice::from_ref(one), "none"), "gc.pause_max");
        assert_eq!(pause(&one), Ok(0.0), "without a collection nothing paused");
        one.figures.as_mut().expect("figures").push(RuntimeFigure::exact("gc.count", 3.0));
        let why = "racket: the collections took less than its clock can measure";
        assert_eq!(pause(&one), Err(why.to_owned()));
    }

    #[test]
    fn one_silent_process_makes_the_total_absent() {
        let all = readings(&[process(Runtime::Ghc, Some(10.0)), process(Runtime::Ghc, None)], "none");
        assert_eq!(
            value(&all, "alloc.bytes"),
            Err("1 of 2 ghc processes reported nothing: it was killed".to_owned())
        );
    }

    #[test]
    fn one_process_without_a_figure_makes_its_total_absent() {
        let mut silent = process(Runtime::Ghc, Some(4.0));
        silent.figures =
            Ok(vec![RuntimeFigure::exact("alloc.bytes", 4.0), RuntimeFigure::exact("gc.count", 0.0)]);
        let mut whole = process(Runtime::Ghc, Some(10.0));
        whole.figures.as_mut().expect("figures").push(RuntimeFigure::exact("heap.live_max", 9.0));
        let all = readings(&[whole, silent], "none");
        assert_eq!(value(&all, "alloc.bytes"), Ok(14.0));
        assert_eq!(
            value(&all, "gc.pause_max"),
            Err("1 of 2 ghc processes did not report it: ghc did not report it there".to_owned())
        );
        assert_eq!(
            value(&all, "heap.live_max"),
            Ok(9.0),
            "a process without collections has seen nothing alive"
        );
    }

    #[test]
    fn a_runtime_that_never_counts_leaves_the_others_as_they_are() {
        let all = readings(&[process(Runtime::Perl, None), process(Runtime::Node, Some(3.0))], "none");
        assert_eq!(value(&all, "alloc.bytes"), Ok(3.0));
        assert_eq!(value(&readings(&[], "none"), "gc.count"), Err("none".to_owned()));
        assert_eq!(all[0].source, "node; without perl", "perl allocates, too");
        let pause = all.iter().find(|reading| reading.key == "gc.pause_max").expect("a reading");
        assert_eq!(pause.source, "node", "perl has no collector");
    }
}
