//! `scruple inspect calls`: what one program does, function by function, counted exactly.

use super::args::CallsArgs;
use super::launch::{self, ended, failure};
use super::report::calls::{self, Counted};
use crate::fault::{Code, Fault};
use crate::paths::{self, WorkFolder};
use crate::profile::{self, CallProfile};
use crate::progress::Progress;
use crate::show::export::{self, Format};
use crate::show::output;
use scruple_measure::calltree::{Counter, Profiles, Side, SourceCosts, Symbols, Trees, ValgrindTool};
use scruple_measure::command::Job;
use std::path::Path;

/// The call tree, or why there is none here; `aim` is what cannot be done without it.
pub fn counter(aim: &str) -> Result<Counter, Fault> {
    let lacking = |why: String| {
        Fault::usage(format!(
            "cannot {aim} here: the call tree cannot be taken, because {why}. `scruple doctor` says what else counts; \
             `scruple run --metrics instructions` and `scruple compare` tell how much, though not where"
        ))
    };
    let counter = Counter::find(&paths::calltree_folder()).map_err(|why| lacking(why.to_string()))?;
    match counter.kind {
        ValgrindTool::Calltree => Ok(counter),
        _ => Err(lacking(counter.refused.first().map_or(String::new(), |(_, why)| why.to_string()))),
    }
}

/// Runs the command once under the call tree.
pub fn calls(args: &CallsArgs) -> Result<Code, Fault> {
    let formats: Vec<Format> = profile::FORMATS.into_iter().chain([Format::Json, Format::Svg]).collect();
    let exports = export::checked(args.export.clone(), &formats)?;
    let launcher = launch::launcher()?;
    let counter = counter("count calls")?;
    let job = launch::job(&args.command, args.time_limit.as_deref())?;
    let work = WorkFolder::make()?;
    let progress = Progress::new();
    progress.note("counting: a program runs many times slower meanwhile");
    let (profiles, fault) = take(&job, launcher, &counter, work.path())?;
    progress.clear();
    if let Some(fault) = fault.filter(|_| !args.ignore_failure) {
        return Err(Fault {
            message: format!("{}; -i shows what it did regardless", fault.message),
            ..fault
        });
    }
    let whole = CallProfile::of(&job.name, &Side::of(&profiles));
    let counted = Counted {
        profile: &whole,
        processes: profiles.processes.len(),
        heap_seen: profiles.heap().is_some(),
        lines: if args.lines { lines(&profiles) } else { SourceCosts::default() },
        sort: args.sort,
        most: args.most,
    };
    let aside = exports.iter().any(|export| export.path == Path::new("-"));
    let mut unwritten = None;
    for export in &exports {
        let bytes = match export.format {
            Format::Json => calls::json(&counted).into_bytes(),
            Format::Svg => calls::flame_graph(&counted).into_bytes(),
            format => profile::written(&whole, format),
        };
        unwritten = output::write_bytes(&export.path, &bytes).err().or(unwritten);
    }
    let text = if args.json { calls::json(&counted) } else { calls::text(&counted, output::width()) };
    output::print_beside(aside, &text)?;
    unwritten.map_or(Ok(Code::Fine), Err)
}

/// What the program did, and what is to be said of its end.
fn take(
    job: &Job,
    launcher: scruple_measure::launcher::Launcher,
    counter: &Counter,
    work: &Path,
) -> Result<(Profiles, Option<Fault>), Fault> {
    let mut trees = Trees::new(counter, work);
    let mut commands = launch::commands(launcher, Vec::new())?;
    let weighing = ended(job, commands.weigh_with(job, &mut trees))?;
    let why = match trees.take() {
        None => "it changes its user, or is a program for another processor".to_owned(),
        Some(Err(error)) => error.to_string(),
        Some(Ok(profiles)) if profiles.processes.is_empty() => {
            "all of its processes were killed, and their counts are lost".to_owned()
        }
        Some(Ok(profiles)) => return Ok((profiles, failure(job, &weighing))),
    };
    Err(Fault {
        code: Code::Unknown, message: format!("cannot count the calls of ‘{}’: {why}", job.name)
    })
}

/// The lines of all processes together.
fn lines(profiles: &Profiles) -> SourceCosts {
    let mut symbols = Symbols::new();
    let mut sum = SourceCosts::default();
    for costs in profiles.processes.iter().map(|process| process.source_costs(&mut symbols)) {
        sum.without_lines += costs.without_lines;
        for line in costs.lines {
            match sum.lines.iter_mut().find(|known| known.frame == line.frame) {
                Some(known) => known.instructions += line.instructions,
                None => sum.lines.push(line),
            }
        }
    }
    sum.lines.sort_by_key(|line| std::cmp::Reverse(line.instructions));
    sum
}
