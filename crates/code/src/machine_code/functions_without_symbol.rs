//! Finds functions without a symbol in another version of their file: by their code, by the functions that refer to
//! them, and by their place among the others. A function that is found on both sides gets the same name on both.

use super::binary::Binaries;
use super::stripped_function::{NamesByAddress, StrippedFunction, label, label_of_second};
use crate::merged_profiles::Side;
use scruple_stats::sorting::{self, SortedMap};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The smallest number of instructions by which a function is recognised wherever it is.
const SHORT: usize = 8;

/// The smallest shares of equal instructions by which a changed function is recognised: among several candidates in its
/// place, and as the only candidate.
const ALIKE: f64 = 0.5;
const ALIKE_ALONE: f64 = 0.4;

/// The largest number of pairs in one place that are compared.
const MOST: usize = 10_000;

/// Names the functions without a symbol. `sides` are the runs of both programs.
pub fn name_stripped(sides: &mut [Vec<Side>; 2]) {
    let binaries = Binaries::new();
    let files = sides.each_ref().map(|runs| files(runs));
    let mut names = [NamesByAddress::new(), NamesByAddress::new()];
    let both: Vec<&String> = sorting::distinct(files.iter().flat_map(|files| files.keys()));
    for module in both {
        let found = files.each_ref().map(|files| files.get(module).cloned().unwrap_or_default());
        if !found.iter().flat_map(SortedMap::values).any(|file| file.is_stripped) {
            continue;
        }
        let mut left = found[1].clone();
        for (path, file) in &found[0] {
            let first = (&sides[0][file.run], file.function);
            let is_same = |other: &SideFile| {
                binaries.same_file(first, (&sides[1][other.run], other.function)) == Some(true)
            };
            if left.values().any(is_same) {
                left.retain(|_, other| !is_same(other));
                continue;
            }
            let others: Vec<(String, SideFile)> =
                left.iter().map(|(path, file)| (path.clone(), *file)).collect();
            if let ([(other, second)], 1) = (others.as_slice(), found[0].len()) {
                let shapes = [
                    binaries.shapes(&sides[0][file.run], path),
                    binaries.shapes(&sides[1][second.run], other),
                ];
                let both = named(&shapes, [path, other]);
                for ((names, path), of_file) in names.iter_mut().zip([path, other]).zip(both) {
                    names.insert(path.clone(), of_file);
                }
                left.clear();
            }
        }
        // Without a counterpart, functions of the second side must not have names of the first.
        names[1].extend(left.into_keys().map(|path| (path, HashMap::new())));
    }
    let [first, second] = names.map(Arc::new);
    for (which, (runs, names)) in sides.iter_mut().zip([first, second]).enumerate() {
        for side in runs {
            side.use_names(&names, which == 1);
        }
    }
}

/// A file of one side, by one of its functions.
#[derive(Clone, Copy, Debug)]
struct SideFile {
    run: usize,
    function: usize,
    is_stripped: bool,
}

/// The files of the functions that were executed, by module and path.
fn files(runs: &[Side]) -> SortedMap<String, SortedMap<String, SideFile>> {
    let mut files: SortedMap<String, SortedMap<String, SideFile>> = SortedMap::new();
    for (run, side) in runs.iter().enumerate() {
        for (function, known) in side.functions.iter().enumerate() {
            let Some(path) = known.object.as_ref().filter(|_| !side.executed[function].is_empty()) else {
                continue;
            };
            let of_module = files.entry(side.tree.functions[function].module.clone()).or_default();
            let file =
                of_module.entry(path.clone()).or_insert(SideFile { run, function, is_stripped: false });
            file.is_stripped |= side.is_stripped(function);
        }
    }
    files
}

fn named(shapes: &[Vec<StrippedFunction>; 2], paths: [&String; 2]) -> [HashMap<u64, String>; 2] {
    let [first, second] = shapes;
    let pairs = FunctionPairs::of(first, second);
    let mut names = [HashMap::new(), HashMap::new()];
    for (one, other) in first.iter().zip(&pairs.of_first) {
        let other = other.map(|other| &second[other]);
        let known = one.name.clone().or_else(|| other.and_then(|other| other.name.clone()));
        let name = known.unwrap_or_else(|| label(one.begin, other.map(|other| other.begin), paths[0]));
        if let Some(other) = other {
            names[1].insert(other.begin, name.clone());
        }
        names[0].insert(one.begin, name);
    }
    for (one, _) in second.iter().zip(&pairs.of_second).filter(|(_, other)| other.is_none()) {
        let name = one.name.clone().unwrap_or_else(|| label_of_second(one.begin, paths[1]));
        names[1].insert(one.begin, name);
    }
    names
}

/// Which function of one file is which of the other.
struct FunctionPairs<'a> {
    first: &'a [StrippedFunction],
    second: &'a [StrippedFunction],
    of_first: Vec<Option<usize>>,
    of_second: Vec<Option<usize>>,
}

impl<'a> FunctionPairs<'a> {
    /// Both lists are in the order of addresses.
    fn of(first: &'a [StrippedFunction], second: &'a [StrippedFunction]) -> FunctionPairs<'a> {
        let (of_first, of_second) = (vec![None; first.len()], vec![None; second.len()]);
        let mut pairs = FunctionPairs { first, second, of_first, of_second };
        pairs.by(|shape| shape.name.as_deref());
        pairs.by(|shape| Some(shape.code.as_slice()).filter(|code| code.len() >= SHORT));
        loop {
            while pairs.by_targets() {}
            if !pairs.by_place() {
                return pairs;
            }
        }
    }

    fn join(&mut self, one: usize, other: usize) -> bool {
        let is_free = self.of_first[one].is_none() && self.of_second[other].is_none();
        if is_free {
            self.of_first[one] = Some(other);
            self.of_second[other] = Some(one);
        }
        is_free
    }

    /// Pairs functions by a value that exactly one function in each file has.
    fn by<K: std::hash::Hash + Eq>(&mut self, key: impl Fn(&'a StrippedFunction) -> Option<K>) {
        let unique = |shapes: &'a [StrippedFunction]| {
            let mut found: HashMap<K, Option<usize>> = HashMap::new();
            for (at, shape) in shapes.iter().enumerate() {
                if let Some(key) = key(shape) {
                    found.entry(key).and_modify(|one| *one = None).or_insert(Some(at));
                }
            }
            found
        };
        let (one, other) = (unique(self.first), unique(self.second));
        for (key, at) in one {
            if let (Some(at), Some(Some(other))) = (at, other.get(&key)) {
                self.join(at, *other);
            }
        }
    }

    /// Joins the functions to which joined functions refer: at the same instructions if the code is equal, and in the
    /// same order if the code changed but refers to equally many functions. Returns whether there were any.
    fn by_targets(&mut self) -> bool {
        let places = |shapes: &[StrippedFunction]| {
            shapes.iter().enumerate().map(|(at, one)| (one.begin, at)).collect::<HashMap<u64, usize>>()
        };
        let places = [places(self.first), places(self.second)];
        let mut votes = [SortedMap::new(), SortedMap::new()];
        for (one, other) in self.first.iter().zip(&self.of_first) {
            let Some(other) = other.map(|other| &self.second[other]) else { continue };
            let is_equal = one.code == other.code;
            let [old, new] = [(one, &places[0]), (other, &places[1])].map(|(shape, places)| {
                let known = |(at, target): &(usize, u64)| Some((*at, *places.get(target)?));
                shape.targets.iter().filter_map(known).collect::<Vec<(usize, usize)>>()
            });
            let both = || old.iter().zip(&new);
            let fits = |((_, target), (_, now)): (&(usize, usize), &(usize, usize))| {
                self.of_first[*target].is_none_or(|joined| joined == *now)
                    && self.of_second[*now].is_none_or(|joined| joined == *target)
            };
            if old.len() != new.len() || !is_equal && !both().all(fits) {
                continue;
            }
            for ((at, target), (place, now)) in both() {
                if !is_equal || at == place {
                    votes[0].entry(*target).or_insert_with(BTreeSet::new).insert(*now);
                    votes[1].entry(*now).or_insert_with(BTreeSet::new).insert(*target);
                }
            }
        }
        let mut any = false;
        for (target, candidates) in &votes[0] {
            if let (1, Some(now)) = (candidates.len(), candidates.first())
                && votes[1][now].len() == 1
            {
                any |= self.join(*target, *now);
            }
        }
        any
    }

    /// Joins functions between the same joined neighbours, in the same order, whose code is alike. Returns whether
    /// there were any.
    fn by_place(&mut self) -> bool {
        let joined: Vec<(usize, usize)> =
            self.of_first.iter().enumerate().filter_map(|(one, other)| Some((one, (*other)?))).collect();
        let mut borders = in_order(&joined);
        borders.push((self.first.len(), self.second.len()));
        let mut from = (0, 0);
        let mut found = Vec::new();
        for (one, other) in borders {
            let left: Vec<usize> = (from.0..one).filter(|at| self.of_first[*at].is_none()).collect();
            let right: Vec<usize> = (from.1..other).filter(|at| self.of_second[*at].is_none()).collect();
            found.extend(self.aligned(&left, &right));
            from = (one + 1, other + 1);
        }
        found.into_iter().fold(false, |any, (one, other)| self.join(one, other) || any)
    }

    /// The alignment of two lists with the largest sum of similarities.
    fn aligned(&self, left: &[usize], right: &[usize]) -> Vec<(usize, usize)> {
        if left.is_empty() || right.is_empty() || left.len() * right.len() > MOST {
            return Vec::new();
        }
        let least = if (left.len(), right.len()) == (1, 1) { ALIKE_ALONE } else { ALIKE };
        let like = |x: usize, y: usize| {
            let like = likeness(&self.first[left[x]].code, &self.second[right[y]].code);
            if like >= least { like } else { 0.0 }
        };
        // best[x][y] is the largest sum for what remains of both lists from x and from y on.
        let mut best = vec![vec![0.0_f64; right.len() + 1]; left.len() + 1];
        let mut likes = vec![vec![0.0; right.len()]; left.len()];
        for x in (0..left.len()).rev() {
            for y in (0..right.len()).rev() {
                likes[x][y] = like(x, y);
                best[x][y] = best[x + 1][y].max(best[x][y + 1]).max(likes[x][y] + best[x + 1][y + 1]);
            }
        }
        let (mut x, mut y, mut pairs) = (0, 0, Vec::new());
        while x < left.len() && y < right.len() {
            if likes[x][y] > 0.0 && best[x][y] <= likes[x][y] + best[x + 1][y + 1] {
                pairs.push((left[x], right[y]));
                (x, y) = (x + 1, y + 1);
            } else if best[x][y] <= best[x + 1][y] {
                x += 1;
            } else {
                y += 1;
            }
        }
        pairs
    }
}

/// The longest part of these pairs in which both numbers increase; the first ones do already.
fn in_order(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::new();
    for (at, (_, other)) in pairs.iter().enumerate() {
        let place = ends.partition_point(|end| pairs[*end].1 < *other);
        before.push(place.checked_sub(1).map(|place| ends[place]));
        if place == ends.len() {
            ends.push(at);
        } else {
            ends[place] = at;
        }
    }
    let mut kept: Vec<(usize, usize)> =
        std::iter::successors(ends.last().copied(), |at| before[*at]).map(|at| pairs[at]).collect();
    kept.reverse();
    kept
}

/// The share of instructions that two functions have in common (Dice coefficient of multisets).
fn likeness(one: &[u32], other: &[u32]) -> f64 {
    let sorted = |code: &[u32]| {
        let mut code = code.to_vec();
        code.sort_unstable();
        code
    };
    let (one, other) = (sorted(one), sorted(other));
    let (mut x, mut y, mut shared) = (0, 0, 0);
    while x < one.len() && y < other.len() {
        match one[x].cmp(&other[y]) {
            std::cmp::Ordering::Less => x += 1,
            std::cmp::Ordering::Greater => y += 1,
            std::cmp::Ordering::Equal => (x, y, shared) = (x + 1, y + 1, shared + 1),
        }
    }
    2.0 * f64::from(shared) / (one.len() + other.len()).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(begin: u64, code: &[u32], targets: &[(usize, u64)]) -> StrippedFunction {
        StrippedFunction { begin, name: None, code: code.to_vec(), targets: targets.to_vec() }
    }

    fn numbers(from: u32, count: u32) -> Vec<u32> {
        (from..from + count).collect()
    }

    #[test]
    fn equal_code_is_found_wherever_it_is() {
        let first = [shape(0x10, &numbers(0, 9), &[]), shape(0x20, &numbers(50, 9), &[])];
        let second = [shape(0x11, &numbers(50, 9), &[]), shape(0x33, &numbers(0, 9), &[])];
        assert_eq!(FunctionPairs::of(&first, &second).of_first, [Some(1), Some(0)]);
    }

    #[test]
    fn callees_of_equal_callers_are_matched_although_their_code_changed() {
        let callers = |one: u64, other: u64| shape(0x10, &numbers(0, 9), &[(3, one), (5, other)]);
        let first = [callers(0x20, 0x30), shape(0x20, &[1, 2], &[]), shape(0x30, &[1, 2], &[])];
        let second = [callers(0x40, 0x20), shape(0x20, &[7], &[]), shape(0x40, &[1, 2], &[])];
        assert_eq!(FunctionPairs::of(&first, &second).of_first, [Some(0), Some(2), Some(1)]);
    }

    #[test]
    fn callees_of_a_changed_caller_are_matched_by_their_order() {
        // The caller is between the same neighbours. The second function became a part of the third one.
        let caller = |code: &[u32], one: u64| shape(0x10, code, &[(0, one), (1, 0x90)]);
        let last = shape(0x90, &numbers(90, 9), &[]);
        let start = shape(0, &numbers(200, 9), &[(0, 0x10)]);
        let first = [
            start.clone(),
            caller(&[1, 2, 3, 4], 0x30),
            shape(0x20, &numbers(20, 20), &[]),
            shape(0x30, &[70, 71, 72], &[(0, 0x20)]),
            last.clone(),
        ];
        let second = [start, caller(&[5, 6, 7, 8], 0x20), shape(0x20, &numbers(20, 18), &[]), last];
        assert_eq!(FunctionPairs::of(&first, &second).of_first, [Some(0), Some(1), None, Some(2), Some(3)]);
    }

    #[test]
    fn changed_functions_keep_their_order_and_new_ones_remain_alone() {
        let changed = |from: u32| {
            let mut code = numbers(from, 9);
            code[4] = 1000;
            code
        };
        let first =
            [shape(1, &numbers(0, 9), &[]), shape(2, &numbers(20, 9), &[]), shape(3, &numbers(40, 9), &[])];
        let second = [
            shape(1, &changed(0), &[]),
            shape(5, &numbers(500, 9), &[]),
            shape(6, &changed(20), &[]),
            shape(7, &numbers(40, 9), &[]),
        ];
        let pairs = FunctionPairs::of(&first, &second);
        assert_eq!(pairs.of_first, [Some(0), Some(2), Some(3)]);
        assert_eq!(pairs.of_second[1], None);
    }

    #[test]
    fn a_function_at_the_address_of_another_is_not_mistaken_for_it() {
        let first = [shape(1, &numbers(0, 9), &[]), shape(2, &numbers(20, 9), &[])];
        let second = [shape(1, &numbers(0, 9), &[]), shape(2, &numbers(80, 9), &[])];
        assert_eq!(FunctionPairs::of(&first, &second).of_first, [Some(0), None]);
    }

    #[test]
    fn the_longest_order_is_kept() {
        assert_eq!(in_order(&[(0, 5), (1, 1), (2, 2), (3, 9), (4, 3)]), [(1, 1), (2, 2), (4, 3)]);
        assert_eq!(in_order(&[]), []);
    }
}
