//! Reads the log of collections (`GODEBUG=gctrace=1`), the only report of a stripped program. It has no total of
//! bytes.

use crate::runtimes::figures::RuntimeFigure;

/// Whether a line belongs to the log.
pub(in crate::runtimes) fn is_trace(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|line| stops(line).is_some())
}

/// The figures of a log, summed over all processes that wrote to it. A log without lines means that nothing was
/// collected.
pub(in crate::runtimes) fn figures(text: &str) -> Option<Vec<RuntimeFigure>> {
    let stops: Vec<f64> = text.lines().filter_map(stops).map(|(first, second)| first + second).collect();
    let longest =
        text.lines().filter_map(self::stops).map(|(first, second)| first.max(second)).fold(0.0, f64::max);
    Some(vec![
        RuntimeFigure::noisy("gc.count", stops.len() as f64),
        RuntimeFigure::noisy("gc.time", stops.iter().sum::<f64>() * 1e6),
        RuntimeFigure::noisy("gc.pause_max", longest * 1e6),
    ])
}

/// Parses `gc 24 @0.693s 4%: 0.15+15+0.032 ms clock, …`. The program is stopped during the first and the third phase;
/// the result is their lengths in milliseconds.
fn stops(line: &str) -> Option<(f64, f64)> {
    let rest = line.strip_prefix("gc ")?;
    let (number, rest) = rest.split_once(" @")?;
    number.parse::<u64>().ok()?;
    let (_, rest) = rest.split_once("%: ")?;
    let (clock, _) = rest.split_once(" ms clock, ")?;
    let mut parts = clock.split('+').map(str::parse::<f64>);
    let (first, _, third) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    Some((first, third))
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    #[test]
    fn stops_are_added_and_marking_is_not() {
        let text = include_str!("../../../tests/data/runtimes/go/gctrace.stderr.txt");
        assert!(text.lines().all(|line| is_trace(line.as_bytes())));
        let figures = figures(text).expect("figures");
        assert_eq!(figures[0].value, text.lines().count() as f64);
        assert_eq!(figures[2].value, 4.4e6);
        let forced = include_str!("../../../tests/data/runtimes/go/gctrace-forced.stderr.txt");
        assert_eq!(stops(forced), Some((0.10, 0.005)));
        assert!(!is_trace(b"gc is good"));
    }

    #[test]
    fn damaged_logs_are_survived() {
        let corpus = Corpus::folder(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/runtimes/go"));
        corpus.is_survived_by_text(|text| drop(figures(text)));
    }
}
