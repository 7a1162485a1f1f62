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
mod exit_code;
mod explain;
mod farm;
mod fault;
mod git;
mod history;
mod inspect;
mod interruption;
mod load;
mod lock;
mod new_run;
mod paths;
mod profile;
mod progress;
mod render;
mod run_page;
mod run_report;
mod secrets;
mod show;
mod store;
mod trend;
mod versions;

use crate::cli::Verb;
use crate::fault::{Code, Fault};
use scruple_core::harmless_text::for_terminal;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().take(2).collect();
    let old = words.get(1).and_then(|verb| verb.to_str());
    if let Some(sentence) = old.and_then(cli::former_names::of_command) {
        return ExitCode::from(complain(&Fault::usage(sentence)) as u8);
    }
    end_at_defects();
    // A write beyond the limit of file sizes (`ulimit -f`) is then an error that says what to do. Programs that Scruple
    // starts do not inherit this.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(fault) => return ExitCode::from(complain(&fault) as u8),
    };
    cli.color.choose();
    ExitCode::from(carry_out(cli.verb).unwrap_or_else(|fault| complain(&fault)) as u8)
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
        Verb::Report(args) => run_page::verb::report(&args),
        Verb::Trend(args) => trend::verb::trend(&args),
        Verb::Store { verb } => store::verb::store(&verb),
        Verb::Inspect { verb } => inspect::verb::inspect(&verb),
        Verb::Doctor(args) => doctor::doctor(&args),
        Verb::Unit(args) => farm::do_unit::unit(&args),
        Verb::Burn { rounds } => Ok(doctor::burn(rounds)),
        Verb::Completions { shell, man } => completions::completions(shell, man.as_deref()),
    }
}

/// Installs a panic hook: a defect in any thread ends the program with the exit code for defects, after its location
/// was printed.
fn end_at_defects() {
    let print_where = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |defect| {
        print_where(defect);
        let code = complain(&Fault::internal(
            "this is a defect of Scruple; what was measured is in the store: `scruple store list`",
        ));
        #[expect(clippy::exit, reason = "a panic of any thread ends the program")]
        std::process::exit(code as i32);
    }));
}

/// Prints an error and returns its exit code. A closed standard error does not change the code.
fn complain(fault: &Fault) -> Code {
    let _ = writeln!(anstream::stderr(), "{}", for_terminal(&render::output::fault_text(fault)));
    fault.code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "ends the process; the test below starts it"]
    fn defect_of_a_thread() {
        end_at_defects();
        let _ = std::thread::spawn(|| panic!("a defect")).join();
    }

    #[test]
    fn a_defect_of_any_thread_ends_with_the_exit_code_for_defects() {
        let tests = std::env::current_exe().expect("this program");
        let words = ["--exact", "tests::defect_of_a_thread", "--ignored", "--nocapture"];
        let output = std::process::Command::new(tests).args(words).output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(Code::Internal as i32), "{text}");
        assert!(text.contains("a defect of Scruple") && text.contains("main.rs"), "{text}");
    }
}
