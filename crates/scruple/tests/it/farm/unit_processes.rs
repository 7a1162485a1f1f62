//! The processes that do units on this machine, as `/proc` shows them.

use crate::support::Place;
use std::process::{Command, Stdio};

/// The ids of the `scruple unit` processes of this place.
pub fn units_of(place: &Place) -> Vec<String> {
    let folder = place.path().to_string_lossy();
    let of_place = |pid: &String| {
        let words = words_of(pid);
        words.get(1).is_some_and(|verb| verb == "unit") && words.iter().any(|word| word.starts_with(&*folder))
    };
    let all = std::fs::read_dir("/proc").expect("processes").flatten();
    all.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(of_place).collect()
}

/// The command line of a process.
pub fn words_of(pid: &str) -> Vec<String> {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).split('\0').map(str::to_owned).collect()
}

/// Kills a process. That it has just ended by itself is no error.
pub fn kill(pid: &str) {
    let _ = Command::new("kill").args(["-9", pid]).stderr(Stdio::null()).status();
}
