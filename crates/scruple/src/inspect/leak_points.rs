//! What the launches of a search for leaks have read.

use super::leak_schedule::LeakSchedule;
use scruple_core::metric::Pass;
use scruple_core::sample::Reading;
use scruple_measure::runtimes::{LIVE, LIVE_AT_MOST};
use serde::Serialize;
use std::time::Duration;

/// A metric, with the pass and the instrument that read it.
pub type LeakFigure = (&'static str, Pass, u32);

/// The bytes of malloc that are left at the end.
pub const MALLOC: LeakFigure = ("malloc.live", Pass::Counting, 1);

/// The largest resident size.
pub const RESIDENT: LeakFigure = ("memory.peak", Pass::Memory, 0);

/// The key of malloc's peak.
pub const PEAK: &str = "malloc.peak";

/// The parameter of stored arms that holds the size of the work.
pub const SIZE: &str = "size";

/// The metric that says how often a runtime has collected.
pub const COLLECTIONS: &str = "gc.count";

/// The memory that the metric of the search does not contain: beside the live heap of a language runtime, the bytes of
/// malloc that are left at the end; beside these, the largest resident size.
#[derive(Default)]
pub struct OtherMemory {
    /// The launches that read it, one for each metric and size.
    pub points: Vec<LeakPoint>,
    /// Why the largest resident size is not known although it is needed.
    pub resident_unread: Option<String>,
}

impl OtherMemory {
    /// The launches with this size.
    pub fn at(&self, size: f64) -> impl Iterator<Item = &LeakPoint> {
        self.points.iter().filter(move |point| point.size == size)
    }

    /// The sizes of the work and the values of this metric; none if it was not read.
    pub fn bytes(&self, metric: &str) -> Option<Vec<(f64, f64)>> {
        let points = self.points.iter().filter(|point| point.metric == metric);
        let bytes: Vec<(f64, f64)> = points.map(|point| (point.size, point.bytes())).collect();
        (!bytes.is_empty()).then_some(bytes)
    }
}

/// Runs that did not fit into the budget.
#[derive(Serialize)]
pub struct LeftOut {
    /// The sizes without a launch.
    pub sizes: Vec<String>,
    /// The number of all launches that were not made.
    pub runs: usize,
    /// The expected time of all launches, in nanoseconds.
    pub whole: u64,
}

impl LeftOut {
    /// The launches that a schedule left out, after this many.
    pub fn of(schedule: &LeakSchedule, made: usize) -> Option<LeftOut> {
        let sizes: Vec<String> = schedule.left_out().iter().map(|(_, written)| written.clone()).collect();
        let runs = schedule.count().saturating_sub(made);
        (runs > 0).then(|| LeftOut { sizes, runs, whole: schedule.whole().as_nanos() as u64 })
    }
}

/// A metric that was not available.
#[derive(Serialize)]
pub struct PassedOver {
    /// The key of the metric.
    pub metric: String,
    /// The reason why it was not available.
    pub why: String,
}

/// A launch with one size, in which the metric was read.
pub struct LeakPoint {
    /// The size of the work.
    pub size: f64,
    /// The key of the metric.
    pub metric: &'static str,
    /// All readings of the launch.
    readings: Vec<Reading>,
    /// The wall time of the launch.
    pub wall: Duration,
}

impl LeakPoint {
    /// Creates the point of a launch.
    ///
    /// # Errors
    /// Says why the metric could not be read.
    pub fn of(
        size: f64,
        metric: &'static str,
        readings: Vec<Reading>,
        wall: Duration,
    ) -> Result<LeakPoint, String> {
        match readings.iter().find(|reading| reading.key == metric).map(|reading| &reading.value) {
            None => Err("it was not read".to_owned()),
            Some(Err(why)) => Err(why.clone()),
            Some(Ok(_)) => Ok(LeakPoint { size, metric, readings, wall }),
        }
    }

    /// The reading of a metric, if the launch read it.
    pub fn reading(&self, key: &str) -> Option<&Reading> {
        self.readings.iter().find(|reading| reading.key == key)
    }

    /// The value of a metric, if the launch read it.
    pub fn value(&self, key: &str) -> Option<f64> {
        self.reading(key)?.value.clone().ok()
    }

    /// The value of the metric of the search, in bytes.
    pub fn bytes(&self) -> f64 {
        // A point is created only if there is such a reading.
        self.value(self.metric).unwrap_or(f64::NAN)
    }

    /// The largest possible value of the metric, in bytes, if the collector did not look at the end of the program.
    pub fn at_most(&self) -> Option<f64> {
        self.value(LIVE_AT_MOST).filter(|_| self.metric == LIVE)
    }

    /// The readings on which the verdict rests, which are stored.
    pub fn deciding_readings(&self) -> impl Iterator<Item = &Reading> {
        let bound = self.at_most().map(|_| LIVE_AT_MOST);
        let peak = self.value(PEAK).map(|_| PEAK);
        let keys = [Some(self.metric), bound, peak];
        self.readings.iter().filter(move |reading| keys.contains(&Some(reading.key.as_str())))
    }

    /// The instrument that read a metric; an empty text if none did.
    pub fn source(&self, key: &str) -> &str {
        self.reading(key).map_or("", |reading| &reading.source)
    }
}
