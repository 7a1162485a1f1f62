//! What the nodes of a farm say of the difference between two versions, each by the blocks that it has timed.

use super::{History, State};
use crate::sample::Sample;
use crate::stats::Why;
use crate::stats::nodes::{Joined, joined};
use crate::subject::Role;

/// The effect from one version to another over the nodes that weighed both.
#[derive(Clone, Debug, PartialEq)]
pub struct OverNodes {
    /// The names of these nodes, in the order of [`Joined::each`].
    pub names: Vec<String>,
    /// What they say together, or why that is not known.
    pub joined: Result<Joined, Why>,
}

/// The effect of a metric of a subject from one version to another, by their places in the history. None where fewer than
/// two nodes have weighed both.
pub fn over_nodes(
    history: &History,
    (subject, key): (&str, &str),
    from: usize,
    to: usize,
) -> Option<OverNodes> {
    let (old, new) = (sample(history, subject, key, from)?, sample(history, subject, key, to)?);
    let (mut names, mut ratios) = (Vec::new(), Vec::new());
    for node in &history.run.provenance.nodes {
        let within = |sample: &Sample| {
            let pairs = sample.blocks.iter().zip(&sample.readings).filter(|(block, _)| node.has(**block));
            let (blocks, readings) = pairs.map(|(block, reading)| (*block, *reading)).unzip();
            Sample { blocks, readings, ..sample.clone() }
        };
        let (before, after) = within(old).paired(&within(new));
        if !before.is_empty() {
            names.push(node.name.clone());
            ratios.push(before.iter().zip(&after).map(|(old, new)| (new / old).ln()).collect());
        }
    }
    (names.len() > 1).then(|| OverNodes { names, joined: joined(&ratios, LEVEL) })
}

/// The level of intervals.
const LEVEL: f64 = 0.95;

fn sample<'a>(history: &'a History, subject: &str, key: &str, version: usize) -> Option<&'a Sample> {
    let version = &history.versions[version];
    let weighed = |commit: &String| {
        let is_it = |arm: &&crate::subject::Arm| arm.name == subject && arm.version.as_ref() == Some(commit);
        history.run.arms_of(Role::Subject).find(is_it).and_then(|arm| arm.sample(key))
    };
    match (&version.state, &version.same_as) {
        (State::SameBinary, Some(same)) => weighed(&version.commit).or_else(|| weighed(same)),
        _ => weighed(&version.commit),
    }
}
