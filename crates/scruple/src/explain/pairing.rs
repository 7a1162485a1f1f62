//! Pairs of launches. Their functions are matched only once, for all questions about the pair.

use super::causes::OtherCauses;
use scruple_code::{Binaries, Side};
use scruple_core::explain::{self, CodeComparison, Count, Explanation, Matched, PROGRAM};

/// Two launches, and which of their functions are the same.
pub struct Pairing<'a> {
    sides: [&'a Side; 2],
    binaries: &'a Binaries,
    matched: Matched,
}

/// The program that has one function with several names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FoldedBy {
    /// The first program. The second one has several functions, which are compared as one.
    First,
    /// The second program. The first one has several functions, which are compared as one.
    Second,
    /// Both programs.
    Both,
}

/// A function with several names.
pub struct FoldedFunction {
    /// The name by which rows show it.
    pub name: String,
    /// All its names, as text.
    pub names: String,
    /// The program in which they are names of one function.
    pub by: FoldedBy,
}

/// The pairs of launches of two programs, and the pairs of launches of the same program.
pub struct Pairings<'a> {
    /// The pairs of a launch of the first program and one of the second; there is at least one.
    between: Vec<Pairing<'a>>,
    /// The pairs of launches of the same program, if its counts vary.
    within: Vec<Pairing<'a>>,
    /// The smallest possible variation of the total of instructions.
    variation: u64,
}

/// The share of all instructions from which the code of a function matters. It excludes the code that compilers add at
/// the start of a program, which is always the same.
const COSTS: f64 = 1e-4;

impl<'a> Pairing<'a> {
    /// Matches the functions of two launches.
    pub fn of(first: &'a Side, second: &'a Side, binaries: &'a Binaries) -> Pairing<'a> {
        let matched =
            with_code([first, second], binaries, |code| Matched::of(&first.tree, &second.tree, code));
        for key in matched.keys.iter().filter(|key| key.renamed.is_some()) {
            binaries.note_renamed((first, &key.first), (second, &key.second));
        }
        Pairing { sides: [first, second], binaries, matched }
    }

    /// Returns the functions of the program that have several names in one program or in both.
    pub fn folded(&self) -> impl Iterator<Item = FoldedFunction> {
        let trees = self.sides.map(|side| &side.tree);
        self.matched.keys.iter().filter_map(move |key| {
            let (names, by) = match () {
                () if !key.merged.is_empty() && key.first.len() < key.second.len() => {
                    (key.merged.clone(), FoldedBy::First)
                }
                () if !key.merged.is_empty() => (key.merged.clone(), FoldedBy::Second),
                // Functions of libraries have many names, which only their authors know.
                () if key.module == PROGRAM && !key.library => (key.names_in_both(trees), FoldedBy::Both),
                () => return None,
            };
            (!names.is_empty()).then(|| FoldedFunction { name: key.name.clone(), names, by })
        })
    }

    /// Whether a function of the first launch has the code of a function of the second one, which may have another name;
    /// absent where that is unknown.
    pub fn same_code(&self, in_first: &str, in_second: &str) -> Option<bool> {
        let named = |name: &str| self.matched.keys.iter().find(|key| key.name == name);
        let (first, second) = (&named(in_first)?.first, &named(in_second)?.second);
        self.with_code(|code| (code.same)(first, second))
    }

    /// Explains where the difference of each of these counts comes from.
    fn explained(&self, counts: &[Count]) -> Vec<Explanation> {
        let [first, second] = self.sides.map(|side| &side.tree);
        self.with_code(|code| explain::explain(first, second, &self.matched, code, counts))
    }

    /// Returns the possible causes other than the code of functions that show a difference.
    pub fn other_causes(&self) -> OtherCauses {
        let [first, second] = self.sides;
        self.with_code(|code| OtherCauses::between(first, second, &self.matched, self.binaries, code))
    }

    /// Returns how many functions of the program itself differ, and how many could be compared.
    pub fn changed(&self) -> (usize, usize) {
        let costs = [0, 1].map(|which| {
            let side = self.sides[which];
            let keys = if which == 0 { &self.matched.of_first } else { &self.matched.of_second };
            let mut own = vec![0_u64; self.matched.keys.len()];
            for context in &side.tree.contexts {
                own[keys[context.function]] += context.cost.instructions;
            }
            let least = side.tree.total(Count::Instructions) as f64 * COSTS;
            own.into_iter().map(|own| own as f64 > least).collect::<Vec<bool>>()
        });
        // In Haskell, the optimiser decides which procedures exist. C functions in the program belong to the runtime.
        let of_haskell = self.sides.iter().all(|side| side.is_haskell());
        // A function without a symbol is not found in the other program if all of its code differs.
        let is_stripped = |key: &explain::Key| {
            [&key.first, &key.second]
                .into_iter()
                .zip(self.sides)
                .any(|(functions, side)| functions.iter().any(|function| side.is_stripped(*function)))
        };
        self.with_code(|code| {
            let of_program = self.matched.keys.iter().enumerate().filter(|(at, key)| {
                // The library of the language was compiled separately, with other flags.
                let own = key.module == "program" && !key.library && !key.name.is_empty();
                own && (costs[0][*at] || of_haskell && costs[1][*at])
                    && (!of_haskell || key.name.contains('.'))
            });
            let same = |(_, key): (usize, &explain::Key)| match key.first.is_empty() || key.second.is_empty()
            {
                true if of_haskell || is_stripped(key) => {
                    Some((code.same)(&key.first, &key.second) == Some(true))
                }
                true => None,
                false => (code.same)(&key.first, &key.second),
            };
            let compared: Vec<bool> = of_program.filter_map(same).collect();
            (compared.iter().filter(|same| !**same).count(), compared.len())
        })
    }

    fn with_code<T>(&self, then: impl FnOnce(&CodeComparison<'_>) -> T) -> T {
        with_code(self.sides, self.binaries, then)
    }
}

fn with_code<T>(
    [first, second]: [&Side; 2],
    binaries: &Binaries,
    then: impl FnOnce(&CodeComparison<'_>) -> T,
) -> T {
    let same = |a: &[usize], b: &[usize]| binaries.same((first, a), (second, b));
    let likeness = |a: usize, b: usize| binaries.likeness((first, a), (second, b));
    let are_two = |a: usize, b: usize| binaries.are_two((first, a), (second, b));
    then(&CodeComparison { same: &same, likeness: &likeness, are_two: &are_two })
}

impl<'a> Pairings<'a> {
    /// Pairs the launches of both programs. If all counts repeat (`variation` is `None`), a single pair suffices; otherwise
    /// the total of instructions is known to vary at least by `variation`.
    pub fn of(runs: [&'a [Side]; 2], variation: Option<u64>, binaries: &'a Binaries) -> Pairings<'a> {
        let repeats = variation.is_none();
        let [first, second] = runs;
        let pairs = first.iter().zip(second).take(if repeats { 1 } else { usize::MAX });
        let between = pairs.map(|(first, second)| Pairing::of(first, second, binaries)).collect();
        let successive = runs.into_iter().filter(|_| !repeats).flat_map(|runs| runs.windows(2));
        let within = successive.map(|two| Pairing::of(&two[0], &two[1], binaries)).collect();
        Pairings { between, within, variation: variation.unwrap_or(0) }
    }

    /// Returns the pair of the first launches.
    pub fn first(&self) -> &Pairing<'a> {
        &self.between[0]
    }

    /// Explains where the difference of each of these counts comes from, using all pairs.
    pub fn explained(&self, counts: &[Count]) -> Vec<Explanation> {
        let of = |pairings: &[Pairing]| -> Vec<_> {
            pairings.iter().map(|one| one.explained(counts).into_iter()).collect()
        };
        let mut all = [of(&self.between), of(&self.within)];
        let explained = |count: &Count| {
            let next = |pairings: &mut Vec<std::vec::IntoIter<Explanation>>| -> Vec<Explanation> {
                pairings.iter_mut().filter_map(Iterator::next).collect()
            };
            let [mut between, within] = all.each_mut().map(next);
            // If there is only one launch of each, the variation of other counts is not known.
            let is_known = *count != Count::Instructions && !within.is_empty();
            let variation = if is_known { 0 } else { self.variation };
            match between.len() {
                1 if within.is_empty() && variation == 0 => between.pop(),
                _ => explain::mean_with_spread(between, &within, variation as f64),
            }
        };
        counts.iter().filter_map(explained).collect()
    }
}
