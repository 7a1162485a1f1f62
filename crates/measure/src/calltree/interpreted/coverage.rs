//! Programs in JavaScript by functions of their own, as V8's precise coverage counts them.
//!
//! With `NODE_V8_COVERAGE` each process of Node writes, when it ends, how often every function and every block of it
//! ran. A function's cost is the number of its tokens that were executed: each token counts as often as the innermost
//! block around it ran. So the cost does not jump where V8 leaves out a block because it ran as often as the one around
//! it. Callers are those whose texts account for all calls of a function ([`callers`]).

use super::callers::{self, Called, Callees};
use super::tokens::{is_word, tokens};
use super::{Language, ScriptCounts, add_function, empty_side, text_of};
use crate::calltree::binary::UNKNOWN;
use crate::calltree::merged_profiles::Side;
use scruple_core::explain::{Context, Edge, GENERATED, OwnCost, PROGRAM};
use scruple_core::sorting::{self, SortedMap};
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The name of the code outside all functions.
const TOP: &str = "(top level)";

/// The number of characters that count as one token in a file whose text is not known.
const LENGTH: u64 = 4;

/// Built-in methods that call the function that is their first argument, and do not keep it.
const CALL_BACK: [&str; 13] = [
    "every",
    "filter",
    "find",
    "findIndex",
    "findLast",
    "findLastIndex",
    "flatMap",
    "forEach",
    "map",
    "reduce",
    "reduceRight",
    "some",
    "sort",
];

/// Built-in functions that call the function that is their second argument, and do not keep it.
const CALL_BACK_SECOND: [&str; 5] = ["from", "parse", "replace", "replaceAll", "stringify"];

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

/// A function: its own range first, then the blocks in it that ran another number of times.
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

/// A function of a file, with what is its own and not that of the functions in it.
struct OwnFunction {
    name: String,
    calls: u64,
    executed: u64,
    digest: u64,
    /// The last part of the name, by which it is called; its place if it has no name.
    called: String,
    /// What it calls.
    callees: Callees,
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
            called.iter_mut().for_each(|one| one.callees.handed_by_name.clear());
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

/// The functions of a file that ran. Without the file's text, tokens are taken to have [`LENGTH`] characters.
fn functions(script: &CoveredScript, text: Option<&[u16]>) -> Vec<OwnFunction> {
    let mut all: Vec<(Block, &Covered)> =
        script.functions.iter().filter_map(|function| Some((*function.ranges.first()?, function))).collect();
    // Outer functions before those in them.
    sorting::by_key(&mut all, |(whole, _)| (whole.start_offset, usize::MAX - whole.end_offset));
    let end = all.iter().map(|(whole, _)| whole.end_offset).max().unwrap_or_default();
    let length = text.map_or(end, <[u16]>::len).min(end);
    // The innermost function and the number of executions of each character.
    let mut owner = vec![usize::MAX; length];
    let mut executed = vec![0_u64; length];
    for (index, (whole, function)) in all.iter().enumerate() {
        let part = |block: &Block| {
            let start = block.start_offset.min(length);
            start..block.end_offset.clamp(start, length)
        };
        for block in &function.ranges {
            if let Some(counts) = executed.get_mut(part(block)) {
                counts.fill(block.count);
            }
        }
        if let Some(owners) = owner.get_mut(part(whole)) {
            owners.fill(index);
        }
    }
    let names = names(&all);
    let mut digests: Vec<DefaultHasher> = all.iter().map(|_| DefaultHasher::new()).collect();
    let mut sums = vec![0_u64; all.len()];
    let own_names: Vec<Range<usize>> =
        all.iter().map(|(whole, function)| own_name(*whole, function, text)).collect();
    let called: Vec<String> = all.iter().map(|(whole, function)| called(script, *whole, function)).collect();
    let mut callees = vec![Callees::default(); all.len()];
    let Some(text) = text else {
        for (at, index) in owner.iter().enumerate().filter(|(_, index)| **index < all.len()) {
            sums[*index] = sums[*index].saturating_add(executed[at]);
        }
        sums.iter_mut().for_each(|sum| *sum /= LENGTH);
        return owned(&all, names, called, sums, &vec![UNKNOWN; all.len()], callees);
    };
    let places = tokens(&text[..length]);
    // The tokens that hand a function to a built-in method.
    let mut arguments = BTreeSet::new();
    for (number, place) in places.iter().enumerate() {
        let (at, token) = (place.start, &text[place.clone()]);
        let Some(function) = owner.get(at).copied().filter(|index| *index < all.len()) else { continue };
        sums[function] = sums[function].saturating_add(executed[at]);
        // A renamed function has the same code.
        if own_names[function].contains(&at) {
            continue;
        }
        token.hash(&mut digests[function]);
        if !is_word(token) || executed[at] == 0 {
            continue;
        }
        let name = String::from_utf16_lossy(token);
        let Some(open) = opening_of_call(text, &places, number) else {
            let is_defined = is(text, &places, number + 1, "=")
                && places.get(number + 2).is_some_and(|value| begins_function(&all, value.start, &name));
            if !is_defined && !arguments.contains(&number) {
                callees[function].mentioned.insert(name);
            }
            continue;
        };
        let argument = match (CALL_BACK.contains(&&*name), CALL_BACK_SECOND.contains(&&*name)) {
            (true, _) => Some(open + 1),
            (_, true) => second_argument(text, &places, open),
            _ => None,
        };
        if let Some(argument) = argument.filter(|argument| *argument < places.len()) {
            if let Some(handed) = unnamed_at(&all, places[argument].start) {
                callees[function].handed.insert((called[handed].clone(), name.clone()));
            } else if is_word(&text[places[argument].clone()])
                && [",", ")"].iter().any(|end| is(text, &places, argument + 1, end))
            {
                let handed = String::from_utf16_lossy(&text[places[argument].clone()]);
                callees[function].handed_by_name.insert((handed, name.clone()));
                arguments.insert(argument);
            }
        }
        // A method with the name of a function may be another one.
        if number > 0 && [".", "?."].iter().any(|dot| is(text, &places, number - 1, dot)) {
            callees[function].mentioned.insert(name.clone());
        }
        let calls = callees[function].named.entry(name).or_default();
        *calls = calls.saturating_add(executed[at]);
    }
    let digests: Vec<u64> = digests.iter().map(Hasher::finish).collect();
    owned(&all, names, called, sums, &digests, callees)
}

/// Whether the token with this number is this text.
fn is(text: &[u16], places: &[Range<usize>], number: usize, expected: &str) -> bool {
    places.get(number).is_some_and(|place| expected.encode_utf16().eq(text[place.clone()].iter().copied()))
}

/// The number of the parenthesis that opens the arguments, if a token is the name in a call.
fn opening_of_call(text: &[u16], places: &[Range<usize>], number: usize) -> Option<usize> {
    let open = number + 1 + usize::from(is(text, places, number + 1, "?."));
    is(text, places, open, "(").then_some(open)
}

/// The number of the token with which the second argument of a call begins, behind its opening parenthesis.
fn second_argument(text: &[u16], places: &[Range<usize>], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (number, place) in places.iter().enumerate().skip(open + 1) {
        let (first, last) = (text[place.start], text[place.end - 1]);
        // A piece of a template may begin and end with a brace.
        let closes = [b')', b']', b'}'].iter().any(|one| first == u16::from(*one));
        let opens = [b'(', b'[', b'{'].iter().any(|one| last == u16::from(*one));
        if closes {
            depth = depth.checked_sub(1)?;
        }
        if depth == 0 && is(text, places, number, ",") {
            return Some(number + 1);
        }
        depth += usize::from(opens);
    }
    None
}

/// Whether a function with this name begins there.
fn begins_function(all: &[(Block, &Covered)], start: usize, name: &str) -> bool {
    let at = all.partition_point(|(whole, _)| whole.start_offset < start);
    all.get(at).is_some_and(|(whole, function)| whole.start_offset == start && function.function_name == name)
}

/// Puts together what is known of functions that ran.
fn owned(
    all: &[(Block, &Covered)],
    names: Vec<String>,
    called: Vec<String>,
    sums: Vec<u64>,
    digests: &[u64],
    callees: Vec<Callees>,
) -> Vec<OwnFunction> {
    let known = all.iter().zip(names.into_iter().zip(called)).zip(sums).zip(digests).zip(callees);
    known
        .filter(|(((((whole, _), _), _), _), _)| whole.count > 0)
        .map(|(((((whole, _), (name, called)), executed), digest), callees)| OwnFunction {
            name,
            calls: whole.count,
            executed,
            digest: *digest,
            called,
            callees,
        })
        .collect()
}

/// The name by which a function is called. One without a name has its place for a name, which no text calls.
fn called(script: &CoveredScript, whole: Block, function: &Covered) -> String {
    match function.function_name.rsplit(['.', ' ']).next() {
        None | Some("") => format!("{}:{}", script.url, whole.start_offset),
        Some(name) => name.to_owned(),
    }
}

/// The function without a name that begins there. Functions are sorted by where they begin.
fn unnamed_at(all: &[(Block, &Covered)], start: usize) -> Option<usize> {
    let at = all.partition_point(|(whole, _)| whole.start_offset < start);
    let (whole, function) = all.get(at)?;
    (whole.start_offset == start && function.function_name.is_empty()).then_some(at)
}

/// Where a function's text has its own name.
fn own_name(whole: Block, function: &Covered, text: Option<&[u16]>) -> Range<usize> {
    let name: Vec<u16> = function.function_name.encode_utf16().collect();
    let inside = text.and_then(|text| text.get(whole.start_offset..whole.end_offset.min(text.len())));
    let Some(inside) = inside.filter(|_| !name.is_empty()) else { return 0..0 };
    let part_of_word = |at: usize| {
        let unit = inside.get(at).and_then(|unit| char::from_u32((*unit).into()));
        unit.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$')
    };
    let is_whole = |at: &usize| {
        inside[*at..].starts_with(&name)
            && !at.checked_sub(1).is_some_and(part_of_word)
            && !part_of_word(at + name.len())
    };
    match (0..inside.len()).find(is_whole) {
        Some(at) => whole.start_offset + at..whole.start_offset + at + name.len(),
        None => 0..0,
    }
}

/// The names of functions, which are given with outer functions first: qualified by the functions around them, and
/// numbered among those that would have the same name.
fn names(all: &[(Block, &Covered)]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(all.len());
    let mut around: Vec<usize> = Vec::new();
    let mut used: SortedMap<String, usize> = SortedMap::new();
    for (index, (whole, function)) in all.iter().enumerate() {
        while around.last().is_some_and(|outer| {
            all[*outer].0.end_offset < whole.end_offset || all[*outer].0.end_offset <= whole.start_offset
        }) {
            around.pop();
        }
        let name = match (function.function_name.as_str(), around.last()) {
            ("", None) => TOP,
            ("", Some(_)) => "(anonymous)",
            (name, _) => name,
        };
        let mut full = match around.last().map(|outer| names[*outer].as_str()) {
            None | Some(TOP) => name.to_owned(),
            Some(outer) => format!("{outer}.{name}"),
        };
        let times = used.entry(full.clone()).or_default();
        *times += 1;
        if *times > 1 {
            full = format!("{full} #{times}");
        }
        names.push(full);
        around.push(index);
    }
    names
}

#[cfg(test)]
mod tests;
