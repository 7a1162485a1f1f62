//! Matches the functions of one profile with those of another.

use super::collector::is_collector;
use super::{CodeComparison, PROGRAM, Tree, group, nameless};
use scruple_stats::sorting::{self, SortedMap};
use std::collections::{BTreeSet, HashMap};

/// A function that the first profile, the second one, or both have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The file that contains the function.
    pub module: String,
    /// The normalised name of the function; the names of all, joined by ‘or’, if they are merged.
    pub name: String,
    /// The functions of the first tree with this key; several where their names differ only in parts that are ignored.
    pub first: Vec<usize>,
    /// The functions of the second tree with this key.
    pub second: Vec<usize>,
    /// The name in the second tree, where it differs from that in the first.
    pub renamed: Option<String>,
    /// The names of the functions that are merged, because a function of one tree has the names of several functions of
    /// the other one, as text; empty if there are none.
    pub merged: String,
    /// Whether the function belongs to a library; see [`super::Function`].
    pub library: bool,
    /// Whether the function is a trampoline; see [`super::Function`].
    pub trampoline: bool,
    /// Whether the function is a collector; see [`is_collector`].
    pub collector: bool,
}

impl Key {
    /// Returns the name, with the file if one of these functions has the same name in another file: a library may bring a
    /// function that one program calls in place of another one.
    pub fn name_among<'a>(&self, mut others: impl Iterator<Item = &'a Key>) -> String {
        let is_namesake = |other: &Key| other.name == self.name && other.module != self.module;
        match (self.name.as_str(), self.module.as_str()) {
            ("", module) => nameless(module),
            (name, PROGRAM) => name.to_owned(),
            (name, module) if others.any(is_namesake) => format!("{name} [{module}]"),
            (name, _) => name.to_owned(),
        }
    }
}

/// The functions of two trees under common keys.
#[derive(Clone, Debug, Default)]
pub struct Matched {
    /// All keys.
    pub keys: Vec<Key>,
    /// The key of each function of the first tree.
    pub of_first: Vec<usize>,
    /// The key of each function of the second tree.
    pub of_second: Vec<usize>,
}

/// The largest number of functions of each side that are searched for under another name: those that cost most.
const MOST: usize = 200;

/// The smallest combined similarity of a pair that counts as one renamed function; [`ALIKE_CODE`] is that of its code
/// alone.
const ALIKE: f64 = 0.6;
const ALIKE_CODE: f64 = 0.5;

impl Matched {
    /// Matches functions in three steps: by file and names, where a file may be in another folder or have another name;
    /// by the name without template arguments; and, if they are in one file or have one name, by the similarity of
    /// code, callers, calls and name.
    pub fn of(first: &Tree, second: &Tree, code: &CodeComparison<'_>) -> Matched {
        let mut matched = Matched::by_name(first, second);
        let mut pairs = matched.by_group(code);
        pairs.extend(matched.by_likeness(first, second, code, &pairs));
        matched.merge_keys(&pairs);
        matched
    }

    fn by_name(first: &Tree, second: &Tree) -> Matched {
        let mut matched = Matched::default();
        let mut known: HashMap<(String, Vec<String>), usize> = HashMap::new();
        let moved = moved_modules(first, second);
        for (side, tree) in [first, second].into_iter().enumerate() {
            for (index, function) in tree.functions.iter().enumerate() {
                let earlier =
                    |name: &str| moved.get(name).filter(|_| side == 1).map(|name| (*name).to_owned());
                let module = earlier(&function.module).unwrap_or_else(|| function.module.clone());
                // A process has the name of its program's file.
                let process = earlier(&function.name).filter(|_| function.module.is_empty());
                let name = process.unwrap_or_else(|| function.name.clone());
                let names = sorting::distinct(function.names().skip(1).chain([&name]).cloned());
                let key = *known.entry((module.clone(), names)).or_insert_with(|| {
                    matched.keys.push(Key {
                        collector: is_collector(&module, &name),
                        module,
                        name,
                        library: function.library,
                        trampoline: function.trampoline,
                        ..Key::default()
                    });
                    matched.keys.len() - 1
                });
                let (functions, keys) = match side {
                    0 => (&mut matched.keys[key].first, &mut matched.of_first),
                    _ => (&mut matched.keys[key].second, &mut matched.of_second),
                };
                functions.push(index);
                keys.push(key);
            }
        }
        let names = known.into_iter().map(|((_, names), key)| (key, names)).collect();
        matched.merge_by_alias([first, second], &names);
        matched
    }

    /// Merges keys that share a name, if one of them is in one tree only and one of their functions has several names.
    /// In the other tree, these may be the names of separate functions, and it is not known which of them a call meant.
    /// `names` are the names of each key.
    fn merge_by_alias(&mut self, trees: [&Tree; 2], names: &HashMap<usize, Vec<String>>) {
        let is_in_one = |key: &Key| key.first.is_empty() != key.second.is_empty();
        let mut by_name: SortedMap<(&str, &str), Vec<usize>> = SortedMap::new();
        for (at, key) in self.keys.iter().enumerate() {
            for name in names[&at].iter().filter(|name| !name.is_empty()) {
                by_name.entry((&key.module, name)).or_default().push(at);
            }
        }
        let mut merged_into: Vec<usize> = (0..self.keys.len()).collect();
        let root = |merged_into: &[usize], mut at: usize| {
            while merged_into[at] != at {
                at = merged_into[at];
            }
            at
        };
        for sharing in by_name.into_values() {
            let any = |is: &dyn Fn(&Key) -> bool| sharing.iter().any(|at| is(&self.keys[*at]));
            let in_both = any(&|key| !key.first.is_empty()) && any(&|key| !key.second.is_empty());
            if in_both && any(&is_in_one) && sharing.iter().any(|at| names[at].len() > 1) {
                let roots = sorting::distinct(sharing.iter().map(|at| root(&merged_into, *at)));
                roots.iter().for_each(|at| merged_into[*at] = roots[0]);
            }
        }
        for at in (0..self.keys.len()).rev().filter(|at| merged_into[*at] != *at).collect::<Vec<_>>() {
            let into = root(&merged_into, at);
            let Key { first, second, .. } = std::mem::take(&mut self.keys[at]);
            first.iter().for_each(|function| self.of_first[*function] = into);
            second.iter().for_each(|function| self.of_second[*function] = into);
            self.keys[into].first.extend(first);
            self.keys[into].second.extend(second);
        }
        let merged = (0..self.keys.len()).filter(|at| merged_into[*at] != *at);
        for at in sorting::distinct(merged.map(|at| root(&merged_into, at))) {
            self.keys[at].name_merged(trees);
        }
    }

    /// The keys that only the first tree has, and those that only the second tree has.
    fn unmatched(&self) -> (Vec<usize>, Vec<usize>) {
        let named = (0..self.keys.len()).filter(|key| !self.keys[*key].name.is_empty());
        let unmatched =
            named.filter(|key| self.keys[*key].first.is_empty() != self.keys[*key].second.is_empty());
        unmatched.partition(|key| self.keys[*key].second.is_empty())
    }

    /// Pairs of unmatched keys, each of which is the only one of its template in its tree.
    fn by_group(&self, code: &CodeComparison<'_>) -> Vec<(usize, usize)> {
        let mut groups: SortedMap<(&str, String), [Vec<usize>; 2]> = SortedMap::new();
        let (old, new) = self.unmatched();
        for (side, keys) in [old, new].into_iter().enumerate() {
            for key in keys {
                let one = &self.keys[key];
                groups.entry((&one.module, group(&one.name))).or_default()[side].push(key);
            }
        }
        groups
            .into_values()
            .filter_map(|both| match both.each_ref().map(Vec::as_slice) {
                [[old], [new]] => (!self.are_two(*old, *new, code)).then_some((*old, *new)),
                _ => None,
            })
            .collect()
    }

    /// Whether a key that only the first tree has and one that only the second has are known to be two functions.
    fn are_two(&self, old: usize, new: usize, code: &CodeComparison<'_>) -> bool {
        (code.are_two)(self.keys[old].first[0], self.keys[new].second[0])
    }

    fn by_likeness(
        &self,
        first: &Tree,
        second: &Tree,
        code: &CodeComparison<'_>,
        paired: &[(usize, usize)],
    ) -> Vec<(usize, usize)> {
        let (old, new) = self.unmatched();
        if old.is_empty() || new.is_empty() {
            return Vec::new();
        }
        let taken: BTreeSet<usize> = sorting::set(paired.iter().flat_map(|(old, new)| [*old, *new]));
        let facts = [
            KeyFacts::of(first, &self.of_first, self.keys.len(), &old),
            KeyFacts::of(second, &self.of_second, self.keys.len(), &new),
        ];
        let worth = |keys: Vec<usize>, facts: &KeyFacts| {
            let cost = |key: &usize| facts.own[*key];
            let mut keys: Vec<usize> =
                keys.into_iter().filter(|key| !taken.contains(key) && cost(key) > 0.0).collect();
            sorting::by(&mut keys, |a, b| cost(b).total_cmp(&cost(a)));
            keys.truncate(MOST);
            keys
        };
        let (old, new) = (worth(old, &facts[0]), worth(new, &facts[1]));
        let mut scored = Vec::new();
        for a in &old {
            let [name, module] = [&self.keys[*a].name, &self.keys[*a].module];
            // A function with the same name may be in another file: in a library instead of the program.
            let moves = !STARTUP.contains(&name.as_str());
            let is_like = |key: &Key| key.module == *module || moves && key.name == *name;
            for b in new.iter().filter(|b| is_like(&self.keys[**b])) {
                let like = (code.likeness)(self.keys[*a].first[0], self.keys[*b].second[0]);
                // The file of each has its own name.
                let are_two = self.keys[*b].name != *name && self.are_two(*a, *b, code);
                if like < ALIKE_CODE || are_two {
                    continue;
                }
                let callers = common(facts[0].callers.get(a), facts[1].callers.get(b));
                let calls = [facts[0].calls[*a], facts[1].calls[*b]];
                let calls = calls[0].min(calls[1]) / calls[0].max(calls[1]).max(1.0);
                let name = likeness_of_names(name, &self.keys[*b].name);
                let score = 0.5 * like + 0.2 * callers + 0.15 * calls + 0.15 * name;
                if score >= ALIKE {
                    scored.push((score, *a, *b));
                }
            }
        }
        sorting::by(&mut scored, |x, y| y.0.total_cmp(&x.0).then((x.1, x.2).cmp(&(y.1, y.2))));
        let mut used = BTreeSet::new();
        let free = |(_, a, b): &(f64, usize, usize)| {
            let free = !used.contains(a) && !used.contains(b);
            if free {
                used.extend([*a, *b]);
            }
            free
        };
        scored.into_iter().filter(free).map(|(_, a, b)| (a, b)).collect()
    }

    /// Merges both keys of each pair into the first one.
    fn merge_keys(&mut self, pairs: &[(usize, usize)]) {
        for (old, new) in pairs {
            let second = std::mem::take(&mut self.keys[*new].second);
            for function in &second {
                self.of_second[*function] = *old;
            }
            let name = self.keys[*new].name.clone();
            self.keys[*old].second = second;
            self.keys[*old].renamed = Some(name).filter(|name| *name != self.keys[*old].name);
        }
    }
}

/// The largest number of names that the name of merged functions contains.
const NAMES: usize = 3;

/// Joins several names by ‘or’; one name is no alternative, and gives an empty text.
fn alternatives(names: &[String]) -> String {
    match names.split_last() {
        Some((last, others)) if !others.is_empty() && names.len() <= NAMES => {
            format!("{} or {last}", others.join(", "))
        }
        _ if names.len() > NAMES => {
            let shown = NAMES - 1;
            format!("{} or {} others", names[..shown].join(", "), names.len() - shown)
        }
        _ => String::new(),
    }
}

impl Key {
    /// Returns the names that one function has in both trees, as text; empty unless there are several. The key has only
    /// one of them.
    pub fn names_in_both(&self, [first, second]: [&Tree; 2]) -> String {
        let ([one], [other]) = (self.first.as_slice(), self.second.as_slice()) else { return String::new() };
        let theirs: BTreeSet<&String> = sorting::set(second.functions[*other].names());
        let shared = first.functions[*one].names().filter(|name| theirs.contains(name));
        alternatives(&sorting::distinct(shared.cloned()))
    }

    /// Names a key that was merged of several.
    fn name_merged(&mut self, [first, second]: [&Tree; 2]) {
        self.first.sort_unstable();
        self.second.sort_unstable();
        let name = |(tree, function): (&Tree, &usize)| tree.functions[*function].name.clone();
        let of_first = self.first.iter().map(|function| name((first, function)));
        let of_second: Vec<String> = self.second.iter().map(|function| name((second, function))).collect();
        if let ([one], [other]) = (self.first.as_slice(), self.second.as_slice()) {
            let is_known = first.functions[*one].names().any(|name| *name == second.functions[*other].name);
            self.renamed = of_second.into_iter().next().filter(|_| !is_known);
            return;
        }
        let names = sorting::distinct(of_first.chain(of_second));
        self.merged = alternatives(&names);
        self.name = match sorting::distinct(names.iter().map(|name| group(name))).as_slice() {
            [one] if names.len() > 1 => one.clone(),
            [_] => names[0].clone(),
            _ => self.merged.clone(),
        };
    }
}

/// Functions that compilers and linkers add to every program.
const STARTUP: [&str; 8] = [
    "_start",
    "_init",
    "_fini",
    "main",
    "frame_dummy",
    "register_tm_clones",
    "deregister_tm_clones",
    "__do_global_dtors_aux",
];

/// Two files with other names are versions of one if they share at least this share of the functions of the smaller one.
const SHARED: f64 = 0.5;

/// The files of the second tree that have another name than in the first, or are in another folder: each with its name in
/// the first tree. Of several with the same file name, those whose paths end alike belong together. Files with different
/// names belong together if most of their functions have the same names.
fn moved_modules<'a>(first: &'a Tree, second: &'a Tree) -> SortedMap<&'a str, &'a str> {
    let [old, new] = [first, second]
        .map(|tree| sorting::set(tree.functions.iter().map(|function| function.module.as_str())));
    let only = |one: &BTreeSet<&'a str>, other: &BTreeSet<&'a str>| -> Vec<&'a str> {
        one.difference(other).copied().collect()
    };
    let (gone, come) = (only(&old, &new), only(&new, &old));
    let nearest = |path: &str, among: &[&'a str]| -> Option<&'a str> {
        let best = among.iter().map(|other| common_end(path, other)).max().filter(|parts| *parts > 0)?;
        let mut all = among.iter().filter(|other| common_end(path, other) == best);
        all.next().copied().filter(|_| all.next().is_none())
    };
    let pair = |path: &&'a str| {
        let earlier = nearest(path, &gone)?;
        (nearest(earlier, &come)? == *path).then_some((*path, earlier))
    };
    let mut moved: SortedMap<&str, &str> = SortedMap::from_iter(come.iter().filter_map(pair));
    let known = sorting::set(moved.iter().flat_map(|(later, earlier)| [*later, *earlier]));
    let unknown = |modules: &[&'a str]| -> Vec<&'a str> {
        modules.iter().copied().filter(|module| !known.contains(module)).collect()
    };
    moved.extend(renamed_modules((first, &unknown(&gone)), (second, &unknown(&come))));
    moved
}

/// Returns pairs of a file of the second tree and a file of the first one if most of their functions have the same names,
/// those with the most such functions first.
fn renamed_modules<'a>(
    (first, gone): (&'a Tree, &[&'a str]),
    (second, come): (&'a Tree, &[&'a str]),
) -> Vec<(&'a str, &'a str)> {
    let of_new = names_by_module(second, come);
    let own = |name: &&&str| !STARTUP.contains(*name);
    let mut scored = Vec::new();
    for (earlier, old) in &names_by_module(first, gone) {
        for (later, new) in &of_new {
            let shared = old.intersection(new).filter(own).count();
            let fewest = old.iter().filter(own).count().min(new.iter().filter(own).count());
            let share = shared as f64 / fewest.max(1) as f64;
            if old.contains("main") && old == new || shared > 1 && share >= SHARED {
                scored.push((shared, *earlier, *later));
            }
        }
    }
    sorting::by(&mut scored, |a, b| b.0.cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut taken = BTreeSet::new();
    let mut pairs = Vec::new();
    for (_, earlier, later) in scored {
        if !taken.contains(earlier) && !taken.contains(later) {
            taken.extend([earlier, later]);
            pairs.push((later, earlier));
        }
    }
    pairs
}

/// Returns the names of the functions of each of these files.
fn names_by_module<'a>(tree: &'a Tree, modules: &[&'a str]) -> SortedMap<&'a str, BTreeSet<&'a str>> {
    let mut names: SortedMap<&str, BTreeSet<&str>> =
        modules.iter().map(|module| (*module, BTreeSet::new())).collect();
    for function in tree.functions.iter().filter(|function| !function.name.is_empty()) {
        if let Some(of_module) = names.get_mut(function.module.as_str()) {
            of_module.insert(&function.name);
        }
    }
    names
}

/// The number of parts with which both paths end.
fn common_end(one: &str, other: &str) -> usize {
    one.rsplit(['/', ' ']).zip(other.rsplit(['/', ' '])).take_while(|(a, b)| a == b).count()
}

/// What one tree says of its keys.
struct KeyFacts {
    /// The own cost of each key.
    own: Vec<f64>,
    /// The calls of each key.
    calls: Vec<f64>,
    /// The callers of the keys that are searched for in the other tree.
    callers: HashMap<usize, BTreeSet<usize>>,
}

impl KeyFacts {
    fn of(tree: &Tree, key_of: &[usize], keys: usize, searched: &[usize]) -> KeyFacts {
        let mut facts = KeyFacts { own: vec![0.0; keys], calls: vec![0.0; keys], callers: HashMap::new() };
        facts.callers.extend(searched.iter().map(|key| (*key, BTreeSet::new())));
        let mut is_searched = vec![false; keys];
        searched.iter().for_each(|key| is_searched[*key] = true);
        for context in &tree.contexts {
            let key = key_of[context.function];
            facts.own[key] += context.cost.instructions as f64;
            facts.calls[key] += (context.calls + context.recursive) as f64;
            if let Some(parent) = context.parent.filter(|_| is_searched[key]) {
                facts.callers.entry(key).or_default().insert(key_of[tree.contexts[parent].function]);
            }
        }
        for edge in tree.edges.iter().filter(|edge| is_searched[key_of[edge.callee]]) {
            facts.callers.entry(key_of[edge.callee]).or_default().insert(key_of[edge.caller]);
        }
        facts
    }
}

/// The similarity of two sets: the share of their elements that both contain (Jaccard).
fn common(a: Option<&BTreeSet<usize>>, b: Option<&BTreeSet<usize>>) -> f64 {
    let (Some(a), Some(b)) = (a, b) else { return 0.0 };
    a.intersection(b).count() as f64 / a.union(b).count().max(1) as f64
}

/// The similarity of two names: the share of pairs of adjacent letters that both contain (Dice).
fn likeness_of_names(a: &str, b: &str) -> f64 {
    let pairs = |text: &str| {
        let mut counts: SortedMap<(u8, u8), u32> = SortedMap::new();
        text.as_bytes().windows(2).for_each(|two| *counts.entry((two[0], two[1])).or_default() += 1);
        counts
    };
    let (first, second) = (pairs(a), pairs(b));
    let shared: u32 = first.iter().map(|(two, n)| second.get(two).copied().unwrap_or(0).min(*n)).sum();
    let all: u32 = first.values().chain(second.values()).sum();
    2.0 * f64::from(shared) / f64::from(all.max(1))
}

#[cfg(test)]
mod tests;
