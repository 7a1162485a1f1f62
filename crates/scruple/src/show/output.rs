//! Where reports go: the terminal, standard output as JSON, files.

use super::markup;
use super::markup::Markup;
use super::{Report, csv, json, meant, terminal};
use crate::cli::{Colour, ResultArgs};
use crate::fault::{Code, Fault};
use scruple_core::budget::{Budget, Kept};
use scruple_core::metric::{METRICS, Metric, nearest};
use scruple_core::plain::for_terminal;
use scruple_core::subject::Arm;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Checks that every asked metric names something, before anything is measured.
pub fn check_metrics(asked: &[String]) -> Result<(), Fault> {
    for pattern in asked {
        if !METRICS.iter().any(|metric| metric.matches(pattern)) {
            return Err(Fault::usage(format!(
                "there is no metric ‘{pattern}’: did you mean ‘{}’? `scruple inspect metrics` lists them all",
                nearest(pattern)
            )));
        }
    }
    Ok(())
}

/// Reads the limits of the command line.
pub fn budgets(texts: &[String], brought: &[Metric]) -> Result<Vec<Budget>, Fault> {
    texts.iter().map(|text| Budget::parse_among(text, brought).map_err(Fault::usage)).collect()
}

/// Checks that every limit is meant for some arm, since one that is not would be kept whatever happens.
pub fn check_limits<'a>(
    budgets: &[Budget],
    arms: impl Iterator<Item = &'a Arm> + Clone,
) -> Result<(), Fault> {
    match budgets.iter().find(|budget| !arms.clone().any(|arm| meant(budget, arm))) {
        None => Ok(()),
        Some(budget) => {
            let names: Vec<String> = arms.map(|arm| format!("‘{}’", arm.name)).collect();
            Err(Fault::usage(format!(
                "the limit ‘{}’ is for ‘{}’, but there is no such arm: there are {}",
                budget.text,
                budget.arm,
                names.join(", ")
            )))
        }
    }
}

/// Checks that the files to be written can be, before anything is measured.
pub fn check_exports(args: &ResultArgs) -> Result<(), Fault> {
    let files = exports(args).into_iter().map(|(path, _)| path).filter(|path| *path != Path::new("-"));
    files.into_iter().try_for_each(check_writable)
}

/// Checks that a file can be written, and leaves no trace of having tried.
pub fn check_writable(path: &Path) -> Result<(), Fault> {
    let existed = path.exists();
    match OpenOptions::new().append(true).create(true).open(path) {
        Ok(_) if existed => Ok(()),
        Ok(_) => {
            // A file that cannot be removed again is empty, and about to be written.
            let _ = std::fs::remove_file(path);
            Ok(())
        }
        Err(error) => Err(Fault::usage(format!(
            "cannot write ‘{}’: {error}; name another file, or make its folder writable first",
            path.display()
        ))),
    }
}

type Writer = fn(&Report<'_>) -> String;

fn exports(args: &ResultArgs) -> Vec<(&Path, Writer)> {
    let each: [(&Option<std::path::PathBuf>, Writer); 5] = [
        (&args.export_json, json::text),
        (&args.export_csv, csv::text),
        (&args.export_markdown, |report| markup::text(report, Markup::Markdown)),
        (&args.export_asciidoc, |report| markup::text(report, Markup::AsciiDoc)),
        (&args.export_org, |report| markup::text(report, Markup::Org)),
    ];
    each.into_iter().filter_map(|(path, writer)| Some((path.as_deref()?, writer))).collect()
}

/// Writes a report everywhere it was asked for, and says what its limits make of the exit code.
pub fn write(report: &Report<'_>, args: &ResultArgs, footer: Option<&str>) -> Result<Code, Fault> {
    let files = exports(args);
    let aside = files.iter().any(|(path, _)| *path == Path::new("-"));
    let unwritten = write_files(files.into_iter().map(|(path, writer)| (path, writer(report))), args.color)?;
    let text = match args.json {
        true => json::text(report),
        false => {
            let mut text = terminal::text(report, width());
            if let Some(footer) = footer {
                text.push_str(footer);
                text.push('\n');
            }
            text
        }
    };
    print_beside(aside, &text, args.color)?;
    if let Some(fault) = unwritten {
        return Err(fault);
    }
    Ok(match report.kept() {
        Kept::Yes => Code::Fine,
        Kept::No => Code::GateFailed,
        Kept::CantTell => Code::Unknown,
    })
}

/// Writes files, `-` being standard output. The last that could not be written is told once the rest have been.
pub fn write_files<'a>(
    files: impl IntoIterator<Item = (&'a Path, String)>,
    colour: Colour,
) -> Result<Option<Fault>, Fault> {
    let mut unwritten = None;
    for (path, text) in files {
        if path == Path::new("-") {
            print(&text, colour)?;
        } else if let Err(error) = std::fs::write(path, text) {
            unwritten = Some(Fault::usage(format!("cannot write ‘{}’: {error}", path.display())));
        }
    }
    Ok(unwritten)
}

/// Writes what was not asked for as a file: to standard error where a file has standard output for itself.
pub fn print_beside(file: bool, text: &str, colour: Colour) -> Result<(), Fault> {
    if !file {
        return print(text, colour);
    }
    let text = for_terminal(text);
    // Whoever closed standard error does not want to read this.
    let _ = match colour {
        Colour::Auto => anstream::stderr().write_all(text.as_bytes()),
        Colour::Always => io::stderr().lock().write_all(text.as_bytes()),
        Colour::Never => anstream::StripStream::new(io::stderr().lock()).write_all(text.as_bytes()),
    };
    Ok(())
}

/// Writes to standard output. A reader that has closed the pipe has seen enough, which is no error.
pub fn print(text: &str, colour: Colour) -> Result<(), Fault> {
    let text = for_terminal(text);
    let result = match colour {
        Colour::Auto => anstream::stdout().write_all(text.as_bytes()),
        Colour::Always => io::stdout().lock().write_all(text.as_bytes()),
        Colour::Never => anstream::StripStream::new(io::stdout().lock()).write_all(text.as_bytes()),
    };
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Fault::usage(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// The columns to write for: the terminal's, or a hundred where there is none.
pub fn width() -> usize {
    if let Some(columns) = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()) {
        return usize::clamp(columns, 40, 400);
    }
    match io::stdout().is_terminal() {
        true => {
            terminal_size::terminal_size().map_or(80, |(columns, _)| usize::from(columns.0)).clamp(40, 200)
        }
        false => 100,
    }
}
