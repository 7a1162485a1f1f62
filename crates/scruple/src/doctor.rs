//! `scruple doctor`: says what this machine can measure, what it cannot and why, how noisy it is now, and what to
//! change.

use crate::fault::{Code, Fault};
use crate::interruption;
use crate::paths;
use crate::paths::WorkFolder;
use crate::render::output;
use clap::Args;
use scruple_core::default_margins;
use scruple_core::harmless_text::plain;
use scruple_core::metric::Pass;
use scruple_core::sample::Reading;
use scruple_core::unit::{Unit, quantity, relative_spread};
use scruple_core::verdict::{Comparison, compare_noisy};
use scruple_core::visit_order::VisitOrder;
use scruple_measure::command::{Commands, Job, WeighedLaunch, Weigher};
use scruple_measure::heap::{self, HeapInstrument};
use scruple_measure::host;
use scruple_measure::instructions::{Hardware, Instructions};
use scruple_measure::launcher::Launcher;
use scruple_measure::launcher::Shield;
use scruple_measure::load::cost::{instructions, sampled, syscalls};
use scruple_measure::program::{FileKind, Program};
use scruple_measure::runtimes::{self, Runtime, ghc};
use scruple_measure::streams::{Input, Output};
use scruple_stats::quantile::median;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time for which identical programs are compared.
const LISTEN: Duration = Duration::from_secs(5);

/// The number of rounds of the program that is compared with itself. They take a few milliseconds of arithmetic.
const ROUNDS: &str = "8000000";

/// What this machine can measure.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Skip the five seconds that measure how noisy the machine is now.
    #[arg(long)]
    pub quick: bool,
    /// The store (default: .scruple/store.db of the project, else one for the user).
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,
    /// A program to examine: shows which metrics can be measured for it, and why others cannot.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Prints the findings.
pub fn doctor(args: &DoctorArgs) -> Result<Code, Fault> {
    let launcher =
        Launcher::start().map_err(|error| Fault::internal(format!("cannot fork the launcher: {error}")))?;
    let interrupted = interruption::flag()?;
    let work = WorkFolder::make()?;
    let counter = Box::new(HeapInstrument::new(work.path()));
    let mut counting = Instructions::new(launcher.pid(), work.path(), &paths::calltree_folder()?);
    let mut weigher = Commands::new(launcher, interrupted.clone(), vec![counter]);
    let job = own_job()?;
    let mut text = machine(args.store.as_deref());
    text.push_str(&instruments(&mut weigher, &job));
    match counting.describe() {
        Ok(by) => line(&mut text, "instructions", &format!("by {by}")),
        Err(why) => line(&mut text, "instructions", &format!("no: {why}")),
    }
    text.push_str(&tools());
    if !args.command.is_empty() {
        text.push_str(&program(&args.command)?);
    }
    if !args.quick {
        output::print("Comparing a program with itself for five seconds …\n")?;
        text.push_str(&noise(&mut weigher, &job, &interrupted)?);
    }
    output::print(&text)?;
    Ok(Code::Fine)
}

/// Runs the arithmetic for doctor's own comparison. The compiler cannot predict its result.
pub fn burn(rounds: u64) -> Code {
    let mut state = std::hint::black_box(1_u64);
    for round in 0..rounds {
        state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round));
    }
    if state == 0 { Code::Internal } else { Code::Fine }
}

fn own_job() -> Result<Job, Fault> {
    let path = std::env::current_exe()
        .map_err(|error| Fault::internal(format!("cannot find this program: {error}")))?;
    Ok(Job {
        name: "scruple burn".to_owned(),
        program: Program { path },
        argv: ["scruple", "burn", ROUNDS].map(Into::into).to_vec(),
        env: Vec::new(),
        counted_env: None,
        folder: std::env::current_dir().unwrap_or_default(),
        input: Input::Null,
        output: Output::Null,
        time_limit: Some(Duration::from_secs(20)),
        fixed_addresses: false,
        shield: None,
    })
}

fn machine(store: Option<&Path>) -> String {
    let facts = host::provenance(Path::new("."));
    let mut text = String::from("The machine\n");
    line(&mut text, "processor", &format!("{}, {} cores", facts.cpu, facts.cores));
    line(&mut text, "system", &format!("{}, Linux {}", facts.os, facts.kernel));
    if let Some(hypervisor) = &facts.virtualized {
        line(
            &mut text,
            "virtual",
            &format!("{hypervisor}: neighbours may share its cores; cpu time suffers less than wall time"),
        );
    }
    let busy = facts.load > 0.5 * f64::from(facts.cores);
    let advice = if busy { ": busy; wall time will be noisy, cpu time less so" } else { "" };
    line(&mut text, "load", &format!("{:.1} over {} cores{advice}", facts.load, facts.cores));
    match host::governor().as_deref() {
        Some("performance") => line(&mut text, "governor", "performance"),
        Some(other) => line(
            &mut text,
            "governor",
            &format!("{other}: `cpupower frequency-set -g performance` makes times steadier"),
        ),
        None => line(&mut text, "governor", "not visible here"),
    }
    match host::boost() {
        Some(true) => line(
            &mut text,
            "boost",
            "on: frequency falls as the processor warms up; side-by-side comparison evens that out",
        ),
        Some(false) => line(&mut text, "boost", "off"),
        None => line(&mut text, "boost", "not visible here"),
    }
    match paths::store_address(store) {
        Ok(address) => line(&mut text, "store", &address.to_string()),
        Err(fault) => line(&mut text, "store", &format!("none: {fault}")),
    }
    text
}

fn instruments(weigher: &mut Commands, job: &Job) -> String {
    let mut text = String::from("What can be measured\n");
    let shielded =
        Job { shield: Some(Shield { cores: Vec::new(), cap: Duration::from_secs(10) }), ..job.clone() };
    let fixed = Job { fixed_addresses: true, ..job.clone() };
    // The memory pass is tested with another program. Scruple itself is a tracer, which cannot be traced, and it may be
    // linked statically, which hides its allocations.
    let empty = Program::find("true".as_ref(), &job.folder)
        .map_or_else(|_| job.clone(), |program| Job { program, argv: vec!["true".into()], ..job.clone() });
    let timing = weigher.weigh(job, Pass::Timing, 0, 0);
    let memory = weigher.weigh(&empty, Pass::Memory, 0, 0);
    finding(&mut text, "time, faults", &timing, "time.cpu");
    finding(&mut text, "run-queue wait", &timing, "time.wait");
    finding(&mut text, "peak memory", &memory, "memory.peak");
    finding(&mut text, "allocations", &weigher.weigh(&empty, Pass::Counting, 0, 0), "malloc.count");
    match weigher.weigh(&fixed, Pass::Memory, 0, 0) {
        Ok(_) => line(&mut text, "--no-aslr", "yes"),
        Err(error) => line(&mut text, "--no-aslr", &format!("no: {error}")),
    }
    match weigher.weigh(&shielded, Pass::Timing, 0, 0).map(|weighing| weighing.shield_lost) {
        Ok(None) => line(&mut text, "--shield", "yes: real-time priority is permitted"),
        Ok(Some(why)) => line(
            &mut text,
            "--shield",
            &format!("no: {why}; root, CAP_SYS_NICE or an rtprio limit permit it"),
        ),
        Err(error) => line(&mut text, "--shield", &format!("no: {error}")),
    }
    text
}

/// Lists the programs and counters that some options need, and whether they are available.
fn tools() -> String {
    let mut text = String::from("What some options need\n");
    let mut tool = |what: &str, found: Result<(), String>, gives: &str| match found {
        Ok(()) => line(&mut text, what, &format!("yes: {gives}")),
        Err(why) => line(&mut text, what, &format!("no: {why}; needed for: {gives}")),
    };
    tool("counters", Hardware::available(), "the processor’s own count of instructions and cycles");
    tool("perf", sampled::available(), "`load --with samples`");
    tool("strace", syscalls::available(), "`load --with syscalls`");
    tool("callgrind", instructions::available(), "`load --with instructions`");
    text
}

type WeighedOnce = Result<WeighedLaunch, scruple_measure::command::WeighError>;

fn finding(text: &mut String, what: &str, weighed: &WeighedOnce, key: &str) {
    let reading =
        |weighing: &WeighedLaunch| weighing.readings.iter().find(|reading| reading.key == key).cloned();
    let found = match weighed {
        Err(error) => format!("no: {error}"),
        Ok(weighing) => match reading(weighing) {
            Some(Reading { value: Ok(_), source, .. }) => format!("yes, by {source}"),
            Some(Reading { value: Err(why), .. }) => format!("no, because {why}"),
            None => "no".to_owned(),
        },
    };
    line(text, what, &found);
}

/// Lists which metrics of a program are available.
fn program(words: &[String]) -> Result<String, Fault> {
    let here = std::env::current_dir().unwrap_or_default();
    let program = Program::find(words[0].as_ref(), &here).map_err(Fault::usage)?;
    let mut text = format!("The program ‘{}’\n", plain(&words.join(" ")));
    line(&mut text, "file", &program.path.display().to_string());
    let kind = program
        .kind()
        .map_err(|error| Fault::usage(format!("cannot read ‘{}’: {error}", program.path.display())))?;
    if let FileKind::Script { .. } = kind {
        line(&mut text, "script, run by", &program.resolved().path.display().to_string());
    }
    if kind == FileKind::Other {
        line(
            &mut text,
            "kind",
            "neither a program nor a script with a #! line: run it with -S sh, or name its interpreter",
        );
    }
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let executed = runtimes::executed_by(&words, &here);
    if let Some(executed) = &executed {
        line(&mut text, "executes", &executed.path.display().to_string());
    }
    let behind = executed.is_some();
    let program = executed.unwrap_or(program);
    let is_static = matches!(program.kind(), Ok(FileKind::Elf { dynamic: false, .. }));
    match heap::measurable(&program.path) {
        Ok(()) => line(&mut text, "allocations", "can be counted"),
        Err(why) => line(&mut text, "allocations", &format!("cannot be counted, because {why}")),
    }
    let recognised = runtimes::recognise(&program);
    if recognised.is_empty() {
        line(&mut text, "runtime", "none that is known; processes that it starts are examined when it runs");
    }
    for found in recognised {
        let version = found.version.map_or(String::new(), |version| format!(" {version}"));
        let recognised = format!("{}{version}, recognised by {}", found.runtime.word(), found.by);
        if behind && is_static && found.runtime != Runtime::Go {
            let only = "a static program is asked only if it is the command itself";
            line(&mut text, "runtime", &format!("{recognised}; {only}"));
            continue;
        }
        match found.metrics.is_empty() {
            true => line(&mut text, "runtime", &format!("{recognised}; it reports nothing")),
            false => {
                line(&mut text, "runtime", &recognised);
                line(&mut text, "", &format!("asked: {}", found.asked));
                line(&mut text, "", &format!("tells {}", found.metrics.join(", ")));
            }
        }
        for part in found.lacking.chunk_by(|(_, one), (_, other)| one == other) {
            let keys: Vec<&str> = part.iter().map(|(key, _)| *key).collect();
            line(&mut text, "", &format!("not {}: {}", keys.join(", "), part[0].1));
        }
        if found.runtime == Runtime::Ghc {
            haskell_profiles(&mut text, &program);
        }
    }
    Ok(text)
}

/// Lists which profiles for `scruple inspect ghc` the program can write.
fn haskell_profiles(text: &mut String, program: &Program) {
    let profiles = ghc::profiles(program);
    let heap = match profiles.heap_by_type {
        true => "yes: run it with +RTS -hT, then `scruple inspect ghc heap`",
        false => "no: link it with -rtsopts",
    };
    let centres = match profiles.by_cost_centre {
        true => "yes: run it with +RTS -P or -hc, then `scruple inspect ghc profile` or `heap`",
        false => "no: build it with -prof -fprof-auto -rtsopts",
    };
    line(text, "", &format!("heap by closure type: {heap}"));
    line(text, "", &format!("profiles by cost centre: {centres}"));
}

/// Weighs one program against itself, and reports which differences could be detected now.
fn noise(weigher: &mut Commands, job: &Job, interrupted: &Arc<AtomicBool>) -> Result<String, Fault> {
    let plan = VisitOrder::new(2, 1);
    let mut wall = [Vec::new(), Vec::new()];
    let mut cpu = [Vec::new(), Vec::new()];
    let began = Instant::now();
    let mut block = 0;
    while began.elapsed() < LISTEN && !interrupted.load(Ordering::Relaxed) {
        for arm in plan.order(block) {
            let weighing = weigher
                .weigh(job, Pass::Timing, block, plan.padding(block))
                .map_err(|error| Fault::internal(format!("cannot run scruple itself: {error}")))?;
            let value = |key: &str| {
                weighing
                    .readings
                    .iter()
                    .find(|r| r.key == key)
                    .and_then(|r| r.value.clone().ok())
                    .unwrap_or(f64::NAN)
            };
            wall[arm].push(value("time.wall"));
            cpu[arm].push(value("time.cpu"));
        }
        block += 1;
    }
    let mut text = format!(
        "The noise now: a program of {} against itself, {block} blocks\n",
        quantity(median(&cpu[0]), &Unit::Nanoseconds)
    );
    for (name, readings) in [("wall time", &wall), ("cpu time", &cpu)] {
        let blocks = readings[0].len().min(readings[1].len());
        let comparison = compare_noisy(
            &readings[0][..blocks],
            &readings[1][..blocks],
            true,
            default_margins::COMMANDS,
            0.95,
        );
        line(&mut text, name, &resolution(&comparison));
    }
    Ok(text)
}

fn resolution(comparison: &Comparison) -> String {
    let Some(interval) = comparison.interval() else { return "too few blocks to tell".to_owned() };
    let half = (interval.high.ln() - interval.low.ln()) / 2.0;
    let at = |blocks: f64| relative_spread(half * (comparison.evidence.readings() as f64 / blocks).sqrt());
    format!(
        "identical programs differ by {}; differences of about {} show in 20 blocks, of {} in 80",
        scruple_core::unit::change_between(
            comparison.evidence.effect().unwrap_or(f64::NAN),
            interval.low,
            interval.high
        ),
        at(20.0),
        at(80.0)
    )
}

fn line(text: &mut String, what: &str, found: &str) {
    let _ = writeln!(text, "  {what:<15} {found}");
}
