//! The launcher: a small process forked early, which starts measured programs and waits for them.
//!
//! A process that starts others pays for its own size: copying page tables, waking threads, and a high-water mark that
//! exec preserves. The launcher stays small and single-threaded, so the clock stops as soon as the kernel can wake it.
//! It is also the reaper of every orphan of a measured program, so that whole trees are accounted for and ended.

mod end_leftovers;
mod ending;
mod follow_processes;
mod foreign_tracers;
mod go_processes;
mod kernel_accounts;
mod launcher_process;
mod peak_memory;
mod request;
mod spawn;
mod system_call;
mod wire;

pub use ending::Ending;
pub use request::{Launch, LaunchAnswer, LaunchOptions, LaunchResult, PeakMemory, Shield};

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The handle on the launcher process.
#[derive(Debug)]
pub struct Launcher {
    socket: OwnedFd,
    pid: libc::pid_t,
}

/// Why a launch failed.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The program could not be started.
    #[error("cannot start ‘{}’: cannot {step}: {error}{}", program.display(), advice(program, error))]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// The step that failed.
        step: String,
        /// The system's error.
        error: io::Error,
    },
    /// The launcher process itself failed.
    #[error("the launcher process failed: {0}")]
    Launcher(#[from] io::Error),
}

impl Launcher {
    /// Forks the launcher. Call this early, in a process that has no other threads yet.
    pub fn start() -> io::Result<Launcher> {
        let mut ends = [0; 2];
        // SAFETY: `ends` is an array of two integers, as socketpair demands.
        check(unsafe {
            libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr())
        })?;
        // SAFETY: both descriptors were just made and are owned by nobody else.
        let (ours, theirs) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
        // SAFETY: the process has a single thread (the caller's promise), so the child may use all memory and locks.
        let parent = std::process::id() as libc::pid_t;
        match check(unsafe { libc::fork() })? {
            0 => {
                drop(ours);
                let code = i32::from(launcher_process::serve(theirs.as_fd(), parent).is_err());
                // SAFETY: ends the child without running the parent's exit handlers.
                unsafe { libc::_exit(code) }
            }
            pid => Ok(Launcher { socket: ours, pid }),
        }
    }

    /// The launcher's process id: every measured process is a descendant of it.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Runs one program to its end. When `interrupted` becomes true, the program's process tree is killed and the
    /// outcome's ending is `Interrupted`.
    pub fn launch(&mut self, launch: &Launch, interrupted: &AtomicBool) -> Result<LaunchResult, LaunchError> {
        wire::send_launch(self.socket.as_fd(), launch)?;
        let mut is_ending = false;
        while !wire::readable(self.socket.as_fd(), if is_ending { 50 } else { 500 })? {
            if interrupted.load(Ordering::Relaxed) {
                is_ending = true;
                // SAFETY: plain system call. The launcher treats this signal as the order to end the running program.
                // The signal is repeated until the answer comes, since one that arrives just before the launcher
                // blocks is not noticed.
                unsafe { libc::kill(self.pid, libc::SIGTERM) };
            }
        }
        match wire::receive_answer(self.socket.as_fd())? {
            LaunchAnswer::Ran(outcome) => Ok(*outcome),
            LaunchAnswer::NotStarted { step, errno } => Err(LaunchError::NotStarted {
                program: launch.path.clone(),
                step,
                error: io::Error::from_raw_os_error(errno),
            }),
        }
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // SAFETY: shutting down our own socket ends the launcher's loop; waiting for our own child is sound.
        unsafe {
            libc::shutdown(self.socket.as_raw_fd(), libc::SHUT_RDWR);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}

/// Advice for a program that was found but cannot be started.
fn advice(program: &Path, error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOEXEC) => {
            "; it is neither a program for this machine nor a script with a #! line: give it one, or name its interpreter"
        }
        Some(libc::ENOENT) if !program.exists() => {
            "; it was there before: find out what removes it, such as a previous launch"
        }
        Some(libc::ENOENT) => "; the interpreter or loader that it names is not there",
        Some(libc::E2BIG) => "; its arguments and environment are too long for the system",
        _ => "",
    }
}

/// Turns the C convention of -1 into an error.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
