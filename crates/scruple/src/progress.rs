//! Shows progress between launches, and never during one: on a terminal as a line that changes, elsewhere as lines in a
//! log.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use scruple_core::harmless_text::{for_terminal, plain};
use scruple_core::metric::Pass;
use scruple_core::unit::{Unit, quantity};
use std::io::{IsTerminal, Write, stderr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The time between two lines of a log. Work that takes less has no line.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// A duration as text.
pub fn in_words(time: Duration) -> String {
    quantity(time.as_nanos() as f64, &Unit::Nanoseconds)
}

/// A line that shows progress. If standard error is not a terminal, a line is written every minute instead.
pub struct Progress {
    bar: ProgressBar,
    silent: bool,
    last_line: Mutex<Instant>,
}

impl Progress {
    /// Creates a line of progress on standard error.
    pub fn new() -> Progress {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(8));
        let progress = Progress { bar, silent: false, ..Progress::hidden() };
        progress.lay_out("{bar:20} {wide_msg}");
        progress
    }

    fn lay_out(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("━╸ "));
        }
    }

    /// Creates a value that shows no progress.
    pub fn hidden() -> Progress {
        Progress { bar: ProgressBar::hidden(), silent: true, last_line: Mutex::new(Instant::now()) }
    }

    /// Prints a line, even if standard error is not a terminal.
    pub fn say(&self, text: &str) {
        if !self.silent {
            // A failure to write is ignored, because a closed standard error must not end a measurement.
            self.bar.suspend(|| _ = writeln!(anstream::stderr(), "{}", for_terminal(text)));
        }
    }

    /// Shows which launch comes next.
    pub fn show(&self, pass: Pass, block: u32, blocks: u32, visited: usize, arms: usize, name: &str) {
        self.bar.set_length(u64::from(blocks) * arms as u64);
        self.bar.set_position(u64::from(block) * arms as u64 + visited as u64);
        self.message(format!("{} · block {} of at most {blocks} · {name}", pass.word(), block + 1));
    }

    /// Shows that a launch is a warm-up and does not count.
    pub fn warm_up(&self, name: &str) {
        self.message(format!("warming up · {name}"));
    }

    fn message(&self, text: String) {
        self.message_of("", &text);
    }

    /// Shows what is done, in which a share refers to `whole`, or to everything if this is empty.
    fn message_of(&self, whole: &str, text: &str) {
        let whole = if whole.is_empty() { String::new() } else { format!("{whole} · ") };
        if self.bar.is_hidden() && self.is_line_due(Instant::now()) {
            self.say(&self.log_line(&whole, text));
        }
        self.bar.set_message(plain(&format!("{whole}{text}")));
    }

    /// A line of a log, which has no bar and therefore the share that is done, except for work of one step.
    fn log_line(&self, whole: &str, text: &str) -> String {
        let share = self.bar.length().filter(|length| *length > 1).map_or(String::new(), |length| {
            format!("{} % · ", 100 * self.bar.position().min(length) / length)
        });
        format!("{whole}{share}{text}")
    }

    /// Whether the last line of a log was written long enough before `now`, which is then the time of the next one.
    fn is_line_due(&self, now: Instant) -> bool {
        let Ok(mut last) = self.last_line.lock() else { return false };
        let due = now.saturating_duration_since(*last) >= BETWEEN_LINES;
        if due {
            *last = now;
        }
        due
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress {
    /// Shows the progress of a suite.
    pub fn step(&self, doing: &str, process: u32, done: usize, all: usize, name: &str) {
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
        self.message(format!("{doing} · process {} · {name}", process + 1));
    }

    /// Returns the numbers of columns and rows for the results so far, or `None` if progress is not shown.
    pub fn room(&self) -> Option<(usize, usize)> {
        if self.bar.is_hidden() {
            return None;
        }
        let (columns, rows) = terminal_size::terminal_size_of(stderr())?;
        // One row is for the line of progress, and one for the cursor.
        Some((usize::from(columns.0), usize::from(rows.0).saturating_sub(2)))
    }

    /// Shows the results so far above the line of progress. They replace the earlier ones.
    pub fn show_partial_results(&self, text: &str) {
        self.lay_out("{prefix}\n{bar:20} {wide_msg}");
        self.bar.set_prefix(for_terminal(text.trim_end()));
    }

    /// Prints what was done, if standard error is not a terminal.
    pub fn done(&self, what: &str) {
        if !stderr().is_terminal() {
            self.say(&plain(what));
        }
    }

    /// Shows the progress of one round or another part of a history, or of a search for leaks. In a log the share
    /// follows the part to which it belongs.
    pub fn steps(&self, doing: &str, done: usize, all: usize, name: &str) {
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
        self.message_of(doing, name);
    }
}

impl Progress {
    /// Shows the progress of a load: the index of its turn and the number of turns, and the elapsed and total seconds
    /// of the turn. The time comes first, since a narrow terminal cuts off the name.
    pub fn load(&self, name: &str, turn: (u32, u32), seconds: (f64, f64), doing: &str) {
        let ((turn, turns), (elapsed, whole)) = (turn, seconds);
        self.bar.set_length((f64::from(turns) * whole * 10.0) as u64);
        self.bar.set_position(((f64::from(turn) * whole + elapsed.min(whole)) * 10.0) as u64);
        let left = f64::from(turns - turn) * whole - elapsed;
        let left = if left > 0.5 { format!("{left:.0} s left") } else { "last answers".to_owned() };
        self.message(format!("{left} · {doing} · {name}"));
    }

    /// Prints a line that stays, if progress is shown.
    pub fn note(&self, text: &str) {
        self.bar.println(text);
    }

    /// Shows work other than windows.
    pub fn pass(&self, name: &str, doing: &str) {
        self.message(format!("{name} · {doing}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_in_a_log_follows_the_round_to_which_it_belongs() {
        let progress = Progress::hidden();
        progress.steps("weighing · round 25", 1, 3, "034bba2464");
        let line = progress.log_line("weighing · round 25 · ", "034bba2464");
        assert_eq!(line, "weighing · round 25 · 33 % · 034bba2464");
    }

    #[test]
    fn a_log_has_a_line_a_minute_and_none_for_short_work() {
        let progress = Progress::hidden();
        let start = Instant::now();
        let due = |seconds| progress.is_line_due(start + Duration::from_secs(seconds));
        assert_eq!([1, 59, 61, 62, 119, 122, 300].map(due), [false, false, true, false, false, true, true]);
    }
}
