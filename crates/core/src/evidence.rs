//! What is known about the difference between two arms in one metric.
//!
//! Verdicts, gates, sentences, tables and JSON read only [`Evidence`], so that they all rest on the same knowledge.

mod readings;

pub use readings::Readings;

use scruple_stats::paired::{self, Effect, Why};
use scruple_stats::quantile::median;
use scruple_stats::{Interval, processes};

/// The smallest, the median and the largest of a few readings, in the unit of the metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadingRange {
    /// The smallest reading.
    pub low: f64,
    /// The median of the readings.
    pub middle: f64,
    /// The largest reading.
    pub high: f64,
}

impl ReadingRange {
    /// The range of some readings; `None` where there are no readings or one of them is not finite.
    pub fn of(readings: &[f64]) -> Option<ReadingRange> {
        if readings.is_empty() || readings.iter().any(|reading| !reading.is_finite()) {
            return None;
        }
        let low = readings.iter().copied().fold(f64::INFINITY, f64::min);
        let high = readings.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(ReadingRange { low, middle: median(readings), high })
    }

    /// Whether two ranges overlap.
    fn overlaps(&self, other: &ReadingRange) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// Whether all readings are equal.
    pub fn repeats(&self) -> bool {
        self.low == self.high
    }
}

/// The unit that one number of a sample represents. It determines what an interval predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicate {
    /// A launch or a batch, one of many.
    Block,
    /// A whole process, by the median of its batches.
    Process,
    /// A turn of a load, by the median of its windows: windows of one turn share what the machine did meanwhile.
    Turn,
    /// A launch, one of fewer than order statistics need.
    Launch,
    /// A node of a farm, by its own effect, where there are enough nodes for their class of machines. Else a pair of
    /// readings of one of these nodes, from which the node's difference from their mean is subtracted.
    Nodes {
        /// The number of nodes.
        nodes: usize,
        /// Whether the nodes stand for their class of machines.
        of_class: bool,
    },
}

/// The number of readings of each arm from which on ranges that lie apart count as evidence. Chance separates them in 2
/// of 70 cases, since 2 of the 70 ways to divide eight readings do.
pub const APART: usize = 4;

/// The number of readings that shows that a count repeats.
pub const REPEATED: usize = 2;

/// The number of readings of each arm that shows that two repeating counts differ. A count that takes two values, each
/// half of the time, repeats in each arm and yet differs between them in 2 of 16 cases with two readings of each, and
/// in 2 of 64 cases with three.
pub const DIFFER: usize = 3;

/// The number of launches of a command in the memory and counting passes, where the readings vary so much that the
/// verdict is open.
pub const MOST_OF_FEW: usize = 6;

/// What is known about the difference between a reference and an arm.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// The difference is a fact: the metric is counted, and the readings of each arm repeated in this run.
    Exact {
        /// The reading of the reference, in the unit of the metric.
        reference: f64,
        /// The reading of the arm, in the unit of the metric.
        arm: f64,
        /// The number of readings of the arm that has fewer.
        readings: usize,
    },
    /// The ratio of arm to reference is known by an interval.
    Interval {
        /// The ratio, its interval, and the method.
        effect: Effect,
        /// What each number represents from which the interval is computed.
        of: Replicate,
        /// How much two identical programs may differ in this metric for reasons that more readings do not average out,
        /// as a ratio less 1.
        resolution: f64,
    },
    /// The readings are known by their ranges: the metric is counted, but not exactly.
    Ranges {
        /// The readings of the reference.
        reference: ReadingRange,
        /// The readings of the arm.
        arm: ReadingRange,
        /// The smallest difference that means anything, in the unit of the metric.
        floor: f64,
        /// The number of readings of the arm that has fewer.
        readings: usize,
    },
    /// Nothing may be concluded.
    Absent {
        /// The reason.
        why: Why,
        /// The ratio of the medians, which gives readers a direction.
        pointing: Option<f64>,
        /// The number of readings of the arm that has fewer.
        readings: usize,
    },
}

impl Evidence {
    /// The evidence of readings taken in blocks, at this confidence level: the i-th reading of each arm belongs to
    /// block i.
    pub fn of_blocks(reference: &[f64], arm: &[f64], level: f64) -> Evidence {
        if reference.len() == arm.len()
            && let Some(nothing) = Evidence::of_nothing(reference, arm)
        {
            return nothing;
        }
        Evidence::of(paired::effect(reference, arm, level), Replicate::Block, reference, arm)
    }

    /// The evidence of two samples that were not taken in blocks, such as two stored runs.
    ///
    /// A change of the machine between the samples counts as an effect.
    pub fn of_samples(reference: &[f64], arm: &[f64], level: f64) -> Evidence {
        if let Some(nothing) = Evidence::of_nothing(reference, arm) {
            return nothing;
        }
        Evidence::of(paired::unpaired_effect(reference, arm, level), Replicate::Block, reference, arm)
    }

    /// The evidence of one number for each process. There is no interval for fewer than three processes, which do not
    /// show how much processes differ.
    pub fn of_processes(reference: &[f64], arm: &[f64], paired: bool, level: f64) -> Evidence {
        let effect = processes::effect_of(reference, arm, paired, level).map_err(|why| match why {
            Why::TooFew { have, need } => Why::FewProcesses { have, need },
            why => why,
        });
        Evidence::of(effect, Replicate::Process, reference, arm)
    }

    /// The evidence of one number for each turn of a load. The i-th turns of both arms were taken side by side if
    /// `paired`.
    pub fn of_turns(reference: &[f64], arm: &[f64], paired: bool, level: f64) -> Evidence {
        if let Some(nothing) = Evidence::of_nothing(reference, arm) {
            return nothing;
        }
        let effect = processes::effect_of(reference, arm, paired, level);
        Evidence::of(effect, Replicate::Turn, reference, arm)
    }

    /// The evidence of replicates from nodes of a farm: one ratio for each node, which show the effect on their class,
    /// or pairs of readings of fewer nodes, which show the effect on these nodes.
    pub fn of_nodes(
        reference: &[f64],
        arm: &[f64],
        (nodes, of_class): (usize, bool),
        level: f64,
    ) -> Evidence {
        let effect = match of_class {
            true => processes::effect(reference, arm, level),
            false => paired::effect(reference, arm, level),
        };
        let method = match of_class {
            true => "mean of nodes, Student over nodes",
            false => "signed ranks of what is left in each node, around the mean of these nodes",
        };
        let effect = effect.map(|effect| Effect { method, ..effect });
        Evidence::of(effect, Replicate::Nodes { nodes, of_class }, reference, arm)
    }

    /// The evidence of a few launches in which a noisy metric was read. They are fewer than order statistics need, so
    /// the logarithms of the readings are assumed to be normal.
    pub fn of_handful(reference: &[f64], arm: &[f64], level: f64) -> Evidence {
        let known = |readings: &[f64]| ReadingRange::of(readings).is_some_and(|range| range.repeats());
        let effect = match known(reference) && known(arm) && reference[0] != arm[0] {
            true => Err(Why::NoSpread),
            false => processes::unpaired_effect(reference, arm, level),
        };
        Evidence::of(effect, Replicate::Launch, reference, arm)
    }

    /// The evidence of a metric that is read once because it cannot vary, such as the size of a file. `None` where the
    /// readings of an arm disagree.
    pub fn of_fact(reference: &[f64], arm: &[f64]) -> Option<Evidence> {
        let (left, right) = (ReadingRange::of(reference)?, ReadingRange::of(arm)?);
        let readings = reference.len().min(arm.len());
        let fact = Evidence::Exact { reference: left.low, arm: right.low, readings };
        (left.repeats() && right.repeats()).then_some(fact)
    }

    /// The evidence of a counted metric whose readings repeat: a fact, or ranges where the metric has a stated error.
    /// Few readings may repeat by chance; see [`REPEATED`] and [`DIFFER`]. `None` where the readings of an arm
    /// disagree.
    pub fn of_counts(reference: &[f64], arm: &[f64], exact: bool, floor: f64) -> Option<Evidence> {
        let (left, right) = (ReadingRange::of(reference)?, ReadingRange::of(arm)?);
        if !left.repeats() || !right.repeats() {
            return None;
        }
        let readings = reference.len().min(arm.len());
        let alike = (left.low - right.low).abs() <= floor;
        let enough = alike || reference.len() + arm.len() >= 2 * DIFFER;
        if readings < REPEATED || !enough {
            let why = Why::TooFew { have: readings, need: if alike { REPEATED } else { DIFFER } };
            return Some(Evidence::Absent { why, pointing: ratio(left.middle, right.middle), readings });
        }
        Some(match exact || (left.low == 0.0 && right.low == 0.0) {
            true => Evidence::Exact { reference: left.low, arm: right.low, readings },
            false => Evidence::Ranges { reference: left, arm: right, floor, readings },
        })
    }

    /// The evidence of a counted metric that did not repeat in this run. Ranges of fewer than [`APART`] readings may
    /// lie apart by chance.
    pub fn of_near_counts(reference: &[f64], arm: &[f64], floor: f64) -> Evidence {
        let readings = reference.len().min(arm.len());
        let pointing = || ratio(median(reference), median(arm));
        match (ReadingRange::of(reference), ReadingRange::of(arm)) {
            (Some(left), Some(right)) if readings >= if left.overlaps(&right) { REPEATED } else { APART } => {
                Evidence::Ranges { reference: left, arm: right, floor, readings }
            }
            (Some(_), Some(_)) => Evidence::Absent {
                why: Why::TooFew { have: readings, need: APART },
                pointing: pointing(),
                readings,
            },
            _ if readings == 0 => {
                Evidence::Absent { why: Why::TooFew { have: 0, need: 2 }, pointing: None, readings }
            }
            _ => Evidence::Absent { why: Why::NotFinite, pointing: None, readings },
        }
    }

    /// The evidence of arms whose readings are all 0, so that they have no ratios; `None` where a reading is not 0.
    fn of_nothing(reference: &[f64], arm: &[f64]) -> Option<Evidence> {
        let readings = reference.len().min(arm.len());
        let nothing = readings > 0 && reference.iter().chain(arm).all(|reading| *reading == 0.0);
        nothing.then_some(match readings < REPEATED {
            true => Evidence::undecided(Why::TooFew { have: readings, need: REPEATED }, reference, arm),
            false => Evidence::Exact { reference: 0.0, arm: 0.0, readings },
        })
    }

    fn of(effect: Result<Effect, Why>, of: Replicate, reference: &[f64], arm: &[f64]) -> Evidence {
        match effect {
            Ok(effect) => Evidence::Interval { effect, of, resolution: 0.0 },
            Err(why) => Evidence::undecided(why, reference, arm),
        }
    }

    /// No evidence, for the reason `why`, although there are readings.
    pub fn undecided(why: Why, reference: &[f64], arm: &[f64]) -> Evidence {
        let pointing = ratio(median(reference), median(arm));
        Evidence::Absent { why, pointing, readings: reference.len().min(arm.len()) }
    }

    /// The ratio of arm to reference; `None` where it is not finite.
    pub fn effect(&self) -> Option<f64> {
        match self {
            Evidence::Exact { reference, arm, .. } => ratio(*reference, *arm),
            Evidence::Interval { effect, .. } => Some(effect.ratio),
            Evidence::Ranges { reference, arm, .. } => ratio(reference.middle, arm.middle),
            Evidence::Absent { pointing, .. } => *pointing,
        }
    }

    /// The interval of the ratio; `None` where the evidence is of another kind.
    pub fn interval(&self) -> Option<Interval> {
        match self {
            Evidence::Interval { effect, .. } => Some(effect.interval),
            _ => None,
        }
    }

    /// Arm minus reference in the unit of the metric; `None` where the difference is not a fact.
    pub fn difference(&self) -> Option<f64> {
        match self {
            Evidence::Exact { reference, arm, .. } => Some(arm - reference),
            _ => None,
        }
    }

    /// The number of pairs or replicates of an interval; for other kinds, the number of readings of the arm that has
    /// fewer.
    pub fn readings(&self) -> usize {
        match self {
            Evidence::Interval { effect, .. } => effect.n,
            Evidence::Exact { readings, .. }
            | Evidence::Ranges { readings, .. }
            | Evidence::Absent { readings, .. } => *readings,
        }
    }

    /// The method by which the evidence was obtained, in words.
    pub fn method(&self) -> &'static str {
        match self {
            Evidence::Exact { .. } => "exact",
            Evidence::Interval { effect, .. } => effect.method,
            Evidence::Ranges { .. } => "ranges",
            Evidence::Absent { .. } => "none",
        }
    }

    /// The kind of evidence, as JSON names it.
    pub fn kind(&self) -> &'static str {
        match self {
            Evidence::Exact { .. } => "exact",
            Evidence::Interval { .. } => "interval",
            Evidence::Ranges { .. } => "ranges",
            Evidence::Absent { .. } => "absent",
        }
    }

    /// The reason why nothing can be concluded; `None` where something can.
    pub fn why(&self) -> Option<Why> {
        match self {
            Evidence::Absent { why, .. } => Some(*why),
            _ => None,
        }
    }

    /// The margin that this evidence supports, as a ratio less 1: `margin`, or how much identical programs may differ
    /// where that is larger.
    pub fn judgeable_margin(&self, margin: f64) -> f64 {
        match self {
            Evidence::Interval { resolution, .. } => margin.max(*resolution),
            Evidence::Ranges { reference, floor, .. } if reference.middle > 0.0 => {
                margin.max(floor / reference.middle)
            }
            _ => margin,
        }
    }

    /// The smallest and the largest ratio of arm to reference that the evidence allows.
    ///
    /// Gates read these bounds. They include the possible difference of identical programs, so that no gate is stricter
    /// than the verdict.
    ///
    /// # Errors
    ///
    /// Fails with the reason where the evidence gives no bounds.
    pub fn ratio_bounds(&self) -> Result<(f64, f64), Why> {
        match self {
            Evidence::Exact { reference, arm, .. } => {
                let ratio = ratio(*reference, *arm).unwrap_or(f64::INFINITY);
                Ok((ratio, ratio))
            }
            Evidence::Interval { effect, resolution, .. } => {
                let Interval { low, high, .. } = effect.interval;
                Ok((low / (1.0 + resolution), high * (1.0 + resolution)))
            }
            Evidence::Ranges { reference, arm, floor, .. } => {
                let least = ((arm.low - floor) / reference.high).max(0.0);
                let most = (arm.high + floor) / reference.low;
                match least.is_nan() || most.is_nan() {
                    true => Err(Why::NotPositive),
                    false => Ok((least, most)),
                }
            }
            Evidence::Absent { why, .. } => Err(*why),
        }
    }
}

/// Arm divided by reference; 1 where both are equal, `None` where there is no finite ratio.
fn ratio(reference: f64, arm: f64) -> Option<f64> {
    if reference == arm && reference.is_finite() {
        return Some(1.0);
    }
    Some(arm / reference).filter(|ratio| ratio.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_against_nothing_is_a_fact_and_has_a_ratio() {
        for evidence in [
            Evidence::of_blocks(&[0.0; 2], &[0.0; 2], 0.95),
            Evidence::of_samples(&[0.0; 2], &[0.0; 3], 0.95),
            Evidence::of_counts(&[0.0; 2], &[0.0; 2], false, 0.0).expect("counts"),
        ] {
            assert_eq!((evidence.effect(), evidence.difference()), (Some(1.0), Some(0.0)));
            assert_eq!(evidence.ratio_bounds(), Ok((1.0, 1.0)));
        }
    }

    #[test]
    fn something_against_nothing_has_no_ratio_and_exceeds_every_bound() {
        let evidence = Evidence::of_counts(&[0.0; 3], &[8000.0; 3], true, 0.0).expect("counts");
        assert_eq!((evidence.effect(), evidence.difference()), (None, Some(8000.0)));
        assert_eq!(evidence.ratio_bounds(), Ok((f64::INFINITY, f64::INFINITY)));
        let near = Evidence::of_counts(&[0.0; 3], &[8000.0; 3], false, 0.0).expect("counts");
        assert_eq!((near.effect(), near.ratio_bounds()), (None, Ok((f64::INFINITY, f64::INFINITY))));
    }

    #[test]
    fn counts_that_do_not_repeat_are_no_counts() {
        assert_eq!(Evidence::of_counts(&[5.0, 6.0], &[5.0, 5.0], true, 0.0), None);
        assert_eq!(Evidence::of_counts(&[], &[5.0], true, 0.0), None);
        let once = Evidence::of_counts(&[5.0], &[6.0], true, 0.0).expect("counts");
        assert_eq!(
            once.why(),
            Some(Why::TooFew { have: 1, need: 3 }),
            "one reading does not show that it repeats"
        );
        let kind = |left: usize, right: usize| {
            Evidence::of_counts(&vec![5.0; left], &vec![6.0; right], true, 0.0).expect("counts").kind()
        };
        assert_eq!([kind(2, 2), kind(2, 3), kind(1, 9)], ["absent"; 3], "few counts repeat by chance");
        assert_eq!([kind(3, 3), kind(2, 4), kind(4, 2)], ["exact"; 3]);
        assert_eq!(Evidence::of_counts(&[5.0; 2], &[5.0; 2], true, 0.0).expect("counts").kind(), "exact");
        assert_eq!(Evidence::of_fact(&[5.0], &[6.0]).and_then(|fact| fact.difference()), Some(1.0));
        let apart = |n: usize| {
            let readings = |from: usize| (from..from + n).map(|i| i as f64).collect::<Vec<f64>>();
            Evidence::of_near_counts(&readings(100), &readings(200), 0.0).kind()
        };
        assert_eq!((apart(2), apart(3), apart(4)), ("absent", "absent", "ranges"));
        let overlapping = Evidence::of_near_counts(&[5.0, 6.0], &[6.0, 6.0], 0.0);
        assert_eq!(overlapping.ratio_bounds(), Ok((1.0, 1.2)));
    }

    #[test]
    fn bounds_include_what_identical_programs_differ_by() {
        let near =
            Evidence::of_counts(&[1_600_000.0; 3], &[1_600_000.0; 3], false, 300_000.0).expect("counts");
        let (low, high) = near.ratio_bounds().expect("bounds");
        assert!(low < 0.82 && high > 1.18, "{low} {high}");
        assert!((near.judgeable_margin(0.02) - 0.1875).abs() < 1e-12);
    }
}
