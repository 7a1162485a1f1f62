//! Which versions of a range descend from which: the order of the list is not the order of descent.

use super::Version;
use std::collections::HashMap;

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

    /// For each version, whether it is `version` or one of its ancestors.
    pub fn ancestry(&self, version: usize) -> Vec<bool> {
        let mut found = vec![false; self.len()];
        let mut open = vec![version];
        while let Some(next) = open.pop() {
            if !std::mem::replace(&mut found[next], true) {
                open.extend(&self.before[next]);
            }
        }
        found
    }

    /// The nearest `known` ancestors of a version, the first parent's first, and the other versions on the way to them.
    /// Where one known version descends from another, only the later one is nearest.
    pub fn nearest(&self, version: usize, known: impl Fn(usize) -> bool) -> (Vec<usize>, Vec<usize>) {
        let (mut nearest, mut between) = (Vec::new(), Vec::new());
        let mut seen = vec![false; self.len()];
        let mut open: Vec<usize> = self.before[version].iter().rev().copied().collect();
        while let Some(next) = open.pop() {
            if std::mem::replace(&mut seen[next], true) {
                continue;
            }
            match known(next) {
                true => nearest.push(next),
                false => {
                    between.push(next);
                    open.extend(self.before[next].iter().rev());
                }
            }
        }
        if nearest.len() > 1 {
            let behind: Vec<Vec<bool>> = nearest.iter().map(|&one| self.ancestry(one)).collect();
            let keeps =
                |one: usize| !nearest.iter().zip(&behind).any(|(&other, has)| other != one && has[one]);
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
        let behind = self.ancestry(to);
        let mut ahead = vec![false; self.len()];
        for version in from..=to.min(self.len().saturating_sub(1)) {
            ahead[version] = version == from || self.before[version].iter().any(|&parent| ahead[parent]);
        }
        (from..=to).filter(|&version| ahead[version] && behind[version]).collect()
    }

    /// The latest version that is each of two versions or an ancestor of it.
    pub fn base(&self, one: usize, other: usize) -> Option<usize> {
        let (one, other) = (self.ancestry(one), self.ancestry(other));
        (0..self.len()).rev().find(|&version| one[version] && other[version])
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
    }
}
