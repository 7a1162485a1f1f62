//! Shows a weighed range: on the terminal, on standard output, and in files.

use crate::fault::Fault;
use crate::history::args::PageArgs;
use crate::history::report::{ExplainedChange, FORMATS, HistoryReport};
use crate::render::export::{names, writer};
use crate::render::output;
use crate::run_report::metrics_and_limits;
use crate::versions::cache::end_of_log;
use scruple_core::harmless_text::list_names;
use scruple_core::history::{History, find_changes};
use std::path::Path;

/// The largest part of a log that a page contains, in bytes.
const LOG: usize = 4000;

/// Checks the requested outputs before anything is measured.
pub fn check(args: &PageArgs) -> Result<(), Fault> {
    metrics_and_limits::check_metrics(&args.metrics)?;
    args.export.checked(&names(&FORMATS)).map(|_| ())
}

/// Writes a stored history, or only the changes between two of its versions if `pair` names them.
pub fn show_stored(
    history: &History,
    explained: Vec<ExplainedChange>,
    args: &PageArgs,
    pair: Option<&str>,
) -> Result<(), Fault> {
    let judgement = find_changes(history);
    let mut page = HistoryReport::of(history, &judgement);
    page.explained = explained;
    check_subject(&page, args)?;
    write(page, history, args, pair)
}

/// Judges the history and writes it to all requested outputs. One wrong name must not prevent the other outputs after
/// hours of weighing.
pub fn show(history: &History, explained: Vec<ExplainedChange>, args: &PageArgs) -> Result<(), Fault> {
    let judgement = find_changes(history);
    let mut page = HistoryReport::of(history, &judgement);
    page.explained = explained;
    write(page, history, args, None)
}

/// Returns the page of a stored history, with the metrics that match these patterns.
pub fn of(
    history: &History,
    explained: Vec<ExplainedChange>,
    metrics: &[String],
) -> crate::render::page::Page {
    let judgement = find_changes(history);
    let mut page = HistoryReport::of(history, &judgement).showing(metrics);
    page.explained = explained;
    with_logs(page, history).model()
}

/// Returns what a terminal shows of a stored history, with the metrics that match these patterns.
pub fn terminal_of(history: &History, explained: Vec<ExplainedChange>, metrics: &[String]) -> String {
    let judgement = find_changes(history);
    let mut page = HistoryReport::of(history, &judgement).showing(metrics);
    page.explained = explained;
    with_logs(page, history).terminal(output::width())
}

/// Adds the last parts of the logs that still exist to the page.
fn with_logs<'a>(mut page: HistoryReport<'a>, history: &History) -> HistoryReport<'a> {
    for path in history.versions.iter().filter_map(|version| version.log.as_ref()) {
        page.logs.extend(end_of_log(Path::new(path), LOG).map(|end| (path.clone(), end)));
    }
    page
}

fn write(
    page: HistoryReport<'_>,
    history: &History,
    args: &PageArgs,
    pair: Option<&str>,
) -> Result<(), Fault> {
    let page = with_logs(page.showing(&args.metrics), history);
    let known = check_subject(&page, args);
    let exports = args.export.all();
    let usable = exports.iter().filter(|export| known.is_ok() || export.format != "csv");
    let writers =
        usable.filter_map(|export| Some((export.path.as_path(), writer(&FORMATS, &export.format)?)));
    let writers: Vec<_> = writers.collect();
    let file_on_stdout = writers.iter().any(|(path, _)| *path == Path::new("-"));
    let texts = writers.into_iter().map(|(path, text)| (path, text(&page, args)));
    let unwritten = output::write_files(texts)?;
    let text = match pair {
        Some(pair) => {
            let (from, to) = places(history, pair)?;
            page.markdown_pair(from, to)
        }
        None if args.json => page.json(),
        None => page.terminal(output::width()),
    };
    output::print_beside(file_on_stdout, &text)?;
    unwritten.map_or(known, Err)
}

/// Checks that the named subject exists.
fn check_subject(page: &HistoryReport<'_>, args: &PageArgs) -> Result<(), Fault> {
    let subjects = page.subjects();
    match &args.subject {
        Some(name) if !subjects.contains(&name.as_str()) => Err(Fault::usage(match subjects.is_empty() {
            true => format!("there is no subject ‘{name}’: no version of this history was weighed"),
            false => {
                format!("there is no subject ‘{name}’: this history has {}", list_names(&subjects))
            }
        })),
        _ => Ok(()),
    }
}

/// Parses two versions written as `A..B`: prefixes of ids, or tags.
fn places(history: &History, pair: &str) -> Result<(usize, usize), Fault> {
    let Some((from, to)) = pair.split_once("..") else {
        return Err(Fault::usage(format!("‘{pair}’ is not a pair of versions: write --pair A..B")));
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
