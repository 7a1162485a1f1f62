//! The folder through which a farm and who uses it know of each other.
//!
//! ```text
//! units/NAME       what is to be done; the name is a digest of the content
//! results/NAME     what came of it, published by a hard link: the first one stands
//! failed/NAME      why a unit cannot be done
//! lists/N          the units of the N-th submission, one to a line
//! pids/HOST        the process that does a unit there, to be ended by an interruption
//! begun/JOB        an empty file of each job that Slurm has started
//! logs/            what units wrote
//! tmp/             files that are being written
//! ```

use super::unit::{UnitFailure, parse, text};
use crate::digest::digest;
use crate::fault::Fault;
use crate::history::artefacts::publish;
use crate::history::build_process::unwritable;
use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What the folder is made of.
const PARTS: [&str; 8] = ["units", "results", "failed", "lists", "pids", "begun", "logs", "tmp"];

/// The folder of one history's or one run's units.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder where it is not there.
    pub fn make(path: PathBuf) -> Result<Folder, Fault> {
        for part in PARTS {
            let part = path.join(part);
            fs::create_dir_all(&part).map_err(|error| unwritable(&part, error))?;
        }
        Ok(Folder { path })
    }

    /// The folder that a unit's file lies in, and the name of the unit.
    pub fn of(file: &Path) -> Result<(Folder, String), Fault> {
        let failed = |why: &str| Fault::usage(format!("‘{}’ is no unit of a farm: {why}", file.display()));
        let file = std::path::absolute(file).map_err(|error| failed(&error.to_string()))?;
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
        let units = file.parent().filter(|units| units.ends_with("units"));
        match (name, units.and_then(Path::parent)) {
            (Some(name), Some(path)) => Ok((Folder { path: path.to_owned() }, name)),
            _ => Err(failed("it lies in no folder ‘units’")),
        }
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of a unit.
    pub fn unit(&self, name: &str) -> PathBuf {
        self.path.join("units").join(name)
    }

    /// Writes a unit down, and hands back its name.
    pub fn write_unit(&self, text: &str) -> Result<String, Fault> {
        let name = digest(text);
        let path = self.unit(&name);
        if !path.exists() {
            self.replace(&path, text)?;
        }
        Ok(name)
    }

    /// Writes a file so that its name never stands for half of it.
    pub fn replace(&self, path: &Path, text: &str) -> Result<(), Fault> {
        let partial = self.partial(path, text)?;
        publish(&partial, path)
    }

    fn partial(&self, path: &Path, text: &str) -> Result<PathBuf, Fault> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let partial = self.path.join("tmp").join(format!("{name}.{}.{}", host.trim(), std::process::id()));
        let write = || -> std::io::Result<()> {
            let mut file = fs::File::create(&partial)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        write().map_err(|error| unwritable(&partial, error))?;
        Ok(partial)
    }

    /// What came of a unit, as far as it is known.
    pub fn result(&self, name: &str) -> Result<Option<String>, Fault> {
        read(&self.path.join("results").join(name))
    }

    /// Gives a result its name, unless another copy of the unit did so before. Says whether it stands.
    pub fn publish(&self, name: &str, text: &str) -> Result<bool, Fault> {
        let path = self.path.join("results").join(name);
        let partial = self.partial(&path, text)?;
        let linked = fs::hard_link(&partial, &path);
        // A file that stays in the way of nothing.
        let _ = fs::remove_file(&partial);
        match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(unwritable(&path, error)),
        }
    }

    /// Says why a unit cannot be done.
    pub fn fail(&self, name: &str, failure: &UnitFailure) -> Result<(), Fault> {
        self.replace(&self.path.join("failed").join(name), &text(failure)?)
    }

    /// Why a unit could not be done, where it said so.
    pub fn failure(&self, name: &str) -> Result<Option<UnitFailure>, Fault> {
        let path = self.path.join("failed").join(name);
        read(&path)?.map(|text| parse(&text, &path)).transpose()
    }

    /// Forgets that these units failed, so that they are tried again.
    pub fn forgive(&self, names: &[String]) {
        for name in names {
            // One that did not fail has no such file.
            let _ = fs::remove_file(self.path.join("failed").join(name));
        }
    }

    /// The names of the units that have a result.
    pub fn done(&self) -> Result<BTreeSet<String>, Fault> {
        let folder = self.path.join("results");
        let entries = fs::read_dir(&folder).map_err(|error| {
            Fault::usage(format!("cannot read ‘{}’: {error}; the same command goes on", folder.display()))
        })?;
        Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
    }

    /// Whether the script of this job has begun.
    pub fn has_begun(&self, job: &str) -> bool {
        self.path.join("begun").join(job).exists()
    }

    /// Removes everything, once all of it is in the store.
    pub fn remove(&self) {
        // What stays is used again, or is in nobody's way.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn read(path: &Path) -> Result<Option<String>, Fault> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Fault::usage(format!("cannot read ‘{}’: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_result_of_a_unit_stands_and_a_late_copy_changes_nothing() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = Folder::make(place.path().join("farm")).expect("made");
        let name = folder.write_unit("work").expect("written");
        assert_eq!(folder.write_unit("work").expect("written"), name);
        assert_eq!(folder.result(&name).expect("readable"), None);
        assert!(folder.publish(&name, "first").expect("published"));
        assert!(!folder.publish(&name, "late").expect("refused"));
        assert_eq!(folder.result(&name).expect("readable").as_deref(), Some("first"));
        assert_eq!(fs::read_dir(place.path().join("farm/tmp")).expect("a folder").count(), 0);
        let (same, other) = Folder::of(&folder.unit(&name)).expect("a unit");
        assert_eq!((same.path(), other), (folder.path(), name));
    }
}
