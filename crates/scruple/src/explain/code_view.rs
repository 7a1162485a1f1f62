//! A detailed view of the first row: the source lines and machine instructions that cost more.

use super::common_subsequence;
use super::core_view::{self, AROUND, CoreLine};
use scruple_code::{Binaries, ExecutedInstruction, Side, Symbols};
use scruple_core::explain::FunctionDifference;
use scruple_stats::sorting::{self, SortedMap};
use serde::Serialize;
use std::collections::HashMap;

/// The costs of the lines and instructions of a function in both programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CodeView {
    /// The name of the function.
    pub function: String,
    /// The source lines whose cost differs, the largest difference first.
    pub lines: Vec<LineDifference>,
    /// The machine instructions that only one program has, with the instructions around them, in order.
    pub instructions: Vec<InstructionDifference>,
    /// For a Haskell function, the lines of the optimised Core that only one program has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub core: Vec<CoreLine>,
    /// The reasons why parts of the view are missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<String>,
}

/// A source line in both programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LineDifference {
    /// The name of the file, without its folder.
    pub file: String,
    /// The line number in each program; `None` if the program lacks the line or did not execute it.
    pub number: (Option<u32>, Option<u32>),
    /// The text of the line, if the source can be read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The number of executed instructions in each program. Inlined code counts for the lines of its own source.
    pub executed: (u64, u64),
}

/// A machine instruction in one or both programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstructionDifference {
    /// The mark of the instruction: a space if both programs have it, `-` if only the first has it, `+` if only the
    /// second has it.
    pub mark: char,
    /// The offset of the instruction in its function, in the second program if that has it.
    pub place: u64,
    /// The instruction in assembly language.
    pub text: String,
    /// The number of executions in each program.
    pub executed: (u64, u64),
}

/// A function that returns the text of a source file of one side, by its path.
pub type Sources<'a> = dyn Fn(usize, &str) -> Option<String> + 'a;

/// Reads a source file from the disk.
pub fn on_disk(_side: usize, path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

impl CodeView {
    /// Creates the view of this row.
    pub fn of(row: &FunctionDifference, sides: [&Side; 2], sources: &Sources<'_>) -> CodeView {
        let mut view = CodeView { function: row.name.clone(), ..CodeView::default() };
        let functions = [&row.functions.0, &row.functions.1];
        let costs: Vec<SortedMap<(String, u32), u64>> =
            (0..2).map(|side| lines_of(sides[side], functions[side])).collect();
        if costs.iter().all(SortedMap::is_empty) {
            view.lacking
                .push("no lines: the code has no debugging information or no symbols, or the program no longer exists".into());
        }
        view.lines = aligned(&costs[0], &costs[1], sources);
        let binaries = Binaries::new();
        let listing = |side: usize| -> Option<Vec<ExecutedInstruction>> {
            let Some(function) = dearest(sides[side], functions[side]) else { return Some(Vec::new()) };
            binaries.listing(sides[side], function)
        };
        match (listing(0), listing(1)) {
            (Some(first), Some(second)) => view.instructions = differing(&first, &second),
            _ => view.lacking.push(
                "no machine code: the program no longer exists, or is for another processor than x86-64"
                    .into(),
            ),
        }
        if sides.iter().any(|side| side.is_haskell()) && row.name.contains('.') {
            match core_view::of(row, sides) {
                Ok(lines) => view.core = lines,
                Err(why) => view.lacking.push(why),
            }
        }
        view
    }
}

/// Returns the cost of each source line of these functions.
fn lines_of(side: &Side, functions: &[usize]) -> SortedMap<(String, u32), u64> {
    let mut symbols = Symbols::new();
    let mut costs = SortedMap::new();
    for function in functions {
        for (_, frames, count) in symbols.executed(side, *function) {
            if let Some(frame) = frames.into_iter().next()
                && let (Some(file), Some(line)) = (frame.file, frame.line)
            {
                let sum: &mut u64 = costs.entry((file, line)).or_default();
                *sum = sum.saturating_add(count);
            }
        }
    }
    costs
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Aligns the lines of both programs, so that lines with the same text are beside each other.
fn aligned(
    first: &SortedMap<(String, u32), u64>,
    second: &SortedMap<(String, u32), u64>,
    sources: &Sources<'_>,
) -> Vec<LineDifference> {
    let mut files: SortedMap<&str, [Option<&str>; 2]> = SortedMap::new();
    for (side, costs) in [first, second].into_iter().enumerate() {
        for (path, _) in costs.keys() {
            files.entry(base(path)).or_default()[side] = Some(path);
        }
    }
    let mut lines = Vec::new();
    for (file, paths) in files {
        let text = |side: usize| paths[side].and_then(|path| sources(side, path));
        let texts = [text(0), text(1)];
        let rows: [Vec<&str>; 2] = [0, 1].map(|side| texts[side].as_deref().unwrap_or("").lines().collect());
        let known = |side: usize, line: u32| rows[side].get(line.saturating_sub(1) as usize).copied();
        // If one of the texts cannot be read, lines are matched by their numbers.
        let partner: HashMap<u32, u32> = match texts.iter().all(Option::is_some) {
            true => {
                let pairs = common_subsequence::pairs(&rows[0], &rows[1]);
                pairs.into_iter().map(|(a, b)| (b as u32 + 1, a as u32 + 1)).collect()
            }
            false => second.keys().map(|(_, line)| (*line, *line)).collect(),
        };
        let cost = |costs: &SortedMap<(String, u32), u64>, side: usize, line: u32| {
            paths[side].and_then(|path| costs.get(&(path.to_owned(), line))).copied()
        };
        let mut taken = Vec::new();
        for ((_, line), b) in second.iter().filter(|((path, _), _)| Some(path.as_str()) == paths[1]) {
            let old = partner.get(line).copied();
            let a = old.and_then(|old| cost(first, 0, old));
            taken.extend(old.filter(|_| a.is_some()));
            lines.push(LineDifference {
                file: file.to_owned(),
                number: (old.filter(|_| a.is_some()), Some(*line)),
                text: known(1, *line).unwrap_or_default().trim().to_owned(),
                executed: (a.unwrap_or(0), *b),
            });
        }
        for ((_, line), a) in first.iter().filter(|((path, _), _)| Some(path.as_str()) == paths[0]) {
            if !taken.contains(line) {
                lines.push(LineDifference {
                    file: file.to_owned(),
                    number: (Some(*line), None),
                    text: known(0, *line).unwrap_or_default().trim().to_owned(),
                    executed: (*a, 0),
                });
            }
        }
    }
    lines.retain(|line| line.executed.0 != line.executed.1);
    sorting::by_key(&mut lines, |line| {
        (std::cmp::Reverse(line.executed.0.abs_diff(line.executed.1)), line.number.1)
    });
    lines
}

/// Returns the function with the most executed instructions.
fn dearest(side: &Side, functions: &[usize]) -> Option<usize> {
    let cost = |function: &usize| {
        let contexts = side.tree.contexts.iter().filter(|context| context.function == *function);
        contexts.map(|context| context.cost.instructions).fold(0, u64::saturating_add)
    };
    functions.iter().copied().max_by_key(cost)
}

/// Returns the instructions that only one program has, with those around them. If both have the same code, returns the
/// instructions that were executed more often.
fn differing(first: &[ExecutedInstruction], second: &[ExecutedInstruction]) -> Vec<InstructionDifference> {
    let codes = |listed: &[ExecutedInstruction]| listed.iter().map(|one| one.code).collect::<Vec<u32>>();
    let pairs = common_subsequence::pairs(&codes(first), &codes(second));
    let mut all = Vec::new();
    let (mut a, mut b) = (0, 0);
    let one = |mark: char, listed: &ExecutedInstruction, executed: (u64, u64)| InstructionDifference {
        mark,
        place: listed.distance,
        text: listed.text.clone(),
        executed,
    };
    for (old, new) in pairs.into_iter().chain([(first.len(), second.len())]) {
        all.extend(first[a..old].iter().map(|listed| one('-', listed, (listed.count, 0))));
        all.extend(second[b..new].iter().map(|listed| one('+', listed, (0, listed.count))));
        if let (Some(listed), Some(other)) = (first.get(old), second.get(new)) {
            all.push(one(' ', other, (listed.count, other.count)));
        }
        (a, b) = (old + 1, new + 1);
    }
    let differs: Vec<usize> = (0..all.len()).filter(|at| all[*at].mark != ' ').collect();
    if differs.is_empty() {
        all.retain(|one| one.executed.0 != one.executed.1);
        return all;
    }
    let near = |at: &usize| differs.iter().any(|other| other.abs_diff(*at) <= AROUND);
    (0..all.len()).filter(near).map(|at| all[at].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_that_only_one_has_are_marked_and_the_rest_is_left_out() {
        let listed = |code: u32, count: u64| ExecutedInstruction {
            distance: u64::from(code),
            text: format!("op{code}"),
            code,
            count,
        };
        let first: Vec<ExecutedInstruction> = (0..20).map(|code| listed(code, 5)).collect();
        let mut second = first.clone();
        second[10] = listed(99, 7);
        let shown = differing(&first, &second);
        let marks: String = shown.iter().map(|one| one.mark).collect();
        assert_eq!(marks, "  -+  ");
        second.clone_from(&first);
        second[3].count = 9;
        let shown = differing(&first, &second);
        assert_eq!((shown.len(), shown[0].executed), (1, (5, 9)));
    }

    #[test]
    fn lines_are_known_by_their_text_where_both_sources_can_be_read() {
        let costs = |lines: &[(u32, u64)]| -> SortedMap<(String, u32), u64> {
            lines.iter().map(|(line, count)| (("/src/a.c".to_owned(), *line), *count)).collect()
        };
        let (old, new) = (costs(&[(1, 10), (2, 20)]), costs(&[(1, 10), (2, 7), (3, 30)]));
        let sources = |side: usize, _: &str| Some(["one\ntwo\n", "one\nnew\ntwo\n"][side].to_owned());
        let found = aligned(&old, &new, &sources);
        let seen: Vec<_> =
            found.iter().map(|line| (line.number, line.text.as_str(), line.executed)).collect();
        assert_eq!(seen, [((Some(2), Some(3)), "two", (20, 30)), ((None, Some(2)), "new", (0, 7))]);
        let unknown = aligned(&old, &new, &|_, _| None);
        assert_eq!(unknown[0].executed, (0, 30));
    }
}
