//! A program that observes other processes until it is interrupted, such as perf and strace.

use super::server_process::send;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time within which a program attaches, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time between two interruptions.
const AGAIN: Duration = Duration::from_millis(100);

/// The time between two looks at the program.
const POLL: Duration = Duration::from_millis(5);

/// A program that observes processes. It is ended with this value.
pub struct AttachedTool(Child);

impl AttachedTool {
    /// Starts the program, and waits until `attached` says that it observes; its argument is the process id of the
    /// program.
    ///
    /// # Errors
    /// Fails with `missing` if the program cannot be started, with `refused` if it ended, and says so if it does not
    /// attach.
    pub fn start(
        command: &mut Command,
        attached: impl Fn(u32) -> bool,
        [missing, refused]: [&str; 2],
    ) -> Result<AttachedTool, String> {
        let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut tool = AttachedTool(silent.spawn().map_err(|_| missing.to_owned())?);
        let began = Instant::now();
        while !attached(tool.0.id()) {
            if !tool.runs() {
                return Err(refused.to_owned());
            }
            if began.elapsed() > PATIENCE {
                let (name, seconds) = (command.get_program().display(), PATIENCE.as_secs());
                return Err(format!("{name} did not attach to the server within {seconds} s"));
            }
            std::thread::sleep(POLL);
        }
        // Its work between attaching and observing takes milliseconds.
        std::thread::sleep(AGAIN);
        Ok(tool)
    }

    /// Interrupts the program and waits until it has written what it observed. A program whose parent ignored the signal
    /// ignores it as well until it has its own handler, so it is sent until the program ends.
    pub fn end(mut self) {
        let mut next = Instant::now();
        while self.runs() {
            if Instant::now() >= next {
                send(self.0.id() as i32, libc::SIGINT);
                next = Instant::now() + AGAIN;
            }
            std::thread::sleep(POLL);
        }
    }

    fn runs(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
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
