//! Histories with branches and merges: a change is named at the commit that made it, and not at the merge through which
//! it arrives.
#![expect(clippy::print_stdout, reason = "the figures are what one runs the long versions for")]

use scruple_core::history::{Change, ChangeForm, History, Series, VersionState, find_changes};
use scruple_stats::rng::Pcg;

use crate::range::{count, range, same, weigh};

const CPU: f64 = 1e8;

/// A range in which `parents` lists the parents of each version by their indices.
fn graph(parents: &[Vec<usize>]) -> History {
    let mut history = range(parents.len());
    let commits: Vec<String> = history.versions.iter().map(|version| version.commit.clone()).collect();
    for (version, parents) in history.versions.iter_mut().zip(parents) {
        version.parents = parents.iter().map(|parent| commits[*parent].clone()).collect();
        version.follows.clone_from(&version.parents);
    }
    history
}

/// The level of each version: the product of the changes in it and in all its ancestors.
fn levels(parents: &[Vec<usize>], changes: &[(usize, f64)]) -> Vec<f64> {
    let mut has: Vec<Vec<bool>> = Vec::new();
    for (version, parents) in parents.iter().enumerate() {
        let own = |(number, change): (usize, &(usize, f64))| {
            change.0 == version || parents.iter().any(|parent| has[*parent][number])
        };
        let these = changes.iter().enumerate().map(own).collect();
        has.push(these);
    }
    let level =
        |has: &Vec<bool>| has.iter().zip(changes).filter(|(has, _)| **has).map(|(_, c)| c.1).product();
    has.iter().map(level).collect()
}

fn timed(parents: &[Vec<usize>], levels: &[f64], seed: u64) -> History {
    let mut history = graph(parents);
    let levels: Vec<f64> = levels.iter().map(|level| level * CPU).collect();
    weigh(&mut history, "parse", "time.cpu", &levels, 12, 0.01, &mut Pcg::new(seed));
    history
}

fn counted(parents: &[Vec<usize>], values: &[f64]) -> History {
    let mut history = graph(parents);
    count(&mut history, "parse", "malloc.bytes", values);
    history
}

fn only(history: &History) -> Series {
    let mut series = find_changes(history).series;
    assert_eq!(series.len(), 1);
    series.remove(0)
}

fn named(history: &History) -> Vec<(ChangeForm, usize)> {
    only(history).changes.iter().map(|change| (change.form, change.at)).collect()
}

/// A main line 0, 1, 4, 6, 8, 9, and a branch 2, 3, 5, 7 that begins at 1 and is merged by 8. The versions of both are
/// interleaved, as git lists them.
fn forked() -> Vec<Vec<usize>> {
    [&[][..], &[0], &[1], &[2], &[1], &[3], &[4], &[5], &[6, 7], &[8]].map(<[usize]>::to_vec).to_vec()
}

#[test]
fn a_branch_from_before_a_change_is_not_a_spike_and_its_merge_not_a_regression() {
    let parents = forked();
    // Version 4 on the main line doubles the cost, and the branch keeps the old cost.
    let levels = levels(&parents, &[(4, 2.0)]);
    let history = timed(&parents, &levels, 1);
    let series = only(&history);
    assert_eq!(named(&history), [(ChangeForm::Step, 4)], "{:#?}", series.changes);
    assert_eq!((series.changes[0].before, series.changes[0].set.as_slice()), (1, &[4][..]));
    assert_eq!(series.borders, [[1, 4]]);
    assert_eq!(named(&counted(&parents, &levels)), [(ChangeForm::Step, 4)]);
    let whole = series.whole.expect("both ends were weighed");
    assert!(
        (whole.from, whole.to) == (0, 9) && whole.surely && (whole.ratio - 2.0).abs() < 0.05,
        "{whole:?}"
    );
}

#[test]
fn a_change_on_a_branch_is_the_commits_and_not_the_merges() {
    let parents = forked();
    for at in [2, 3, 5, 7] {
        let levels = levels(&parents, &[(at, 1.1)]);
        assert_eq!(named(&timed(&parents, &levels, at as u64)), [(ChangeForm::Step, at)]);
        assert_eq!(named(&counted(&parents, &levels)), [(ChangeForm::Step, at)]);
    }
}

#[test]
fn a_merge_is_named_only_for_changes_of_its_own() {
    let parents = forked();
    let both = levels(&parents, &[(3, 1.2), (6, 1.3)]);
    assert_eq!(named(&timed(&parents, &both, 3)), [(ChangeForm::Step, 3), (ChangeForm::Step, 6)]);
    let own = levels(&parents, &[(3, 1.2), (6, 1.3), (8, 1.15)]);
    assert_eq!(
        named(&timed(&parents, &own, 4)),
        [(ChangeForm::Step, 3), (ChangeForm::Step, 6), (ChangeForm::Step, 8)]
    );
    let only_merge = levels(&parents, &[(8, 1.15)]);
    assert_eq!(named(&timed(&parents, &only_merge, 5)), [(ChangeForm::Step, 8)]);
    // The expected count of a merge is the sum of what both sides added.
    let bytes = [100.0, 100.0, 100.0, 130.0, 100.0, 130.0, 150.0, 130.0, 180.0, 180.0];
    assert_eq!(named(&counted(&parents, &bytes)), [(ChangeForm::Step, 3), (ChangeForm::Step, 6)]);
    let bytes = [100.0, 100.0, 100.0, 130.0, 100.0, 130.0, 150.0, 130.0, 181.0, 181.0];
    assert_eq!(
        named(&counted(&parents, &bytes)),
        [(ChangeForm::Step, 3), (ChangeForm::Step, 6), (ChangeForm::Step, 8)]
    );
}

#[test]
fn a_merge_between_its_parents_is_neither_better_nor_worse() {
    let parents = forked();
    let better = |bytes: &[f64], at: usize| {
        let found = |history: &History| {
            let changes = only(history).changes;
            changes.iter().find(|change| change.at == at).expect("a change").better
        };
        let timed = found(&timed(&parents, &bytes.iter().map(|one| one / 100.0).collect::<Vec<f64>>(), 8));
        assert_eq!(found(&counted(&parents, bytes)), timed);
        timed
    };
    // The main line has 94, the branch 136.
    let merged = |bytes: f64| [100.0, 100.0, 100.0, 136.0, 94.0, 136.0, 94.0, 136.0, bytes, bytes];
    assert_eq!(better(&merged(112.0), 8), None);
    assert_eq!(better(&merged(112.0), 3), Some(false));
    assert_eq!(better(&merged(150.0), 8), Some(false));
    assert_eq!(better(&merged(80.0), 8), Some(true));
}

#[test]
fn a_merge_of_lines_that_diverged_before_the_range_may_only_combine_them() {
    let parents = [&[][..], &[], &[0, 1], &[2]].map(<[usize]>::to_vec);
    let changes = only(&counted(&parents, &[120.0, 130.0, 150.0, 150.0])).changes;
    let [change] = changes.as_slice() else { panic!("{changes:#?}") };
    assert_eq!((change.at, change.better), (2, None));
}

#[test]
fn spikes_and_reverts_follow_parents() {
    let parents = forked();
    let mut bytes = [100.0; 10];
    bytes[3] = 120.0;
    assert_eq!(named(&counted(&parents, &bytes)), [(ChangeForm::Spike, 3)]);
    // A change of the branch is named there although the merge does not take it over.
    let mut bytes = [100.0; 10];
    [3, 5, 7].into_iter().for_each(|version| bytes[version] = 120.0);
    assert_eq!(named(&counted(&parents, &bytes)), [(ChangeForm::Step, 3)]);
    // The version after the merge takes the change back.
    let mut bytes = [100.0; 10];
    [2, 3, 5, 7, 8].into_iter().for_each(|version| bytes[version] = 120.0);
    assert_eq!(named(&counted(&parents, &bytes)), [(ChangeForm::Step, 2), (ChangeForm::Revert, 9)]);
}

#[test]
fn versions_of_a_branch_that_were_not_weighed_may_have_brought_what_its_merge_shows() {
    let parents = forked();
    let mut levels = levels(&parents, &[(5, 1.2)]);
    [2, 3, 5, 7].into_iter().for_each(|version| levels[version] = 0.0);
    let mut history = timed(&parents, &levels, 6);
    [2, 3, 5, 7].into_iter().for_each(|version| history.versions[version].state = VersionState::Skipped);
    let series = only(&history);
    let [change] = series.changes.as_slice() else { panic!("{:#?}", series.changes) };
    assert_eq!((change.at, change.before, change.set.as_slice()), (8, 6, &[2, 3, 5, 7, 8][..]));
}

#[test]
fn a_merge_with_the_artefacts_of_a_parent_brings_nothing() {
    let parents = forked();
    let mut levels = levels(&parents, &[(3, 1.1)]);
    levels[8] = 1.3;
    let mut history = timed(&parents, &levels, 7);
    assert!(named(&history).contains(&(ChangeForm::Step, 8)));
    same(&mut history, 8, 7);
    assert!(!named(&history).iter().any(|(_, at)| *at == 8), "{:?}", named(&history));
}

/// The parents of the versions of a random repository with several branches, octopus merges and criss-cross merges.
fn repository(pcg: &mut Pcg, count: usize) -> Vec<Vec<usize>> {
    let mut parents: Vec<Vec<usize>> = vec![Vec::new()];
    let mut tips = vec![0];
    while parents.len() < count {
        let version = parents.len();
        let one = pcg.below(tips.len() as u32) as usize;
        let other = pcg.below(tips.len() as u32) as usize;
        match pcg.below(10) {
            0..=1 if tips.len() < 4 => {
                parents.push(vec![tips[0]]);
                tips.push(version);
            }
            2 if one != other && tips[one] != tips[other] => {
                // A criss-cross merge: both branches continue with the commits of both.
                parents.push(vec![tips[one], tips[other]]);
                parents.push(vec![tips[other], tips[one]]);
                (tips[one], tips[other]) = (version, version + 1);
            }
            3..=4 if tips.len() > 1 => {
                let mut merged = tips.clone();
                merged.dedup();
                parents.push(merged);
                tips = vec![version];
            }
            _ => {
                parents.push(vec![tips[one]]);
                tips[one] = version;
            }
        }
    }
    tips.dedup();
    parents.push(tips);
    parents
}

/// Simulates `tries` repositories. Returns the share of those without a change that are given one, the share of planted
/// changes that the set of a named change contains, and the number of other changes per repository.
fn repositories(tries: u64) -> [f64; 3] {
    let (mut wrong, mut found, mut others) = (0, 0, 0);
    for number in 0..tries {
        let mut pcg = Pcg::with_stream(60, number);
        let parents = repository(&mut pcg, 12 + (number % 40) as usize);
        wrong += usize::from(!named(&timed(&parents, &vec![1.0; parents.len()], 500 + number)).is_empty());
        let at = 1 + pcg.below(parents.len() as u32 - 1) as usize;
        let levels = levels(&parents, &[(at, 1.06)]);
        let series = only(&timed(&parents, &levels, 9000 + number));
        found += usize::from(series.changes.iter().any(|change| change.set.contains(&at)));
        others += series.changes.iter().filter(|change| !change.set.contains(&at)).count();
        let bytes: Vec<f64> = levels.iter().map(|level| level * 1000.0).collect();
        assert_eq!(named(&counted(&parents, &bytes)), [(ChangeForm::Step, at)], "{number}: {parents:?}");
    }
    let of = |count: usize| count as f64 / tries as f64;
    println!(
        "{tries} repositories: {:.1} % of quiet ones wrong, {:.1} % found, {others} others named",
        100.0 * of(wrong),
        100.0 * of(found)
    );
    [of(wrong), of(found), of(others)]
}

fn planted(tries: u64) {
    let [wrong, found, others] = repositories(tries);
    let slack = 3.0 * (0.05_f64 * 0.95 / tries as f64).sqrt();
    assert!(wrong <= 0.05 + slack && found >= 0.95 && others <= 0.06, "{wrong} {found} {others}");
}

#[test]
fn in_repositories_of_any_shape_the_commit_is_named_and_nothing_else() {
    planted(60);
}

#[test]
#[ignore = "takes minutes in a debug build"]
fn repositories_of_any_shape_at_ten_times_the_number() {
    planted(800);
}

#[test]
fn a_change_stays_where_a_count_rose_with_it_and_its_revert_follows_it() {
    let parents: Vec<Vec<usize>> =
        (0..18_usize).map(|version| version.checked_sub(1).into_iter().collect()).collect();
    let levels: Vec<f64> = (0..18).map(|i| if (6..12).contains(&i) { CPU * 1.2 } else { CPU }).collect();
    let mut doubtful = 0;
    for seed in 0..20 {
        let judged = |[at_5, at_6]: [f64; 2]| {
            let mut history = graph(&parents);
            weigh(&mut history, "parse", "time.cpu", &levels, 12, 0.2, &mut Pcg::new(seed));
            let allocated: Vec<f64> = (0..18)
                .map(|i| 100.0 * if i < 5 { 1.0 } else { at_5 } * if i < 6 { 1.0 } else { at_6 })
                .collect();
            count(&mut history, "parse", "malloc.bytes", &allocated);
            let found = find_changes(&history).series.into_iter();
            found.filter(|series| series.metric == "time.cpu").flat_map(|series| series.changes).collect()
        };
        let both: Vec<Change> = judged([0.8, 1.1]);
        let [change, revert] = both.as_slice() else { continue };
        if !change.set.contains(&5) || revert.undoes.is_none() {
            continue;
        }
        doubtful += 1;
        assert_eq!((change.at, revert.undoes), (6, Some(6)), "seed {seed}");
        let one: Vec<Change> = judged([0.8, 1.0]);
        assert_eq!((one[0].at, one[1].undoes), (5, Some(5)), "seed {seed}");
    }
    assert!(doubtful > 0);
}

#[test]
fn wall_time_changed_where_processor_time_did_although_a_count_changed_beside_it() {
    let step = |at: usize, ratio: f64| (0..8).map(|i| if i < at { CPU } else { CPU * ratio }).collect();
    let levels: Vec<f64> = step(5, 1.2);
    let allocated: Vec<f64> = step(4, 1.06);
    let parents: Vec<Vec<usize>> =
        (0..8_usize).map(|version| version.checked_sub(1).into_iter().collect()).collect();
    let mut doubtful = 0;
    for seed in 0..20 {
        let judged = |with_cpu: bool| {
            let mut history = graph(&parents);
            let mut pcg = Pcg::new(seed);
            weigh(&mut history, "parse", "time.wall", &levels, 12, 0.2, &mut pcg);
            if with_cpu {
                weigh(&mut history, "parse", "time.cpu", &levels, 12, 0.01, &mut pcg);
            }
            count(&mut history, "parse", "malloc.bytes", &allocated);
            find_changes(&history)
                .series
                .into_iter()
                .find(|series| series.metric == "time.wall")
                .expect("wall")
        };
        let [alone, beside] = [false, true].map(judged);
        let change = |series: &Series| series.changes.first().map(|change| (change.at, change.set.clone()));
        let (Some((at, set)), Some((at_beside, _))) = (change(&alone), change(&beside)) else { continue };
        if set.contains(&4) && set.contains(&5) {
            doubtful += 1;
            assert_eq!((at, at_beside), (4, 5), "seed {seed}");
        }
    }
    assert!(doubtful > 0);
}
