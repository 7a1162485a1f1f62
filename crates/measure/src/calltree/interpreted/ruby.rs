//! Programs in Ruby by methods and blocks of their own: executed lines and calls, counted inside the interpreter.
//!
//! `scruple_count.rb` is required by every Ruby process that reads `RUBYOPT`. It loads the library that counts, which
//! Ruby calls for each event.

use crate::embedded::{Embedded, embedded};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

const LIBRARY: &str = include_str!("scruple_count.rb");
static COUNTER: Embedded = embedded!("ruby-counter.so");

/// Writes the libraries that count.
pub(super) fn prepare(folder: &Path) -> io::Result<()> {
    fs::write(folder.join("scruple_counter.so"), COUNTER.content())?;
    fs::write(folder.join("scruple_count.rb"), LIBRARY)
}

/// The variables that make Ruby count. `given` finds those that the program would have anyway.
pub(super) fn env(folder: &Path, given: impl Fn(&str) -> Option<OsString>) -> Vec<(OsString, OsString)> {
    let mut options = OsString::from("-r");
    options.push(folder.join("scruple_count.rb"));
    if let Some(others) = given("RUBYOPT").filter(|others| !others.is_empty()) {
        options.push(" ");
        options.push(others);
    }
    vec![("RUBYOPT".into(), options)]
}
