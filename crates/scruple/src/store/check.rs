//! `scruple store check`: reads everything in the store, and reports damage.

use super::args::StoreCheckArgs;
use super::database::{DatabaseFailure, Refusal};
use super::open_store;
use super::{Store, StoreError};
use crate::fault::{Code, Fault};
use crate::render::output;
use scruple_core::plural::counted;

impl Store {
    /// Reads all runs. Returns their number, and a description of each damage.
    fn examine(&self) -> Result<(usize, Vec<String>), StoreError> {
        let work = || -> Result<(usize, Vec<String>), DatabaseFailure> {
            let mut wrong = self.database.damage()?;
            let mut count = 0;
            let ids = self.database.query("SELECT id FROM run ORDER BY started, id", &[])?;
            for row in &ids {
                let id = row.text(0)?;
                match self.load_if_there(id) {
                    // Another process has removed it since it was listed.
                    Ok(None) => continue,
                    Err(failure) => wrong.push(damage(format!("the run {id}"), failure)?),
                    Ok(Some(_)) => {
                        if let Err(failure) = self.load_history("h.run_id = $1", id) {
                            wrong.push(damage(format!("the history {id}"), failure)?);
                        }
                    }
                }
                count += 1;
            }
            Ok((count, wrong))
        };
        work().map_err(|failure| self.error(failure))
    }
}

/// Describes the damage of a part of the store that could not be read. A part that the database did not give is not
/// damaged: its failure is returned.
fn damage(part: String, failure: DatabaseFailure) -> Result<String, DatabaseFailure> {
    match failure.refusal {
        Refusal::Unreachable | Refusal::Busy | Refusal::Denied | Refusal::Full => Err(failure),
        Refusal::Foreign | Refusal::Corrupt | Refusal::Other => Ok(format!("{part}: {}", failure.message)),
    }
}

/// Reads everything in the store, and reports damage.
pub fn check(args: &StoreCheckArgs) -> Result<Code, Fault> {
    let store = open_store::existing(args.store.as_deref())?;
    let (count, wrong) = store.examine()?;
    let path = store.address();
    if wrong.is_empty() {
        let runs = counted(count, "run");
        output::print(&format!("The store ‘{path}’ is sound: {runs} can be read.\n"))?;
        return Ok(Code::Fine);
    }
    Err(Fault::usage(format!(
        "the store ‘{path}’ is damaged: {}; `scruple store rm` removes a run, and `scruple store export` saves those that can \
         be read",
        wrong.join("; ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise a connection that is lost would make every further run look damaged, with the advice to remove it.
    #[test]
    fn what_the_database_did_not_give_is_not_damaged() {
        let of = |refusal| {
            let failure = DatabaseFailure { refusal, message: "connection closed".to_owned() };
            damage("the run 1".to_owned(), failure)
        };
        assert!(of(Refusal::Unreachable).is_err());
        assert!(of(Refusal::Busy).is_err());
        assert_eq!(of(Refusal::Corrupt).ok().as_deref(), Some("the run 1: connection closed"));
    }
}
