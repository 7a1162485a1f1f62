//! Reads the output of `perf script`: for each sample a line with the program, its thread and the event, then a line for
//! each function of the stack, the innermost first, and an empty line.

use super::{ImportedProfile, Kind, SampleWeights, TreeBuilder};
use scruple_core::explain::OwnCost;
use std::collections::HashMap;

/// The kernel cuts the name of a program to this many bytes.
const LONGEST_NAME: usize = 15;

/// Whether this is such an output: the line of a sample, which ends with the name of the event, and below it that of a
/// function, with its address. Or one without stacks.
pub(super) fn is_written_by_perf(text: &str) -> bool {
    let mut lines = written_lines(text);
    let has_stack = lines.next().is_some_and(|line| !is_indented(line) && line.trim_end().ends_with(':'))
        && lines.next().is_some_and(|line| is_indented(line) && frame(line).is_some());
    has_stack || is_without_stacks(text)
}

fn written_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty())
}

/// Whether the first line is that of a sample without a stack: its function follows the event, such as
/// `app 123 5.25:  250000 cycles:u:  55d2 main+0x1a (/bin/app)`.
fn is_without_stacks(text: &str) -> bool {
    let Some(line) = written_lines(text).next().filter(|line| line.trim_end().ends_with(')')) else {
        return false;
    };
    let parts = line.match_indices(": ").map(|(at, _)| (&line[..=at], &line[at + 1..]));
    parts
        .filter_map(|(before, behind)| sample(before).zip(frame(behind)))
        .any(|((program, event), (_, file))| !program.is_empty() && !event.is_empty() && !file.is_empty())
}

pub(super) fn parse(text: &str) -> Result<ImportedProfile, String> {
    if is_without_stacks(text) {
        return Err("its samples have no stacks; `perf record -g` records them".to_owned());
    }
    let mut builder = TreeBuilder::new();
    let mut known: HashMap<(&str, &str, &str), usize> = HashMap::new();
    let mut event = None;
    // The program of the sample that is being read, and its functions so far.
    let mut open: Option<(&str, Vec<usize>)> = None;
    let mut samples = 0_u64;
    for (number, line) in text.lines().enumerate() {
        let wrong = |why: &str| format!("line {}: {why}", number + 1);
        match &mut open {
            _ if line.starts_with('#') => {}
            Some((_, stack)) if line.trim().is_empty() => {
                stack.reverse();
                let cost = OwnCost { instructions: 1, ..OwnCost::default() };
                builder.stack(stack, cost).map_err(|why| wrong(&why))?;
                samples += 1;
                open = None;
            }
            None if line.trim().is_empty() => {}
            Some((program, stack)) => {
                let (name, file) = frame(line)
                    .filter(|_| is_indented(line))
                    .ok_or_else(|| wrong("it is not the line of a function"))?;
                let function = *known.entry((program, name, file)).or_insert_with(|| {
                    let name = if name == "[unknown]" { "" } else { name };
                    builder.function(name, file, is_of(file, program))
                });
                stack.push(function);
            }
            None => {
                let (program, of_sample) =
                    sample(line).ok_or_else(|| wrong("it is not the line of a sample"))?;
                let first = *event.get_or_insert(of_sample);
                if first != of_sample {
                    return Err(wrong(&format!(
                        "it has samples of several events (‘{}’ and ‘{}’); record one of them by `perf record -e`",
                        first.escape_debug(),
                        of_sample.escape_debug()
                    )));
                }
                open = Some((program, Vec::new()));
            }
        }
    }
    if open.is_some() {
        return Err("no empty line follows its last sample: it is cut off".to_owned());
    }
    if samples == 0 {
        return Err("it has no samples".to_owned());
    }
    let kind = Kind {
        word: Some("samples".to_owned()),
        sampled: Some(SampleWeights::ONE),
        has_heap: false,
        ..Kind::counted("perf script")
    };
    Ok(ImportedProfile { title: None, kind, side: builder.done(), has_checksum: false })
}

fn is_indented(line: &str) -> bool {
    line.starts_with([' ', '\t'])
}

/// The program and the event of a line such as `app 123/124 [001] 5.25:  250000 cycles:u:`. The program's name may contain
/// spaces. The event is empty if it was not printed.
fn sample(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_end().strip_suffix(':')?;
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let last = line.rsplit(char::is_whitespace).next()?;
    let event = if is_number(last) { "" } else { last };
    let is_thread = |word: &str| word.split('/').all(is_number);
    let thread = line.split_whitespace().find(|word| is_thread(word))?;
    let (program, _) = line.split_once(&format!(" {thread}"))?;
    Some((program.trim(), event))
}

/// The function and the file of a line such as `55d2 main+0x1a (/bin/app)`.
fn frame(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let line = line.strip_suffix(" (inlined)").unwrap_or(line);
    let (address, rest) = line.split_once(char::is_whitespace)?;
    let is_address = address.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (name, file) = match rest.trim().strip_suffix(')').and_then(|rest| rest.rsplit_once('(')) {
        Some((name, file)) if name.ends_with(' ') || name.is_empty() => (name.trim(), file),
        _ => (rest.trim(), ""),
    };
    let name = match name.rsplit_once("+0x") {
        Some((name, distance)) if distance.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => name,
    };
    is_address.then_some((name, file))
}

/// Whether a file is that of the program.
fn is_of(file: &str, program: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name == program || (program.len() == LONGEST_NAME && name.starts_with(program))
}
