//! Removes variables from the environment of measured programs that only Scruple reads.

use std::ffi::OsString;

/// Variables that only Scruple reads. The address of a store may hold a password; and its length would change the
/// allocations of programs that copy their environment.
pub const OWN: [&str; 1] = ["SCRUPLE_STORE"];

/// Scruple's environment without [`OWN`], as programs inherit it.
pub fn inherited() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| OWN.iter().all(|own| name != own))
}

/// Removes [`OWN`] from the environment of a command.
pub fn withhold(command: &mut std::process::Command) {
    OWN.iter().for_each(|name| {
        command.env_remove(name);
    });
}
