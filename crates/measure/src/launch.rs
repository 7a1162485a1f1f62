//! Requests to the launcher and its answers.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

/// One program to start, weigh and wait for.
#[derive(Debug)]
pub struct Launch {
    /// The file to execute, already resolved, so that no search path is walked while the clock runs.
    pub path: PathBuf,
    /// The argument words; the first is the program's own name for itself.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The working folder.
    pub folder: PathBuf,
    /// Standard input, output and error.
    pub stdio: [OwnedFd; 3],
    /// Other options.
    pub options: Options,
}

/// How a program is run and watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// The process tree is killed when it takes longer.
    pub time_limit: Option<Duration>,
    /// Stop the process and its descendants at their exits, and read their peak memory there.
    pub trace_memory: bool,
    /// Look for Go programs in the tree, and read their counters from their memory, stopped at their exits.
    pub read_counters: bool,
    /// An earlier launch has shown that a Go program runs in the tree.
    pub runs_go: bool,
    /// Disable the randomisation of addresses, so that memory figures repeat.
    pub fixed_addresses: bool,
    /// Run with a real-time priority, on these cores if any are given.
    pub shield: Option<Shield>,
}

/// Real-time scheduling for the measured program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shield {
    /// The cores; none for all.
    pub cores: Vec<usize>,
    /// After this time the program returns to ordinary scheduling, so that it cannot starve the machine.
    pub cap: Duration,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
    /// It was killed because it exceeded its time limit.
    TimedOut,
    /// It was killed because the user interrupted.
    Interrupted,
}

/// The measurements of one program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// From before the start to after the end, in nanoseconds.
    pub wall: u64,
    /// How it ended.
    pub ending: Ending,
    /// Processor time in user mode, of the process and the children it waited for, in nanoseconds.
    pub user: u64,
    /// Processor time in the kernel, for the same processes.
    pub system: u64,
    /// Time on a core and time ready but waiting for one, of the first thread, in nanoseconds.
    pub scheduled: Option<(u64, u64)>,
    /// How long work waited for a core while it ran, averaged over the cores, in nanoseconds; none where the kernel
    /// keeps no account of pressure.
    pub pressure: Option<u64>,
    /// Page faults without and with reading from a disk.
    pub faults: (u64, u64),
    /// Voluntary and involuntary context switches.
    pub switches: (u64, u64),
    /// Bytes read from and written to block devices.
    pub blocks: (u64, u64),
    /// The peak resident size of each process, in bytes; only where it was traced.
    pub memory: Vec<PeakMemory>,
    /// Whether a Go program ran in the tree; only where its memory was traced.
    pub ran_go: bool,
    /// The counters of each Go process of the tree, where they were asked for.
    pub exits: Vec<crate::runtimes::go::Exit>,
    /// How many processes outlived the program.
    pub left_behind: u32,
    /// Whether the shield's cap was reached.
    pub unshielded: bool,
    /// Why real-time priority was refused.
    pub shield_refused: Option<String>,
}

impl Outcome {
    /// An end of which only the manner is known.
    pub fn ended(ending: Ending) -> Outcome {
        Outcome {
            wall: 0,
            ending,
            user: 0,
            system: 0,
            scheduled: None,
            pressure: None,
            faults: (0, 0),
            switches: (0, 0),
            blocks: (0, 0),
            memory: Vec::new(),
            ran_go: false,
            exits: Vec::new(),
            left_behind: 0,
            unshielded: false,
            shield_refused: None,
        }
    }
}

/// The peak memory of one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeakMemory {
    /// The process.
    pub pid: i32,
    /// Its peak resident size in bytes.
    pub peak: u64,
}

/// The answer to a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It ran.
    Ran(Box<Outcome>),
    /// It could not be started: the step that failed, and the error number.
    NotStarted {
        /// The step.
        step: String,
        /// The error number.
        errno: i32,
    },
}
