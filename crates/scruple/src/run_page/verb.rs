//! Finds the requested run, makes its page, and writes it.

use super::args::ReportArgs;
use super::{leak, page_with, several};
use crate::explain::changes;
use crate::fault::{Code, Fault};
use crate::history;
use crate::render::align::wrap;
use crate::render::export::{Export, names, writer};
use crate::render::page::chart::Chart;
use crate::render::page::{FORMATS, Page, terminal};
use crate::render::{chart, export, output};
use crate::run_report::{Report, metrics_and_limits};
use crate::store::Store;
use crate::store::open_store;
use std::path::Path;

/// Writes the page of a stored run.
pub fn report(args: &ReportArgs) -> Result<Code, Fault> {
    if args.last {
        return Err(Fault::usage("`scruple report --last` is now `scruple report last`"));
    }
    metrics_and_limits::check_metrics(&args.metrics)?;
    let files = files(args)?;
    let page = found(args)?;
    let texts: Vec<(&Path, String)> = files
        .iter()
        .map(|file| Ok((file.path.as_path(), written(&page, &file.format, args)?)))
        .collect::<Result<_, Fault>>()?;
    output::write_files(texts)?.map_or(Ok(Code::Fine), Err)
}

/// Returns the files to write: those that are requested, or else what the terminal shows. The list of charts goes to
/// the terminal only.
fn files(args: &ReportArgs) -> Result<Vec<Export>, Fault> {
    let on_terminal = |format: &str| vec![Export { format: format.to_owned(), path: "-".into() }];
    match args.svg.as_deref() {
        Some("list") => return Ok(on_terminal("list")),
        Some(_) if args.export.is_empty() => return Ok(on_terminal("svg")),
        None if args.export.is_empty() => return Ok(on_terminal("terminal")),
        _ => {}
    }
    let files = export::checked(args.export.clone(), &[names(&FORMATS), vec!["svg"]].concat())?;
    for file in &files {
        match (file.format.as_str(), &args.svg) {
            ("svg", None) => {
                return Err(Fault::usage(
                    "a picture holds one chart: name it with --svg; `--svg list` says which there are",
                ));
            }
            (other, Some(_)) if other != "svg" => {
                return Err(Fault::usage(format!(
                    "--svg writes a picture, not .{other}: name a file with the extension .svg"
                )));
            }
            _ => {}
        }
    }
    Ok(files)
}

/// Returns what a terminal shows of the history that a run is, with the metrics that match these patterns; `None` where
/// the run is not a history.
pub fn history_text(store: &Store, name: &str, metrics: &[String]) -> Result<Option<String>, Fault> {
    let Some(history) = history::of_run(&store.find_id(name)?, store)? else { return Ok(None) };
    let explained = changes::known(store, &history.run.id)?;
    Ok(Some(history::verb::page::terminal_of(&history, explained, metrics)))
}

/// Returns the page of the requested run or runs.
fn found(args: &ReportArgs) -> Result<Page, Fault> {
    let store = open_store::existing(args.store.as_deref())?;
    let [name] = &args.runs[..] else {
        let runs: Result<Vec<_>, Fault> =
            args.runs.iter().map(|name| Ok((name.as_str(), store.find(name)?))).collect();
        return several::of(&runs?, &args.metrics);
    };
    if let Some(history) = history::of_run(&store.find_id(name)?, &store)? {
        let explained = changes::known(&store, &history.run.id)?;
        return Ok(history::verb::page::of(&history, explained, &args.metrics));
    }
    let mut run = store.find(name)?;
    run.name_versions();
    let others = store.sections(&run.id)?;
    if leak::is_one(&run) {
        return Ok(leak::of(&run, &args.metrics, others));
    }
    Ok(page_with(&Report::of(&run, &args.metrics, &run.terms.limits), others))
}

fn written(page: &Page, format: &str, args: &ReportArgs) -> Result<String, Fault> {
    Ok(match format {
        "svg" => picture(page, args.svg.as_deref().unwrap_or_default())?,
        "list" => charts(page)?.iter().map(|chart| format!("{}\t{}\n", chart.name, chart.title)).collect(),
        _ => match writer(&FORMATS, format) {
            Some(text) => text(page),
            None => {
                let width = output::width();
                format!("{}\n\n{}", wrap(&page.sentence(), width), terminal::charts(page, width))
            }
        },
    })
}

/// Returns the charts of a page, or an error if it has none.
fn charts(page: &Page) -> Result<Vec<&Chart>, Fault> {
    let charts = page.charts();
    match charts.is_empty() {
        true => Err(Fault::usage("nothing of this run can be drawn: no metric has more than one reading")),
        false => Ok(charts),
    }
}

fn picture(page: &Page, name: &str) -> Result<String, Fault> {
    let charts = charts(page)?;
    match charts.iter().find(|one| one.name == name) {
        Some(one) => Ok(chart::picture([*one])),
        None => {
            let names: Vec<&str> = charts.iter().map(|one| one.name.as_str()).collect();
            Err(Fault::usage(format!("there is no chart ‘{name}’: there are {}", names.join(", "))))
        }
    }
}
