//! Draws conclusions from readings: estimates of each arm, comparisons between arms, and which of them to quote.

pub mod bench_cases;
mod between_runs;
pub mod clock;
pub mod earlier_runs;
mod equal_parameters;
mod failed_shares;
mod growth_fits;
pub mod limits;
mod node_replicates;
mod pair_samples;
pub mod pooled;
mod process_groups;
mod rows;
pub mod shared_core;
pub mod undisturbed_blocks;
pub mod witnesses;

pub use between_runs::{possible_waiting_share, waiting_share};
pub use growth_fits::{GrowthFit, families_by, fits, trailing_number};
pub use node_replicates::{Nodes, over_nodes};
pub use process_groups::Groups;
pub use rows::compare_pairs;

use crate::metric::{Metric, Quality, metric};
use crate::run::Run;
use crate::sample::{Figure, Sample};
use crate::subject::{Arm, Role, Subject};
use crate::unit::Unit;
use crate::verdict::{Comparison, Verdict};
use scruple_stats::median_interval::median_interval;
use scruple_stats::paired::Why;
use scruple_stats::quantile::median;
use scruple_stats::{Interval, processes};
use std::collections::HashMap;

/// The resident size varies by up to this many bytes between identical runs, because at a page fault the kernel also
/// maps neighbouring pages of a file if they are in memory.
const RESIDENT_NOISE: f64 = 300_000.0;

/// The estimate of one metric of one arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The median of the readings, in the unit of the metric.
    pub value: f64,
    /// The interval of the median; absent for exact readings and where there are too few readings.
    pub interval: Option<Interval>,
    /// The smallest and the largest reading, in the unit of the metric.
    pub range: (f64, f64),
    /// The method of the estimate, in words.
    pub method: &'static str,
}

/// One comparison of one metric between two arms.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The key of the metric.
    pub metric: String,
    /// The name of the reference.
    pub reference: String,
    /// The name of the arm that is compared with the reference.
    pub arm: String,
    /// The evidence and the verdict.
    pub comparison: Comparison,
    /// For wall time, the larger of the shares that the arm and the reference spent waiting for a core; 0 for other
    /// metrics.
    pub waiting: f64,
}

/// Two arms to compare, and how their readings were taken.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The reference.
    pub reference: &'a Arm,
    /// The arm that is compared with the reference.
    pub arm: &'a Arm,
    /// Whether the readings were taken side by side, so that readings of the same block are compared.
    pub paired: bool,
    /// The tares of the reference and of the arm. Cases are compared over the blocks that neither tare shows as
    /// disturbed. In two runs, tares also show by how much figures may differ because of the machine.
    pub tares: Option<(&'a Arm, &'a Arm)>,
    /// The nodes of a farm that took the readings.
    pub nodes: Nodes<'a>,
}

impl<'a> Pair<'a> {
    /// A pair without tares, whose readings were taken on one machine.
    pub fn new(reference: &'a Arm, arm: &'a Arm, paired: bool) -> Pair<'a> {
        Pair { reference, arm, paired, tares: None, nodes: Nodes::default() }
    }

    /// The same for two arms of one run, which are paired if they share blocks.
    fn of_one_run(reference: &'a Arm, arm: &'a Arm) -> Pair<'a> {
        Pair::new(reference, arm, side_by_side(reference, arm))
    }
}

/// The declaration of the metric of a sample: Scruple's own, or one that a bench program declared.
pub fn declaration(key: &str, sample: &Sample) -> Metric {
    metric(key)
        .cloned()
        .unwrap_or_else(|| Metric::custom(key, sample.unit.clone(), sample.quality, sample.pass))
}

/// The estimate of a sample: the median, with an interval at `level` where readings vary.
pub fn estimate(sample: &Sample, level: f64) -> Estimate {
    let range = sample
        .readings
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
    let value = median(&sample.readings);
    if sample.quality <= Quality::Near && sample.repeats() {
        return Estimate { value, interval: None, range, method: "counted" };
    }
    let by_process = sample.by_process();
    if by_process.len() > 1
        && let Some(found) = processes::median_of_amounts(&by_process, level)
    {
        return Estimate { value, interval: Some(found.interval), range, method: found.method };
    }
    let interval = median_interval(&sample.readings, level);
    let method =
        if interval.is_some() { "median, order statistics" } else { "median of too few for an interval" };
    Estimate { value, interval, range, method }
}

/// The suffix of the keys of figures that hold the possible error of another figure: `alloc.bytes.resolution` is that
/// of `alloc.bytes`.
pub const RESOLUTION: &str = ".resolution";

/// The suffix of the keys of figures over all requests of a load together, instead of by window. Their readings are the
/// value, its lower bound, and its upper bound where that is known.
pub const POOLED: &str = ".pooled";

/// The key of the figure that holds the possible error of the readings of a metric.
pub fn resolution_key(key: &str) -> String {
    format!("{key}{RESOLUTION}")
}

/// The estimate of a metric of an arm from this sample: over all requests of a load together where the arm has that,
/// otherwise that of the sample with the possible error of its readings.
pub fn estimate_of(arm: &Arm, key: &str, sample: &Sample, level: f64) -> Estimate {
    pooled::estimate(arm, key, level).unwrap_or_else(|| widened(estimate(sample, level), arm, key))
}

/// The possible error of the readings of a metric of an arm; 0 if the arm states none.
fn possible_error(arm: &Arm, key: &str) -> f64 {
    let stated = arm.sample(&resolution_key(key));
    stated.map_or(0.0, |sample| sample.readings.iter().copied().fold(0.0, f64::max))
}

/// The estimate, widened by the possible error of the readings of the metric where the arm has one.
fn widened(estimate: Estimate, arm: &Arm, key: &str) -> Estimate {
    let more = possible_error(arm, key);
    if more == 0.0 {
        return estimate;
    }
    let interval = estimate.interval.map(|i| Interval {
        low: (i.low - more).max(0.0).min(i.low),
        high: i.high + more,
        ..i
    });
    let (low, high) = estimate.range;
    Estimate { interval, range: ((low - more).max(0.0), high + more), ..estimate }
}

/// The pairs to compare inside one run: every other subject, and the twin of the reference, against the reference.
///
/// Cases of bench programs are compared with the same case in another program, or with a named reference case. Several
/// commands at several versions are each compared with their own first version. Several commands, or the values of a
/// textual parameter, at several sizes are compared with the first of them at the same size.
pub fn pairs(run: &Run) -> Vec<Pair<'_>> {
    let nodes = Nodes::of(run);
    pairs_of(run).into_iter().map(|pair| Pair { nodes, ..pair }).collect()
}

fn pairs_of(run: &Run) -> Vec<Pair<'_>> {
    if matches!(run.arms.first().map(|arm| &arm.subject), Some(Subject::Case { .. })) {
        return bench_cases::pairs(run);
    }
    let at_versions = bench_cases::at_versions(run);
    if !at_versions.is_empty() {
        return at_versions;
    }
    let Some(reference) = run.reference() else { return Vec::new() };
    let with_reference = |arm| Pair::of_one_run(reference, arm);
    let mut pairs = equal_parameters::pairs(run);
    if pairs.is_empty() {
        pairs.extend(run.arms_of(Role::Subject).filter(|arm| arm.name != reference.name).map(with_reference));
    }
    pairs.extend(run.arms_of(Role::Twin).map(with_reference));
    pairs
}

/// Whether two arms share a block; true where they share no metric. Tools that finish one command before they start the
/// next give readings that share none.
fn side_by_side(reference: &Arm, arm: &Arm) -> bool {
    let both = |(key, figure): (&String, &Figure)| match (figure, reference.sample(key)) {
        (Figure::Sample(sample), Some(other)) => Some((sample.blocks.clone(), other.blocks.clone())),
        _ => None,
    };
    let mut shared = arm.figures.iter().filter_map(both).peekable();
    shared.peek().is_none()
        || shared.any(|(left, right)| left.iter().any(|block| right.binary_search(block).is_ok()))
}

/// The smallest difference of a metric that means anything, in the unit of the metric.
pub(crate) fn floor_of(key: &str) -> f64 {
    if key == "memory.peak" { RESIDENT_NOISE } else { 0.0 }
}

/// The bounds of the value of one metric of one arm, in the unit of the metric. Absolute limits are compared with these
/// bounds.
///
/// Readings that repeated are taken as they are; a single reading of a noisy time does not bound the next.
///
/// # Errors
///
/// Fails with the reason where the readings give no bounds.
pub fn amount_bounds(arm: &Arm, key: &str, sample: &Sample, level: f64) -> Result<(f64, f64), Why> {
    if let Some(pooled) = pooled::of(arm, key) {
        return Ok((pooled.low, pooled.high.unwrap_or(f64::INFINITY)));
    }
    let known = widened(estimate(sample, level), arm, key);
    let floor = floor_of(key);
    let n = sample.readings.len();
    let (low, high) = match known.interval {
        Some(interval) => (interval.low, interval.high),
        // The size of memory or of a file may be taken from a single reading, a noisy time may not.
        None if sample.quality == Quality::Noisy && sample.unit == Unit::Nanoseconds && n < 2 => {
            return Err(Why::TooFew { have: n, need: 2 });
        }
        None if sample.repeats() => known.range,
        None => {
            let interval = processes::amount(&sample.readings, level).ok_or(Why::NotPositive)?;
            (interval.low.min(known.range.0), interval.high.max(known.range.1))
        }
    };
    Ok(((low - floor).max(0.0).min(low), high + floor))
}

/// The comparison to quote for an arm, among the metrics shown: wall time where it decides, else processor time where
/// that decides, else wall time. Where neither is shown, it is the first metric that differs, or else the first metric.
///
/// Processor time is quoted instead of a wall time that other work on the machine disturbed; see [`is_blurred`].
pub fn headline<'a>(judged: &'a [Judged], shown: &[String], arm: &str) -> Option<&'a Judged> {
    let of_arm: Vec<&Judged> = judged.iter().filter(|judged| judged.arm == arm).collect();
    quoted(&of_arm, shown)
}

/// The comparison to quote for each arm, by the name of the arm.
pub fn headlines<'a>(judged: &'a [Judged], shown: &[String]) -> HashMap<&'a str, &'a Judged> {
    let mut by_arm: HashMap<&str, Vec<&Judged>> = HashMap::new();
    for one in judged {
        by_arm.entry(&one.arm).or_default().push(one);
    }
    by_arm.into_iter().filter_map(|(arm, of_arm)| Some((arm, quoted(&of_arm, shown)?))).collect()
}

fn quoted<'a>(of_arm: &[&'a Judged], shown: &[String]) -> Option<&'a Judged> {
    let of = |key: &str| {
        let shown = shown.iter().any(|other| other == key);
        of_arm.iter().copied().find(|judged| shown && judged.metric == key)
    };
    let decided = |j: &&Judged| j.comparison.verdict != Verdict::CantTell;
    let differs = |j: &&Judged| j.comparison.verdict == Verdict::Different;
    let (wall, cpu) = (of("time.wall"), of("time.cpu"));
    let blurred = |wall: &&Judged| cpu.is_some_and(|cpu| is_blurred(wall, &cpu.comparison));
    wall.filter(|wall| (differs(wall) || wall.comparison.verdict == Verdict::Same) && !blurred(wall))
        .or(cpu.filter(differs))
        .or(wall.filter(|wall| decided(wall) && !blurred(wall)))
        .or(cpu.filter(decided))
        .or(wall.filter(|wall| !blurred(wall)))
        .or(cpu)
        .or(wall)
        .or_else(|| shown.iter().filter_map(|key| of(key)).find(differs))
        .or_else(|| shown.iter().find_map(|key| of(key)))
}

/// An interval of wall time narrower than this, as a difference of logarithms, is precise enough to be quoted.
const BLUR: f64 = 0.05;

/// If more than this share of a wall time was waiting for a core, the time depends mainly on the machine's other work.
pub const MOST_WAITING: f64 = 0.2;

/// Whether other work on the machine disturbed wall time so much that processor time is more informative. That is so if
/// much of the wall time was waiting for a core. It is also so if processor time is known at least twice as precisely,
/// in two cases: it decides otherwise than a wall time that is the same or differs a little, or it lies within the wide
/// interval of a wall time that differs in the same direction.
fn is_blurred(wall: &Judged, cpu: &Comparison) -> bool {
    if wall.waiting > MOST_WAITING {
        return true;
    }
    let wall = &wall.comparison;
    let better_known = cpu.half_width() <= wall.half_width() / 2.0;
    let cpu_decides = cpu.verdict != Verdict::CantTell && cpu.verdict != wall.verdict;
    let sharper = 2.0 * wall.half_width() > BLUR
        && cpu.verdict == wall.verdict
        && cpu.direction == wall.direction
        && matches!((wall.interval(), cpu.interval()), (Some(wall), Some(cpu)) if wall.low <= cpu.low && cpu.high <= wall.high);
    match wall.verdict {
        Verdict::Same | Verdict::Small => cpu_decides && better_known,
        Verdict::Different => sharper && better_known,
        Verdict::CantTell => false,
    }
}

/// The keys of all figures of these arms: declared metrics first, in the order of their declaration.
pub fn keys_of(arms: &[&Arm]) -> Vec<String> {
    let mut keys: Vec<String> = crate::metric::METRICS.iter().map(|metric| metric.key.to_string()).collect();
    keys.retain(|key| arms.iter().any(|arm| arm.figures.contains_key(key)));
    let mut custom: Vec<String> = arms
        .iter()
        .flat_map(|arm| arm.figures.iter())
        .filter(|(key, figure)| {
            matches!(figure, Figure::Sample(_)) && metric(key).is_none() && !key.ends_with(POOLED)
        })
        .map(|(key, _)| key.clone())
        .collect();
    custom.sort_unstable();
    custom.dedup();
    keys.extend(custom);
    keys
}
