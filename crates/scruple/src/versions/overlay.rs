//! Exceptions that apply to a part of a range.

use super::tree_path::TreePath;
use scruple_stats::sorting::SortedMap;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A text that is replaced everywhere in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the keys file, from and to")]
pub struct Replacement {
    /// The path of the file, relative to the top of the tree.
    pub file: TreePath,
    /// The text to replace.
    pub from: String,
    /// The text to put in its place.
    pub to: String,
}

/// The exceptions that apply to a part of the range.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overlay {
    /// The range, or the single commit, that the exceptions apply to.
    pub commits: String,
    /// The path of a patch file, and its text.
    pub patch: Option<(PathBuf, String)>,
    /// The replacements of text in files.
    pub replace: Vec<Replacement>,
    /// The steps that replace those of the recipe.
    pub steps: Option<Vec<String>>,
    /// The variables that are added to those of the recipe.
    pub env: SortedMap<String, String>,
    /// The values of parameters for this part of the range.
    pub params: SortedMap<String, String>,
}
