//! The places of a series: a place is a group of versions that follow each other and have the same artefacts, at least
//! one of which was weighed.

use super::forest::Forest;
use super::interleaved::Cells;
use crate::history::Graph;
use scruple_stats::sorting::SortedMap;

/// The readings of one version.
pub(super) struct VersionReadings {
    pub version: usize,
    /// The version that was built first with the same artefacts.
    pub root: usize,
    /// Whether the readings are those of `root` and not of the version itself.
    pub copied: bool,
    pub seen: JudgedReadings,
}

/// Readings in the two forms in which they are judged.
#[derive(Clone)]
pub(super) struct JudgedReadings {
    /// The count of each visit; empty where counts differ within a visit.
    pub visits: Vec<f64>,
    /// The readings by block, usually as logarithms.
    pub cells: Cells,
}

/// A group of versions with the same artefacts, and their readings.
pub(super) struct ArtefactGroup {
    /// The versions of the place, all of which follow the first one.
    pub versions: Vec<usize>,
    /// The number of these that were weighed themselves.
    pub weighed: usize,
    pub seen: JudgedReadings,
    /// The nearest versions before the place that have a place, the first parent's first.
    pub after: Vec<usize>,
    /// The versions on the way to those of `after`; they have no place.
    pub between: Vec<usize>,
}

impl ArtefactGroup {
    /// The version that all others of the place follow.
    pub fn first(&self) -> usize {
        self.versions[0]
    }
}

/// All places of a series; those of a line of versions are adjacent.
pub(super) struct ArtefactGroups {
    pub all: Vec<ArtefactGroup>,
    /// The place of each version that has one.
    pub of: SortedMap<usize, usize>,
    /// The place of the newest version.
    pub newest: usize,
}

impl ArtefactGroups {
    /// Makes the places of these versions; all other versions count as not weighed.
    pub fn of<'r>(graph: &Graph, reads: impl Iterator<Item = &'r VersionReadings> + Clone) -> ArtefactGroups {
        let known: Vec<bool> = {
            let mut known = vec![false; graph.len()];
            reads.clone().for_each(|read| known[read.version] = true);
            known
        };
        let mut all: Vec<ArtefactGroup> = Vec::new();
        let mut roots: Vec<usize> = Vec::new();
        let mut of: SortedMap<usize, usize> = SortedMap::new();
        for read in reads {
            let (after, between) = graph.nearest(read.version, |version| known[version]);
            let same =
                after.iter().filter_map(|version| of.get(version)).find(|place| roots[**place] == read.root);
            let place = match same.copied() {
                Some(place) => {
                    all[place].versions.push(read.version);
                    if !read.copied {
                        all[place].weighed += 1;
                        merge(&mut all[place].seen.cells, &read.seen.cells);
                    }
                    place
                }
                None => {
                    roots.push(read.root);
                    all.push(ArtefactGroup {
                        versions: vec![read.version],
                        weighed: 1,
                        seen: read.seen.clone(),
                        after,
                        between,
                    });
                    all.len() - 1
                }
            };
            of.insert(read.version, place);
        }
        ArtefactGroups { newest: all.len().saturating_sub(1), all, of }.in_lines()
    }

    /// The forest in which each place is compared with the first place that it follows.
    pub fn forest(&self) -> Forest {
        let before = |place: &ArtefactGroup| {
            let mut before: Vec<usize> = Vec::new();
            for other in place.after.iter().filter_map(|version| self.of.get(version)) {
                if !before.contains(other) {
                    before.push(*other);
                }
            }
            before
        };
        Forest::new(self.all.iter().map(before).collect())
    }

    /// Makes the places of each line of first parents adjacent, the line of the newest version first.
    fn in_lines(self) -> ArtefactGroups {
        // The newest version may share its place with an older one.
        let Some(newest) = self.of.last_key_value().map(|(_, place)| *place) else { return self };
        let forest = self.forest();
        let mut taken = vec![false; self.all.len()];
        let mut order = Vec::with_capacity(self.all.len());
        for end in std::iter::once(newest).chain((0..self.all.len()).rev()) {
            let line = forest.line_to(end);
            let new: Vec<usize> =
                line.into_iter().filter(|place| !std::mem::replace(&mut taken[*place], true)).collect();
            order.extend(new);
        }
        let mut at = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, old)| at[*old] = new);
        let mut all: Vec<Option<ArtefactGroup>> = self.all.into_iter().map(Some).collect();
        let all = order.iter().filter_map(|old| all[*old].take()).collect();
        let of = self.of.into_iter().map(|(version, place)| (version, at[place])).collect();
        ArtefactGroups { all, of, newest: at[newest] }
    }

    /// The version before a place whose place it is compared with in `forest`.
    pub fn link(&self, forest: &Forest, place: usize) -> Option<usize> {
        let compared = forest.compared(place)?;
        self.all[place].after.iter().copied().find(|version| self.of.get(version) == Some(&compared))
    }
}

/// Adds the readings of a version with the same artefacts; readings in a block that exists already are averaged with
/// those there.
fn merge(cells: &mut Cells, more: &Cells) {
    for (block, value) in more {
        cells.entry(*block).and_modify(|there| *there = (*there + value) / 2.0).or_insert(*value);
    }
}
