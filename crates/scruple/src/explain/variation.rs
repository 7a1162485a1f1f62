//! How counts vary among launches of one program, and when there are enough launches.

use super::pairing::Pairings;
use scruple_code::{Binaries, Side};
use scruple_core::explain::{CANCELLED, Count, Explanation, mean_with_spread};
use scruple_stats::sorting::SortedMap;

/// How many times as large as the variation a difference must be if two, three or four launches of each program are
/// enough. A row counts from three times its variation on. Of a million simulated rows that only vary, 30 to 47 exceed
/// a hundred times the variation of two launches (normal and exponential distribution); of 200,000, three exceed ten
/// times that of three launches, and none five times that of four.
const FAR: [u64; 3] = [100, 10, 5];

/// The share of the total of bytes by which they may vary at most if few launches are enough.
const OF_BYTES: u64 = 100;

/// The share of its instructions that a program with threads is taken to vary by, even if few launches do not show it.
/// Chance decides, for instance, whether a thread finds a lock taken, or whether Go's runtime starts one more thread and
/// some maps then have other seeds: the count has one of a few values, and two launches of each program may agree while
/// the programs differ.
const OF_THREADS: u64 = 2000;

/// The part of a row's spread that its mean difference must exceed in few launches if it can exceed the whole spread in
/// more: with further launches, the largest deviation *d* does not become smaller. If the mean of all pairs exceeds *3
/// d*, then each pair, which is at most *d* away from that mean, exceeds *2 d*, and so does the mean of the first
/// pairs.
const HOPE: f64 = 2.0 / 3.0;

/// What the launches of one program counted in one function.
#[derive(Clone, Copy, Default, PartialEq)]
struct FunctionCounts {
    instructions: u64,
    calls: u64,
    bytes: u64,
    at_peak: u64,
    at_end: u64,
}

/// Whether all runs gave the same counts for every function.
pub fn repeats(runs: &[Side]) -> bool {
    let Some((first, rest)) = runs.split_first().filter(|(_, rest)| !rest.is_empty()) else { return true };
    let first = by_function(first);
    rest.iter().all(|run| by_function(run) == first)
}

/// Whether there are enough launches of both programs: the most that are wanted, or fewer if their counts repeat, vary
/// by much less than the programs differ ([`FAR`]), or vary so much that no further launch can tell a difference. Bytes
/// may also vary by a part of them all, because programs that differ in their instructions often allocate the same. The total
/// of instructions varied at least by `of_totals`.
pub fn are_enough(sides: &[Vec<Side>; 2], most: usize, of_totals: u64) -> bool {
    let runs = sides[0].len().min(sides[1].len());
    if runs >= most || runs < 2 {
        return runs >= most;
    }
    let far = FAR[(runs - 2).min(FAR.len() - 1)];
    let counts = sides.each_ref().map(|runs| runs.iter().map(by_function).collect::<Vec<_>>());
    let mut instructions = Variation::of(&counts, |counts| counts.instructions);
    instructions.range = instructions.range.max(of_totals);
    if sides.iter().flatten().any(Side::has_threads) {
        instructions.range = instructions.range.max(instructions.whole / OF_THREADS);
    }
    let of_bytes: [fn(&FunctionCounts) -> u64; 3] =
        [|counts| counts.bytes, |counts| counts.at_peak, |counts| counts.at_end];
    let is_clear = instructions.range.saturating_mul(far) <= instructions.difference
        && of_bytes.into_iter().all(|of| {
            let bytes = Variation::of(&counts, of);
            bytes.range.saturating_mul(far) <= bytes.difference.max(bytes.whole / OF_BYTES)
        });
    is_clear || nothing_can_exceed_its_spread(sides, of_totals)
}

/// Whether one launch of each program is enough, although the total of another one differed by `of_totals`: the programs
/// differ by much more than any function can vary.
pub fn one_is_enough([first, second]: [&Side; 2], of_totals: u64) -> bool {
    let difference = first.tree.total(Count::Instructions).abs_diff(second.tree.total(Count::Instructions));
    let far = CANCELLED * FAR[0] as f64;
    !first.has_threads() && !second.has_threads() && of_totals as f64 * far <= difference as f64
}

/// Whether neither the total nor any row of a function can differ by more than its spread, however many runs follow.
fn nothing_can_exceed_its_spread(sides: &[Vec<Side>; 2], of_totals: u64) -> bool {
    let has_hope = |difference: f64, spread: f64| difference.abs() > HOPE * spread;
    // Functions need not be matched to see how the totals differ.
    let of_all = whole(sides, of_totals);
    if of_all.is_some_and(|whole| has_hope(whole.delta(), whole.spread)) {
        return false;
    }
    let binaries = Binaries::new();
    let pairings = Pairings::of(sides.each_ref().map(Vec::as_slice), Some(of_totals), &binaries);
    let none_has_hope = |counts: &[Count]| {
        pairings.explained(counts).iter().all(|explained| {
            !has_hope(explained.delta(), explained.spread)
                && !explained.rows.iter().any(|row| has_hope(row.delta, row.spread))
        })
    };
    let mut others = vec![Count::Allocations, Count::Bytes, Count::AtPeak, Count::AtEnd];
    others.retain(|count| sides.iter().flatten().any(|side| side.tree.total(*count) > 0));
    none_has_hope(&[Count::Instructions]) && none_has_hope(&others)
}

/// The difference of all instructions, and what it varies by, without functions.
fn whole([first, second]: &[Vec<Side>; 2], of_totals: u64) -> Option<Explanation> {
    let pair = |(one, other): (&Side, &Side)| {
        let totals = [one, other].map(|side| side.tree.total(Count::Instructions) as f64);
        Explanation { count: Count::Instructions, totals: totals.into(), spread: 0.0, rows: Vec::new() }
    };
    let between = first.iter().zip(second).map(pair).collect();
    let successive = [first, second].into_iter().flat_map(|runs| runs.iter().zip(runs.iter().skip(1)));
    mean_with_spread(between, &successive.map(pair).collect::<Vec<_>>(), of_totals as f64)
}

type RunCounts = SortedMap<(String, String), FunctionCounts>;

fn by_function(side: &Side) -> RunCounts {
    let mut of_functions = vec![FunctionCounts::default(); side.tree.functions.len()];
    for context in &side.tree.contexts {
        of_functions[context.function].add(&FunctionCounts {
            instructions: context.cost.instructions,
            calls: context.calls + context.recursive,
            bytes: context.cost.bytes,
            at_peak: context.cost.at_peak,
            at_end: context.cost.at_end,
        });
    }
    let mut sums = RunCounts::new();
    let named = side.tree.functions.iter().zip(&of_functions);
    for (function, counts) in named.filter(|(_, counts)| **counts != FunctionCounts::default()) {
        sums.entry((function.module.clone(), function.name.clone())).or_default().add(counts);
    }
    sums
}

impl FunctionCounts {
    fn add(&mut self, more: &FunctionCounts) {
        self.instructions += more.instructions;
        self.calls += more.calls;
        self.bytes += more.bytes;
        self.at_peak += more.at_peak;
        self.at_end += more.at_end;
    }
}

/// How one count varies.
struct Variation {
    /// The sum of the functions' ranges, over both programs.
    range: u64,
    /// The difference of the programs' means.
    difference: u64,
    /// The mean of the second program.
    whole: u64,
}

impl Variation {
    fn of(sides: &[Vec<RunCounts>; 2], count: impl Fn(&FunctionCounts) -> u64) -> Variation {
        let total = |run: &RunCounts| run.values().map(&count).sum::<u64>();
        let means = sides.each_ref().map(|runs| runs.iter().map(total).sum::<u64>() / runs.len() as u64);
        let range = sides.iter().map(|runs| range(runs, &count)).sum();
        Variation { range, difference: means[0].abs_diff(means[1]), whole: means[1] }
    }
}

/// By how much a count of the launches of one program varies: the sum of the functions' ranges.
fn range(runs: &[RunCounts], count: impl Fn(&FunctionCounts) -> u64) -> u64 {
    let mut ranges: SortedMap<&(String, String), (u64, u64, usize)> = SortedMap::new();
    for (function, counts) in runs.iter().flatten() {
        let value = count(counts);
        let (least, most, seen) = ranges.entry(function).or_insert((value, value, 0));
        (*least, *most, *seen) = ((*least).min(value), (*most).max(value), *seen + 1);
    }
    let width = |(least, most, seen): &(u64, u64, usize)| most - if *seen < runs.len() { 0 } else { *least };
    ranges.values().map(width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_code::ProfileFunction;
    use scruple_core::explain::{Context, Function, OwnCost};

    /// A launch of a program with one function, which executes this many instructions.
    fn launch(name: &str, instructions: u64) -> Side {
        let mut side = Side::default();
        let root = side.add_function(ProfileFunction::default(), Function::default());
        let own = ProfileFunction { name: Some(name.to_owned()), ..ProfileFunction::default() };
        let function = side.add_function(own, Function { name: name.to_owned(), ..Function::default() });
        side.tree.contexts.push(Context { function: root, calls: 1, ..Context::default() });
        let cost = OwnCost { instructions, ..OwnCost::default() };
        side.tree.contexts.push(Context { parent: Some(0), function, calls: 1, cost, ..Context::default() });
        side
    }

    #[test]
    fn two_launches_with_threads_that_repeat_do_not_show_that_they_always_do() {
        let launches = |name, each: [u64; 2]| each.map(|each| vec![launch(name, each), launch(name, each)]);
        let (near, far) = ([1_000_000, 1_000_300], [1_000_000, 1_100_000]);
        assert!(are_enough(&launches("work", near), 5, 0));
        for starts_threads in ["runtime.sysmon", "pthread_create@@GLIBC_2.34"] {
            assert!(!are_enough(&launches(starts_threads, near), 5, 0));
            assert!(are_enough(&launches(starts_threads, far), 5, 0));
        }
    }

    #[test]
    fn all_counts_of_a_single_launch_may_vary_if_its_total_does() {
        let mut sides = [1_000_000, 2_000_000].map(|each| vec![launch("work", each)]);
        sides[1][0].tree.contexts[1].cost.allocations = 50;
        let binaries = Binaries::new();
        let varies = |variation| {
            let pairings = Pairings::of([&sides[0], &sides[1]], variation, &binaries);
            pairings.explained(&[Count::Allocations])[0].rows[0].is_within_spread()
        };
        assert_eq!([varies(None), varies(Some(1))], [false, true]);
    }

    #[test]
    fn a_total_that_differed_in_another_launch_is_variation() {
        let launches = [1_000_000, 1_000_300].map(|each| vec![launch("work", each), launch("work", each)]);
        assert!(are_enough(&launches, 5, 3));
        assert!(!are_enough(&launches, 5, 30));
    }
}
