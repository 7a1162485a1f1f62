//! `scruple run`: weighs commands side by side.

use super::args::{RunArgs, SamplingArgs};
use super::arms::{self, Prepared};
use super::hooks;
use super::passes::{CommandPasses, RunEffort};
use super::shell::Shell;
use crate::cli::shared_args::ResultArgs;
use crate::cli::values;
use crate::config::Config;
use crate::farm::Farm;
use crate::farm::send_command_line::{NodeChoice, NodeWork, hand_out};
use crate::fault::{Code, Fault, Stop};
use crate::interruption;
use crate::new_run::{self, Passes};
use crate::paths::{self, WorkFolder};
use crate::progress::Progress;
use crate::render::export::names;
use crate::render::metric_words::declared;
use crate::render::output;
use crate::run_report::formats::{self, FORMATS};
use crate::run_report::{Report, limit_applies, metrics_and_limits, terminal};
use crate::store::{RunWriter, open_store};
use scruple_core::limit::Limit;
use scruple_core::run::{Run, Terms};
use scruple_core::subject::Role;
use scruple_measure::command::{Commands, Weigher};
use scruple_measure::heap::{self, HeapInstrument};
use scruple_measure::instructions::{self, Instructions};
use scruple_measure::instrument::Instrument;
use scruple_measure::launcher::Launcher;
use scruple_measure::runtimes;
use scruple_measure::scripted::{Script, Scripted};
use scruple_measure::streams::Output;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Weighs the commands, stores the run, and prints the report.
pub fn run(args: &RunArgs) -> Result<Code, Fault> {
    args.results.export.checked(&names(&FORMATS))?;
    let config = Config::find()?;
    // A script plays the same readings on every machine.
    let farm = if args.scripted.is_none() { Farm::of(&config)? } else { None };
    conclude(take_here_or_on_farm(args, &config, farm)?, &args.results, &args.sampling.metrics)
}

/// The commands after their measurement.
pub struct FinishedCommands {
    /// The run with its readings.
    pub run: Run,
    /// The writer to which the run was written.
    pub writer: RunWriter,
    /// How the measurement ended.
    pub result: Result<(), Stop>,
    /// The limits of the command line and of the configuration.
    pub limits: Vec<Limit>,
}

/// Weighs the commands on this machine and stores the run.
pub fn take(args: &RunArgs) -> Result<FinishedCommands, Fault> {
    take_here_or_on_farm(args, &Config::find()?, None)
}

fn take_here_or_on_farm(
    args: &RunArgs,
    config: &Config,
    farm: Option<Farm>,
) -> Result<FinishedCommands, Fault> {
    metrics_and_limits::check_metrics(&args.sampling.metrics)?;
    let mut limits = metrics_and_limits::parse_limits(&args.sampling.limit, &[])?;
    if args.sampling.count_only {
        metrics_and_limits::check_no_times(&limits, &args.sampling.metrics)?;
    }
    if args.commands.is_empty() {
        limits.extend(config.limits(&[])?);
    }
    let effort = effort(&args.sampling)?;
    let margin = values::margin(&args.sampling.margin)?;
    let terms = Terms { margin, limits, ..Terms::default() };
    let source = ReadingSource::open(args.scripted.as_deref())?;
    let interrupted = interruption::flag()?;
    // A setup may build the programs and make the input. On a farm, the nodes run it.
    let arms = if farm.is_some() { Vec::new() } else { arms::surroundings(args, config)? };
    let (ready, result) = hooks::set_up(&arms, &interrupted);
    let taken = result
        .map_err(Fault::from)
        .and_then(|()| take_set_up(args, config, farm, source, effort, terms, &interrupted));
    // The cleanup runs after a failure or an interruption as well. The first error is reported.
    let cleaned = hooks::clean_up(&arms[..ready], &interrupted);
    let mut taken = taken?;
    taken.result = taken.result.and(cleaned);
    Ok(taken)
}

/// Weighs the commands once their setups have run.
fn take_set_up(
    args: &RunArgs,
    config: &Config,
    farm: Option<Farm>,
    source: ReadingSource,
    effort: RunEffort,
    terms: Terms,
    interrupted: &Arc<AtomicBool>,
) -> Result<FinishedCommands, Fault> {
    let limits = terms.limits.clone();
    let (mut prepared, shell) = arms::prepare(args, config)?;
    metrics_and_limits::check_limits(&limits, prepared.iter().map(|one| &one.arm))?;
    if prepared.len() == 1 && !args.commands.is_empty() {
        metrics_and_limits::refuse_changes(
            &limits,
            "there is only one command: write the one to compare with before it",
        )?;
    }
    if let Output::File(path) = &prepared[0].job.output {
        output::check_writable(path)?;
    }
    let work = WorkFolder::make()?;
    add_harness_arms(args, &shell, &source, &mut prepared, &work)?;
    let (seed, label) = (args.sampling.seed, args.store.label.as_deref());
    let mut run = match source {
        ReadingSource::Script(_) => new_run::scripted_run(seed, label, terms),
        ReadingSource::Machine(_) => {
            let subjects = prepared.iter().filter(|one| one.arm.role == Role::Subject);
            let programs: Vec<&Path> = subjects.map(|one| one.job.program.path.as_path()).collect();
            new_run::empty_run(seed, label, terms, &programs)
        }
    };
    if let Some(text) = shell.remark {
        run.warn("shell", text);
    }
    // A limit for all arms, or for one of this name, would be expected to hold here.
    let several = prepared.iter().filter(|one| one.arm.role == Role::Subject).count() > 1;
    let concerns = |limit: &Limit| {
        (several || !limit.bound.is_relative()) && prepared.iter().any(|one| limit_applies(limit, &one.arm))
    };
    let mut left_out = config.each_limit(&[]).flatten().filter(|_| !args.commands.is_empty());
    if let Some(limit) = left_out.find(concerns) {
        let text = "the limits of scruple.toml are for its own commands and are not checked here";
        run.warn("limits", format!("{text}; this option sets one: --limit '{}'", limit.text));
    }
    let store = open_store::for_run(&args.store)?;
    let progress = if args.results.json { Progress::hidden() } else { Progress::new() };
    if let Some(mut farm) = farm {
        let measured = hand_out(
            &mut farm,
            config,
            &NodeWork { head: &run, by: NodeChoice::EachNode, versions: None },
            &progress,
            interrupted,
        )?;
        let (run, writer) = measured.store_in(store)?;
        return Ok(FinishedCommands { run, writer, result: Ok(()), limits });
    }
    let mut asked = RequestedInstruments::by(&args.sampling.metrics, &limits);
    asked.requested |= args.sampling.requested_peak;
    let weigher = source.into_weigher(interrupted, &work, &asked)?;
    let ignored = arms::ignored(args.launch.ignore_failure.as_deref())?;
    let mut passes =
        CommandPasses::new(weigher, prepared, run, store, interrupted.clone(), ignored, progress)?;
    let result = passes.take(&effort);
    drop(work);
    let CommandPasses { run, writer, .. } = passes;
    Ok(FinishedCommands { run, writer, result, limits })
}

/// Prints the results, and returns the exit code.
pub fn conclude(taken: FinishedCommands, results: &ResultArgs, metrics: &[String]) -> Result<Code, Fault> {
    let FinishedCommands { run, writer, result, limits } = taken;
    let footer = writer
        .address(&run)
        .map(|place| terminal::stored(&run.id, &place, &paths::store_option(&place), output::width()));
    // A command that fails at its first launch leaves nothing to compare the others with: the error says enough.
    let anything = run.arms_of(Role::Subject).any(|arm| arm.sample("time.wall").is_some())
        || run.arms_of(Role::Subject).all(|arm| !arm.figures.is_empty());
    let mut code = Code::Fine;
    if anything || result.is_ok() {
        let report = Report::of(&run, metrics, &limits);
        code = formats::write(&report, results, footer.as_deref())?;
    }
    match result {
        Err(Stop::Failed(fault)) => return Err(fault),
        Err(Stop::Interrupted) => {
            let nothing = || Fault { code: Code::Interrupted, message: "interrupted".to_owned() };
            return Err(if anything { Fault::interrupted_run() } else { nothing() });
        }
        Ok(()) => {}
    }
    match &writer.fault {
        Some(error) => Err(error.after_measuring()),
        None => Ok(code),
    }
}

/// Determines how long and how often to measure.
pub fn effort(args: &SamplingArgs) -> Result<RunEffort, Fault> {
    let usage = |message: &str| Err(Fault::usage(message));
    if args.runs == Some(0) || args.max_runs == Some(0) {
        return usage("zero launches cannot be measured: give -r or -M at least 1");
    }
    if let (Some(least), Some(most)) = (args.min_runs, args.max_runs)
        && least > most
    {
        return usage("-m asks for more blocks than -M allows: raise -M or lower -m");
    }
    let at_most = args.max_runs.unwrap_or(320).max(args.min_runs.unwrap_or(0));
    Ok(RunEffort {
        warmup: args.warmup,
        launches: args.runs,
        at_least: args.min_runs,
        at_most,
        budget: values::duration(&args.budget)?,
        passes: Passes::asked(args.time_only, args.count_only),
        memory_map: args.memory_map,
        gate: args.gate.clone(),
    })
}

/// The source of readings: this machine, or a script.
pub enum ReadingSource {
    /// This machine, on which programs are launched.
    Machine(Launcher),
    /// A script with readings.
    Script(Script),
}

impl ReadingSource {
    /// Opens the script, or forks the launcher, while the process is still small and has one thread.
    pub fn open(scripted: Option<&Path>) -> Result<ReadingSource, Fault> {
        let Some(path) = scripted else {
            let launcher = Launcher::start();
            let failed = |error| Fault::internal(format!("cannot fork the launcher process: {error}"));
            return launcher.map(ReadingSource::Machine).map_err(failed);
        };
        let text = std::fs::read_to_string(path)
            .map_err(|error| Fault::usage(format!("cannot read the script ‘{}’: {error}", path.display())))?;
        serde_json::from_str(&text).map(ReadingSource::Script).map_err(|error| {
            Fault::usage(format!("‘{}’ is not a script of readings: {error}", path.display()))
        })
    }

    /// Returns the id of the process that launches programs, if there is one.
    pub fn pid(&self) -> Option<i32> {
        match self {
            ReadingSource::Machine(launcher) => Some(launcher.pid()),
            ReadingSource::Script(_) => None,
        }
    }

    /// Returns the weigher, with every requested instrument.
    pub fn into_weigher(
        self,
        interrupted: &Arc<AtomicBool>,
        work: &WorkFolder,
        asked: &RequestedInstruments,
    ) -> Result<Box<dyn Weigher>, Fault> {
        Ok(match self {
            ReadingSource::Script(script) => Box::new(Scripted::new(script)),
            ReadingSource::Machine(launcher) => {
                // Few given launches reach the first instruments only, so those that were asked for come first.
                let mut instruments: Vec<Box<dyn Instrument>> = Vec::new();
                if asked.instructions {
                    let cache = paths::calltree_folder()?;
                    instruments.push(Box::new(Instructions::new(launcher.pid(), work.path(), &cache)));
                }
                if asked.requested {
                    instruments.push(Box::new(HeapInstrument::of_requests(work.path())));
                }
                instruments.push(Box::new(HeapInstrument::new(work.path())));
                instruments.extend(runtimes::all());
                Box::new(Commands::new(launcher, interrupted.clone(), instruments))
            }
        })
    }
}

/// The instruments that are attached only on request, because each needs more launches.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestedInstruments {
    /// Whether to count instructions. A program takes several times as long while they are counted.
    pub instructions: bool,
    /// Whether to read live and peak memory in requested bytes.
    pub requested: bool,
}

impl RequestedInstruments {
    /// Returns the instruments that are needed for the metrics to show and to limit.
    pub fn by(metrics: &[String], limits: &[Limit]) -> RequestedInstruments {
        let limited = limits.iter().map(|limit| &limit.metric);
        let named: Vec<&String> = metrics.iter().chain(limited).filter(|pattern| *pattern != "all").collect();
        let any = |keys: &[&str], names: fn(&str, &str) -> bool| {
            keys.iter().any(|key| named.iter().any(|pattern| names(key, pattern)))
        };
        RequestedInstruments {
            instructions: any(instructions::KEYS, |key, pattern| declared(key).matches(pattern)),
            // The family ‘malloc’ does not request this instrument, because its other metrics are read in every run.
            requested: any(heap::REQUESTED_KEYS, |key, pattern| key == pattern),
        }
    }
}

/// Adds the arms that the harness needs: the twin of the reference, the shell, and the tare.
fn add_harness_arms(
    args: &RunArgs,
    shell: &Shell,
    source: &ReadingSource,
    prepared: &mut Vec<Prepared>,
    work: &WorkFolder,
) -> Result<(), Fault> {
    let model = prepared[0].job.clone();
    if args.launch.pin {
        pin(prepared, work)?;
    }
    if args.sampling.twin {
        prepared.push(arms::twin_arm(&prepared[0]));
    }
    prepared.extend(arms::shell_arm(shell, &model)?);
    let wants_tare = match source {
        ReadingSource::Machine(_) => true,
        ReadingSource::Script(script) => script.arms.contains_key(arms::TARE),
    };
    if wants_tare {
        prepared.push(arms::tare_arm(work.path(), &model)?);
    }
    Ok(())
}

/// Copies all programs in the same way to paths of the same length, so that the position on the disk and the length of
/// the name do not differ between them.
fn pin(prepared: &mut [Prepared], work: &WorkFolder) -> Result<(), Fault> {
    for (index, one) in prepared.iter_mut().enumerate() {
        let folder = work.path().join(format!("pinned-{index:03}"));
        let copy = folder.join("program");
        std::fs::create_dir_all(&folder).and_then(|()| std::fs::copy(&one.job.program.path, &copy)).map_err(
            |error| Fault::usage(format!("cannot copy ‘{}’: {error}", one.job.program.path.display())),
        )?;
        one.job.program.path = copy;
        one.job.argv[0] = "program".into();
    }
    Ok(())
}
