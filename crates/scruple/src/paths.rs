//! The paths of the project, the store, and the work folder.

use crate::address::StoreAddress;
use crate::cli::shared_args::{ResultArgs, StoreArgs};
use crate::config::Config;
use crate::fault::Fault;
use crate::lock::Lock;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Returns the address of the store: that of the command line, of the configuration, of the project, or of the user, in
/// this order.
pub fn store_address(named: Option<&Path>) -> Result<StoreAddress, Fault> {
    if let Some(path) = named {
        // The address of a server is text; a path need not be.
        return match path.to_str() {
            Some(text) => address(text),
            None => Ok(StoreAddress::File(path.to_owned())),
        };
    }
    let config = Config::find()?;
    if let Some(url) = config.store() {
        return Ok(StoreAddress::parse(url, false).map_err(Fault::usage)?.below(config.folder()));
    }
    let here = std::env::current_dir()
        .map_err(|error| Fault::usage(format!("cannot determine the working folder: {error}")))?;
    Ok(StoreAddress::File(match project_folder(&here) {
        Some(project) => project.join(".scruple/store.db"),
        None => data_file("store.db")?,
    }))
}

/// Returns the option, after a space, with which another command finds this store, or an empty text if it needs none.
pub fn store_option(place: &StoreAddress) -> String {
    let same = |found: &StoreAddress| match (found, place) {
        (StoreAddress::File(one), StoreAddress::File(other)) => {
            std::path::absolute(one).ok() == std::path::absolute(other).ok()
        }
        _ => found == place,
    };
    let named = std::env::var_os("SCRUPLE_STORE").map(PathBuf::from);
    match store_address(named.as_deref()) {
        Ok(found) if same(&found) => String::new(),
        _ => format!(" --store {}", shell_words::quote(&place.to_string())),
    }
}

/// Parses an address that the user gave: a path, or the URL of a database.
pub fn address(text: &str) -> Result<StoreAddress, Fault> {
    StoreAddress::parse(text, true).map_err(Fault::usage)
}

/// Returns the path of a file in the user's data folder.
pub fn data_file(name: &str) -> Result<PathBuf, Fault> {
    Ok(user_folder("XDG_DATA_HOME", ".local/share")?.join("scruple").join(name))
}

/// Returns the files that a verb writes: exports, and the store if that is a file.
pub fn written(results: &ResultArgs, store: &StoreArgs) -> Vec<PathBuf> {
    let store = match store_address(store.store.as_deref()) {
        Ok(StoreAddress::File(path)) => Some(path),
        _ => None,
    };
    results.export.all().into_iter().map(|export| export.path).chain(store).collect()
}

/// Returns the folder for the clones and builds of histories.
pub fn history_folder() -> Result<PathBuf, Fault> {
    cache_folder("history")
}

/// Returns the folder in which the nodes of a farm keep builds and artefacts, each in a subfolder of its own.
pub fn nodes_folder() -> Result<PathBuf, Fault> {
    Ok(user_folder("XDG_CACHE_HOME", ".cache")?.join("scruple/nodes"))
}

/// Returns the folder for the units of command lines and their results, which is used unless the configuration names
/// one.
pub fn farm_folder() -> Result<PathBuf, Fault> {
    Ok(user_folder("XDG_CACHE_HOME", ".cache")?.join("scruple/farm"))
}

/// Returns the folder that caches the compiled call-tree tool for each version of Valgrind.
pub fn calltree_folder() -> Result<PathBuf, Fault> {
    cache_folder("calltree")
}

/// A folder of this process for files that measured programs execute or map. It is removed when the value is dropped.
pub struct WorkFolder {
    path: PathBuf,
    lock: Option<Lock>,
}

impl WorkFolder {
    /// Creates the folder, and removes the folders of processes that were killed. The ids of processes do not tell
    /// which these are, because containers and machines that share the cache each have their own: locks do.
    pub fn make() -> Result<WorkFolder, Fault> {
        let base = cache_folder("")?;
        sweep(&base);
        for number in std::process::id().. {
            // All names have the same length, since programs may copy an environment that contains them.
            let path = base.join(format!("work-{number:010}"));
            let lock = match Lock::take(&lock_of(&path)) {
                Ok(None) => continue,
                // Some file systems have no locks. There, folders of killed processes stay.
                taken => taken.ok().flatten(),
            };
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(WorkFolder { path, lock }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Fault::unwritable(&path, error)),
            }
        }
        Err(Fault::internal("there is no unused name for a folder to work in"))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // A failure is ignored, because a later run removes what cannot be removed now.
        let _ = std::fs::remove_dir_all(&self.path);
        self.lock.take().into_iter().for_each(Lock::remove);
    }
}

fn lock_of(folder: &Path) -> PathBuf {
    folder.with_extension("lock")
}

fn sweep(base: &Path) {
    for entry in std::fs::read_dir(base).into_iter().flatten().flatten() {
        let path = entry.path().with_extension("");
        let is_work = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("work-"));
        if is_work && let Ok(Some(lock)) = Lock::take(&lock_of(&path)) {
            let _ = std::fs::remove_dir_all(&path);
            lock.remove();
        }
    }
}

/// Creates a folder of the user's cache, or of the user's temporary folder if the cache is not writable.
fn cache_folder(name: &str) -> Result<PathBuf, Fault> {
    let cache = scruple_measure::user_folder::cache_folder();
    let made =
        cache.map(|cache| cache.join(name)).and_then(|folder| match std::fs::create_dir_all(&folder) {
            Ok(()) => Ok(folder),
            Err(error) => Err(format!("‘{}’: {error}", folder.display())),
        });
    made.map_err(|problem| {
        Fault::usage(format!(
            "there is no folder to work in ({problem}): set XDG_CACHE_HOME or TMPDIR to a writable one"
        ))
    })
}

/// Returns the nearest parent folder that is a project, because it has a store, a configuration or a repository.
fn project_folder(from: &Path) -> Option<&Path> {
    from.ancestors()
        .find(|folder| [".scruple", "scruple.toml", ".git"].iter().any(|sign| folder.join(sign).exists()))
}

fn user_folder(variable: &str, fallback: &str) -> Result<PathBuf, Fault> {
    scruple_measure::user_folder::user_folder(variable, fallback).ok_or_else(|| {
        Fault::usage(format!(
            "neither {variable} nor HOME is set to an absolute path: set one, or name a store with --store FILE"
        ))
    })
}
