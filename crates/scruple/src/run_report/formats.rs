//! The formats of a run, and the destinations of its report.

use super::{Report, csv, document_table, hyperfine, json, junit, terminal};
use crate::bench::report::table;
use crate::cli::shared_args::ResultArgs;
use crate::fault::{Code, Fault};
use crate::load::report::terminal as load_on_terminal;
use crate::render::align::wrap;
use crate::render::export::Formats;
use crate::render::markup::Markup;
use crate::render::output::{print_beside, width, write_files};
use crate::render::{export, page};
use std::path::Path;

/// The formats in which any run can be written, by the endings of their file names.
pub const FORMATS: Formats<fn(&Report<'_>) -> String, 8> = [
    ("json", json::text),
    ("csv", csv::text),
    ("md", |report| document_table::text(report, Markup::Markdown)),
    ("adoc", |report| document_table::text(report, Markup::AsciiDoc)),
    ("org", |report| document_table::text(report, Markup::Org)),
    ("html", |report| page::html::text(&crate::run_page::page(report))),
    ("xml", junit::text),
    ("hyperfine", hyperfine::text),
];

/// Writes the report for a terminal with this many columns. Colours are always written; the output stream strips them.
pub fn terminal_text(report: &Report<'_>, width: usize) -> String {
    if report.of_cases() {
        return table::text(report, width);
    }
    if let Some(loads) = report.loads {
        return load_on_terminal::text(report, loads, width);
    }
    format!(
        "{}\n\n{}{}",
        wrap(&terminal::header(report), width),
        terminal::preface(report, width),
        terminal::body(report, width)
    )
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
            let mut text = terminal_text(report, width());
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
