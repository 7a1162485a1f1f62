//! `scruple`: weighs programs.
#![forbid(unsafe_code)]

mod arms;
mod cli;
mod commands;
mod config;
mod fault;
mod git;
mod history;
mod import;
mod loading;
mod place;
mod progress;
mod report;
mod session;
mod store;
mod suite;

use clap::Parser;
use cli::{Cli, Verb};
use fault::{Code, Fault};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.verb {
        Verb::Run(args) => commands::run::run(&args),
        Verb::Bench(args) => commands::bench::bench(&args),
        Verb::Load(args) => commands::load::load(&args),
        Verb::Compare(args) => commands::compare::compare(&args),
        Verb::History(args) => commands::history::history(&args),
        Verb::Show(args) => commands::show::show(&args),
        Verb::Import(args) => commands::import::import(&args),
        Verb::List(args) => commands::list::list(&args),
        Verb::Memory(args) => commands::memory::memory(&args),
        Verb::Leak(args) => commands::leak::leak(&args),
        Verb::Ghc(args) => commands::ghc::ghc(&args),
        Verb::Doctor(args) => commands::doctor::doctor(&args),
        Verb::Metrics => commands::metrics::metrics(),
        Verb::Burn { rounds } => Ok(commands::doctor::burn(rounds)),
        Verb::Completions { shell } => commands::completions::completions(shell),
    };
    ExitCode::from(result.unwrap_or_else(|fault| complain(&fault)) as u8)
}

/// Prints an error and hands back its exit code. A closed standard error changes nothing about the code.
fn complain(fault: &Fault) -> Code {
    let _ = writeln!(anstream::stderr(), "{}", report::terminal::fault(fault));
    fault.code
}
