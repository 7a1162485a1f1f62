//! The folder of one repository's builds: the tree that all of them happen in, their logs, and their artefacts by
//! content.
//!
//! ```text
//! tree/              the one tree, a clone that borrows the repository's objects
//! built/DIGEST/      artefacts; every DIGEST is equally long, so that paths are for all versions
//! recipes/DIGEST     what a tree with a recipe and tools was built to
//! logs/COMMIT.log    what the build, the check or a measured program wrote
//! ```

use super::child::unwritable;
use super::digest;
use crate::fault::Fault;
use crate::git::Repository;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The folder, which this process alone writes to while it has it.
pub struct Cache {
    folder: PathBuf,
    _lock: File,
}

/// What a build came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Artefacts {
    /// The digest of names, modes and contents.
    pub digest: String,
    /// The size of all files together.
    pub bytes: u64,
    /// What the steps took, in nanoseconds.
    pub time: u64,
}

impl Cache {
    /// Takes the folder. What a process holds that was killed is free at once; the programs that it was running are
    /// given the moment that their launcher needs to end them.
    pub fn take(folder: PathBuf, launchers: &[i32]) -> Result<Cache, Fault> {
        for part in ["built", "recipes", "logs"] {
            let part = folder.join(part);
            fs::create_dir_all(&part).map_err(|error| unwritable(&part, error))?;
        }
        let path = folder.join("lock");
        let failed = |error| unwritable(&path, error);
        let mut lock = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        let mut holders = String::new();
        lock.read_to_string(&mut holders).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Fault::usage(format!(
                    "another scruple is building or weighing versions of this repository (process {}): wait for it to end",
                    holders.split_whitespace().next().unwrap_or("unknown")
                )));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let began = Instant::now();
        while holders.split_whitespace().skip(1).any(is_launcher) && began.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        let words: Vec<String> = std::iter::once(std::process::id().to_string())
            .chain(launchers.iter().map(i32::to_string))
            .collect();
        fs::write(&path, words.join(" ")).map_err(failed)?;
        Ok(Cache { folder, _lock: lock })
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The tree that versions are built in.
    pub fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// The log of a version.
    pub fn log(&self, commit: &str) -> PathBuf {
        self.folder.join("logs").join(format!("{commit}.log"))
    }

    /// Where artefacts lie.
    pub fn built(&self, digest: &str) -> PathBuf {
        self.folder.join("built").join(digest)
    }

    fn recipe(&self, essence: &str) -> PathBuf {
        self.folder.join("recipes").join(digest(essence))
    }

    /// What was built before of the same.
    pub fn find(&self, essence: &str) -> Option<Artefacts> {
        let recipe = self.recipe(essence);
        let text = fs::read_to_string(&recipe).ok()?;
        let found: Artefacts = serde_json::from_str(&text).ok()?;
        // The time of the recipe is when it was asked for last. A folder that cannot be written to is told of elsewhere.
        let _ =
            File::options().write(true).open(&recipe).and_then(|file| file.set_modified(SystemTime::now()));
        self.built(&found.digest).is_dir().then_some(found)
    }

    /// Remembers what was built.
    pub fn remember(&self, essence: &str, artefacts: &Artefacts) -> Result<(), Fault> {
        let (path, partial) = (self.recipe(essence), self.folder.join("recipes/partial"));
        let text = serde_json::to_string(artefacts).unwrap_or_default();
        let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, &path));
        written.map_err(|error| unwritable(&path, error))
    }

    /// Copies artefacts out of the tree, all the same way, to where their content says. `Err` names the one that is not
    /// there.
    pub fn keep(&self, names: &[String], time: Duration) -> Result<Result<Artefacts, String>, Fault> {
        let tree = self.tree();
        let mut files = Vec::new();
        let whole = [".".to_owned()];
        for name in if names.is_empty() { &whole } else { names } {
            let name = name.trim_start_matches("./").trim_end_matches('/');
            let at = if name == "." { PathBuf::new() } else { PathBuf::from(name) };
            if !tree.join(&at).exists() {
                return Ok(Err(name.to_owned()));
            }
            collect(&tree, &at, &mut files).map_err(|error| unwritable(&tree, error))?;
        }
        files.sort();
        files.dedup();
        let (text, bytes) = manifest(&tree, &files)?;
        let artefacts = Artefacts { digest: digest(&text), bytes, time: time.as_nanos() as u64 };
        let there = self.built(&artefacts.digest);
        if !there.is_dir() {
            let partial = self.folder.join("built/partial");
            let copied = self.copy(&tree, &files, &partial).and_then(|()| fs::rename(&partial, &there));
            copied.map_err(|error| unwritable(&there, error))?;
        }
        Ok(Ok(artefacts))
    }

    fn copy(&self, tree: &Path, files: &[PathBuf], to: &Path) -> std::io::Result<()> {
        if to.exists() {
            fs::remove_dir_all(to)?;
        }
        fs::create_dir_all(to)?;
        for file in files {
            let (from, to) = (tree.join(file), to.join(file));
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            match from.is_symlink() {
                true => std::os::unix::fs::symlink(fs::read_link(&from)?, &to)?,
                false => fs::copy(&from, &to).map(|_| ())?,
            }
        }
        Ok(())
    }

    /// Whether the disk takes a little more: a build that failed because it does not is no fault of its version.
    pub fn check_space(&self) -> Result<(), Fault> {
        let path = self.folder.join("space");
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&[1; 1 << 16])?;
            file.sync_all()
        });
        // The file says nothing once it could be written.
        let _ = fs::remove_file(&path);
        written.map_err(|error| unwritable(&path, error))
    }
}

/// Whether a process is what a Scruple starts programs with, and has not ended. One that has may stay in the table of
/// processes for long where the first process of a container takes its time.
fn is_launcher(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.split_once(" (scruple-launch) ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

/// The files below a path of the tree, without what belongs to git.
fn collect(tree: &Path, at: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let full = tree.join(at);
    if full.is_symlink() || full.is_file() {
        files.push(at.to_owned());
    }
    // A pipe or a socket has no content, and who opens one may wait for ever.
    if full.is_symlink() || !full.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(&full)? {
        let name = entry?.file_name();
        if name != ".git" {
            collect(tree, &at.join(&name), files)?;
        }
    }
    Ok(())
}

/// Names, modes and contents as text, and the size of all files. Contents stand by git's own digest of them.
fn manifest(tree: &Path, files: &[PathBuf]) -> Result<(String, u64), Fault> {
    let (mut names, mut text, mut bytes) = (Vec::new(), String::new(), 0);
    for file in files {
        let full = tree.join(file);
        let failed = |error| Fault::usage(format!("cannot read the artefact ‘{}’: {error}", file.display()));
        let data = full.symlink_metadata().map_err(failed)?;
        if data.is_symlink() {
            text += &format!("link {} {}\n", file.display(), fs::read_link(&full).map_err(failed)?.display());
            continue;
        }
        bytes += data.len();
        text += &format!("file {} {}\n", file.display(), data.permissions().mode() & 0o111);
        names.push(file.display().to_string());
    }
    if !names.is_empty() {
        let words = ["hash-object", "--no-filters", "--stdin-paths"];
        // What a build has made of the tree's own repository does not matter here.
        let env = [("GIT_DIR", OsStr::new("/dev/null"))];
        let digests = Repository::at(tree).ask_with(words, &env, Some(&(names.join("\n") + "\n")));
        text += &digests.map_err(|refused| refused.fault("cannot read the artefacts"))?;
    }
    Ok((text, bytes))
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
}
