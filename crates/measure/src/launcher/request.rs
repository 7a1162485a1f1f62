//! Requests to the launcher and its answers.

use super::ending::Ending;
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
    /// The argument vector; its first element is the program's own name.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The working folder.
    pub folder: PathBuf,
    /// Standard input, output and error.
    pub stdio: [OwnedFd; 3],
    /// How the program is run and watched.
    pub options: LaunchOptions,
}

/// How a program is run and watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchOptions {
    /// The time after which the process tree is killed.
    pub time_limit: Option<Duration>,
    /// Whether processes are stopped at their exits to read their peak memory.
    pub trace_memory: bool,
    /// Whether Go programs in the tree are stopped at their exits to read their counters from their memory.
    pub read_counters: bool,
    /// The programs that an earlier launch has shown in the tree.
    pub seen: crate::runtimes::TreePrograms,
    /// Programs from which the layout of stripped Go programs is learnt.
    pub empty_programs: Vec<crate::runtimes::go::EmptyProgram>,
    /// Whether the randomisation of addresses is disabled, so that memory figures repeat.
    pub fixed_addresses: bool,
    /// Whether processes write their figures when they are asked to end, for which they get more time.
    pub writes_at_end: bool,
    /// The real-time scheduling of the program, if it is wanted.
    pub shield: Option<Shield>,
}

impl LaunchOptions {
    /// How long a tree may take to end after SIGTERM before it is killed.
    pub(crate) fn grace(&self) -> Duration {
        match self.writes_at_end {
            // A busy machine may need seconds for the profile of a process that has just begun.
            true => Duration::from_secs(20),
            false => Duration::from_millis(300),
        }
    }
}

/// Real-time scheduling for the measured program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shield {
    /// The cores on which the program may run; all cores if empty.
    pub cores: Vec<usize>,
    /// The time after which the program returns to ordinary scheduling, so that it cannot starve the machine.
    pub cap: Duration,
}

/// What was measured of one program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchResult {
    /// Wall time from before the start to after the end, in nanoseconds.
    pub wall: u64,
    /// How the program ended.
    pub ending: Ending,
    /// Processor time in user mode, of the process and the children it waited for, in nanoseconds.
    pub user: u64,
    /// Processor time in the kernel, of the process and the children it waited for, in nanoseconds.
    pub system: u64,
    /// The first thread's time on a core, and its time ready but waiting for a core, in nanoseconds.
    pub scheduled: Option<(u64, u64)>,
    /// How long work on this machine waited for a core during the run, averaged over the cores, in nanoseconds;
    /// `None` if the kernel has no `/proc/pressure/cpu`.
    pub pressure: Option<u64>,
    /// Page faults without and with reading from a disk: minor and major.
    pub faults: (u64, u64),
    /// Voluntary and involuntary context switches.
    pub switches: (u64, u64),
    /// Bytes read from and written to block devices.
    pub blocks: (u64, u64),
    /// The peak resident size of the largest process that the program waited for, or of its own, by the kernel's
    /// account; `None` where that account cannot be distinguished from the launcher's own.
    pub resident: Option<u64>,
    /// The peak resident size of each process; empty unless memory was traced.
    pub memory: Vec<PeakMemory>,
    /// The programs that ran in the tree; none unless memory was traced.
    pub seen: crate::runtimes::TreePrograms,
    /// The counters of each Go process of the tree, if they were requested.
    pub exits: Vec<crate::runtimes::go::Exit>,
    /// Whether a process below the program exited with the code of a shell that does not find a command; false unless
    /// memory was traced.
    pub command_missing: bool,
    /// The number of processes that outlived the program and were ended.
    pub left_behind: u32,
    /// Whether the shield's cap was reached.
    pub unshielded: bool,
    /// Why real-time priority was refused.
    pub shield_refused: Option<String>,
}

impl LaunchResult {
    /// An outcome without figures: only the ending is known.
    pub fn ended(ending: Ending) -> LaunchResult {
        LaunchResult {
            wall: 0,
            ending,
            user: 0,
            system: 0,
            scheduled: None,
            pressure: None,
            faults: (0, 0),
            switches: (0, 0),
            blocks: (0, 0),
            resident: None,
            memory: Vec::new(),
            seen: crate::runtimes::TreePrograms::default(),
            exits: Vec::new(),
            command_missing: false,
            left_behind: 0,
            unshielded: false,
            shield_refused: None,
        }
    }
}

/// The peak memory of one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeakMemory {
    /// The process id.
    pub pid: i32,
    /// The peak resident size of the process in bytes.
    pub peak: u64,
}

/// The launcher's answer to a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaunchAnswer {
    /// The program ran.
    Ran(Box<LaunchResult>),
    /// The program could not be started.
    NotStarted {
        /// The step that failed, as a verb phrase.
        step: String,
        /// The system's error number.
        errno: i32,
    },
}
