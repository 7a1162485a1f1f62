//! The machines of a farm work together only if all have the same version of Scruple, since one text could mean different
//! things to two versions.

use crate::fault::Fault;
use serde::{Deserialize, Serialize};

/// What to do about machines with different versions.
pub const INSTALL: &str = "install the same version on all machines, and type the command again";

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of the program that wrote a text. Every version of Scruple reads this field, whatever else is in the
/// text.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Writer {
    /// The version; absent in the texts of versions that did not name themselves.
    scruple: Option<String>,
}

impl Writer {
    /// This program.
    pub fn this() -> Writer {
        Writer { scruple: Some(VERSION.to_owned()) }
    }

    /// Checks that the other program has the version of this one. `theirs` and `ours` name the machines of the
    /// other program and of this one, as in "the node ‘n1’"; `advice` says what to do.
    pub fn check(&self, theirs: &str, ours: &str, advice: &str) -> Result<(), Fault> {
        let version = match self.scruple.as_deref() {
            Some(VERSION) => return Ok(()),
            Some(other) => format!("Scruple {other}"),
            None => "an earlier version of Scruple".to_owned(),
        };
        Err(Fault::usage(format!("{theirs} has {version}, and {ours} has {VERSION}: {advice}")))
    }
}
