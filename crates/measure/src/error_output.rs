//! The error output of a program that failed, shortened so that its message remains.
//!
//! Some runtimes print the message last (Python), some first (Go, GHC), and others between the source line and a long
//! stack (Node.js, Java, Ruby).

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Mutex;

/// The numbers of bytes that are kept from the beginning and from the end. The end holds a stack of a hundred frames, of
/// which each has two lines in Go.
const FIRST: usize = 4 << 10;
const LAST: usize = 64 << 10;

/// The numbers of lines that are shown of the beginning and of the end of a long output without stacks, and the
/// characters of a line.
const FIRST_LINES: usize = 6;
const LAST_LINES: usize = 10;
const WIDTH: usize = 300;

/// The first and the last bytes that a program writes.
#[derive(Debug, Default)]
pub(crate) struct ErrorOutput {
    first: Vec<u8>,
    last: VecDeque<u8>,
    is_cut: bool,
}

impl ErrorOutput {
    /// Reads a stream to its end, and keeps what is needed of it.
    pub(crate) fn keep(mut stream: impl Read, kept: &Mutex<ErrorOutput>) {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut chunk) {
            if let Ok(mut kept) = kept.lock() {
                kept.add(&chunk[..count]);
            }
        }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(FIRST - self.first.len()));
        self.first.extend(first);
        let kept = &rest[rest.len().saturating_sub(LAST)..];
        let excess = (self.last.len() + kept.len()).saturating_sub(LAST);
        self.last.drain(..excess);
        self.last.extend(kept);
        self.is_cut |= excess > 0 || kept.len() < rest.len();
    }

    /// The lines to show, indented, each on a line of its own; empty if the program has written nothing.
    pub(crate) fn shown(&self) -> String {
        let between: &[u8] = if self.is_cut { b"\n\xe2\x80\xa6\n" } else { b"" };
        let (older, newer) = self.last.as_slices();
        shown_lines(&[&self.first, between, older, newer].concat())
    }
}

/// The lines of an output to show: all if they are few, otherwise without most of the stacks and the middle. Each
/// stands on a line of its own, indented.
#[must_use]
pub fn shown_lines(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut lines: Vec<String> = match all.len() <= FIRST_LINES + LAST_LINES {
        true => all.iter().map(|line| shortened(line)).collect(),
        false => without_stacks(&all),
    };
    let middle = lines.len().saturating_sub(FIRST_LINES + LAST_LINES);
    if middle > 1 {
        lines.splice(FIRST_LINES..FIRST_LINES + middle, [format!("… ({middle} lines)")]);
    }
    lines.iter().map(|line| format!("\n    {line}")).collect()
}

/// Leaves out most lines of a stack, if more than three follow each other.
fn without_stacks(lines: &[&str]) -> Vec<String> {
    let next = lines.iter().skip(1).copied().chain([""]);
    let lines: Vec<(&str, bool)> =
        lines.iter().zip(next).map(|(line, next)| (*line, is_of_stack(line, next))).collect();
    lines
        .chunk_by(|one, other| one.1 == other.1)
        .flat_map(|run| match run[0].1 && run.len() > 3 {
            true => {
                vec![
                    shortened(run[0].0),
                    format!("    … ({} lines)", run.len() - 2),
                    shortened(run[run.len() - 1].0),
                ]
            }
            false => run.iter().map(|line| shortened(line.0)).collect(),
        })
        .collect()
}

/// Whether a line belongs to a stack. Frames are indented, and a message is not. In Go only the second line of a frame is,
/// which names the file; before it stands the call, or what created the goroutine.
fn is_of_stack(line: &str, next: &str) -> bool {
    let is_goroutine = line.starts_with("goroutine ") && line.ends_with(':');
    let is_call = line.ends_with(')') || line.starts_with("created by ");
    line.starts_with([' ', '\t'])
        || is_goroutine
        || is_call && next.starts_with('\t') && next.contains(".go:")
}

/// A line cut to the width: the source line of a minified script is the whole script.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let kept = Mutex::new(ErrorOutput::default());
        ErrorOutput::keep(text.as_bytes(), &kept);
        kept.into_inner().expect("no thread has panicked").shown()
    }

    fn frames(frame: &str, count: usize) -> String {
        (0..count).map(|at| format!("{frame}{at}\n")).collect()
    }

    /// Each begins with warnings that fill what is kept of the beginning, except where the message is the first line.
    #[test]
    fn the_message_is_shown_wherever_a_runtime_prints_it() {
        let warnings = "warning: this is slow\n".repeat(1000);
        let minified = "x".repeat(100_000);
        let node = format!(
            "file:///suite.mjs:1\n{minified}\n   ^\n\nError: Cannot find package 'a'\n{}  code: 'E'\n}}\n\nNode.js v20\n",
            frames("    at f (node:internal/modules:", 40)
        );
        let java = format!(
            "Exception in thread \"main\" A: no\n{0}Caused by: B: the cause\n{0}\t... 12 more\n",
            frames("\tat org.example.Suite.f(Suite.java:", 60)
        );
        let python =
            format!("Traceback:\n{}ModuleNotFoundError: No module\n", frames("  File f, line ", 200));
        let go = format!(
            "panic: nil map\n\n{}exit status 2\n",
            "goroutine 1:\nmain.f(...)\n\t/f.go:1\n".repeat(900)
        );
        let frame = "example.org/module/folder.(*Suite).f(0xc000012345, {0x4a5b6c, 0x3})\n\t/home/a/folder/f.go:1 +0x1d\n";
        let nested = format!(
            "panic: assignment to nil map\n\ngoroutine 7 [running]:\n{}created by main.main in goroutine 1\n\t/f.go:9 +0x2f\nexit status 2\n",
            frame.repeat(100)
        );
        let ghc = format!(
            "suite: Map.!: no key\nCallStack (from HasCallStack):\n{}",
            frames("  error, called at ", 30)
        );
        let cases: [(&str, String, &[&str]); 6] = [
            ("Node.js", warnings.clone() + &node, &["Error: Cannot find package 'a'", "Node.js v20"]),
            (
                "Java",
                warnings.clone() + &java,
                &["Exception in thread \"main\" A: no", "Caused by: B: the cause"],
            ),
            ("Python", warnings.clone() + &python, &["ModuleNotFoundError: No module"]),
            ("Go", go, &["panic: nil map", "exit status 2"]),
            (
                "Go, after other output",
                warnings.clone() + &nested,
                &["panic: assignment to nil map", "exit status 2"],
            ),
            ("GHC", warnings + &ghc, &["suite: Map.!: no key"]),
        ];
        for (language, output, messages) in cases {
            let shown = shown(&output);
            for message in messages {
                assert!(
                    shown.contains(&format!("\n    {message}\n")) || shown.ends_with(message),
                    "{language}:{shown}"
                );
            }
            assert!(shown.lines().count() <= 18 && shown.len() < 4000, "{language}:{shown}");
        }
    }

    #[test]
    fn a_short_output_is_shown_as_it_is() {
        assert_eq!(shown(""), "");
        assert_eq!(shown("one\n\n  two\n"), "\n    one\n      two");
        let sixteen = frames("  line ", 16);
        assert_eq!(shown(&sixteen).matches("line").count(), 16);
    }
}
