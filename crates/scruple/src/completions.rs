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
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut of_verbs_for_users(), "scruple", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Code::Fine)
}

/// Returns the description of the command line without the verbs that Scruple starts itself. Scripts would offer them.
fn of_verbs_for_users() -> clap::Command {
    let all = cli::description();
    let shown = all.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned().collect::<Vec<_>>();
    let options = all.get_arguments().cloned().collect::<Vec<_>>();
    clap::Command::new("scruple").version(env!("CARGO_PKG_VERSION")).args(options).subcommands(shown)
}

/// Writes one page for the program and one for each command: `scruple.1`, `scruple-run.1` and so on.
fn pages(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(cli::description(), folder)
}
