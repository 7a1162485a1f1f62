//! Files of the working tree that git does not track. They are not built, which a user may not expect.

use super::accepted_changes;
use super::cache::Cache;
use super::source_repository::Source;
use super::tree_path::TreePath;
use crate::fault::Fault;
use scruple_core::harmless_text::plain;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns a remark about untracked files. Artefacts deserve none, because the build makes them. Neither do files that
/// Scruple writes: those of this command, which are `written` or its redirected output, and those of earlier commands,
/// which the folder of builds remembers.
pub(super) fn remark(
    source: &Source,
    cache: &Cache,
    artefacts: &[TreePath],
    written: &[PathBuf],
) -> Result<Option<(&'static str, String)>, Fault> {
    let results = remembered_results(source, cache, written)?;
    let words = ["ls-files", "--others", "--exclude-standard", "-z", ":/"];
    let answer = source.repository.ask_of_tree(words, &[]).unwrap_or_default();
    let artefacts: Vec<PathBuf> = artefacts.iter().map(TreePath::below_top).collect();
    let is_artefact = |name: &str| artefacts.iter().any(|artefact| Path::new(name).starts_with(artefact));
    // The acceptances in this file count although it is not tracked.
    let untracked = answer.split('\0').filter(|name| !name.is_empty() && *name != accepted_changes::FILE);
    let names: Vec<&str> = untracked.filter(|name| !results.contains(*name) && !is_artefact(name)).collect();
    let Some(first) = names.first().map(|name| plain(name)) else { return Ok(None) };
    let (more, are, they) = match names.len() {
        1 => (String::new(), "is", "it"),
        2 => (" and 1 more file".to_owned(), "are", "they"),
        all => (format!(" and {} more files", all - 1), "are", "they"),
    };
    let text = format!(
        "‘{first}’{more} {are} not tracked by git, so {they} {are} not part of the working tree here: use `git add`"
    );
    Ok(Some(("untracked", text)))
}

/// Returns the names of all files of the working tree that results were written to, and remembers those of this
/// command.
fn remembered_results(
    source: &Source,
    cache: &Cache,
    written: &[PathBuf],
) -> Result<BTreeSet<String>, Fault> {
    let list = cache.results();
    let mut results: BTreeSet<String> =
        fs::read_to_string(&list).unwrap_or_default().split_terminator('\0').map(str::to_owned).collect();
    let before = results.len();
    // The link of a stream leads to a file if the output is redirected to one.
    let redirected =
        ["/proc/self/fd/1", "/proc/self/fd/2"].iter().filter_map(|link| fs::read_link(link).ok());
    let root = Path::new(&source.place).canonicalize().unwrap_or_default();
    let all = written.iter().cloned().chain(redirected);
    results.extend(all.filter_map(|file| name_in_tree(&root, &file)));
    if results.len() > before {
        let text: String = results.iter().map(|name| format!("{name}\0")).collect();
        fs::write(&list, text).map_err(|error| Fault::unwritable(&list, error))?;
    }
    Ok(results)
}

/// Returns the name of a file of the working tree, which need not exist yet.
fn name_in_tree(root: &Path, file: &Path) -> Option<String> {
    let folder = std::path::absolute(file).ok()?.parent()?.canonicalize().ok()?;
    Some(folder.join(file.file_name()?).strip_prefix(root).ok()?.to_str()?.to_owned())
}
