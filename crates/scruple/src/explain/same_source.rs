//! Functions whose code changed though their source did not: compilers and flags decide about code as well.

use scruple_core::explain::FunctionDifference;
use scruple_measure::calltree::{Side, Symbols, as_built};
use std::collections::BTreeSet;
use std::path::Path;

/// What must be known of a row whose code changed, if all files that its code is from are the same in both, as far as
/// they are on the disk as they were when the programs were built.
pub fn remark(row: &FunctionDifference, sides: [&Side; 2]) -> Option<String> {
    if row.same_code != Some(false) || row.only_in.is_some() {
        return None;
    }
    let first = texts(sides[0], &row.functions.0)?;
    let second = texts(sides[1], &row.functions.1)?;
    (first == second).then(|| {
        format!(
            "the source of {} is the same in both: another compiler or other flags, or something that is defined elsewhere",
            row.name
        )
    })
}

/// The texts of the files that the executed code of functions is from; none where one of them is not known.
fn texts(side: &Side, functions: &[usize]) -> Option<BTreeSet<String>> {
    let mut symbols = Symbols::new();
    let mut files: BTreeSet<(&str, String)> = BTreeSet::new();
    for function in functions {
        let known = &side.functions[*function];
        let program = known.object.as_deref()?;
        for distance in side.executed[*function].keys() {
            let location = symbols.locate(Some(program), known.offset.saturating_add(*distance));
            files.extend(location.frames.into_iter().filter_map(|frame| Some((program, frame.file?))));
        }
    }
    // Of the language's own library there is no source here, and the compiler brings it.
    let of_compiler = |path: &str| path.starts_with("/rustc/") || path.starts_with("/usr/");
    files.retain(|(_, path)| !of_compiler(path));
    let texts: Option<BTreeSet<String>> =
        files.iter().map(|(program, path)| as_built(Path::new(program), Path::new(path))).collect();
    texts.filter(|texts| !texts.is_empty())
}
