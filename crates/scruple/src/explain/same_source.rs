//! Recognizes functions whose code changed although their source did not, because of compilers or flags.

use scruple_core::explain::FunctionDifference;
use scruple_measure::calltree::{Side, SourceText, Symbols};
use std::collections::BTreeSet;
use std::path::Path;

/// Returns a remark on a row whose code changed, if all source files of its code are the same on both sides. `sources`
/// return the texts of source files as they were when the program of each side was built.
pub fn remark(row: &FunctionDifference, sides: [&Side; 2], sources: [&SourceText<'_>; 2]) -> Option<String> {
    if row.same_code != Some(false) || row.only_in.is_some() {
        return None;
    }
    let first = texts(sides[0], &row.functions.0, sources[0])?;
    let second = texts(sides[1], &row.functions.1, sources[1])?;
    (first == second).then(|| {
        format!(
            "the source of {} is the same in both: another compiler or other flags, or something that is defined elsewhere",
            row.name
        )
    })
}

/// Returns the texts of the source files of the executed code of functions, or `None` if one of them is not known.
fn texts(side: &Side, functions: &[usize], source: &SourceText<'_>) -> Option<BTreeSet<String>> {
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
    // The source of the language's own library is not available here; it comes with the compiler.
    let of_compiler = |path: &str| path.starts_with("/rustc/") || path.starts_with("/usr/");
    files.retain(|(_, path)| !of_compiler(path));
    let texts: Option<BTreeSet<String>> =
        files.iter().map(|(program, path)| source(Path::new(program), Path::new(path))).collect();
    texts.filter(|texts| !texts.is_empty())
}
