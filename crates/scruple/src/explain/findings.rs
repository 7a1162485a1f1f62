//! Draws conclusions from the runs of both sides: an explanation of each count, and how certain it is.

use super::causes::OtherCauses;
use super::code_view::{CodeView, Sources};
use super::counted_runs::{Gathered, repeats};
use super::hunks::Hunk;
use super::interpreters;
use super::pairing::Pairings;
use super::same_source;
use crate::profile::read::Kind;
use scruple_core::explain::{Count, Explanation, FunctionDifference, PartKind};
use scruple_core::stats::paired::{self, Effect};
use scruple_measure::calltree::{Binaries, Side, SourceText};

/// The conclusions about two programs.
pub struct Findings {
    /// The names of the two sides.
    pub names: [String; 2],
    /// The explanation of each count: instructions first, then allocations and bytes if they differ.
    pub explanations: Vec<Explanation>,
    /// Whether all counts of both sides repeated.
    pub repeats: bool,
    /// Whether of the second run of each side only the total was counted.
    pub totals_repeat: bool,
    /// The number of runs of each side, or the smaller one if they differ.
    pub runs: usize,
    /// The meaning of the counts, and their origin.
    pub kind: Kind,
    /// The number of functions of the program itself whose code differs, and the number that could be compared.
    pub changed: (usize, usize),
    /// The other possible causes, for the case that the code of the first row is the same.
    pub other_causes: OtherCauses,
    /// The share of the instructions that is in code without a name, for each side.
    pub nameless: [f64; 2],
    /// The processor times of both sides, if they were measured.
    pub time: Option<Time>,
    /// The source changes in the functions of the rows, by the index of the row.
    pub hunks: Vec<(usize, Hunk)>,
    /// The source changes in the functions of the rows for allocations and bytes, by the name of the function.
    pub hunks_of_allocations: Vec<(String, Hunk)>,
    /// The detailed view of the first row, if the user requested it.
    pub code: Option<CodeView>,
    /// Sentences that the user should read.
    pub remarks: Vec<String>,
    /// The conclusions about functions of the script, where the interpreter could count these.
    pub script: Option<Box<Findings>>,
}

/// The processor times of both sides.
pub struct Time {
    /// The median of each side, in nanoseconds.
    pub medians: (f64, f64),
    /// The ratio of the times with its interval, if there were enough launches.
    pub effect: Option<Effect>,
}

/// The share of all instructions by which the cost of equal code may differ, because paths and environments have
/// different lengths.
const OF_NAMES: f64 = 1e-5;

/// The share of code without names from which nothing can be concluded.
const NAMELESS: f64 = 0.5;

/// The share of code without names from which the user is told how code gets names.
const UNNAMED: f64 = 0.05;

/// The level of the interval of time.
const LEVEL: f64 = 0.95;

impl Findings {
    /// Explains the measurements. `sources` return the texts of source files as each side was built from them.
    pub fn of(names: [String; 2], gathered: &Gathered, sources: [&SourceText<'_>; 2]) -> Findings {
        let [first, second] = &gathered.sides;
        let binaries = Binaries::new();
        let repeat = repeats(first) && repeats(second);
        let pairings = Pairings::of([first, second], repeat, &binaries);
        let kind = gathered.kind.clone();
        let script = gathered.script.as_deref();
        let remarks = remarks(&first[0], &second[0], script.is_some());
        let explain = |count| {
            let mut explanation = pairings.explained(count);
            if kind.is_sampled {
                by_chance(&mut explanation);
            }
            explanation
        };
        let mut explanations: Vec<Explanation> =
            kind.word.iter().map(|_| explain(Count::Instructions)).collect();
        for count in [Count::Allocations, Count::Bytes] {
            let differs = |(a, b): (&Side, &Side)| a.tree.total(count) != b.tree.total(count);
            if explanations.is_empty() || first.iter().zip(second).any(differs) {
                explanations.push(explain(count));
            }
        }
        let mut found = Findings {
            names: names.clone(),
            explanations,
            repeats: repeat,
            totals_repeat: gathered.totals_repeat,
            runs: first.len().min(second.len()) + usize::from(gathered.totals_repeat),
            kind,
            changed: pairings.first().changed(),
            other_causes: pairings.first().other_causes(),
            nameless: [&first[0], &second[0]].map(Side::nameless),
            time: time(&gathered.times),
            hunks: Vec::new(),
            hunks_of_allocations: Vec::new(),
            code: None,
            remarks: gathered.remarks.iter().cloned().chain(remarks).collect(),
            script: script.map(|script| Box::new(Findings::of(names, script, sources))),
        };
        let row = found.telling(found.main()).next();
        let same = row.and_then(|row| same_source::remark(row, [&first[0], &second[0]], sources));
        found.remarks.extend(same);
        found
    }

    /// Adds the detailed view of the first row.
    pub fn look_closer(&mut self, gathered: &Gathered, sources: &Sources<'_>) {
        let [first, second] = &gathered.sides;
        let row = self.telling(self.main()).next();
        self.code = row.map(|row| CodeView::of(row, [&first[0], &second[0]], sources));
    }

    /// Returns the name of what a count counts.
    pub fn word(&self, count: Count) -> &str {
        match (count, &self.kind.word) {
            (Count::Instructions, Some(word)) => word,
            _ => count.word(),
        }
    }

    /// Returns the explanation of the first count: instructions, if they were counted.
    pub fn main(&self) -> &Explanation {
        &self.explanations[0]
    }

    /// Returns the rows that are shown: those above the variation between runs and above a thousandth of all
    /// differences. There are none if most of the executed code has no name, because any row would be a guess.
    pub fn telling<'a>(&self, explanation: &'a Explanation) -> impl Iterator<Item = &'a FunctionDifference> {
        let least = (explanation.gross() / 1000.0).max(0.5);
        let of_names = explanation.totals.0.max(explanation.totals.1) * OF_NAMES;
        let guesses = self.is_nameless();
        explanation.rows.iter().filter(move |row| {
            let delta = row.delta.abs();
            let of_names = row.same_code == Some(true) && delta < of_names;
            delta >= least && !of_names && !row.is_within_spread() && !guesses
        })
    }

    /// Whether most of the executed code has no name.
    pub fn is_nameless(&self) -> bool {
        self.nameless.iter().any(|share| *share >= NAMELESS)
    }
}

/// Returns the remarks that a reader of either profile needs.
fn remarks(first: &Side, second: &Side, script: bool) -> Vec<String> {
    let mut all: Vec<String> =
        [first, second].into_iter().find_map(|side| interpreters::remark(side, script)).into_iter().collect();
    if first.is_haskell() || second.is_haskell() {
        all.push(
            "procedures of Haskell jump to each other: instructions of each are exact; a caller is known only where it is \
             the only one and jumps directly"
                .to_owned(),
        );
    }
    if [first, second].iter().any(|side| side.local_functions() >= UNNAMED) {
        all.push(
            "GHC gives no symbols to local functions: programs that are compiled with -g1, whose sources are there, have \
             names for them"
                .to_owned(),
        );
    }
    if first.cut + second.cut > 0 {
        all.push(
            "there are more calling contexts than are told apart: what is called in those left out counts for its callers"
                .to_owned(),
        );
    }
    all
}

/// The number of standard deviations by which a difference of samples must exceed zero. It is large because there are
/// many rows.
const DEVIATIONS: f64 = 4.0;

/// Takes the randomness of samples into account: the variance of a function's number of samples equals its mean
/// (Poisson distribution).
fn by_chance(explanation: &mut Explanation) {
    for row in &mut explanation.rows {
        let come_or_gone =
            row.parts.iter().filter(|part| matches!(part.kind, PartKind::New | PartKind::Gone));
        let samples = (row.own.0 + row.own.1) as f64 + come_or_gone.map(|part| part.delta.abs()).sum::<f64>();
        row.spread = row.spread.max(DEVIATIONS * samples.sqrt());
    }
    explanation.spread = DEVIATIONS * (explanation.totals.0 + explanation.totals.1).sqrt();
    explanation.rank();
}

fn time(times: &[Vec<f64>; 2]) -> Option<Time> {
    let [first, second] = times;
    if first.is_empty() || first.len() != second.len() {
        return None;
    }
    let median = scruple_core::stats::quantile::median;
    let effect = paired::effect(first, second, LEVEL).ok();
    Some(Time { medians: (median(first), median(second)), effect })
}
