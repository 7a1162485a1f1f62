//! `scruple`: weighs programs.
#![forbid(unsafe_code)]

mod bench;
mod cli;
mod command;
mod compare;
mod completions;
mod config;
mod doctor;
mod fault;
mod git;
mod history;
mod import;
mod inspect;
mod load;
mod new_run;
mod place;
mod progress;
mod show;
mod store;

use crate::cli::{Cli, Verb};
use crate::fault::{Code, Fault};
use clap::Parser;
use scruple_core::plain::for_terminal;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.verb {
        Verb::Run(args) => command::verb::run(&args),
        Verb::Bench(args) => bench::verb::bench(&args),
        Verb::Load(args) => load::verb::load(&args),
        Verb::Compare(args) => compare::verb::compare(&args),
        Verb::History(args) => history::verb::history(&args),
        Verb::Show(args) => show::verb::show(&args),
        Verb::Import(args) => import::verb::import(&args),
        Verb::List(args) => store::list::list(&args),
        Verb::Memory(args) => inspect::memory::memory(&args),
        Verb::Leak(args) => inspect::leak::leak(&args),
        Verb::Ghc(args) => inspect::ghc::ghc(&args),
        Verb::Doctor(args) => doctor::doctor(&args),
        Verb::Metrics => inspect::metrics::metrics(),
        Verb::Burn { rounds } => Ok(doctor::burn(rounds)),
        Verb::Completions { shell } => completions::completions(shell),
    };
    ExitCode::from(result.unwrap_or_else(|fault| complain(&fault)) as u8)
}

/// Prints an error and hands back its exit code. A closed standard error changes nothing about the code.
fn complain(fault: &Fault) -> Code {
    let _ = writeln!(anstream::stderr(), "{}", for_terminal(&show::terminal::fault(fault)));
    fault.code
}
