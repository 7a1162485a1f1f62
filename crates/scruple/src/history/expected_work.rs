//! The expected work of a history, from its present state to its end. The schedule gives the steps, as in a real
//! history, and a simulated clock advances by the assumed time of each.

use super::schedule::{HistoryEffort, ParallelWork, VersionProgress, ahead};
use scruple_core::history::{Graph, VersionState};
use std::time::Duration;

/// The overhead of a unit of a farm, in addition to its work.
const UNIT: Duration = Duration::from_millis(500);

/// What is assumed about the costs of a history.
#[derive(Clone, Copy)]
pub struct AssumedCosts {
    /// The time of a build.
    pub build: Duration,
    /// The time of a launch of a subject.
    pub launch: Duration,
    /// The number of launches in the memory and counting passes of one version.
    pub counted: usize,
    /// The number of subjects, each of which is launched once in a round.
    pub subjects: usize,
    /// The number of nodes of a farm; `None` without a farm.
    pub nodes: Option<usize>,
    /// The number of nodes, of those available, among which a number of rounds is divided.
    pub divided: fn(u32, u32) -> u32,
    /// The measuring time so far.
    pub spent: Duration,
}

/// The expected work of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExpectedWork {
    /// The number of builds.
    pub builds: usize,
    /// The number of launches of subjects.
    pub launches: usize,
    /// The time of all nodes together.
    pub total: Duration,
    /// The time until the end.
    pub elapsed: Duration,
}

impl ExpectedWork {
    /// Returns the work from the state `seen` on, if these versions differ and every build succeeds.
    pub fn expected(
        seen: &[VersionProgress],
        graph: &Graph,
        effort: &HistoryEffort,
        assumed: &AssumedCosts,
        difference: impl Fn(usize, usize) -> f64,
    ) -> ExpectedWork {
        let (mut seen, mut work, mut spent) = (seen.to_vec(), ExpectedWork::default(), assumed.spent);
        let places = assumed.nodes.unwrap_or(1).max(1);
        if effort.adaptive && effort.fill && !assumed.time_ends(effort) {
            // Every version is built in the end. To ask for each of these steps would take minutes with thousands of
            // versions.
            let open: Vec<&mut VersionProgress> = seen.iter_mut().filter(|one| one.open()).collect();
            let building = assumed.build * open.len() as u32;
            work.builds += open.len();
            work.add(building, open.len(), places.min(open.len()), assumed);
            spent += building;
            open.into_iter().for_each(|one| one.state = VersionState::Built);
        }
        loop {
            let now = ahead(&seen, graph, effort, spent, places, &difference);
            if now == ParallelWork::default() {
                break;
            }
            let building = assumed.build * now.builds.len() as u32;
            work.builds += now.builds.len();
            work.add(building, now.builds.len(), places.min(now.builds.len()), assumed);
            let counted = now.count.len() * assumed.counted;
            work.launches += counted;
            let counting = assumed.launch * counted as u32;
            work.add(counting, 1, assumed.groups(places), assumed);
            let rounds = assumed.within_budget(&now, effort, (spent, counting));
            let timed = now.beside.len() * assumed.subjects * rounds as usize;
            let timing = assumed.launch * timed as u32;
            let rows = (assumed.divided)(places as u32, rounds) as usize;
            work.launches += timed;
            work.add(timing, rows, rows * assumed.groups(places / rows), assumed);
            spent += counting + timing + if effort.adaptive { building } else { Duration::ZERO };
            now.builds.iter().for_each(|index| seen[*index].state = VersionState::Built);
            now.count.iter().for_each(|index| seen[*index].counted = true);
            for index in &now.beside {
                seen[*index].rounds = seen[*index].rounds.saturating_add(rounds);
            }
        }
        let again = |one: &VersionProgress| effort.builds.saturating_sub(one.builds.max(1)) as usize;
        let again: usize = seen.iter().filter(|one| one.state == VersionState::Built).map(again).sum();
        work.builds += again;
        work.add(assumed.build * again as u32, 0, 1, assumed);
        work
    }

    /// Adds work that is divided into units for this many nodes at a time.
    fn add(&mut self, work: Duration, units: usize, nodes: usize, assumed: &AssumedCosts) {
        let overhead = if assumed.nodes.is_some() { UNIT * units as u32 } else { Duration::ZERO };
        if !work.is_zero() {
            self.total += work + overhead;
            self.elapsed += (work + overhead) / nodes.max(1) as u32;
        }
    }
}

impl AssumedCosts {
    /// Among how many nodes the subjects are divided.
    fn groups(&self, nodes: usize) -> usize {
        nodes.clamp(1, self.subjects.max(1))
    }

    /// Whether the budget will be used up. If no cost is known yet, no time passes.
    fn time_ends(&self, effort: &HistoryEffort) -> bool {
        effort.budget.is_some() && !(self.build.is_zero() && self.launch.is_zero())
    }

    /// The number of rounds of a step before the budget is used up. The second time is that of counting, which comes
    /// before the rounds.
    fn within_budget(
        &self,
        now: &ParallelWork,
        effort: &HistoryEffort,
        (spent, counting): (Duration, Duration),
    ) -> u32 {
        let round = self.launch * (now.beside.len() * self.subjects) as u32;
        match effort.budget {
            Some(budget) if spent < budget && !round.is_zero() => {
                let left = budget.saturating_sub(spent + counting);
                let rounds = left.as_nanos().div_ceil(round.as_nanos()).max(1);
                now.rounds.min(u32::try_from(rounds).unwrap_or(u32::MAX))
            }
            _ => now.rounds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EFFORT: HistoryEffort = HistoryEffort {
        adaptive: false,
        fill: false,
        launches: None,
        rounds: 20,
        suspects: 20,
        builds: 1,
        budget: Some(Duration::from_secs(300)),
    };

    const ASSUMED: AssumedCosts = AssumedCosts {
        build: Duration::from_secs(10),
        launch: Duration::from_secs(1),
        counted: 8,
        subjects: 1,
        nodes: None,
        divided: |places, _| places,
        spent: Duration::ZERO,
    };

    #[test]
    fn a_search_that_fills_every_gap_builds_all_versions_however_many_there_are() {
        let fill = HistoryEffort { adaptive: true, fill: true, budget: None, ..EFFORT };
        let few = expected(40, &fill, &ASSUMED, 0);
        assert_eq!((few.builds, few.launches), (40, 40 * (8 + 20)));
        // With a budget, the end is unknown until the duration of a launch is known.
        let free = AssumedCosts { build: Duration::ZERO, launch: Duration::ZERO, ..ASSUMED };
        let bounded = HistoryEffort { budget: Some(Duration::from_secs(300)), ..fill.clone() };
        assert_eq!(expected(5_000, &bounded, &free, 7).builds, 5_000);
        assert!(expected(400, &bounded, &ASSUMED, 7).builds < 400, "the budget ends first");
    }

    fn expected(
        versions: usize,
        effort: &HistoryEffort,
        assumed: &AssumedCosts,
        step: usize,
    ) -> ExpectedWork {
        let queued = VersionProgress {
            state: VersionState::Queued,
            original: None,
            counted: false,
            rounds: 0,
            builds: 0,
        };
        let graph: Graph =
            (0..versions).map(|version| version.checked_sub(1).into_iter().collect::<Vec<usize>>()).collect();
        let differ = |a: usize, b: usize| f64::from((a < step) != (b < step));
        ExpectedWork::expected(&vec![queued; versions], &graph, effort, assumed, differ)
    }

    #[test]
    fn all_versions_are_built_counted_and_launched_until_the_budget_ends() {
        let seconds = Duration::from_secs;
        let all = expected(15, &HistoryEffort { budget: None, ..EFFORT }, &ASSUMED, 0);
        assert_eq!((all.builds, all.launches), (15, 15 * 8 + 15 * 20));
        assert_eq!((all.total, all.elapsed), (seconds(150 + 420), seconds(150 + 420)));
        let bounded = expected(15, &EFFORT, &AssumedCosts { launch: seconds(2), ..ASSUMED }, 0);
        assert_eq!(bounded.launches, 15 * 8 + 15 * 6, "counting leaves time for the necessary rounds only");
        let rebuilt = expected(15, &HistoryEffort { builds: 6, ..EFFORT }, &ASSUMED, 0);
        assert_eq!(rebuilt.builds, 90);
    }

    #[test]
    fn a_search_costs_more_where_versions_differ_and_nodes_share_the_work() {
        let search = HistoryEffort { adaptive: true, budget: None, ..EFFORT };
        let [same, differing] = [0, 50].map(|step| expected(100, &search, &ASSUMED, step));
        assert_eq!(same.builds, 2);
        assert!(differing.builds > 5 && differing.total > same.total, "{differing:?}");
        let all = HistoryEffort { budget: None, ..EFFORT };
        let shared = expected(100, &all, &AssumedCosts { nodes: Some(4), ..ASSUMED }, 0);
        let alone = expected(100, &all, &ASSUMED, 0);
        assert_eq!((shared.builds, shared.launches), (alone.builds, alone.launches));
        let overhead = UNIT * (100 + 1 + 4);
        assert_eq!(shared.total, alone.total + overhead);
        assert!(shared.elapsed < alone.elapsed && shared.elapsed * 4 >= alone.total, "{shared:?}");
    }
}
