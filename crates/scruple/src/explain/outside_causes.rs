//! Recognises functions whose code changed for a reason outside of the program's own source: the version of a package, the
//! compiler or its flags.

use scruple_code::{Side, SourceText, Symbols};
use scruple_core::explain::FunctionDifference;
use scruple_core::harmless_text::plain;
use std::collections::BTreeSet;
use std::path::Path;

/// Why the code of a row changed, if it is not the program's own source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutsideCause {
    /// It is code of packages with other versions: the names and versions.
    Packages(String),
    /// The source files that its executed code names are the same on both sides: what they are, as a noun.
    SameSource(String),
}

impl OutsideCause {
    /// Finds such a cause for a row. `sources` return the texts of source files as they were when the program of each
    /// side was built.
    pub fn of(
        row: &FunctionDifference,
        sides: [&Side; 2],
        sources: [&SourceText<'_>; 2],
    ) -> Option<OutsideCause> {
        if row.same_code != Some(false) || row.only_in.is_some() {
            return None;
        }
        let functions = [&row.functions.0, &row.functions.1];
        let mut symbols = Symbols::new();
        let [first, second] = [0, 1].map(|side| files(sides[side], functions[side], &mut symbols));
        let (first, second) = (first?, second?);
        if let Some(packages) = other_versions(&first, &second) {
            return Some(OutsideCause::Packages(packages));
        }
        (texts(&first, sources[0])? == texts(&second, sources[1])?)
            .then(|| OutsideCause::SameSource(noun(&first)))
    }

    /// Writes a remark on the row.
    pub fn remark(&self, row: &FunctionDifference) -> String {
        let name = &row.name;
        match self {
            OutsideCause::Packages(versions) => {
                format!("{name} is code of a package whose version differs: {versions}")
            }
            OutsideCause::SameSource(files) => format!(
                "the source of {name} is the same in both, as far as it is in {files}: another compiler or other flags, or \
                 something that is defined in another file"
            ),
        }
    }
}

/// A program and the path of one of its source files.
type SourceFiles = BTreeSet<(String, String)>;

/// Returns the source files of the executed code of functions, or `None` if the file of the program is not known.
fn files(side: &Side, functions: &[usize], symbols: &mut Symbols) -> Option<SourceFiles> {
    let mut files = SourceFiles::new();
    for function in functions {
        let program = side.functions[*function].object.as_deref()?;
        let frames = symbols.executed(side, *function).flat_map(|(_, frames, _)| frames);
        files.extend(frames.filter_map(|frame| Some((program.to_owned(), frame.file?))));
    }
    // The source of the language's own library is not available here; it comes with the compiler.
    let of_compiler = |path: &str| path.starts_with("/rustc/") || path.starts_with("/usr/");
    files.retain(|(_, path)| !of_compiler(path));
    Some(files)
}

/// The files of a function's source. Compilers do not name all: not those of macros, nor, in GHC's programs, those of
/// functions of other modules that were inlined.
fn noun(files: &SourceFiles) -> String {
    let names: BTreeSet<&str> =
        files.iter().map(|(_, path)| path.rsplit('/').next().unwrap_or(path)).collect();
    match Vec::from_iter(names).as_slice() {
        [one] => format!("its source file {}", plain(one)),
        names => format!("its {} source files", names.len()),
    }
}

/// Returns the texts of source files, or `None` if there are none or one is not known.
fn texts(files: &SourceFiles, source: &SourceText<'_>) -> Option<BTreeSet<String>> {
    let texts: Option<BTreeSet<String>> =
        files.iter().map(|(program, path)| source(Path::new(program), Path::new(path))).collect();
    texts.filter(|texts| !texts.is_empty())
}

/// Names the packages whose versions differ, according to folders such as `gjson@v1.12.1` and `unicode-width-0.1.10`.
fn other_versions(first: &SourceFiles, second: &SourceFiles) -> Option<String> {
    let versions = |files: &SourceFiles| -> BTreeSet<(String, String)> {
        files.iter().flat_map(|(_, path)| path.split('/')).filter_map(name_and_version).collect()
    };
    let (first, second) = (versions(first), versions(second));
    let changed = first.difference(&second).filter_map(|(name, old)| {
        let (_, new) = second.difference(&first).find(|(other, _)| other == name)?;
        Some(format!("{name} {old} → {new}"))
    });
    let changed: Vec<String> = changed.collect();
    (!changed.is_empty()).then(|| changed.join(", "))
}

/// Divides the name of a package's folder into name and version: what stands after a hyphen or an at sign and is a number
/// with a point.
fn name_and_version(folder: &str) -> Option<(String, String)> {
    folder.match_indices(['-', '@']).find_map(|(at, _)| {
        let version = &folder[at + 1..];
        let version = version.strip_prefix('v').unwrap_or(version);
        let (whole, part) = version.split_once('.')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        (is_number(whole) && part.starts_with(|c: char| c.is_ascii_digit()))
            .then(|| (folder[..at].to_owned(), version.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_packages_are_read_from_folders() {
        let files = |paths: &[&str]| -> SourceFiles {
            paths.iter().map(|path| ("app".to_owned(), (*path).to_owned())).collect()
        };
        let first = files(&["/go/pkg/mod/github.com/tidwall/gjson@v1.10.2/gjson.go", "/src/app-1.2/main.go"]);
        let second =
            files(&["/go/pkg/mod/github.com/tidwall/gjson@v1.12.1/gjson.go", "/src/app-1.2/main.go"]);
        assert_eq!(other_versions(&first, &second).as_deref(), Some("gjson 1.10.2 → 1.12.1"));
        let first = files(&["/registry/src/index-1949cf8c6b5b557f/unicode-width-0.1.9/src/lib.rs"]);
        let second = files(&["/registry/src/index-1949cf8c6b5b557f/unicode-width-0.1.10/src/lib.rs"]);
        assert_eq!(other_versions(&first, &second).as_deref(), Some("unicode-width 0.1.9 → 0.1.10"));
        assert_eq!(other_versions(&first, &first), None);
        // The source is what the debugging information names, and no more.
        assert_eq!(noun(&files(&["/src/Main.hs"])), "its source file Main.hs");
        assert_eq!(noun(&files(&["/src/a.c", "/src/b.h"])), "its 2 source files");
        // A folder that only one has says nothing about a package.
        assert_eq!(other_versions(&files(&["/a/old-1.0/a.c"]), &files(&["/a/new-2.0/a.c"])), None);
    }
}
