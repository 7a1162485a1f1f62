//! The folders of a user for data, caches and the like (XDG Base Directory Specification).

use std::path::{Path, PathBuf};

/// The folder that an environment variable names if it is an absolute path, else this folder in the user's home; `None`
/// if HOME is not set either.
pub fn user_folder(variable: &str, in_home: &str) -> Option<PathBuf> {
    match std::env::var_os(variable).filter(|value| Path::new(value).is_absolute()) {
        Some(folder) => Some(folder.into()),
        None => std::env::var_os("HOME").map(|home| Path::new(&home).join(in_home)),
    }
}
