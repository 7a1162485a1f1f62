//! Frees the disk space of builds: those of one repository, or those that were not used for some time.

use super::artefacts::Artefacts;
use super::cache::Cache;
use crate::fault::Fault;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How much was freed, or could be freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreedSpace {
    /// The freed disk space, in bytes.
    pub bytes: u64,
    /// The number of freed builds.
    pub builds: usize,
    /// The disk space that the remaining builds use, in bytes.
    pub left: u64,
}

/// Removes the builds of the repository with this folder: those that were not used within the given time, or else all
/// of them with the tree and the mirror. With `dry_run`, removes nothing. Readings stay in the store, and removed
/// builds are made again when they are needed.
pub fn clean(folder: PathBuf, older_than: Option<Duration>, dry_run: bool) -> Result<FreedSpace, Fault> {
    let cache = Cache::take(folder, &[])?;
    let before = size(cache.folder());
    let builds = entries(&cache.folder().join("built")).len();
    let Some(age) = older_than else {
        if !dry_run {
            let folder = cache.folder();
            fs::remove_dir_all(folder).map_err(|error| Fault::unwritable(folder, error))?;
        }
        return Ok(FreedSpace { bytes: before, builds, left: 0 });
    };
    let old = |path: &Path| {
        let modified = path.metadata().and_then(|data| data.modified());
        modified.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|since| since > age))
    };
    let recipes = entries(&cache.folder().join("recipes"));
    let (stale, current): (Vec<PathBuf>, Vec<PathBuf>) = recipes.into_iter().partition(|path| old(path));
    let digest = |path: &PathBuf| {
        let artefacts: Artefacts = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
        Some(artefacts.digest)
    };
    let wanted: HashSet<String> = current.iter().filter_map(digest).collect();
    let unwanted =
        |path: &PathBuf| path.file_name().is_none_or(|name| !wanted.contains(&*name.to_string_lossy()));
    let built: Vec<PathBuf> = entries(&cache.folder().join("built")).into_iter().filter(unwanted).collect();
    let logs = entries(&cache.folder().join("logs")).into_iter().filter(|path| old(path));
    let lists = entries(&cache.folder().join("lists")).into_iter().filter(unwanted);
    let gone: Vec<PathBuf> =
        stale.into_iter().chain(built.iter().cloned()).chain(lists).chain(logs).collect();
    let bytes = gone.iter().map(|path| size(path)).sum();
    if !dry_run {
        for path in &gone {
            let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            removed.map_err(|error| Fault::unwritable(path, error))?;
        }
    }
    Ok(FreedSpace { bytes, builds: built.len(), left: before - bytes })
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Returns the disk space of a path and everything below it, in bytes.
fn size(path: &Path) -> u64 {
    let Ok(data) = path.symlink_metadata() else { return 0 };
    let below = if data.is_dir() { entries(path).iter().map(|path| size(path)).sum() } else { 0 };
    data.blocks() * 512 + below
}
