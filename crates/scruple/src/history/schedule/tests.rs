//! Tests of the schedule with simulated histories of known costs.

use super::*;

const EFFORT: HistoryEffort = HistoryEffort {
    adaptive: true,
    fill: false,
    launches: None,
    rounds: 10,
    suspects: 20,
    builds: 1,
    budget: Some(Duration::from_secs(60)),
};

fn queued(count: usize) -> Vec<VersionProgress> {
    vec![
        VersionProgress { state: VersionState::Queued, original: None, counted: false, rounds: 0, builds: 0 };
        count
    ]
}

/// Simulates a history whose versions have these costs. Versions with negative costs cannot be built. Returns the
/// steps.
fn play(costs: &[i32], effort: &HistoryEffort) -> (Vec<VersionProgress>, Vec<Step>) {
    play_graph(costs, &line(costs.len()), effort)
}

/// The difference of two of these costs.
fn difference(costs: &[i32], a: usize, b: usize) -> f64 {
    f64::from((costs[a] - costs[b]).abs())
}

fn line(count: usize) -> Graph {
    graph(&(0..count).map(|version| version.checked_sub(1).into_iter().collect()).collect::<Vec<_>>())
}

fn graph(before: &[Vec<usize>]) -> Graph {
    before.iter().cloned().collect()
}

fn play_graph(costs: &[i32], graph: &Graph, effort: &HistoryEffort) -> (Vec<VersionProgress>, Vec<Step>) {
    let mut seen = queued(costs.len());
    let mut steps = Vec::new();
    loop {
        let step = next_step(&seen, graph, effort, Duration::ZERO, |a, b| difference(costs, a, b));
        match &step {
            Step::Build(index) => {
                seen[*index].state =
                    if costs[*index] < 0 { VersionState::BuildFailed } else { VersionState::Built };
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

/// Simulates a history like [`play`], but does all work at once that can be done in this many places.
fn play_ahead(
    costs: &[i32],
    effort: &HistoryEffort,
    places: usize,
) -> (Vec<VersionProgress>, Vec<ParallelWork>) {
    let (mut seen, graph, mut all) = (queued(costs.len()), line(costs.len()), Vec::new());
    loop {
        let now = ahead(&seen, &graph, effort, Duration::ZERO, places, |a, b| difference(costs, a, b));
        if now == ParallelWork::default() {
            return (seen, all);
        }
        for index in &now.builds {
            seen[*index].state =
                if costs[*index] < 0 { VersionState::BuildFailed } else { VersionState::Built };
        }
        now.count.iter().for_each(|index| seen[*index].counted = true);
        now.beside.iter().for_each(|index| seen[*index].rounds += now.rounds);
        all.push(now);
        assert!(all.len() < 1000, "it never ends");
    }
}

#[test]
fn independent_steps_are_possible_at_once() {
    let plain = HistoryEffort { adaptive: false, ..EFFORT };
    let (_, all) = play_ahead(&[0; 20], &plain, 3);
    let every: Vec<usize> = (0..20).collect();
    let whole = ParallelWork { builds: every.clone(), count: every.clone(), beside: every, rounds: 10 };
    assert_eq!(all, [whole], "all of a history without a search is one step");
    let costs: Vec<i32> = (0..100).map(|index| i32::from(index >= 37)).collect();
    for places in [1, 5, 20] {
        let (seen, all) = play_ahead(&costs, &EFFORT, places);
        let built: Vec<usize> = (0..100).filter(|index| seen[*index].state == VersionState::Built).collect();
        assert!(all[0].builds.contains(&0) && all[0].builds.contains(&99), "the ends come first");
        assert!(all[0].builds.len() == places.max(2), "{:?}", all[0]);
        assert!(built.contains(&36) && built.contains(&37) && built.len() <= 9 + places, "{built:?}");
        assert!(seen[36].rounds >= 20 && seen[37].rounds >= 20, "suspects get more rounds");
    }
}

#[test]
fn the_ends_come_first_and_a_single_step_is_found_by_bisection() {
    let costs: Vec<i32> = (0..100).map(|index| i32::from(index >= 37)).collect();
    let (seen, steps) = play(&costs, &EFFORT);
    assert_eq!(steps[..2], [Step::Build(0), Step::Build(99)]);
    let built: Vec<usize> = (0..100).filter(|index| seen[*index].state == VersionState::Built).collect();
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
    assert_eq!([seen[1].state, seen[38].state], [VersionState::Built; 2]);
    assert_eq!([seen[16].state, seen[23].state], [VersionState::Built; 2]);
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
    let built: Vec<usize> = (0..32).filter(|index| seen[*index].state == VersionState::Built).collect();
    assert!(built.contains(&16) && built.contains(&17) && built.len() <= 9, "{built:?}");
}

#[test]
fn while_there_is_time_every_stretch_is_looked_into() {
    let (seen, _) = play(&[0; 20], &HistoryEffort { fill: true, ..EFFORT });
    assert!(seen.iter().all(|one| one.state == VersionState::Built && one.rounds >= 10));
    let (seen, _) = play(&[0; 20], &EFFORT);
    assert_eq!(seen.iter().filter(|one| one.state == VersionState::Built).count(), 2);
}

#[test]
fn without_time_versions_get_the_least_that_must_be() {
    let plain = HistoryEffort { adaptive: false, ..EFFORT };
    let mut seen = queued(3);
    seen.iter_mut().for_each(|one| (one.state, one.counted) = (VersionState::Built, true));
    let late = Duration::from_secs(61);
    assert_eq!(next_step(&seen, &line(3), &plain, late, |_, _| 0.0), Step::Block(vec![0, 1, 2]));
    seen.iter_mut().for_each(|one| one.rounds = LEAST);
    assert_eq!(next_step(&seen, &line(3), &plain, late, |_, _| 0.0), Step::Done);
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
    seen.iter_mut().for_each(|one| (one.state, one.counted, one.rounds) = (VersionState::Built, true, 10));
    seen[4].rounds = 0;
    assert_eq!(next_step(&seen, &line(6), &plain, Duration::ZERO, |_, _| 0.0), Step::Block(vec![0, 3, 4, 5]));
}

#[test]
fn of_equally_good_choices_the_older_version_comes_first() {
    let mut seen = queued(13);
    for index in [0, 4, 8, 12] {
        (seen[index].state, seen[index].counted, seen[index].rounds) = (VersionState::Built, true, 10);
    }
    let fill = HistoryEffort { fill: true, ..EFFORT };
    let first = |differ: fn(usize, usize) -> f64| next_step(&seen, &line(13), &fill, Duration::ZERO, differ);
    assert_eq!(first(|_, _| 0.0), Step::Build(2), "equally wide stretches without a difference");
    assert_eq!(first(|_, _| 1.0), Step::Build(2), "equally wide stretches with a difference");
    assert_eq!(first(|a, _| f64::from(a == 8)), Step::Build(10), "a difference matters more than age");
    let two = ahead(&seen, &line(13), &fill, Duration::ZERO, 2, |_, _| 0.0);
    assert_eq!(two.builds, [2, 6], "a farm with two free places");
}

#[test]
fn the_largest_difference_is_looked_for_first() {
    // Nine small changes, and a large one at version 160 of 200.
    let cost = |version: i32| version / 20 + if version >= 160 { 100 } else { 0 };
    let costs: Vec<i32> = (0..200).map(cost).collect();
    let (_, steps) = play(&costs, &EFFORT);
    let builds =
        steps.iter().filter_map(|step| if let Step::Build(index) = step { Some(*index) } else { None });
    let builds: Vec<usize> = builds.collect();
    let place = |version: usize| builds.iter().position(|index| *index == version).expect("it is built");
    assert!(place(159).max(place(160)) < 12 && builds.len() > 30, "{builds:?}");
    // A farm with two free places looks into the two largest differences.
    let mut seen = queued(13);
    for index in [0, 4, 8, 12] {
        (seen[index].state, seen[index].counted, seen[index].rounds) = (VersionState::Built, true, 10);
    }
    let now = ahead(&seen, &line(13), &EFFORT, Duration::ZERO, 2, |a, _| (1 + a) as f64);
    assert_eq!(now.builds, [10, 6]);
}

#[test]
fn the_middle_of_versions_is_the_one_that_divides_them_most_evenly_on_branches_too() {
    assert_eq!(middle(&[], &line(5)), None);
    assert_eq!(middle(&[3], &line(5)), Some(3));
    assert_eq!(middle(&[1, 2, 3, 4], &line(6)), Some(3));
    // Version 4 failed, so it cannot be chosen, although it lies between 3 and 5.
    assert_eq!(middle(&[1, 2, 3, 5, 6], &line(8)), Some(3));
    // From 0, a branch of 1 to 6 and one of 7 and 8, merged at 9: of 1 to 9, the version 5 has four before it.
    let before = |version: usize| match version {
        0 => Vec::new(),
        7 => vec![0],
        9 => vec![6, 8],
        _ => vec![version - 1],
    };
    let graph = graph(&(0..10).map(before).collect::<Vec<_>>());
    assert_eq!(middle(&[1, 2, 3, 4, 5, 6, 7, 8, 9], &graph), Some(5));
}

#[test]
fn no_version_is_begun_that_would_exceed_the_budget() {
    let costs = [1, 1, 1, 9, 9];
    let mut seen = queued(costs.len());
    for index in [0, 4] {
        let done = VersionProgress { state: VersionState::Built, counted: true, rounds: 10, ..seen[index] };
        seen[index] = done;
    }
    let step = |seconds| {
        let spent = Duration::from_secs(seconds);
        next_step(&seen, &line(costs.len()), &EFFORT, spent, |a, b| difference(&costs, a, b))
    };
    assert_eq!(step(40), Step::Build(2), "two versions took 20 s each, and 20 s are left");
    assert!(matches!(step(41), Step::Block(_)));
}
