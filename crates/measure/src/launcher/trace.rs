//! Peak memory, read at the exit stop.
//!
//! `ru_maxrss` keeps the launcher's own high-water mark across exec, and a zombie has no memory left to look at. A
//! traced process stops on its way out while its memory is still there, and the kernel's VmHWM then is the peak of the
//! program's own address space and of nothing else.

use super::server::Watch;
use super::tracer::Tracers;
use crate::launch::PeakMemory;
use crate::runtimes::go::{Exit, Layouts, counters};
use std::collections::HashSet;
use std::ffi::c_int;
use std::{fs, io, ptr};

const OPTIONS: c_int = libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_EXITKILL;

/// What was seen at the exits.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) memory: Vec<PeakMemory>,
    pub(super) exits: Vec<Exit>,
}

/// Follows the process and its descendants until the process has ended (it is left to be reaped).
pub(super) fn until_exit(main: libc::pid_t, watch: &mut Watch<'_>, counters: bool, seen: &mut Seen) {
    let mut layouts = counters.then(Layouts::default);
    let mut known = HashSet::from([main]);
    let mut executed = HashSet::from([main]);
    let mut tracers = Tracers::default();
    let mut attached = false;
    loop {
        if !wait_for_any(watch) {
            return;
        }
        // SAFETY: an all-zero siginfo is valid; WNOWAIT leaves the state to be taken below, except for the main
        // process's end, which the caller takes.
        let (pid, code) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::WNOHANG | libc::__WALL;
            if libc::waitid(libc::P_ALL, 0, &mut info, flags) != 0 {
                return;
            }
            (info.si_pid(), info.si_code)
        };
        if pid == 0 {
            continue;
        }
        if pid == main && matches!(code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED) {
            return;
        }
        let mut status = 0;
        // SAFETY: takes the state just seen.
        if unsafe { libc::waitpid(pid, &mut status, libc::__WALL) } != pid || !libc::WIFSTOPPED(status) {
            continue;
        }
        if !attached && pid == main {
            attached = true;
            if tracers.has(pid) {
                ptrace(libc::PTRACE_DETACH, pid, 0);
                continue;
            }
            ptrace(libc::PTRACE_SETOPTIONS, pid, OPTIONS as usize);
            ptrace(libc::PTRACE_CONT, pid, 0);
            continue;
        }
        if status >> 16 == libc::PTRACE_EVENT_EXEC && tracers.has(pid) {
            ptrace(libc::PTRACE_DETACH, pid, 0);
            continue;
        }
        let signal = stopped(pid, status, &mut known, &mut executed, seen, layouts.as_mut());
        ptrace(libc::PTRACE_CONT, pid, signal as usize);
    }
}

/// What to do about a stop: note what it tells, and say which signal to hand on.
fn stopped(
    pid: libc::pid_t,
    status: c_int,
    known: &mut HashSet<libc::pid_t>,
    executed: &mut HashSet<libc::pid_t>,
    seen: &mut Seen,
    layouts: Option<&mut Layouts>,
) -> c_int {
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        libc::PTRACE_EVENT_EXIT => {
            match layouts {
                Some(layouts) => note_counters(pid, executed, layouts, &mut seen.exits),
                None => note_peak(pid, &mut seen.memory),
            }
            0
        }
        libc::PTRACE_EVENT_EXEC => {
            executed.insert(pid);
            0
        }
        0 if signal == libc::SIGSTOP && known.insert(pid) => 0,
        0 if is_group_stop(pid, signal) => 0,
        0 => signal,
        _ => 0,
    }
}

/// Ends the tracing of a stopped process whose program has ended before it, and lets it go on: nobody would wake it from
/// its next stop, not even on its way out.
pub(super) fn let_go(pid: libc::pid_t, status: c_int) {
    let signal = libc::WSTOPSIG(status);
    let of_tracing = status >> 16 != 0 || matches!(signal, libc::SIGSTOP | libc::SIGTRAP);
    ptrace(libc::PTRACE_DETACH, pid, if of_tracing { 0 } else { signal as usize });
}

/// A group stop has no signal information; a signal on its way has.
fn is_group_stop(pid: libc::pid_t, signal: c_int) -> bool {
    if !matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) {
        return false;
    }
    // SAFETY: the kernel fills in an all-zero siginfo of the right type.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::ptrace(libc::PTRACE_GETSIGINFO, pid, ptr::null_mut::<u8>(), &raw mut info) < 0
    }
}

fn ptrace(request: libc::c_uint, pid: libc::pid_t, data: usize) {
    // SAFETY: requests used here take no pointer. A process that was killed meanwhile makes the call fail, which the
    // next wait then reports as its end.
    unsafe { libc::ptrace(request, pid, ptr::null_mut::<u8>(), data) };
}

/// Blocks until some process changes state; false when there is none left.
fn wait_for_any(watch: &mut Watch<'_>) -> bool {
    loop {
        // SAFETY: an all-zero siginfo is valid, and the kernel fills it in.
        let result = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::__WALL;
            libc::waitid(libc::P_ALL, 0, &mut info, flags)
        };
        if result == 0 {
            return true;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return false;
        }
        watch.look();
    }
}

/// Each thread stops once, and the last to stop sees the final counters; a thread's number is not its process's. A
/// copy that has executed nothing of its own (Go makes one to try the kernel out) holds its parent's counts.
fn note_counters(
    thread: libc::pid_t,
    executed: &HashSet<libc::pid_t>,
    layouts: &mut Layouts,
    exits: &mut Vec<Exit>,
) {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let pid =
        status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok()).unwrap_or(thread);
    if !executed.contains(&pid) {
        return;
    }
    let Some(mut exit) = counters::at_exit(thread, layouts) else { return };
    exit.pid = pid;
    match exits.iter_mut().find(|known| known.pid == exit.pid) {
        Some(known) if exit.counters.is_ok() => *known = exit,
        Some(_) => {}
        None => exits.push(exit),
    }
}

/// Keeps the highest mark of each process; a process with several threads stops once for each.
fn note_peak(thread: libc::pid_t, memory: &mut Vec<PeakMemory>) {
    let Ok(status) = fs::read_to_string(format!("/proc/{thread}/status")) else { return };
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .map(|rest| rest.trim_start_matches(':').trim())
    };
    let Some(peak) =
        field("VmHWM").and_then(|text| text.split_whitespace().next()).and_then(|kb| kb.parse::<u64>().ok())
    else {
        return;
    };
    let pid = field("Tgid").and_then(|text| text.parse().ok()).unwrap_or(thread);
    let peak = peak * 1024;
    match memory.iter_mut().find(|process| process.pid == pid) {
        Some(process) => process.peak = process.peak.max(peak),
        None => memory.push(PeakMemory { pid, name: field("Name").unwrap_or("").to_owned(), peak }),
    }
}
