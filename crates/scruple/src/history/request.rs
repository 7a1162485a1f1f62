//! What a history is asked to do, and with what.

use super::schedule::HistoryEffort;
use crate::progress::Progress;
use crate::versions::recipe::Recipe;
use crate::versions::selection::VersionSelection;
use crate::versions::subjects::SubjectTemplate;
use scruple_measure::command::Weigher;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// What the user asked a history to do.
pub struct HistoryRequest {
    /// The absolute path or the URL of the repository.
    pub place: String,
    /// Which versions to select.
    pub selection: VersionSelection,
    /// Whether to use the versions that the history already lists, if it exists.
    pub as_listed: bool,
    /// How versions are built, and which subjects are weighed.
    pub of: Definition,
    /// How much to measure.
    pub effort: HistoryEffort,
    /// The margin, if the user gave one. Otherwise that of a stored history remains.
    pub margin: Option<f64>,
    /// Whether to weigh the ends first. By default the number of versions decides.
    pub adaptive: Option<bool>,
    /// Whether to build failed versions again.
    pub retry: bool,
    /// Whether to continue however many builds fail.
    pub keep_going: bool,
    /// Which versions are weighed.
    pub aim: Aim,
}

/// What defines a history: its recipe, subjects and limits. It is stored with the history, so that the user can
/// continue the history without repeating it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// How versions are built.
    pub recipe: Recipe,
    /// The subjects that are weighed at each version.
    pub subjects: Vec<SubjectTemplate>,
    /// Whether a version is wrong if its output differs from that of the first version.
    pub same_output: bool,
    /// The time limit of a launch of a command.
    pub time_limit: Duration,
    /// Whether only time is measured.
    pub time_only: bool,
    /// Whether only the first parents of merges are followed.
    pub first_parent: bool,
    /// How often every version is built, if the user gave a number.
    #[serde(default)]
    pub builds: Option<u32>,
}

/// Which versions are weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// The versions of the selection.
    Selection,
    /// The versions that may have caused a change.
    Sets,
    /// The versions of the selection, and those that the history already lists.
    Beside,
}

/// The weigher, the progress display and the settings of measurement.
pub struct WeighingTools {
    /// The weigher, which launches and measures programs.
    pub weigher: Box<dyn Weigher>,
    /// The progress display.
    pub progress: Progress,
    /// The folder for the files of instruments.
    pub work: PathBuf,
    /// Whether instructions are counted.
    pub instructions: bool,
    /// Whether the number of requested bytes is read.
    pub requested: bool,
}
