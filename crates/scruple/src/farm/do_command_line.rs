//! Runs a command line on this node.

use super::folder::Folder;
use super::send_command_line::configuration;
use super::unit::{CommandLine, UnitOutcome};
use crate::bench;
use crate::cli::{Cli, Verb};
use crate::command;
use crate::config::Config;
use crate::fault::Fault;
use crate::lock::Lock;
use crate::paths;
use clap::Parser;
use scruple_core::run::Run;

/// Runs the command line. Returns its readings, or `None` if a result exists in the meantime.
pub fn weighed(line: &CommandLine, folder: &Folder, name: &str) -> Result<Option<UnitOutcome>, Fault> {
    // Another unit may still measure on this node, for example one whose node was considered lost.
    let lock = paths::nodes_folder()?.join("unit.lock");
    let Some(_alone) = Lock::wait(&lock, || Ok(folder.result(name)?.is_some()))? else { return Ok(None) };
    std::env::set_current_dir(&line.folder).map_err(|error| {
        Fault::usage(format!(
            "cannot enter ‘{}’: {error}; all nodes must see the folder in which the command was typed",
            line.folder.display()
        ))
    })?;
    if configuration(&Config::find()?)? != line.configuration {
        return Err(Fault::usage(
            "scruple.toml is another one than when the command was typed: type it again",
        ));
    }
    let words = ["scruple"].into_iter().chain(line.words.iter().map(String::as_str));
    let cli = Cli::try_parse_from(words)
        .map_err(|error| Fault::usage(format!("{error}; use one Scruple on all machines")))?;
    let (run, failures) = match cli.verb {
        Verb::Run(mut args) => {
            (args.store.no_store, args.sampling.seed, args.results.json) = (true, Some(line.seed), true);
            let taken = command::verb::take(&args)?;
            taken.result?;
            (taken.run, Vec::new())
        }
        Verb::Bench(mut args) => {
            (args.store.no_store, args.seed, args.results.json) = (true, Some(line.seed), true);
            // The comparison with a stored run is made later, for the runs of all nodes together.
            args.baseline = None;
            let taken = bench::verb::take(&args)?;
            taken.result?;
            let failures = taken.suite.failures().into_iter();
            let failures = failures.map(|(name, why)| (name.to_owned(), why.to_owned())).collect();
            (taken.suite.run, failures)
        }
        _ => return Err(Fault::internal("a unit holds a command line that no farm does".to_owned())),
    };
    check_programs(line, &run)?;
    Ok(Some(UnitOutcome::Weighed { run: Box::new(run), failures }))
}

/// Checks that the programs on this node are those that existed when the user typed the command.
fn check_programs(line: &CommandLine, run: &Run) -> Result<(), Fault> {
    let here = &run.provenance.programs;
    let other = |(path, digest): &(&String, &String)| here.get(*path).is_none_or(|own| own != *digest);
    match line.programs.iter().find(other) {
        None => Ok(()),
        Some((path, _)) => Err(Fault::usage(format!(
            "‘{path}’ is another file on this node than where the command was typed: nodes must see the same programs"
        ))),
    }
}
