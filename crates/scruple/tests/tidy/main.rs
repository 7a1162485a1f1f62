//! Rules of this project that no compiler enforces: lengths of files, boundaries between crates and modules, and
//! documents that match the code.

mod architecture;
mod circles;
mod options_in_messages;
mod wording;

use scruple_core::metric::{METRICS, Pass, Quality};
use scruple_core::run::RunState;
use scruple_core::subject::Role;
use scruple_core::verdict::Verdict;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The maximum number of lines of a source file.
const LINES: usize = 500;

/// Files that may have more than [`LINES`] lines: those that are copied into other people's programs as one file.
const LONGER: [&str; 4] =
    ["sdk/c/scruple.h", "sdk/guile/scruple.scm", "sdk/js/scruple.mjs", "sdk/python/scruple_bench.py"];

/// Words that the glossary must explain, in addition to those of the code's closed sets.
const WORDS: [&str; 26] = [
    "subject",
    "version",
    "arm",
    "role",
    "reference",
    "metric",
    "pass",
    "instrument",
    "block",
    "process",
    "seed",
    "reading",
    "absent",
    "quality",
    "sample",
    "run",
    "provenance",
    "store",
    "estimate",
    "effect",
    "margin",
    "verdict",
    "tare",
    "undisturbed block",
    "limit",
    "gate",
];

/// The maximum number of words in the glossary. Words of one capability belong in that capability's document.
const MOST_WORDS: usize = 35;

/// The maximum number of distinct options of all verbs together.
const MOST_OPTIONS: usize = 130;
/// The maximum number of options of one verb.
const MOST_OF_A_VERB: usize = 42;
/// The maximum number of lines of a verb's short help (`-h`).
const MOST_LINES: usize = 40;

/// Verbs that may have more options and more lines of help.
const LONG: [&str; 0] = [];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
}

/// The text files below a folder, with their paths relative to the project's root. Skips hidden files and build output.
fn texts(folder: &str) -> Vec<(String, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        let entries =
            std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let hidden = name.starts_with('.') && ![".ci", ".github"].contains(&name.as_str());
            let made = ["target", "__pycache__", "node_modules"].contains(&name.as_str());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !hidden && !made => walk(&entry.path(), found),
                Ok(kind) if kind.is_file() && !hidden => found.push(entry.path()),
                _ => {}
            }
        }
    }
    let mut paths = Vec::new();
    walk(&root().join(folder), &mut paths);
    paths.sort();
    let start = root();
    paths
        .iter()
        .filter_map(|path| {
            let name = path.strip_prefix(&start).ok()?.to_string_lossy().replace('\\', "/");
            Some((name, std::fs::read_to_string(path).ok()?))
        })
        .collect()
}

/// The Rust sources below a folder, without lines that only hold a comment.
fn code(folder: &str) -> Vec<(String, String)> {
    let bare = |text: &str| {
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    };
    let rust = texts(folder).into_iter().filter(|(name, _)| name.ends_with(".rs"));
    rust.map(|(name, text)| (name, bare(&text))).collect()
}

/// Whether `word` occurs in `text` as a whole word.
fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

fn scruple(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scruple"));
    command.args(words).stdin(Stdio::null()).env("COLUMNS", "100");
    for variable in ["SCRUPLE_STORE", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM", "LD_PRELOAD"] {
        command.env_remove(variable);
    }
    command
}

fn text_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn nothing(kind: &str, found: &[String]) {
    assert!(found.is_empty(), "{kind}:\n  {}", found.join("\n  "));
}

#[test]
fn no_source_file_is_longer_than_a_reader_can_hold() {
    let endings = ["rs", "c", "h", "py", "hs", "go", "js", "mjs", "java", "scm"];
    let source = |name: &str| name.rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending));
    let long: Vec<String> = texts("")
        .iter()
        .filter(|(name, _)| source(name) && !LONGER.contains(&name.as_str()))
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > LINES)
        .map(|(name, lines)| format!("{name}: {lines} lines"))
        .collect();
    nothing("split these by what they are about", &long);
}

#[test]
fn only_the_face_and_examples_print() {
    let macros = ["println", "eprintln", "print", "eprint", "dbg"].map(|name| format!("{name}!("));
    // An SDK that is not started by Scruple prints on standard error how to run it.
    let allowed = ["sdk/rust/src/serve.rs"];
    let mut found = Vec::new();
    for (name, text) in code("crates").into_iter().chain(code("sdk/rust/src")) {
        let free = ["/tests/", "/examples/", "/build.rs"].iter().any(|part| name.contains(part));
        if !free && !allowed.contains(&name.as_str()) {
            let printing = |line: &&str| macros.iter().any(|call| has_word(line, call));
            found.extend(text.lines().filter(printing).map(|line| format!("{name}: {}", line.trim())));
        }
    }
    nothing("write through `render::output` or hand text back", &found);
}

/// The functions named here panic at bytes that are not UTF-8, which arguments and variables may have.
#[test]
fn arguments_and_variables_need_not_be_text() {
    let mut found = Vec::new();
    for (name, text) in code("crates").into_iter().filter(|(name, _)| name.contains("/src/")) {
        let panics = |line: &&str| ["env::args()", "env::vars()"].iter().any(|call| line.contains(call));
        found.extend(text.lines().filter(panics).map(|line| format!("{name}: {}", line.trim())));
    }
    nothing("use args_os or vars_os", &found);
}

#[test]
fn unsafe_code_stays_in_measure_and_in_sdks() {
    let mut found = Vec::new();
    for folder in ["crates/stats", "crates/core", "crates/code", "crates/scruple"] {
        for (name, text) in code(folder) {
            // The content security policies of pages contain `'unsafe-inline'`.
            let unsafe_ = |line: &&str| {
                has_word(&line.replace("'unsafe-inline'", ""), "unsafe") && !name.contains("tests/tidy/")
            };
            found.extend(text.lines().filter(unsafe_).map(|line| format!("{name}: {}", line.trim())));
        }
    }
    nothing("unsafe code outside crates/measure and sdk", &found);
    for root in ["stats/src/lib.rs", "core/src/lib.rs", "code/src/lib.rs", "scruple/src/main.rs"] {
        let root = &format!("crates/{root}");
        assert!(read(root).contains("#![forbid(unsafe_code)]"), "{root} forbids unsafe code");
    }
}

#[test]
fn the_core_cannot_reach_the_machine() {
    let mut found = Vec::new();
    for (name, text) in code("crates/stats/src").into_iter().chain(code("crates/core/src")) {
        for module in ["env", "fs", "io", "net", "os", "process", "thread", "time"] {
            if has_word(&text, &format!("std::{module}")) {
                found.push(format!("{name}: std::{module}"));
            }
        }
        if text.contains("use std::{") {
            found.push(format!(
                "{name}: write one `use std::` for each module, so that this test can read them"
            ));
        }
    }
    nothing("the core is numbers only", &found);
}

#[test]
fn nothing_names_a_folder_of_a_developers_machine() {
    // The names are put together here, so that the test does not find them in its own source.
    let folders = [["/ro", "ot/"], ["/wo", "rk/"], ["/tmp/", "wt"]].map(|parts| parts.concat());
    let begins =
        |text: &str, at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || "/._-}~)".contains(c));
    let mut found = Vec::new();
    for (name, text) in texts("") {
        for folder in &folders {
            if text.match_indices(folder.as_str()).any(|(at, _)| begins(&text, at)) {
                found.push(format!("{name}: {folder}"));
            }
        }
    }
    nothing("paths that exist on one machine only", &found);
}

#[test]
fn every_metric_is_listed_with_its_meaning() {
    let listed = text_of(&scruple(&["inspect", "metrics"]).output().expect("scruple runs"));
    for metric in METRICS {
        let line = listed.lines().find(|line| line.split_whitespace().next() == Some(&metric.key));
        let line = line.unwrap_or_else(|| panic!("`scruple inspect metrics` does not list {}", metric.key));
        let parts = [metric.unit.name(), metric.pass.word(), metric.quality.word(), &metric.help];
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    }
}

#[test]
fn the_glossary_explains_the_words_of_the_code() {
    let glossary = read("docs/glossary.md");
    let lower = glossary.to_lowercase();
    let mut missing: Vec<String> = WORDS
        .iter()
        .filter(|word| !lower.contains(&format!("**{word}**")))
        .map(|word| (*word).to_owned())
        .collect();
    let verdict = |verdict: Verdict| serde_json::to_value(verdict).expect("a word");
    let closed: Vec<String> =
        [Role::Subject, Role::Tare, Role::Shell, Role::Twin, Role::Yardstick, Role::Part]
            .map(Role::word)
            .into_iter()
            .chain([Pass::Timing, Pass::Memory, Pass::Counting, Pass::Build].map(Pass::word))
            .chain(
                [RunState::Running, RunState::Complete, RunState::Interrupted, RunState::Failed]
                    .map(RunState::word),
            )
            .chain(
                [Quality::Exact, Quality::Near, Quality::Noisy, Quality::Sampled, Quality::Estimated]
                    .map(Quality::word),
            )
            .map(str::to_owned)
            .chain(
                [Verdict::Different, Verdict::Same, Verdict::Small, Verdict::CantTell]
                    .map(|one| verdict(one).as_str().unwrap_or_default().to_owned()),
            )
            .collect();
    missing.extend(closed.into_iter().filter(|word| !glossary.contains(&format!("`{word}`"))));
    nothing("words that docs/glossary.md does not explain", &missing);
    let explained = glossary.matches("**").count() / 2;
    assert!(
        explained <= MOST_WORDS,
        "docs/glossary.md explains {explained} words: {MOST_WORDS} are the most"
    );
}

/// The output of `--help` for the program and for each verb at every depth.
fn helps() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![String::new()];
    while let Some(verb) = open.pop() {
        let words: Vec<&str> = verb.split_whitespace().chain(["--help"]).collect();
        let answer = text_of(&scruple(&words).output().expect("scruple runs"));
        let lines: Vec<&str> = answer.trim_matches('\n').lines().map(str::trim_end).collect();
        // Verbs stand between `Usage:` and `Options:`, indented by two spaces.
        let head = lines.iter().skip_while(|line| !line.starts_with("Usage:"));
        let listed = head.take_while(|line| !line.starts_with("Options:"));
        let names = listed
            .filter_map(|line| line.strip_prefix("  "))
            .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
        let below = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
        open.extend(below.map(|name| format!("{verb} {name}").trim().to_owned()));
        found.insert(verb, lines.join("\n"));
    }
    found
}

/// The options in a help text, without `--help` and `--version`.
fn options(help: &str) -> BTreeSet<&str> {
    let words = |line: &str| !line.is_empty() && line.starts_with('-');
    let lines = help.lines().map(str::trim_start).filter(|line| words(line));
    let names = lines.filter_map(|line| line.split([' ', ',', '=', '[']).find(|word| word.starts_with("--")));
    names.filter(|name| !["--", "--help", "--version"].contains(name)).collect()
}

#[test]
fn options_stay_few_and_the_common_ones_fit_a_screen() {
    let helps = helps();
    let all: BTreeSet<&str> = helps.values().flat_map(|help| options(help)).collect();
    assert!(all.len() <= MOST_OPTIONS, "{} options in all: {all:?}", all.len());
    for (verb, help) in helps.iter().filter(|(verb, _)| !LONG.contains(&verb.as_str())) {
        let count = options(help).len();
        assert!(count <= MOST_OF_A_VERB, "`scruple {verb}` has {count} options");
        let words: Vec<&str> = verb.split_whitespace().chain(["-h"]).collect();
        let lines = text_of(&scruple(&words).output().expect("scruple runs")).lines().count();
        assert!(
            lines <= MOST_LINES,
            "`scruple {verb} -h` has {lines} lines: hide rare options with hide_short_help"
        );
    }
}

#[test]
fn the_reference_of_the_command_line_is_up_to_date() {
    let document = read("docs/cli.md");
    for (verb, help) in helps() {
        let head = if verb.is_empty() { String::new() } else { format!("## scruple {verb}\n\n") };
        let section = format!("{head}```\n{help}\n```\n");
        assert!(document.contains(&section), "docs/cli.md is not up to date for ‘{verb}’: run `make docs`");
    }
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let output = Command::new("python3").arg(root().join("docs/book.py")).output().expect("python3 starts");
    assert!(output.status.success(), "{}", text_of(&output));
}

#[test]
fn the_first_document_is_short_and_begins_with_a_picture() {
    let readme = read("README.md");
    assert!(readme.lines().count() <= 120, "README.md has {} lines", readme.lines().count());
    let picture = readme.lines().position(|line| line.contains("<img")).expect("a picture");
    assert!(picture < 10, "the picture is in line {picture}");
}

#[test]
fn third_parties_are_listed() {
    let (lock, document) = (read("Cargo.lock"), read("THIRD-PARTY.md"));
    let value = |package: &str, key: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(&format!("{key} = \"")));
        line.map(|rest| rest.trim_end_matches('"').to_owned())
    };
    let locked: BTreeSet<(String, String)> = lock
        .split("[[package]]")
        .filter(|package| package.contains("\nsource = "))
        .filter_map(|package| Some((value(package, "name")?, value(package, "version")?)))
        .collect();
    let rows: BTreeSet<(String, String)> = document
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            Some((cells.next()?.trim_matches('*').to_owned(), cells.next()?.to_owned()))
        })
        .filter(|(name, _)| name != "crate")
        .collect();
    let odd: Vec<String> =
        locked.symmetric_difference(&rows).map(|(name, version)| format!("{name} {version}")).collect();
    nothing("THIRD-PARTY.md and Cargo.lock differ: run `python3 docs/third-party.py`", &odd);
}

#[test]
fn the_example_of_a_configuration_is_understood() {
    let formats = read("docs/formats.md");
    let example = formats.split("\n```toml\n").nth(1).and_then(|rest| rest.split("\n```").next());
    let example = example.expect("docs/formats.md has an example of scruple.toml");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("scruple.toml"), example).expect("a file");
    std::fs::write(folder.path().join("script.json"), r#"{"arms": {}}"#).expect("a file");
    let mut command = scruple(&["run", "--no-store", "--scripted", "script.json"]);
    command.current_dir(folder.path()).env("HOME", folder.path());
    let answer = text_of(&command.output().expect("scruple runs"));
    // Scruple reads the configuration before the script. The script is empty, so that its error shows that the
    // configuration was accepted.
    assert!(answer.contains("the script has no"), "{answer}");
}

/// The codes that the code gives to warnings.
fn codes_of_warnings() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (name, text) in ["crates/scruple/src", "crates/measure/src/load"].into_iter().flat_map(code) {
        let own = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
        if name.ends_with("tests.rs") || name.ends_with("fixture.rs") {
            continue;
        }
        for call in ["warn(", ".remark(", "Doubt::new(", "remarks.push(("] {
            let words = own.split(call).skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"'));
            let codes = words.filter_map(|rest| rest.split('"').next()).filter(|code| !code.contains(' '));
            found.extend(codes.map(str::to_owned));
        }
    }
    found
}

#[test]
fn every_code_of_a_warning_is_documented() {
    let (codes, formats) = (codes_of_warnings(), read("docs/formats.md"));
    assert!(codes.len() > 50, "only {} codes were found", codes.len());
    let missing =
        codes.into_iter().filter(|code| !formats.contains(&format!("`{code}`"))).collect::<Vec<_>>();
    nothing("docs/formats.md does not list these codes of warnings", &missing);
}

/// For each hunk of a mutation, the file and its lines before the edit.
fn edits(patch: &str) -> Vec<(String, Vec<&str>)> {
    let (mut file, mut found) = (String::new(), Vec::new());
    for line in patch.lines().skip_while(|line| !line.is_empty()) {
        if let Some(path) = line.strip_prefix("+++ b/") {
            file = path.to_owned();
        } else if line.starts_with("@@") {
            found.push((file.clone(), Vec::new()));
        } else if let (Some((_, old)), Some(text)) =
            (found.last_mut(), line.strip_prefix([' ', '-']).filter(|_| !line.starts_with("--- ")))
        {
            old.push(text);
        }
    }
    found
}

/// The files in which a test may stand, and its name, from `PACKAGE TARGET MODULES::NAME`.
fn place_of_test(words: &str) -> (Vec<String>, &str) {
    let mut words = words.split(' ');
    let mut next = || words.next().unwrap_or_default();
    let (package, target, path) = (next().trim_start_matches("scruple-"), next(), next());
    let (modules, test) = path.rsplit_once("::").unwrap_or(("", path));
    let modules = modules.trim_end_matches("tests").trim_end_matches("::").replace("::", "/");
    let folder = match target {
        "lib" | "bin" => format!("crates/{package}/src"),
        target => format!("crates/{package}/tests/{target}"),
    };
    let ends = [".rs", "/mod.rs", "/tests.rs", "/main.rs"];
    (ends.map(|end| format!("{folder}/{modules}{end}").replace("//", "/")).to_vec(), test)
}

#[test]
fn every_mutation_can_be_made_and_names_a_test() {
    let patches: Vec<(String, String)> =
        texts("tests/planted").into_iter().filter(|(name, _)| name.ends_with(".patch")).collect();
    assert!(patches.len() >= 40, "only {} mutations", patches.len());
    let code = code("crates");
    let mut wrong = Vec::new();
    for (name, patch) in &patches {
        let head = patch.lines().next().unwrap_or_default();
        let (files, test) = place_of_test(head.trim_start_matches("Turns red: "));
        let there =
            |(path, text): &(String, String)| files.contains(path) && text.contains(&format!("fn {test}("));
        if !code.iter().any(there) {
            wrong.push(format!("{name}: there is no test {test} in {}", files.join(" or ")));
        }
        for (file, old) in edits(patch) {
            let count = read(&file).matches(&old.join("\n")).count();
            if count != 1 {
                wrong.push(format!("{name}: the lines to change stand {count} times in {file}"));
            }
        }
    }
    nothing("update these in tests/planted", &wrong);
}
