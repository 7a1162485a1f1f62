//! `scruple store check`: reads everything in the store, and reports damage.

use super::args::StoreCheckArgs;
use super::database::DatabaseFailure;
use super::{Store, StoreError};
use crate::fault::{Code, Fault};
use crate::paths;
use crate::render::output;

impl Store {
    /// Reads all runs. Returns their number, and a description of each damage.
    fn examine(&self) -> Result<(usize, Vec<String>), StoreError> {
        let work = || -> Result<(usize, Vec<String>), DatabaseFailure> {
            let mut wrong = self.database.damage()?;
            let ids = self.database.query("SELECT id FROM run ORDER BY started, id", &[])?;
            for row in &ids {
                let id = row.text(0)?;
                if let Err(failure) = self.load(id) {
                    wrong.push(format!("the run {id}: {}", failure.message));
                } else if let Err(failure) = self.load_history("h.run_id = $1", id) {
                    wrong.push(format!("the history {id}: {}", failure.message));
                }
            }
            Ok((ids.len(), wrong))
        };
        work().map_err(|failure| self.error(failure))
    }
}

/// Reads everything in the store, and reports damage.
pub fn check(args: &StoreCheckArgs) -> Result<Code, Fault> {
    let store = paths::existing_store(args.store.as_deref())?;
    let (count, wrong) = store.examine()?;
    let path = store.address();
    if wrong.is_empty() {
        let runs = if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
        output::print(&format!("The store ‘{path}’ is sound: {runs} can be read.\n"))?;
        return Ok(Code::Fine);
    }
    Err(Fault::usage(format!(
        "the store ‘{path}’ is damaged: {}; `scruple store rm` removes a run, and `scruple store export` saves those that can \
         be read",
        wrong.join("; ")
    )))
}
