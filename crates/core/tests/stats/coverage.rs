//! Coverage of intervals and error rates of verdicts, by simulation from fixed seeds.
//!
//! The quick versions always run. `cargo test -- --ignored --nocapture` repeats them at ten times the size and prints
//! the figures.
#![expect(clippy::print_stdout, reason = "the figures are what one runs the long versions for")]

use crate::entries::entry;
use scruple_core::judge::{bench_cases, witnesses};
use scruple_core::metric::{Pass, metric};
use scruple_core::sample::{BLOCKS_OF_A_PROCESS, Figure, Reading};
use scruple_core::subject::{Arm, Parameter, Role, Subject};
use scruple_core::verdict::{Direction, NoisyRow, Verdict, compare_many, compare_noisy};
use scruple_stats::Interval;
use scruple_stats::rng::Pcg;
use scruple_stats::summary::mean;
use scruple_stats::{bootstrap, growth, median_interval, ols, paired, power, processes, quantile, tare};

use crate::noise::{self, NOISES, Noise, blocks, normal};

/// The share of `tries` attempts that return true. Each attempt gets its own random generator.
pub fn share(tries: u64, seed: u64, mut attempt: impl FnMut(&mut Pcg) -> bool) -> f64 {
    (0..tries).filter(|&number| attempt(&mut Pcg::with_stream(seed, number))).count() as f64 / tries as f64
}

fn paired_intervals(tries: u64) {
    for noise in NOISES {
        for n in [6, 9, 10, 20, 40] {
            let held = share(tries, n as u64, |pcg| {
                let (reference, arm) = blocks(pcg, noise, n, 1.02);
                paired::effect(&reference, &arm, 0.95).is_ok_and(|effect| effect.interval.contains(1.02))
            });
            println!("paired, {noise:?}, {n} blocks: the interval holds in {:.1} %", 100.0 * held);
            assert!(held >= 0.93, "{noise:?}, {n} blocks: {held}");
        }
    }
}

#[test]
fn paired_intervals_hold_as_often_as_they_say() {
    paired_intervals(400);
}

fn unpaired_intervals(tries: u64) {
    for noise in [Noise::Quiet, Noise::Skewed, Noise::Busy(0.2)] {
        for n in [5, 15, 40] {
            let mut given = 0.0;
            let held = share(tries, n as u64, |pcg| {
                let (reference, arm) = blocks(pcg, noise, n, 1.02);
                let found = paired::unpaired_effect(&reference, &arm[..n - 1], 0.95);
                given += f64::from(u8::from(found.is_ok())) / tries as f64;
                found.map_or(true, |effect| effect.interval.contains(1.02))
            });
            // The correlation of neighbours can hardly be estimated from five readings, so that few comparisons have an
            // interval.
            assert!(given >= if n < 40 { 0.2 } else { 0.9 }, "{noise:?}, {n}: {given} have an interval");
            println!(
                "unpaired, {noise:?}, {n} and {} readings: the interval holds in {:.1} %",
                n - 1,
                100.0 * held
            );
            assert!(held >= 0.93, "{noise:?}, {n}: {held}");
        }
    }
}

#[test]
fn unpaired_intervals_hold_as_often_as_they_say() {
    unpaired_intervals(300);
}

fn identical_programs(tries: u64) {
    for noise in NOISES {
        for n in [6, 10, 20, 40, 80] {
            for margin in [0.0, 0.01] {
                let wrong = share(tries, 100 + n as u64, |pcg| {
                    let (reference, arm) = blocks(pcg, noise, n, 1.0);
                    compare_noisy(&reference, &arm, true, margin, 0.95).verdict == Verdict::Different
                });
                println!("A/A, {noise:?}, {n} blocks, margin {margin}: different in {:.2} %", 100.0 * wrong);
                // Three standard errors of the simulated share.
                let slack = 3.0 * (0.05 * 0.95 / tries as f64).sqrt();
                assert!(wrong <= 0.05 + slack, "{noise:?}, {n} blocks, margin {margin}: {wrong}");
            }
        }
    }
}

#[test]
fn identical_programs_are_rarely_called_different() {
    identical_programs(150);
}

fn two_per_cent(tries: u64) {
    // Heavier contamination needs more blocks. Where batches are short, a time budget of seconds suffices for them.
    for (noise, n) in [
        (Noise::Quiet, 40),
        (Noise::Busy(0.05), 40),
        (Noise::Busy(0.1), 60),
        (Noise::Busy(0.2), 120),
        (Noise::Busy(0.4), 500),
        (Noise::Bursts(0.4), 200),
    ] {
        let (mut found, mut wrong, mut outside) = (0.0, 0.0, 0.0);
        for number in 0..tries {
            let (reference, arm) = blocks(&mut Pcg::with_stream(77, number), noise, n, 1.02);
            let comparison = compare_noisy(&reference, &arm, true, 0.01, 0.95);
            found += f64::from(u8::from(comparison.direction == Some(Direction::Worse)));
            outside += f64::from(u8::from(comparison.verdict == Verdict::Different));
            wrong += f64::from(u8::from(
                comparison.direction == Some(Direction::Better) || comparison.verdict == Verdict::Same,
            ));
        }
        let per_cent = |count: f64| 100.0 * count / tries as f64;
        let (found, outside, wrong) = (per_cent(found), per_cent(outside), per_cent(wrong));
        println!(
            "true 2 %, {noise:?}, {n} blocks: found {found:.1} %, as different {outside:.1} %, wrong {wrong:.2} %"
        );
        assert!(found >= 95.0 && wrong <= 1.0, "{noise:?}: found {found} %, wrong {wrong} %");
    }
}

#[test]
fn a_true_two_per_cent_is_found_on_a_busy_machine() {
    two_per_cent(100);
}

fn at_the_margin(tries: u64) {
    for noise in [Noise::Quiet, Noise::Skewed, Noise::Busy(0.05)] {
        let (mut same, mut different) = (0.0, 0.0);
        for number in 0..tries {
            let (reference, arm) = blocks(&mut Pcg::with_stream(78, number), noise, 40, 1.02);
            match compare_noisy(&reference, &arm, true, 0.02, 0.95).verdict {
                Verdict::Same => same += 1.0 / tries as f64,
                Verdict::Different => different += 1.0 / tries as f64,
                _ => {}
            }
        }
        println!("exactly at the margin, {noise:?}: same in {same:.3}, different in {different:.3}");
        assert!(same <= 0.05 && different <= 0.05, "{noise:?}: {same}, {different}");
    }
}

#[test]
fn an_effect_exactly_at_the_margin_is_seldom_placed_on_either_side() {
    at_the_margin(300);
}

fn looking_often(tries: u64) {
    let looks = power::looks(10, 160, 0.95);
    let wrong = share(tries, 79, |pcg| {
        let (reference, arm) = blocks(pcg, Noise::Busy(0.2), 160, 1.0);
        looks.iter().any(|look| {
            let (reference, arm) = (&reference[..look.blocks], &arm[..look.blocks]);
            compare_noisy(reference, arm, true, 0.0, look.level).verdict == Verdict::Different
        })
    });
    println!(
        "five looks at identical programs, margin 0: different at any of them in {:.1} %",
        100.0 * wrong
    );
    assert!(wrong <= 0.05, "{wrong}");
}

#[test]
fn looking_five_times_errs_no_more_often_than_once() {
    looking_often(200);
}

fn tables(tries: u64) {
    for margin in [0.0, 0.005] {
        let wrong = share(tries, 80, |pcg| {
            let arms: Vec<_> = (0..10).map(|_| blocks(pcg, Noise::Quiet, 20, 1.0)).collect();
            let table: Vec<NoisyRow> = arms.iter().map(|(r, a)| entry(r, a, margin)).collect();
            compare_many(&table, 0.95).iter().any(|comparison| comparison.verdict == Verdict::Different)
        });
        println!(
            "ten identical programs in one table, margin {margin}: any different in {:.1} %",
            100.0 * wrong
        );
        assert!(wrong <= 0.06, "{wrong}");
    }
}

#[test]
fn a_table_of_identical_programs_errs_no_more_often_than_one_comparison() {
    tables(200);
}

fn medians(tries: u64) {
    for n in [6, 11, 25, 100] {
        let held = share(tries, 81, |pcg| {
            let readings: Vec<f64> = (0..n).map(|_| -(1.0 - pcg.unit()).ln()).collect();
            median_interval::median_interval(&readings, 0.95)
                .is_some_and(|i| i.contains(std::f64::consts::LN_2))
        });
        println!("median of {n} exponential readings: the interval holds in {:.1} %", 100.0 * held);
        assert!(held >= 0.93, "{n}: {held}");
    }
    let held = share(tries, 82, |pcg| {
        let (tare, raw) = blocks(pcg, Noise::Busy(0.2), 40, 1.0);
        let raw: Vec<f64> = raw.iter().map(|reading| reading + 3.0).collect();
        tare::net(&raw, &tare, 0.95).is_ok_and(|net| net.interval.contains(3.0))
    });
    println!("net of tare on a busy machine: the interval holds in {:.1} %", 100.0 * held);
    assert!(held >= 0.93, "{held}");
}

#[test]
fn intervals_of_medians_and_nets_hold_as_often_as_they_say() {
    medians(500);
}

fn several_processes(tries: u64) {
    for count in [3, 5, 8, 20] {
        for between in [0.0, 0.002, 0.005, 0.05] {
            let held = share(tries, 83, |pcg| {
                let groups = noise::processes(pcg, count, 20, between, 0.02);
                processes::median_of_groups(&groups, 0.95).is_some_and(|found| found.interval.contains(100.0))
                    && processes::median_of_amounts(&groups, 0.95)
                        .is_some_and(|found| found.interval.contains(100.0))
            });
            println!(
                "{count} processes that differ by {between}: the interval holds in {:.1} %",
                100.0 * held
            );
            assert!(held >= 0.92, "{count} processes, {between}: {held}");
        }
    }
}

/// Five processes that differ by less than the standard errors of their medians: too little to be detected in one run,
/// but enough that an interval from pooled readings is too narrow.
#[test]
fn intervals_hold_where_processes_differ_by_too_little_to_be_seen() {
    let mut pooled = 0.0;
    let held = share(150, 88, |pcg| {
        let groups = noise::processes(pcg, 5, 30, 0.003, 0.02);
        let plain =
            median_interval::median_interval(&groups.concat(), 0.95).is_some_and(|i| i.contains(100.0));
        pooled += f64::from(u8::from(plain)) / 150.0;
        let found = processes::median_of_amounts(&groups, 0.95).expect("five processes");
        found.interval.contains(100.0)
    });
    println!(
        "5 processes that differ a little: the interval holds in {:.1} %, of pooled readings in {:.1} %",
        100.0 * held,
        100.0 * pooled
    );
    assert!(held >= 0.94 && pooled < 0.93, "{held}, {pooled}");
}

/// An interval is read as what the next invocation will say. A confidence interval of the median holds the median of as
/// many further processes in only 83 % of all cases.
#[test]
fn intervals_hold_the_figure_of_the_next_invocation() {
    for count in [3, 5, 8] {
        let held = share(150, 89, |pcg| {
            let groups = noise::processes(pcg, count, 30, 0.05, 0.02);
            let next = quantile::median(&noise::processes(pcg, count, 30, 0.05, 0.02).concat());
            let found = processes::median_of_amounts(&groups, 0.95).expect("enough processes");
            found.interval.contains(next)
        });
        println!("{count} processes: the interval holds the next figure in {:.1} %", 100.0 * held);
        assert!(held >= 0.94, "{count}: {held}");
    }
}

#[test]
#[ignore = "takes minutes in a debug build"]
fn medians_over_several_processes_hold_although_processes_differ() {
    several_processes(400);
}

/// Three processes that differ by a factor of about two: a Student interval of so few medians on the linear scale would
/// end below zero.
#[test]
fn amounts_of_few_processes_that_differ_much_have_intervals_above_zero() {
    let (mut below, mut plain_holds) = (0, 0);
    let held = share(200, 87, |pcg| {
        let centres: Vec<f64> = (0..3).map(|_| 100.0 * normal(pcg).exp()).collect();
        let groups: Vec<Vec<f64>> = centres
            .iter()
            .map(|centre| (0..8).map(|_| centre * (0.02 * normal(pcg)).exp()).collect())
            .collect();
        let found = processes::median_of_amounts(&groups, 0.95).expect("three processes of eight");
        assert!(found.interval.low > 0.0 && found.interval.contains(found.estimate), "{found:?}");
        let plain = processes::median_of_groups(&groups, 0.95).expect("three processes of eight");
        below += u32::from(plain.interval.low < 0.0);
        plain_holds += u32::from(plain.interval.contains(100.0));
        found.interval.contains(100.0)
    });
    let plain_held = f64::from(plain_holds) / 200.0;
    println!(
        "3 processes, by logarithms: the interval holds in {:.1} %, else {:.1} %",
        100.0 * held,
        100.0 * plain_held
    );
    assert!(below > 50, "only {below} intervals on the plain scale end below zero");
    // The linear scale must not have the better coverage, since three processes hold the same information on both
    // scales.
    assert!(held >= plain_held - 0.02 && held >= 0.87, "{held}, {plain_held}");
}

/// Nets of three processes of five blocks each, as a busy machine leaves them: a cost that each block shows is never
/// said to be possibly nothing, and the interval holds the figure of the next invocation. Without a cost, hardly any
/// invocation shows one.
#[test]
fn nets_of_few_blocks_hold_the_next_figure_and_are_not_nothing() {
    let run = |pcg: &mut Pcg, cost: f64, differ: f64| -> Vec<(Vec<f64>, Vec<f64>)> {
        let centres: Vec<f64> = (0..3).map(|_| cost * (differ * normal(pcg)).exp()).collect();
        let tare = |pcg: &mut Pcg| 2.7 * (0.05 * normal(pcg)).exp();
        let pair = |pcg: &mut Pcg, centre: f64| (tare(pcg) + centre * (0.1 * normal(pcg)).exp(), tare(pcg));
        centres.iter().map(|centre| (0..5).map(|_| pair(pcg, *centre)).unzip()).collect()
    };
    let net = |run: &[(Vec<f64>, Vec<f64>)]| {
        let pairs: Vec<(&[f64], &[f64])> = run.iter().map(|(r, t)| (r.as_slice(), t.as_slice())).collect();
        tare::net_by_process(&pairs, 0.95).expect("fifteen blocks")
    };
    let held = share(300, 90, |pcg| {
        let (found, next) = (net(&run(pcg, 60.0, 0.3)), net(&run(pcg, 60.0, 0.3)));
        assert!(found.interval.low > 0.0 && found.below_resolution.is_none(), "{found:?}");
        found.interval.contains(next.estimate)
    });
    println!("3 processes of 5 blocks: the interval of a net holds the next one in {:.1} %", 100.0 * held);
    assert!(held >= 0.93, "{held}");
    let shown = share(300, 91, |pcg| {
        let found = net(&run(pcg, 0.0, 0.3));
        found.below_resolution.is_none() && !found.unknown
    });
    assert!(shown <= 0.05, "{shown}");
}

fn criterion_panel(tries: u64) {
    let (mut mean_held, mut slope_held) = (0.0, 0.0);
    for number in 0..tries {
        let mut pcg = Pcg::with_stream(84, number);
        let readings: Vec<f64> = (0..40).map(|_| -(1.0 - pcg.unit()).ln()).collect();
        let found = bootstrap::bca(&readings, mean, 0.95, 1000, number).expect("forty readings");
        mean_held += f64::from(u8::from(found.interval.contains(1.0))) / tries as f64;
        let x: Vec<f64> = (1..=30).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| 5.0 + 2.0 * x + normal(&mut pcg)).collect();
        let panel = ols::panel(&x, &y, 0.95, 1000, number).expect("thirty batches");
        slope_held += f64::from(u8::from(panel.slope.interval.contains(2.0))) / tries as f64;
    }
    println!("BCa: mean of skewed readings {:.1} %, slope {:.1} %", 100.0 * mean_held, 100.0 * slope_held);
    assert!(mean_held >= 0.9 && slope_held >= 0.88, "{mean_held}, {slope_held}");
}

fn slopes_of_growth(tries: u64) {
    let held = share(tries, 85, |pcg| {
        let points: Vec<(f64, f64)> = (0..24)
            .map(|i| {
                let n = f64::from(10 << (i % 6));
                (n, (50.0 + 3.0 * n) * (0.02 * normal(pcg)).exp())
            })
            .collect();
        let found = growth::noisy(&points, 0.95).expect("six sizes");
        found.form == growth::GrowthForm::Linear && found.slope_interval.is_some_and(|i| i.contains(3.0))
    });
    println!("slope of linear growth: found linear and the interval holds in {:.1} %", 100.0 * held);
    assert!(held >= 0.9, "{held}");
}

#[test]
fn slopes_of_growth_hold_as_often_as_they_say() {
    slopes_of_growth(300);
}

#[test]
#[ignore = "takes minutes in a debug build"]
fn intervals_at_ten_times_the_size() {
    paired_intervals(6000);
    unpaired_intervals(3000);
    medians(5000);
    criterion_panel(400);
    slopes_of_growth(3000);
}

#[test]
#[ignore = "takes minutes in a debug build"]
fn verdicts_at_ten_times_the_size() {
    identical_programs(2500);
    two_per_cent(1000);
    at_the_margin(4000);
    looking_often(2000);
    tables(2000);
}

/// Simulates a case of 8.66 ns and its tare of 1 ns in eight processes, on a machine that leaves only a share `undisturbed` of
/// the blocks undisturbed. Returns whether the interval holds the true cost, and its width relative to that cost.
fn starved(pcg: &mut Pcg, undisturbed: f64) -> Option<(bool, f64)> {
    let declared = metric("time.wall").expect("declared");
    let arm = |name: &str, role| Arm::new(name, Subject::Command { argv: vec![name.to_owned()] }, role);
    let (mut case, mut tare) = (arm("case", Role::Subject), arm("case", Role::Tare));
    for process in 0..8 {
        let layout = 1.0 + 0.001 * normal(pcg);
        for block in 0..18 {
            let alone = pcg.unit() < undisturbed;
            let mut slow = || if alone { 1.0 + 0.002 * pcg.unit() } else { 1.3 + 2.0 / (pcg.unit() + 0.02) };
            for (arm, cost) in [(&mut case, 9.66 * layout), (&mut tare, 1.0)] {
                let reading = Reading::of(declared, cost * slow(), "simulated");
                let mut figure = arm.figures.remove("time.wall");
                Figure::add(&mut figure, reading, Pass::Timing, process * BLOCKS_OF_A_PROCESS + block);
                arm.figures.extend(figure.map(|figure| ("time.wall".to_owned(), figure)));
            }
        }
    }
    let net = bench_cases::net(&case, &tare, "time.wall", 0.95)?;
    Some((net.interval.contains(8.66), (net.interval.high - net.interval.low) / 8.66))
}

fn starved_cases(tries: u64) {
    for undisturbed in [0.06, 0.08, 0.2] {
        let (mut held, mut widths) = (0, Vec::new());
        for number in 0..tries {
            let Some((holds, width)) = starved(&mut Pcg::with_stream(91, number), undisturbed) else {
                continue;
            };
            held += u64::from(holds);
            widths.push(width);
        }
        let (found, width) = (widths.len() as u64, quantile::median(&widths));
        println!(
            "{undisturbed} of the blocks alone: {held} of {found} intervals hold, half are narrower than {width:.4}"
        );
        assert!(
            held as f64 >= 0.93 * found as f64 && found * 10 >= 9 * tries,
            "{undisturbed}: {held} of {found}"
        );
        assert!(width < 0.05 || undisturbed < 0.08, "{undisturbed}: {width}");
    }
}

#[test]
fn a_few_undisturbed_blocks_tell_what_a_case_costs() {
    starved_cases(100);
}

/// A case of a millisecond in three processes on a machine with three other busy programs: every batch is interrupted,
/// so that it takes two to six times its processor time.
fn always_waiting(pcg: &mut Pcg, with_cpu: bool) -> Interval {
    let arm = |name: &str, role| Arm::new(name, Subject::Command { argv: vec![name.to_owned()] }, role);
    let (mut case, mut tare) = (arm("case", Role::Subject), arm("case", Role::Tare));
    for block in (0..3).flat_map(|process| (0..6).map(move |block| process * BLOCKS_OF_A_PROCESS + block)) {
        let slow = 2.0 + 4.0 * pcg.unit();
        add(&mut case, "time.wall", 1e6 * slow, block);
        if with_cpu {
            add(&mut case, "time.cpu", 1e6 * (1.0 + 0.3 * pcg.unit().powi(3)), block);
        }
        add(&mut tare, "time.wall", 3.0 + 30.0 * pcg.unit(), block);
        add(&mut tare, witnesses::WAITED, 1.0 - 1.0 / slow, block);
    }
    bench_cases::net(&case, &tare, "time.wall", 0.95).expect("18 blocks").interval
}

#[test]
fn a_case_that_waits_for_a_core_in_every_block_may_cost_its_processor_time() {
    let held = |with_cpu| {
        (0..50)
            .filter(|number| always_waiting(&mut Pcg::with_stream(92, *number), with_cpu).contains(1e6))
            .count()
    };
    let (with, without) = (held(true), held(false));
    assert!(with >= 48 && without <= 25, "{with} of 50 with processor time, {without} without");
}

#[test]
fn threads_that_took_turns_in_every_block_may_run_side_by_side() {
    let arm = |name: &str, role| Arm::new(name, Subject::Command { argv: vec![name.to_owned()] }, role);
    let (mut case, mut tare) = (arm("case", Role::Subject), arm("case", Role::Tare));
    case.params.insert("threads".to_owned(), Parameter::Number(2.0));
    for block in (0..3).flat_map(|process| (0..6).map(move |block| process * BLOCKS_OF_A_PROCESS + block)) {
        // Side by side, an iteration of both would take 6.4 ns in the case and 1.9 ns in the tare.
        let more = 1.0 + 0.001 * f64::from(block % 6);
        add(&mut case, "time.wall", 12.9 * more, block);
        add(&mut case, "time.cpu", 12.8 * more, block);
        add(&mut tare, "time.wall", 3.8 * more, block);
        add(&mut tare, witnesses::WAITED, 0.5, block);
    }
    let interval = bench_cases::net(&case, &tare, "time.wall", 0.95).expect("18 blocks").interval;
    assert!(interval.contains(4.5), "{interval:?}");
}

fn add(arm: &mut Arm, key: &str, value: f64, block: u32) {
    let mut reading = Reading::of(metric("time.wall").expect("declared"), value, "simulated");
    key.clone_into(&mut reading.key);
    let mut figure = arm.figures.remove(key);
    Figure::add(&mut figure, reading, Pass::Timing, block);
    arm.figures.extend(figure.map(|figure| (key.to_owned(), figure)));
}

#[test]
#[ignore = "prints the figures, at ten times the size"]
fn starved_cases_at_ten_times_the_size() {
    starved_cases(1000);
}
