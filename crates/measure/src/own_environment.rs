//! What of Scruple's own environment is none of a measured program's business.

use std::ffi::OsString;

/// Variables that only Scruple reads. The address of a store may hold a password, and its length would change what
/// programs allocate that copy their environment.
pub const OWN: [&str; 1] = ["SCRUPLE_STORE"];

/// Scruple's environment, as programs inherit it.
pub fn inherited() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| OWN.iter().all(|own| name != own))
}

/// Takes from a command what only Scruple reads.
pub fn withhold(command: &mut std::process::Command) {
    OWN.iter().for_each(|name| {
        command.env_remove(name);
    });
}
