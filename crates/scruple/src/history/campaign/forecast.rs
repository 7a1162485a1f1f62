//! Says what a history will cost, before it costs that: the number of builds and launches, and their time.

use super::split_into_units::node_count;
use super::{BRIEF, Campaign, LONG, REPEATS};
use crate::fault::Fault;
use crate::history::expected_work::{Assumed, Work};
use crate::history::schedule::{Ahead, Seen};
use scruple_core::history::READINGS;
use scruple_core::run::Run;
use scruple_core::stats::quantile::{median, quantile, sorted};
use scruple_core::subject::{Arm, Subject};
use scruple_core::unit::{Unit, quantity};
use std::time::Duration;

/// No time is printed for a history that is expected to take less than this.
const SHORT: Duration = Duration::from_secs(10);

/// With at least this many recorded builds and launches, a forecast says how far they differ.
const SEVERAL: usize = 5;

/// What was said about the cost of a history, and what that is based on.
#[derive(Default)]
pub(super) struct Forecast {
    /// The time of the first launch.
    pub(super) launch: Option<Duration>,
    /// The times of another history of this repository; `None` before it was looked for.
    earlier: Option<Recorded>,
    counts_told: bool,
    time_told: bool,
}

/// Recorded times in nanoseconds, in ascending order.
#[derive(Clone, Default)]
struct Recorded {
    builds: Vec<f64>,
    /// The median of each command at each version.
    launches: Vec<f64>,
}

impl Recorded {
    fn of(run: &Run, wanted: impl Fn(&&Arm) -> bool) -> Recorded {
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
        Recorded { builds: sorted(&builds), launches: sorted(&launches) }
    }
}

impl Campaign {
    /// Says what the whole history is expected to cost, as soon as that is known, and before that how much there is to
    /// do. `places` is the number of nodes of a farm.
    pub(super) fn foretell(&mut self, seen: &[Seen], places: Option<usize>) -> Result<(), Fault> {
        if self.forecast.time_told {
            return Ok(());
        }
        let (recorded, whence) = self.recorded()?;
        let built = |entry: &crate::store::Entry| {
            !self.builds.builder.effective(&entry.version.commit).steps.is_empty()
        };
        let to_build = self.journal.history.entries.iter().any(built);
        let known = !recorded.launches.is_empty() && (!recorded.builds.is_empty() || !to_build);
        if !known && self.forecast.counts_told {
            return Ok(());
        }
        let mean = |readings: &[f64]| readings.iter().sum::<f64>() / readings.len().max(1) as f64;
        let work = |build: f64, launch: f64| self.expected(seen, places, [build, launch]);
        let [least, most] = work(mean(&recorded.builds), mean(&recorded.launches));
        let amount = match (least.builds, least.launches) == (most.builds, most.launches) {
            true => format!("{} builds and {} launches", most.builds, most.launches),
            false => format!(
                "{} builds and {} launches if no version differs, and {} and {} if one in the middle does",
                least.builds, least.launches, most.builds, most.launches
            ),
        };
        self.forecast.counts_told = true;
        if !known {
            let first = if places.is_some() { "units" } else { "build and launch" };
            self.progress.say(&format!("up to {amount}; how long they take is said after the first {first}"));
            return Ok(());
        }
        self.forecast.time_told = true;
        if most.elapsed <= SHORT {
            return Ok(());
        }
        let several = recorded.launches.len() >= SEVERAL && (!to_build || recorded.builds.len() >= SEVERAL);
        let rough = if several {
            let at = |p: f64| {
                let of = |readings: &[f64]| if readings.is_empty() { 0.0 } else { quantile(readings, p) };
                self.expected(seen, places, [of(&recorded.builds), of(&recorded.launches)])
            };
            let ([low, _], [_, high]) = (at(0.1), at(0.9));
            format!("{} to {} by the spread of {whence}", told(low.elapsed), told(high.elapsed))
        } else {
            format!("a rough guess from {whence}")
        };
        let total = match places {
            Some(1) => ", on 1 node".to_owned(),
            Some(places) => format!(" on {places} nodes, {} of nodes' time", told(most.total)),
            None => String::new(),
        };
        let budget = match self.scope.effort.budget {
            Some(_) => "; --budget bounds the rounds",
            None => "; -r and --rounds say how many",
        };
        self.progress.say(&format!(
            "up to {amount}: about {}{total} ({rough}){budget}; ^C keeps what was done",
            told(most.elapsed)
        ));
        Ok(())
    }

    /// Returns the recorded costs, and where they come from: this history, or else another one of this repository.
    fn recorded(&mut self) -> Result<(Recorded, &'static str), Fault> {
        let mut own = Recorded::of(&self.journal.history.run, |_| true);
        if own.launches.is_empty() {
            own.launches.extend(self.forecast.launch.map(|launch| launch.as_nanos() as f64));
        }
        if !own.launches.is_empty() {
            return Ok((own, "what was built and launched so far"));
        }
        if self.forecast.earlier.is_none() {
            self.forecast.earlier = Some(self.earlier()?);
        }
        let earlier = self.forecast.earlier.clone().unwrap_or_default();
        Ok((earlier, "what another history of this repository recorded"))
    }

    /// Returns the costs that the newest other history of this repository with the same commands has recorded.
    fn earlier(&self) -> Result<Recorded, Fault> {
        let ours = |arm: &&Arm| self.scope.subjects.iter().any(|subject| subject.name == arm.name);
        let found = self.journal.find_in_others(|run| {
            let recorded = Recorded::of(run, ours);
            (!recorded.launches.is_empty()).then_some(recorded)
        })?;
        Ok(found.unwrap_or_default())
    }

    /// Returns the expected work, with these times of a build and a launch in nanoseconds: if no version differs, and
    /// if one in the middle does.
    fn expected(&self, seen: &[Seen], places: Option<usize>, [build, launch]: [f64; 2]) -> [Work; 2] {
        let launch = Duration::from_nanos(launch as u64);
        let assumed = Assumed {
            build: Duration::from_nanos(build as u64),
            launch,
            counted: self.launches_of_a_count(launch),
            subjects: self.scope.subjects.len(),
            nodes: places,
            divided: node_count,
            spent: self.journal.spent(self.scope.effort.adaptive),
        };
        let middle = seen.len() / 2;
        let step = |a: usize, b: usize| f64::from((a < middle) != (b < middle));
        let of = |difference: &dyn Fn(usize, usize) -> f64| {
            Work::expected(seen, &self.questions.graph, &self.scope.effort, &assumed, difference)
        };
        [of(&|_, _| 0.0), of(&step)]
    }

    /// Returns the number of launches of the memory and counting passes of one version, if its counts repeat.
    fn launches_of_a_count(&self, launch: Duration) -> usize {
        let enough = (READINGS as u32).min(self.scope.effort.rounds).max(REPEATS);
        let of_a_command = match launch {
            _ if self.scope.given.is_some() => self.scope.given.map_or(0, |given| given.others()),
            launch if launch > LONG => 1 + self.instruments.weigher.counting_launches(),
            launch if launch > BRIEF => REPEATS * (1 + self.instruments.weigher.counting_launches()),
            _ => enough + REPEATS * self.instruments.weigher.counting_launches(),
        };
        let weighed = self.scope.subjects.iter().filter(|subject| !subject.yardstick);
        weighed.map(|subject| if subject.bench { REPEATS } else { of_a_command } as usize).sum()
    }

    /// Says what the next units are to do.
    pub(super) fn tell_units(&self, ahead: &Ahead) {
        let (builds, count, beside) = (ahead.builds.len(), ahead.count.len(), ahead.beside.len());
        let mut work = Vec::new();
        for (number, what) in [(builds, "to build"), (count, "to count"), (beside, "to time")] {
            if number > 0 {
                work.push(format!("{number} {what}"));
            }
        }
        let all = self.journal.history.entries.len();
        self.progress.say(&format!("next, of {all} versions: {}", work.join(", ")));
    }
}

fn told(time: Duration) -> String {
    quantity(time.as_nanos() as f64, &Unit::Nanoseconds)
}
