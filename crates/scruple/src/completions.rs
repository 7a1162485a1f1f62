//! `scruple completions`: completion scripts for shells.

use crate::cli;
use crate::fault::{Code, Fault};
use crate::show::output;

/// Prints the script.
pub fn completions(shell: clap_complete::Shell) -> Result<Code, Fault> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::description(), "scruple", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Code::Fine)
}
