//! `scruple`: weighs programs.
#![forbid(unsafe_code)]

mod address;
mod bench;
mod check;
mod cli;
mod command;
mod compare;
mod completions;
mod config;
mod digest;
mod doctor;
mod explain;
mod farm;
mod fault;
mod git;
mod history;
mod inspect;
mod load;
mod new_run;
mod paths;
mod profile;
mod progress;
mod report;
mod show;
mod store;
mod trend;

use crate::cli::Verb;
use crate::fault::{Code, Fault};
use scruple_core::harmless_text::for_terminal;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().take(2).collect();
    let old = words.get(1).and_then(|verb| verb.to_str());
    if let Some((old, new)) = old.and_then(|old| Some((old, cli::renamed(old)?))) {
        let fault = Fault::usage(format!("`scruple {old}` is now `scruple {new}`"));
        return ExitCode::from(complain(&fault) as u8);
    }
    let cli = cli::parse();
    cli.color.choose();
    let result = guarded(|| carry_out(cli.verb));
    ExitCode::from(result.unwrap_or_else(|fault| complain(&fault)) as u8)
}

fn carry_out(verb: Verb) -> Result<Code, Fault> {
    match verb {
        Verb::Run(args) => command::verb::run(&args),
        Verb::Bench(args) => bench::verb::bench(&args),
        Verb::Load(args) => load::verb::load(&args),
        Verb::Check(args) => check::verb::check(*args),
        Verb::Compare(args) => compare::verb::compare(&args),
        Verb::Explain(args) => explain::verb::explain(&args),
        Verb::History(args) => history::verb::history(&args),
        Verb::Show(args) => show::verb::show(&args),
        Verb::Report(args) => report::verb::report(&args),
        Verb::Trend(args) => trend::verb::trend(&args),
        Verb::Store { verb } => store::verb::store(&verb),
        Verb::Inspect { verb } => inspect::verb::inspect(&verb),
        Verb::Doctor(args) => doctor::doctor(&args),
        Verb::Unit(args) => farm::work::unit(&args),
        Verb::Burn { rounds } => Ok(doctor::burn(rounds)),
        Verb::Completions { shell, man } => completions::completions(shell, man.as_deref()),
    }
}

/// A defect ends with the exit code that says so; where it is was printed already.
fn guarded(work: impl FnOnce() -> Result<Code, Fault>) -> Result<Code, Fault> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Fault::internal(
            "this is a defect of Scruple; what was measured is in the store: `scruple store list`",
        ))
    })
}

/// Prints an error and hands back its exit code. A closed standard error changes nothing about the code.
fn complain(fault: &Fault) -> Code {
    let _ = writeln!(anstream::stderr(), "{}", for_terminal(&show::terminal::fault(fault)));
    fault.code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_ends_with_the_exit_code_for_defects() {
        let none: Vec<Code> = Vec::new();
        let code = guarded(|| Ok(none[0])).map_err(|fault| fault.code);
        assert_eq!(code, Err(Code::Internal));
    }
}
