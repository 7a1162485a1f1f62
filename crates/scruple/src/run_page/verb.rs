//! Finds the requested run, makes its page, and writes it.

use super::args::ReportArgs;
use super::{leak, page_with, several};
use crate::explain::changes;
use crate::fault::{Code, Fault};
use crate::history;
use crate::paths;
use crate::render::Report;
use crate::render::align::wrap;
use crate::render::chart;
use crate::render::export::{names, writer};
use crate::render::output;
use crate::render::page::{FORMATS, Page, terminal};
use crate::store::Store;
use std::path::Path;

/// Writes the page of a stored run.
pub fn report(args: &ReportArgs) -> Result<Code, Fault> {
    if args.last {
        return Err(Fault::usage("`scruple report --last` is now `scruple report last`"));
    }
    output::check_metrics(&args.metrics)?;
    let format = format(args)?;
    let output = args.output.as_deref().filter(|path| *path != Path::new("-"));
    if let Some(path) = output {
        output::check_writable(path)?;
    }
    let page = found(args)?;
    let text = written(&page, format, args)?;
    match output {
        Some(path) => output::write_files([(path, text)])?.map_or(Ok(Code::Fine), Err),
        None => output::print(&text).map(|()| Code::Fine),
    }
}

/// Returns the format to write, according to the ending of the file name.
fn format(args: &ReportArgs) -> Result<&'static str, Fault> {
    let Some(path) = args.output.as_deref().filter(|path| *path != Path::new("-")) else {
        return Ok(match &args.svg {
            Some(name) if name != "list" => "svg",
            Some(_) => "list",
            None if args.output.is_some() => "html",
            None => "terminal",
        });
    };
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let endings = [names(&FORMATS), vec!["svg"]].concat();
    let known = endings.iter().copied().find(|known| known.eq_ignore_ascii_case(ending));
    match (known, &args.svg) {
        (Some("svg"), None) => Err(Fault::usage(
            "a picture holds one chart: name it with --svg; `--svg list` says which there are",
        )),
        (Some(_), Some(name)) if name == "list" => Ok("list"),
        (Some(other), Some(_)) if other != "svg" => Err(Fault::usage(format!(
            "--svg writes a picture, not .{other}: name a file with the extension .svg"
        ))),
        (Some(known), _) => Ok(known),
        (None, _) => Err(Fault::usage(format!(
            "cannot tell the format of ‘{}’ from its extension: use one of .{}",
            path.display(),
            endings.join(", .")
        ))),
    }
}

/// Returns what a terminal shows of the history that a run is, with the metrics that match these patterns; `None` where
/// the run is no history.
pub fn history_text(store: &Store, name: &str, metrics: &[String]) -> Result<Option<String>, Fault> {
    let Some(history) = history::of_run(&store.find_id(name)?, store)? else { return Ok(None) };
    let explained = changes::known(store, &history.run.id)?;
    Ok(Some(history::verb::page::terminal_of(&history, explained, metrics)))
}

/// Returns the page of the requested run or runs.
fn found(args: &ReportArgs) -> Result<Page, Fault> {
    let store = paths::existing_store(args.store.as_deref())?;
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
        "list" => page.charts().iter().map(|chart| format!("{}\t{}\n", chart.name, chart.title)).collect(),
        _ => match writer(&FORMATS, format) {
            Some(text) => text(page),
            None => {
                let width = output::width();
                format!("{}\n\n{}", wrap(&page.sentence(), width), terminal::charts(page, width))
            }
        },
    })
}

fn picture(page: &Page, name: &str) -> Result<String, Fault> {
    let charts = page.charts();
    match charts.iter().find(|one| one.name == name) {
        Some(one) => Ok(chart::picture([*one])),
        None if charts.is_empty() => {
            Err(Fault::usage("nothing of this run can be drawn: no metric has more than one reading"))
        }
        None => {
            let names: Vec<&str> = charts.iter().map(|one| one.name.as_str()).collect();
            Err(Fault::usage(format!("there is no chart ‘{name}’: there are {}", names.join(", "))))
        }
    }
}
