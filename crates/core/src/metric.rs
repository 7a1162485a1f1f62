//! The table of metrics: each is declared once, and names, units, help and gates everywhere derive from it.
//!
//! The table is open: a bench program or a language runtime may bring a metric of its own, with its unit, through
//! [`Metric::custom`].

use crate::unit::Unit;
use crate::words::words;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

words! {
    /// Which direction of a metric is an improvement.
    pub enum Better {
        /// Less is better: times, bytes, counts.
        Lower = "lower",
        /// More is better: throughput.
        Higher = "higher",
    }
}

words! {
    /// The pass that weighs a metric: each metric is read in the pass that does not disturb it.
    pub enum Pass {
        /// The program runs untouched; clocks and the kernel's accounting are read.
        Timing = "timing",
        /// The program runs under an exit stop, so that its peak memory can be read; its output is checked here too.
        Memory = "memory",
        /// The allocation counter and the runtime's own counters are attached.
        Counting = "counting",
        /// Nothing is launched: what it took to build the program is noted.
        Build = "build",
    }
}

words! {
    /// How good a figure is, from best to worst. Absence is not a quality: an absent figure carries its reason.
    pub enum Quality {
        /// Counted; the same program in the same circumstances gives the same number.
        Exact = "exact",
        /// Counted, with a small stated error.
        Near = "near",
        /// Measured, and different each time: only the distribution means something.
        Noisy = "noisy",
        /// Extrapolated from a sample of events.
        Sampled = "sampled",
        /// Computed from other figures under an assumption.
        Estimated = "estimated",
    }
}

impl Quality {
    /// The mark beside a figure in tables; nothing for what a reader expects.
    pub fn mark(self) -> &'static str {
        match self {
            Quality::Exact | Quality::Noisy => "",
            Quality::Near => "≈",
            Quality::Sampled => "~",
            Quality::Estimated => "?",
        }
    }
}

/// One metric: its key, unit and meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The key: dotted lower-case words, the same in the command line, JSON and SQL.
    pub key: Cow<'static, str>,
    /// The unit of its readings.
    pub unit: Unit,
    /// Which direction is an improvement.
    pub better: Better,
    /// What its readings are worth when nothing interferes.
    pub quality: Quality,
    /// The pass that weighs it.
    pub pass: Pass,
    /// The column head.
    pub title: Cow<'static, str>,
    /// One line that says what it means.
    pub help: Cow<'static, str>,
}

impl Metric {
    const fn built_in(
        key: &'static str,
        unit: Unit,
        quality: Quality,
        pass: Pass,
        title: &'static str,
        help: &'static str,
    ) -> Metric {
        Metric {
            key: Cow::Borrowed(key),
            unit,
            better: Better::Lower,
            quality,
            pass,
            title: Cow::Borrowed(title),
            help: Cow::Borrowed(help),
        }
    }

    /// A metric that a bench program or a runtime brought; lower is better unless its unit is a rate.
    pub fn custom(key: &str, unit: Unit, quality: Quality, pass: Pass) -> Metric {
        let better = if unit.is_rate() { Better::Higher } else { Better::Lower };
        Metric {
            key: key.to_owned().into(),
            unit,
            better,
            quality,
            pass,
            title: key.to_owned().into(),
            help: "a metric of the measured program's own".into(),
        }
    }

    /// Whether `pattern` names this metric: the key itself, or a family such as `malloc` or `malloc.*`.
    pub fn matches(&self, pattern: &str) -> bool {
        let family = pattern.strip_suffix(".*").unwrap_or(pattern);
        pattern == "all"
            || self.key == family
            || self.key.strip_prefix(family).is_some_and(|rest| rest.starts_with('.'))
    }
}

use Pass::{Build, Counting, Memory, Timing};
use Quality::{Exact, Near, Noisy, Sampled};

/// The metrics Scruple itself knows, in the order of reports.
pub static METRICS: &[Metric] = &[
    Metric::built_in(
        "time.wall",
        Unit::Nanoseconds,
        Noisy,
        Timing,
        "wall",
        "elapsed time, from before the start to after the end",
    ),
    Metric::built_in(
        "time.cpu",
        Unit::Nanoseconds,
        Noisy,
        Timing,
        "cpu",
        "processor time, user and system, of the process and the children it waited for",
    ),
    Metric::built_in(
        "time.user",
        Unit::Nanoseconds,
        Noisy,
        Timing,
        "user",
        "processor time in the program's own code",
    ),
    Metric::built_in(
        "time.sys",
        Unit::Nanoseconds,
        Noisy,
        Timing,
        "sys",
        "processor time in the kernel on the program's behalf",
    ),
    Metric::built_in(
        "time.oncpu",
        Unit::Nanoseconds,
        Noisy,
        Timing,
        "on-cpu",
        "time the first thread spent on a core, by the scheduler's own clock",
    ),
    Metric::built_in(
        "time.wait",
        Unit::Nanoseconds,
        Noisy,
        Timing,
        "wait",
        "time the first thread was ready but waited for a core",
    ),
    Metric::built_in(
        "faults.minor",
        Unit::Count,
        Noisy,
        Timing,
        "minor faults",
        "page faults served without reading from a disk",
    ),
    Metric::built_in(
        "faults.major",
        Unit::Count,
        Noisy,
        Timing,
        "major faults",
        "page faults that read from a disk",
    ),
    Metric::built_in(
        "switches.voluntary",
        Unit::Count,
        Noisy,
        Timing,
        "vol. switches",
        "times the program gave up its core to wait for something",
    ),
    Metric::built_in(
        "switches.involuntary",
        Unit::Count,
        Noisy,
        Timing,
        "invol. switches",
        "times the program was made to give up its core",
    ),
    Metric::built_in("io.read", Unit::Bytes, Noisy, Timing, "disk read", "bytes read from block devices"),
    Metric::built_in(
        "io.write",
        Unit::Bytes,
        Noisy,
        Timing,
        "disk write",
        "bytes written towards block devices",
    ),
    Metric::built_in(
        "memory.peak",
        Unit::Bytes,
        Noisy,
        Memory,
        "peak memory",
        "the largest resident size of any one process of the tree, read at its exit",
    ),
    Metric::built_in(
        "memory.faults",
        Unit::Count,
        Noisy,
        Memory,
        "memory faults",
        "minor page faults in the memory pass: steadier than the resident size",
    ),
    Metric::built_in(
        "memory.private_dirty",
        Unit::Bytes,
        Sampled,
        Memory,
        "private dirty",
        "what the largest process alone costs near the tree's largest: private pages that it changed (--memory-map)",
    ),
    Metric::built_in(
        "memory.pss",
        Unit::Bytes,
        Sampled,
        Memory,
        "proportional",
        "the most of the process tree in memory with shared pages divided among those who share (--memory-map)",
    ),
    Metric::built_in(
        "memory.uss",
        Unit::Bytes,
        Sampled,
        Memory,
        "unique",
        "the most in memory that only one process of the tree has, clean or dirty (--memory-map)",
    ),
    Metric::built_in(
        "malloc.count",
        Unit::Count,
        Exact,
        Counting,
        "mallocs",
        "allocations through malloc and its relatives, over the process tree",
    ),
    Metric::built_in(
        "malloc.bytes",
        Unit::Bytes,
        Exact,
        Counting,
        "malloc bytes",
        "bytes requested through malloc and its relatives",
    ),
    Metric::built_in(
        "malloc.frees",
        Unit::Count,
        Exact,
        Counting,
        "frees",
        "blocks given back through free and realloc",
    ),
    Metric::built_in(
        "malloc.live",
        Unit::Bytes,
        Exact,
        Counting,
        "malloc live",
        "usable bytes still allocated when the program ended",
    ),
    Metric::built_in(
        "malloc.peak",
        Unit::Bytes,
        Exact,
        Counting,
        "malloc peak",
        "the most usable bytes allocated at one time in one process",
    ),
    Metric::built_in(
        "alloc.bytes",
        Unit::Bytes,
        Exact,
        Counting,
        "allocated",
        "bytes allocated, by the language runtime's own count; never added to malloc.bytes, which may hold some too",
    ),
    Metric::built_in(
        "alloc.objects",
        Unit::Count,
        Exact,
        Counting,
        "objects",
        "objects allocated, by the language runtime's own count",
    ),
    Metric::built_in(
        "gc.count",
        Unit::Count,
        Exact,
        Counting,
        "GCs",
        "garbage collections of the language runtime, young and old",
    ),
    Metric::built_in(
        "gc.minor",
        Unit::Count,
        Exact,
        Counting,
        "minor GCs",
        "collections of the young generation only",
    ),
    Metric::built_in("gc.major", Unit::Count, Exact, Counting, "major GCs", "collections of the whole heap"),
    Metric::built_in(
        "gc.time",
        Unit::Nanoseconds,
        Noisy,
        Counting,
        "GC time",
        "time the language runtime spent in garbage collection",
    ),
    Metric::built_in(
        "gc.pause_max",
        Unit::Nanoseconds,
        Noisy,
        Counting,
        "longest pause",
        "the longest stop for garbage collection",
    ),
    Metric::built_in(
        "heap.live_max",
        Unit::Bytes,
        Near,
        Counting,
        "live heap",
        "the most live data that the language runtime saw at a collection; not what malloc.peak counts",
    ),
    Metric::built_in(
        "heap.peak",
        Unit::Bytes,
        Near,
        Counting,
        "heap peak",
        "the most memory that the language runtime held for its heap, garbage included",
    ),
    Metric::built_in(
        "build.time",
        Unit::Nanoseconds,
        Noisy,
        Build,
        "build",
        "elapsed time of the build steps of a version, on top of what earlier builds left unless they began clean",
    ),
    Metric::built_in(
        "build.bytes",
        Unit::Bytes,
        Exact,
        Build,
        "built bytes",
        "the size of a version's artefacts, all files together",
    ),
];

/// The metrics shown when none are asked for.
pub const DEFAULT_METRICS: &[&str] = &[
    "time.wall",
    "time.cpu",
    "memory.peak",
    "malloc.count",
    "malloc.bytes",
    "malloc.peak",
    "alloc.bytes",
    "gc.count",
    "build.time",
    "build.bytes",
];

/// The declared metric of that key.
pub fn metric(key: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.key == key)
}

/// The known key nearest to a mistyped one, for error messages.
pub fn nearest(key: &str) -> &'static str {
    METRICS.iter().min_by_key(|metric| edit_distance(key, &metric.key)).map_or("time.wall", |metric| {
        match &metric.key {
            Cow::Borrowed(key) => key,
            Cow::Owned(_) => "time.wall",
        }
    })
}

/// The number of single-character insertions, deletions and substitutions between two words (Levenshtein 1966).
pub fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_dotted() {
        for (i, metric) in METRICS.iter().enumerate() {
            assert!(metric.key.contains('.'), "{}", metric.key);
            assert!(METRICS[i + 1..].iter().all(|other| other.key != metric.key), "{}", metric.key);
        }
        assert!(DEFAULT_METRICS.iter().all(|key| metric(key).is_some()));
    }

    #[test]
    fn a_family_names_its_members_only() {
        let bytes = metric("malloc.bytes").expect("declared");
        assert!(bytes.matches("malloc") && bytes.matches("malloc.*") && bytes.matches("malloc.bytes"));
        assert!(!bytes.matches("mall") && !bytes.matches("alloc.bytes"));
    }

    #[test]
    fn a_typing_mistake_finds_its_neighbour() {
        assert_eq!(nearest("time.cpuu"), "time.cpu");
        assert_eq!(nearest("maloc.bytes"), "malloc.bytes");
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }
}
