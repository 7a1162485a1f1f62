//! Programs in Python by functions of their own: bytecode instructions and calls, counted inside the interpreter.
//!
//! `sitecustomize.py` is imported by every Python process in whose `PYTHONPATH` its folder is. It loads the library that
//! counts by `sys.monitoring` from Python 3.12 on, and by a trace function from 3.7 on.

use crate::embedded::{Embedded, embedded};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

const MODULE: &str = include_str!("sitecustomize.py");
static COUNTER: Embedded = embedded!("python-counter.so");

/// Writes the modules that count.
pub(super) fn prepare(folder: &Path) -> io::Result<()> {
    fs::write(folder.join("scruple_count.so"), COUNTER.content())?;
    fs::write(folder.join("sitecustomize.py"), MODULE)
}

/// The variables that make Python count. `given` finds those that the program would have anyway.
pub(super) fn env(folder: &Path, given: impl Fn(&str) -> Option<OsString>) -> Vec<(OsString, OsString)> {
    let mut path = folder.to_owned().into_os_string();
    if let Some(others) = given("PYTHONPATH").filter(|others| !others.is_empty()) {
        path.push(":");
        path.push(others);
    }
    let seed = given("PYTHONHASHSEED").unwrap_or_else(|| "0".into());
    // Python executes less where a compiled module is beside its source, so none is looked for, and none is written.
    let nowhere = folder.join("compiled").into_os_string();
    let set = [
        ("PYTHONPATH", path),
        ("PYTHONHASHSEED", seed),
        ("PYTHONPYCACHEPREFIX", nowhere),
        ("PYTHONDONTWRITEBYTECODE", "1".into()),
    ];
    set.into_iter().map(|(name, value)| (name.into(), value)).collect()
}
