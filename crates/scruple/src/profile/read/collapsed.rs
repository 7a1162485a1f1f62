//! Reads collapsed stacks. Each line contains functions separated by semicolons, with the outermost first, a space, and
//! a number.

use super::{ImportedProfile, Kind, SampleWeights, TreeBuilder};
use scruple_core::explain::OwnCost;
use std::collections::HashMap;

pub(super) fn parse(text: &str) -> Result<ImportedProfile, String> {
    let mut builder = TreeBuilder::new();
    let (mut stacks, mut of_two) = (0, 0);
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut functions: Vec<usize> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = |why: &str| format!("line {}: {why}", number + 1);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (stack, count) =
            line.trim_end().rsplit_once(' ').ok_or_else(|| wrong("a stack has no number after it"))?;
        let instructions: u64 =
            count.parse().map_err(|_| wrong(&format!("‘{}’ is not a whole number", excerpt(count))))?;
        let names = stack.split(';').map(str::trim).filter(|name| !name.is_empty());
        functions.clear();
        functions.extend(
            names.map(|name| *known.entry(name).or_insert_with(|| builder.function(name, "", false))),
        );
        builder
            .stack(&functions, OwnCost { instructions, ..OwnCost::default() })
            .map_err(|why| wrong(&why))?;
        stacks += 1;
        of_two += usize::from(stack.rsplit_once(' ').is_some_and(|(_, last)| last.parse::<u64>().is_ok()));
    }
    if stacks == 0 {
        return Err("it has no stacks".to_owned());
    }
    if of_two == stacks {
        return Err(
            "it has two numbers after each stack: it is the difference of two profiles, not a profile"
                .to_owned(),
        );
    }
    // The format does not say whether the numbers are counts or samples. They are treated as samples, because every
    // statement about samples also holds for counts.
    let kind = Kind {
        word: Some("samples".to_owned()),
        sampled: Some(SampleWeights::ONE),
        has_heap: false,
        ..Kind::counted("collapsed stacks")
    };
    Ok(ImportedProfile { title: None, kind, side: builder.done(), has_checksum: false })
}

/// The beginning of a word, so that a message stays short.
fn excerpt(word: &str) -> String {
    let begin: String = word.chars().take(40).collect();
    format!("{}{}", begin.escape_debug(), if begin.len() < word.len() { "…" } else { "" })
}
