//! Reads the processor's own counters, through `perf_event_open`.
#![expect(unsafe_code, reason = "a system call that no library offers")]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

/// The events that can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardwareEvent {
    /// Retired instructions.
    Instructions,
    /// Cycles of the core.
    Cycles,
    /// Mispredicted branches.
    BranchMisses,
    /// Accesses that missed the last level of cache.
    CacheMisses,
    /// Page faults. The kernel counts them, so they need no counter in the processor.
    PageFaults,
}

impl HardwareEvent {
    /// The kernel's numbers for the kind of counter, and for the counter itself.
    fn numbers(self) -> (u32, u64) {
        match self {
            HardwareEvent::Cycles => (0, 0),
            HardwareEvent::Instructions => (0, 1),
            HardwareEvent::CacheMisses => (0, 3),
            HardwareEvent::BranchMisses => (0, 5),
            HardwareEvent::PageFaults => (1, 2),
        }
    }
}

/// The first version of the kernel's `perf_event_attr`, which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    breakpoint_address: u64,
}

const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const ENABLE_ON_EXEC: u64 = 1 << 12;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// The read format: the times for which the counter was requested and was running are read with the value.
const TIMES: u64 = 1 | 2;

/// A counter that starts when a program is executed.
#[derive(Debug)]
pub struct Hardware(File);

impl Hardware {
    /// Whether the processor's counter of instructions can be used here.
    ///
    /// # Errors
    /// Says why it cannot be used.
    pub fn available() -> Result<(), String> {
        Hardware::attach(HardwareEvent::Instructions, 0).map(drop)
    }

    /// Counts an event in user space, in the next child of the process `parent` (0: of the calling thread) and in all
    /// of the child's descendants, from the child's `exec` on. Each launch needs a new counter, because the kernel
    /// starts a counter only once.
    ///
    /// # Errors
    /// Says why the event cannot be counted.
    pub fn attach(event: HardwareEvent, parent: i32) -> Result<Hardware, String> {
        let (kind, config) = event.numbers();
        let attributes = Attributes {
            kind,
            size: size_of::<Attributes>() as u32,
            config,
            read_format: TIMES,
            flags: DISABLED | INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | ENABLE_ON_EXEC,
            ..Attributes::default()
        };
        // SAFETY: the structure is of the size that it names and outlives the call.
        let file = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, parent, -1, -1, CLOSE_ON_EXEC)
        };
        if file < 0 {
            return Err(reason(&io::Error::last_os_error()));
        }
        // SAFETY: a descriptor just made, which nobody else owns.
        Ok(Hardware(unsafe { File::from_raw_fd(file as i32) }))
    }

    /// The number of events so far.
    ///
    /// # Errors
    /// Fails if the counter shared its register in the processor, so that its number covers only a part of the time,
    /// or if it never started.
    pub fn read(&self) -> Result<u64, String> {
        let mut bytes = [0; 24];
        let mut file = &self.0;
        file.read_exact(&mut bytes).map_err(|error| format!("the counter cannot be read: {error}"))?;
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        let (value, wanted, counted) = (word(0), word(8), word(16));
        match counted {
            0 => Err("no program was executed while it was counted".to_owned()),
            _ if counted < wanted => {
                Err("other users of the processor’s counters took turns with this one".to_owned())
            }
            _ => Ok(value),
        }
    }
}

fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "this machine has no such counter (virtual machines often hide it)".to_owned()
        }
        Some(libc::EACCES | libc::EPERM) => {
            "the kernel does not permit it: `sysctl kernel.perf_event_paranoid=2` or the capability CAP_PERFMON does"
                .to_owned()
        }
        Some(libc::ENOSYS) => "the kernel has no perf_event_open".to_owned(),
        _ => format!("perf_event_open failed: {error}"),
    }
}
