//! The series of a subject, with one point for each run.

use crate::store::StoredPoint;
use scruple_core::judge;
use scruple_core::metric::{self, DEFAULT_METRICS, Metric, Quality};
use scruple_core::sample::Sample;
use scruple_stats::changepoint::{self, ChangePoint, FoundChanges, SeriesOptions, StepSize};
use scruple_stats::paired::Why;
use scruple_stats::quantile::median;
use scruple_stats::sorting::{self, SortedMap};

/// The runs of one machine class, and what was left out.
pub struct ChosenRuns {
    /// The name of the subject.
    pub subject: String,
    /// The machine class; `None` means all classes.
    pub machine: Option<String>,
    /// The runs, oldest first.
    pub points: Vec<StoredPoint>,
    /// The number of runs of each other class.
    pub left_out: SortedMap<String, usize>,
}

/// The values of a metric over the runs.
pub struct Trend {
    /// The metric of the series.
    pub metric: Metric,
    /// The value of each run that has one: the index of the run, and the median of its readings.
    pub values: Vec<(usize, f64)>,
    /// Whether the metric is a count and the readings of every run repeat.
    pub exact: bool,
    /// The result of the search for changes, or why there is none.
    pub found: Result<SeriesChanges, Why>,
}

/// The result of the search for changes.
pub struct SeriesChanges {
    /// The change points. Their positions are indices of `values`.
    pub changes: Vec<ChangePoint>,
    /// The series with its noise, if the metric is noisy.
    pub noisy: Option<FoundChanges>,
}

/// The accepted probability of reporting a change in a series without any.
const ERROR: f64 = 0.01;

/// Returns the trends of these runs in the requested metrics, or by default in those that tables show.
pub fn trends(points: &[StoredPoint], asked: &[String]) -> Vec<Trend> {
    let mut keys: Vec<&String> = points.iter().flat_map(|point| point.samples.keys()).collect();
    sorting::by_key(&mut keys, |key| {
        let place = metric::METRICS.iter().position(|metric| metric.key == key.as_str());
        (place.unwrap_or(usize::MAX), *key)
    });
    keys.dedup();
    keys.into_iter().filter_map(|key| trend(points, key, asked)).collect()
}

fn trend(points: &[StoredPoint], key: &str, asked: &[String]) -> Option<Trend> {
    let samples: Vec<(usize, &Sample)> = points
        .iter()
        .enumerate()
        .filter_map(|(place, point)| Some((place, point.samples.get(key)?)))
        .filter(|(_, sample)| !sample.readings.is_empty())
        .collect();
    let declared = judge::declaration(key, samples.first()?.1);
    let wanted = match asked.is_empty() {
        true => DEFAULT_METRICS.contains(&key) || key == "instructions",
        false => asked.iter().any(|pattern| declared.matches(pattern)),
    };
    if !wanted {
        return None;
    }
    let values: Vec<(usize, f64)> =
        samples.iter().map(|(place, sample)| (*place, median(&sample.readings))).collect();
    // A count that was read once in a run does not show that it repeats.
    let repeated = |sample: &Sample| sample.worth() == Quality::Exact || sample.readings.len() > 1;
    let exact = samples
        .iter()
        .all(|(_, sample)| sample.quality <= Quality::Near && sample.repeats() && repeated(sample));
    let plain: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let found = match exact {
        true => Ok(SeriesChanges { changes: changepoint::exact(&plain), noisy: None }),
        false => {
            let options = SeriesOptions { error: ERROR, ..SeriesOptions::default() };
            changepoint::noisy(&plain, &options)
                .map(|series| SeriesChanges { changes: series.changes.clone(), noisy: Some(series) })
        }
    };
    Some(Trend { metric: declared, values, exact, found })
}

/// Whether a step is a change for the worse.
pub fn is_worse(metric: &Metric, step: StepSize) -> bool {
    step.rises() == (metric.better == metric::Better::Lower)
}
