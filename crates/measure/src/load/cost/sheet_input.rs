//! The counters of a watched server, in a form from which another machine can compute the sheet.

use super::sheet::Sheet;
use super::unseen_threads::OF_THREADS;
use super::window::Window;
use crate::memory_map::MemoryMap;
use scruple_core::sample::Reading;
use serde::{Deserialize, Serialize};

/// Everything from which the sheet of a server is computed. A field that is unknown or missing is an error: if a
/// reason were lost, figures would be shown that are not known.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SheetInput {
    /// The counters.
    pub(super) known: Vec<Reading>,
    pub(super) windows: Vec<Window>,
    /// The growth of each counter per second without load.
    pub(super) idle: Vec<(String, f64)>,
    /// The memory map before the first window and after the last.
    pub(super) maps: (MemoryMap, MemoryMap),
    /// Why the figures of threads are not known, if they are not.
    #[serde(deserialize_with = "Option::deserialize")]
    pub(super) threads_unknown: Option<String>,
    /// The name of the server's language runtime, if it frees memory only when it collects.
    #[serde(deserialize_with = "Option::deserialize")]
    pub(super) collected_by: Option<String>,
}

impl SheetInput {
    /// The sheet of all windows.
    pub fn sheet(self) -> Sheet {
        let mut sheet = Sheet::of(&self.known, self.windows, &self.idle, self.maps);
        for growth in &mut sheet.growth {
            growth.collected_by.clone_from(&self.collected_by);
        }
        if let Some(why) = self.threads_unknown {
            for row in sheet.rows.iter_mut().filter(|row| OF_THREADS.contains(&row.key.as_str())) {
                row.cost = Err(why.clone());
            }
        }
        sheet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_of_which_a_field_has_another_name_is_refused() {
        let sheet_input = SheetInput {
            known: Vec::new(),
            windows: Vec::new(),
            idle: Vec::new(),
            maps: Default::default(),
            threads_unknown: Some("threads ended unseen".to_owned()),
            collected_by: None,
        };
        let text = serde_json::to_string(&sheet_input).expect("plain data");
        assert_eq!(
            serde_json::from_str::<SheetInput>(&text).expect("the same").threads_unknown,
            sheet_input.threads_unknown
        );
        assert!(serde_json::from_str::<SheetInput>(&text.replace("threads_unknown", "untold")).is_err());
        let without = text.replace(r#","threads_unknown":"threads ended unseen""#, "");
        assert!(without != text && serde_json::from_str::<SheetInput>(&without).is_err());
    }
}
