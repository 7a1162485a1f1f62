//! Explains a difference between two programs by function, the most likely origin first.

use super::decompose::{DifferencePiece, PieceKind, decompose};
use super::keyed_tree::{Inside, KeyedTree};
use super::matching::{Key, Matched};
use super::merged::MergedTrees;
use super::{CodeComparison, Count, Tree, by_edges, group};
use crate::number_map::NumberMap;
use scruple_stats::sorting::{self, SortedMap};
use serde::Serialize;

/// A function with changed code is listed first if its difference is at least this share of the sum of absolute
/// differences.
pub(super) const SHARE: f64 = 0.05;

/// An explanation of why two programs differ in a count.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The count that is explained.
    pub count: Count,
    /// The total cost of the first and of the second program.
    pub totals: (f64, f64),
    /// The size up to which the difference of the totals may be variation from launch to launch; 0 where the programs
    /// repeat.
    pub spread: f64,
    /// The functions in which the difference originates, the most likely first. Their differences add up to the whole.
    pub rows: Vec<FunctionDifference>,
}

/// A function, and the part of the difference that originates in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionDifference {
    /// The file that contains the function.
    #[serde(rename = "file")]
    pub module: String,
    /// The name of the function; empty where it has none.
    #[serde(rename = "function")]
    pub name: String,
    /// The name in the second program, where it differs from that in the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed: Option<String>,
    /// The additional cost of the second program that originates in the function; negative where it costs less.
    #[serde(rename = "difference")]
    pub delta: f64,
    /// Whether the function has the same machine code in both programs; absent where that cannot be compared.
    #[serde(skip)]
    pub same_code: Option<bool>,
    /// The only program that has the function; absent where both have it.
    #[serde(skip)]
    pub only_in: Option<ComparedProgram>,
    /// Whether the function is a collector of garbage that no allocating function calls.
    #[serde(skip)]
    pub is_collector: bool,
    /// The number of calls of the function in each program.
    pub calls: (u64, u64),
    /// The function's own cost in each program.
    pub own: (u64, u64),
    /// The parts of the difference, the largest first.
    pub parts: Vec<DifferencePart>,
    /// The size up to which the difference may be variation from launch to launch; 0 where the programs repeat.
    pub spread: f64,
    /// The functions of the first and of the second tree that the row stands for, the largest first. There are none if
    /// the row comes from other launches than the first.
    #[serde(skip)]
    pub functions: (Vec<usize>, Vec<usize>),
}

/// One of the two programs that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedProgram {
    /// The first program.
    First,
    /// The second program.
    Second,
}

/// A part of the difference of a function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DifferencePart {
    /// The kind of the part.
    pub kind: PartKind,
    /// The function in which the part appears, where that is another than the function of the row. Its code is the same
    /// in both programs, so its callers must have caused the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The function that is called, with its file if the row has another of this name; absent for own code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callee: Option<String>,
    /// What is no longer called, or absent for own code, if the part is a replacement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
    /// The number of calls of `callee` by the function, in each program. For own code, it is the number of calls of the
    /// function itself. If no caller of the function is known, it is the number of all its calls.
    pub calls: (u64, u64),
    /// The number of calls of the function that calls `callee`, in each program.
    #[serde(skip)]
    pub calls_of_site: (u64, u64),
    /// The size of the part; negative where the second program costs less.
    #[serde(rename = "difference")]
    pub delta: f64,
}

/// What a part of the difference of a function consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PartKind {
    /// The function's own code costs more or less per call.
    Own,
    /// The function calls another more or less often per call of its own.
    Calls,
    /// The function calls another that it did not call before.
    New,
    /// The function no longer calls another.
    Gone,
    /// The function calls another one instead of a third, or its own code replaced calls, or calls replaced its own
    /// code. Only [`FunctionDifference::reported`] contains such parts.
    Replaced,
}

/// Rows have shares of the difference if the sum of their absolute differences is at most this many times as large.
const LEFT: f64 = 10.0;

impl Explanation {
    /// The sum of the absolute differences of all rows.
    pub fn gross(&self) -> f64 {
        self.rows.iter().map(|row| row.delta.abs()).sum()
    }

    /// The additional cost of the second program; negative where it costs less.
    pub fn delta(&self) -> f64 {
        self.totals.1 - self.totals.0
    }

    /// Whether the difference of the totals may be variation from launch to launch.
    pub fn is_within_spread(&self) -> bool {
        self.spread > 0.0 && self.delta().abs() <= self.spread
    }

    /// A row's share of the whole difference. It is `None` if there is no difference, if the difference may be
    /// variation from launch to launch, or if it is small beside the increases and decreases that cancel out.
    pub fn share_of(&self, row: &FunctionDifference) -> Option<f64> {
        let delta = self.delta();
        let is_whole = delta.round() != 0.0 && self.gross() <= LEFT * delta.abs();
        (is_whole && !self.is_within_spread()).then(|| row.delta / delta)
    }

    /// Returns how much the functions that are a consequence of others differ together.
    pub fn consequences(&self) -> f64 {
        self.rows.iter().filter(|row| row.is_consequence()).map(|row| row.delta).sum()
    }

    /// Returns the explanation without rows that are a consequence of others.
    pub fn without_consequences(&self) -> Explanation {
        let rows = self.rows.iter().filter(|row| !row.is_consequence()).cloned().collect();
        Explanation { totals: (self.totals.0, self.totals.1 - self.consequences()), rows, ..*self }
    }
}

/// Two parts are reported as a replacement if their sum is at most this share of the smaller one. They are also
/// reported so if they are the only new call and the only removed one of a call site, and there are as many of both.
const REPLACED: f64 = 0.5;

impl FunctionDifference {
    /// Returns the parts as they are reported, the largest first. A removed call and the call that replaced it are one
    /// part, whose size is the sum of both. So are more calls of a function and what is cheaper within that function, or
    /// fewer calls and what is dearer.
    pub fn reported(&self) -> Vec<DifferencePart> {
        let mut rest = with_callees(&self.parts);
        let mut parts = Vec::new();
        let is_only = |part: &DifferencePart| {
            self.parts.iter().filter(|other| other.kind == part.kind && other.site == part.site).count() == 1
        };
        while !rest.is_empty() {
            let part = rest.remove(0);
            let sum = |other: &DifferencePart| (part.delta + other.delta).abs();
            let is_match = |other: &DifferencePart| {
                let kinds = [part.kind, other.kind];
                let is_replacement = kinds != [PartKind::Own; 2]
                    && kinds.iter().all(|kind| !matches!(kind, PartKind::Calls | PartKind::Replaced));
                let (new, gone) = if part.delta > 0.0 { (&part, other) } else { (other, &part) };
                let are_as_many = [new.kind, gone.kind] == [PartKind::New, PartKind::Gone]
                    && new.calls.1 == gone.calls.0
                    && gone.calls.0 > 0
                    && is_only(new)
                    && is_only(gone);
                is_replacement
                    && part.site == other.site
                    && part.delta * other.delta < 0.0
                    && (are_as_many || sum(other) <= REPLACED * part.delta.abs().min(other.delta.abs()))
            };
            let best = rest
                .iter()
                .enumerate()
                .filter(|(_, other)| is_match(other))
                .min_by(|(_, one), (_, other)| sum(one).total_cmp(&sum(other)));
            parts.push(match best.map(|(place, _)| place) {
                None => part,
                Some(place) => {
                    let other = rest.remove(place);
                    if part.delta > 0.0 { replaced(part, other) } else { replaced(other, part) }
                }
            });
        }
        sorting::by(&mut parts, |a, b| b.delta.abs().total_cmp(&a.delta.abs()));
        parts
    }

    /// Whether the difference may be variation from launch to launch.
    pub fn is_within_spread(&self) -> bool {
        self.spread > 0.0 && self.delta.abs() <= self.spread
    }

    /// Whether the difference follows from what the program allocates and keeps in use: it is the work of a collector
    /// whose code is not known to differ.
    pub fn is_consequence(&self) -> bool {
        self.is_collector && self.same_code != Some(false)
    }
}

/// Adds the part within a called function to the part of its calls if the two mostly cancel out: the additional calls
/// then cost less or more than the mean of all calls. A call cannot cost less than nothing. So if there are more calls
/// and the sum is negative, or fewer calls and the sum is positive, the other calls differ as well, and the two parts
/// stay separate.
fn with_callees(parts: &[DifferencePart]) -> Vec<DifferencePart> {
    let within = |callee: &Option<String>| -> f64 {
        let inside = parts.iter().filter(|part| part.site.is_some() && part.site == *callee);
        inside.map(|part| part.delta).sum()
    };
    let is_joined = |part: &DifferencePart| {
        let inside = within(&part.callee);
        part.kind == PartKind::Calls
            && part.site.is_none()
            && part.delta * inside < 0.0
            && inside.abs() <= part.delta.abs()
            && (part.delta + inside).abs() <= REPLACED * inside.abs()
    };
    let joined: Vec<&DifferencePart> = parts.iter().filter(|part| is_joined(part)).collect();
    let is_left =
        |part: &&DifferencePart| part.site.is_none() || !joined.iter().any(|calls| calls.callee == part.site);
    let with_callee = |part: &DifferencePart| match joined.iter().any(|calls| std::ptr::eq(*calls, part)) {
        true => DifferencePart { delta: part.delta + within(&part.callee), ..part.clone() },
        false => part.clone(),
    };
    let mut all: Vec<DifferencePart> = parts.iter().filter(is_left).map(with_callee).collect();
    sorting::by(&mut all, |a, b| b.delta.abs().total_cmp(&a.delta.abs()));
    all
}

/// Joins a part that the second program has with the part that it replaces.
fn replaced(new: DifferencePart, old: DifferencePart) -> DifferencePart {
    DifferencePart {
        kind: PartKind::Replaced,
        site: new.site,
        callee: new.callee,
        instead_of: old.callee,
        calls: (old.calls.0, new.calls.1),
        calls_of_site: new.calls_of_site,
        delta: new.delta + old.delta,
    }
}

/// The calls and the own cost of one key, in each program.
#[derive(Clone, Copy, Default)]
struct KeySums {
    calls: (u64, u64),
    own: (u64, u64),
}

/// Explains why the second program costs more or less than the first, for each of these counts.
pub fn explain(
    first: &Tree,
    second: &Tree,
    matched: &Matched,
    code: &CodeComparison<'_>,
    counts: &[Count],
) -> Vec<Explanation> {
    let keys = &matched.keys;
    let trees = [(first, &matched.of_first), (second, &matched.of_second)]
        .map(|(tree, of_tree)| KeyedTree::of(tree, of_tree, keys));
    let inside = Inside::of(&trees);
    let compared = |key: usize| (code.same)(&keys[key].first, &keys[key].second);
    let changed = |key: &usize| {
        let in_both = !keys[*key].first.is_empty() && !keys[*key].second.is_empty();
        in_both && compared(*key) == Some(false)
    };
    let mut known: NumberMap<usize, Option<bool>> = NumberMap::default();
    let mut same = |key: usize| {
        *known.entry(key).or_insert_with(|| match compared(key) {
            Some(true) if inside.parts(key).any(changed) => Some(false),
            same => same,
        })
    };
    let has_contexts = first.edges.is_empty() || second.edges.is_empty();
    let mut merged = has_contexts.then(|| MergedTrees::of(&trees));
    let calls = calls_by_caller(&trees);
    let mut explanation = |count: &Count| {
        let pieces = match &mut merged {
            Some(merged) => decompose(merged.nodes(*count), keys, *count, &mut same),
            None => {
                let keys_of = trees.each_ref().map(|one| one.keys);
                by_edges::decompose([first, second], keys_of, keys, *count, &mut same)
            }
        };
        let sums = sums(&trees, keys.len(), *count);
        let mut grouped: SortedMap<(&str, String), Vec<DifferencePiece>> = SortedMap::new();
        for piece in pieces {
            let owner = &keys[piece.owner];
            grouped.entry((&owner.module, group(&owner.name))).or_default().push(piece);
        }
        let rows = grouped.into_values().map(|pieces| row(&pieces, keys, &sums, &calls));
        let totals = (first.total(*count) as f64, second.total(*count) as f64);
        let mut explanation = Explanation { count: *count, totals, spread: 0.0, rows: rows.collect() };
        explanation.rank();
        explanation
    };
    counts.iter().map(&mut explanation).collect()
}

fn sums(trees: &[KeyedTree; 2], keys: usize, count: Count) -> Vec<KeySums> {
    let mut sums = vec![KeySums::default(); keys];
    for (side, keyed) in trees.iter().enumerate() {
        for (at, context) in keyed.tree.contexts.iter().enumerate() {
            let sum = &mut sums[keyed.key(at)];
            *of_side(&mut sum.own, side) += context.cost.of(count);
            if keyed.is_called(at) {
                *of_side(&mut sum.calls, side) += context.calls + context.recursive;
            }
        }
    }
    sums
}

fn of_side(pair: &mut (u64, u64), side: usize) -> &mut u64 {
    if side == 0 { &mut pair.0 } else { &mut pair.1 }
}

/// The number of calls of one key by another, in each program, by caller and callee.
type CallsByCaller = NumberMap<(usize, usize), (u64, u64)>;

fn calls_by_caller(trees: &[KeyedTree; 2]) -> CallsByCaller {
    let mut calls = CallsByCaller::default();
    for (side, keyed) in trees.iter().enumerate() {
        let tree = keyed.tree;
        let mut add = |caller: usize, callee: usize, more: u64| {
            let sum = of_side(calls.entry((caller, callee)).or_default(), side);
            *sum = sum.saturating_add(more);
        };
        // Where there are edges, they are all calls, and contexts show some of them again.
        for (at, context) in tree.contexts.iter().enumerate().filter(|_| tree.edges.is_empty()) {
            if let Some(above) = context.parent.filter(|_| keyed.is_whole(at)) {
                add(keyed.key(above), keyed.key(at), context.calls);
            }
        }
        for (from, to, more) in tree.recursive.iter().filter(|(_, to, _)| keyed.is_whole(*to)) {
            add(keyed.key(*from), keyed.key(*to), *more);
        }
        tree.edges.iter().for_each(|edge| add(keyed.keys[edge.caller], keyed.keys[edge.callee], edge.calls));
    }
    calls
}

fn row(
    pieces: &[DifferencePiece],
    keys: &[Key],
    sums: &[KeySums],
    calls: &CallsByCaller,
) -> FunctionDifference {
    let mut by_owner: SortedMap<usize, f64> = SortedMap::new();
    pieces.iter().for_each(|piece| *by_owner.entry(piece.owner).or_default() += piece.gross);
    let mut owners: Vec<usize> = by_owner.keys().copied().collect();
    sorting::by(&mut owners, |a, b| by_owner[b].total_cmp(&by_owner[a]));
    let main = &keys[owners[0]];
    let several = owners.len() > 1;
    let add = |sum: (u64, u64), more: (u64, u64)| (sum.0 + more.0, sum.1 + more.1);
    let all =
        |of: fn(&KeySums) -> (u64, u64)| owners.iter().fold((0, 0), |sum, owner| add(sum, of(&sums[*owner])));
    // Parts with a small share do not decide whether a row counts as changed.
    let gross: f64 = pieces.iter().map(|piece| piece.gross).sum();
    let part = |code: Option<bool>| -> f64 {
        pieces.iter().filter(|piece| piece.same_code == code).map(|piece| piece.gross).sum()
    };
    let only_in = match owners.as_slice() {
        [_] if main.second.is_empty() => Some(ComparedProgram::First),
        [_] if main.first.is_empty() => Some(ComparedProgram::Second),
        _ => None,
    };
    let same_code = match () {
        // Its callers are not known, and they decide whether code of the library is executed.
        () if only_in.is_some() && main.library => Some(true),
        () if part(Some(false)) >= SHARE * gross => Some(false),
        () if part(None) >= SHARE * gross => None,
        () => Some(true),
    };
    let gather =
        |of: fn(&Key) -> &Vec<usize>| owners.iter().flat_map(|owner| of(&keys[*owner])).copied().collect();
    FunctionDifference {
        module: main.module.clone(),
        name: if several { group(&main.name) } else { main.name.clone() },
        renamed: main.renamed.clone().filter(|_| !several),
        delta: pieces.iter().map(|piece| piece.delta).sum(),
        same_code,
        only_in,
        is_collector: main.collector,
        calls: all(|sums| sums.calls),
        own: all(|sums| sums.own),
        parts: parts(pieces, keys, sums, calls, all(|sums| sums.calls)),
        spread: 0.0,
        functions: (gather(|key| &key.first), gather(|key| &key.second)),
    }
}

fn parts(
    pieces: &[DifferencePiece],
    keys: &[Key],
    sums: &[KeySums],
    calls: &CallsByCaller,
    row_calls: (u64, u64),
) -> Vec<DifferencePart> {
    let calls_of = |site: usize, callee: usize| match keys[site].trampoline {
        true => sums[callee].calls,
        // A call by the program itself has no edge.
        false => calls.get(&(site, callee)).copied().unwrap_or(sums[callee].calls),
    };
    let mut together: SortedMap<(usize, PieceKind, bool), f64> = SortedMap::new();
    for piece in pieces {
        let at_home = piece.site == piece.owner;
        let (site, what) = match piece.what {
            // The own code of all functions of a row is one part, as their calls are one number.
            PieceKind::Own if at_home => (pieces[0].owner, PieceKind::Own),
            PieceKind::Own => (piece.site, PieceKind::Own),
            PieceKind::Calls(callee) | PieceKind::New(callee) | PieceKind::Gone(callee) => {
                let what = match calls_of(piece.site, callee) {
                    (0, 0) => piece.what,
                    (0, _) => PieceKind::New(callee),
                    (_, 0) => PieceKind::Gone(callee),
                    // The call is new in a context that only one program has. In other contexts both programs make it.
                    _ => PieceKind::Calls(callee),
                };
                (piece.site, what)
            }
        };
        *together.entry((site, what, at_home)).or_default() += piece.delta;
    }
    let name = |key: usize| {
        let named = together.keys().flat_map(|(site, what, _)| [Some(*site), what.callee()]);
        keys[key].name_among(named.flatten().filter(|_| key != pieces[0].owner).map(|other| &keys[other]))
    };
    let part = |((site, what, at_home), delta): ((usize, PieceKind, bool), f64)| {
        let callee = what.callee();
        let kind = match what {
            PieceKind::Own => PartKind::Own,
            PieceKind::Calls(_) => PartKind::Calls,
            PieceKind::New(_) => PartKind::New,
            PieceKind::Gone(_) => PartKind::Gone,
        };
        DifferencePart {
            kind,
            // A trampoline is not named as a call site, since it only passes control on.
            site: (!at_home && !keys[site].trampoline).then(|| name(site)),
            callee: callee.map(name),
            instead_of: None,
            calls: match callee {
                None if at_home => row_calls,
                None => sums[site].calls,
                Some(callee) => calls_of(site, callee),
            },
            calls_of_site: sums[site].calls,
            delta,
        }
    };
    let mut parts: Vec<DifferencePart> = together.iter().map(|(id, delta)| part((*id, *delta))).collect();
    sorting::by(&mut parts, |a, b| b.delta.abs().total_cmp(&a.delta.abs()));
    parts
}
