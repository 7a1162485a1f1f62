//! Events. An event is a set of changes, in several series, that one version may have caused.

use scruple_core::history::{Change, ChangeForm, Series};
use scruple_core::metric::{Quality, metric};
use scruple_stats::sorting;

/// Changes that are grouped because one version most probably caused all of them.
pub(crate) struct HistoryEvent<'a> {
    /// The number of the event in the order of the versions. The chart and the tables use the same number.
    pub(crate) number: usize,
    /// The index of the version that most probably caused the event.
    pub(crate) at: usize,
    /// The indices of all versions that may have caused the event: the smallest set among its changes.
    pub(crate) set: Vec<usize>,
    /// The index of the last version that certainly has the old levels.
    pub(crate) before: usize,
    /// The changes of the event, each with its series.
    pub(crate) changes: Vec<(&'a Series, &'a Change)>,
    /// The largest difference that does not matter.
    margin: f64,
}

/// Whether an event as a whole is an improvement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EventDirection {
    /// The deciding metric became worse, and the change is not accepted as intended.
    Regression,
    /// The deciding metric became better.
    Improvement,
    /// The deciding metric has no better direction, or it became worse and the change is accepted.
    Change,
}

impl EventDirection {
    /// Returns the outcome of a change of one metric. `better` is `None` if neither direction is better.
    pub(crate) fn of_metric(metric: &str, better: Option<bool>) -> EventDirection {
        match better {
            // Larger artefacts, such as a longer script, are not worse for the users of a program.
            _ if metric.starts_with("build.") => EventDirection::Change,
            Some(true) => EventDirection::Improvement,
            Some(false) => EventDirection::Regression,
            None => EventDirection::Change,
        }
    }

    /// Returns the word at the beginning of the event's line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            EventDirection::Regression => "Regression",
            EventDirection::Improvement => "Improvement",
            EventDirection::Change => "Change",
        }
    }
}

/// The metrics, the most important first. The first one that changed decides whether an event is an improvement.
const WEIGHT: [&str; 7] =
    ["time.wall", "time.cpu", "alloc.bytes", "malloc.bytes", "memory.peak", "heap.live_max", "malloc.peak"];

/// Returns the rank of a change of a metric. Changes below the margin rank after all others; within both groups,
/// changes of metrics of the build rank last.
pub(crate) fn rank(metric: &str, ratio: f64, margin: f64) -> (bool, usize) {
    let place = WEIGHT.iter().position(|key| *key == metric);
    let place = place.unwrap_or(WEIGHT.len() + usize::from(metric.starts_with("build.")));
    (is_below(ratio, margin), place)
}

fn is_below(ratio: f64, margin: f64) -> bool {
    (ratio - 1.0).abs() < margin
}

/// Whether a metric is a count, by its declaration or by its readings. Metrics that programs define count as counts,
/// since nothing else is known of them.
fn is_count(series: &Series) -> bool {
    series.exact || metric(&series.metric).is_none_or(|metric| metric.quality <= Quality::Near)
}

impl HistoryEvent<'_> {
    /// Returns the outcome of the event as a whole: that of the most important change with a better direction.
    pub(crate) fn outcome(&self) -> EventDirection {
        let known = self.changes.iter().filter(|(_, change)| change.better.is_some());
        let first = known.min_by_key(|(series, change)| self.rank(series, change));
        first.map_or(EventDirection::Change, |(series, change)| {
            match EventDirection::of_metric(&series.metric, change.better) {
                EventDirection::Regression if change.accepted.is_some() => EventDirection::Change,
                outcome => outcome,
            }
        })
    }

    fn rank(&self, series: &Series, change: &Change) -> (bool, usize) {
        rank(&series.metric, change.ratio, self.margin)
    }

    /// Whether all changes of the event are those of counts, and below the margin.
    pub(crate) fn is_minor(&self) -> bool {
        self.changes.iter().all(|(series, change)| is_count(series) && is_below(change.ratio, self.margin))
    }

    /// Returns the size of the event's most important change, as the absolute logarithm of its ratio.
    pub(crate) fn size(&self) -> f64 {
        let first = self.changes.iter().min_by_key(|(series, change)| self.rank(series, change));
        first.map_or(0.0, |(_, change)| change.ratio.abs().ln().abs())
    }

    /// Whether any change of the event is for the worse and not accepted.
    pub(crate) fn worsens(&self) -> bool {
        self.changes.iter().any(|(_, change)| change.better == Some(false) && change.accepted.is_none())
    }

    /// Returns the reason why the event is intended, if one is given.
    pub(crate) fn accepted(&self) -> Option<&str> {
        self.changes.iter().find_map(|(_, change)| change.accepted.as_deref())
    }

    /// Returns the last version of a spike, if the event is one.
    pub(crate) fn until(&self) -> Option<usize> {
        let spikes = self.changes.iter().filter(|(_, change)| change.form == ChangeForm::Spike);
        spikes.filter_map(|(_, change)| change.until).max()
    }

    /// Returns the version (`at`) of the change that this event reverts, if it reverts one.
    pub(crate) fn undoes(&self) -> Option<usize> {
        let reverts = self.changes.iter().filter(|(_, change)| change.form == ChangeForm::Revert);
        reverts.filter_map(|(_, change)| change.undoes).min()
    }

    /// Returns the last version that may have caused the event.
    pub(crate) fn last(&self) -> usize {
        self.set.last().copied().unwrap_or(self.at)
    }
}

/// Groups the changes of these series into events, each of which one version may have caused.
pub(crate) fn of<'a>(shown: &[&'a Series], margin: f64) -> Vec<HistoryEvent<'a>> {
    let mut changes: Vec<(&Series, &Change)> =
        shown.iter().flat_map(|series| series.changes.iter().map(|change| (*series, change))).collect();
    // The most certain changes come first, and the less certain ones join their events.
    sorting::by_key(&mut changes, |(_, change)| (change.set.len(), change.at));
    let mut events: Vec<HistoryEvent<'a>> = Vec::new();
    for (series, change) in changes {
        let joins = |event: &&mut HistoryEvent<'_>| {
            let same = event.at == change.at || change.set.contains(&event.at);
            let form = event.changes.iter().any(|(_, other)| other.form == change.form);
            let taken = event.changes.iter().any(|(other, _)| std::ptr::eq(*other, series));
            same && form && !taken
        };
        // Several versions of the set may have changed something: the most probable one, or else the one whose change in
        // the same direction is the largest, is the likeliest cause.
        let likelihood = |event: &HistoryEvent<'_>| {
            let alike = event
                .changes
                .iter()
                .map(|(_, other)| other.ratio.abs().ln() * change.ratio.abs().ln().signum());
            (event.at == change.at, alike.fold(f64::NEG_INFINITY, f64::max))
        };
        let likelier = |one: &&mut HistoryEvent<'_>, other: &&mut HistoryEvent<'_>| {
            let ((exact, size), (other_exact, other_size)) = (likelihood(one), likelihood(other));
            exact.cmp(&other_exact).then(size.total_cmp(&other_size)).reverse()
        };
        match events.iter_mut().filter(joins).min_by(likelier) {
            Some(event) => {
                event.changes.push((series, change));
                event.before = event.before.max(change.before);
            }
            None => events.push(HistoryEvent {
                number: 0,
                at: change.at,
                set: change.set.clone(),
                before: change.before,
                changes: vec![(series, change)],
                margin,
            }),
        }
    }
    sorting::by_key(&mut events, |event| event.at);
    for (index, event) in events.iter_mut().enumerate() {
        event.number = index + 1;
        let place = |one: &Series| shown.iter().position(|series| std::ptr::eq(*series, one));
        // The change of the deciding metric comes first, the others follow in the order of tables.
        sorting::by_key(&mut event.changes, |(series, _)| place(series));
        let of = |i: &usize| event.rank(event.changes[*i].0, event.changes[*i].1);
        if let Some(first) = (0..event.changes.len()).min_by_key(of) {
            event.changes[..=first].rotate_right(1);
        }
    }
    events
}

/// Sorts events in the order of tables: regressions come first, and of these the largest.
pub(crate) fn worst_first<'e, 'a: 'e>(
    events: impl Iterator<Item = &'e HistoryEvent<'a>>,
) -> Vec<&'e HistoryEvent<'a>> {
    let mut sorted: Vec<&HistoryEvent<'_>> = events.collect();
    sorting::by(&mut sorted, |one, other| {
        let class =
            |event: &HistoryEvent<'_>| (event.outcome() != EventDirection::Regression, !event.worsens());
        class(one)
            .cmp(&class(other))
            .then(other.size().total_cmp(&one.size()))
            .then(one.number.cmp(&other.number))
    });
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::report::fixture::rich;

    #[test]
    fn a_wide_set_joins_the_exact_change_inside_it() {
        let mut made = rich();
        let series = &mut made.judgement.series;
        // The time may have changed at any of three versions; the allocations show which one it was.
        series[1].changes[1].set = vec![12, 13, 14];
        series[1].changes[1].at = 14;
        let shown: Vec<&Series> = made.judgement.series.iter().collect();
        let events = of(&shown, 0.02);
        let joined = events.iter().find(|event| event.at == 13).expect("the event of the allocations");
        assert_eq!((joined.set.as_slice(), joined.changes.len()), (&[13][..], 3));
        assert!(events.iter().all(|event| event.at != 14));
        let numbers: Vec<usize> = events.iter().map(|event| event.number).collect();
        assert_eq!(numbers, (1..=events.len()).collect::<Vec<_>>());
        assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }

    #[test]
    fn a_wide_set_joins_its_most_probable_version_or_else_the_largest_change_inside_it() {
        let mut made = rich();
        let series = &mut made.judgement.series;
        series.truncate(2);
        let change = series[1].changes[1].clone();
        let exact = |at: usize, ratio: f64| Change { at, set: vec![at], ratio, ..change.clone() };
        series[0].changes = vec![exact(11, 1.0001), exact(12, 0.5), exact(13, 1.05), exact(14, 1.02)];
        let joined = |at: usize, series: &mut [Series]| {
            series[1].changes = vec![Change { at, set: (10..=15).collect(), ratio: 1.08, ..change.clone() }];
            let shown: Vec<&Series> = series.iter().collect();
            of(&shown, 0.02).iter().find(|event| event.changes.len() == 2).map(|event| event.at)
        };
        assert_eq!(joined(14, series), Some(14));
        assert_eq!(joined(15, series), Some(13));
    }

    #[test]
    fn changes_of_one_series_are_never_one_event() {
        let mut made = rich();
        let series = &mut made.judgement.series[1];
        series.changes[1].set = (5..=13).collect();
        let events = of(&[series], 0.02);
        assert!(events.iter().all(|event| event.changes.len() == 1));
        assert_eq!(events.len(), series.changes.len());
    }

    #[test]
    fn larger_artefacts_are_not_a_regression_and_small_exact_changes_are_minor() {
        let mut made = rich();
        made.judgement.series.truncate(4);
        made.judgement.series.drain(..3);
        let series = &mut made.judgement.series;
        let of_events = |series: &[Series]| {
            let shown: Vec<&Series> = series.iter().collect();
            of(&shown, 0.02)
                .iter()
                .map(|event| (event.at, event.outcome(), event.is_minor()))
                .collect::<Vec<_>>()
        };
        let (better, worse) = (EventDirection::Improvement, EventDirection::Regression);
        assert_eq!(of_events(series), [(5, better, false), (13, worse, false), (24, better, true)]);
        series[0].metric = "build.bytes".to_owned();
        assert!(of_events(series).iter().all(|(_, outcome, _)| *outcome == EventDirection::Change));
    }

    #[test]
    fn what_is_below_the_margin_decides_nothing_beside_what_is_beyond_it() {
        let mut made = rich();
        made.judgement.series.truncate(2);
        let change = made.judgement.series[0].changes[0].clone();
        let worse =
            |ratio: f64| Change { ratio, better: Some(ratio < 1.0), accepted: None, ..change.clone() };
        let of_events = |allocated: f64, calls: Option<f64>| {
            let mut series = made.judgement.series.clone();
            (series[0].metric, series[0].exact) = ("alloc.bytes".to_owned(), false);
            (series[1].metric, series[1].exact) = ("malloc.count".to_owned(), true);
            series[0].changes = vec![worse(allocated)];
            series[1].changes = calls.into_iter().map(worse).collect();
            let shown: Vec<&Series> = series.iter().collect();
            let events = of(&shown, 0.02);
            assert_eq!(events.len(), 1);
            (events[0].outcome(), events[0].is_minor(), events[0].changes[0].0.metric.clone())
        };
        let (better, regression) = (EventDirection::Improvement, EventDirection::Regression);
        let (bytes, count) = ("alloc.bytes".to_owned(), "malloc.count".to_owned());
        assert_eq!(of_events(1.0003, Some(0.79)), (better, false, count));
        assert_eq!(of_events(1.03, Some(0.79)), (regression, false, bytes.clone()));
        assert_eq!(of_events(1.0003, Some(0.999)), (regression, true, bytes.clone()));
        assert_eq!(of_events(1.0003, None), (regression, true, bytes));
    }

    #[test]
    fn time_outweighs_memory_and_a_reason_excuses() {
        let made = rich();
        let shown: Vec<&Series> = made.judgement.series.iter().collect();
        let events = of(&shown, 0.02);
        let outcome = |at: usize| events.iter().find(|event| event.at == at).map(HistoryEvent::outcome);
        assert_eq!(outcome(5), Some(EventDirection::Improvement), "faster, though it takes more memory");
        assert_eq!(outcome(13), Some(EventDirection::Regression));
        assert_eq!(outcome(33), Some(EventDirection::Change), "accepted");
        let order: Vec<usize> = worst_first(events.iter()).iter().map(|event| event.number).collect();
        assert_eq!(order, [3, 2, 1, 6, 4, 7, 5]);
    }
}
