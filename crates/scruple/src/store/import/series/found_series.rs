//! Collects the series of all files of one import.

use super::{Values, asv, columns, history, json};
use crate::fault::Fault;
use crate::store::StoredHistory;
use crate::store::import::file_text::{refusal, text_of};
use crate::store::import::{Format, recognise};
use scruple_core::plural::counted;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The largest depth at which folders are searched for result files of asv.
const DEEPEST: usize = 8;

/// The series that were found: one for each file of the user's own, and one for all files of asv.
#[derive(Default)]
pub struct FoundSeries {
    own: Vec<(PathBuf, Values)>,
    asv: Option<(PathBuf, Values)>,
}

impl FoundSeries {
    /// Adds the content of a text, if it is a series. Returns whether it is one.
    pub fn add(&mut self, path: &Path, format: Format, text: &str) -> Result<bool, Fault> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
        let refused = |error| refusal(path, format, &error);
        match format {
            Format::Series => {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                let name = if matches!(&*name, "" | "-") { "series" } else { &name };
                let values = match text.starts_with(['[', '{']) {
                    true => json::read(text, name),
                    false => columns::read(text, name),
                };
                self.own.push((path.to_owned(), values.map_err(refused)?));
                Ok(true)
            }
            Format::Asv => {
                let more = asv::read(text).map_err(refused)?;
                let (_, all) = self.asv.get_or_insert_with(|| (path.to_owned(), Values::default()));
                all.values.extend(more.values);
                for (text, versions) in more.left_out {
                    all.left_out.entry(text).or_default().extend(versions);
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Adds the results of asv in a folder. Returns whether there are any.
    pub fn add_folder(&mut self, folder: &Path) -> Result<bool, Fault> {
        let mut files = Vec::new();
        json_files(folder, DEEPEST, &mut files);
        files.sort_unstable();
        let mut found = false;
        for path in files {
            let name = path.file_name().unwrap_or_default();
            if name == "benchmarks.json" || name == "machine.json" {
                continue;
            }
            let text = text_of(&path)?;
            if recognise(&text) == Some(Format::Asv) {
                self.add(&path, Format::Asv, &text)?;
                found = true;
            }
        }
        Ok(found)
    }

    /// Creates a history from each series.
    pub fn histories(self, label: Option<&str>) -> Result<Vec<StoredHistory>, Fault> {
        let mut histories = Vec::new();
        for (path, values) in self.own {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let made = history(&name, "series", values, label);
            histories.push(made.map_err(|error| refusal(&path, Format::Series, &error))?);
        }
        if let Some((path, values)) = self.asv {
            let made = history("asv", asv::TOOL, values, label);
            histories.push(made.map_err(|error| refusal(&path, Format::Asv, &error))?);
        }
        Ok(histories)
    }
}

fn json_files(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        // Symbolic links are not followed, because they may form a cycle.
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth > 0 {
            json_files(&path, depth - 1, found);
        } else if kind.is_file() && path.extension().is_some_and(|ending| ending == "json") {
            found.push(path);
        }
    }
}

/// Describes what was imported, and how to show it.
pub fn summary(history: &StoredHistory, option: &str) -> String {
    let (run, count) = (&history.run, history.entries.len());
    let mut names: Vec<&str> = run.arms.iter().map(|arm| arm.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let (subjects, versions) = (counted(names.len(), "subject"), counted(count, "version"));
    let label = run.label.as_ref().map_or(String::new(), |label| format!(" (‘{label}’)"));
    let mut text = format!(
        "Imported {versions} of {subjects} from ‘{}’ as history {}{label}; `scruple history report {}{option}` judges it.\n",
        history.repository, run.id, run.id
    );
    for warning in &run.warnings {
        let _ = writeln!(text, "! {}", warning.text);
    }
    text
}
