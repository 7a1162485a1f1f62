//! The options that messages advise exist.

use super::{code, helps, nothing, options};
use std::collections::{BTreeMap, BTreeSet};

/// The folder of each command whose name differs from it.
const FOLDERS: [(&str, &str); 2] = [("command", "run"), ("run_page", "report")];

/// Options of other programs, a former one, and those that the help of a command does not list.
const OTHER: [&str; 16] = [
    "--cpu-prof",
    "--cpus",
    "--disable",
    "--git",
    "--help",
    "--last",
    "--massif",
    "--massif-out-file",
    "--no-store",
    "--release",
    "--requests",
    "--show-output",
    "--single-threaded",
    "--toolchain",
    "--version",
    "--windows",
];

/// The literals of a source file that are sentences: they have several words. Tests are left out.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    code.split('"').skip(1).step_by(2).filter(|literal| literal.contains(' '))
}

/// The options that a text names.
fn named(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .filter(|word| word.starts_with("--") && word[2..].starts_with(|c: char| c.is_ascii_lowercase()))
}

/// The command that a quoted command line begins with, as far as it is one of Scruple.
fn command_of(line: &str, helps: &BTreeMap<String, String>) -> Option<String> {
    let words = line.strip_prefix("scruple ").unwrap_or(line).split(' ');
    let longer = |found: &mut String, word: &str| {
        *found = format!("{found} {word}").trim().to_owned();
        Some(found.clone())
    };
    words.scan(String::new(), longer).take_while(|names| helps.contains_key(names)).last()
}

/// A command refuses an option that only another one has, so it must not advise it.
#[test]
fn every_option_that_a_message_names_exists() {
    let helps = helps();
    let of_command = |name: &str| -> BTreeSet<&str> {
        let is_part = |verb: &str| verb == name || verb.starts_with(&format!("{name} "));
        helps.iter().filter(|(verb, _)| is_part(verb)).flat_map(|(_, help)| options(help)).collect()
    };
    // The examples of a help text are command lines with words of other programs.
    let is_of_messages =
        |(file, _): &(String, String)| !file.ends_with("tests.rs") && !file.ends_with("args.rs");
    let (mut seen, mut unknown) = (0, Vec::new());
    for (file, text) in code("crates/scruple/src").into_iter().filter(is_of_messages) {
        let folder = file.strip_prefix("crates/scruple/src/").and_then(|rest| rest.split(['/', '.']).next());
        let folder = folder.unwrap_or_default();
        let verb = FOLDERS.iter().find(|(of, _)| *of == folder).map_or(folder, |(_, verb)| verb);
        // All commands open stores.
        let own = Some(verb).filter(|verb| helps.contains_key(*verb) && *verb != "store").map(of_command);
        for (place, part) in sentences(&text).flat_map(|sentence| sentence.split('`').enumerate()) {
            let known = match place % 2 {
                0 => own.clone(),
                _ => command_of(part, &helps).map(|command| of_command(&command)),
            };
            for option in named(part).filter(|option| !OTHER.contains(option)) {
                seen += 1;
                if known.as_ref().is_some_and(|known| !known.contains(option)) {
                    unknown.push(format!("{file}: {option} in ‘{part}’"));
                }
            }
        }
    }
    assert!(seen > 100, "only {seen} options were found in messages");
    nothing("messages that name options which their commands lack", &unknown);
}
