//! `scruple inspect ghc`: shows pauses, heap profiles and cost-centre profiles of Haskell programs.

use super::args::{CostCentreCost, GhcArgs, GhcPart, HeapArgs, PausesArgs, ProfileArgs};
use super::report::pauses;
use super::report::pauses::ProgramPauses;
use super::report::profile;
use super::report::profile::CostCentreOrder;
use super::single_launch;
use crate::fault::{Code, Fault};
use crate::render::export::Export;
use crate::render::{export, json, output};
use scruple_measure::command::Job;
use scruple_measure::runtimes::ghc::log::{self, CollectionLog};
use scruple_measure::runtimes::ghc::{cost_centres, heap_profile};
use scruple_measure::runtimes::{self, Runtime, RuntimeReport, Runtimes};
use std::path::Path;

/// Runs one of the subcommands.
pub fn ghc(args: &GhcArgs) -> Result<Code, Fault> {
    match &args.part {
        GhcPart::Pauses(args) => pauses(args),
        GhcPart::Heap(args) => heap(args),
        GhcPart::Profile(args) => profile(args),
    }
}

fn pauses(args: &PausesArgs) -> Result<Code, Fault> {
    let (found, fault) = match &args.from {
        Some(path) => {
            let log = log::read(&read(path)?).ok_or_else(|| {
                Fault::usage(format!(
                    "‘{}’ contains no log of collections: +RTS -S writes one to standard error",
                    path.display()
                ))
            })?;
            (ProgramPauses::of(&path.display().to_string(), &[&log]), None)
        }
        None => logged(args)?,
    };
    let text = match args.json {
        true => json::document(&found),
        false => pauses::text(&found, output::width()),
    };
    output::print(&text)?;
    fault.map_or(Ok(Code::Fine), Err)
}

/// Runs the program while its runtime logs every collection. A program that fails has a log of the time before its
/// failure.
fn logged(args: &PausesArgs) -> Result<(ProgramPauses, Option<Fault>), Fault> {
    let launcher = single_launch::launcher()?;
    let job = single_launch::job(&args.command, args.time_limit.as_deref())?;
    let mut asked = Runtimes::new().logging_collections();
    let mut commands = single_launch::commands(launcher, Vec::new())?;
    let weighing = single_launch::ended(&job, commands.weigh_with(&job, &mut asked))?;
    let fault = single_launch::failure(&job, &weighing, "").filter(|_| !args.ignore_failure);
    let logs: Vec<&CollectionLog> = asked.logs().iter().map(|(_, log)| log).collect();
    match (logs.is_empty(), fault) {
        (true, Some(fault)) => Err(fault),
        (true, None) => Err(Fault::usage(format!(
            "the collections of ‘{}’ could not be logged: {}",
            job.name,
            why_not(&job, asked.reports())
        ))),
        (false, fault) => Ok((ProgramPauses::of(&job.name, &logs), fault)),
    }
}

/// Says why a program has logged nothing.
fn why_not(job: &Job, reports: &[RuntimeReport]) -> String {
    let recognised = runtimes::recognise(&job.program);
    let forbidden = recognised.iter().filter(|found| found.runtime == Runtime::Ghc).find_map(|found| {
        found.lacking.iter().find(|(key, _)| *key == "gc.pause_max").map(|(_, why)| why.clone())
    });
    let of_ghc: Vec<&RuntimeReport> =
        reports.iter().filter(|report| report.runtime == Runtime::Ghc).collect();
    match (forbidden, of_ghc.first().map(|report| &report.figures)) {
        (Some(why), _) => why,
        (None, None) => "Scruple recognised no Haskell runtime in any of its processes".to_owned(),
        (None, Some(Err(why))) => why.clone(),
        (None, Some(Ok(_))) => {
            "it does not take GHCRTS, or already asks its runtime for a report: link it with -rtsopts=some, and take \
             -s, -S and -t out of GHCRTS and of its own options"
                .to_owned()
        }
    }
}

fn heap(args: &HeapArgs) -> Result<Code, Fault> {
    let files = export::checked(args.export.clone(), &["svg"])?;
    let profile = heap_profile::read(&read(&args.file)?)
        .map_err(|why| Fault::usage(format!("‘{}’: {why}", args.file.display())))?;
    draw(files, || profile::heap_svg(&profile, args.most))?;
    let text = match args.json {
        true => json::document(&profile::heap_report(&profile, args.most)),
        false => profile::heap_text(&profile, args.most, output::width()),
    };
    output::print(&text)?;
    Ok(Code::Fine)
}

fn profile(args: &ProfileArgs) -> Result<Code, Fault> {
    let files = export::checked(args.export.clone(), &["svg"])?;
    let profile = cost_centres::read(&read(&args.file)?)
        .map_err(|why| Fault::usage(format!("‘{}’: {why}", args.file.display())))?;
    let title = args.file.file_name().unwrap_or_default().to_string_lossy();
    let by = match args.sort {
        CostCentreCost::Time => CostCentreOrder::Time,
        CostCentreCost::Bytes => CostCentreOrder::Bytes,
    };
    draw(files, || profile::svg(&title, &profile, by))?;
    let text = match args.json {
        true => json::document(&profile::report(&profile, by, args.most)),
        false => profile::text(&title, &profile, by, args.most, output::width()),
    };
    output::print(&text)?;
    Ok(Code::Fine)
}

/// Writes the picture into every requested file.
fn draw(files: Vec<Export>, picture: impl FnOnce() -> String) -> Result<(), Fault> {
    if files.is_empty() {
        return Ok(());
    }
    let picture = picture();
    files.iter().try_for_each(|file| output::write_bytes(&file.path, picture.as_bytes()))
}

fn read(path: &Path) -> Result<String, Fault> {
    match std::fs::read(path) {
        // The compiler writes UTF-8, but names in a profile may be truncated within a character.
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => Err(Fault::usage(format!("cannot read ‘{}’: {error}", path.display()))),
    }
}
