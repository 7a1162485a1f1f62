//! Decides what to do next. The decision is made from the stored state each time, so that a killed history continues
//! where it was, and a finished one has nothing left to do.

use scruple_core::history::{Graph, READINGS, State};
use std::time::Duration;

/// Rounds that a version needs before it is compared: with fewer there is no interval at the level of 99 %.
const FIRST: u32 = 8;

/// Rounds that every version gets, however long they take: with fewer, times cannot be judged.
const LEAST: u32 = READINGS as u32;

/// The amount of measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEffort {
    /// Build and weigh the ends first, and then where the difference is.
    pub adaptive: bool,
    /// Also look between versions that do not differ, while there is time.
    pub fill: bool,
    /// Rounds for every version.
    pub rounds: u32,
    /// Rounds for versions on both sides of a difference, where adaptive.
    pub suspects: u32,
    /// Builds of every version, of which the first leaves the artefacts.
    pub builds: u32,
    /// Time after which no more is measured than must be; none where the rounds were given.
    pub budget: Option<Duration>,
}

/// What is known about one version.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Its state.
    pub state: State,
    /// The version that it shares its artefacts with.
    pub original: Option<usize>,
    /// Whether the memory and counting passes were taken once.
    pub counted: bool,
    /// Timing launches of the command that has the fewest.
    pub rounds: u32,
    /// How often it was built.
    pub builds: u32,
}

impl HistoryEffort {
    /// Rounds that every version gets, whatever the budget.
    pub fn least(&self) -> u32 {
        LEAST.min(self.rounds)
    }

    /// Rounds before a version is compared. Where fewer than are needed were requested, exact figures decide.
    pub fn first(&self) -> u32 {
        FIRST.min(self.rounds)
    }
}

impl Seen {
    fn open(&self) -> bool {
        matches!(self.state, State::Queued | State::Building | State::Skipped)
    }
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Build this version.
    Build(usize),
    /// Take the memory and counting passes of this version.
    Count(usize),
    /// Launch these once each, side by side.
    Block(Vec<usize>),
    /// Build these once more each, to see what building costs.
    Rebuild(Vec<usize>),
    /// Nothing.
    Done,
}

/// The next step. `differ` says whether two weighed versions differ beyond noise.
pub fn next_step(
    seen: &[Seen],
    graph: &Graph,
    effort: &HistoryEffort,
    spent: Duration,
    differ: impl Fn(usize, usize) -> bool,
) -> Step {
    let time_left = effort.budget.is_none_or(|budget| spent < budget);
    let build = match effort.adaptive {
        false => seen.iter().position(Seen::open),
        true => wanted(seen, graph, effort, time_left, &differ),
    };
    if let Some(index) = build {
        return Step::Build(index);
    }
    let built = |index: &usize| seen[*index].state == State::Built;
    let all: Vec<usize> = (0..seen.len()).filter(built).collect();
    if let Some(index) = all.iter().find(|index| !seen[**index].counted) {
        return Step::Count(*index);
    }
    let below = |rounds: u32, of: &[usize]| -> Vec<usize> {
        of.iter().copied().filter(|index| seen[*index].rounds < rounds).collect()
    };
    let first = if effort.adaptive { effort.first() } else { effort.rounds };
    let mut stages = vec![below(if time_left { first } else { LEAST.min(first) }, &all)];
    if effort.adaptive && time_left {
        stages.push(below(effort.suspects, &suspects(seen, graph, effort, &differ)));
        stages.push(below(effort.rounds, &all));
    }
    match stages.into_iter().find(|needy| !needy.is_empty()) {
        Some(needy) => Step::Block(beside(&needy, &all, graph)),
        None => rebuild(seen, effort),
    }
}

/// The versions that were built less often than they are to be. They are built in turns, so that what the machine does
/// meanwhile meets all of them.
fn rebuild(seen: &[Seen], effort: &HistoryEffort) -> Step {
    let few = |index: &usize| {
        let one = &seen[*index];
        let built = matches!(one.state, State::Built | State::SameBinary);
        built && effort.builds > 1 && one.builds < effort.builds
    };
    let few: Vec<usize> = (0..seen.len()).filter(few).collect();
    if few.is_empty() { Step::Done } else { Step::Rebuild(few) }
}

/// These, and what they are to be compared with: the nearest built versions before and after each, and the first.
fn beside(needy: &[usize], all: &[usize], graph: &Graph) -> Vec<usize> {
    let mut set: Vec<usize> = needy.to_vec();
    set.extend(all.first());
    for &index in all {
        let before = graph.nearest(index, |other| all.binary_search(&other).is_ok()).0;
        let own = needy.contains(&index);
        for other in before {
            if own {
                set.push(other);
            } else if needy.contains(&other) {
                set.push(index);
            }
        }
    }
    set.sort_unstable();
    set.dedup();
    set
}

/// Whether a version, or the one that it shares its artefacts with, can be compared.
fn weighed(seen: &[Seen], index: usize, first: u32) -> bool {
    let one = &seen[seen[index].original.unwrap_or(index)];
    one.state == State::Built && one.counted && one.rounds >= first
}

/// A version that can be compared, with those before it that can, and what is between.
struct Stretch {
    from: Vec<usize>,
    to: usize,
    between: Vec<usize>,
}

fn stretches(seen: &[Seen], graph: &Graph, first: u32) -> Vec<Stretch> {
    let known: Vec<bool> = (0..seen.len()).map(|index| weighed(seen, index, first)).collect();
    let stretch = |to: usize| {
        let (from, mut between) = graph.nearest(to, |other| known[other]);
        // What each version before it also has is not new.
        for old in &from {
            let has = graph.ancestry(*old);
            between.retain(|version| !has[*version]);
        }
        Stretch { from, to, between }
    };
    (0..seen.len()).filter(|index| known[*index]).map(stretch).filter(|one| !one.from.is_empty()).collect()
}

/// The versions that can be compared, each with one directly before it.
pub fn neighbours(seen: &[Seen], graph: &Graph, first: u32) -> Vec<(usize, usize)> {
    let pairs = |one: Stretch| one.from.into_iter().map(move |from| (from, one.to));
    stretches(seen, graph, first).into_iter().flat_map(pairs).collect()
}

/// The version to build next: an end, or the middle of a stretch whose ends differ, or of the widest one.
fn wanted(
    seen: &[Seen],
    graph: &Graph,
    effort: &HistoryEffort,
    time_left: bool,
    differ: &impl Fn(usize, usize) -> bool,
) -> Option<usize> {
    let mut alive = (0..seen.len()).filter(|index| !seen[*index].state.failed());
    let (first, last) = (alive.next()?, alive.next_back());
    if let Some(end) = [Some(first), last].into_iter().flatten().find(|end| seen[*end].open()) {
        return Some(end);
    }
    if !time_left {
        return None;
    }
    let mut open: Vec<(Stretch, Vec<usize>)> = Vec::new();
    for stretch in stretches(seen, graph, effort.first()) {
        let missing: Vec<usize> =
            stretch.between.iter().copied().filter(|index| seen[*index].open()).collect();
        // Built versions within a stretch are weighed before more is built there.
        let under_way = stretch.between.iter().any(|index| seen[*index].state == State::Built);
        if !missing.is_empty() && !under_way {
            open.push((stretch, missing));
        }
    }
    if let Some((_, missing)) = open.iter().find(|(stretch, _)| differs(stretch, differ)) {
        return middle(missing, graph);
    }
    let waits = (0..seen.len())
        .any(|index| seen[index].state == State::Built && !weighed(seen, index, effort.first()));
    if !effort.fill || waits {
        return None;
    }
    open.iter().max_by_key(|(_, missing)| missing.len()).and_then(|(_, missing)| middle(missing, graph))
}

/// Whether the end of a stretch differs from all of its starts: what it shares with one, it has from there.
fn differs(stretch: &Stretch, differ: &impl Fn(usize, usize) -> bool) -> bool {
    stretch.from.iter().all(|from| differ(*from, stretch.to))
}

/// The version that divides the others most evenly.
fn middle(versions: &[usize], graph: &Graph) -> Option<usize> {
    let half = versions.len() / 2;
    let before = |version: usize| {
        let has = graph.ancestry(version);
        versions.iter().filter(|other| **other != version && has[**other]).count()
    };
    versions.iter().copied().min_by_key(|version| before(*version).abs_diff(half))
}

/// Versions on both sides of a difference that no version in between can explain any more.
fn suspects(
    seen: &[Seen],
    graph: &Graph,
    effort: &HistoryEffort,
    differ: &impl Fn(usize, usize) -> bool,
) -> Vec<usize> {
    let found = stretches(seen, graph, effort.first()).into_iter().filter(|one| differs(one, differ));
    let mut found: Vec<usize> = found
        .flat_map(|one| one.from.into_iter().chain([one.to]))
        .map(|index| seen[index].original.unwrap_or(index))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const EFFORT: HistoryEffort = HistoryEffort {
        adaptive: true,
        fill: false,
        rounds: 10,
        suspects: 20,
        builds: 1,
        budget: Some(Duration::from_secs(60)),
    };

    fn queued(count: usize) -> Vec<Seen> {
        vec![Seen { state: State::Queued, original: None, counted: false, rounds: 0, builds: 0 }; count]
    }

    /// Simulates a history whose versions have these costs; negative ones cannot be built. Returns the steps.
    fn play(costs: &[i32], effort: &HistoryEffort) -> (Vec<Seen>, Vec<Step>) {
        play_graph(costs, &line(costs.len()), effort)
    }

    fn line(count: usize) -> Graph {
        graph(&(0..count).map(|version| version.checked_sub(1).into_iter().collect()).collect::<Vec<_>>())
    }

    fn graph(before: &[Vec<usize>]) -> Graph {
        before.iter().cloned().collect()
    }

    fn play_graph(costs: &[i32], graph: &Graph, effort: &HistoryEffort) -> (Vec<Seen>, Vec<Step>) {
        let mut seen = queued(costs.len());
        let mut steps = Vec::new();
        loop {
            let step = next_step(&seen, graph, effort, Duration::ZERO, |a, b| costs[a] != costs[b]);
            match &step {
                Step::Build(index) => {
                    seen[*index].state = if costs[*index] < 0 { State::BuildFailed } else { State::Built };
                    seen[*index].builds = 1;
                }
                Step::Count(index) => seen[*index].counted = true,
                Step::Block(set) => set.iter().for_each(|index| seen[*index].rounds += 1),
                Step::Rebuild(set) => set.iter().for_each(|index| seen[*index].builds += 1),
                Step::Done => return (seen, steps),
            }
            steps.push(step);
            assert!(steps.len() < 10_000, "it never ends");
        }
    }

    #[test]
    fn the_ends_come_first_and_a_single_step_is_found_by_bisection() {
        let costs: Vec<i32> = (0..100).map(|index| i32::from(index >= 37)).collect();
        let (seen, steps) = play(&costs, &EFFORT);
        assert_eq!(steps[..2], [Step::Build(0), Step::Build(99)]);
        let built: Vec<usize> = (0..100).filter(|index| seen[*index].state == State::Built).collect();
        assert!(built.contains(&36) && built.contains(&37) && built.len() <= 9, "{built:?}");
        assert!(seen[36].rounds >= 20 && seen[37].rounds >= 20, "suspects get more rounds");
    }

    #[test]
    fn versions_that_cannot_be_built_are_passed_over() {
        let mut costs: Vec<i32> = (0..40).map(|index| i32::from(index >= 20)).collect();
        costs[0] = -1;
        costs[39] = -1;
        (17..=22).for_each(|index| costs[index] = -1);
        let (seen, _) = play(&costs, &EFFORT);
        assert_eq!([seen[1].state, seen[38].state], [State::Built; 2]);
        assert_eq!([seen[16].state, seen[23].state], [State::Built; 2]);
    }

    #[test]
    fn a_change_on_a_branch_is_looked_for_there() {
        // The main line is 0 to 9, 30, 31; a branch of 20 versions leaves it at 4 and is merged at 30.
        let before = |version: usize| match version {
            0 => Vec::new(),
            10 => vec![4],
            30 => vec![9, 29],
            _ => vec![version - 1],
        };
        let graph = graph(&(0..32).map(before).collect::<Vec<_>>());
        let costs: Vec<i32> = (0..32).map(|version| i32::from(version >= 17)).collect();
        let (seen, _) = play_graph(&costs, &graph, &EFFORT);
        let built: Vec<usize> = (0..32).filter(|index| seen[*index].state == State::Built).collect();
        assert!(built.contains(&16) && built.contains(&17) && built.len() <= 9, "{built:?}");
    }

    #[test]
    fn while_there_is_time_every_stretch_is_looked_into() {
        let (seen, _) = play(&[0; 20], &HistoryEffort { fill: true, ..EFFORT });
        assert!(seen.iter().all(|one| one.state == State::Built && one.rounds >= 10));
        let (seen, _) = play(&[0; 20], &EFFORT);
        assert_eq!(seen.iter().filter(|one| one.state == State::Built).count(), 2);
    }

    #[test]
    fn without_time_versions_get_the_least_that_must_be() {
        let plain = HistoryEffort { adaptive: false, ..EFFORT };
        let mut seen = queued(3);
        seen.iter_mut().for_each(|one| (one.state, one.counted) = (State::Built, true));
        let late = Duration::from_secs(61);
        assert_eq!(next_step(&seen, &line(3), &plain, late, |_, _| false), Step::Block(vec![0, 1, 2]));
        seen.iter_mut().for_each(|one| one.rounds = LEAST);
        assert_eq!(next_step(&seen, &line(3), &plain, late, |_, _| false), Step::Done);
    }

    #[test]
    fn versions_are_built_again_in_turns_after_everything_else() {
        let often = HistoryEffort { builds: 3, adaptive: false, ..EFFORT };
        let (seen, steps) = play(&[1, -1, 1], &often);
        assert_eq!(steps[steps.len() - 2..], [Step::Rebuild(vec![0, 2]), Step::Rebuild(vec![0, 2])]);
        assert_eq!(seen.iter().map(|one| one.builds).collect::<Vec<_>>(), [3, 1, 3]);
    }

    #[test]
    fn versions_that_are_added_are_weighed_beside_their_neighbours() {
        let plain = HistoryEffort { adaptive: false, ..EFFORT };
        let mut seen = queued(6);
        seen.iter_mut().for_each(|one| (one.state, one.counted, one.rounds) = (State::Built, true, 10));
        seen[4].rounds = 0;
        assert_eq!(
            next_step(&seen, &line(6), &plain, Duration::ZERO, |_, _| false),
            Step::Block(vec![0, 3, 4, 5])
        );
    }
}
