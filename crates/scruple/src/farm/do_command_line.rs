//! Runs a command line on this node.

use super::folder::UnitFolder;
use super::send_command_line::configuration;
use super::this_node::{result, take, this_machine};
use super::unit_data::{CommandLine, UnitOutcome, UnitResult};
use crate::bench;
use crate::cli::{Cli, Verb};
use crate::command;
use crate::compare;
use crate::config::Config;
use crate::fault::{Code, Fault};
use crate::load;
use crate::load::remote_server::{IncomingRequests, RemoteHelper};
use crate::lock::Lock;
use crate::new_run;
use crate::paths;
use crate::render::export::ExportArgs;
use clap::Parser;
use scruple_core::provenance::Provenance;
use scruple_core::run::Terms;
use scruple_stats::sorting::SortedMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs the command line. Returns its readings, or `None` if a result exists in the meantime. The servers of a load are
/// on the node of `beside`, if there is one.
pub fn weighed(
    line: &CommandLine,
    folder: &UnitFolder,
    (name, node): (&str, &str),
    beside: Option<&RemoteHelper>,
) -> Result<Option<UnitResult>, Fault> {
    // Another unit may still measure on this node, for example one whose node was considered lost.
    let lock = paths::nodes_folder()?.join("unit.lock");
    let Some(_alone) = Lock::wait(&lock, || Ok(folder.result(name)?.is_some()))? else { return Ok(None) };
    let (run, failures, sections, server) = match parsed(line)? {
        Verb::Run(mut args) => {
            (args.store.no_store, args.sampling.seed, args.results.json) = (true, Some(line.seed), true);
            let taken = command::verb::take(&args)?;
            taken.result?;
            (taken.run, Vec::new(), Vec::new(), None)
        }
        Verb::Bench(mut args) => {
            (args.store.no_store, args.seed, args.results.json) = (true, Some(line.seed), true);
            // The comparison with a stored run is made later, for the runs of all nodes together.
            args.comparison.baseline = None;
            let taken = bench::verb::take(&args)?;
            taken.result?;
            let failures = taken.suite.failures().into_iter();
            let failures = failures.map(|(name, why)| (name.to_owned(), why.to_owned())).collect();
            (taken.suite.record.run, failures, Vec::new(), None)
        }
        Verb::Load(mut args) => {
            (args.store.no_store, args.amount.seed, args.results.json) = (true, Some(line.seed), true);
            // Files are written from the runs of all nodes together.
            args.results.export = ExportArgs::default();
            let done = load::on_farm::load_on_node(&args, beside)?;
            (done.run, done.failures, done.sections, done.server)
        }
        Verb::Compare(mut args) => {
            (args.store.no_store, args.seed, args.results.json) = (true, Some(line.seed), true);
            let Some(versions) = &line.versions else {
                return Err(Fault::internal("a unit that compares has no versions"));
            };
            let there = || folder.result(name).map(|result| result.is_some());
            let lock =
                |launchers: &[i32], flag: &Arc<AtomicBool>| take(&versions.place, launchers, flag, there);
            let outcome =
                |unit: &str| -> Result<UnitOutcome, Fault> { Ok(folder.needed_result(unit)?.found) };
            let first = line.number == 0;
            match compare::on_farm::weigh_on_node(&args, versions, first, lock, outcome)? {
                Some(run) => (run, Vec::new(), Vec::new(), None),
                None => return Ok(None),
            }
        }
        _ => return Err(Fault::internal("a unit holds a command line that a farm cannot run".to_owned())),
    };
    check_programs(line, &run.provenance.programs)?;
    let result = result(node, UnitOutcome::Weighed { run: Box::new(run), failures, sections });
    Ok(Some(match server {
        None => result,
        Some((server, machine)) => by_two_nodes(result, &server, machine),
    }))
}

/// Starts the servers of a load, and reads their accounts, for the node that loads them. Ends when the process there
/// ends, also while another unit measures on this node.
pub fn serve(line: &CommandLine, node: &str) -> Result<Code, Fault> {
    let requests = IncomingRequests::listen();
    let lock = paths::nodes_folder()?.join("unit.lock");
    let Some(_alone) = Lock::wait(&lock, || Ok(requests.have_ended()))? else { return Ok(Code::Fine) };
    let Verb::Load(args) = parsed(line)? else {
        return Err(Fault::internal("only a load has servers".to_owned()));
    };
    let programs = load::weighing::programs(&load::windows::sides(&args)?);
    let programs: Vec<&Path> = programs.iter().map(PathBuf::as_path).collect();
    let here = new_run::empty_run(None, None, Terms::default(), &programs).provenance.programs;
    check_programs(line, &here)?;
    load::remote_server::serve(&args, node, this_machine(), requests)
}

/// Names both nodes in a result. The measured machine is that of the servers. If the clients are on a machine of
/// another class, the class names both.
fn by_two_nodes(mut result: UnitResult, server: &str, machine: Provenance) -> UnitResult {
    let class = if result.machine.machine_class == machine.machine_class {
        machine.machine_class.clone()
    } else {
        format!("{} → {}", result.machine.machine_class, machine.machine_class)
    };
    result.node = format!("{} → {server}", result.node);
    result.machine = Provenance { machine_class: class, ..machine };
    result
}

/// Enters the folder of the command line, and parses its words.
fn parsed(line: &CommandLine) -> Result<Verb, Fault> {
    std::env::set_current_dir(&line.folder).map_err(|error| {
        Fault::usage(format!(
            "cannot enter ‘{}’: {error}; all nodes must see the folder in which the command was typed",
            line.folder.display()
        ))
    })?;
    if configuration(&Config::find()?)? != line.configuration {
        return Err(Fault::usage("scruple.toml has changed since the command was typed: type it again"));
    }
    let words = ["scruple"].into_iter().chain(line.words.iter().map(String::as_str));
    let cli = Cli::try_parse_from(words)
        .map_err(|error| Fault::usage(format!("{error}; use the same version of Scruple on all machines")))?;
    Ok(cli.verb)
}

/// Checks that the programs on this node are those that existed when the user typed the command.
fn check_programs(line: &CommandLine, here: &SortedMap<String, String>) -> Result<(), Fault> {
    let other = |(path, digest): &(&String, &String)| here.get(*path).is_none_or(|own| own != *digest);
    match line.programs.iter().find(other) {
        None => Ok(()),
        Some((path, _)) => Err(Fault::usage(format!(
            "‘{path}’ is not the same file on this node as where the command was typed: nodes must see the same programs"
        ))),
    }
}
