//! Guesses what the user meant if the parser does not know a word.

use super::{Cli, GROUPS, description, former_names, named_verb};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use scruple_core::harmless_text;
use scruple_core::nearest_word::{is_nearly, nearest};
use std::error::Error as _;
use std::fs::File;
use std::io::Read as _;
use std::num::ParseIntError;
use std::path::Path;

/// The advice for users who begin with the command that they want to weigh, as with other tools.
const WEIGHS_COMMANDS: &str =
    "`scruple run` weighs commands, such as `scruple run 'gzip -c file' 'zstd -c file'`";

/// Adds to an error of the parser what the user probably meant, where the parser does not know it.
pub(super) fn with_advice(mut error: clap::Error) -> clap::Error {
    let text_of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let unknown = text_of(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument);
    let expected = match text_of(ContextKind::InvalidSubcommand) {
        Some(word) => former_names::expected(&named_verb(), word),
        None => unknown.and_then(|option| former_names::expected(&named_verb(), option)),
    };
    let of_others = unknown.and_then(option_of_others);
    let advice = match error.kind() {
        _ if expected.is_some() => expected.map(|option| format!("‘{option}’ does this here")),
        ErrorKind::TooManyValues if text_of(ContextKind::InvalidArg) == Some("--json") => {
            Some("‘--export FILE.json’ writes JSON to a file".to_owned())
        }
        ErrorKind::ValueValidation if error.source().is_some_and(is_about_whole_numbers) => {
            Some("give a whole number, such as 30".to_owned())
        }
        _ if of_others.is_some() => of_others,
        _ if unknown.is_some_and(is_extra_store) => {
            unknown.map(|word| format!("‘--store {}’ names a store", harmless_text::plain(word)))
        }
        // The parser names only the first character and would pass the number to the command.
        _ if unknown
            .and_then(|word| word.strip_prefix('-'))
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.')) =>
        {
            Some("if this is the number of an option, it cannot be negative".to_owned())
        }
        // Words that begin with ‘-’ are unknown options.
        _ if unknown.is_some_and(|word| !word.starts_with('-'))
            && error.get(ContextKind::Usage).is_some_and(|usage| usage.to_string().contains("-- <")) =>
        {
            let more = match named_verb().as_str() {
                "check" => {
                    "‘--base BRANCH’ names a branch; ‘scruple check run A B’ gates one program against another; "
                }
                "history" => "subcommands such as ‘report’ stand before all options; ",
                _ => "",
            };
            Some(format!("{more}the words of a command stand after ‘--’"))
        }
        ErrorKind::InvalidSubcommand => {
            let first = std::env::args_os().nth(1);
            let is_first = |word: &&str| first.as_deref().is_some_and(|first| first == *word);
            let word = text_of(ContextKind::InvalidSubcommand).filter(is_first);
            let part = word.and_then(|word| Some(format!("‘{} {word}’ is a command", with_part(word)?)));
            part.or_else(|| {
                // The parser has suggestions only for longer words, and may have several.
                let verbs = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied());
                Some(match nearest(word?, verbs) {
                    Some(verb) => format!("the most similar command is ‘{verb}’"),
                    None => WEIGHS_COMMANDS.to_owned(),
                })
            })
        }
        // The parser would let an unknown option be a command.
        _ if !unknown.is_some_and(|option| is_suggested(&error, option)) => {
            unknown.filter(|word| word.starts_with('-')).map(|option| match named_verb().as_str() {
                "run" => format!(
                    "a command is one argument: quote it with its options, as in ‘PROGRAM {}’",
                    harmless_text::plain(option)
                ),
                verb => format!("`{} -h` lists the options", format!("scruple {verb}").trim_end()),
            })
        }
        _ => None,
    };
    if let Some(advice) = advice {
        error.remove(ContextKind::SuggestedSubcommand);
        // The usage of the parser contains the option that it suggests.
        if error.remove(ContextKind::SuggestedArg).is_some() {
            error.remove(ContextKind::Usage);
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.into()]));
    } else if error.kind() == ErrorKind::UnknownArgument {
        // The parser advises to write the option after `--`, where the words of a command stand.
        error.remove(ContextKind::Suggested);
    }
    error
}

/// Whether the parser suggests an option that users know and that is written nearly like this one.
fn is_suggested(error: &clap::Error, option: &str) -> bool {
    let Some(ContextValue::String(suggested)) = error.get(ContextKind::SuggestedArg) else { return false };
    let named = named_verb();
    let description = description();
    let verb = named.split(' ').try_fold(&description, |at, name| at.find_subcommand(name));
    let is_hidden = verb.unwrap_or(&description).get_arguments().any(|argument| {
        argument.is_hide_set()
            && argument.get_long().is_some_and(|long| suggested.strip_prefix("--") == Some(long))
    });
    !is_hidden && is_nearly(option, suggested)
}

/// Whether a value was refused because it is not a whole number, or not one of those that are possible.
fn is_about_whole_numbers(why: &(dyn std::error::Error + 'static)) -> bool {
    why.is::<ParseIntError>() || why.to_string().contains(" is not in ")
}

/// Whether a word looks like a store, and the command that was given takes one as an option.
fn is_extra_store(word: &str) -> bool {
    let named = named_verb();
    let description = description();
    let verb = named.split(' ').try_fold(&description, |at, name| at.find_subcommand(name));
    let takes_store =
        verb.is_some_and(|verb| verb.get_arguments().any(|argument| argument.get_long() == Some("store")));
    let is_address = ["postgres://", "postgresql://"].iter().any(|scheme| word.starts_with(scheme));
    takes_store
        && !word.starts_with('-')
        && (is_address || word.ends_with(".db") || is_database(Path::new(word)))
}

/// Whether a file begins as a database does. An empty one becomes a store when it is opened.
fn is_database(path: &Path) -> bool {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start));
    path.is_file() && read.is_ok() && (start.is_empty() || start == MAGIC)
}

/// Returns a sentence that names the commands with an option of exactly this name, if the given command has none.
fn option_of_others(option: &str) -> Option<String> {
    fn note(command: &Command, path: &str, long: &str, owners: &mut Vec<String>) {
        for part in command.get_subcommands() {
            let path = format!("{path} {}", part.get_name());
            if part
                .get_arguments()
                .any(|argument| !argument.is_hide_set() && argument.get_long() == Some(long))
            {
                owners.push(path.clone());
            }
            note(part, &path, long, owners);
        }
    }
    let long = option.strip_prefix("--")?;
    let mut owners = Vec::new();
    note(&description(), "scruple", long, &mut owners);
    let first = owners.first()?.clone();
    if std::env::args_os().nth(1).is_some_and(|word| word.to_string_lossy().starts_with(option)) {
        return Some(format!("‘{option}’ stands after the command: {first} {option}"));
    }
    if owners.len() > 3 {
        owners.truncate(2);
        owners.push("others".to_owned());
    }
    let last = owners.pop()?;
    let before = if owners.is_empty() { String::new() } else { format!("{} and ", owners.join(", ")) };
    Some(format!("‘{option}’ is an option of {before}{last}"))
}

/// The command that has a command of this name.
fn with_part(word: &str) -> Option<String> {
    let command = Cli::command();
    let mut verbs = command.get_subcommands().filter(|verb| verb.find_subcommand(word).is_some());
    verbs.next().map(|verb| verb.get_name().to_owned())
}
