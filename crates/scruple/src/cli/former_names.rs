//! Former names of commands and options. The error for each gives the present name.

use super::description;
use clap::Command;

/// Former names of commands, each with the present name.
const COMMANDS: [(&str, &str); 6] = [
    ("list", "store list"),
    ("import", "store import"),
    ("memory", "inspect memory"),
    ("leak", "inspect leak"),
    ("ghc", "inspect ghc"),
    ("metrics", "inspect metrics"),
];

/// Former options: the command, the former name, and the present one.
const OPTIONS: [(&str, &str, &str); 22] = [
    ("report", "--output", "--export"),
    ("report", "-o", "--export"),
    ("store export", "--output", "--export"),
    ("store export", "-o", "--export"),
    ("history", "--check", "--check-with"),
    ("history bisect", "--check", "--check-with"),
    ("history extend", "--check", "--check-with"),
    ("compare", "--check", "--check-with"),
    ("explain", "--check", "--check-with"),
    ("check", "--check", "--check-with"),
    ("history", "--chart", "--chart-style"),
    ("history bisect", "--chart", "--chart-style"),
    ("history extend", "--chart", "--chart-style"),
    ("history report", "--chart", "--chart-style"),
    ("inspect ghc pauses", "--log", "--from"),
    ("inspect ghc heap", "--top", "--most"),
    ("inspect ghc heap", "--svg", "--export"),
    ("inspect ghc profile", "--top", "--most"),
    ("inspect ghc profile", "--svg", "--export"),
    ("inspect ghc profile", "--by", "--sort"),
    ("load", "--warm-up", "--warmup"),
    ("check load", "--warm-up", "--warmup"),
];

/// Words that users expect, since another verb or another tool has them: the command, the word, and the option. Words
/// without a command stand for commands.
const EXPECTED: [(&str, &str, &str); 36] = [
    ("", "diff", "compare"),
    ("", "gate", "check"),
    ("", "version", "--version"),
    ("run", "--iterations", "--runs"),
    ("run", "--repeat", "--runs"),
    ("run", "--threshold", "--margin"),
    ("run", "--timeout", "--time-limit"),
    ("run", "--save-baseline", "--label"),
    ("run", "--benchmark-json", "--export"),
    ("run", "--csv", "--export"),
    ("bench", "--timeout", "--time-limit"),
    ("bench", "--save-baseline", "--label"),
    ("bench", "--count", "--processes"),
    ("bench", "--benchtime", "--budget"),
    ("bench", "--measurement-time", "--budget"),
    ("bench", "--benchmark-json", "--export"),
    ("report", "--html", "--export"),
    ("check", "--against", "--base"),
    ("check", "--baseline", "--base"),
    ("check", "--threshold", "--margin"),
    ("compare", "--against", "--base"),
    ("compare", "--baseline", "--base"),
    ("compare", "--threshold", "--margin"),
    ("report", "--format", "--export"),
    ("run", "--format", "--export"),
    ("show", "--format", "--export"),
    ("show", "--list", "scruple store list"),
    ("store", "show", "scruple show"),
    ("load", "--check", "--expect"),
    ("load", "--qps", "--rate"),
    ("load", "--rps", "--rate"),
    ("load", "--concurrency", "--connections"),
    ("load", "--users", "--connections"),
    ("load", "--vus", "--connections"),
    ("load", "--insecure", "--trust"),
    ("load", "-k", "--trust"),
];

/// Returns the option that a user of this command probably meant, if it has none of this name.
pub fn expected(verb: &str, option: &str) -> Option<&'static str> {
    EXPECTED.iter().find(|(of, word, _)| *of == verb && *word == option).map(|(_, _, present)| *present)
}

/// Returns the sentence that names the present command, if the first word after the program is a former name.
pub fn of_command(word: &str) -> Option<String> {
    let (old, new) = COMMANDS.iter().find(|(old, _)| *old == word)?;
    Some(format!("`scruple {old}` is now `scruple {new}`"))
}

/// Returns the sentence that names the present option, if `option` is a former one of this command.
pub fn of_option(verb: &str, option: &str) -> Option<String> {
    let (verb, old, new) = OPTIONS.iter().find(|(of, old, _)| *of == verb && *old == option)?;
    Some(format!("`scruple {verb} {old}` is now `scruple {verb} {new}`"))
}

/// Returns the command that words name: those that are commands, until the first that is none. Options between them are
/// passed over.
pub(super) fn verb_of<'a>(words: impl Iterator<Item = &'a str>) -> String {
    fn add<'a>(command: &Command, mut words: impl Iterator<Item = &'a str>, names: &mut Vec<String>) {
        if let Some(part) = words.next().and_then(|word| command.find_subcommand(word)) {
            names.push(part.get_name().to_owned());
            add(part, words, names);
        }
    }
    let mut names = Vec::new();
    let words: Vec<&str> = words.filter(|word| !word.starts_with('-')).collect();
    add(&description(), words.into_iter(), &mut names);
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(command: &Command, names: &str) -> Option<Command> {
        names.split(' ').try_fold(command.clone(), |at, name| at.find_subcommand(name).cloned())
    }

    #[test]
    fn former_names_lead_to_commands_that_exist() {
        let command = description();
        for (old, new) in COMMANDS {
            assert!(
                found(&command, new).is_some() && command.find_subcommand(old).is_none(),
                "{old} → {new}"
            );
        }
    }

    #[test]
    fn former_options_lead_to_options_that_exist() {
        let command = description();
        for (verb, old, new) in OPTIONS {
            let verb = found(&command, verb).expect("a command");
            let has = |name: &str| {
                verb.get_arguments().any(|argument| {
                    argument.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long))
                        || argument.get_short().is_some_and(|short| name == format!("-{short}"))
                })
            };
            assert!(has(new) && !has(old), "{}: {old} → {new}", verb.get_name());
        }
    }

    #[test]
    fn a_former_option_is_known_only_with_its_command() {
        let of = |words: &[&str], option| of_option(&verb_of(words.iter().copied()), option);
        let present = Some("`scruple report -o` is now `scruple report --export`".to_owned());
        assert_eq!(of(&["report", "-o", "page.html"], "-o"), present);
        assert_eq!(of(&["--color=never", "report", "last", "-o", "page.html"], "-o"), present);
        assert_eq!(of(&["run", "report", "-o", "page.html"], "-o"), None);
        assert_eq!(of(&["report", "-x"], "-x"), None);
    }

    /// Options that take a value with some commands and none with others: hyperfine's `--ignore-failure` takes codes.
    const BOTH: [&str; 1] = ["ignore-failure"];

    /// An option that takes a value with one command and none with another means two things.
    #[test]
    fn an_option_takes_a_value_with_every_command_or_with_none() {
        fn note(command: &Command, takes: &mut Vec<(String, bool, String)>) {
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let has_value = argument.get_action().takes_values();
                let verb = command.get_name().to_owned();
                takes.extend(argument.get_long().map(|long| (long.to_owned(), has_value, verb)));
            }
            command.get_subcommands().for_each(|part| note(part, takes));
        }
        let mut takes = Vec::new();
        note(&description(), &mut takes);
        for (long, has_value, verb) in &takes {
            let other = takes.iter().find(|(other, with, _)| other == long && with != has_value);
            assert!(other.is_none() || BOTH.contains(&long.as_str()), "--{long} of {verb} and of {other:?}");
        }
    }
}
