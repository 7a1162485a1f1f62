//! `scruple inspect memory -- COMMAND`: runs a program once, and shows where its memory was allocated.

use super::args::{MemoryArgs, SitesBy};
use super::calls::{self, remark_of_orphans};
use super::command_sites::CommandSites;
use super::report::{sites, sites_json, sites_page};
use super::single_launch::{self, ProgramFile};
use crate::fault::{Code, Fault};
use crate::paths::{self, WorkFolder};
use crate::profile;
use crate::progress::Progress;
use crate::render::export::{self, Export};
use crate::render::{output, page};
use scruple_code::Symbols;
use scruple_code::allocation_sites::{HeapAmounts, HeapSites};
use scruple_measure::calltree::{ChosenTool, CountDetail, Trees};
use scruple_measure::command::{Commands, Job};
use scruple_measure::heap::{SiteRecorder, SiteSampling, Unmeasurable, measurable};
use scruple_measure::program::Program;
use scruple_measure::runtimes::{Runtime, executed_by, recognise};
use scruple_stats::sorting;
use std::path::Path;

/// Runs the command, and prints its sites.
pub fn sites(args: &MemoryArgs) -> Result<Code, Fault> {
    let formats =
        [export::names(&sites_json::FORMATS), export::names(&sites_page::FORMATS), profile::HEAP.to_vec()];
    let exports = export::checked(args.export.clone(), &formats.concat())?;
    let launcher = single_launch::launcher()?;
    let job = single_launch::job(&args.command, args.time_limit.as_deref())?;
    let progress = Progress::new();
    let found = match args.sites {
        SitesBy::Sampled => {
            let mut commands = single_launch::commands(launcher, Vec::new())?;
            let sampling = SiteSampling { mean: args.sample_every.max(1), seed: args.seed };
            sampled(&mut commands, &job, sampling, args.ignore_failure)?
        }
        SitesBy::Exact => {
            progress.note("counting: a program runs many times slower meanwhile");
            let counter = counter()?;
            let mut commands = single_launch::commands(launcher, Vec::new())?;
            exact(&mut commands, &job, &counter, args.ignore_failure)?
        }
    };
    progress.clear();
    write(args, &found, &exports)
}

/// Returns the call tree, which alone counts sites exactly.
pub fn counter() -> Result<ChosenTool, Fault> {
    let found = ChosenTool::find(&paths::calltree_folder()?).map_err(|why| why.to_string());
    let found = found.and_then(|counter| match counter.refused.first() {
        Some((_, why)) => Err(why.to_string()),
        None => Ok(counter),
    });
    found.map_err(|why| {
        Fault::usage(format!(
            "cannot count allocation sites here: {why}. `scruple run` counts allocations and their peak without it, though \
             not where they are made"
        ))
    })
}

/// Runs the command under the call tree, and counts each of its allocations.
pub fn exact(
    commands: &mut Commands,
    job: &Job,
    counter: &ChosenTool,
    ignore_failure: bool,
) -> Result<CommandSites, Fault> {
    let work = WorkFolder::make()?;
    let mut trees = Trees::new(counter, work.path());
    trees.count(CountDetail::Sites);
    let aim = format!("where ‘{}’ allocates", job.name);
    let hint = (!ignore_failure).then_some("; -i shows its sites regardless");
    let file = ProgramFile::of(job);
    let (profiles, _) = calls::tree_of(commands, job, &mut trees, &aim, hint)?;
    file.require_same()?;
    let mut processes = profiles.heap_sites(&mut Symbols::new());
    if processes.is_empty() {
        return Err(Fault { code: Code::Unknown, message: format!("cannot tell {aim}: {}", why_none(job)) });
    }
    sorting::by_key(&mut processes, |sites| std::cmp::Reverse(sites.total.at_peak.bytes));
    let runtime = remark_of_runtimes(job, &processes);
    let remarks = runtime.into_iter().chain(remark_of_orphans(profiles.left_behind)).collect();
    Ok(CommandSites { title: job.name.clone(), processes, remarks })
}

/// Runs the command, and records some of its allocations.
pub fn sampled(
    commands: &mut Commands,
    job: &Job,
    sampling: SiteSampling,
    ignore_failure: bool,
) -> Result<CommandSites, Fault> {
    let work = WorkFolder::make()?;
    let mut recorder = SiteRecorder::new(work.path(), sampling);
    let cannot = |why: &str| format!("cannot record where ‘{}’ allocates: {why}", job.name);
    if let Err(why) = measurable(&job.program.resolved().path) {
        let hint = match why {
            Unmeasurable::Static(_) => "; --sites=exact counts it under valgrind if it has symbols",
            _ => "",
        };
        return Err(Fault::usage(format!("{}{hint}", cannot(&why.to_string()))));
    }
    let weighing = single_launch::ended(job, commands.weigh_with(job, &mut recorder))?;
    let fault = single_launch::failure(job, &weighing, "; -i shows its sites regardless");
    if let Some(fault) = fault.filter(|_| !ignore_failure) {
        return Err(fault);
    }
    let recorded = match recorder.take() {
        Some(Ok(recorded)) => recorded,
        Some(Err(error)) => return Err(Fault { code: Code::Unknown, message: cannot(&error.to_string()) }),
        None => return Err(Fault { code: Code::Unknown, message: cannot("it was not launched") }),
    };
    let mut processes = recorded.processes;
    processes.retain(|sites| sites.total != HeapAmounts::default());
    if processes.is_empty() {
        return Err(Fault { code: Code::Unknown, message: cannot("it allocated nothing with malloc") });
    }
    sorting::by_key(&mut processes, |sites| std::cmp::Reverse(sites.total.at_peak.bytes));
    let missing = recorded.missing.iter().map(|what| format!("Not counted: {what}."));
    let seed = format!("The samples are those of --seed={}.", sampling.seed);
    let seed = (sampling.mean > 1).then_some(seed);
    let remarks = seed.into_iter().chain(remark_of_runtimes(job, &processes)).chain(missing).collect();
    Ok(CommandSites { title: job.name.clone(), processes, remarks })
}

/// Says why no process has an allocator.
fn why_none(job: &Job) -> String {
    let file = job.program.resolved();
    match (runtime(job), measurable(&file.path)) {
        (Some(runtime), _) => format!(
            "its memory is that of the runtime ‘{}’, which does not use malloc; `scruple run` reads that runtime’s own \
             figures",
            runtime.word()
        ),
        (None, Err(Unmeasurable::Static(_))) => {
            "no allocator was seen: it is linked statically and has no symbols, which \
                                                 would say which of its functions is malloc"
                .to_owned()
        }
        (None, Err(why)) => format!("no allocator was seen: {why}"),
        (None, Ok(())) => "no allocator was seen: it called none whose name is known".to_owned(),
    }
}

fn runtime(job: &Job) -> Option<Runtime> {
    let of = |program: &Program| recognise(program).first().map(|found| found.runtime);
    of(&job.program).or_else(|| of(&executed_by(&job.argv, &job.folder)?))
}

/// Like [`remark_of_runtime`], but also looks at the programs that the command executed.
fn remark_of_runtimes(job: &Job, processes: &[HeapSites]) -> Option<String> {
    let of_process = |sites: &HeapSites| {
        let program = Program::find(sites.words.first()?.as_ref(), &job.folder).ok()?;
        recognise(&program).first().map(|found| only_malloc(found.runtime))
    };
    remark_of_runtime(job).or_else(|| processes.iter().find_map(of_process))
}

/// Says that a runtime has a heap of its own, which malloc does not see.
pub fn remark_of_runtime(job: &Job) -> Option<String> {
    runtime(job).map(only_malloc)
}

fn only_malloc(runtime: Runtime) -> String {
    format!(
        "Only malloc is counted: most objects of a program of the runtime ‘{}’ are in that runtime’s own heap; `scruple \
         run` reads its figures.",
        runtime.word()
    )
}

fn write(args: &MemoryArgs, found: &CommandSites, exports: &[Export]) -> Result<Code, Fault> {
    let aside = exports.iter().any(|export| export.path == Path::new("-"));
    let mut unwritten = None;
    for export in exports {
        let bytes = if let Some(text) = export::writer(&sites_json::FORMATS, &export.format) {
            text(found).into_bytes()
        } else if export::writer(&sites_page::FORMATS, &export.format).is_some() {
            let page = sites_page::page(found, args.most);
            export::writer(&page::FORMATS, &export.format)
                .map_or_else(Vec::new, |text| text(&page).into_bytes())
        } else {
            profile::heap_bytes(&export.format, &found.title, &found.processes)
        };
        unwritten = output::write_bytes(&export.path, &bytes).err().or(unwritten);
    }
    let text =
        if args.json { sites_json::text(found) } else { sites::text(found, args.most, output::width()) };
    output::print_beside(aside, &text)?;
    unwritten.map_or(Ok(Code::Fine), Err)
}
