//! Predicts how long a history will take: once when the first version was built, and once when it was launched.

use super::Campaign;
use crate::history::artefacts::Artefacts;
use scruple_core::history::State;
use scruple_core::unit::{Unit, quantity};
use std::time::Duration;

/// Shorter histories need no warning.
const SHORT: Duration = Duration::from_secs(60);

/// What was predicted, and from what.
#[derive(Default)]
pub(super) struct Forecast {
    /// How long the first launch took.
    pub(super) launch: Option<Duration>,
    builds: bool,
    rounds: bool,
    rebuilds: bool,
}

impl Campaign {
    /// After the first build, reports the expected time of the others.
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

    /// Before versions are built for the second time, says what that takes.
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

    /// Before the first round, says what all rounds take.
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

fn told(time: Duration) -> String {
    quantity(time.as_nanos() as f64, &Unit::Nanoseconds)
}
