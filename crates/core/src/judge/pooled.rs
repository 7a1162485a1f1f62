//! Figures over all requests of a load together.
//!
//! The median of windows does not show a stall that falls into one window, although it delayed every request of that
//! window. Where an arm has a pooled figure, estimates, limits and comparisons use it. The interval of the ratio of two
//! figures follows from the intervals of both (Zou and Donner, "Construction of confidence limits about effect
//! measures: a general approach", Statistics in Medicine 27, 2008), on a logarithmic scale. What windows with the same
//! number share, such as a slower machine for a while, cancels as far as it is certainly shared: by the lower end of
//! the interval of the correlation between windows (Fisher 1921).
//!
//! Where the generator was late, a figure is known between bounds. The interval of the ratio then also holds every
//! ratio of two values between these bounds.
//!
//! Turns differ by more than the windows of one turn show, so the interval is never narrower than Student's interval of
//! the ratios of turns.

use super::{Estimate, POOLED, Pair, bench_cases};
use crate::evidence::Evidence;
use crate::metric::metric;
use crate::sample::Sample;
use crate::subject::Arm;
use scruple_stats::paired::{Effect, Why};
use scruple_stats::pooled::Pooled;
use scruple_stats::quantile::median;
use scruple_stats::{Interval, normal};

/// One load has a single longest response; order statistics need six to bound the next.
const LONGEST: Why = Why::TooFew { have: 1, need: 6 };

/// The source of a figure that several nodes have pooled, each its own requests.
pub const OF_NODES: &str = "load generators of several nodes";

/// The figure of several nodes, from that of each: the median of their values. Its interval reaches from the lowest end
/// on any node to the highest, so that a limit is kept or exceeded where it is on all of them.
pub fn of_nodes(each: &[Pooled]) -> Option<Pooled> {
    let values: Vec<f64> = each.iter().map(|one| one.value).collect();
    let lowest = |of: fn(&Pooled) -> f64| each.iter().map(of).min_by(f64::total_cmp);
    let (low, least) = (lowest(|one| one.low)?, lowest(|one| one.least)?);
    let highs: Option<Vec<f64>> = each.iter().map(|one| one.high).collect();
    let high = highs.and_then(|highs| highs.into_iter().max_by(f64::total_cmp));
    Some(Pooled { value: median(&values), low, high, least })
}

/// The key of the pooled figure of a metric.
pub fn key(metric: &str) -> String {
    format!("{metric}{POOLED}")
}

/// The key of the pooled figure of a metric without the delays of the generator.
fn key_of_least(metric: &str) -> String {
    format!("{metric}.least{POOLED}")
}

/// The readings that hold a pooled figure of a metric, by their keys.
pub fn readings(figure: Pooled, metric: &str) -> Vec<(String, Vec<f64>)> {
    let Pooled { value, low, high, least } = figure;
    let figure = [Some(value), Some(low), high].into_iter().flatten().collect();
    let least = (least < value).then(|| (key_of_least(metric), vec![least]));
    [Some((key(metric), figure)), least].into_iter().flatten().collect()
}

/// The pooled figure of a metric; `None` where the arm has none.
pub fn of(arm: &Arm, metric: &str) -> Option<Pooled> {
    let figure = figure(arm.sample(&key(metric))?)?;
    let least = arm.sample(&key_of_least(metric)).and_then(|sample| sample.readings.first().copied());
    Some(Pooled { least: least.unwrap_or(figure.value), ..figure })
}

/// The figure that a pooled sample holds; `None` where it lacks an end that every figure has.
pub fn figure(sample: &Sample) -> Option<Pooled> {
    let readings = &sample.readings;
    let value = *readings.first()?;
    Some(Pooled { value, low: *readings.get(1)?, high: readings.get(2).copied(), least: value })
}

/// The estimate from the pooled figure; `None` where the arm has none.
pub fn estimate(arm: &Arm, key: &str, level: f64) -> Option<Estimate> {
    let Pooled { value, low, high, .. } = of(arm, key)?;
    let interval = high.filter(|high| low < *high).map(|high| Interval { low, high, level });
    let of_nodes = arm.sample(&self::key(key)).is_some_and(|sample| sample.source == OF_NODES);
    let method = if of_nodes { "median of nodes, ends of all of them" } else { "all requests together" };
    Some(Estimate { value, interval, range: (low, high.unwrap_or(value)), method })
}

/// The pooled figures of both arms of a pair.
pub(super) struct Figures<'a> {
    key: &'a str,
    pair: &'a Pair<'a>,
    reference: Pooled,
    arm: Pooled,
    /// The confidence level of the intervals of the figures.
    level: f64,
    /// The numbers of the turns of the reference and of the arm.
    turns: (Vec<f64>, Vec<f64>),
}

impl<'a> Figures<'a> {
    /// The pooled figures of the metric `key`, whose intervals have this level. `None` where an arm has no figure, and
    /// for the share of failures, which has no ratio where nothing failed.
    pub(super) fn of(key: &'a str, pair: &'a Pair<'a>, level: f64) -> Option<Figures<'a>> {
        if metric(key)?.unit == crate::unit::Unit::Ratio {
            return None;
        }
        let (reference, arm) = (of(pair.reference, key)?, of(pair.arm, key)?);
        let (before, after) = (pair.reference.sample(key)?, pair.arm.sample(key)?);
        let (left, right, _) = bench_cases::by_turn(before, after, pair.paired);
        Some(Figures { key, pair, reference, arm, level, turns: (left, right) })
    }

    /// The evidence on the ratio of the figures at `level`. Where that is not the level of the figures, their intervals
    /// are scaled on the logarithmic scale, as those of normal estimates would be.
    pub(super) fn evidence(&self, level: f64) -> Evidence {
        let Figures { key, pair, reference, arm, .. } = self;
        let readings = |arm: &Arm| arm.sample(key).map_or(0, |sample| sample.readings.len());
        let readings = readings(pair.reference).min(readings(pair.arm));
        let ratio = arm.value / reference.value;
        let absent =
            |why| Evidence::Absent { why, pointing: Some(ratio).filter(|r| r.is_finite()), readings };
        let fact = |figure: &Pooled| figure.high == Some(figure.low);
        let (most_of_reference, most_of_arm) = match (reference.high, arm.high) {
            _ if reference.low <= 0.0 || arm.low <= 0.0 => return absent(Why::NotPositive),
            _ if fact(reference) || fact(arm) || *key == "load.max" => return absent(LONGEST),
            (Some(reference), Some(arm)) => (reference, arm),
            _ => return absent(Why::Unbounded),
        };
        let wider = critical(level) / critical(self.level);
        let ln = |part: f64, whole: f64| wider * (part / whole).ln().max(0.0);
        let common = if pair.paired { in_common(key, pair, level) } else { 0.0 };
        let both = |a: f64, b: f64| (a * a + b * b - 2.0 * common * a * b).max(0.0).sqrt();
        let below = both(ln(arm.least, arm.low), ln(most_of_reference, reference.value));
        let above = both(ln(most_of_arm, arm.value), ln(reference.least, reference.low));
        // A delay of the generator is a bound and not a random error: the amounts that it may have added are summed,
        // and do not cancel.
        let delay = |figure: &Pooled| (figure.value / figure.least).ln();
        let (delays_of_arm, delays_of_reference) = (delay(arm), delay(reference));
        match Evidence::of_turns(&self.turns.0, &self.turns.1, pair.paired, level) {
            Evidence::Interval { effect: turns, of, resolution } => {
                let half = turns.interval.map(f64::ln).half_width();
                let (below, above) = (below.max(half), above.max(half));
                let (below, above) = (below + delays_of_arm, above + delays_of_reference);
                let interval = Interval { low: ratio * (-below).exp(), high: ratio * above.exp(), level };
                let effect = Effect { ratio, interval, n: turns.n, method: "all requests together" };
                Evidence::Interval { effect, of, resolution }
            }
            Evidence::Absent { why, .. } => absent(why),
            other => other,
        }
    }
}

/// The distance of either end of an interval of this level from its centre, in standard deviations of a normal
/// estimate.
fn critical(level: f64) -> f64 {
    normal::quantile(0.5 + level / 2.0)
}

/// The lower bound of the correlation between the windows of two servers; 0 where there is no correlation, or there are
/// too few windows.
fn in_common(key: &str, pair: &Pair<'_>, level: f64) -> f64 {
    let Some((reference, arm)) = pair.reference.sample(key).zip(pair.arm.sample(key)) else { return 0.0 };
    let (left, right) = reference.paired(arm);
    let n = left.len() as f64;
    if n < 6.0 || left.iter().chain(&right).any(|reading| *reading <= 0.0) {
        return 0.0;
    }
    let centred = |readings: &[f64]| -> Vec<f64> {
        let mean = readings.iter().map(|reading| reading.ln()).sum::<f64>() / n;
        readings.iter().map(|reading| reading.ln() - mean).collect()
    };
    let (left, right) = (centred(&left), centred(&right));
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let r = product(&left, &right) / (product(&left, &left) * product(&right, &right)).sqrt();
    let least = (r.clamp(-0.999_999, 0.999_999).atanh() - critical(level) / (n - 3.0).sqrt()).tanh();
    if least.is_nan() { 0.0 } else { least.max(0.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::metric::Pass;
    use crate::sample::{BLOCKS_OF_A_TURN, Figure, Reading};
    use crate::subject::{Role, Subject};
    use crate::verdict::{Comparison, Verdict};
    use scruple_stats::{Pcg, pooled};

    type Requests = Vec<Vec<(u64, u64)>>;

    /// An arm with windows of three blocks, two of which make a turn, and the pooled figure of all its requests.
    fn arm(name: &str, requests: &Requests) -> Arm {
        let subject = Subject::Request { url: String::new(), server: Vec::new(), rate: None, connections: 1 };
        let mut arm = Arm::new(name.to_owned(), subject, Role::Subject);
        let blocks: Vec<&[(u64, u64)]> = requests.iter().map(Vec::as_slice).collect();
        let found = pooled::RequestBlocks::of(&blocks).quantile(0.9, 0.95).expect("many");
        let pooled = [Some(found.value), Some(found.low), found.high].into_iter().flatten().collect();
        let window = |blocks: &[&[(u64, u64)]]| {
            pooled::RequestBlocks::of(&[blocks, blocks].concat()).quantile(0.9, 0.95)
        };
        let windows = blocks.chunks(3).map(|part| window(part).expect("many").value).collect();
        for (key, readings) in [("load.p90".to_owned(), windows), (key("load.p90"), pooled)] {
            let readings: Vec<f64> = readings;
            let mut figure = None;
            for (window, value) in (0..).zip(readings) {
                let block = window / 2 * BLOCKS_OF_A_TURN + window % 2;
                let reading = Reading::of(metric("load.p90").expect("known"), value, "test");
                Figure::add(&mut figure, reading, Pass::Timing, block);
            }
            arm.figures.insert(key, figure.expect("some"));
        }
        arm
    }

    /// Exponential response times, with random stalls that delay all requests of a block, and turns that differ in
    /// speed.
    fn requests(seed: u64, stalls: f64, drift: f64) -> Requests {
        requests_in_turns(seed, stalls, drift, 0.0)
    }

    fn requests_in_turns(seed: u64, stalls: f64, drift: f64, turns: f64) -> Requests {
        let mut random = Pcg::new(seed);
        let slower: Vec<f64> = (0..5).map(|_| turns * (2.0 * random.unit() - 1.0)).collect();
        let mut block = |number: u32| {
            let stalled = if random.unit() < stalls { 50_000_000 } else { 0 };
            let mean = 1e6 * (drift * f64::from(number).sin() + slower[number as usize / 6]).exp();
            let mut one = || stalled + (-(1.0 - random.unit()).ln() * mean) as u64 + 1;
            let mut block: Vec<(u64, u64)> = (0..40).map(|_| (one(), 1)).collect();
            block.sort_unstable();
            block
        };
        (0..30).map(&mut block).collect()
    }

    fn compared(left: &Requests, right: &Requests) -> Comparison {
        let (reference, arm) = (arm("a", left), arm("b", right));
        let pair = Pair::new(&reference, &arm, true);
        Comparison::of(Figures::of("load.p90", &pair, 0.95).expect("both").evidence(0.95), true, 0.05)
    }

    #[test]
    fn the_interval_of_several_nodes_holds_that_of_each() {
        let one = |value: f64, high| Pooled { value, low: value - 1.0, high, least: value };
        let figure = of_nodes(&[one(5.0, Some(9.0)), one(7.0, Some(8.0)), one(6.0, Some(7.0))]);
        assert_eq!(figure, Some(Pooled { value: 6.0, low: 4.0, high: Some(9.0), least: 5.0 }));
        assert_eq!(of_nodes(&[one(5.0, Some(9.0)), one(7.0, None)]).and_then(|figure| figure.high), None);
        assert_eq!(of_nodes(&[]), None);
    }

    #[test]
    fn a_stall_in_one_window_of_ten_is_seen_in_the_comparison() {
        let stalled: Requests = (0..30)
            .map(|block| if block < 10 { vec![(900_000_000, 100)] } else { vec![(1_000_000, 100)] })
            .collect();
        let found = compared(&requests(1, 0.0, 0.0), &stalled);
        assert!(found.evidence.effect().is_some_and(|ratio| ratio > 100.0), "{found:?}");
        assert!(matches!(found.verdict, Verdict::Different | Verdict::CantTell), "{found:?}");
    }

    #[test]
    fn the_same_server_seldom_differs_from_itself_also_where_turns_do() {
        for (stalls, drift, turns) in [(0.0, 0.0, 0.0), (0.05, 0.0, 0.0), (0.0, 0.5, 0.0), (0.0, 0.0, 0.3)] {
            let requests = |seed| requests_in_turns(seed, stalls, drift, turns);
            let differs = |seed| compared(&requests(seed), &requests(seed + 5000)).verdict;
            let wrong = |verdict: &Verdict| matches!(verdict, Verdict::Different | Verdict::Small);
            let wrong = (0..200).map(differs).filter(wrong).count();
            assert!(wrong <= 10, "{wrong} of 200 with {stalls} stalls a block, drift {drift}, turns {turns}");
        }
    }

    #[test]
    fn delays_of_the_generator_widen_an_interval_by_what_they_may_have_added() {
        let (requests, others) = (requests(1, 0.0, 0.0), requests(2, 0.0, 0.0));
        let delayed = |name: &str, requests: &Requests, by: f64| {
            let mut arm = arm(name, requests);
            let figure = of(&arm, "load.p90").expect("a figure");
            let figure = Pooled { least: figure.value / by, low: figure.low / by, ..figure };
            for (key, readings) in readings(figure, "load.p90") {
                let mut figure = None;
                for (block, value) in (0..).zip(readings) {
                    let reading = Reading::of(metric("load.p90").expect("known"), value, "test");
                    Figure::add(&mut figure, reading, Pass::Timing, block);
                }
                arm.figures.insert(key, figure.expect("some"));
            }
            arm
        };
        let interval = |by: (f64, f64)| {
            let (reference, arm) = (delayed("a", &requests, by.0), delayed("b", &others, by.1));
            let pair = Pair::new(&reference, &arm, true);
            let evidence = Figures::of("load.p90", &pair, 0.95).expect("both").evidence(0.95);
            Comparison::of(evidence, true, 0.05).interval().expect("an interval")
        };
        let (plain, wide) = (interval((1.0, 1.0)), interval((3.0, 2.0)));
        assert!((plain.low / wide.low / 2.0 - 1.0).abs() < 1e-9, "{plain:?} {wide:?}");
        assert!((wide.high / plain.high / 3.0 - 1.0).abs() < 1e-9, "{plain:?} {wide:?}");
    }

    #[test]
    fn requests_of_one_turn_do_not_compare_servers_that_were_loaded_in_turn() {
        let one_turn = |seed| {
            let mut one = arm("a", &requests(seed, 0.0, 0.0));
            let Some(Figure::Sample(sample)) = one.figures.get_mut("load.p90") else { panic!("no windows") };
            sample.blocks = (0..).take(sample.readings.len()).collect();
            one
        };
        let (reference, arm) = (one_turn(1), one_turn(2));
        let why = |paired| {
            let pair = Pair::new(&reference, &arm, paired);
            Figures::of("load.p90", &pair, 0.95).expect("both").evidence(0.95).why()
        };
        assert_eq!(why(true), Some(Why::TooFew { have: 1, need: 3 }));
        assert_eq!(why(false), None, "thirds stand for turns");
    }

    #[test]
    fn twice_as_long_is_different_and_the_interval_holds_it() {
        let (mut held, mut decided) = (0, 0);
        for seed in 0..80 {
            let twice: Requests = requests(seed + 5000, 0.0, 0.5)
                .iter()
                .map(|b| b.iter().map(|(v, n)| (2 * v, *n)).collect())
                .collect();
            let found = compared(&requests(seed, 0.0, 0.5), &twice);
            held += u32::from(found.interval().is_some_and(|i| i.low <= 2.0 && 2.0 <= i.high));
            decided += u32::from(found.verdict == Verdict::Different);
        }
        assert!(held >= 74 && decided >= 74, "{held} and {decided} of 80");
    }
}
