//! Follows the processes of a tree, from the start of the program until the last of them has ended.
//!
//! `ru_maxrss` keeps the launcher's own high-water mark across exec, and a zombie has no memory left. A traced process stops
//! at its exit while its memory still exists, and the kernel's VmHWM then is the peak of the program's own address
//! space alone. Processes that the program creates inherit nothing from the launcher, so their `ru_maxrss` is equally
//! good, and exists even for those that were killed.

use super::foreign_tracers::Tracers;
use super::go_processes::GoProcesses;
use super::peak_memory::{BLUR, keep_peak, note_peak, own_mark};
use super::spawn;
use crate::launcher::{LaunchOptions, PeakMemory};
use crate::runtimes::ProgramFiles;
use std::collections::HashSet;
use std::ffi::c_int;
use std::{io, ptr};

const OPTIONS: c_int = libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_EXITKILL;

/// The code with which a shell exits if it does not find a command.
const NOT_FOUND: c_int = 127;

/// Traces a process tree, and keeps what is read from each process at its exit.
pub(super) struct Follower {
    main: libc::pid_t,
    attached: bool,
    known: HashSet<libc::pid_t>,
    /// The processes (not threads) that the program and its descendants created.
    made: HashSet<libc::pid_t>,
    /// Whether the first process has executed a second program.
    replaced: bool,
    tracers: Tracers,
    /// The launcher's high-water mark when the first process left its memory.
    mark: Option<u64>,
    /// Whether a process other than the first one exited with the code of a command that was not found.
    pub(super) command_missing: bool,
    pub(super) programs: ProgramFiles,
    pub(super) memory: Option<Vec<PeakMemory>>,
    pub(super) go: Option<GoProcesses>,
}

impl Follower {
    /// Creates a tracer of the tree that starts with this process; `None` if no requested figure needs tracing.
    pub(super) fn of(main: libc::pid_t, options: &LaunchOptions) -> Option<Follower> {
        (options.trace_memory || options.read_counters).then(|| Follower {
            main,
            attached: false,
            known: HashSet::from([main]),
            made: HashSet::new(),
            replaced: false,
            tracers: Tracers::default(),
            mark: None,
            command_missing: false,
            programs: ProgramFiles::default(),
            memory: options.trace_memory.then(Vec::new),
            go: options.read_counters.then(|| GoProcesses::with(&options.empty_programs)),
        })
    }

    /// Follows the tree until its first process has ended; that process is not reaped. `enforce_limits` is called when
    /// a wait is interrupted.
    pub(super) fn until_exit(&mut self, mut enforce_limits: impl FnMut()) {
        loop {
            if !wait_for_any(&mut enforce_limits) {
                return;
            }
            // SAFETY: an all-zero siginfo is valid. WNOWAIT leaves the state to be taken below, except for the end of
            // the first process, which the caller takes.
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
            if pid == self.main && matches!(code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED) {
                return;
            }
            let (status, usage) = spawn::reap(pid);
            match libc::WIFSTOPPED(status) {
                true => self.stopped(pid, status),
                false => self.reaped(pid, &usage),
            }
        }
    }

    /// Handles one stop of a traced process, and resumes it.
    pub(super) fn stopped(&mut self, pid: libc::pid_t, status: c_int) {
        let event = status >> 16;
        let begins = !self.attached && pid == self.main;
        if begins {
            self.mark = own_mark();
        }
        if (begins || event == libc::PTRACE_EVENT_EXEC) && self.tracers.has(pid) {
            self.attached = true;
            if let Some(go) = &mut self.go {
                go.is_let_go(pid);
            }
            ptrace(libc::PTRACE_DETACH, pid, 0);
            return;
        }
        if begins {
            self.attached = true;
            self.executes(pid);
            ptrace(libc::PTRACE_SETOPTIONS, pid, OPTIONS as usize);
            ptrace(libc::PTRACE_CONT, pid, 0);
            return;
        }
        let mut signal = 0;
        match event {
            libc::PTRACE_EVENT_EXIT => self.leaves(pid),
            libc::PTRACE_EVENT_EXEC => {
                self.replaced |= pid == self.main;
                self.executes(pid);
            }
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                self.made.extend(message(pid));
            }
            0 => {
                signal = libc::WSTOPSIG(status);
                let first = signal == libc::SIGSTOP && self.known.insert(pid);
                if first || is_group_stop(pid, signal) {
                    signal = 0;
                }
            }
            _ => {}
        }
        ptrace(libc::PTRACE_CONT, pid, signal as usize);
    }

    fn executes(&mut self, pid: libc::pid_t) {
        if self.memory.is_some() {
            self.programs.executes(pid, pid == self.main && !self.replaced);
        }
        if let Some(go) = &mut self.go {
            go.executes(pid);
        }
    }

    /// Handles that a thread or process is about to exit.
    fn leaves(&mut self, thread: libc::pid_t) {
        if let Some(go) = &mut self.go {
            go.leaves(thread);
        }
        if let Some(memory) = &mut self.memory {
            note_peak(thread, memory);
            let status = if self.made.contains(&thread) { message(thread) } else { None };
            self.command_missing |= status
                .is_some_and(|status| libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == NOT_FOUND);
        }
    }

    /// Handles that a process has ended and was reaped. Its account covers the children that it waited for, which
    /// belong to the tree too.
    pub(super) fn reaped(&mut self, pid: libc::pid_t, usage: &libc::rusage) {
        if let Some(go) = &mut self.go {
            go.ends(pid);
        }
        let Some(memory) = &mut self.memory else { return };
        let peak = usage.ru_maxrss as u64 * 1024;
        // The account of the first process contains the launcher's mark, because the process started in the
        // launcher's memory. A value above that mark is the process's own: memory that it held before it executed
        // another program.
        let is_own = match pid == self.main {
            true => self.replaced && self.mark.is_some_and(|mark| peak > mark + BLUR),
            false => self.made.contains(&pid),
        };
        if is_own {
            keep_peak(pid, peak, memory);
        }
        if pid == self.main && !memory.iter().any(|process| process.pid == pid) {
            // Without the first process the total would be incomplete.
            memory.clear();
        }
    }
}

/// What an event reports: the id of the new process, or the status of the one that exits.
fn message(pid: libc::pid_t) -> Option<libc::pid_t> {
    let mut number: libc::c_ulong = 0;
    // SAFETY: the kernel writes one long to where the pointer leads.
    let result =
        unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, pid, ptr::null_mut::<u8>(), &raw mut number) };
    (result == 0).then_some(number as libc::pid_t)
}

/// Whether the stop is a group stop: unlike a stop for a pending signal, it has no signal information.
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
    // SAFETY: the requests used here take no pointer. If the process was killed meanwhile the call fails, and the
    // next wait reports the end.
    unsafe { libc::ptrace(request, pid, ptr::null_mut::<u8>(), data) };
}

/// Blocks until some process changes its state; false if no process is left.
fn wait_for_any(enforce_limits: &mut impl FnMut()) -> bool {
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
        enforce_limits();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_signal_is_distinguished_from_the_stop_that_it_causes() {
        // SAFETY: the child calls nothing but ptrace, raise and _exit, which may be called after a fork.
        let pid = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                libc::ptrace(libc::PTRACE_TRACEME, 0, ptr::null_mut::<u8>(), ptr::null_mut::<u8>());
                libc::raise(libc::SIGSTOP);
                libc::_exit(0);
            }
            pid
        };
        let stopped = || {
            let mut status = 0;
            // SAFETY: the status is plain data that the kernel fills in.
            assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
            libc::WIFSTOPPED(status)
        };
        let mut seen = vec![stopped(), is_group_stop(pid, libc::SIGSTOP)];
        ptrace(libc::PTRACE_CONT, pid, libc::SIGSTOP as usize);
        seen.extend([stopped(), is_group_stop(pid, libc::SIGSTOP)]);
        ptrace(libc::PTRACE_CONT, pid, 0);
        seen.push(stopped());
        assert_eq!(seen, [true, false, true, true, false], "a signal, the stop that it brings, the end");
    }
}
