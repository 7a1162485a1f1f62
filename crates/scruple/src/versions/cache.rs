//! The folder of one repository's builds: their common tree, their logs, and their artefacts by content.
//!
//! ```text
//! tree/              the tree that versions are built in, a clone that borrows the repository's objects
//! tree.second/       the tree of the second of two versions that are compared, with files of its own for build systems
//! built/DIGEST/      artefacts; all digests have the same length, so that the paths of all versions do as well
//! lists/DIGEST       the names of the files among these artefacts
//! recipes/DIGEST     the result of building a tree with a recipe and tools
//! logs/COMMIT.log    the output of the build, the check or a measured program
//! ```

use super::artefacts::{self, Artefacts};
use super::tree_path::TreePath;
use crate::digest::{digest, entry};
use crate::fault::Fault;
use crate::lock::Lock;
use scruple_measure::error_output::shown_lines;
use scruple_measure::host::host_name;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The largest part of a log, in bytes, that is read for an error.
const END_OF_LOG: usize = 64 << 10;

/// Returns the end of a log, of at most this many bytes; `None` if the log cannot be read.
pub fn end_of_log(log: &Path, most: usize) -> Option<String> {
    let bytes = fs::read(log).ok()?;
    Some(String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(most)..]).into_owned())
}

/// The folder of builds. This process holds its lock while the value exists.
pub struct Cache {
    folder: PathBuf,
    _lock: Lock,
    /// The digests of the artefacts that this process has verified.
    verified: RefCell<BTreeSet<String>>,
}

impl Cache {
    /// Locks the folder, or returns an error if another process holds the lock. The lock of a killed process is free at
    /// once, so this waits up to 5 s until the launchers of that process have ended the programs that they run.
    pub fn take(folder: PathBuf, launchers: &[i32]) -> Result<Cache, Fault> {
        for part in ["built", "lists", "recipes", "logs"] {
            let part = folder.join(part);
            fs::create_dir_all(&part).map_err(|error| Fault::unwritable(&part, error))?;
        }
        let path = folder.join("lock");
        let failed = |error| Fault::unwritable(&path, error);
        // The file names the process that holds the lock, and its launchers.
        let holders = fs::read_to_string(&path).unwrap_or_default();
        let Some(lock) = Lock::take(&path)? else {
            return Err(Fault::usage(format!(
                "another scruple is building or weighing versions of this repository (process {}): wait for it to end",
                holders.split_whitespace().next().unwrap_or("unknown")
            )));
        };
        let began = Instant::now();
        while holders.split_whitespace().skip(1).any(is_launcher) && began.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        let words: Vec<String> = std::iter::once(std::process::id().to_string())
            .chain(launchers.iter().map(i32::to_string))
            .collect();
        fs::write(&path, words.join(" ")).map_err(failed)?;
        let cache = Cache { folder, _lock: lock, verified: RefCell::default() };
        cache.recover()?;
        Ok(cache)
    }

    /// Returns the path of the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the tree that versions are built in.
    pub fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// Replaces the first tree by the second, until [`Cache::use_first_tree`] is called. It has the same path, so that paths
    /// inside builds are equal. Returns whether a second tree already existed.
    pub fn use_second_tree(&self) -> Result<bool, Fault> {
        let [tree, first, second] = self.trees();
        rename(&tree, &first)?;
        let known = second.exists();
        if known {
            rename(&second, &tree)?;
        }
        Ok(known)
    }

    /// Moves both trees back to their usual paths.
    pub fn use_first_tree(&self) -> Result<(), Fault> {
        let [tree, first, second] = self.trees();
        if first.exists() {
            if tree.exists() {
                rename(&tree, &second)?;
            }
            rename(&first, &tree)?;
        }
        Ok(())
    }

    /// Returns three paths: the tree where versions are built, the first tree while the second is in use, and the
    /// second tree while it is not in use.
    pub fn trees(&self) -> [PathBuf; 3] {
        ["tree", "tree.first", "tree.second"].map(|name| self.folder.join(name))
    }

    /// Restores the trees after a process was killed between [`Cache::use_second_tree`] and [`Cache::use_first_tree`].
    fn recover(&self) -> Result<(), Fault> {
        let [tree, first, _] = self.trees();
        let building = self.folder.join("building");
        if first.exists() && building.exists() {
            // The interrupted build took place in the tree that is removed here.
            fs::remove_dir_all(&tree).map_err(|error| Fault::unwritable(&tree, error))?;
            fs::remove_file(&building).map_err(|error| Fault::unwritable(&building, error))?;
        }
        self.use_first_tree()
    }

    /// Returns the path of a version's log.
    pub fn log(&self, commit: &str) -> PathBuf {
        entry(&self.folder.join("logs"), &format!("{commit}.log"))
    }

    /// Returns the lines of the log of a build that an error shows.
    pub fn shown_lines_of_log(&self, commit: &str) -> String {
        shown_lines(end_of_log(&self.log(commit), END_OF_LOG).unwrap_or_default().as_bytes())
    }

    /// Returns the path of the list of files that results were written to.
    pub fn results(&self) -> PathBuf {
        self.folder.join("results")
    }

    /// Returns the folder of the artefacts with this digest.
    pub fn built(&self, digest: &str) -> PathBuf {
        entry(&self.folder.join("built"), digest)
    }

    fn list(&self, digest: &str) -> PathBuf {
        entry(&self.folder.join("lists"), digest)
    }

    /// Whether the artefacts exist unchanged since they were built. Removes files that programs have added. Removes
    /// changed artefacts as well, so that they are built again.
    pub fn has(&self, digest: &str) -> Result<bool, Fault> {
        let folder = self.built(digest);
        if digest.is_empty() || !folder.is_dir() {
            return Ok(false);
        }
        if self.verified.borrow().contains(digest) {
            return Ok(true);
        }
        let failed = |error| Fault::unwritable(&folder, error);
        let listed = names_in(&fs::read(self.list(digest)).unwrap_or_default());
        for found in artefacts::files(&folder, Path::new("")).map_err(failed)? {
            if listed.binary_search(&found).is_err() {
                fs::remove_file(folder.join(found)).map_err(failed)?;
            }
        }
        let whole = artefacts::digest_of(&folder, &listed).is_ok_and(|(now, _)| now == digest);
        match whole {
            true => drop(self.verified.borrow_mut().insert(digest.to_owned())),
            false => fs::remove_dir_all(&folder).map_err(failed)?,
        }
        Ok(whole)
    }

    /// Whether another process holds the lock of the folder.
    pub fn is_held(folder: &Path) -> bool {
        Lock::is_held(&folder.join("lock"))
    }

    /// Copies artefacts from another folder of builds, unless this one has them. Returns false if they are incomplete
    /// there.
    pub fn fetch(&self, shared: &Path, digest: &str) -> Result<bool, Fault> {
        Ok(self.has(digest)? || transfer(shared, &self.folder, digest)? && self.has(digest)?)
    }

    /// Copies artefacts into another folder of builds, which other processes may write to at the same time.
    pub fn share(&self, shared: &Path, digest: &str) -> Result<(), Fault> {
        match entry(&shared.join("built"), digest).is_dir() || transfer(&self.folder, shared, digest)? {
            true => Ok(()),
            false => Err(Fault::usage(format!(
                "the artefacts ‘{digest}’ are incomplete or changed, and could not be copied to ‘{}’; repeat the command, \
                 which builds them again",
                shared.display()
            ))),
        }
    }

    fn recipe(&self, build_key: &str) -> PathBuf {
        self.folder.join("recipes").join(digest(build_key))
    }

    /// Returns the artefacts of an earlier build with the same input.
    pub fn find(&self, build_key: &str) -> Result<Option<Artefacts>, Fault> {
        let recipe = self.recipe(build_key);
        let text = fs::read_to_string(&recipe).unwrap_or_default();
        let Ok(found) = serde_json::from_str::<Artefacts>(&text) else { return Ok(None) };
        // The modification time of the recipe file records its last use. A failure is ignored, because a read-only
        // folder is reported elsewhere.
        let _ =
            File::options().write(true).open(&recipe).and_then(|file| file.set_modified(SystemTime::now()));
        Ok(self.has(&found.digest)?.then_some(found))
    }

    /// Records the artefacts that a build of this input produced.
    pub fn remember(&self, build_key: &str, artefacts: &Artefacts) -> Result<(), Fault> {
        self.write(&self.recipe(build_key), serde_json::to_string(artefacts).unwrap_or_default().as_bytes())
    }

    fn write(&self, path: &Path, text: &[u8]) -> Result<(), Fault> {
        let partial = self.folder.join("partial");
        fs::write(&partial, text).map_err(|error| Fault::unwritable(&partial, error))?;
        artefacts::publish(&partial, path)
    }

    /// Copies artefacts out of the tree into the folder that is named by their digest. `Err` names a missing artefact.
    pub fn keep(&self, names: &[TreePath], time: Duration) -> Result<Result<Artefacts, String>, Fault> {
        let tree = self.tree();
        let mut files = Vec::new();
        let whole = [PathBuf::new()];
        let named: Vec<PathBuf> = names.iter().map(TreePath::below_top).collect();
        for at in if names.is_empty() { whole.as_slice() } else { &named } {
            if !tree.join(at).exists() {
                return Ok(Err(at.display().to_string()));
            }
            files.extend(artefacts::files(&tree, at).map_err(|error| Fault::unwritable(&tree, error))?);
        }
        files.sort_unstable();
        files.dedup();
        let (digest, bytes) = artefacts::digest_of(&tree, &files)?;
        if !self.has(&digest)? {
            let partial = self.folder.join("built/partial");
            artefacts::copy(&tree, &files, &partial).map_err(|error| Fault::unwritable(&partial, error))?;
            if artefacts::digest_of(&partial, &files)?.0 != digest {
                return Err(Fault::usage(format!(
                    "the artefacts in ‘{}’ changed while they were copied: a build step must not leave programs running \
                     that continue to write",
                    tree.display()
                )));
            }
            let names: Vec<&[u8]> = files.iter().map(|file| file.as_os_str().as_bytes()).collect();
            self.write(&self.list(&digest), &names.join(&0))?;
            artefacts::publish(&partial, &self.built(&digest))?;
            self.verified.borrow_mut().insert(digest.clone());
        }
        let built_at = jiff::Timestamp::now().as_millisecond();
        Ok(Ok(Artefacts { digest, bytes, time: time.as_nanos() as u64, built_at, reused: false }))
    }

    /// Checks that the disk has some space left, because a build that failed for lack of space does not count against
    /// its version.
    pub fn check_space(&self) -> Result<(), Fault> {
        let path = self.folder.join("space");
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&[1; 1 << 16])?;
            file.sync_all()
        });
        // The file was only written to test for space.
        let _ = fs::remove_file(&path);
        written.map_err(|error| Fault::unwritable(&path, error))
    }
}

/// Returns the names of artefacts in a list of them, which zero bytes separate.
fn names_in(list: &[u8]) -> Vec<PathBuf> {
    let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect()
}

fn rename(from: &Path, to: &Path) -> Result<(), Fault> {
    fs::rename(from, to).map_err(|error| Fault::unwritable(to, error))
}

/// Copies artefacts from one folder of builds into another. Returns false if they do not match their digest.
fn transfer(from: &Path, to: &Path, digest: &str) -> Result<bool, Fault> {
    let (source, target) = (entry(&from.join("built"), digest), entry(&to.join("built"), digest));
    let listed = fs::read(entry(&from.join("lists"), digest)).unwrap_or_default();
    let names = names_in(&listed);
    let inside = |name: &PathBuf| name.components().all(|part| matches!(part, Component::Normal(_)));
    if !source.is_dir() || !names.iter().all(inside) {
        return Ok(false);
    }
    let own = format!("partial-{}-{}", host_name(), std::process::id());
    let partial = to.join("built").join(&own);
    let copied =
        artefacts::copy(&source, &names, &partial).map_err(|error| Fault::unwritable(&partial, error));
    if copied.is_err() || artefacts::digest_of(&partial, &names).ok().is_none_or(|(now, _)| now != digest) {
        // If the incomplete copy cannot be removed, the next copy overwrites it.
        let _ = fs::remove_dir_all(&partial);
        return copied.map(|()| false);
    }
    let list = to.join(&own);
    fs::write(&list, &listed).map_err(|error| Fault::unwritable(&list, error))?;
    artefacts::publish(&list, &entry(&to.join("lists"), digest))?;
    match artefacts::publish(&partial, &target) {
        // Another process has published the same artefacts first.
        Err(_) if target.is_dir() => {
            fs::remove_dir_all(&partial).map_err(|error| Fault::unwritable(&partial, error))?
        }
        other => other?,
    }
    Ok(true)
}

/// Whether a process is a Scruple launcher that is still running. Zombies do not count: they may stay in the process
/// table for long if the first process of a container reaps late.
fn is_launcher(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.split_once(" (scruple-launch) ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_launcher_that_has_ended_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("scruple-launch");
        fs::copy("/bin/sleep", &program).expect("a copy");
        let mut child = Command::new(&program).arg("600").spawn().expect("it starts");
        let pid = child.id().to_string();
        assert!(is_launcher(&pid));
        child.kill().expect("a kill");
        while is_launcher(&pid) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(Path::new("/proc").join(&pid).exists(), "it was not waited for yet");
        child.wait().expect("an end");
        assert!(!is_launcher(&std::process::id().to_string()));
    }

    #[test]
    fn artefacts_cannot_be_written_to_and_those_that_were_changed_are_not_used() {
        let place = tempfile::tempdir().expect("a folder");
        let take = || Cache::take(place.path().to_owned(), &[]).expect("nobody else has it");
        let cache = take();
        fs::create_dir_all(cache.tree()).expect("a tree");
        fs::write(cache.tree().join("app"), "as built").expect("a file");
        let kept =
            cache.keep(&["app".parse().expect("a path")], Duration::ZERO).expect("kept").expect("there");
        cache.remember("recipe", &kept).expect("remembered");
        let app = cache.built(&kept.digest).join("app");
        assert!(app.metadata().expect("a copy").permissions().readonly());
        // Files that a program adds do not belong to its artefacts.
        fs::write(app.with_file_name("left"), "behind").expect("a file");
        drop(cache);
        let cache = take();
        assert_eq!(cache.find("recipe").expect("readable"), Some(kept.clone()));
        assert!(!app.with_file_name("left").exists());
        drop(cache);
        fs::remove_file(&app).expect("removed");
        fs::write(&app, "as bullt").expect("a file");
        let cache = take();
        assert_eq!(cache.find("recipe").expect("readable"), None);
        let again =
            cache.keep(&["app".parse().expect("a path")], Duration::ZERO).expect("kept").expect("there");
        assert_eq!((again.digest, fs::read_to_string(&app).ok()), (kept.digest, Some("as built".to_owned())));
    }

    #[test]
    fn artefacts_are_in_the_folder_whatever_a_store_or_a_farm_calls_them() {
        let place = tempfile::tempdir().expect("a folder");
        let other = place.path().join("other");
        fs::create_dir(&other).expect("a folder");
        fs::write(other.join("kept"), "mine").expect("a file");
        let cache = Cache::take(place.path().join("cache"), &[]).expect("nobody else has it");
        for digest in [other.to_str().expect("UTF-8"), "../../other", "..", "."] {
            assert!(!cache.has(digest).expect("readable"));
            assert!(!cache.fetch(place.path(), digest).expect("readable"));
            assert!(cache.log(digest).parent().is_some_and(|logs| logs.ends_with("cache/logs")));
        }
        assert_eq!(fs::read_to_string(other.join("kept")).ok().as_deref(), Some("mine"));
    }

    #[test]
    fn artefacts_whose_folder_is_gone_are_built_again() {
        let place = tempfile::tempdir().expect("a folder");
        let cache = Cache::take(place.path().to_owned(), &[]).expect("nobody else has it");
        fs::create_dir_all(cache.tree()).expect("a tree");
        fs::write(cache.tree().join("app"), "as built").expect("a file");
        let kept =
            cache.keep(&["app".parse().expect("a path")], Duration::ZERO).expect("kept").expect("there");
        cache.remember("recipe", &kept).expect("remembered");
        fs::remove_dir_all(cache.built(&kept.digest)).expect("removed");
        assert_eq!(cache.find("recipe").expect("readable"), None);
    }
}
