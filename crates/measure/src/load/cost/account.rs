//! The counters of a watched server, in a form from which another machine can compute the sheet.

use super::sheet::{OF_THREADS, Sheet, Window};
use crate::memory_map::MemoryMap;
use scruple_core::sample::Reading;
use serde::{Deserialize, Serialize};

/// Everything from which the sheet of a server is computed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Account {
    /// The counters.
    pub(super) known: Vec<Reading>,
    pub(super) windows: Vec<Window>,
    /// The growth of each counter per second without load.
    pub(super) idle: Vec<(String, f64)>,
    /// The memory map before the first window and after the last.
    pub(super) maps: (MemoryMap, MemoryMap),
    /// Why the figures of threads are not known, if they are not.
    pub(super) threads_unknown: Option<String>,
}

impl Account {
    /// The sheet of all windows.
    pub fn sheet(self) -> Sheet {
        let mut sheet = Sheet::of(&self.known, self.windows, &self.idle, self.maps);
        if let Some(why) = self.threads_unknown {
            for row in sheet.rows.iter_mut().filter(|row| OF_THREADS.contains(&row.key.as_str())) {
                row.cost = Err(why.clone());
            }
        }
        sheet
    }
}
