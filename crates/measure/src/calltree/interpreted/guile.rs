//! Programs in Guile Scheme by procedures of their own: instructions of Guile's virtual machine, counted inside it.
//!
//! `command-line.scm` replaces the module of that name, which the program `guile` loads first, because its folder is
//! the first of `GUILE_LOAD_PATH`. It compiles and loads `count.scm`, which loads the library that counts.

use crate::embedded::{Embedded, embedded};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

static COUNTER: Embedded = embedded!("guile-counter.so");

/// Writes the modules and the library that count.
pub(super) fn prepare(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder.join("ice-9"))?;
    fs::write(folder.join("ice-9/command-line.scm"), include_str!("command-line.scm"))?;
    fs::write(folder.join("guile-counter.so"), COUNTER.content())?;
    fs::write(folder.join("count.scm"), include_str!("count.scm"))
}

/// The variables that make Guile count. `given` finds those that the program would have anyway.
pub(super) fn env(folder: &Path, given: impl Fn(&str) -> Option<OsString>) -> Vec<(OsString, OsString)> {
    let mut path = folder.to_owned().into_os_string();
    if let Some(others) = given("GUILE_LOAD_PATH").filter(|others| !others.is_empty()) {
        path.push(":");
        path.push(others);
    }
    let set =
        [("GUILE_LOAD_PATH", path), ("GUILE_AUTO_COMPILE", "0".into()), ("SCRUPLE_COUNTS", folder.into())];
    set.into_iter().map(|(name, value)| (name.into(), value)).collect()
}
