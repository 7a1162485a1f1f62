//! Where a weighed range is shown: the terminal, standard output, files.

use crate::fault::Fault;
use crate::history::args::PageArgs;
use crate::history::report::{Options, Page};
use crate::show::output;
use scruple_core::history::{History, judge};
use std::path::{Path, PathBuf};

/// The share of false changes among those that are named.
const ERROR: f64 = 0.05;

/// As much of a log as a page for browsers holds.
const LOG: usize = 4000;

/// Checks what can be checked before anything is measured.
pub fn check(args: &PageArgs) -> Result<(), Fault> {
    output::check_metrics(&args.metrics)?;
    let files = files(args).into_iter().map(|(path, _)| path).filter(|path| *path != Path::new("-"));
    files.into_iter().try_for_each(output::check_writable)
}

/// Writes a history that is stored everywhere it was asked for, if what is asked for is there.
pub fn show_stored(history: &History, args: &PageArgs) -> Result<(), Fault> {
    let judgement = judge(history, ERROR);
    let page = Page::of(history, &judgement);
    check_subject(&page, args)?;
    write(page, history, args)
}

/// Judges the history and writes it everywhere it was asked for. After hours of weighing, a name that is wrong keeps
/// nothing from being shown but what it was given for.
pub fn show(history: &History, args: &PageArgs) -> Result<(), Fault> {
    let judgement = judge(history, ERROR);
    write(Page::of(history, &judgement), history, args)
}

fn write(page: Page<'_>, history: &History, args: &PageArgs) -> Result<(), Fault> {
    let mut page = page.showing(&args.metrics);
    for path in history.versions.iter().filter_map(|version| version.log.as_ref()) {
        if let Ok(text) = std::fs::read(path) {
            let from = text.len().saturating_sub(LOG);
            page.logs.insert(path.clone(), String::from_utf8_lossy(&text[from..]).into_owned());
        }
    }
    let known = check_subject(&page, args);
    let written = |(path, _): &(&Path, Writer)| known.is_ok() || Some(*path) != args.export_csv.as_deref();
    let files: Vec<_> = files(args).into_iter().filter(written).collect();
    let aside = files.iter().any(|(path, _)| *path == Path::new("-"));
    let files = files.into_iter().map(|(path, writer)| (path, writer(&page, args)));
    let unwritten = output::write_files(files, args.color)?;
    let text = match &args.pair {
        Some(pair) => {
            let (from, to) = places(history, pair)?;
            page.markdown_pair(from, to)
        }
        None if args.json => page.json(),
        None => page.terminal(output::width()),
    };
    output::print_beside(aside, &text, args.color)?;
    unwritten.map_or(known, Err)
}

/// Checks that there is a subject of the name that one is asked for by.
fn check_subject(page: &Page<'_>, args: &PageArgs) -> Result<(), Fault> {
    let subjects = page.subjects();
    match &args.subject {
        Some(name) if !subjects.contains(&name.as_str()) => Err(Fault::usage(match subjects.is_empty() {
            true => format!("there is no subject ‘{name}’: no version of this history was weighed"),
            false => {
                format!("there is no subject ‘{name}’: this history has ‘{}’", subjects.join("’, ‘"))
            }
        })),
        _ => Ok(()),
    }
}

type Writer = fn(&Page<'_>, &PageArgs) -> String;

fn files(args: &PageArgs) -> Vec<(&Path, Writer)> {
    let each: [(&Option<PathBuf>, Writer); 6] = [
        (&args.export_json, |page, _| page.json()),
        (&args.export_csv, |page, args| page.csv(args.subject.as_deref())),
        (&args.export_readings, |page, _| page.csv_all()),
        (&args.export_markdown, |page, _| page.markdown()),
        (&args.export_svg, |page, args| page.svg(Options { linear: args.linear, combined: args.combined })),
        (&args.export_html, |page, _| page.html()),
    ];
    each.into_iter().filter_map(|(path, writer)| Some((path.as_deref()?, writer))).collect()
}

/// The places of two versions that are written as `A..B`: beginnings of ids, or tags.
fn places(history: &History, pair: &str) -> Result<(usize, usize), Fault> {
    let Some((from, to)) = pair.split_once("..") else {
        return Err(Fault::usage(format!("‘{pair}’ is no pair of versions: write --pair A..B")));
    };
    let place = |name: &str| {
        let named = |version: &scruple_core::history::Version| {
            version.commit.starts_with(name) || version.tags.iter().any(|tag| tag == name)
        };
        match history.versions.iter().position(named).filter(|_| !name.is_empty()) {
            Some(place) => Ok(place),
            None => Err(Fault::usage(format!(
                "no version of this history is called ‘{name}’: give the beginning of an id, or a tag, as \
                 `scruple history status` shows them"
            ))),
        }
    };
    Ok((place(from)?, place(to)?))
}
