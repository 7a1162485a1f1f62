//! `scruple store import`: reads results of other benchmark tools into the store.

use super::args::ImportArgs;
use super::criterion_rs::{self, CriterionFolder};
use super::file_text::{refusal, text_of};
use super::series::found_series::{self, FoundSeries};
use super::{Format, Imported, summaries};
use crate::cli::values;
use crate::fault::{Code, Fault};
use crate::new_run;
use crate::paths;
use crate::render::output;
use crate::store::Store;
use scruple_core::default_margins;
use scruple_core::plural::counted;
use scruple_core::run::{Run, RunState, Terms};
use scruple_core::subject::{Role, Subject};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The largest depth at which folders are searched for results of criterion.rs.
const DEEPEST: usize = 32;

/// Reads every file, and stores the contents only if all could be read.
pub fn import(args: &ImportArgs) -> Result<Code, Fault> {
    let mut found: Vec<(String, Format, Imported)> = Vec::new();
    let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
    let mut series = FoundSeries::default();
    for path in &args.files {
        if path.is_dir()
            && args.format.is_none_or(|format| format == Format::Asv)
            && series.add_folder(path)?
        {
            continue;
        }
        if path.is_dir() {
            gather(path, args.format, &mut folders)?;
            continue;
        }
        let text = text_of(path)?;
        let format = match args.format.or_else(|| super::recognise(&text)) {
            Some(format) => format,
            None => return Err(unknown(path, &text)),
        };
        if series.add(path, format, &text)? {
            continue;
        }
        let in_folder =
            format == Format::CriterionRs && path != Path::new("-") && !criterion_rs::is_of_critcmp(&text);
        match path.parent().filter(|_| in_folder) {
            Some(folder) => {
                // The parent of a name without a folder is empty, and means the working folder.
                let here = folder.as_os_str().is_empty();
                folders.insert(if here { PathBuf::from(".") } else { folder.to_owned() });
            }
            None => {
                let imported = super::read(format, &text).map_err(|error| refusal(path, format, &error))?;
                found.push((path.display().to_string(), format, imported));
            }
        }
    }
    found.extend(of_folders(&folders)?);
    values::label(args.label.as_deref())?;
    let mut histories = series.histories(args.label.as_deref())?;
    if args.label.is_some() && found.len() + histories.len() > 1 {
        return Err(Fault::usage(format!(
            "a label names one run, and these files make {}: import them one at a time, or without --label",
            found.len() + histories.len()
        )));
    }
    let place = paths::store_address(args.store.as_deref())?;
    let option = paths::store_option(&place);
    let store = Store::open(&place)?;
    let mut runs: Vec<Run> = Vec::new();
    let mut text = String::new();
    let files: BTreeSet<String> = found.iter().map(|(path, ..)| path.clone()).collect();
    for (position, (path, format, mut imported)) in found.into_iter().enumerate() {
        let range = imported.history.take();
        let mut run = run_of(imported, args.label.as_deref(), position);
        // The command line of a run names only the file that it comes from: there may be thousands of others.
        run.argv.retain(|word| *word == path || !files.contains(word));
        match range {
            Some(range) => histories.push(range.stored(run)),
            None => {
                text.push_str(&summary(&run, &path, format, &option));
                runs.push(run);
            }
        }
    }
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    for run in runs.iter().chain(histories.iter().map(|history| &history.run)) {
        if !ids.insert(&run.id) || store.has(&run.id)? {
            return Err(Fault::usage(format!(
                "the run {} is in the store already, or named twice: `scruple store rm {}` removes it, and --store \
                 names another store. Nothing was imported",
                run.id, run.id
            )));
        }
    }
    histories.iter().for_each(|history| text.push_str(&found_series::summary(history, &option)));
    store.add(&runs, &histories)?;
    output::print(&text)?;
    Ok(Code::Fine)
}

/// Creates the run of another tool's readings. `position` orders the runs that do not say when they were measured.
fn run_of(imported: Imported, label: Option<&str>, position: usize) -> Run {
    let margin = match imported.arms.first().map(|arm| &arm.subject) {
        Some(Subject::Case { .. }) => default_margins::CASES,
        _ => Terms::default().margin,
    };
    let mut run = new_run::run_from_elsewhere(Some(0), label, Terms { margin, ..Terms::default() });
    run.started = imported.started.filter(|moment| *moment > 0).unwrap_or(run.started + position as i64);
    run.id = new_run::identifier_of(run.started as u64, position);
    run.state = RunState::Complete;
    run.provenance = imported.provenance;
    run.arms = imported.arms;
    run.warnings = imported.warnings;
    if let Some(own) = imported.identity {
        (run.id, run.state, run.seed, run.argv, run.terms) =
            (own.id, own.state, own.seed, own.argv, own.terms);
        run.started = imported.started.unwrap_or(run.started);
        run.label = run.label.or(own.label);
    }
    run
}

/// Describes what was imported, with the remarks about it.
fn summary(run: &Run, path: &str, format: Format, option: &str) -> String {
    let label = run.label.as_ref().map_or(String::new(), |label| format!(" (‘{label}’)"));
    let tool = format.tool();
    let word = if format == Format::Scruple { "arm" } else { "benchmark" };
    let what = counted(run.arms_of(Role::Subject).count(), word);
    let from = match path {
        "-" => "standard input".to_owned(),
        path if Path::new(path).exists() => format!("‘{path}’"),
        folders => folders.to_owned(),
    };
    let mut text = format!(
        "Imported {what} of {tool} from {from} as run {}{label}; `scruple show {}{option}` shows it.\n",
        run.id, run.id
    );
    for warning in &run.warnings {
        let _ = writeln!(text, "! {}", warning.text);
    }
    text
}

fn unknown(path: &Path, text: &str) -> Fault {
    if let Some(tool) = summaries::tool_of(text) {
        return Fault::usage(format!(
            "cannot import ‘{}’: it is a summary of {}, without the readings; {}",
            path.display(),
            tool.tool(),
            tool.advice()
        ));
    }
    if text.trim().is_empty() {
        return Fault::usage(format!(
            "cannot import ‘{}’: it is empty, as if the tool was interrupted before it wrote its results",
            path.display()
        ));
    }
    Fault::usage(format!(
        "cannot import ‘{}’: it looks like none of the formats that are known; name one with --format, or see \
         `scruple store import --help`",
        path.display()
    ))
}

/// Collects the folders below this one that hold the newest results of a benchmark.
fn gather(folder: &Path, format: Option<Format>, found: &mut BTreeSet<PathBuf>) -> Result<(), Fault> {
    let before = found.len();
    if format.is_none_or(|format| format == Format::CriterionRs) {
        if holds_benchmark(folder) {
            found.insert(folder.to_owned());
        }
        descend(folder, DEEPEST, found);
    }
    match found.len() > before {
        true => Ok(()),
        false => Err(Fault::usage(format!(
            "cannot import the folder ‘{}’: it has neither a new/sample.json of criterion.rs nor results of asv; name \
             the files of other tools one by one",
            folder.display()
        ))),
    }
}

fn holds_benchmark(folder: &Path) -> bool {
    folder.join("benchmark.json").is_file()
        && (folder.join("sample.json").is_file() || folder.join("estimates.json").is_file())
}

fn descend(folder: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        // Symbolic links are not followed, because they may form a cycle.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || depth == 0 {
            continue;
        }
        let path = entry.path();
        match entry.file_name() == "new" && holds_benchmark(&path) {
            true => {
                found.insert(path);
            }
            false => descend(&path, depth - 1, found),
        }
    }
}

/// Combines all folders of criterion.rs into one run, since one `cargo bench` wrote them.
fn of_folders(folders: &BTreeSet<PathBuf>) -> Result<Option<(String, Format, Imported)>, Fault> {
    let Some(first) = folders.first() else { return Ok(None) };
    let optional = |path: PathBuf| path.is_file().then(|| text_of(&path)).transpose();
    let mut texts = Vec::new();
    for folder in folders {
        texts.push(CriterionFolder {
            place: folder.display().to_string(),
            benchmark: optional(folder.join("benchmark.json"))?,
            sample: optional(folder.join("sample.json"))?,
            estimates: optional(folder.join("estimates.json"))?,
        });
    }
    let imported = criterion_rs::read(&texts).map_err(|error| refusal(first, Format::CriterionRs, &error))?;
    let place = match folders.len() {
        1 => first.display().to_string(),
        count => format!("{count} folders"),
    };
    Ok(Some((place, Format::CriterionRs, imported)))
}
