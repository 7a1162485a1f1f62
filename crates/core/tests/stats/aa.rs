//! A/A tests in every metric and every kind of run: how often identical programs are called different, and how often a
//! limit is wrongly said to be exceeded or kept.
#![expect(clippy::print_stdout, reason = "the table is what one runs the long version for")]

use crate::noise::{Noise, blocks, normal, processes};
use crate::range::{range, weigh};
use scruple_core::history::find_changes;
use scruple_core::judge::{Nodes, Pair, compare_pairs};
use scruple_core::metric::{Pass, metric};
use scruple_core::run::Terms;
use scruple_core::sample::{BLOCKS_OF_A_PROCESS, Figure, Reading};
use scruple_core::subject::{Arm, Role, Subject};
use scruple_core::verdict::{Comparison, Verdict};
use scruple_stats::power;
use scruple_stats::rng::Pcg;

/// How the readings of a metric vary.
#[derive(Clone, Copy)]
enum Varies {
    /// A time on a machine with this noise.
    Time(Noise),
    /// A time of about 3 ms that is read in ticks of this many milliseconds.
    Ticks(f64),
    /// A Poisson count of events with this mean.
    Events(f64),
    /// A count of about 5000 events, which differs by a few.
    Many,
    /// Resident memory, which differs by some pages.
    Pages,
    /// An amount with log-normal noise of this standard deviation, and a tail to one side, as pauses have.
    Tailed(f64),
    /// Does not vary.
    Never,
    /// One of two counts, chosen at random.
    TwoCounts,
}

/// A selection of metrics with every pass, every quality, and every way to vary.
const METRICS: [(&str, Varies); 20] = [
    ("time.wall", Varies::Time(Noise::Busy(0.2))),
    ("time.wall", Varies::Time(Noise::Bursts(0.4))),
    ("time.cpu", Varies::Time(Noise::Quiet)),
    ("time.oncpu", Varies::Time(Noise::Skewed)),
    ("time.user", Varies::Ticks(0.25)),
    ("faults.minor", Varies::Many),
    ("switches.involuntary", Varies::Events(2.0)),
    ("memory.peak", Varies::Pages),
    ("memory.faults", Varies::Many),
    ("memory.pss", Varies::Tailed(0.05)),
    ("malloc.count", Varies::TwoCounts),
    ("malloc.bytes", Varies::Never),
    ("malloc.peak", Varies::Many),
    ("alloc.bytes", Varies::Many),
    ("gc.count", Varies::Events(8.0)),
    ("gc.time", Varies::Tailed(0.2)),
    ("gc.pause_max", Varies::Tailed(0.5)),
    ("heap.live_max", Varies::Tailed(0.1)),
    ("request.cpu", Varies::Time(Noise::Skewed)),
    ("load.p99", Varies::Tailed(0.2)),
];

/// How the readings of a run are taken.
#[derive(Clone, Copy)]
enum Way {
    /// Two commands side by side, with this many launches each.
    Launches(usize),
    /// Two commands side by side, with as many launches as Scruple itself chooses.
    Default,
    /// A stored run with this many readings, and a fresh one with as many.
    Stored(usize),
}

const WAYS: [Way; 9] = [
    Way::Launches(1),
    Way::Launches(2),
    Way::Launches(3),
    Way::Launches(6),
    Way::Launches(20),
    Way::Default,
    Way::Stored(2),
    Way::Stored(3),
    Way::Stored(10),
];

/// The maximum number of blocks in [`Way::Default`]. Real runs may take twice as many.
const MOST: usize = 160;

fn readings(pcg: &mut Pcg, varies: Varies, n: usize) -> Vec<f64> {
    let mut one = || match varies {
        Varies::Ticks(tick) => ((3.0 + 0.3 * normal(pcg)) / tick).round().max(0.0) * tick * 1e6,
        Varies::Events(mean) => {
            // Knuth, "Seminumerical Algorithms", §3.4.1.
            let (mut product, mut count) = (pcg.unit(), 0.0);
            while product > (-mean).exp() {
                product *= pcg.unit();
                count += 1.0;
            }
            count
        }
        Varies::Many => 5000.0 + (3.0 * normal(pcg)).round(),
        Varies::Pages => 1.6e6 + 4096.0 * (30.0 * pcg.unit()).floor(),
        Varies::Tailed(spread) => {
            let more = if pcg.unit() < 0.2 { 3.0 * spread * pcg.unit() } else { 0.0 };
            1e6 * (spread * normal(pcg) + more).exp()
        }
        Varies::Never | Varies::Time(_) => 5000.0,
        Varies::TwoCounts => 8874.0 + f64::from(pcg.below(2)),
    };
    (0..n).map(|_| one()).collect()
}

/// The readings of two identical programs, which share their blocks if `side_by_side`.
fn both(pcg: &mut Pcg, varies: Varies, n: usize, side_by_side: bool) -> (Vec<f64>, Vec<f64>) {
    match varies {
        Varies::Time(noise) if side_by_side => blocks(pcg, noise, n, 1.0),
        Varies::Time(noise) => (blocks(pcg, noise, n, 1.0).0, blocks(pcg, noise, n, 1.0).1),
        _ => (readings(pcg, varies, n), readings(pcg, varies, n)),
    }
}

fn arm(name: &str, key: &str, readings: &[f64]) -> Arm {
    let metric = metric(key).expect("declared");
    let mut figure = None;
    for (block, value) in (0..).zip(readings) {
        Figure::add(&mut figure, Reading::of(metric, *value, "simulated"), metric.pass, block);
    }
    let mut arm = Arm::new(name, Subject::Command { argv: vec![name.to_owned()] }, Role::Subject);
    arm.figures.extend(figure.map(|figure| (key.to_owned(), figure)));
    arm
}

fn compared(key: &str, (reference, other): (&[f64], &[f64]), paired: bool, looks: usize) -> Comparison {
    let (reference, arm) = (arm("old", key, reference), arm("new", key, other));
    let pair = Pair::new(&reference, &arm, paired);
    let terms = Terms { looks: looks as u32, ..Terms::default() };
    compare_pairs(&[pair], &terms).remove(0).comparison
}

fn judged(pcg: &mut Pcg, key: &str, varies: Varies, way: Way) -> Comparison {
    match way {
        Way::Launches(n) => {
            let (a, b) = both(pcg, varies, n, true);
            compared(key, (&a, &b), true, 1)
        }
        Way::Stored(n) => {
            let (a, b) = both(pcg, varies, n, false);
            compared(key, (&a, &b), false, 1)
        }
        Way::Default if metric(key).expect("declared").pass == Pass::Timing => {
            let looks = power::looks(10, MOST, 0.95);
            let (a, b) = both(pcg, varies, MOST, true);
            let at = |blocks: usize| compared(key, (&a[..blocks], &b[..blocks]), true, looks.len());
            let ends = |found: &Comparison| {
                matches!(found.verdict, Verdict::Different | Verdict::Same)
                    || power::precise(found.half_width(), found.margin)
            };
            let stopped = looks.iter().map(|look| at(look.blocks)).find(ends);
            stopped.unwrap_or_else(|| at(MOST))
        }
        Way::Default => {
            // Three launches, and six if three leave the verdict open.
            let (a, b) = both(pcg, varies, 6, true);
            let few = compared(key, (&a[..3], &b[..3]), true, 1);
            if few.verdict == Verdict::CantTell { compared(key, (&a, &b), true, 1) } else { few }
        }
    }
}

/// The numbers of wrong verdicts and wrong limits among `tries` comparisons of identical programs.
#[derive(Default)]
pub struct Wrong {
    pub tries: u32,
    pub verdicts: u32,
    pub limits: u32,
}

impl Wrong {
    pub fn of(tries: u32, mut comparison: impl FnMut() -> Comparison) -> Wrong {
        let mut wrong = Wrong { tries, ..Wrong::default() };
        for _ in 0..tries {
            let found = comparison();
            wrong.verdicts += u32::from(matches!(found.verdict, Verdict::Different | Verdict::Small));
            // An interval wholly above 1 exceeds a limit of no change, and one wholly below 1 keeps a limit that
            // demands an improvement.
            let surely = |(low, high): (f64, f64)| low > 1.0 || high < 1.0;
            wrong.limits += u32::from(found.evidence.ratio_bounds().is_ok_and(surely));
        }
        wrong
    }

    pub fn add(&mut self, more: &Wrong) {
        self.tries += more.tries;
        self.verdicts += more.verdicts;
        self.limits += more.limits;
    }

    pub fn cell(&self) -> String {
        let share = |count: u32| 100.0 * f64::from(count) / f64::from(self.tries);
        format!("{:.1}, {:.1}", share(self.verdicts), share(self.limits))
    }

    /// Checks that at most 5 % of the tries are wrong, plus three standard errors of that share.
    pub fn check(&self, what: &str) {
        let tries = f64::from(self.tries);
        let most = tries * 0.05 + 3.0 * (tries * 0.05 * 0.95).sqrt();
        assert!(f64::from(self.verdicts) <= most, "{what}: {} wrong verdicts of {tries}", self.verdicts);
        assert!(f64::from(self.limits) <= most, "{what}: {} wrong limits of {tries}", self.limits);
    }
}

fn every_metric(tries: u32) {
    let name = |way: &Way| match way {
        Way::Launches(n) => format!("{n} launches"),
        Way::Default => "as many as it takes".to_owned(),
        Way::Stored(n) => format!("stored, {n} and {n}"),
    };
    let names: Vec<String> = WAYS.iter().map(name).collect();
    println!("| metric | varies as | {} |\n|---|---|{}", names.join(" | "), "---|".repeat(names.len()));
    let mut all = Vec::new();
    for (number, (key, varies)) in (0..).zip(METRICS) {
        let mut cells = Vec::new();
        for (way, name) in WAYS.iter().zip(&names) {
            let mut pcg = Pcg::with_stream(91, number);
            let wrong = Wrong::of(tries, || judged(&mut pcg, key, varies, *way));
            cells.push(wrong.cell());
            all.push((format!("{key} ({}), {name}", varies.word()), wrong));
        }
        println!("| {key} | {} | {} |", varies.word(), cells.join(" | "));
    }
    for (what, wrong) in &all {
        wrong.check(what);
    }
}

impl Varies {
    fn word(self) -> String {
        match self {
            Varies::Time(Noise::Busy(share)) => format!("busy {:.0} %", 100.0 * share),
            Varies::Time(Noise::Bursts(share)) => format!("bursts {:.0} %", 100.0 * share),
            Varies::Time(noise) => format!("{noise:?}").to_lowercase(),
            Varies::Ticks(_) => "ticks".to_owned(),
            Varies::Events(mean) => format!("{mean} events"),
            Varies::Many => "±0.06 %".to_owned(),
            Varies::Pages => "pages".to_owned(),
            Varies::Tailed(spread) => format!("±{:.0} %, a tail", 100.0 * spread),
            Varies::Never => "not at all".to_owned(),
            Varies::TwoCounts => "one of two counts".to_owned(),
        }
    }
}

/// A case of a bench program in `count` processes, whose medians differ by `between` (standard deviation of
/// logarithms).
fn case(pcg: &mut Pcg, name: &str, count: usize, between: f64) -> Arm {
    let groups = processes(pcg, count, 20, between, 0.01);
    let wall = metric("time.wall").expect("declared");
    let mut figure = None;
    for (process, group) in (0..).zip(groups) {
        for (batch, value) in (0..).zip(group) {
            let block = process * BLOCKS_OF_A_PROCESS + batch;
            Figure::add(&mut figure, Reading::of(wall, value, "simulated"), Pass::Timing, block);
        }
    }
    let program = vec!["bench".to_owned()];
    let subject = Subject::case(name, program);
    let mut arm = Arm::new(name, subject, Role::Subject);
    arm.figures.extend(figure.map(|figure| ("time.wall".to_owned(), figure)));
    arm
}

fn every_number_of_processes(tries: u32) {
    println!(
        "\n| processes differ by | side by side | {} |",
        (1..=8).map(|n| n.to_string()).collect::<Vec<_>>().join(" | ")
    );
    println!("|---|---|{}", "---|".repeat(8));
    let mut all = Vec::new();
    for between in [0.0, 0.01, 0.05] {
        for paired in [true, false] {
            let mut cells = Vec::new();
            for count in 1..=8 {
                let mut pcg = Pcg::with_stream(92, count as u64);
                let wrong = Wrong::of(tries, || {
                    let (reference, arm) =
                        (case(&mut pcg, "f", count, between), case(&mut pcg, "f", count, between));
                    let tare = Arm::new("tare", reference.subject.clone(), Role::Tare);
                    let tares = Some((&tare, &tare));
                    let pair =
                        Pair { reference: &reference, arm: &arm, paired, tares, nodes: Nodes::default() };
                    compare_pairs(&[pair], &Terms::default()).remove(0).comparison
                });
                if count < 3 {
                    assert_eq!(
                        (wrong.verdicts, wrong.limits),
                        (0, 0),
                        "{count} processes do not show how they differ"
                    );
                }
                cells.push(wrong.cell());
                all.push((format!("{count} processes that differ by {between}, paired {paired}"), wrong));
            }
            let side = if paired { "yes" } else { "no: a stored run" };
            println!("| {:.0} % | {side} | {} |", 100.0 * between, cells.join(" | "));
        }
    }
    for (what, wrong) in &all {
        wrong.check(what);
    }
}

/// Histories of 12 identical versions in four noisy metrics, for several numbers of rounds.
fn every_number_of_rounds(tries: u32) {
    println!("\n| rounds | 1 | 2 | 3 | 4 | 6 | 10 | 20 |\n|---|---|---|---|---|---|---|---|");
    let mut cells = Vec::new();
    let mut all = Vec::new();
    for rounds in [1, 2, 3, 4, 6, 10, 20] {
        let wrong = (0..u64::from(tries)).filter(|&number| {
            let mut pcg = Pcg::with_stream(93, number);
            let mut history = range(12);
            for key in ["time.wall", "time.cpu", "time.user", "memory.peak"] {
                let noise = 0.005 + 0.05 * pcg.unit();
                weigh(&mut history, "parse", key, &[1e8; 12], rounds, noise, &mut pcg);
            }
            find_changes(&history).series.iter().any(|series| !series.changes.is_empty())
        });
        let wrong = Wrong { tries, verdicts: wrong.count() as u32, limits: 0 };
        cells.push(format!("{:.1}", 100.0 * f64::from(wrong.verdicts) / f64::from(tries)));
        all.push((format!("{rounds} rounds"), wrong));
    }
    println!("| a change is named, % | {} |", cells.join(" | "));
    for (what, wrong) in &all {
        wrong.check(what);
    }
}

#[test]
fn identical_programs_are_seldom_called_different_in_any_metric_of_any_run() {
    every_metric(60);
}

#[test]
fn identical_cases_are_seldom_called_different_in_any_number_of_processes() {
    every_number_of_processes(40);
}

#[test]
fn identical_versions_are_seldom_called_different_in_any_number_of_rounds() {
    every_number_of_rounds(30);
}

#[test]
#[ignore = "takes minutes in a debug build"]
fn aa_at_twenty_times_the_size() {
    every_metric(2000);
    every_number_of_processes(2000);
    every_number_of_rounds(400);
}
