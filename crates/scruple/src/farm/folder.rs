//! The folder through which a farm and its user communicate.
//!
//! ```text
//! units/NAME       a unit; the name is a digest of the content
//! results/NAME     the result of a unit, published by a hard link, so that the first one stays
//! failed/NAME      the reason why a unit cannot be done
//! lists/N          the names of the units of the N-th submission, one on each line
//! pids/HOST        the id of the process that does a unit on this host, which an interruption ends
//! begun/JOB        an empty file for each job whose script Slurm has started
//! ended/JOB        an empty file for each job whose script has ended
//! logs/            the output of units
//! tmp/             files that are being written
//! ```

use super::unit_data::{UnitFailure, UnitResult, parse, text};
use crate::digest::{digest, entry};
use crate::fault::Fault;
use crate::lock::Lock;
use crate::versions::artefacts::publish;
use scruple_measure::host::host_name;
use scruple_stats::sorting;
use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The names of the subfolders.
const PARTS: [&str; 9] = ["units", "results", "failed", "lists", "pids", "begun", "ended", "logs", "tmp"];

/// How long a shared file system may take to show one node what another one has written. NFS caches the content of a
/// folder for up to a minute.
const LONGEST_LAG: Duration = Duration::from_secs(60);

/// Polls `there` until it returns true or the user interrupts, but no longer than a shared file system may lag behind.
/// Returns what it returned last.
pub fn appears(
    interrupted: &AtomicBool,
    mut there: impl FnMut() -> Result<bool, Fault>,
) -> Result<bool, Fault> {
    let began = Instant::now();
    loop {
        let last = there();
        let waits = !interrupted.load(Ordering::Relaxed) && began.elapsed() < LONGEST_LAG;
        if !waits || matches!(last, Ok(true)) {
            return last;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The folder of the units of one history or run.
#[derive(Clone, Debug)]
pub struct UnitFolder {
    path: PathBuf,
}

impl UnitFolder {
    /// Creates the folder if it does not exist.
    pub fn make(path: PathBuf) -> Result<UnitFolder, Fault> {
        for part in PARTS {
            let part = path.join(part);
            fs::create_dir_all(&part).map_err(|error| Fault::unwritable(&part, error))?;
        }
        Ok(UnitFolder { path })
    }

    /// Returns the folder that contains a unit's file, and the name of the unit.
    pub fn of(file: &Path) -> Result<(UnitFolder, String), Fault> {
        let failed = |why: &str| Fault::usage(format!("‘{}’ is not a unit of a farm: {why}", file.display()));
        let file = std::path::absolute(file).map_err(|error| failed(&error.to_string()))?;
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
        let units = file.parent().filter(|units| units.ends_with("units"));
        match (name, units.and_then(Path::parent)) {
            (Some(name), Some(path)) => Ok((UnitFolder { path: path.to_owned() }, name)),
            _ => Err(failed("it is not in a folder ‘units’")),
        }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a unit's file.
    pub fn unit(&self, name: &str) -> PathBuf {
        entry(&self.path.join("units"), name)
    }

    /// Writes a unit to its file, and returns its name.
    pub fn write_unit(&self, text: &str) -> Result<String, Fault> {
        let name = digest(text);
        let path = self.unit(&name);
        if !path.exists() {
            self.replace(&path, text)?;
        }
        Ok(name)
    }

    /// Writes a file such that its name never refers to an incomplete file.
    pub fn replace(&self, path: &Path, text: &str) -> Result<(), Fault> {
        let partial = self.partial(path, text)?;
        publish(&partial, path)
    }

    fn partial(&self, path: &Path, text: &str) -> Result<PathBuf, Fault> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let partial = self.path.join("tmp").join(format!("{name}.{}.{}", host_name(), std::process::id()));
        let write = || -> std::io::Result<()> {
            let mut file = fs::File::create(&partial)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        write().map_err(|error| Fault::unwritable(&partial, error))?;
        Ok(partial)
    }

    /// Returns the file of a unit's result.
    pub fn result_path(&self, name: &str) -> PathBuf {
        entry(&self.path.join("results"), name)
    }

    /// Returns the text of a unit's result, if it has one.
    pub fn result(&self, name: &str) -> Result<Option<String>, Fault> {
        read(&self.result_path(name))
    }

    /// Returns the result of a unit, if it has one.
    pub fn parsed_result(&self, name: &str) -> Result<Option<UnitResult>, Fault> {
        let path = self.result_path(name);
        read(&path)?.map(|text| UnitResult::parse(&text, &path)).transpose()
    }

    /// Returns the result of a unit that is done.
    pub fn needed_result(&self, name: &str) -> Result<UnitResult, Fault> {
        let missing = || Fault::internal(format!("the unit ‘{name}’ has no result yet"));
        self.parsed_result(name)?.ok_or_else(missing)
    }

    /// Publishes the result of a unit, unless another copy of the unit did so before. Returns whether this result
    /// stands.
    pub fn publish(&self, name: &str, text: &str) -> Result<bool, Fault> {
        let path = self.result_path(name);
        let partial = self.partial(&path, text)?;
        let linked = fs::hard_link(&partial, &path);
        // A failure is ignored, because the remaining file does no harm.
        let _ = fs::remove_file(&partial);
        match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(Fault::unwritable(&path, error)),
        }
    }

    fn failure_path(&self, name: &str) -> PathBuf {
        entry(&self.path.join("failed"), name)
    }

    /// Records why a unit cannot be done.
    pub fn fail(&self, name: &str, failure: &UnitFailure) -> Result<(), Fault> {
        self.replace(&self.failure_path(name), &text(failure)?)
    }

    /// Returns why a unit cannot be done, if it recorded a reason.
    pub fn failure(&self, name: &str) -> Result<Option<UnitFailure>, Fault> {
        let path = self.failure_path(name);
        read(&path)?.map(|text| parse(&text, &path)).transpose()
    }

    /// Removes the records that these units failed, so that they are tried again.
    pub fn clear_failures(&self, names: &[String]) {
        for name in names {
            // A unit that did not fail has no such file.
            let _ = fs::remove_file(self.failure_path(name));
        }
    }

    /// Returns the names of the units that have a result.
    pub fn done(&self) -> Result<BTreeSet<String>, Fault> {
        let folder = self.path.join("results");
        let entries = fs::read_dir(&folder).map_err(|error| {
            Fault::usage(format!("cannot read ‘{}’: {error}; the same command continues", folder.display()))
        })?;
        Ok(sorting::set(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned())))
    }

    /// Whether the script of this job has begun.
    pub fn has_begun(&self, job: &str) -> bool {
        self.path.join("begun").join(job).exists()
    }

    /// Whether the script of this job has ended, with or without a result.
    pub fn has_ended(&self, job: &str) -> bool {
        self.path.join("ended").join(job).exists()
    }

    /// Removes the folders of command lines in `lines` that no process waits for and that nothing was added to since
    /// `age` ago. Their command lines were interrupted, and never typed again.
    pub fn sweep(lines: &Path, age: Duration) -> Result<(), Fault> {
        let names = fs::read_dir(lines).into_iter().flatten().flatten();
        let names: Vec<PathBuf> = sorting::distinct(names.map(|entry| entry.path().with_extension("")));
        for path in names {
            let changed = path.join("results").metadata().and_then(|data| data.modified());
            let recent = changed.is_ok_and(|time| time.elapsed().is_ok_and(|since| since < age));
            if recent {
                continue;
            }
            if let Some(lock) = Lock::take(&path.with_extension("lock"))? {
                UnitFolder { path }.remove();
                lock.remove();
            }
        }
        Ok(())
    }

    /// Removes the folder, once all results are in the store.
    pub fn remove(&self) {
        // A failure is ignored, because remaining files are used again or do no harm.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn read(path: &Path) -> Result<Option<String>, Fault> {
    match fs::read(path) {
        // A text that is not UTF-8 is damaged. Its parser refuses it, as it refuses an empty text.
        Ok(bytes) => Ok(Some(String::from_utf8(bytes).unwrap_or_default())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Fault::usage(format!("cannot read ‘{}’: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_a_command_line_that_was_given_up_are_removed_and_those_in_use_stay() {
        let place = tempfile::tempdir().expect("a folder");
        let lines = place.path().join("lines");
        for name in ["old", "recent", "waits"] {
            UnitFolder::make(lines.join(name)).expect("made");
        }
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
        for name in ["old", "waits"] {
            let results = fs::File::open(lines.join(name).join("results")).expect("a folder");
            results.set_modified(long_ago).expect("a time");
        }
        fs::write(lines.join("ended.lock"), "").expect("a file");
        let held = Lock::take(&lines.join("waits.lock")).expect("writable").expect("free");
        UnitFolder::sweep(&lines, Duration::from_secs(1800)).expect("swept");
        let left = fs::read_dir(&lines).expect("a folder").flatten();
        let mut left: Vec<String> = left.map(|entry| entry.file_name().to_string_lossy().into()).collect();
        left.sort();
        assert_eq!(left, ["recent", "waits", "waits.lock"]);
        drop(held);
    }

    #[test]
    fn a_damaged_result_is_refused_with_what_to_do() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = UnitFolder::make(place.path().join("farm")).expect("made");
        for damaged in [&b""[..], b"{\"node\":", b"\xff\xfe\x00"] {
            fs::write(folder.result_path("a"), damaged).expect("written");
            let refused = folder.parsed_result("a").err().expect("no result").message;
            let path = folder.result_path("a");
            let advice = format!(
                "install the same version on all machines, remove ‘{}’, and type the same command again",
                path.display()
            );
            assert!(refused.ends_with(&advice), "{refused}");
        }
        fs::write(folder.result_path("a"), b"{\"node\":\"a\xffb\"}").expect("written");
        assert_eq!(folder.result("a").expect("there").as_deref(), Some(""), "no byte is replaced");
    }

    #[test]
    fn the_first_result_of_a_unit_stands_and_a_late_copy_changes_nothing() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = UnitFolder::make(place.path().join("farm")).expect("made");
        let name = folder.write_unit("work").expect("written");
        assert_eq!(folder.write_unit("work").expect("written"), name);
        assert_eq!(folder.result(&name).expect("readable"), None);
        assert!(folder.publish(&name, "first").expect("published"));
        assert!(!folder.publish(&name, "late").expect("refused"));
        assert_eq!(folder.result(&name).expect("readable").as_deref(), Some("first"));
        assert_eq!(fs::read_dir(place.path().join("farm/tmp")).expect("a folder").count(), 0);
        let (same, other) = UnitFolder::of(&folder.unit(&name)).expect("a unit");
        assert_eq!((same.path(), other), (folder.path(), name));
    }
}
