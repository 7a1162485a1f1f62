//! Predicts how long a history will take: once after the first version was built, and once after its first launch.

use super::Campaign;
use crate::history::artefacts::Artefacts;
use crate::history::schedule::Ahead;
use scruple_core::history::State;
use scruple_core::stats::quantile::median;
use scruple_core::subject::Subject;
use scruple_core::unit::{Unit, quantity};
use std::time::Duration;

/// No forecast is printed for a history that is expected to take less than this.
const SHORT: Duration = Duration::from_secs(60);

/// The approximate number of launches in the memory and counting passes of one version.
const COUNTED: usize = 10;
/// The fixed overhead of a farm unit, in addition to its work.
const UNIT: Duration = Duration::from_millis(500);

/// Which forecasts were printed, and what they are based on.
#[derive(Default)]
pub(super) struct Forecast {
    /// The time of the first launch.
    pub(super) launch: Option<Duration>,
    builds: bool,
    rounds: bool,
    rebuilds: bool,
}

impl Campaign {
    /// Prints the expected time of the remaining builds, after the first build.
    pub(super) fn foretell_builds(&mut self, artefacts: &Artefacts) {
        if std::mem::replace(&mut self.forecast.builds, true) || self.effort.adaptive {
            return;
        }
        let open = |state| matches!(state, State::Queued | State::Skipped);
        let left = self.history.entries.iter().filter(|entry| open(entry.version.state)).count();
        let each = Duration::from_nanos(artefacts.time);
        if each * left as u32 > SHORT {
            self.progress.say(&format!(
                "{left} more builds will take about {}, if each takes as long as the first; ^C keeps what was done",
                told(each * left as u32)
            ));
        }
    }

    /// Prints the expected time of building versions again, before their second builds.
    pub(super) fn foretell_rebuilds(&mut self, set: &[usize]) {
        if std::mem::replace(&mut self.forecast.rebuilds, true) {
            return;
        }
        let took = |index: &usize| {
            let sample = self.build_times(*index)?;
            let left = self.effort.builds.saturating_sub(sample.readings.len() as u32);
            Some(Duration::from_nanos(*sample.readings.first()? as u64) * left)
        };
        let all: Duration = set.iter().filter_map(took).sum();
        if all > SHORT {
            self.progress.say(&format!(
                "building {} versions {} times each will take about {} more; ^C keeps what was read",
                set.len(),
                self.effort.builds,
                told(all)
            ));
        }
    }

    /// Prints the expected time of all rounds, before the first round.
    pub(super) fn foretell_rounds(&mut self, launches: usize) {
        let Some(each) = self.forecast.launch else { return };
        if std::mem::replace(&mut self.forecast.rounds, true) {
            return;
        }
        let all = each * launches as u32 * self.effort.rounds;
        let budget = self.effort.budget.map(|budget| budget.saturating_sub(self.spent()));
        let least = each * launches as u32 * self.effort.least();
        let bounded = budget.map_or(all, |budget| all.min(budget.max(least)));
        if bounded > SHORT {
            let bound = match budget {
                Some(_) if bounded < all => ", which --budget bounds",
                Some(_) => "; --budget bounds it",
                None => "; --runs says how many",
            };
            self.progress.say(&format!(
                "up to {} rounds of {launches} launches will take about {}{bound}; ^C keeps what was read",
                self.effort.rounds,
                told(bounded)
            ));
        }
    }
}

impl Campaign {
    /// Prints the expected time of farm units on this many nodes before they are sent, using the known times of builds
    /// and launches.
    pub(super) fn foretell_units(&self, ahead: &Ahead, places: usize) {
        let (builds, count, beside) = (ahead.builds.len(), ahead.count.len(), ahead.beside.len());
        let mut work = Vec::new();
        for (number, what) in [(builds, "to build"), (count, "to count"), (beside, "to time")] {
            if number > 0 {
                work.push(format!("{number} {what}"));
            }
        }
        let all = self.history.entries.len();
        let head = format!("next, of {all} versions: {}", work.join(", "));
        let arms = &self.history.run.arms;
        let known = |key: &str| -> Vec<f64> {
            let whole = arms.iter().filter(|arm| !matches!(arm.subject, Subject::Case { .. }));
            whole.filter_map(|arm| arm.sample(key)).flat_map(|sample| sample.readings.clone()).collect()
        };
        let (build, launch) = (known("build.time"), known("time.wall"));
        if (builds > 0 && build.is_empty()) || (count + beside > 0 && launch.is_empty()) {
            self.progress.say(&format!("{head}; what one takes is not known yet"));
            return;
        }
        let launches = count * COUNTED + beside * ahead.rounds as usize;
        let each = |readings: &[f64]| if readings.is_empty() { 0.0 } else { median(readings) };
        let total = builds as f64 * each(&build)
            + (launches * self.subjects.len()) as f64 * each(&launch)
            + (builds + places) as f64 * UNIT.as_nanos() as f64;
        let time = |nanoseconds: f64| told(Duration::from_nanos(nanoseconds as u64));
        let on = if places == 1 { "1 node".to_owned() } else { format!("{places} nodes") };
        self.progress.say(&format!(
            "{head}; about {} of nodes' time, {} on {on}",
            time(total),
            time(total / places as f64)
        ));
    }
}

fn told(time: Duration) -> String {
    quantity(time.as_nanos() as f64, &Unit::Nanoseconds)
}
