//! Says in advance what a history will cost: the number of builds and launches, and their time.

use super::builds::Builds;
use super::given_launches::{BRIEF, LONG, REPEATS};
use super::journal::Journal;
use super::scope::Scope;
use super::split_into_units::node_count;
use crate::fault::Fault;
use crate::history::expected_work::{AssumedCosts, ExpectedWork};
use crate::history::schedule::{HistoryEffort, VersionProgress};
use crate::progress::{Progress, in_words};
use scruple_core::history::Graph;
use scruple_core::run::Run;
use scruple_core::subject::{Arm, Subject};
use scruple_stats::quantile::{median, quantile, sorted};
use std::time::Duration;

/// No time is printed for a history that is expected to take less than this.
const SHORT: Duration = Duration::from_secs(10);

/// With at least this many recorded builds and launches, a forecast says how far they differ.
const SEVERAL: usize = 5;

/// What was announced about the cost of a history, and what that is based on.
#[derive(Default)]
pub(super) struct Forecast {
    /// The time of the first launch.
    pub(super) launch: Option<Duration>,
    /// The times of another history of this repository; `None` before these were looked up.
    earlier: Option<RecordedTimes>,
    counts_told: bool,
    time_told: bool,
}

/// Recorded times in nanoseconds, in ascending order.
#[derive(Clone, Default)]
struct RecordedTimes {
    builds: Vec<f64>,
    /// The median of each command at each version.
    launches: Vec<f64>,
}

impl RecordedTimes {
    fn of(run: &Run, wanted: impl Fn(&&Arm) -> bool) -> RecordedTimes {
        let arms = || run.arms.iter().filter(|arm| !matches!(arm.subject, Subject::Case { .. }));
        let builds: Vec<f64> = arms()
            .filter_map(|arm| arm.sample("build.time"))
            .flat_map(|sample| sample.readings.clone())
            .collect();
        let launches: Vec<f64> = arms()
            .filter(wanted)
            .filter_map(|arm| arm.sample("time.wall"))
            .map(|sample| median(&sample.readings))
            .collect();
        RecordedTimes { builds: sorted(&builds), launches: sorted(&launches) }
    }
}

/// The state of the history from which a forecast is computed.
pub(super) struct Basis<'a> {
    pub(super) journal: &'a Journal,
    pub(super) builds: &'a Builds,
    pub(super) scope: &'a Scope,
    pub(super) graph: &'a Graph,
    /// The number of instruments.
    pub(super) instruments: u32,
    pub(super) seen: &'a [VersionProgress],
    /// The number of nodes of a farm.
    pub(super) places: Option<usize>,
}

impl Forecast {
    /// Announces the expected cost of the whole history as soon as it is known, and until then how much there is to do.
    pub(super) fn announce(&mut self, basis: &Basis<'_>, progress: &Progress) -> Result<(), Fault> {
        if self.time_told {
            return Ok(());
        }
        let (recorded, whence) = self.recorded(basis)?;
        let built = |entry: &crate::store::StoredVersion| {
            !basis.builds.builder.settings(&entry.version.commit).steps.is_empty()
        };
        let to_build = basis.journal.history.entries.iter().any(built);
        let known = !recorded.launches.is_empty() && (!recorded.builds.is_empty() || !to_build);
        if !known && self.counts_told {
            return Ok(());
        }
        let mean = |readings: &[f64]| readings.iter().sum::<f64>() / readings.len().max(1) as f64;
        let work = |build: f64, launch: f64| basis.expected([build, launch]);
        let [least, most] = work(mean(&recorded.builds), mean(&recorded.launches));
        let amount = match (least.builds, least.launches) == (most.builds, most.launches) {
            true => builds_and_launches(&most),
            false => format!(
                "{} if no version differs, and {} and {} if one in the middle does",
                builds_and_launches(&least),
                most.builds,
                most.launches
            ),
        };
        self.counts_told = true;
        if !known {
            let first = if basis.places.is_some() { "units" } else { "build and launch" };
            progress.say(&format!("up to {amount}; the time is estimated after the first {first}"));
            return Ok(());
        }
        self.time_told = true;
        if most.elapsed <= SHORT {
            return Ok(());
        }
        let several = recorded.launches.len() >= SEVERAL && (!to_build || recorded.builds.len() >= SEVERAL);
        let rough = if several {
            let at = |p: f64| {
                let of = |readings: &[f64]| if readings.is_empty() { 0.0 } else { quantile(readings, p) };
                basis.expected([of(&recorded.builds), of(&recorded.launches)])
            };
            let ([low, _], [_, high]) = (at(0.1), at(0.9));
            format!("{} to {} by the spread of {whence}", in_words(low.elapsed), in_words(high.elapsed))
        } else {
            format!("a rough guess from {whence}")
        };
        let total = match basis.places {
            Some(1) => ", on 1 node".to_owned(),
            Some(places) => format!(" on {places} nodes, {} of nodes' time", in_words(most.total)),
            None => String::new(),
        };
        let bound = bound(&basis.scope.effort);
        progress.say(&format!(
            "up to {amount}: about {}{total} ({rough}){bound}; ^C keeps what was done",
            in_words(most.elapsed)
        ));
        Ok(())
    }

    /// Returns the recorded costs, and where they come from: this history, or else another one of this repository.
    fn recorded(&mut self, basis: &Basis<'_>) -> Result<(RecordedTimes, &'static str), Fault> {
        let mut own = RecordedTimes::of(&basis.journal.history.run, |_| true);
        if own.launches.is_empty() {
            own.launches.extend(self.launch.map(|launch| launch.as_nanos() as f64));
        }
        if !own.launches.is_empty() {
            return Ok((own, "what was built and launched so far"));
        }
        if self.earlier.is_none() {
            self.earlier = Some(basis.earlier()?);
        }
        let earlier = self.earlier.clone().unwrap_or_default();
        Ok((earlier, "what another history of this repository recorded"))
    }
}

impl Basis<'_> {
    /// Returns the costs that the newest other history of this repository with the same commands has recorded.
    fn earlier(&self) -> Result<RecordedTimes, Fault> {
        let ours = |arm: &&Arm| self.scope.subjects.iter().any(|subject| subject.name == arm.name);
        let found = self.journal.find_in_others(|run| {
            let recorded = RecordedTimes::of(run, ours);
            (!recorded.launches.is_empty()).then_some(recorded)
        })?;
        Ok(found.unwrap_or_default())
    }

    /// Returns the expected work, with these times of a build and a launch in nanoseconds: if no version differs, and
    /// if one in the middle does.
    fn expected(&self, [build, launch]: [f64; 2]) -> [ExpectedWork; 2] {
        let launch = Duration::from_nanos(launch as u64);
        let assumed = AssumedCosts {
            build: Duration::from_nanos(build as u64),
            launch,
            counted: self.launches_of_a_count(launch),
            subjects: self.scope.subjects.len(),
            nodes: self.places,
            divided: node_count,
            spent: self.journal.spent(self.scope.effort.adaptive),
        };
        let middle = self.seen.len() / 2;
        let step = |a: usize, b: usize| f64::from((a < middle) != (b < middle));
        let of = |difference: &dyn Fn(usize, usize) -> f64| {
            ExpectedWork::expected(self.seen, self.graph, &self.scope.effort, &assumed, difference)
        };
        [of(&|_, _| 0.0), of(&step)]
    }

    /// Returns the number of launches of the memory and counting passes of one version, if its counts repeat.
    fn launches_of_a_count(&self, launch: Duration) -> usize {
        let enough = self.scope.effort.counted().max(REPEATS);
        let of_a_command = match launch {
            _ if self.scope.given.is_some() => self.scope.given.map_or(0, |given| given.others()),
            launch if launch > LONG => 1 + self.instruments,
            launch if launch > BRIEF => REPEATS * (1 + self.instruments),
            _ => enough + REPEATS * self.instruments,
        };
        let weighed = self.scope.subjects.iter().filter(|subject| !subject.yardstick);
        weighed.map(|subject| if subject.bench { REPEATS } else { of_a_command } as usize).sum()
    }
}

/// Says how long a history took, and how much of it was spent on builds.
pub(super) fn tell_time(elapsed: Duration, builds: Duration, progress: &Progress) {
    if elapsed > SHORT {
        progress.say(&format!("took {}, of which builds took {}", in_words(elapsed), in_words(builds)));
    }
}

/// Says why a command does nothing although there is more to do.
pub(super) fn tell_spent(spent: Duration, budget: Duration, progress: &Progress) {
    progress.say(&format!(
        "nothing more is done within the budget of {}: this history has taken {} of measuring in all its commands; a \
         larger --budget goes on",
        in_words(budget),
        in_words(spent)
    ));
}

fn builds_and_launches(work: &ExpectedWork) -> String {
    let number = |count: usize, one: &str, several: &str| {
        format!("{count} {}", if count == 1 { one } else { several })
    };
    format!("{} and {}", number(work.builds, "build", "builds"), number(work.launches, "launch", "launches"))
}

/// Says which option bounds the work. Those that give the number of launches exclude each other.
fn bound(effort: &HistoryEffort) -> &'static str {
    match effort.budget {
        Some(_) if effort.adaptive => "; --budget bounds it",
        Some(_) => "; --budget bounds the rounds",
        None if effort.launches.is_some() => "; -r says how many",
        None if effort.rounds > 0 => "; --rounds says how many",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_that_bounds_the_work_is_the_one_that_was_given() {
        let of = |launches, rounds, budget| {
            let (adaptive, fill, suspects, builds) = (false, true, rounds, 1);
            bound(&HistoryEffort { adaptive, fill, launches, rounds, suspects, builds, budget })
        };
        assert_eq!(of(Some(3), 3, None), "; -r says how many");
        assert_eq!(of(None, 3, None), "; --rounds says how many");
        assert_eq!(of(None, 0, None), "", "counts need no rounds");
        assert_eq!(of(None, 3, Some(Duration::ZERO)), "; --budget bounds the rounds");
    }
}
