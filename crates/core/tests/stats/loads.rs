//! A/A tests of servers under load: how often a row of their cost sheets is called different, how often a sheet has any
//! such row, and which true differences are still found.
#![expect(clippy::print_stdout, reason = "the table is what one runs the long version for")]

use crate::aa::Wrong;
use crate::noise::{normal, processes};
use scruple_core::judge::pooled::readings;
use scruple_core::judge::{Judged, Pair, compare_pairs};
use scruple_core::metric::{Pass, metric};
use scruple_core::run::Terms;
use scruple_core::sample::{BLOCKS_OF_A_TURN, Figure, Reading};
use scruple_core::subject::{Arm, Role, Subject};
use scruple_core::verdict::{Direction, Verdict};
use scruple_stats::paired::Why;
use scruple_stats::pooled;
use scruple_stats::rng::Pcg;

fn arm_of(name: &str) -> Arm {
    let subject = Subject::Request { url: String::new(), server: Vec::new(), rate: None, connections: 1 };
    Arm::new(name, subject, Role::Subject)
}

/// Adds the readings of a metric. `turns` holds the windows of each turn.
fn read(arm: &mut Arm, key: &str, turns: &[Vec<f64>]) {
    let metric = metric(key).expect("declared");
    let mut figure = None;
    for (turn, windows) in (0..).zip(turns) {
        for (window, value) in (0..).zip(windows) {
            let block = turn * BLOCKS_OF_A_TURN + window;
            Figure::add(&mut figure, Reading::of(metric, *value, "simulated"), Pass::Timing, block);
        }
    }
    arm.figures.extend(figure.map(|figure| (key.to_owned(), figure)));
}

fn compared(reference: &Arm, arm: &Arm, paired: bool) -> Vec<Judged> {
    compare_pairs(&[Pair::new(reference, arm, paired)], &Terms::default())
}

/// A server's processor time per request, in `turns` turns of ten windows. The turns differ by 5 %.
fn server(pcg: &mut Pcg, name: &str, turns: usize) -> Arm {
    let mut arm = arm_of(name);
    read(&mut arm, "request.cpu", &processes(pcg, turns, 10, 0.05, 0.01));
    arm
}

#[test]
fn turns_that_differ_do_not_make_servers_different_however_many_windows_they_have() {
    let mut pcg = Pcg::new(93);
    for turns in [1, 2, 3, 5, 10] {
        let wrong = Wrong::of(1000, || {
            let (reference, arm) = (server(&mut pcg, "old", turns), server(&mut pcg, "new", turns));
            compared(&reference, &arm, true).remove(0).comparison
        });
        if turns < 3 {
            assert_eq!((wrong.verdicts, wrong.limits), (0, 0), "{turns} turns do not show how they differ");
        }
        wrong.check(&format!("{turns} turns"));
    }
}

/// A load of one turn in which neighbouring windows are correlated.
fn single_turn(pcg: &mut Pcg) -> Arm {
    let mut arm = server(pcg, "one", 1);
    let Some(Figure::Sample(sample)) = arm.figures.get_mut("request.cpu") else { panic!("no windows") };
    let mut level = 0.0;
    for reading in &mut sample.readings {
        level = 0.5 * level + 0.02 * (pcg.unit() + pcg.unit() - 1.0);
        *reading = 1e5 * f64::exp(level);
    }
    arm
}

#[test]
fn windows_that_resemble_their_neighbours_do_not_make_two_stored_loads_different() {
    let mut pcg = Pcg::new(94);
    let wrong = Wrong::of(1000, || {
        let (reference, arm) = (single_turn(&mut pcg), single_turn(&mut pcg));
        compared(&reference, &arm, false).remove(0).comparison
    });
    wrong.check("loads of one turn each");
}

#[test]
fn servers_of_which_no_request_failed_have_the_same_failures() {
    let server = |name: &str, failed: f64| {
        let mut arm = arm_of(name);
        read(&mut arm, "load.errors", &vec![vec![0.0, failed]; 10]);
        arm
    };
    let verdict =
        |failed: f64| compared(&server("old", 0.0), &server("new", failed), true)[0].comparison.verdict;
    assert_eq!((verdict(0.0), verdict(0.1)), (Verdict::Same, Verdict::CantTell));
}

/// The rows of a cost sheet: the metric, the standard deviation between turns (of logarithms), and the share of it that
/// comes from the machine and is common to all rows. The values are those of a server of 1 ms at 400 requests/s.
const ROWS: [(&str, f64, f64); 12] = [
    ("load.lag.p99", 1.0, 0.5),
    ("load.mean", 0.04, 0.5),
    ("load.p50", 0.014, 0.2),
    ("load.p90", 0.05, 0.5),
    ("load.p99", 0.35, 0.7),
    ("load.rate", 0.0001, 0.0),
    ("load.service.p50", 0.012, 0.2),
    ("load.service.p99", 0.26, 0.7),
    ("request.cpu", 0.08, 0.5),
    ("request.switches.voluntary", 0.015, 0.2),
    ("request.sys", 0.24, 0.3),
    ("request.wait", 0.6, 0.7),
];

/// The cost sheet of a server that was loaded in `turns` turns of two windows. `cpu` is the factor of its processor
/// time. With `tails`, one turn in ten is disturbed in all rows.
fn sheet(pcg: &mut Pcg, name: &str, turns: usize, tails: bool, cpu: f64) -> Arm {
    let mut arm = arm_of(name);
    let mut machine = || {
        let disturbed = if tails && pcg.unit() < 0.1 { 5.0 * pcg.unit() } else { 0.0 };
        normal(pcg) + disturbed
    };
    let machine: Vec<f64> = (0..turns).map(|_| machine()).collect();
    for (key, spread, share) in ROWS {
        let typical = if key == "request.cpu" { 1e5 * cpu } else { 1e5 };
        let mut turn = |machine: &f64| {
            let level = share * machine + (1.0 - share) * normal(pcg);
            (0..2).map(|_| typical * (spread * (level + 0.3 * normal(pcg))).exp()).collect()
        };
        let all: Vec<Vec<f64>> = machine.iter().map(&mut turn).collect();
        read(&mut arm, key, &all);
    }
    arm
}

/// Cost sheets of identical servers by the number of turns, side by side and against a stored run.
fn sheets_of_identical_servers(tries: u32) {
    println!(
        "| turns | turns with tails | side by side | wrong rows, % | sheets with a wrong row, % |\n|---|---|---|---|---|"
    );
    for (number, turns) in (0..).zip([3, 5, 6, 10]) {
        for (tails, paired) in [(false, true), (true, true), (true, false)] {
            let mut pcg = Pcg::with_stream(95, number);
            let (mut rows, mut sheets) = (Wrong::default(), Wrong { tries, ..Wrong::default() });
            for _ in 0..tries {
                let (old, new) =
                    (sheet(&mut pcg, "old", turns, tails, 1.0), sheet(&mut pcg, "new", turns, tails, 1.0));
                let found = compared(&old, &new, paired);
                let mut each = found.into_iter().map(|row| row.comparison);
                let of_rows = Wrong::of(ROWS.len() as u32, || each.next().expect("a row for each metric"));
                rows.add(&of_rows);
                sheets.verdicts += u32::from(of_rows.verdicts > 0);
                sheets.limits += u32::from(of_rows.limits > 0);
            }
            let yes = |it: bool| if it { "yes" } else { "no" };
            println!("| {turns} | {} | {} | {} | {} |", yes(tails), yes(paired), rows.cell(), sheets.cell());
            rows.check(&format!("rows of {turns} turns, tails {tails}, paired {paired}"));
            sheets.check(&format!("sheets of {turns} turns, tails {tails}, paired {paired}"));
        }
    }
}

#[test]
fn sheets_of_identical_servers_seldom_have_a_row_that_differs() {
    sheets_of_identical_servers(150);
}

#[test]
#[ignore = "takes minutes in a debug build"]
fn sheets_of_identical_servers_at_twenty_times_the_size() {
    sheets_of_identical_servers(3000);
}

#[test]
fn a_fifth_more_processor_time_is_found_in_ten_turns_among_the_rows_of_a_sheet() {
    let mut pcg = Pcg::new(96);
    let found = |_| {
        let (old, new) = (sheet(&mut pcg, "old", 10, false, 1.0), sheet(&mut pcg, "new", 10, false, 1.2));
        let rows = compared(&old, &new, true);
        rows.iter().any(|row| row.metric == "request.cpu" && row.comparison.verdict == Verdict::Different)
    };
    let found = (0..100).map(found).filter(|found| *found).count();
    println!("a fifth more processor time: found in {found} of 100");
    assert!(found >= 90, "{found} of 100");
}

#[test]
fn an_interval_that_excludes_next_to_nothing_is_not_shown_but_takes_its_share_of_the_error() {
    let server = |name: &str, waits: [f64; 3], cpu: f64| {
        let mut arm = arm_of(name);
        read(&mut arm, "request.wait", &waits.map(|wait| vec![wait; 10]));
        read(&mut arm, "request.cpu", &[1.0, 1.01, 0.99].map(|turn| vec![cpu * turn; 10]));
        arm
    };
    let reference = server("old", [100.0; 3], 100.0);
    for (waits, cpu) in [([100.0, 800.0, 15_000.0], 90.0), ([100.0, 500.0, 1_000.0], 99.9)] {
        let found = compared(&reference, &server("new", waits, cpu), false);
        let of = |key: &str| &found.iter().find(|row| row.metric == key).expect("a row").comparison;
        let (wait, cpu) = (of("request.wait"), of("request.cpu"));
        let wide = waits[2] > 10_000.0;
        assert_eq!(wait.verdict, Verdict::CantTell);
        assert_eq!(wait.evidence.why(), wide.then_some(Why::TooWide), "{wait:?}");
        assert!(wait.more_blocks > 0 && wait.evidence.effect().is_some_and(|ratio| ratio > 3.0));
        assert!(cpu.interval().is_some_and(|interval| interval.level > 0.97), "{cpu:?}");
    }
}

/// A server with this many failures in each turn of 200 requests, in ten windows.
fn failing(name: &str, turns: &[u64]) -> Arm {
    let mut arm = arm_of(name);
    let windows =
        |failed: u64| (0..10).map(move |window| (failed / 10 + u64::from(window < failed % 10), 20));
    let blocks: Vec<(u64, u64)> = turns.iter().flat_map(|failed| windows(*failed)).collect();
    let shares: Vec<Vec<f64>> = blocks
        .chunks(10)
        .map(|turn| turn.iter().map(|(failed, all)| *failed as f64 / *all as f64).collect())
        .collect();
    read(&mut arm, "load.errors", &shares);
    for (key, values) in readings(pooled::share(&blocks, 0.95).expect("a share"), "load.errors") {
        let mut figure = None;
        for value in values {
            let metric = metric("load.errors").expect("declared");
            let reading = Reading { key: key.clone(), ..Reading::of(metric, value, "simulated") };
            Figure::add(&mut figure, reading, Pass::Timing, 0);
        }
        arm.figures.extend(figure.map(|figure| (key, figure)));
    }
    arm
}

#[test]
fn failures_differ_from_none_though_there_is_no_ratio() {
    let none = failing("old", &[0; 10]);
    let verdict = |reference: &Arm, arm: &Arm| {
        let found = compared(reference, arm, true).remove(0).comparison;
        (found.verdict, found.direction)
    };
    let some = failing("new", &[10, 9, 11, 10, 10, 12, 8, 10, 9, 11]);
    assert_eq!(verdict(&none, &some), (Verdict::Different, Some(Direction::Worse)));
    assert_eq!(verdict(&some, &none), (Verdict::Different, Some(Direction::Better)));
    let few = failing("new", &[1, 0, 0, 2, 0, 0, 1, 0, 1, 0]);
    assert_eq!(verdict(&few, &some), (Verdict::Different, Some(Direction::Worse)));
    assert_eq!(verdict(&some, &some).0, Verdict::CantTell);
    // One turn in which the server was away does not show that it is so again.
    let once = failing("new", &[0, 0, 0, 100, 0, 0, 0, 0, 0, 0]);
    assert_eq!(verdict(&none, &once).0, Verdict::CantTell);
    assert_eq!(verdict(&none, &none).0, Verdict::Same);
    assert_eq!(verdict(&failing("old", &[0, 0]), &failing("new", &[90, 91])).0, Verdict::CantTell);
}

#[test]
fn equal_shares_of_failures_are_seldom_called_different() {
    let mut pcg = Pcg::new(17);
    // On average, three of the 200 requests of a turn fail.
    let mut server = |name: &str| {
        let mut failed = || (0..200).filter(|_| pcg.unit() < 0.015).count() as u64;
        failing(name, &std::array::from_fn::<u64, 10, _>(|_| failed()))
    };
    let tries = 400;
    let wrong = (0..tries).filter(|_| {
        let (reference, arm) = (server("old"), server("new"));
        compared(&reference, &arm, true)[0].comparison.verdict == Verdict::Different
    });
    let wrong = wrong.count();
    assert!(wrong <= tries / 20 + 12, "{wrong} of {tries}");
}

#[test]
fn a_limit_on_ten_times_the_failures_is_seldom_decided_where_they_are_ten_times_as_many() {
    let mut pcg = Pcg::new(29);
    let mut server = |name: &str, share: f64| {
        let mut failed = || (0..200).filter(|_| pcg.unit() < share).count() as u64;
        failing(name, &std::array::from_fn::<u64, 10, _>(|_| failed()))
    };
    let tries = 200;
    let wrong = (0..tries).filter(|_| {
        let (reference, arm) = (server("old", 0.01), server("new", 0.1));
        let evidence = compared(&reference, &arm, true).remove(0).comparison.evidence;
        !evidence.ratio_bounds().is_ok_and(|(low, high)| low <= 10.0 && 10.0 <= high)
    });
    let wrong = wrong.count();
    assert!(wrong <= tries / 20 + 9, "{wrong} of {tries}");
}
