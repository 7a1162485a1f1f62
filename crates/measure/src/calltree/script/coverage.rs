//! Programs in JavaScript by functions of their own, as V8's precise coverage counts them.
//!
//! With `NODE_V8_COVERAGE` each process of Node writes, when it ends, how often every function and every block of it
//! ran. A function's cost is the number of its characters that were executed: each character that is no white space
//! counts as often as the innermost block around it ran. So the cost does not jump where V8 leaves out a block because
//! it ran as often as the one around it.

use super::{Language, ScriptCounts, add_function, empty_side, text_of};
use crate::calltree::binary::UNKNOWN;
use crate::calltree::merged_profiles::Side;
use scruple_core::explain::{Context, Cost, PROGRAM};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The name of the code outside all functions.
const TOP: &str = "(top level)";

/// The module of code that is in no file: given to `eval`, `new Function`, `vm` or on the command line.
const MADE: &str = "code that the program made";

/// The variables that make Node count.
pub(super) fn env(folder: &Path) -> Vec<(OsString, OsString)> {
    vec![("NODE_V8_COVERAGE".into(), folder.into())]
}

/// Reads what was counted.
pub(super) fn read(folder: &Path) -> Result<ScriptCounts, String> {
    let listed = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut files: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().and_then(OsStr::to_str) == Some("json"));
    files.sort();
    let mut builder = Builder { side: empty_side(Language::JavaScript), known: HashMap::new(), processes: 0 };
    for file in files {
        let written: Written = serde_json::from_str(&text_of(&file)?)
            .map_err(|error| format!("a process’s coverage: {error}"))?;
        builder.add(&written);
    }
    Ok(ScriptCounts { side: builder.side, processes: builder.processes, ..ScriptCounts::default() })
}

/// What one process or worker wrote.
#[derive(Deserialize)]
struct Written {
    result: Vec<Script>,
}

/// A file with code. V8 numbers characters in UTF-16.
#[derive(Deserialize)]
struct Script {
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
struct Own {
    name: String,
    calls: u64,
    executed: u64,
    digest: u64,
}

struct Builder {
    side: Side,
    /// The context of each function by its module, name and digest.
    known: HashMap<(String, String, u64), usize>,
    processes: usize,
}

impl Builder {
    fn add(&mut self, written: &Written) {
        // V8 lists scripts in the order in which they were compiled: the script that was started is the first file.
        let main = written.result.iter().find_map(|script| path_of(&script.url));
        let of_program = written.result.iter().filter(|script| !script.url.starts_with("node:"));
        let mut counted = false;
        for script in of_program {
            counted = true;
            let path = path_of(&script.url);
            let module = match (&path, &main) {
                (Some(path), Some(main)) => module_of(path, main),
                _ => MADE.to_owned(),
            };
            let text = path.and_then(|path| text_as_executed(script, &path));
            for own in functions(script, text.as_deref()) {
                self.count(&module, own);
            }
        }
        self.processes += usize::from(counted);
    }

    fn count(&mut self, module: &str, own: Own) {
        self.side.named.0 = self.side.named.0.saturating_add(own.executed);
        let key = (module.to_owned(), own.name.clone(), own.digest);
        let contexts = self.side.tree.contexts.len();
        let place = *self.known.entry(key).or_insert(contexts);
        if place == contexts {
            let function = add_function(&mut self.side, module.to_owned(), &own.name, own.digest);
            self.side.tree.contexts.push(Context { parent: Some(0), function, ..Context::default() });
        }
        let context = &mut self.side.tree.contexts[place];
        context.calls = context.calls.saturating_add(own.calls);
        let instructions = context.cost.instructions.saturating_add(own.executed);
        context.cost = Cost { instructions, ..Cost::default() };
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
fn text_as_executed(script: &Script, path: &Path) -> Option<Vec<u16>> {
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

/// The functions of a file that ran. Without the file's text all characters count, white space too.
fn functions(script: &Script, text: Option<&[u16]>) -> Vec<Own> {
    let mut all: Vec<(Block, &Covered)> =
        script.functions.iter().filter_map(|function| Some((*function.ranges.first()?, function))).collect();
    // Outer functions before those in them.
    all.sort_by_key(|(whole, _)| (whole.start_offset, usize::MAX - whole.end_offset));
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
    let own_names: Vec<std::ops::Range<usize>> =
        all.iter().map(|(whole, function)| own_name(*whole, function, text)).collect();
    for (at, index) in owner.iter().enumerate().filter(|(_, index)| **index < all.len()) {
        let unit = text.map(|text| text[at]);
        if unit.is_some_and(|unit| char::from_u32(unit.into()).is_some_and(char::is_whitespace)) {
            continue;
        }
        sums[*index] = sums[*index].saturating_add(executed[at]);
        // A renamed function has the same code.
        if !own_names[*index].contains(&at) {
            unit.hash(&mut digests[*index]);
        }
    }
    let own = all.iter().zip(names).zip(sums).zip(digests);
    own.filter(|(((whole, _), _), _)| whole.0.count > 0)
        .map(|((((whole, _), name), executed), digest)| Own {
            name,
            calls: whole.count,
            executed,
            digest: if text.is_some() { digest.finish() } else { UNKNOWN },
        })
        .collect()
}

/// Where a function's text has its own name.
fn own_name(whole: Block, function: &Covered, text: Option<&[u16]>) -> std::ops::Range<usize> {
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
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
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
mod tests {
    use super::super::ScriptSession;
    use super::*;

    /// The functions of a program that Node runs, with their calls and executed characters; `None` without Node.
    fn counted_by_node(text: &str) -> Option<Vec<(String, u64, u64)>> {
        let place = tempfile::tempdir().expect("a folder");
        let session = ScriptSession::start(Language::JavaScript, place.path()).expect("a session");
        let file = place.path().join("a program.js");
        fs::write(&file, text).expect("a program");
        let run = std::process::Command::new("node").arg(&file).envs(session.env(|_| None)).status().ok()?;
        assert!(run.success());
        let counts = session.read().expect("counts");
        assert_eq!(counts.processes, 1);
        let tree = &counts.side.tree;
        let shown = tree.contexts[1..].iter().map(|context| {
            let function = &tree.functions[context.function];
            assert_eq!(function.module, PROGRAM);
            (function.name.clone(), context.calls, context.cost.instructions)
        });
        Some(shown.collect())
    }

    #[test]
    fn node_counts_what_each_function_executes() {
        let text = "function often(n) { if (n > 2) { return n }\n  return 0 }\n\
                    const all = [1, 2, 3].map((n) => often(n) + often(3));\n";
        let Some(counted) = counted_by_node(text) else {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "skipped: Node is not installed");
            return;
        };
        let of = |name: &str| {
            counted.iter().find(|(known, ..)| known == name).map(|(_, calls, own)| (*calls, *own))
        };
        let length = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count() as u64;
        assert_eq!(of("(anonymous)"), Some((3, 3 * length("(n) => often(n) + often(3)"))));
        let (calls, own) = of("often").expect("a function");
        let most = 6 * length("function often(n) { if (n > 2) { return n } return 0 }");
        assert_eq!(calls, 6);
        // The block behind the test ran 4 times, what follows it twice.
        let least = 6 * length("function often(n) { if (n > 2)") + 4 * length("{ return n }");
        assert!((least..most).contains(&own), "{own} not in {least}..{most}");
    }

    #[test]
    fn code_in_no_file_is_counted_and_its_text_is_unknown() {
        let place = tempfile::tempdir().expect("a folder");
        let session = ScriptSession::start(Language::JavaScript, place.path()).expect("a session");
        let text =
            "const given = eval('(function given(n) { return n })'); given(1); new Function('given(2)')()";
        let run = std::process::Command::new("node").args(["-e", text]).envs(session.env(|_| None)).status();
        if run.is_err() {
            return;
        }
        let counts = session.read().expect("counts");
        let side = &counts.side;
        let given = side.tree.functions.iter().position(|one| one.name == "given").expect("a function");
        assert_eq!(side.tree.functions[given].module, MADE);
        assert_eq!(side.digests.as_ref().map(|all| all[given]), Some(UNKNOWN));
        let calls = |one: &&Context| one.function == given;
        assert_eq!(side.tree.contexts.iter().find(calls).map(|context| context.calls), Some(2));
    }

    const TEXT: &str = "function f(n) { if (n) { g() } }\nlet é = () => { f(1) };";

    fn covered(name: &str, ranges: &[(usize, usize, u64)]) -> String {
        let ranges: Vec<String> = ranges
            .iter()
            .map(|(start, end, count)| {
                format!(r#"{{"startOffset":{start},"endOffset":{end},"count":{count}}}"#)
            })
            .collect();
        format!(r#"{{"functionName":"{name}","ranges":[{}],"isBlockCoverage":true}}"#, ranges.join(","))
    }

    fn script(functions: &[String]) -> Script {
        let text = format!(r#"{{"url":"file:///a%20b.js","functions":[{}]}}"#, functions.join(","));
        serde_json::from_str(&text).expect("a script")
    }

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    fn shown(script: &Script, text: &str) -> Vec<(String, u64, u64)> {
        functions(script, Some(&units(text)))
            .into_iter()
            .map(|own| (own.name, own.calls, own.executed))
            .collect()
    }

    #[test]
    fn a_character_counts_as_often_as_the_innermost_block_of_its_function_ran() {
        let end = TEXT.encode_utf16().count();
        let arrow = TEXT.chars().position(|c| c == '=').expect("an arrow") + 2;
        let script = script(&[
            covered("", &[(0, end, 1)]),
            covered("f", &[(0, 32, 10), (23, 30, 4)]),
            covered("", &[(arrow, end - 1, 7)]),
        ]);
        let of = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count() as u64;
        let expected = [
            ("(top level)", 1, of("let é = ;")),
            ("f", 10, 10 * of("function f(n) { if (n) }") + 4 * of("{ g() }")),
            ("(anonymous)", 7, 7 * of("() => { f(1) }")),
        ];
        assert_eq!(shown(&script, TEXT), expected.map(|(name, calls, own)| (name.to_owned(), calls, own)));
        assert_eq!(path_of(&script.url), Some(PathBuf::from("/a b.js")));
        assert_eq!(path_of("node:fs"), None);
    }

    #[test]
    fn a_renamed_or_reformatted_function_is_the_same_code_and_a_changed_one_is_not() {
        let digest = |name: &str, text: &str| {
            let length = text.encode_utf16().count();
            functions(&script(&[covered(name, &[(0, length, 1)])]), Some(&units(text)))[0].digest
        };
        let one = digest("f", "function f(n) { return n }");
        assert_eq!(one, digest("other", "function other(n) {\n  return n\n}"));
        assert_ne!(one, digest("f", "function f(n) { return m }"));
    }

    #[test]
    fn text_that_was_not_executed_is_not_compared() {
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join("a.js");
        let known = |text: &str, covered: &[String]| {
            fs::write(&file, text).expect("a file");
            text_as_executed(&script(covered), &file).is_some()
        };
        let whole = covered("", &[(0, 3, 1)]);
        assert!(
            known("f()", std::slice::from_ref(&whole)) && known("\u{feff}f()", std::slice::from_ref(&whole))
        );
        assert!(!known("f ()", std::slice::from_ref(&whole)));
        assert!(!known("f()", &[covered("f", &[(1, 9, 1)])]));
        let unknown = functions(&script(&[whole]), None);
        assert_eq!(unknown[0].digest, UNKNOWN);
    }

    #[test]
    fn functions_are_named_by_those_around_them_and_numbered() {
        let script = script(&[
            covered("", &[(0, 100, 1)]),
            covered("make", &[(0, 50, 1)]),
            covered("", &[(10, 20, 1)]),
            covered("", &[(20, 30, 1)]),
            covered("make", &[(60, 70, 1)]),
        ]);
        let names: Vec<String> = functions(&script, None).into_iter().map(|own| own.name).collect();
        assert_eq!(names, ["(top level)", "make", "make.(anonymous)", "make.(anonymous) #2", "make #2"]);
    }

    #[test]
    fn offsets_beyond_the_text_are_no_error() {
        let script = script(&[covered("", &[(0, 900, 1), (800, 900, 3), (950, 20, 3)])]);
        assert_eq!(shown(&script, "f()"), [("(top level)".to_owned(), 1, 3)]);
    }

    #[test]
    fn files_beside_the_program_are_named_without_its_folder() {
        let name = |path: &str| module_of(Path::new(path), Path::new("/a/app.js"));
        assert_eq!(
            ["/a/app.js", "/a/lib/x.js", "/b/y.js"].map(name),
            ["program", "module lib/x.js", "module /b/y.js"]
        );
    }
}
