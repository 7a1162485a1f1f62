//! Pairs whose readings several nodes of a farm took: each node is a stratum, and effects are joined over nodes.

use super::Pair;
use super::pair_samples::{Replicates, replicates_of, samples_of};
use crate::evidence::Replicate;
use crate::metric::Pass;
use crate::provenance::Node;
use crate::run::Run;
use crate::sample::Sample;
use scruple_stats::nodes::{self, CLASS, OverNodes};
use scruple_stats::paired::Why;
use scruple_stats::quantile::median;
use scruple_stats::ranks::hodges_lehmann;
use scruple_stats::summary::mean;

/// The nodes that took the readings of both sides of a pair; empty where one machine took them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nodes<'a> {
    /// The nodes that took the readings of the reference.
    pub reference: &'a [Node],
    /// The nodes that took the readings of the arm.
    pub arm: &'a [Node],
}

impl<'a> Nodes<'a> {
    /// The nodes of a run, for two of its arms.
    pub fn of(run: &'a Run) -> Nodes<'a> {
        Nodes { reference: &run.provenance.nodes, arm: &run.provenance.nodes }
    }

    /// Whether several nodes took the readings.
    pub(super) fn are_several(&self) -> bool {
        self.reference.len() > 1 || self.arm.len() > 1
    }
}

/// Replicates of the effect on a timed metric from several nodes. `taken` gives the replicates of one node. `None`
/// where one machine took the readings, or where all readings are zero.
///
/// With at least [`CLASS`] nodes, each node is one replicate: the Hodges–Lehmann centre of its own pairs. With fewer
/// nodes, the pairs of those with enough are replicates of the effect on these, after the difference of each node from
/// their mean is subtracted.
///
/// # Errors
/// There are too few nodes for the class and too few pairs on each of them, a reading is not positive, or all
/// replicates are equal.
pub(super) fn replicates(
    pair: &Pair<'_>,
    (reference, arm): (&Sample, &Sample),
    taken: &dyn Fn(&Sample, &Sample) -> Replicates,
) -> Option<Result<Replicates, Why>> {
    let nothing = || reference.readings.iter().chain(&arm.readings).all(|reading| *reading == 0.0);
    if !pair.nodes.are_several() || arm.pass != Pass::Timing || nothing() {
        return None;
    }
    let (_, ratios) = by_node(pair, reference, arm, taken);
    Some(standing_for(&ratios))
}

fn standing_for(ratios: &[Vec<f64>]) -> Result<Replicates, Why> {
    if ratios.iter().flatten().any(|ratio| !ratio.is_finite()) {
        return Err(Why::NotPositive);
    }
    let k = ratios.len();
    let centres: Vec<f64> = ratios.iter().map(|own| hodges_lehmann(own)).collect();
    let counted = nodes::counted(&ratios.iter().map(Vec::len).collect::<Vec<usize>>());
    let logarithms = match k {
        CLASS.. => centres,
        // The readings of a single node say nothing about other nodes.
        0 | 1 => return Err(Why::FewNodes { have: k, need: CLASS }),
        _ if counted.is_empty() => return Err(Why::FewNodes { have: k, need: CLASS }),
        _ => {
            let centres: Vec<f64> = counted.iter().map(|place| centres[*place]).collect();
            let own: Vec<&Vec<f64>> = counted.iter().map(|place| &ratios[*place]).collect();
            let middle = mean(&centres);
            nodes::aligned(&own, &centres).into_iter().map(|residual| middle + residual).collect()
        }
    };
    if logarithms.windows(2).all(|pair| pair[0] == pair[1]) {
        return Err(Why::NoSpread);
    }
    let replicate = Replicate::Nodes { nodes: counted.len(), of_class: k >= CLASS };
    Ok((vec![1.0; logarithms.len()], logarithms.into_iter().map(f64::exp).collect(), replicate))
}

/// The log ratios of each node that took both sides, with its name: those of its own pairs, or that of its medians
/// where the sides were not taken side by side.
fn by_node(
    pair: &Pair<'_>,
    reference: &Sample,
    arm: &Sample,
    taken: &dyn Fn(&Sample, &Sample) -> Replicates,
) -> (Vec<String>, Vec<Vec<f64>>) {
    let (mut names, mut ratios) = (Vec::new(), Vec::new());
    for node in pair.nodes.arm {
        let Some(other) = pair.nodes.reference.iter().find(|other| other.name == node.name) else { continue };
        let (left, right) = (within(reference, other), within(arm, node));
        if left.readings.is_empty() || right.readings.is_empty() {
            continue;
        }
        let (left, right, _) = taken(&left, &right);
        let own: Vec<f64> = match pair.paired {
            true => left.iter().zip(&right).map(|(left, right)| (right / left).ln()).collect(),
            false => vec![(median(&right) / median(&left)).ln()],
        };
        if !own.is_empty() {
            names.push(node.name.clone());
            ratios.push(own);
        }
    }
    (names, ratios)
}

fn within(sample: &Sample, node: &Node) -> Sample {
    let pairs = sample.blocks.iter().zip(&sample.readings).filter(|(block, _)| node.has(**block));
    let (blocks, readings) = pairs.map(|(block, reading)| (*block, *reading)).unzip();
    Sample { blocks, readings, ..sample.clone() }
}

/// How far the nodes of a farm agree on the effect of a pair in a metric; `None` where fewer than two nodes took both
/// sides.
pub fn over_nodes(pair: &Pair<'_>, key: &str, level: f64) -> Option<OverNodes> {
    let (reference, arm) = samples_of(pair, key)?;
    if !pair.nodes.are_several() || arm.pass != Pass::Timing {
        return None;
    }
    let taken = |reference: &Sample, arm: &Sample| replicates_of(pair, reference, arm);
    let (names, ratios) = by_node(pair, &reference, &arm, &taken);
    (names.len() > 1).then(|| OverNodes { names, joined: nodes::joined(&ratios, level) })
}
