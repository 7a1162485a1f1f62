//! The effect between two versions over the nodes of a farm, each node by the blocks that it timed.

use super::{History, VersionState};
use crate::metric::Pass;
use crate::sample::Sample;
use crate::subject::Role;
use scruple_stats::nodes::{OverNodes, joined};
use scruple_stats::quantile::median;
use scruple_stats::sorting::SortedMap;
use std::ops::RangeInclusive;

/// The effect over nodes of a metric of a subject, from one range of versions to another, given by their places in the
/// history. `None` where fewer than two nodes have weighed versions of both ranges. In each block, each side counts by
/// the median of the logarithms of its versions, since another program may have disturbed some of them.
pub fn over_nodes(
    history: &History,
    (subject, key): (&str, &str),
    from: RangeInclusive<usize>,
    to: RangeInclusive<usize>,
) -> Option<OverNodes> {
    let samples = |versions: RangeInclusive<usize>| -> Vec<&Sample> {
        versions.filter_map(|version| sample(history, subject, key, version)).collect()
    };
    let (old, new) = (by_block(&samples(from)), by_block(&samples(to)));
    let (mut names, mut ratios) = (Vec::new(), Vec::new());
    for node in &history.run.provenance.nodes {
        let both = old.iter().filter(|(block, _)| node.has(**block));
        let pairs: Vec<f64> = both.filter_map(|(block, before)| Some(new.get(block)? - before)).collect();
        if !pairs.is_empty() {
            names.push(node.name.clone());
            ratios.push(pairs);
        }
    }
    (names.len() > 1).then(|| OverNodes { names, joined: joined(&ratios, LEVEL) })
}

/// The median logarithm of the readings of each block.
fn by_block(samples: &[&Sample]) -> SortedMap<u32, f64> {
    let mut all: SortedMap<u32, Vec<f64>> = SortedMap::new();
    for sample in samples {
        for (block, reading) in sample.blocks.iter().zip(&sample.readings) {
            all.entry(*block).or_default().push(reading.ln());
        }
    }
    all.into_iter().map(|(block, logs)| (block, median(&logs))).collect()
}

/// The confidence level of the intervals.
const LEVEL: f64 = 0.95;

fn sample<'a>(history: &'a History, subject: &str, key: &str, version: usize) -> Option<&'a Sample> {
    let version = &history.versions[version];
    let weighed = |commit: &String| {
        let is_it = |arm: &&crate::subject::Arm| arm.name == subject && arm.version.as_ref() == Some(commit);
        let sample = history.run.arms_of(Role::Subject).find(is_it).and_then(|arm| arm.sample(key))?;
        // Blocks belong to nodes in the timing pass only.
        Some(sample).filter(|sample| sample.pass == Pass::Timing)
    };
    match (&version.state, &version.same_as) {
        (VersionState::SameBinary, Some(same)) => weighed(&version.commit).or_else(|| weighed(same)),
        _ => weighed(&version.commit),
    }
}
