//! The command line: the verbs, and how it is parsed.

pub mod colour;
mod error_advice;
pub mod former_names;
pub mod shared_args;
pub mod values;

use crate::bench::args::BenchArgs;
use crate::check::args::CheckArgs;
use crate::command::args::RunArgs;
use crate::compare::args::CompareArgs;
use crate::doctor::DoctorArgs;
use crate::explain::args::ExplainArgs;
use crate::farm::args::UnitArgs;
use crate::fault::Fault;
use crate::history::args::HistoryArgs;
use crate::inspect::args::InspectVerb;
use crate::load::args::LoadArgs;
use crate::run_page::args::ReportArgs;
use crate::show::args::ShowArgs;
use crate::store::args::StoreVerb;
use crate::trend::args::TrendArgs;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use colour::Colour;
use error_advice::with_advice;
use scruple_core::harmless_text;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The last line of the help text.
const EVERY_VERB: &str = "Every verb takes --color auto, always or never, and obeys NO_COLOR.";

/// Weighs programs side by side: time, allocations and memory, each difference with its interval.
///
/// Each comparison has one of four verdicts: different; same (within the margin); small (not zero, but possibly below
/// the margin); or can't tell (with an estimate of how many more blocks would decide).
#[derive(Debug, Parser)]
#[command(name = "scruple", version, max_term_width = 100, arg_required_else_help = true, after_help = EVERY_VERB)]
pub struct Cli {
    /// When to use colour.
    // The help of the program shows it once; repeating it for each verb would be noise.
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN", alias = "style", global = true, hide = true)]
    pub color: Colour,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    // Their descriptions are with their options.
    Run(Box<RunArgs>),
    Bench(Box<BenchArgs>),
    Load(Box<LoadArgs>),
    Compare(Box<CompareArgs>),
    Explain(Box<ExplainArgs>),
    Check(Box<CheckArgs>),
    History(Box<HistoryArgs>),
    /// Show a stored run in any format.
    Show(ShowArgs),
    Report(ReportArgs),
    Trend(TrendArgs),
    /// Manage stored runs: list, import, export, remove.
    Store {
        /// What to do with them.
        #[command(subcommand)]
        verb: StoreVerb,
    },
    /// Examine one program: memory, leaks, Haskell runtime; list metrics.
    Inspect {
        /// What to look at.
        #[command(subcommand)]
        verb: InspectVerb,
    },
    /// Show what this machine can measure, and how noisy it is now.
    Doctor(DoctorArgs),
    #[command(hide = true)]
    Unit(UnitArgs),
    /// Burn processor time, for doctor's own comparison.
    #[command(hide = true)]
    Burn {
        /// How many rounds.
        rounds: u64,
    },
    /// Print a completion script for a shell, or write manual pages.
    Completions {
        /// The shell.
        #[arg(required_unless_present = "man")]
        shell: Option<clap_complete::Shell>,
        /// Write manual pages into this folder instead, one for each verb.
        #[arg(long, value_name = "FOLDER", conflicts_with = "shell")]
        man: Option<PathBuf>,
    },
}

/// The groups in which `scruple --help` lists the commands.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Weigh", &["run", "bench", "load", "history"]),
    ("Judge", &["compare", "explain", "check"]),
    ("Look", &["show", "report", "trend"]),
    ("Keep", &["store"]),
    ("Machine", &["doctor", "inspect", "completions"]),
];

/// Returns the description of the command line, with the commands in groups.
pub fn description() -> Command {
    let command = Cli::command();
    let mut verbs = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(verbs, "{group}:");
        for verb in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(verbs, "  {:<12} {about}", verb.get_name());
        }
        verbs.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}Options:\n{{options}}{{after-help}}"
    ))
}

/// Parses the command line. For help, the version and usage errors, it prints a text and ends the process.
///
/// # Errors
/// A command is not UTF-8; an option has another name now; or a variable that replaces an option is empty, where the
/// parser would blame the option, which the user did not give.
pub fn parse() -> Result<Cli, Fault> {
    let parsed = description().try_get_matches();
    match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => Ok(cli),
        Err(error) if is_about_empty_store_variable(&error) => Err(Fault::usage(
            "the variable SCRUPLE_STORE is empty: unset it, or set it to a file or to postgres://USER@HOST/DATABASE",
        )),
        Err(error) if error.kind() == ErrorKind::InvalidUtf8 => Err(not_text()),
        Err(error) => match former_option(&error) {
            Some(sentence) => Err(Fault::usage(sentence)),
            None => in_one_line(with_advice(error)).exit(),
        },
    }
}

/// The error for words that must be text and are not. The parser does not say which of them it means.
fn not_text() -> Fault {
    let escaped = |word: OsString| {
        let parts = word.as_bytes().utf8_chunks();
        let escaped =
            |part: std::str::Utf8Chunk<'_>| format!("{}{}", part.valid(), part.invalid().escape_ascii());
        parts.map(escaped).collect::<String>()
    };
    let other: Vec<String> = std::env::args_os()
        .filter(|word| word.to_str().is_none())
        .map(|word| format!("‘{}’", escaped(word)))
        .collect();
    Fault::usage(format!(
        "{} is not UTF-8: names, patterns and commands must be, and only paths may have other bytes. \
         Write such a command into a file, and weigh ‘sh FILE’",
        other.join(" or ")
    ))
}

/// Returns a sentence that names the present option, if the parser does not know an option because it has another name
/// now.
fn former_option(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    former_names::of_option(&named_verb(), option)
}

/// The command that the words after the program name.
fn named_verb() -> String {
    let words: Vec<String> = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok()).collect();
    former_names::verb_of(words.iter().map(String::as_str))
}

/// Replaces line ends in the words that an error of the parser quotes.
fn in_one_line(mut error: clap::Error) -> clap::Error {
    let words = error.context().filter_map(|(kind, value)| match value {
        ContextValue::String(word) => Some((kind, harmless_text::plain(word))),
        _ => None,
    });
    for (kind, word) in words.collect::<Vec<_>>() {
        error.insert(kind, ContextValue::String(word));
    }
    error
}

/// Whether an error is about the variable of `--store`, and not about the option itself.
fn is_about_empty_store_variable(error: &clap::Error) -> bool {
    let about_store = matches!(
        error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(option)) if option.starts_with("--store")
    );
    let is_option = |word: OsString| word.to_str().is_some_and(|word| word.starts_with("--store"));
    about_store
        && std::env::var_os("SCRUPLE_STORE").is_some_and(|value| value.is_empty())
        && !std::env::args_os().any(is_option)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_every_verb_once_and_in_eighty_columns() {
        let mut command = description();
        let help = command.render_help().to_string();
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
        {
            let start = format!("  {} ", verb.get_name());
            let lines: Vec<&str> = help.lines().filter(|line| line.starts_with(&start)).collect();
            assert!(matches!(lines[..], [line] if line.len() <= 80), "{}: {lines:?}", verb.get_name());
        }
    }

    /// A flattened group of options lends its heading to the fields after it.
    #[test]
    fn arguments_stand_under_no_heading_of_options() {
        fn check(command: &Command) {
            for argument in command.get_positionals() {
                let heading = argument.get_help_heading();
                assert_eq!(heading, None, "{} of {}", argument.get_id(), command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&description());
    }
}
