//! The effect of one arm against another, as a ratio with its interval.
//!
//! Within a block both arms met the same machine, so the logarithm of their ratio is free of what affected both. The
//! estimate is the Hodges-Lehmann centre of these log ratios, and the interval inverts the signed-rank test. The median
//! with its order statistics is used instead in two cases: with few blocks, since it needs fewer assumptions, and where
//! so many blocks are disturbed that most pairs contain one, since it is then up to ten times more precise.

use std::fmt;

use serde::Serialize;

use super::Interval;
use super::median_interval::median_interval;
use super::quantile::{median, sorted};
use super::ranks::{self, hodges_lehmann, signed_rank_interval};

/// With fewer blocks the median is used, since the signed-rank test assumes a symmetry that cannot be checked yet.
pub const RANKS_FROM: usize = 10;

/// The median is used where its interval is narrower than this share of the interval from ranks.
///
/// Choosing the narrower of two intervals costs coverage, but widths say little about the position of a centre among
/// symmetric differences: in simulations this threshold costs at most about half a per cent. Quiet samples, where ranks
/// are a fifth more precise, stay with ranks.
const CLEARLY_SHARPER: f64 = 2.0 / 3.0;

/// In two runs whose neighbouring readings are strongly correlated, the interval reaches to either side by this many times
/// the range of the readings of one run. Runs of ten readings with a correlation of up to 0.95 differ by more in fewer than
/// 1 % of the cases, and so do two parts of one random walk.
const RANGES: f64 = 3.0;

/// Runs of fewer readings do not show the range of a drift.
const RANGE_FROM: usize = 10;

/// The method of the effect between two samples that were not taken in pairs.
pub const UNPAIRED: &str = "Hodges-Lehmann shift of unpaired logs, Mann-Whitney";

/// The effect on the cost of changing from the reference to the arm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The cost of the arm divided by the cost of the reference.
    pub ratio: f64,
    /// The interval of the ratio.
    pub interval: Interval,
    /// The number of blocks; for unpaired samples, the number of readings of the smaller one.
    pub n: usize,
    /// The method of the estimate and the interval, in words.
    pub method: &'static str,
}

/// Why there is no effect, or no interval at the requested level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Why {
    /// There are fewer readings than an interval at this level needs.
    TooFew {
        /// The number of readings.
        have: usize,
        /// The number of readings that are needed.
        need: usize,
    },
    /// The arms have different numbers of readings, so they are not paired.
    Unpaired {
        /// The number of readings of the reference.
        reference: usize,
        /// The number of readings of the arm.
        arm: usize,
    },
    /// A reading is zero or negative, so that ratios are undefined.
    NotPositive,
    /// A reading, or its distance from the others, is not a finite number.
    NotFinite,
    /// There are too few processes to show how much processes differ.
    FewProcesses {
        /// The number of processes.
        have: usize,
        /// The number of processes that are needed.
        need: usize,
    },
    /// There are too few nodes of a farm to show how much nodes differ, or too few of them took both sides.
    FewNodes {
        /// The number of nodes that took both sides.
        have: usize,
        /// The number of nodes that are needed.
        need: usize,
    },
    /// The readings of each arm are all equal although the metric is noisy, so their variation is unknown.
    NoSpread,
    /// It is unknown how long the programs waited for a core, and their runs were not taken side by side.
    UnknownWaiting,
    /// The figure depends on what else ran on the machine, and the runs were not taken side by side.
    OtherWork,
    /// The readings are too few to tell a drift of the machine during each run from independent noise, so that one
    /// sample says little about another.
    Drifting {
        /// The number of readings of the smaller sample.
        have: usize,
        /// The number of readings that are needed.
        need: usize,
    },
    /// The readings were taken on two machines, and the metric depends on the machine.
    OtherMachine,
    /// The readings were taken on machines of two architectures, where the machine code differs.
    OtherArchitecture,
    /// Too few requests lie beyond a quantile to give it an upper bound.
    Unbounded,
    /// The interval of the ratio excludes next to nothing.
    TooWide,
    /// The level is not strictly between 0 and 1.
    NoSuchLevel,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::TooFew { have: 1, need } => write!(f, "1 reading is too few; at least {need} are needed"),
            Why::TooFew { have, need } => {
                write!(f, "{have} readings are too few; at least {need} are needed")
            }
            Why::FewProcesses { have, need } => {
                let (processes, do_not) = if *have == 1 { ("process", "does") } else { ("processes", "do") };
                write!(
                    f,
                    "the readings that count come from {have} {processes}, which {do_not} not show how much processes \
                     differ; at least {need} are needed"
                )
            }
            Why::FewNodes { have, need } => {
                let (nodes, do_not) = if *have == 1 { ("node has", "does") } else { ("nodes have", "do") };
                write!(
                    f,
                    "{have} {nodes} taken both sides, which {do_not} not show how much nodes differ; at least {need} are needed"
                )
            }
            Why::NoSpread => f.write_str("all readings are equal, so their variation is not known"),
            Why::Unpaired { reference, arm } => {
                write!(f, "the reference has {reference} readings and the arm {arm}, so they are not paired")
            }
            Why::Drifting { have, need } => write!(
                f,
                "{have} readings do not show whether they follow a drift of the machine, which may also be the \
                 difference between two runs; at least {need} are needed"
            ),
            Why::UnknownWaiting => f.write_str(
                "the runs were not taken side by side, and how long the programs waited for a core is not known",
            ),
            Why::OtherWork => f.write_str(
                "it depends on what else ran on the machine, and the runs were not taken side by side",
            ),
            Why::NotPositive => f.write_str("a reading is zero or negative, so there is no ratio"),
            Why::NotFinite => f.write_str("a reading, or its distance from the others, is not a finite number"),
            Why::OtherMachine => {
                f.write_str("the readings are of two machines, so a difference need not come from the program")
            }
            Why::OtherArchitecture => f.write_str("the readings are of two architectures"),
            Why::Unbounded => f.write_str("there are too few requests beyond it to say how large it may be"),
            Why::TooWide => f.write_str("the readings vary so much that nearly any ratio fits them"),
            Why::NoSuchLevel => f.write_str("the level must lie between 0 and 1"),
        }
    }
}

impl std::error::Error for Why {}

/// The effect from readings taken in blocks: the i-th reading of each arm belongs to block i.
///
/// The computation is fast for any number of blocks (see [`hodges_lehmann`]).
///
/// # Errors
///
/// Fails when there are fewer than six blocks at 95 %, when the arms differ in length, or when a reading has no
/// logarithm.
///
/// ```
/// use scruple_stats::paired::{Why, effect};
///
/// let reference = [10.0, 11.0, 10.5, 30.0, 10.2, 10.8, 10.1, 10.9, 10.4, 10.6, 10.3, 10.7];
/// let arm: Vec<f64> = reference.iter().map(|time| time * 2.0).collect();
/// let found = effect(&reference, &arm, 0.95).expect("twelve blocks are enough");
/// assert!((found.ratio - 2.0).abs() < 1e-9, "the disturbed fourth block cancels");
/// assert!(matches!(effect(&reference[..5], &arm[..5], 0.95), Err(Why::TooFew { have: 5, .. })));
/// ```
pub fn effect(reference: &[f64], arm: &[f64], level: f64) -> Result<Effect, Why> {
    effect_of_log_ratios(&log_ratios(reference, arm)?, level)
}

/// The effect from the log ratios ln(arm/reference) of all blocks.
///
/// # Errors
///
/// Fails as [`effect`] does.
pub fn effect_of_log_ratios(ratios: &[f64], level: f64) -> Result<Effect, Why> {
    check(level)?;
    let n = ratios.len();
    if ratios.iter().any(|r| !r.is_finite()) {
        return Err(Why::NotFinite);
    }
    let of_median = median_interval(ratios, level);
    let of_ranks = if n < RANKS_FROM { None } else { signed_rank_interval(ratios, level) };
    let (centre, interval, method) = match (of_ranks, of_median) {
        (Some(ranks), Some(median)) if median.half_width() >= CLEARLY_SHARPER * ranks.half_width() => {
            (hodges_lehmann(ratios), ranks, "Hodges-Lehmann of paired log ratios, signed ranks")
        }
        (_, Some(interval)) => (median(ratios), interval, "median of paired log ratios, order statistics"),
        _ => return Err(Why::TooFew { have: n, need: blocks_needed(level).max(n + 1) }),
    };
    Ok(Effect { ratio: centre.exp(), interval: interval.map(f64::exp), n, method })
}

/// The effect from two samples that were not taken in blocks, such as two stored runs.
///
/// This effect includes every change of the machine between the runs; only the pairing of [`effect`] removes that.
/// Where neighbouring readings of a sample are correlated, the sample carries less information than independent
/// readings would, and the interval is widened accordingly. Source: Bayley & Hammersley, "The 'Effective' Number of
/// Independent Observations in an Autocorrelated Time Series" (1946). Where the correlation leaves too few, the range of
/// the readings gives the interval.
///
/// # Errors
///
/// Fails when a sample has fewer than four readings at 95 %, when neighbouring readings of fewer than ten are too strongly
/// correlated, or when a reading has no logarithm.
pub fn unpaired_effect(reference: &[f64], arm: &[f64], level: f64) -> Result<Effect, Why> {
    check(level)?;
    let (reference, arm) = (logarithms(reference)?, logarithms(arm)?);
    let n = reference.len().min(arm.len());
    let need = samples_needed(level);
    if n < need {
        return Err(Why::TooFew { have: n, need });
    }
    let shift = ranks::mann_whitney(&reference, &arm, level).ok_or(Why::TooFew { have: n, need: n + 1 })?;
    let counts = [&reference, &arm].map(|logs| logs.len() as f64);
    let worth = [&reference, &arm].map(|logs| logs.len() as f64 / repetition(logs));
    if worth[0].min(worth[1]) < need as f64 {
        let range = [&reference, &arm].map(|logs| range(logs)).into_iter().fold(0.0, f64::max);
        if n < RANGE_FROM {
            return Err(Why::Drifting { have: n, need: RANGE_FROM });
        }
        let [low, high] = [-RANGES, RANGES].map(|ranges| shift.estimate + ranges * range);
        return Ok(Effect {
            ratio: shift.estimate.exp(),
            interval: Interval { low, high, level }.map(f64::exp),
            n,
            method: "Hodges-Lehmann shift of unpaired logs, three times the range of a drifting run",
        });
    }
    let wider = ((worth[0].recip() + worth[1].recip()) / (counts[0].recip() + counts[1].recip())).sqrt();
    let stretched = |end: f64| shift.estimate + wider * (end - shift.estimate);
    let interval = shift.interval.map(stretched);
    // A shift describes two distributions of one shape. Where readings have several levels whose shares differ, most
    // pairs may be alike although the medians are not: then the interval reaches to the difference of the medians.
    let medians = median(&arm) - median(&reference);
    let interval = Interval { low: interval.low.min(medians), high: interval.high.max(medians), ..interval };
    Ok(Effect { ratio: shift.estimate.exp(), interval: interval.map(f64::exp), n, method: UNPAIRED })
}

/// The number of readings that carry as much information as one independent reading, from the rank correlation of
/// neighbours. That correlation is underestimated in few readings, which is corrected (Kendall, "Note on Bias in the
/// Estimation of Autocorrelation" (1954)).
fn repetition(readings: &[f64]) -> f64 {
    let n = readings.len() as f64;
    let sorted = sorted(readings);
    let rank = |value: &f64| {
        let below = sorted.partition_point(|other| other < value);
        let not_above = sorted.partition_point(|other| other <= value);
        (below + not_above) as f64 / 2.0 - n / 2.0
    };
    let ranks: Vec<f64> = readings.iter().map(rank).collect();
    let squares: f64 = ranks.iter().map(|rank| rank * rank).sum();
    if squares == 0.0 {
        return 1.0;
    }
    let products: f64 = ranks.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let correlation = ((products / squares + n.recip()) / (1.0 - 3.0 / n).max(0.25)).clamp(0.0, 0.95);
    (1.0 + correlation) / (1.0 - correlation)
}

fn range(logs: &[f64]) -> f64 {
    let (least, most) = logs
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), log| (least.min(*log), most.max(*log)));
    most - least
}

/// The log ratio ln(arm/reference) of each block.
///
/// # Errors
///
/// Fails when the samples differ in length, or when a reading is not finite or not positive.
pub fn log_ratios(reference: &[f64], arm: &[f64]) -> Result<Vec<f64>, Why> {
    if reference.len() != arm.len() {
        return Err(Why::Unpaired { reference: reference.len(), arm: arm.len() });
    }
    let (reference, arm) = (logarithms(reference)?, logarithms(arm)?);
    Ok(reference.iter().zip(&arm).map(|(r, a)| a - r).collect())
}

/// The smallest number of blocks at which the order statistics of a median reach `level`: six at 95 %.
pub fn blocks_needed(level: f64) -> usize {
    let mut error = 1.0;
    let mut blocks = 1;
    while error > 1.0 - level && blocks < 1000 {
        error /= 2.0;
        blocks += 1;
    }
    blocks
}

/// The smallest number of readings in each of two unpaired samples at which ranks reach `level`: four at 95 %. The
/// smallest error of samples of size n is 2/C(2n, n).
fn samples_needed(level: f64) -> usize {
    let mut error = 2.0;
    let mut n = 0;
    while error > 1.0 - level && n < 500 {
        n += 1;
        error *= n as f64 / (2.0 * (2.0 * n as f64 - 1.0));
    }
    n
}

fn logarithms(readings: &[f64]) -> Result<Vec<f64>, Why> {
    if readings.iter().any(|r| !r.is_finite()) {
        return Err(Why::NotFinite);
    }
    if readings.iter().any(|&r| r <= 0.0) {
        return Err(Why::NotPositive);
    }
    Ok(readings.iter().map(|r| r.ln()).collect())
}

fn check(level: f64) -> Result<(), Why> {
    if level > 0.0 && level < 1.0 { Ok(()) } else { Err(Why::NoSuchLevel) }
}
