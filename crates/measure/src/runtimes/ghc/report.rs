//! Parses the runtime's own reports: one line (`-t`) or a page (`-s`).

use crate::runtimes::figures::RuntimeFigure;
use scruple_core::metric::Quality;

/// The content of either report. Sizes are in bytes, times in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GhcReport {
    /// The number of bytes allocated.
    pub allocated: f64,
    /// The number of collections.
    pub collections: f64,
    /// The number of collections of younger generations; `None` in the one-line report.
    pub minor: Option<f64>,
    /// The number of collections of the oldest generation; `None` in the one-line report.
    pub major: Option<f64>,
    /// The largest amount of live data at a major collection.
    pub max_live: f64,
    /// The largest amount of memory held, which both reports round to whole MiB.
    pub in_use: f64,
    /// The number of bytes that the collector copied; `None` in the one-line report.
    pub copied: Option<f64>,
    /// The longest pause, in seconds with a resolution of 0.1 ms; `None` in the one-line report.
    pub longest_pause: Option<f64>,
    /// Processor and elapsed time of the program without collections.
    pub mutator: (f64, f64),
    /// Processor and elapsed time of collections.
    pub collecting: (f64, f64),
    /// Processor and elapsed time from start to end; `None` in the one-line report.
    pub total: Option<(f64, f64)>,
}

impl GhcReport {
    /// The report as figures. The residency is exact, but it was last determined at a major collection.
    pub fn figures(&self) -> Vec<RuntimeFigure> {
        let mut figures = vec![
            RuntimeFigure::exact("alloc.bytes", self.allocated),
            RuntimeFigure::exact("gc.count", self.collections),
            RuntimeFigure::noisy("gc.time", self.collecting.1 * 1e9),
            RuntimeFigure::exact("heap.live_max", self.max_live),
            RuntimeFigure::of("heap.peak", self.in_use, Quality::Near),
            RuntimeFigure::noisy("ghc.mutator", self.mutator.0 * 1e9),
        ];
        let mut optional = |key, value: Option<f64>, exact: bool| {
            if let Some(value) = value {
                figures.push(if exact {
                    RuntimeFigure::exact(key, value)
                } else {
                    RuntimeFigure::noisy(key, value)
                });
            }
        };
        optional("gc.minor", self.minor, true);
        optional("gc.major", self.major, true);
        optional("ghc.copied", self.copied, true);
        optional("gc.pause_max", self.longest_pause.map(|seconds| seconds * 1e9), false);
        figures
    }
}

/// Reads whichever report the text contains. If there are several, the last one counts.
pub fn read(text: &str) -> Option<GhcReport> {
    one_line(text).or_else(|| page(text))
}

/// The beginning of a one-line report.
pub const BEGIN: &str = "<<ghc: ";
/// The end of a one-line report.
pub const END: &str = ":ghc>>";

/// Parses `<<ghc: 240851528 bytes, 230 GCs, …, 10M in use, … MUT (… elapsed), … GC (… elapsed) :ghc>>`.
pub fn one_line(text: &str) -> Option<GhcReport> {
    let start = text.rfind(BEGIN)? + BEGIN.len();
    let line = &text[start..start + text[start..].find(END)?];
    let mut report = GhcReport::default();
    for part in line.split(", ") {
        let words: Vec<&str> = part.split_whitespace().collect();
        match words.as_slice() {
            [bytes, "bytes"] => report.allocated = number(bytes)?,
            [count, "GCs"] => report.collections = number(count)?,
            [both, "avg/max", ..] => report.max_live = number(both.split('/').nth(1)?)?,
            [held, "in", "use"] => report.in_use = number(held.trim_end_matches('M'))? * 1024.0 * 1024.0,
            [cpu, "MUT", elapsed, ..] => report.mutator = (number(cpu)?, number(elapsed)?),
            [cpu, "GC", elapsed, ..] => report.collecting = (number(cpu)?, number(elapsed)?),
            _ => {}
        }
    }
    Some(report)
}

/// Parses the full report. GHC prints it the same way in every locale.
pub fn page(text: &str) -> Option<GhcReport> {
    let text = &text[text
        .rfind(" bytes allocated in the heap")
        .map(|at| text[..at].rfind('\n').map_or(0, |n| n + 1))?..];
    let leading = |ending: &str| {
        text.lines()
            .find(|line| line.contains(ending))
            .and_then(|line| number(line.split_whitespace().next()?))
    };
    let times = |name: &str| {
        let line =
            text.lines().find(|line| line.trim_start().starts_with(name) && line.contains("elapsed)"))?;
        let words: Vec<f64> = line.split_whitespace().filter_map(number).collect();
        Some((*words.first()?, *words.get(1)?))
    };
    let mut report = GhcReport {
        allocated: leading("bytes allocated in the heap")?,
        copied: leading("bytes copied during GC"),
        max_live: leading("bytes maximum residency").unwrap_or(0.0),
        in_use: leading("total memory in use").unwrap_or(0.0) * 1024.0 * 1024.0,
        mutator: times("MUT ")?,
        collecting: times("GC ")?,
        total: times("Total "),
        ..GhcReport::default()
    };
    for line in text.lines().filter(|line| line.trim_start().starts_with("Gen ")) {
        // Gen  0       172 colls,     0 par    0.076s   0.221s     0.0013s    0.0207s
        // Gen  1        72 syncs,                       0.000s     0.0000s    0.0000s
        // Gen  1      concurrent,              0.012s   0.012s     0.0002s    0.0004s
        let words: Vec<&str> = line.split_whitespace().skip(2).collect();
        // With `--nonmoving-gc` the oldest generation has three lines. The program is stopped in its preparation (the
        // first) and in its synchronisation (the second), and runs during the third.
        match words.as_slice() {
            [count, "colls,", ..] => {
                let count = number(count)?;
                report.minor = Some(report.collections);
                report.major = Some(count);
                report.collections += count;
            }
            [_, "syncs,", ..] => {}
            _ => continue,
        }
        let pause = words.last().and_then(|word| number(word));
        report.longest_pause = [report.longest_pause, pause].into_iter().flatten().reduce(f64::max);
    }
    report.major?;
    Some(report)
}

/// Parses a number that may have thousands separators, brackets around it, and an `s` for seconds.
fn number(word: &str) -> Option<f64> {
    let word = word.trim_matches(['(', ')', ',']).trim_end_matches('s');
    word.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE_LINE: &str = include_str!("../../../tests/data/runtimes/ghc/t-oneline.stderr.txt");
    const TWO: &str = include_str!("../../../tests/data/runtimes/ghc/t-two-processes.stderr.txt");
    const PAGE: &str = include_str!("../../../tests/data/runtimes/ghc/s-summary.stderr.txt");
    const THREADED: &str = include_str!("../../../tests/data/runtimes/ghc/s-summary-threaded.stderr.txt");

    const NONMOVING: &str = include_str!("../../../tests/data/runtimes/ghc/s-summary-nonmoving.stderr.txt");

    #[test]
    fn the_one_line_is_read() {
        let report = read(ONE_LINE).expect("a report");
        assert_eq!((report.allocated, report.collections), (240_851_528.0, 230.0));
        assert_eq!((report.max_live, report.in_use), (3_202_632.0, 10_485_760.0));
        assert_eq!((report.mutator, report.collecting), ((0.019, 0.051), (0.106, 0.329)));
        assert_eq!((report.minor, report.longest_pause), (None, None));
        assert_eq!(read(TWO).expect("the last").allocated, 119_016.0);
    }

    #[test]
    fn the_page_is_read() {
        let report = read(PAGE).expect("a report");
        assert_eq!((report.allocated, report.copied), (240_851_528.0, Some(495_154_072.0)));
        assert_eq!((report.collections, report.minor, report.major), (230.0, Some(172.0), Some(58.0)));
        assert_eq!((report.max_live, report.in_use), (3_202_632.0, 10_485_760.0));
        assert_eq!(report.longest_pause, Some(0.0209));
        assert_eq!((report.mutator, report.collecting), ((0.019, 0.089), (0.110, 0.320)));
    }

    #[test]
    fn the_threaded_page_is_read() {
        let report = read(THREADED).expect("a report");
        assert_eq!((report.allocated, report.longest_pause), (240_873_536.0, Some(0.0288)));
        assert_eq!(report.collecting, (0.112, 0.424));
    }

    #[test]
    fn the_lines_of_a_concurrent_collector_are_not_generations() {
        let report = read(NONMOVING).expect("a report");
        assert_eq!((report.collections, report.minor, report.major), (266.0, Some(219.0), Some(47.0)));
        assert_eq!(report.longest_pause, Some(0.0080));
    }

    #[test]
    fn other_text_is_no_report() {
        assert_eq!(read("Hello, <<ghc: world"), None);
        assert_eq!(read(""), None);
        assert_eq!(page("     x bytes allocated in the heap\n"), None);
    }
}
