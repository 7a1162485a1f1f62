//! Where things are: the project, the store, the work folder.

use crate::cli::StoreArgs;
use crate::config::Config;
use crate::fault::Fault;
use crate::store::Store;
use scruple_core::harmless_text::{plain, steers};
use std::path::{Path, PathBuf};

/// The store's file: the one named, the configuration's, the project's, or the user's.
pub fn store_path(named: Option<&Path>) -> Result<PathBuf, Fault> {
    if let Some(path) = named {
        return file_of_url(&path.to_string_lossy());
    }
    let config = Config::find()?;
    if let Some(url) = config.store() {
        return Ok(config.folder().join(file_of_url(url)?));
    }
    let here = std::env::current_dir()
        .map_err(|error| Fault::usage(format!("cannot tell the working folder: {error}")))?;
    Ok(match project_folder(&here) {
        Some(project) => project.join(".scruple/store.db"),
        None => user_folder("XDG_DATA_HOME", ".local/share")?.join("scruple/store.db"),
    })
}

/// A path, or a URL of a database that this Scruple can use.
fn file_of_url(url: &str) -> Result<PathBuf, Fault> {
    match url.split_once("://") {
        Some((scheme, _)) => Err(Fault::usage(format!(
            "the store ‘{url}’ cannot be used: {scheme} is not supported; name a file, such as sqlite:.scruple/store.db"
        ))),
        None => Ok(PathBuf::from(url.strip_prefix("sqlite:").unwrap_or(url))),
    }
}

/// The store to write to, unless none is wanted.
pub fn open_store(args: &StoreArgs) -> Result<Option<Store>, Fault> {
    check_label(args.label.as_deref())?;
    match args.no_store {
        true => Ok(None),
        false => Ok(Some(Store::open(&store_path(args.store.as_deref())?)?)),
    }
}

/// Checks that a run can be found by its label, and that a list of runs can show it.
pub fn check_label(label: Option<&str>) -> Result<(), Fault> {
    let Some(label) = label else { return Ok(()) };
    let why = match label {
        "" => "is empty",
        _ if label == "last" || label.starts_with("last~") => "means the newest run",
        _ if label.chars().any(steers) => "has a line end or another character that steers a terminal",
        _ => return Ok(()),
    };
    Err(Fault::usage(format!("the label ‘{}’ {why}: give another --label", plain(label))))
}

/// The store to read from.
pub fn existing_store(named: Option<&Path>) -> Result<Store, Fault> {
    Ok(Store::open_existing(&store_path(named)?)?)
}

/// Where histories keep their clones and builds: below the user's cache, or the temporary folder where that is not
/// writable.
pub fn history_folder() -> Result<PathBuf, Fault> {
    let cache = user_folder("XDG_CACHE_HOME", ".cache").ok().map(|cache| cache.join("scruple/history"));
    let mut problem = String::new();
    for folder in cache.into_iter().chain([std::env::temp_dir().join("scruple/history")]) {
        match std::fs::create_dir_all(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) => problem = format!("‘{}’: {error}", folder.display()),
        }
    }
    Err(Fault::usage(format!(
        "there is no folder to build in ({problem}): set XDG_CACHE_HOME or TMPDIR to a writable one"
    )))
}

/// Where the compiled call tree is kept for each version of valgrind.
pub fn calltree_folder() -> PathBuf {
    let cache = user_folder("XDG_CACHE_HOME", ".cache").unwrap_or_else(|_| std::env::temp_dir());
    cache.join("scruple/calltree")
}

/// A folder of this process's own for files that measured programs execute or map; it goes when it is dropped.
pub struct WorkFolder {
    path: PathBuf,
}

impl WorkFolder {
    /// Makes the folder below the user's cache, or the temporary folder where that is not writable, and removes
    /// folders whose process was killed.
    pub fn make() -> Result<WorkFolder, Fault> {
        let cache = user_folder("XDG_CACHE_HOME", ".cache").ok().map(|cache| cache.join("scruple"));
        let mut problem = String::new();
        for base in cache.into_iter().chain([std::env::temp_dir().join("scruple")]) {
            let path = base.join(format!("work-{:010}", std::process::id()));
            match std::fs::create_dir_all(&path) {
                Ok(()) => {
                    sweep(&base);
                    return Ok(WorkFolder { path });
                }
                Err(error) => problem = format!("‘{}’: {error}", base.display()),
            }
        }
        Err(Fault::usage(format!(
            "there is no folder to work in ({problem}): set XDG_CACHE_HOME or TMPDIR to a writable one"
        )))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // What cannot be removed now is swept by a later run.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn sweep(base: &Path) {
    for entry in std::fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        // The names are equally long, since programs may copy an environment in which they stand.
        let owner =
            name.to_str().and_then(|name| name.strip_prefix("work-")).map(|pid| pid.trim_start_matches('0'));
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The nearest folder upwards that is a project: it has a store, a configuration or a repository.
fn project_folder(from: &Path) -> Option<&Path> {
    from.ancestors()
        .find(|folder| [".scruple", "scruple.toml", ".git"].iter().any(|sign| folder.join(sign).exists()))
}

fn user_folder(variable: &str, fallback: &str) -> Result<PathBuf, Fault> {
    match std::env::var_os(variable).filter(|value| Path::new(value).is_absolute()) {
        Some(folder) => Ok(folder.into()),
        None => match std::env::var_os("HOME") {
            Some(home) => Ok(Path::new(&home).join(fallback)),
            None => Err(Fault::usage(format!(
                "neither {variable} nor HOME is set: name a store with --store FILE"
            ))),
        },
    }
}
