//! Progress on a terminal, drawn between launches and never while one runs.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use scruple_core::metric::Pass;

/// A line of progress; nothing where standard error is not a terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Progress on standard error.
    pub fn new() -> Progress {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(8));
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {wide_msg}") {
            bar.set_style(style.progress_chars("━╸ "));
        }
        Progress { bar }
    }

    /// No progress at all.
    pub fn hidden() -> Progress {
        Progress { bar: ProgressBar::hidden() }
    }

    /// Shows which launch comes next.
    pub fn show(&self, pass: Pass, block: u32, blocks: u32, visited: usize, arms: usize, name: &str) {
        self.bar.set_length(u64::from(blocks) * arms as u64);
        self.bar.set_position(u64::from(block) * arms as u64 + visited as u64);
        self.bar.set_message(format!("{} · block {} of at most {blocks} · {name}", pass.word(), block + 1));
    }

    /// Shows that a launch does not count yet.
    pub fn warm_up(&self, name: &str) {
        self.bar.set_message(format!("warming up · {name}"));
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress {
    /// Shows how far a suite is.
    pub fn step(&self, doing: &str, process: u32, done: usize, all: usize, name: &str) {
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(format!("{doing} · process {} · {name}", process + 1));
    }

    /// Shows how far a history is.
    pub fn tell(&self, doing: &str, done: usize, all: usize, name: &str) {
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(format!("{doing} · {name}"));
    }
}

impl Progress {
    /// Shows how a window of load is going.
    pub fn load(&self, name: &str, window: u32, windows: u32, doing: &str) {
        self.bar.set_length(u64::from(windows));
        self.bar.set_position(u64::from(window));
        self.bar.set_message(format!("{name} · window {} of {windows} · {doing}", window + 1));
    }

    /// Shows what is done besides windows.
    pub fn pass(&self, name: &str, doing: &str) {
        self.bar.set_message(format!("{name} · {doing}"));
    }
}
