//! `scruple store list`: lists the stored runs.

use super::args::ListArgs;
use super::{ListedRun, Store, outbox};
use crate::fault::{Code, Fault};
use crate::paths;
use crate::render::align::fit;
use crate::render::json::{moment, timestamp, written};
use crate::render::output;
use scruple_core::harmless_text::without_middle;
use scruple_core::run::RunState;
use serde::Serialize;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// The most characters of a label that the table shows; JSON has all.
const LABEL: usize = 60;

#[derive(Serialize)]
struct ListedRunView<'a> {
    id: &'a str,
    label: Option<&'a str>,
    started: String,
    state: &'static str,
    arms: &'a [String],
    argv: &'a [String],
}

/// Prints the newest runs.
pub fn list(args: &ListArgs) -> Result<Code, Fault> {
    let address = paths::store_address(args.store.as_deref())?;
    if let Some((file, count)) = outbox::waiting(&address) {
        let (runs, them) = if count == 1 { ("1 run is", "it") } else { ("some runs are", "them") };
        output::warn(&format!(
            "{runs} still in ‘{file}’ and not on the server: `{}` puts {them} there",
            outbox::copy_command(&file, &address)
        ));
    }
    let runs = Store::open_existing(&address)?.list(args.most)?;
    let text = if args.json { as_json(&runs) } else { as_table(&runs) };
    output::print(&text)?;
    Ok(Code::Fine)
}

fn as_json(runs: &[ListedRun]) -> String {
    let lines: Vec<ListedRunView<'_>> = runs
        .iter()
        .map(|run| ListedRunView {
            id: &run.id,
            label: run.label.as_deref(),
            started: timestamp(run.started),
            state: run.state.word(),
            arms: &run.arms,
            argv: &run.argv,
        })
        .collect();
    written(&lines)
}

fn as_table(runs: &[ListedRun]) -> String {
    let label_of = |run: &ListedRun| without_middle(run.label.as_deref().unwrap_or_default(), LABEL);
    let labels = runs.iter().map(|run| label_of(run).width()).max().unwrap_or(0);
    let mut text = String::new();
    for run in runs {
        let state =
            if run.state == RunState::Complete { String::new() } else { format!(" ({})", run.state.word()) };
        let label = fit(&label_of(run), labels);
        let gap = if labels > 0 { "  " } else { "" };
        let when = moment(run.started);
        let _ = writeln!(text, "{}  {when}  {label}{gap}{}{state}", run.id, run.arms.join(" | "));
    }
    if text.is_empty() {
        text.push_str("No runs are stored yet: `scruple run` stores the first.\n");
    }
    text
}
