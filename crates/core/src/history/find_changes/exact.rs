//! Finds the cuts of a series of exact values.

use super::steps::{Cut, Steps};
use super::version_groups::{ArtefactGroup, ArtefactGroups};

/// The cuts and levels of an exact series, in the unit of the metric. There is a cut before every place whose value
/// differs from those of all places that it follows: a version did not cause a value that a parent has already.
pub(super) fn steps(places: &ArtefactGroups) -> Steps {
    let mut forest = places.forest();
    let equal = |one: &ArtefactGroup, other: &ArtefactGroup| {
        let mut both = one.seen.visits.iter().zip(&other.seen.visits);
        both.any(|(one, other)| one == other) || one.seen.visits.is_empty() || other.seen.visits.is_empty()
    };
    let mut cuts = Vec::new();
    for (at, place) in places.all.iter().enumerate() {
        let mut before = forest.before(at).iter().copied();
        match before.find(|&other| equal(&places.all[other], place)) {
            Some(other) => forest.attach(at, other),
            None => cuts.extend(forest.compared(at).map(|_| at)),
        }
    }
    let (parts, count) = forest.parts(&cuts);
    let value = |at: usize| places.all[at].seen.visits.first().copied().unwrap_or(f64::NAN);
    let mut levels = vec![None; count];
    for &at in forest.order() {
        levels[parts[at]].get_or_insert((value(at), 0.0));
    }
    let cut = |&at: &usize| {
        let before = forest.compared(at).unwrap_or(at);
        let ratio = value(at) / value(before);
        let (from, to) = (parts[before], parts[at]);
        Cut { at, candidates: vec![at], from, to, ratio, interval: None, p: 0.0 }
    };
    let cuts = cuts.iter().map(cut).collect();
    let levels = levels.into_iter().flatten().collect();
    Steps { cuts, parts, levels, forest, ..Steps::default() }
}
