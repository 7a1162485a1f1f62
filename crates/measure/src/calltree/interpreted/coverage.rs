//! Programs in JavaScript by functions of their own, as V8's precise coverage counts them.
//!
//! With `NODE_V8_COVERAGE` each process of Node writes, when it ends, how often every function and every block of it
//! ran. A function's cost is the number of its tokens that were executed: each token counts as often as the innermost
//! block around it ran. So the cost does not jump where V8 leaves out a block because it ran as often as the one around
//! it. Callers are those whose texts account for all calls of a function ([`callers`]).

use super::callers::{self, Called};
use super::{Language, ScriptCounts, add_function, empty_side, text_of};
use scruple_code::Side;
use scruple_core::explain::{Context, Edge, GENERATED, OwnCost, PROGRAM};
use scruple_stats::sorting;
use serde::Deserialize;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

mod functions;

use functions::functions;

/// The variables that make Node count.
pub(super) fn env(folder: &Path) -> Vec<(OsString, OsString)> {
    vec![("NODE_V8_COVERAGE".into(), folder.into())]
}

/// The name of the file that makes Node end by itself on SIGINT, unless the program handles it.
const LEAVE: &str = "leave.cjs";

const LEAVES: &str =
    "process.on('SIGINT', () => { if (process.listenerCount('SIGINT') === 1) process.exit(0) })\n";

/// Writes what [`env_of_server`] names.
pub(super) fn prepare(folder: &Path) -> io::Result<()> {
    fs::write(folder.join(LEAVE), LEAVES)
}

/// The variables that make a server of Node count. `given` finds those that it would have anyway.
pub(super) fn env_of_server(
    folder: &Path,
    given: impl Fn(&str) -> Option<OsString>,
) -> Vec<(OsString, OsString)> {
    let mut options = given("NODE_OPTIONS").unwrap_or_default();
    options.push(" --require \"");
    options.push(folder.join(LEAVE));
    options.push("\"");
    env(folder).into_iter().chain([("NODE_OPTIONS".into(), options)]).collect()
}

/// Reads what was counted.
pub(super) fn read(folder: &Path) -> Result<ScriptCounts, String> {
    let listed = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut files: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().and_then(OsStr::to_str) == Some("json"));
    sorting::ascending(&mut files);
    let mut builder = CoverageBuilder {
        side: empty_side(Language::JavaScript),
        functions: HashMap::new(),
        contexts: HashMap::new(),
        processes: 0,
    };
    for file in files {
        let mut written: CoverageFile = serde_json::from_str(&text_of(&file)?)
            .map_err(|error| format!("a process’s coverage: {error}"))?;
        written.result.retain(|script| !script.url.ends_with(&*folder.join(LEAVE).to_string_lossy()));
        builder.add(&written);
    }
    Ok(ScriptCounts { side: builder.side, processes: builder.processes, ..ScriptCounts::default() })
}

/// What one process or worker wrote.
#[derive(Deserialize)]
struct CoverageFile {
    result: Vec<CoveredScript>,
}

/// A file with code. V8 numbers characters in UTF-16.
#[derive(Deserialize)]
struct CoveredScript {
    url: String,
    functions: Vec<Covered>,
}

/// A function: its own range first, then the blocks in it that ran a different number of times.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Covered {
    function_name: String,
    ranges: Vec<Block>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block {
    start_offset: usize,
    end_offset: usize,
    count: u64,
}

struct CoverageBuilder {
    side: Side,
    /// The index of each function by its module, name and digest.
    functions: HashMap<(String, String, u64), usize>,
    /// The index of each context by that of its caller and of its function.
    contexts: HashMap<(usize, usize), usize>,
    processes: usize,
}

impl CoverageBuilder {
    fn add(&mut self, written: &CoverageFile) {
        // V8 lists scripts in the order in which they were compiled: the script that was started is the first file.
        let main = written.result.iter().find_map(|script| path_of(&script.url));
        let of_program = written.result.iter().filter(|script| !script.url.starts_with("node:"));
        let mut all = Vec::new();
        let mut all_texts_known = true;
        let scripts = self.processes;
        for script in of_program {
            self.processes = scripts + 1;
            let path = path_of(&script.url);
            let module = match (&path, &main) {
                (Some(path), Some(main)) => module_of(path, main),
                // The code was given to `eval`, `new Function`, `vm` or on the command line.
                _ => GENERATED.to_owned(),
            };
            let text = path.and_then(|path| text_as_executed(script, &path));
            all_texts_known &= text.is_some();
            for own in functions(script, text.as_deref()) {
                let key = (module.clone(), own.name.clone(), own.digest);
                let side = &mut self.side;
                let function = *self
                    .functions
                    .entry(key)
                    .or_insert_with(|| add_function(side, module.clone(), &own.name, own.digest));
                let (name, callees) = (own.called, own.callees);
                all.push((function, Called { calls: own.calls, cost: own.executed, name, callees }));
            }
        }
        let (functions, mut called): (Vec<usize>, Vec<Called>) = all.into_iter().unzip();
        if !all_texts_known {
            // An unknown text may use every function that has a name.
            called.iter_mut().for_each(|one| one.callees.passed_by_name.clear());
        }
        let mut contexts: Vec<usize> = Vec::new();
        let callers = callers::callers(&called);
        let root = self.side.tree.contexts[0].function;
        for ((callee, one), of_one) in functions.iter().zip(&called).zip(&callers) {
            let known = of_one.iter().map(|(caller, calls)| (functions[*caller], *calls));
            let by_program = of_one.is_empty().then_some((root, one.calls));
            let edge = |(caller, calls)| Edge { caller, callee: *callee, calls };
            self.side.tree.edges.extend(known.chain(by_program).map(edge));
        }
        for place in callers::places(&called, &callers) {
            let parent = place.parent.map_or(0, |parent| contexts[parent]);
            contexts.push(self.count(parent, functions[place.function], &place));
        }
    }

    /// Adds the counts of a function below a context, and returns the index of its context.
    fn count(&mut self, parent: usize, function: usize, place: &callers::CallNode) -> usize {
        self.side.named.0 = self.side.named.0.saturating_add(place.cost);
        let contexts = &mut self.side.tree.contexts;
        let at = *self.contexts.entry((parent, function)).or_insert(contexts.len());
        if at == contexts.len() {
            contexts.push(Context { parent: Some(parent), function, ..Context::default() });
        }
        let context = &mut contexts[at];
        context.calls = context.calls.saturating_add(place.calls);
        context.recursive = context.recursive.saturating_add(place.recursive);
        let instructions = context.cost.instructions.saturating_add(place.cost);
        context.cost = OwnCost { instructions, ..OwnCost::default() };
        at
    }
}

/// The file that a URL names; `None` for Node's own code and for code that is in no file.
fn path_of(url: &str) -> Option<PathBuf> {
    let escaped = url.strip_prefix("file://")?;
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.as_bytes();
    while let [first, behind @ ..] = rest {
        let decoded = match rest {
            [b'%', high, low, ..] => std::str::from_utf8(&[*high, *low])
                .ok()
                .and_then(|digits| u8::from_str_radix(digits, 16).ok()),
            _ => None,
        };
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { &rest[3..] } else { behind };
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

/// The text of a file, if it is what V8 executed: `None` for text that was translated when it was loaded, or for files
/// that have changed or are gone.
fn text_as_executed(script: &CoveredScript, path: &Path) -> Option<Vec<u16>> {
    let text = fs::read_to_string(path).ok()?;
    // Node removes a byte order mark.
    let text: Vec<u16> = text.strip_prefix('\u{feff}').unwrap_or(&text).encode_utf16().collect();
    let blocks = || script.functions.iter().filter_map(|function| function.ranges.first());
    let begins = blocks().filter(|block| block.start_offset == 0);
    let whole = begins.map(|block| block.end_offset).max().unwrap_or(text.len());
    let fits = whole == text.len() && blocks().all(|block| block.end_offset <= text.len());
    fits.then_some(text)
}

/// The name of a file's module, which is the same in two versions of a program that are in different folders.
fn module_of(path: &Path, main: &Path) -> String {
    if path == main {
        return PROGRAM.to_owned();
    }
    let beside = main.parent().and_then(|folder| path.strip_prefix(folder).ok());
    format!("module {}", beside.unwrap_or(path).display())
}

#[cfg(test)]
mod tests;
