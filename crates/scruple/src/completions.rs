//! `scruple completions`: prints completion scripts for shells, and writes manual pages.

use crate::cli;
use crate::fault::{Code, Fault};
use crate::render::output;
use std::path::Path;

/// Prints the completion script, or writes the manual pages.
pub fn completions(shell: Option<clap_complete::Shell>, man: Option<&Path>) -> Result<Code, Fault> {
    if let Some(folder) = man {
        return pages(folder).map(|()| Code::Fine).map_err(|error| {
            Fault::usage(format!(
                "cannot write manual pages into ‘{}’: {error}; name a folder that can be written to",
                folder.display()
            ))
        });
    }
    let Some(shell) = shell else { return Ok(Code::Fine) };
    let mut offered = without_hidden(&cli::description()).version(env!("CARGO_PKG_VERSION"));
    if shell == clap_complete::Shell::Zsh {
        offered = verbs_as_first_word(offered);
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut offered, "scruple", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Code::Fine)
}

/// Returns the description of a command without the verbs that Scruple starts itself and without hidden options, at all
/// levels. Most scripts would offer them.
fn without_hidden(all: &clap::Command) -> clap::Command {
    let verbs = all.get_subcommands().filter(|verb| !verb.is_hide_set()).map(without_hidden);
    let shown = clap::Command::new(kept(all.get_name()))
        .args(all.get_arguments().filter(|option| !option.is_hide_set()))
        .subcommands(verbs)
        .disable_help_subcommand(all.is_disable_help_subcommand_set());
    match all.get_about() {
        Some(about) => shown.about(about.clone()),
        None => shown,
    }
}

/// Returns a name that lives until Scruple ends, as descriptions want it.
fn kept(name: &str) -> &'static str {
    name.to_owned().leak()
}

/// Returns the description with the verbs of a verb as values of its first word, where it takes words as well. Scripts
/// for zsh would offer them after all of these words.
fn verbs_as_first_word(command: clap::Command) -> clap::Command {
    let names = command.get_subcommands().map(|verb| kept(verb.get_name())).collect::<Vec<_>>();
    let first = command.get_positionals().next().filter(|_| !names.is_empty());
    let Some(first) = first.map(|word| word.get_id().clone()) else {
        return command.mut_subcommands(verbs_as_first_word);
    };
    let alone = clap::Command::new(kept(command.get_name()))
        .args(command.get_arguments())
        .about(command.get_about().cloned().unwrap_or_default());
    alone.mut_arg(first, |word| word.value_parser(clap::builder::PossibleValuesParser::new(names)))
}

/// Writes one page for the program and one for each command: `scruple.1`, `scruple-run.1` and so on.
fn pages(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(cli::description(), folder)
}
