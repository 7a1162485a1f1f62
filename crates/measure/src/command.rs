//! Weighs a command: one launch in one pass, and its readings.

use crate::instrument::Instrument;
use crate::launcher::{Ending, Launch, LaunchOptions, LaunchResult, Shield};
use crate::launcher::{LaunchError, Launcher};
use crate::memory_map;
use crate::own_environment::inherited;
use crate::process_stat::why_absent;
use crate::processor_quota::ProcessorQuotas;
use crate::program::Program;
use crate::runtimes::TreePrograms;
use crate::streams::{Captured, Input, Output, OutputCapture, Streams};
use scruple_core::memory_map::MemoryCourse;
use scruple_core::metric::{Metric, Pass, Quality, metric};
use scruple_core::sample::Reading;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A command that is to be launched many times.
#[derive(Clone, Debug)]
pub struct Job {
    /// The name of its arm, for messages.
    pub name: String,
    /// The file to execute.
    pub program: Program,
    /// The argument vector; its first element is the program's name.
    pub argv: Vec<OsString>,
    /// Variables added to Scruple's own environment.
    pub env: Vec<(OsString, OsString)>,
    /// The environment in the memory and counting passes; `None` means Scruple's own.
    pub counted_env: Option<Vec<(OsString, OsString)>>,
    /// The working folder.
    pub folder: PathBuf,
    /// Standard input.
    pub input: Input,
    /// Standard output and error.
    pub output: Output,
    /// The time after which a launch is killed.
    pub time_limit: Option<Duration>,
    /// Whether addresses are fixed in the memory and counting passes.
    pub fixed_addresses: bool,
    /// The real-time scheduling of the timing pass, if it is wanted.
    pub shield: Option<Shield>,
}

/// The result of one launch.
#[derive(Clone, Debug)]
pub struct WeighedLaunch {
    /// The readings of the pass.
    pub readings: Vec<Reading>,
    /// How the program ended.
    pub ending: Ending,
    /// The program's standard output, if it was captured.
    pub captured: Option<Captured>,
    /// The lines of the program's standard error to show if it failed, if it was captured.
    pub error_output: String,
    /// Whether a process below the program exited with the code of a shell that does not find a command.
    pub command_missing: bool,
    /// The number of processes that outlived the program and were killed.
    pub left_behind: u32,
    /// Why real-time scheduling was refused, or ended early.
    pub shield_lost: Option<String>,
    /// The wall time from before the start to after the end.
    pub wall: Duration,
    /// The processor time of its processes, in user space and in the kernel.
    pub cpu: Duration,
    /// The peak resident size by the kernel's account, in bytes; see [`LaunchResult::resident`].
    pub resident: Option<u64>,
    /// Why nothing was launched; `None` if the program was.
    pub not_launched: Option<String>,
}

/// Why a launch gave no readings.
#[derive(Debug, thiserror::Error)]
pub enum WeighError {
    /// The program could not be run.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The program's input or output could not be opened.
    #[error("{0}")]
    Streams(#[from] io::Error),
    /// The script of readings has no reading for this launch.
    #[error("{0}")]
    Script(String),
}

/// Something that can weigh a job: this machine, or a script of readings.
pub trait Weigher {
    /// Launches the job once in this pass. All launches of one block use the same padding.
    fn weigh(
        &mut self,
        job: &Job,
        pass: Pass,
        block: u32,
        padding: usize,
    ) -> Result<WeighedLaunch, WeighError>;

    /// Launches the job once while its memory is read from outside. Other figures of such a launch are not used.
    fn watch(&mut self, job: &Job) -> Result<(WeighedLaunch, MemoryCourse), WeighError>;

    /// The number of launches of the counting pass after which every instrument has run once.
    fn counting_launches(&self) -> u32;

    /// The number of cores of a quota that has held up the launches noticeably; `None` if none has.
    fn held_up_by_quota(&self) -> Option<f64>;
}

/// The weigher that launches jobs on this machine.
pub struct Commands {
    launcher: Launcher,
    interrupted: Arc<AtomicBool>,
    instruments: Vec<Box<dyn Instrument>>,
    base_env: Vec<(OsString, OsString)>,
    /// The quotas of processor time before the first launch.
    quotas: ProcessorQuotas,
    /// The programs in traced process trees of a job, by the job's command line.
    seen: HashMap<(PathBuf, Vec<OsString>), TreePrograms>,
}

/// The variable whose length pads the environment.
pub(crate) const PADDING: &str = "SCRUPLE_PADDING";

impl Commands {
    /// Creates a weigher with these instruments for the counting pass.
    pub fn new(
        launcher: Launcher,
        interrupted: Arc<AtomicBool>,
        instruments: Vec<Box<dyn Instrument>>,
    ) -> Commands {
        let base_env = inherited().filter(|(name, _)| name != PADDING).collect();
        let quotas = ProcessorQuotas::read();
        Commands { launcher, interrupted, instruments, base_env, quotas, seen: HashMap::new() }
    }

    fn launch(&self, job: &Job, pass: Pass, padding: usize, streams: [std::os::fd::OwnedFd; 3]) -> Launch {
        let pinned = job.counted_env.as_ref().filter(|_| pass != Pass::Timing);
        let mut env = pinned.unwrap_or(&self.base_env).clone();
        for (name, value) in &job.env {
            env.retain(|(other, _)| other != name);
            env.push((name.clone(), value.clone()));
        }
        if pass == Pass::Timing {
            env.push((PADDING.into(), "x".repeat(padding).into()));
        }
        let steady = pass != Pass::Timing && job.fixed_addresses;
        Launch {
            path: job.program.path.clone(),
            argv: job.argv.clone(),
            env,
            folder: job.folder.clone(),
            stdio: streams,
            options: LaunchOptions {
                time_limit: job.time_limit,
                trace_memory: pass == Pass::Memory,
                read_counters: false,
                empty_programs: Vec::new(),
                writes_at_end: false,
                seen: match pass {
                    Pass::Counting => self.seen.get(&words(job)).cloned().unwrap_or_default(),
                    _ => TreePrograms::default(),
                },
                fixed_addresses: steady,
                shield: job.shield.clone().filter(|_| pass == Pass::Timing),
            },
        }
    }
}

impl Commands {
    /// Launches the job once with this instrument attached.
    pub fn weigh_with(
        &mut self,
        job: &Job,
        instrument: &mut dyn Instrument,
    ) -> Result<WeighedLaunch, WeighError> {
        self.weigh_once(job, Pass::Counting, 0, Some(instrument))
    }

    fn weigh_once(
        &mut self,
        job: &Job,
        pass: Pass,
        padding: usize,
        mut instrument: Option<&mut dyn Instrument>,
    ) -> Result<WeighedLaunch, WeighError> {
        let capture = match pass {
            Pass::Memory => OutputCapture::Digests,
            Pass::Counting => OutputCapture::ErrorOutput,
            _ => OutputCapture::Nothing,
        };
        let (stdio, yielded) = Streams::open(&job.input, &job.output, capture)?.split();
        let mut launch = self.launch(job, pass, padding, stdio);
        if let Some(instrument) = &mut instrument {
            let ready =
                instrument.available(&job.program.resolved()).and_then(|()| instrument.decorate(&mut launch));
            if let Err(why) = ready {
                let absent = absent(instrument.metrics(), &why).collect();
                return Ok(WeighedLaunch::not_launched(absent, why));
            }
        }
        let outcome = self.launcher.launch(&launch, &self.interrupted);
        drop(launch);
        let (captured, error_output) = yielded();
        let outcome = outcome?;
        if pass == Pass::Memory {
            self.seen.entry(words(job)).or_default().add(outcome.seen.clone());
        }
        let readings = match (pass, instrument) {
            (Pass::Timing, _) => timing(&outcome),
            (Pass::Memory, _) => memory(&outcome),
            (Pass::Counting, Some(instrument)) => instrument.read(&outcome),
            (Pass::Counting, None) | (Pass::Build, _) => Vec::new(),
        };
        Ok(WeighedLaunch {
            readings,
            ending: outcome.ending,
            captured,
            error_output,
            command_missing: outcome.command_missing,
            left_behind: outcome.left_behind,
            shield_lost: shield_lost(&outcome),
            wall: Duration::from_nanos(outcome.wall),
            cpu: Duration::from_nanos(outcome.user + outcome.system),
            resident: outcome.resident,
            not_launched: None,
        })
    }
}

/// The identity of a job: its program and its arguments.
fn words(job: &Job) -> (PathBuf, Vec<OsString>) {
    (job.program.path.clone(), job.argv.clone())
}

/// How long the watcher initially sleeps between two samples of memory.
const WATCHING: Duration = Duration::from_millis(1);

impl Weigher for Commands {
    fn weigh(
        &mut self,
        job: &Job,
        pass: Pass,
        block: u32,
        padding: usize,
    ) -> Result<WeighedLaunch, WeighError> {
        // Each instrument has its own launches, because instruments disturb each other: an allocation counter would
        // also count the allocations of another one.
        let mut instruments = std::mem::take(&mut self.instruments);
        let chosen = match pass {
            Pass::Counting if !instruments.is_empty() => {
                let index = block as usize % instruments.len();
                Some(&mut *instruments[index] as &mut dyn Instrument)
            }
            _ => None,
        };
        if chosen.as_ref().is_some_and(|instrument| instrument.reads_go())
            && !self.seen.contains_key(&words(job))
        {
            // Without a memory pass it is not known whether Go programs run. The launch below fails in the same way if
            // this one fails.
            let _ = self.weigh_once(job, Pass::Memory, padding, None);
        }
        let weighing = self.weigh_once(job, pass, padding, chosen);
        self.instruments = instruments;
        weighing
    }

    fn watch(&mut self, job: &Job) -> Result<(WeighedLaunch, MemoryCourse), WeighError> {
        let (stop, launcher) = (AtomicBool::new(false), self.launcher.pid());
        // A program with real-time priority would take the core from the watcher.
        let job = Job { shield: None, ..job.clone() };
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| memory_map::watch(launcher, WATCHING, &stop));
            let weighing = self.weigh_once(&job, Pass::Timing, 0, None);
            stop.store(true, Ordering::Relaxed);
            let course = watcher.join().unwrap_or_default();
            Ok((WeighedLaunch { readings: seen(&course), ..weighing? }, course))
        })
    }

    fn counting_launches(&self) -> u32 {
        self.instruments.len() as u32
    }

    fn held_up_by_quota(&self) -> Option<f64> {
        self.quotas.held_up_since()
    }
}

/// The readings that are taken from a memory course.
pub(crate) fn seen(course: &MemoryCourse) -> Vec<Reading> {
    let of = |key: &str, value: Option<u64>, lacking: &str| match value {
        Some(value) => Reading::of(declared(key), value as f64, "smaps, from outside"),
        None => Reading::absent(declared(key), lacking),
    };
    let short = "the program ended before its memory could be read";
    let divided = course.divided_peaks();
    let dirty = course.largest.is_some().then(|| course.total().private_dirty);
    vec![
        of("memory.private_dirty", dirty, short),
        of("memory.pss", divided.map(|divided| divided.proportional), short),
        of("memory.uss", divided.map(|divided| divided.unique), short),
    ]
}

impl WeighedLaunch {
    /// What the program wrote to stderr, as the last part of an error; empty if it wrote nothing.
    #[must_use]
    pub fn shown_error_output(&self) -> String {
        match self.error_output.as_str() {
            "" => String::new(),
            lines => format!("; its error output:{lines}"),
        }
    }

    /// A result for metrics for which nothing was launched.
    pub(crate) fn not_launched(readings: Vec<Reading>, why: String) -> WeighedLaunch {
        WeighedLaunch {
            readings,
            ending: Ending::Exited(0),
            captured: None,
            error_output: String::new(),
            command_missing: false,
            left_behind: 0,
            shield_lost: None,
            wall: Duration::ZERO,
            cpu: Duration::ZERO,
            resident: None,
            not_launched: Some(why),
        }
    }
}

fn shield_lost(outcome: &LaunchResult) -> Option<String> {
    match &outcome.shield_refused {
        Some(why) => Some(format!("the system refused real-time scheduling: {why}")),
        None if outcome.unshielded => {
            Some("a run exceeded the time limit of the shield and continued without it".to_owned())
        }
        None => None,
    }
}

fn absent<'a>(keys: &'a [&'a str], why: &'a str) -> impl Iterator<Item = Reading> + 'a {
    keys.iter().filter_map(|key| metric(key)).map(move |metric| Reading::absent(metric, why))
}

fn declared(key: &str) -> &'static Metric {
    metric(key).unwrap_or_else(|| unreachable!("{key} is in the table of metrics"))
}

fn timing(outcome: &LaunchResult) -> Vec<Reading> {
    let kernel = |key: &str, value: u64| Reading::of(declared(key), value as f64, "kernel accounting");
    let cpu = outcome.user + outcome.system;
    let mut readings = vec![
        Reading::of(declared("time.wall"), outcome.wall as f64, "monotonic clock"),
        kernel("time.cpu", cpu),
        kernel("time.user", outcome.user),
        kernel("time.sys", outcome.system),
        kernel("faults.minor", outcome.faults.0),
        kernel("faults.major", outcome.faults.1),
        kernel("switches.voluntary", outcome.switches.0),
        kernel("switches.involuntary", outcome.switches.1),
        kernel("io.read", outcome.blocks.0),
        kernel("io.write", outcome.blocks.1),
    ];
    match outcome.scheduled {
        Some((on_core, _)) if others_ran(on_core, cpu) => {
            readings.push(kernel("time.oncpu", cpu));
            readings.extend(absent(&["time.wait"], OTHERS_RAN));
        }
        Some((on_core, waiting)) => {
            readings.push(kernel("time.oncpu", on_core));
            readings.push(kernel("time.wait", waiting));
        }
        None => readings.extend(absent(
            &["time.oncpu", "time.wait"],
            why_absent("the kernel keeps no scheduler statistics"),
        )),
    }
    readings.push(contended(outcome));
    readings
}

/// The longest time that any thread of the program can have waited for a core. The kernel's figure is an average over
/// the cores in use; in the worst case the whole wait was on one thread's core, so it is multiplied by the number of
/// cores of the machine, of which this process may have only some.
fn contended(outcome: &LaunchResult) -> Reading {
    let metric = declared("time.contended");
    // SAFETY: plain call without arguments that matter.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as u64;
    match outcome.pressure {
        Some(pressure) => {
            let most = pressure.saturating_mul(cores).min(outcome.wall);
            Reading::of(metric, most as f64, "/proc/pressure/cpu")
        }
        None => Reading::absent(metric, "the kernel keeps no account of pressure on its cores"),
    }
}

const OTHERS_RAN: &str =
    "other threads or processes ran, and the kernel does not keep how long they waited for a core";

/// Whether threads or processes besides the first thread ran. `first_thread` and `all` come from the same clock of
/// the scheduler: in 2000 launches of programs with one thread, the account of all was never above the thread's own
/// time, and at most 2 µs below it because of rounding. One more thread, even an idle one, takes 16 µs.
fn others_ran(first_thread: u64, all: u64) -> bool {
    all > first_thread + first_thread / 200 + 5_000
}

fn memory(outcome: &LaunchResult) -> Vec<Reading> {
    let peak = match outcome.memory.iter().map(|process| process.peak).max() {
        Some(peak) => {
            Reading::of(declared("memory.peak"), peak as f64, "VmHWM at exit").with_quality(Quality::Noisy)
        }
        None => Reading::absent(
            declared("memory.peak"),
            why_absent(
                "the program could not be stopped at its exit (tracing is refused here, or it was killed)",
            ),
        ),
    };
    vec![peak, Reading::of(declared("memory.faults"), outcome.faults.0 as f64, "kernel accounting")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_may_have_waited_at_one_core_of_all_wherever_the_program_may_run() {
        let most = || {
            let ended = LaunchResult::ended(Ending::Exited(0));
            contended(&LaunchResult { pressure: Some(10), wall: u64::MAX, ..ended }).value
        };
        let before = most();
        let confined = std::thread::spawn(move || {
            // SAFETY: the set is as long as it is said to be, and only this thread is confined.
            unsafe {
                let mut one: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(usize::try_from(libc::sched_getcpu()).expect("a core"), &mut one);
                assert_eq!(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &one), 0);
            }
            assert_eq!(std::thread::available_parallelism().map(usize::from).ok(), Some(1));
            most()
        });
        assert_eq!(confined.join().expect("a thread"), before);
    }
}
