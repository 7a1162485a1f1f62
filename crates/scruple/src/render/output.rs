//! The destinations of reports: the terminal, standard output as JSON, and files.

use super::export;
use super::{FORMATS, Report, json, limit_applies, run_on_terminal};
use crate::cli::shared_args::ResultArgs;
use crate::fault::{Code, Fault};
use scruple_core::harmless_text::{for_terminal, plain_lines};
use scruple_core::limit::Limit;
use scruple_core::metric::{METRICS, Metric, Pass, suggestion};
use scruple_core::subject::Arm;
use scruple_core::unit::Unit;
use scruple_measure::runtimes::Runtime;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Checks that every requested metric exists, before anything is measured.
pub fn check_metrics(asked: &[String]) -> Result<(), Fault> {
    for pattern in asked {
        // The metrics of a runtime are only known once a program has run.
        let family = pattern.split('.').next().unwrap_or_default();
        if !METRICS.iter().any(|metric| metric.matches(pattern)) && Runtime::from_word(family).is_none() {
            return Err(Fault::usage(format!(
                "there is no metric ‘{pattern}’: {}",
                suggestion(pattern, &[])
            )));
        }
    }
    Ok(())
}

/// Parses the limits of the command line.
pub fn limits(texts: &[String], brought: &[Metric]) -> Result<Vec<Limit>, Fault> {
    texts.iter().map(|text| Limit::parse_among(text, brought).map_err(Fault::usage)).collect()
}

/// Checks that every limit applies to some arm, since otherwise it would always be kept.
pub fn check_limits<'a>(limits: &[Limit], arms: impl Iterator<Item = &'a Arm> + Clone) -> Result<(), Fault> {
    match limits.iter().find(|limit| !arms.clone().any(|arm| limit_applies(limit, arm))) {
        None => Ok(()),
        Some(limit) => {
            let names: Vec<String> = arms.map(|arm| format!("‘{}’", arm.name)).collect();
            Err(Fault::usage(format!(
                "the limit ‘{}’ is for ‘{}’, but there is no such arm: there are {}",
                limit.text,
                limit.arm,
                names.join(", ")
            )))
        }
    }
}

/// Refuses a limit on a change where there is nothing to compare with, as `why` says with what to do.
pub fn refuse_changes(limits: &[Limit], why: &str) -> Result<(), Fault> {
    match limits.iter().find(|limit| limit.bound.is_relative()) {
        None => Ok(()),
        Some(Limit { text, metric, .. }) => Err(Fault::usage(format!(
            "the limit ‘{text}’ is a change, and {why}, or limit the amount ({metric}<{})",
            match scruple_core::metric::metric(metric).map(|metric| &metric.unit) {
                Some(Unit::Nanoseconds) => "20ms",
                Some(Unit::Bytes) => "1MB",
                Some(Unit::Ratio) => "1%",
                _ => "1000",
            }
        ))),
    }
}

/// Checks that no time is to be shown or limited in a run with `--count-only`, which measures none.
pub fn check_no_times(limits: &[Limit], metrics: &[String]) -> Result<(), Fault> {
    let limited = limits.iter().map(|limit| (&limit.metric, &limit.text));
    let named = metrics.iter().map(|pattern| (pattern, pattern));
    let timed = |pattern: &str| {
        let mut meant = METRICS.iter().filter(|metric| metric.matches(pattern)).peekable();
        pattern != "all" && meant.peek().is_some() && meant.all(|metric| metric.pass == Pass::Timing)
    };
    match limited.chain(named).find(|(pattern, _)| timed(pattern)) {
        None => Ok(()),
        Some((_, text)) => Err(Fault::usage(format!(
            "‘{text}’ needs launches for time, and with --count-only there are none: leave one of the two out"
        ))),
    }
}

/// Checks that a file can be written, and leaves no trace of the check.
pub fn check_writable(path: &Path) -> Result<(), Fault> {
    let existed = path.exists();
    match OpenOptions::new().append(true).create(true).open(path) {
        Ok(_) if existed => Ok(()),
        Ok(_) => {
            // If the removal fails, the file stays, empty; it is about to be written.
            let _ = std::fs::remove_file(path);
            Ok(())
        }
        Err(error) => Err(Fault::unwritable_export(path, error)),
    }
}

/// Writes a report to every requested destination, and returns the exit code according to the limits.
pub fn write(report: &Report<'_>, args: &ResultArgs, footer: Option<&str>) -> Result<Code, Fault> {
    let files = args.export.all();
    let writer = |file: &export::Export| export::writer(&FORMATS, &file.format);
    let files: Vec<_> = files.iter().filter_map(|file| Some((file.path.as_path(), writer(file)?))).collect();
    let file_on_stdout = files.iter().any(|(path, _)| *path == Path::new("-"));
    let texts = files.into_iter().map(|(path, text)| (path, text(report)));
    let unwritten = write_files(texts)?;
    let text = match args.json {
        true => json::text(report),
        false => {
            let mut text = run_on_terminal::text(report, width());
            if let Some(footer) = footer {
                text.push_str(footer);
                text.push('\n');
            }
            text
        }
    };
    print_beside(file_on_stdout, &text)?;
    if let Some(fault) = unwritten {
        return Err(fault);
    }
    Ok(report.kept().into())
}

/// Writes text files; `-` means standard output. Characters that control a terminal or change the direction of writing
/// are replaced, whatever their origin. All files are tried; the last error is returned.
pub fn write_files<'a>(files: impl IntoIterator<Item = (&'a Path, String)>) -> Result<Option<Fault>, Fault> {
    let mut unwritten = None;
    for (path, text) in files {
        match path == Path::new("-") {
            true => print(&text)?,
            false => unwritten = write_file(path, plain_lines(&text).as_bytes()).err().or(unwritten),
        }
    }
    Ok(unwritten)
}

/// Writes one file byte for byte; `-` means standard output.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    if path == Path::new("-") {
        let written = io::stdout().write_all(bytes);
        return written.or_else(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(Fault::usage(format!("cannot write to standard output: {error}"))),
        });
    }
    write_file(path, bytes)
}

/// Writes one file. The name `-` has no special meaning.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    std::fs::write(path, bytes).map_err(|error| {
        Fault::usage(format!("cannot write ‘{}’: {error}; name another file", path.display()))
    })
}

/// Prints a text that is not the content of a file. If a file is written to standard output, the text goes to standard
/// error.
pub fn print_beside(file_on_stdout: bool, text: &str) -> Result<(), Fault> {
    if !file_on_stdout {
        return print(text);
    }
    // A failure to write is ignored, because standard error may be closed.
    let _ = anstream::stderr().write_all(for_terminal(text).as_bytes());
    Ok(())
}

/// Prints a message to standard error.
pub fn warn(text: &str) {
    // A failure to write is ignored, because a closed standard error must not end a measurement.
    let _ = writeln!(anstream::stderr(), "{}", for_terminal(&format!("scruple: {text}")));
}

/// Prints each of these messages to standard error.
pub fn warn_of_all(texts: &[String]) {
    texts.iter().for_each(|text| warn(text));
}

/// Writes a text to standard output. A reader that has closed the pipe does not cause an error.
pub fn print(text: &str) -> Result<(), Fault> {
    let text = for_terminal(text);
    // A long text without styles, such as JSON, is not searched for them.
    let result = match text.contains('\x1b') {
        true => anstream::stdout().write_all(text.as_bytes()),
        false => io::stdout().write_all(text.as_bytes()),
    };
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Fault::usage(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// The most columns that COLUMNS asks for.
pub const WIDEST: usize = 400;

/// Returns the number of columns to write for: that of the terminal, or 100 without one.
pub fn width() -> usize {
    if let Some(columns) = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()) {
        return usize::clamp(columns, 40, WIDEST);
    }
    match io::stdout().is_terminal() {
        true => {
            terminal_size::terminal_size().map_or(80, |(columns, _)| usize::from(columns.0)).clamp(40, 200)
        }
        false => 100,
    }
}
