//! The controlling terminal. Programs that are started with their own process group are not in the terminal's
//! foreground: the kernel would stop one that asks the user there, such as ssh or sudo, and it would wait for ever.
//! Without a controlling terminal, it ends with an error.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Opens the controlling terminal of this process, if it has one.
pub(crate) fn controlling() -> Option<OwnedFd> {
    OpenOptions::new().read(true).write(true).open("/dev/tty").ok().map(OwnedFd::from)
}

/// Makes a program start in its own process group and without a controlling terminal.
pub(crate) fn separate(command: &mut Command) {
    command.process_group(0);
    if let Some(terminal) = controlling() {
        // SAFETY: between fork and exec only this one system call is made.
        unsafe {
            command.pre_exec(move || {
                libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY);
                Ok(())
            });
        }
    }
}
