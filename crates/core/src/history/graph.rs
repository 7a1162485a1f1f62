//! Which versions of a range descend from which: the order of the list is not the order of descent.

use super::Version;
use std::collections::{HashMap, HashSet};

/// The versions of a range and the links between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    before: Vec<Vec<usize>>,
}

impl Graph {
    /// Makes the graph of versions that are listed in topological order, oldest first.
    pub fn of(versions: &[Version]) -> Graph {
        let places: HashMap<&str, usize> =
            versions.iter().enumerate().map(|(place, version)| (version.commit.as_str(), place)).collect();
        let before = |(place, version): (usize, &Version)| {
            let known = version.follows.iter().filter_map(|commit| places.get(commit.as_str()).copied());
            // Parents that are listed later are ignored, so that a list in another order makes no cycle.
            known.filter(|&parent| parent < place).collect()
        };
        Graph { before: versions.iter().enumerate().map(before).collect() }
    }

    /// The number of versions.
    pub fn len(&self) -> usize {
        self.before.len()
    }

    /// Whether the graph has no versions.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    /// The versions that `version` directly follows, the first parent first.
    pub fn before(&self, version: usize) -> &[usize] {
        &self.before[version]
    }

    /// Whether each version follows only the one that is listed before it.
    pub fn is_line(&self) -> bool {
        self.before.iter().enumerate().all(|(place, before)| match place {
            0 => before.is_empty(),
            _ => before[..] == [place - 1],
        })
    }

    /// The version and its ancestors, as far as their places in the list are at least `floor`.
    pub fn ancestry(&self, version: usize, floor: usize) -> Ancestry {
        let mut found = vec![false; (version + 1).saturating_sub(floor)];
        let mut open = vec![version];
        while let Some(next) = open.pop() {
            // The ancestors of a version are listed before it.
            if next >= floor && !std::mem::replace(&mut found[next - floor], true) {
                open.extend(&self.before[next]);
            }
        }
        Ancestry { floor, found }
    }

    /// For each of these versions, which are in ascending order, how many of the others are its ancestors.
    pub fn ancestors_among(&self, versions: &[usize]) -> Vec<usize> {
        let (Some(&first), Some(&last)) = (versions.first(), versions.last()) else { return Vec::new() };
        let words = versions.len().div_ceil(64);
        // A bit for each of `versions`, for each version of the list from the first to the last of them.
        let mut behind = vec![0_u64; (last - first + 1) * words];
        let mut counts = Vec::with_capacity(versions.len());
        for version in first..=last {
            let (older, newer) = behind.split_at_mut((version - first) * words);
            let own = &mut newer[..words];
            for parent in self.before[version].iter().filter(|&&parent| parent >= first) {
                let inherited = &older[(parent - first) * words..][..words];
                own.iter_mut().zip(inherited).for_each(|(own, more)| *own |= more);
            }
            if versions.get(counts.len()) == Some(&version) {
                let bit = counts.len();
                counts.push(own.iter().map(|word| word.count_ones() as usize).sum());
                own[bit / 64] |= 1 << (bit % 64);
            }
        }
        counts
    }

    /// The nearest `known` ancestors of a version, the first parent's first, and the other versions on the way to them.
    /// Where one known version descends from another, only the later one is nearest.
    pub fn nearest(&self, version: usize, known: impl Fn(usize) -> bool) -> (Vec<usize>, Vec<usize>) {
        let (mut nearest, mut between) = (Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        let mut open: Vec<usize> = self.before[version].iter().rev().copied().collect();
        // Only past a merge can a version be reached twice.
        let mut merged = open.len() > 1;
        while let Some(next) = open.pop() {
            if merged && !seen.insert(next) {
                continue;
            }
            merged |= self.before[next].len() > 1;
            match known(next) {
                true => nearest.push(next),
                false => {
                    between.push(next);
                    open.extend(self.before[next].iter().rev());
                }
            }
        }
        if nearest.len() > 1 {
            let floor = nearest.iter().copied().min().unwrap_or(0);
            let behind: Vec<Ancestry> = nearest.iter().map(|&one| self.ancestry(one, floor)).collect();
            let keeps =
                |one: usize| !nearest.iter().zip(&behind).any(|(&other, has)| other != one && has.has(one));
            nearest = nearest.iter().copied().filter(|&one| keeps(one)).collect();
        }
        between.sort_unstable();
        (nearest, between)
    }

    /// The line of first parents that ends at `version`, oldest first.
    pub fn line_to(&self, version: usize) -> Vec<usize> {
        let mut line = vec![version];
        while let Some(&parent) = line.last().and_then(|&last| self.before[last].first()) {
            line.push(parent);
        }
        line.reverse();
        line
    }

    /// The versions on all paths of descent from `from` to `to`, including both.
    pub fn between(&self, from: usize, to: usize) -> Vec<usize> {
        let behind = self.ancestry(to, from);
        let mut ahead = vec![false; self.len()];
        for version in from..=to.min(self.len().saturating_sub(1)) {
            ahead[version] = version == from || self.before[version].iter().any(|&parent| ahead[parent]);
        }
        (from..=to).filter(|&version| ahead[version] && behind.has(version)).collect()
    }

    /// The latest version that is each of two versions or an ancestor of it.
    pub fn base(&self, one: usize, other: usize) -> Option<usize> {
        let (one, other) = (self.ancestry(one, 0), self.ancestry(other, 0));
        (0..self.len()).rev().find(|&version| one.has(version) && other.has(version))
    }

    /// Whether the parents of a merge have diverged before the first version that is listed.
    pub fn diverged_before(&self, parents: &[usize]) -> bool {
        parents.iter().skip(1).any(|other| self.base(parents[0], *other).is_none())
    }
}

/// A version and its ancestors, down to some place in the list.
#[derive(Clone, Debug)]
pub struct Ancestry {
    floor: usize,
    found: Vec<bool>,
}

impl Ancestry {
    /// Whether `version` is among them. It must not be listed before the floor.
    pub fn has(&self, version: usize) -> bool {
        version.checked_sub(self.floor).and_then(|place| self.found.get(place)).copied().unwrap_or(false)
    }
}

/// Makes a graph from the list of versions that each version directly follows, all of which are listed before it.
impl FromIterator<Vec<usize>> for Graph {
    fn from_iter<T: IntoIterator<Item = Vec<usize>>>(before: T) -> Graph {
        Graph { before: before.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(before: &[&[usize]]) -> Graph {
        before.iter().map(|before| before.to_vec()).collect()
    }

    #[test]
    fn the_nearest_known_versions_are_those_that_no_other_known_one_hides() {
        // 0 - 1 - 2 - 5, and 3 - 4 from 0 into 5.
        let graph = graph(&[&[], &[0], &[1], &[0], &[3], &[2, 4]]);
        assert_eq!(graph.nearest(5, |_| true), (vec![2, 4], vec![]));
        assert_eq!(graph.nearest(5, |version| version < 3), (vec![2], vec![3, 4]));
        assert_eq!(graph.nearest(5, |version| version == 0), (vec![0], vec![1, 2, 3, 4]));
        assert_eq!((graph.line_to(5), graph.base(2, 4)), (vec![0, 1, 2, 5], Some(0)));
        assert_eq!((graph.between(3, 5), graph.between(1, 4)), (vec![3, 4, 5], vec![]));
        assert!(!graph.is_line());
        assert_eq!(graph.ancestors_among(&[1, 2, 3, 4, 5]), [0, 1, 0, 1, 4]);
        assert_eq!(graph.ancestors_among(&[1, 4, 5]), [0, 0, 2]);
        let has = |floor: usize| (0..6).filter(|&one| graph.ancestry(4, floor).has(one)).collect::<Vec<_>>();
        assert_eq!((has(0), has(3)), (vec![0, 3, 4], vec![3, 4]));
    }

    #[test]
    fn ancestors_are_counted_in_lines_of_more_than_a_word() {
        let line: Graph =
            (0..200_usize).map(|one| one.checked_sub(1).into_iter().collect::<Vec<_>>()).collect();
        let versions: Vec<usize> = (10..190).collect();
        assert_eq!(line.ancestors_among(&versions), (0..180).collect::<Vec<_>>());
    }
}
