//! Keeps signals of the terminal away from a process that Scruple only looks at.

use std::fs::File;
use std::os::fd::AsRawFd;

/// While this exists, Scruple is alone in the foreground process group of the terminal, so that Ctrl-C reaches no other
/// process.
///
/// A shell without job control, such as one that runs a script, starts all programs in one process group, and the terminal
/// sends SIGINT to all processes of that group.
#[derive(Debug)]
pub struct OwnGroup {
    terminal: File,
    before: i32,
    stop: libc::sighandler_t,
}

impl OwnGroup {
    /// Leaves the process group if this process is in it and the group is in the foreground of a terminal. `None` if it
    /// is not, or if this process leads the group and thus cannot leave it.
    pub fn apart_from(pid: i32) -> Option<OwnGroup> {
        let terminal = File::open("/dev/tty").ok()?;
        // SAFETY: plain calls about this process, one process and an open file.
        let (before, own) = unsafe { (libc::getpgrp(), libc::getpid()) };
        let is_shared = unsafe {
            libc::getpgid(pid) == before && libc::tcgetpgrp(terminal.as_raw_fd()) == before && before != own
        };
        // SAFETY: as above.
        if !is_shared || unsafe { libc::setpgid(0, 0) } != 0 {
            return None;
        }
        to_foreground(&terminal, own);
        // The shell waits for the old group: if only this process stopped, nobody would continue it.
        // SAFETY: the signal is ignored, and no handler is installed.
        let stop = unsafe { libc::signal(libc::SIGTSTP, libc::SIG_IGN) };
        Some(OwnGroup { terminal, before, stop })
    }
}

impl Drop for OwnGroup {
    fn drop(&mut self) {
        to_foreground(&self.terminal, self.before);
        // SAFETY: plain calls about this process; the handler is the one that it had.
        unsafe {
            libc::setpgid(0, self.before);
            libc::signal(libc::SIGTSTP, self.stop);
        }
    }
}

/// Makes a process group that of the terminal's foreground.
fn to_foreground(terminal: &File, group: i32) {
    // SAFETY: the sets are initialised before they are read, and the file is open. A process in the background would be
    // stopped by this call if it did not block the signal.
    unsafe {
        let (mut blocked, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&mut blocked);
        libc::sigaddset(&mut blocked, libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, &blocked, &mut before);
        libc::tcsetpgrp(terminal.as_raw_fd(), group);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
    }
}
