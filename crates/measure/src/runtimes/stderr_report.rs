//! Extracts a runtime's report from the standard error of static programs, into which the agent cannot be loaded.

use super::Runtime;
use super::ghc::report;
use super::{go, ocaml};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;

/// A pipe that replaces a program's standard error. A thread reads it and passes on everything but the report.
#[derive(Debug)]
pub(super) struct StderrPipe {
    runtime: Runtime,
    thread: JoinHandle<Vec<u8>>,
}

impl StderrPipe {
    /// Replaces `stderr` with the pipe.
    pub(super) fn into_stderr(runtime: Runtime, stderr: &mut OwnedFd) -> io::Result<StderrPipe> {
        let (reader, writer) = io::pipe()?;
        let original = std::mem::replace(stderr, writer.into());
        let thread =
            std::thread::spawn(move || pass(BufReader::new(reader), runtime, std::fs::File::from(original)));
        Ok(StderrPipe { runtime, thread })
    }

    /// The extracted report, once all writers have closed the pipe.
    pub(super) fn finish(self) -> (Runtime, String) {
        let text = self.thread.join().unwrap_or_default();
        (self.runtime, String::from_utf8_lossy(&text).into_owned())
    }
}

/// Passes on all lines that do not belong to a report, and returns those that do.
fn pass(mut from: impl BufRead, runtime: Runtime, mut to: impl Write) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        match from.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return kept,
            Ok(_) if is_report(runtime, &line) => kept.extend_from_slice(&line),
            // The reader may be gone; then the rest of the output is lost, as it would be without the pipe.
            Ok(_) => drop(to.write_all(&line)),
        }
    }
}

fn is_report(runtime: Runtime, line: &[u8]) -> bool {
    match runtime {
        Runtime::Ghc => {
            line.starts_with(report::BEGIN.as_bytes()) && line.trim_ascii().ends_with(report::END.as_bytes())
        }
        Runtime::Ocaml => ocaml::is_summary(line),
        Runtime::Go => go::gctrace_log::is_trace(line),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_cut_and_the_rest_is_untouched() {
        let report = include_str!("../../tests/data/runtimes/ghc/t-oneline.stderr.txt");
        let text = format!("a\n<<ghc\n{report}\u{fe}no end");
        let mut shown = Vec::new();
        let kept = pass(text.as_bytes(), Runtime::Ghc, &mut shown);
        assert_eq!(String::from_utf8_lossy(&kept), report);
        assert_eq!(String::from_utf8_lossy(&shown), "a\n<<ghc\n\u{fe}no end");
    }
}
