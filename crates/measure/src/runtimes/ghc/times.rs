//! Times in nanoseconds from the runtime's structure in memory, because the report rounds them to milliseconds.

use super::report::GhcReport;

/// Processor and elapsed time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GhcTimes {
    /// The program without collections.
    pub mutator: (f64, f64),
    /// Collections.
    pub collecting: (f64, f64),
}

/// Finds the times among the words of the structure. All versions of GHC since 8.2 keep six times in a row: processor
/// and elapsed time of the program, of collections, and in all. What stands before them differs. A place counts if the
/// report has the same times, rounded, and the total is no less than its parts; `None` unless there is exactly one.
pub(super) fn find(words: &[u64], report: &GhcReport) -> Option<GhcTimes> {
    let total = report.total?;
    let reported = [report.mutator, report.collecting, total];
    let mut places = words.windows(6).filter(|place| {
        let pairs = || place.chunks(2).map(|pair| (pair[0], pair[1]));
        let rounded = |(own, reported): (u64, f64)| (own as f64 / 1e9 - reported).abs() <= 0.000_501;
        pairs()
            .zip(reported)
            .all(|(own, reported)| rounded((own.0, reported.0)) && rounded((own.1, reported.1)))
            && place[5] >= place[1].saturating_add(place[3])
            && place[1] > 0
            && place[3] > 0
    });
    let place = places.next().filter(|_| places.next().is_none())?;
    let seconds = |at: usize| (place[at] as f64 / 1e9, place[at + 1] as f64 / 1e9);
    Some(GhcTimes { mutator: seconds(0), collecting: seconds(2) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of the structure of GHC 9.0: counts, the start, the program, collections, all.
    const WORDS: [u64; 11] =
        [0, 7, 180_000, 310_000, 912_000, 1_204_000, 301_000, 415_000, 1_402_000, 1_931_000, 0];

    fn report(mutator: f64, collecting: f64, total: f64) -> GhcReport {
        GhcReport {
            mutator: (0.001, mutator),
            collecting: (0.0, collecting),
            total: Some((0.001, total)),
            ..GhcReport::default()
        }
    }

    #[test]
    fn times_below_a_millisecond_are_found_by_the_report() {
        let times = find(&WORDS, &report(0.001, 0.0, 0.002)).expect("found");
        assert_eq!(times, GhcTimes { mutator: (0.000912, 0.001204), collecting: (0.000301, 0.000415) });
    }

    #[test]
    fn a_place_that_the_report_contradicts_is_not_taken() {
        assert_eq!(find(&WORDS, &report(0.002, 0.0, 0.002)), None);
        assert_eq!(find(&WORDS, &GhcReport { total: None, ..report(0.001, 0.0, 0.002) }), None);
        assert_eq!(find(&WORDS[..8], &report(0.001, 0.0, 0.002)), None);
    }

    #[test]
    fn two_places_that_the_report_may_mean_are_none() {
        let twice: Vec<u64> = WORDS.iter().chain(&WORDS).copied().collect();
        assert_eq!(find(&twice, &report(0.001, 0.0, 0.002)), None);
    }
}
