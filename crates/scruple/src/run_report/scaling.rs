//! How the throughput of subjects grows with the number of threads that they use.

use super::Report;
use scruple_core::judge;
use scruple_core::subject::{Arm, Role};
use scruple_stats::sorting;

/// The parameter that holds the number of threads.
pub const THREADS: &str = "threads";

/// A subject that was measured with several numbers of threads.
pub struct Scaling {
    /// The name of the subject, without its version.
    pub name: String,
    /// The version of the subject, if several were measured.
    pub version: Option<String>,
    /// The figures, from the fewest threads to the most.
    pub steps: Vec<ScalingPoint>,
}

/// The figures of a subject with one number of threads.
pub struct ScalingPoint {
    /// The number of threads.
    pub threads: f64,
    /// How often the work was done per second, by all threads together.
    pub rate: f64,
    /// The interval of the rate, if there is one.
    pub interval: Option<(f64, f64)>,
    /// The rate divided by that of the fewest threads.
    pub speed_up: f64,
    /// The speed-up divided by that of an ideal program, whose rate grows as the number of threads does.
    pub efficiency: f64,
    /// How evenly the threads shared the work (Jain's index, 1 if equally); absent if it was not read.
    pub fairness: Option<f64>,
}

impl ScalingPoint {
    /// Returns the rate that an ideal program would have, whose rate grows as the number of threads does.
    pub fn ideal(&self) -> f64 {
        self.rate / self.efficiency
    }
}

/// Returns the subjects that were measured with at least two numbers of threads.
pub fn of(report: &Report<'_>) -> Vec<Scaling> {
    let arms: Vec<&Arm> = report.run.arms_of(Role::Subject).collect();
    let families = judge::families_by(&arms, THREADS).into_iter();
    families.filter_map(|(name, members)| scaling(report, &name, members)).collect()
}

fn scaling(report: &Report<'_>, name: &str, mut members: Vec<(f64, &Arm)>) -> Option<Scaling> {
    sorting::by(&mut members, |one, other| one.0.total_cmp(&other.0));
    let mut steps: Vec<ScalingPoint> = Vec::new();
    let rate = |time: f64| 1e9 / time;
    for (threads, arm) in &members {
        let Some(time) = report.estimate(arm, "time.wall").filter(|time| time.value > 0.0) else { continue };
        let (first, fewest) =
            steps.first().map_or((rate(time.value), *threads), |first| (first.rate, first.threads));
        let speed_up = rate(time.value) / first;
        steps.push(ScalingPoint {
            threads: *threads,
            rate: rate(time.value),
            interval: time.interval.filter(|i| i.low > 0.0).map(|i| (rate(i.high), rate(i.low))),
            speed_up,
            efficiency: speed_up / (threads / fewest),
            fairness: report.estimate(arm, "threads.fairness").map(|fairness| fairness.value),
        });
    }
    let version = members.first().and_then(|(_, arm)| arm.version.clone());
    let name = match &version {
        Some(version) => name.strip_suffix(&format!(" @{version}")).unwrap_or(name),
        None => name,
    };
    (steps.len() > 1).then(|| Scaling { name: name.to_owned(), version, steps })
}
