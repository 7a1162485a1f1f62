//! How much the machine alone may change the figures between two runs that were not taken side by side.

use super::{Pair, clock, shared_core};
use crate::subject::{Arm, Subject};
use crate::verdict;
use scruple_stats::paired::Why;

/// Figures that depend more on other programs on the machine than on the subject.
const OF_OTHERS: [&str; 3] = ["time.wait", "time.contended", "switches.involuntary"];

/// Figures that runtimes derive from a clock while their threads may be waiting for cores.
const OF_RUNTIMES: [&str; 2] = ["gc.time", "gc.pause_max"];

/// The largest share of waiting that is assumed: at 1, no time would be left for the program.
const MOST: f64 = 0.99;

/// How much the machine alone may change a figure from one run to another, as a ratio less 1.
pub(super) fn reach(key: &str, pair: &Pair<'_>, level: f64) -> Result<f64, Why> {
    match pair.arm.subject {
        _ if pair.paired => Ok(0.0),
        Subject::Case { .. } => Ok(of_the_core(key, pair)),
        Subject::Request { .. } => Ok(0.0),
        Subject::Command { .. } => of_a_command(key, pair, level),
    }
}

/// A change of the clock by less than this share is within the errors of its measurement.
const CLOCK_NOISE: f64 = 0.005;

/// How much the core alone may change the time of a case: by the change of its clock, and by whether it was shared.
fn of_the_core(key: &str, pair: &Pair<'_>) -> f64 {
    let Some((left, right)) = pair.tares.filter(|_| key.starts_with("time.")) else { return 0.0 };
    let clocks = clock::cycle(left).zip(clock::cycle(right));
    let clock = clocks.map_or(1.0, |(left, right)| (left / right).max(right / left));
    let clock = if clock > 1.0 + CLOCK_NOISE { clock } else { 1.0 };
    clock * shared_core::between(left, right) - 1.0
}

/// How much the machine may change a figure of a command. It is what the figure of the empty program, which is the same
/// in both runs, may have changed by; for times it is at least what may have been spent waiting for a core.
fn of_a_command(key: &str, pair: &Pair<'_>, level: f64) -> Result<f64, Why> {
    if OF_OTHERS.contains(&key) {
        return Err(Why::OtherWork);
    }
    let scheduled = key == "time.wall" || key == "switches.voluntary";
    let of_tare = if scheduled { "time.wall" } else { key };
    let tares = pair.tares.and_then(|(left, right)| left.sample(of_tare).zip(right.sample(of_tare)));
    let tare = tares.map_or(0.0, |(left, right)| {
        let found = verdict::compare_unpaired(&left.readings, &right.readings, true, 0.0, level);
        verdict::honest_margin(0.0, Some(&found))
    });
    let most = match key {
        _ if scheduled => |arm: &Arm| waiting_share(arm).or_else(|| share_of_wall(arm, "time.contended")),
        _ if OF_RUNTIMES.contains(&key) => |arm: &Arm| share_of_wall(arm, "time.contended"),
        _ => return Ok(tare),
    };
    let mut waiting: f64 = 0.0;
    // Results of other tools do not contain waiting, and are taken as they are.
    let weighed = |arm: &&Arm| arm.figures.contains_key("time.wait");
    for arm in [pair.reference, pair.arm].into_iter().filter(weighed) {
        let share = most(arm).ok_or(Why::UnknownWaiting)?.min(MOST);
        waiting = waiting.max(share / (1.0 - share));
    }
    Ok(tare.max(waiting))
}

/// The share of wall time that the arm spent ready to run but waiting for a core, over all its readings; `None` where
/// the figures do not have the same blocks.
pub fn waiting_share(arm: &Arm) -> Option<f64> {
    share_of_wall(arm, "time.wait")
}

/// The largest share of wall time that the arm may have spent waiting for a core because of other programs, by the
/// account of the whole machine; `None` where that is not known, or where the program itself kept half of the `cores`
/// busy, so that its own threads may have waited for each other.
pub fn possible_waiting_share(arm: &Arm, cores: u32) -> Option<f64> {
    let own = share_of_wall(arm, "time.cpu")?;
    share_of_wall(arm, "time.contended").filter(|_| own < f64::from(cores.max(1)) / 2.0)
}

fn share_of_wall(arm: &Arm, key: &str) -> Option<f64> {
    let (wall, wait) = (arm.sample("time.wall")?, arm.sample(key)?);
    if wait.blocks != wall.blocks {
        return None;
    }
    let total: f64 = wall.readings.iter().sum();
    (total > 0.0).then(|| wait.readings.iter().sum::<f64>() / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::judge::compare_pairs;
    use crate::judge::undisturbed_blocks::tests::arm;
    use crate::judge::witnesses::ADDITIONS;
    use crate::metric::{Metric, Pass, Quality, metric};
    use crate::run::Terms;
    use crate::sample::{BLOCKS_OF_A_PROCESS, Figure, Reading};
    use crate::subject::Role;
    use crate::unit::Unit;
    use crate::verdict::Verdict;

    /// Ten launches that take about `wall` milliseconds, with what is known about their waiting.
    fn command(wall: f64, known: &[(&str, Option<f64>)]) -> Arm {
        let mut arm = Arm::new("p", Subject::Command { argv: vec!["p".to_owned()] }, Role::Subject);
        for block in 0..10 {
            let jitter = 1.0 + 0.01 * f64::from(block * 3 % 7);
            for (key, share) in [("time.wall", Some(1.0))].iter().chain(known) {
                let declared = metric(key)
                    .cloned()
                    .unwrap_or_else(|| Metric::custom(key, Unit::Nanoseconds, Quality::Noisy, Pass::Timing));
                let reading = match share {
                    Some(share) => Reading::of(&declared, 1e6 * wall * jitter * share, "test"),
                    None => Reading::absent(&declared, "other threads ran"),
                };
                let mut figure = arm.figures.remove(*key);
                Figure::add(&mut figure, reading, Pass::Timing, block);
                arm.figures.extend(figure.map(|figure| ((*key).to_owned(), figure)));
            }
        }
        arm
    }

    fn judged(reference: &Arm, arm: &Arm, key: &str) -> (Verdict, Option<Why>) {
        let pair = Pair::new(reference, arm, false);
        let found = compare_pairs(&[pair], &Terms::default());
        let one = found.iter().find(|one| one.metric == key).expect("judged");
        (one.comparison.verdict, one.comparison.evidence.why())
    }

    #[test]
    fn wall_time_of_two_runs_differs_by_more_than_may_have_been_waiting() {
        let quiet = command(10.0, &[("time.wait", Some(0.0))]);
        let verdict = |share: f64, factor: f64| {
            judged(&quiet, &command(10.0 * factor, &[("time.wait", Some(share))]), "time.wall").0
        };
        assert_eq!((verdict(0.0, 1.5), verdict(0.1, 1.5)), (Verdict::Different, Verdict::Different));
        assert_ne!(verdict(0.5, 1.9), Verdict::Different);
        assert_eq!(verdict(0.5, 3.0), Verdict::Different);
    }

    #[test]
    fn where_waiting_is_not_known_the_pressure_on_all_cores_bounds_it() {
        let threads =
            |wall: f64, pressure| command(wall, &[("time.wait", None), ("time.contended", Some(pressure))]);
        let verdict = |share| judged(&threads(10.0, 0.0), &threads(50.0, share), "time.wall").0;
        assert_eq!((verdict(0.0), verdict(0.7)), (Verdict::Different, Verdict::Different));
        assert_ne!(verdict(0.9), Verdict::Different, "all of it may have been waiting");
        let unknown = command(50.0, &[("time.wait", None), ("time.contended", None)]);
        let quiet = threads(10.0, 0.0);
        assert_eq!(judged(&quiet, &unknown, "time.wall"), (Verdict::CantTell, Some(Why::UnknownWaiting)));
    }

    #[test]
    fn collections_of_two_runs_differ_by_more_than_the_pressure_on_all_cores_explains() {
        let collects = |share, pressure| {
            command(
                10.0,
                &[("time.wait", None), ("time.contended", Some(pressure)), ("gc.time", Some(share))],
            )
        };
        let verdict = |pressure| judged(&collects(0.1, 0.0), &collects(0.3, pressure), "gc.time").0;
        assert_eq!((verdict(0.0), verdict(0.5)), (Verdict::Different, Verdict::Different));
        assert_ne!(verdict(0.8), Verdict::Different);
    }

    /// Three processes of a case and its tare, on a core with this cycle time, and with additions that take `additions`
    /// cycles.
    fn case(time: f64, cycle: f64, additions: f64) -> (Arm, Arm) {
        let blocks = |value: f64| {
            let of = |process: u32| (0..10).map(move |block| process * BLOCKS_OF_A_PROCESS + block);
            (0..3).flat_map(of).map(|block| (block, value * (1.0 + 0.001 * f64::from(block % 7)))).collect()
        };
        let core = [("batch.cycle", blocks(cycle)), (ADDITIONS, blocks(additions))];
        let tare = [&core[..], &[("time.wall", blocks(cycle))]].concat();
        (arm(Role::Subject, &[("time.wall", blocks(time))]), arm(Role::Tare, &tare))
    }

    #[test]
    fn times_of_cases_in_two_runs_differ_by_more_than_the_core_explains() {
        let (reference, of_reference) = case(100.0, 0.25, 2_700.0);
        let verdict = |time: f64, cycle: f64, additions: f64| {
            let (case, tare) = case(time, cycle, additions);
            let tares = Some((&of_reference, &tare));
            let pair = Pair { tares, ..Pair::new(&reference, &case, false) };
            let found = compare_pairs(&[pair], &Terms::default());
            found.iter().find(|one| one.metric == "time.wall").expect("judged").comparison.verdict
        };
        assert_eq!(verdict(117.0, 0.25, 2_700.0), Verdict::Different);
        assert_ne!(verdict(117.0, 0.30, 2_700.0), Verdict::Different, "the clock");
        assert_ne!(verdict(180.0, 0.25, 3_700.0), Verdict::Different, "another hardware thread");
        assert_eq!(verdict(230.0, 0.25, 3_700.0), Verdict::Different);
    }

    #[test]
    fn what_others_ran_is_not_compared_over_two_runs() {
        let waited =
            |share| command(10.0, &[("time.wait", Some(share)), ("switches.involuntary", Some(share))]);
        for key in ["time.wait", "switches.involuntary"] {
            assert_eq!(judged(&waited(0.01), &waited(0.9), key), (Verdict::CantTell, Some(Why::OtherWork)));
        }
    }
}
