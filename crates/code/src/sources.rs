//! Instructions by source function and line, with inlined functions listed separately.

use super::machine_code::symbols::{SourceFrame, Symbols};
use super::profile::{InstructionRun, Profile, Profiles};
use scruple_stats::sorting;
use std::collections::HashMap;

/// Instructions of one source function or line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceAmount {
    /// The function, and for lines also the file and the line. If the function is not known, the name is the file and
    /// the address of the code.
    pub frame: SourceFrame,
    /// Whether the function or line is known.
    pub is_known: bool,
    /// The number of instructions.
    pub instructions: u64,
}

/// Instructions by source function and by source line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceCosts {
    /// Instructions by function, the largest number first. Inlined code counts for the function that was inlined.
    pub functions: Vec<SourceAmount>,
    /// Instructions by line, the largest number first; only code with line numbers.
    pub lines: Vec<SourceAmount>,
    /// The number of instructions in code without line numbers.
    pub without_lines: u64,
}

impl Profile {
    /// Resolves every executed instruction of the process.
    pub fn source_costs(&self, symbols: &mut Symbols) -> SourceCosts {
        SourceCosts::of(&self.runs, symbols)
    }
}

impl Profiles {
    /// Resolves every executed instruction of all processes.
    pub fn source_costs(&self, symbols: &mut Symbols) -> SourceCosts {
        SourceCosts::of(self.processes.iter().flat_map(|profile| &profile.runs), symbols)
    }
}

impl SourceCosts {
    fn of<'a>(runs: impl IntoIterator<Item = &'a InstructionRun>, symbols: &mut Symbols) -> SourceCosts {
        let mut functions: HashMap<(SourceFrame, bool), u64> = HashMap::new();
        let mut lines: HashMap<SourceFrame, u64> = HashMap::new();
        let mut without_lines = 0;
        for run in runs {
            let mut address = run.offset;
            for length in &run.lengths {
                let location = symbols.locate(run.object.as_deref(), address);
                let innermost = location.frames.first().cloned().unwrap_or_default();
                match innermost.line {
                    Some(_) => *lines.entry(innermost.clone()).or_default() += run.count,
                    None => without_lines += run.count,
                }
                let is_known = innermost.name.is_some();
                let name = if is_known {
                    innermost.name
                } else {
                    // One row for each run of instructions, not for each instruction.
                    Some(symbols.locate(run.object.as_deref(), run.offset).place)
                };
                let frame = SourceFrame { name, file: innermost.file, line: None };
                *functions.entry((frame, is_known)).or_default() += run.count;
                address += u64::from(*length);
            }
        }
        let functions = functions.into_iter();
        let functions =
            functions.map(|((frame, is_known), instructions)| SourceAmount { frame, is_known, instructions });
        let lines = lines.into_iter();
        let lines = lines.map(|(frame, instructions)| SourceAmount { frame, is_known: true, instructions });
        SourceCosts { functions: sorted(functions), lines: sorted(lines), without_lines }
    }
}

fn sorted(amounts: impl Iterator<Item = SourceAmount>) -> Vec<SourceAmount> {
    let mut amounts: Vec<SourceAmount> = amounts.collect();
    let key =
        |amount: &SourceAmount| (amount.frame.name.clone(), amount.frame.file.clone(), amount.frame.line);
    sorting::by(&mut amounts, |a, b| b.instructions.cmp(&a.instructions).then_with(|| key(a).cmp(&key(b))));
    amounts
}
