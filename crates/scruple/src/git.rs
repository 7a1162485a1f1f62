//! What git says about a folder, through the git program.

use std::path::Path;
use std::process::{Command, Stdio};

/// The state of a working tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeState {
    /// The commit that is checked out.
    pub commit: String,
    /// Whether the tree differs from it.
    pub dirty: bool,
}

/// The state of the repository a folder is in; none outside one, without commits, or without git.
pub fn state(folder: &Path) -> Option<TreeState> {
    let commit = answer(folder, &["rev-parse", "HEAD"])?;
    let dirty = !answer(folder, &["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(TreeState { commit, dirty })
}

fn answer(folder: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(words)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
