//! A program that observes other processes until it is interrupted, such as perf and strace.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time within which a program attaches, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time between two interruptions.
const AGAIN: Duration = Duration::from_millis(100);

/// A program that observes processes. It is ended with this value.
pub struct AttachedTool(Child);

impl AttachedTool {
    /// Starts the program, and waits until `attached` says that it observes; its argument is the process id of the
    /// program.
    ///
    /// # Errors
    /// Fails with `missing` if the program cannot be started, and with `refused` if it ended or never attached.
    pub fn start(
        command: &mut Command,
        attached: impl Fn(u32) -> bool,
        [missing, refused]: [&str; 2],
    ) -> Result<AttachedTool, String> {
        let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut tool = AttachedTool(silent.spawn().map_err(|_| missing.to_owned())?);
        let began = Instant::now();
        while !attached(tool.0.id()) {
            if tool.0.try_wait().is_ok_and(|ended| ended.is_some()) || began.elapsed() > PATIENCE {
                return Err(refused.to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // What follows its first event, up to which it is seen, takes milliseconds.
        std::thread::sleep(AGAIN);
        Ok(tool)
    }

    /// Interrupts the program and waits until it has written what it observed. A program whose parent ignored the signal
    /// ignores it as well until it has its own handler, so it is sent until the program ends.
    pub fn end(mut self) {
        while !matches!(self.0.try_wait(), Ok(Some(_)) | Err(_)) {
            // SAFETY: plain system call about our own child, which has not been waited for.
            unsafe { libc::kill(self.0.id() as i32, libc::SIGINT) };
            let sent = Instant::now();
            while sent.elapsed() < AGAIN && matches!(self.0.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

impl Drop for AttachedTool {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_misses_the_first_interruptions_is_ended_all_the_same() {
        // It begins with the signal ignored, as below `nohup COMMAND &`.
        let program = "import signal, time; time.sleep(0.5)\nsignal.signal(signal.SIGINT, signal.SIG_DFL); time.sleep(60)";
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' INT; exec python3 -c \"$0\"", program]);
        let began = Instant::now();
        AttachedTool::start(&mut command, |_| true, ["missing", "refused"]).expect("it starts").end();
        assert!(began.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn a_program_that_ends_before_it_has_attached_was_refused() {
        let tried = AttachedTool::start(&mut Command::new("true"), |_| false, ["missing", "refused"]);
        assert_eq!(tried.err().as_deref(), Some("refused"));
        let tried = AttachedTool::start(&mut Command::new("/nowhere"), |_| true, ["missing", "refused"]);
        assert_eq!(tried.err().as_deref(), Some("missing"));
    }
}
