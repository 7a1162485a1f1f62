//! `scruple store rm` and `scruple store gc`: remove the named runs, or the runs that nothing needs.

use super::args::{GcArgs, RmArgs};
use super::read_runs::HISTORIES;
use super::{ListedRun, Store, StoreError};
use crate::address::StoreAddress;
use crate::cli::values;
use crate::fault::{Code, Fault};
use crate::paths;
use crate::render::json::moment;
use crate::render::output;
use scruple_core::run::RunState;
use scruple_core::unit::{Unit, quantity};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// The length from which on a word of a command line may be an id.
const SHORTEST_ID: usize = 6;

impl Store {
    /// Opens an existing store for writing.
    fn open_for_change(address: &StoreAddress) -> Result<Store, StoreError> {
        Store::open_existing(address)?;
        Store::open(address)
    }

    /// Removes runs with all their readings, in one transaction.
    pub(super) fn remove(&self, ids: &[String]) -> Result<(), StoreError> {
        let remove = |id: &String| {
            self.database.execute("DELETE FROM run WHERE id = $1", &[id.clone().into()]).map(|_| ())
        };
        let removed = self.database.transaction(|| ids.iter().try_for_each(remove));
        removed.map_err(|failure| self.error(failure))
    }

    /// Returns the ids of the runs that are histories.
    fn ids_of_histories(&self) -> Result<HashSet<String>, StoreError> {
        let work = || {
            if self.version()? < HISTORIES {
                return Ok(HashSet::new());
            }
            let rows = self.database.query("SELECT run_id FROM history", &[])?;
            rows.iter().map(|row| row.text(0).map(str::to_owned)).collect()
        };
        work().map_err(|failure| self.error(failure))
    }

    /// Returns unused space to the disk.
    fn compact(&self) -> Result<(), StoreError> {
        self.database.compact().map_err(|failure| self.error(failure))
    }

    /// Returns the space that the store takes, in bytes.
    fn size(&self) -> Result<u64, StoreError> {
        self.database.size().map_err(|failure| self.error(failure))
    }
}

/// Removes the runs with these names.
pub fn rm(args: &RmArgs) -> Result<Code, Fault> {
    let address = paths::store_address(args.store.as_deref())?;
    let store =
        if args.dry_run { Store::open_existing(&address)? } else { Store::open_for_change(&address)? };
    let all = store.list(usize::MAX)?;
    let mut chosen: Vec<&ListedRun> = Vec::new();
    for name in &args.runs {
        let id = store.find_id(name)?;
        let Some(run) = all.iter().find(|run| run.id == id) else { continue };
        if run.state == RunState::Running {
            return Err(Fault::usage(format!(
                "the run ‘{name}’ ({id}) is under way: end it first. Nothing was removed"
            )));
        }
        if !chosen.iter().any(|other| other.id == id) {
            chosen.push(run);
        }
    }
    let ids: Vec<String> = chosen.iter().map(|run| run.id.clone()).collect();
    if !args.dry_run {
        store.remove(&ids)?;
    }
    output::print(&lines(&chosen, args.dry_run))?;
    Ok(Code::Fine)
}

/// Removes old runs that nothing needs.
pub fn gc(args: &GcArgs) -> Result<Code, Fault> {
    let age = values::age(&args.older_than)?;
    let address = paths::store_address(args.store.as_deref())?;
    let store =
        if args.dry_run { Store::open_existing(&address)? } else { Store::open_for_change(&address)? };
    let all = store.list(usize::MAX)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let limit = now.saturating_sub(age).as_millis() as i64;
    let unneeded = unneeded(&all, &store.ids_of_histories()?, limit);
    let before = store.size()?;
    if !args.dry_run {
        store.remove(&unneeded.iter().map(|run| run.id.clone()).collect::<Vec<String>>())?;
        store.compact()?;
    }
    let mut text = lines(&unneeded, args.dry_run);
    let kept = all.len() - unneeded.len();
    let runs = if kept == 1 { "run stays" } else { "runs stay" };
    let _ = match args.dry_run {
        true => writeln!(text, "{kept} {runs}."),
        false => {
            // Space of runs that were removed earlier is returned as well.
            let smaller = before.saturating_sub(store.size()?);
            writeln!(text, "{kept} {runs}; the store is {} smaller.", quantity(smaller as f64, &Unit::Bytes))
        }
    };
    output::print(&text)?;
    Ok(Code::Fine)
}

/// Returns the runs that began before the limit and that nothing needs. `all` lists the newest run first.
fn unneeded<'a>(all: &'a [ListedRun], histories: &HashSet<String>, limit: i64) -> Vec<&'a ListedRun> {
    let words: HashSet<&str> = all
        .iter()
        .flat_map(|run| run.argv.iter().skip(1))
        .map(|word| word.rsplit('=').next().unwrap_or(word))
        .filter(|word| word.len() >= SHORTEST_ID)
        .collect();
    let mut newest: HashMap<(&str, &[String]), &str> = HashMap::new();
    for run in all.iter().filter(|run| run.state == RunState::Complete) {
        newest.entry((&run.machine, &run.arms)).or_insert(&run.id);
    }
    let needed = |run: &ListedRun| {
        run.label.is_some()
            || run.state == RunState::Running
            || histories.contains(&run.id)
            || newest.get(&(run.machine.as_str(), run.arms.as_slice())) == Some(&run.id.as_str())
            || words.iter().any(|word| run.id.starts_with(word))
    };
    all.iter().filter(|run| run.started < limit && !needed(run)).collect()
}

fn lines(runs: &[&ListedRun], dry_run: bool) -> String {
    let verb = if dry_run { "Would remove" } else { "Removed" };
    let mut text = String::new();
    for run in runs {
        let label = run.label.as_ref().map_or(String::new(), |label| format!(" (‘{label}’)"));
        let when = moment(run.started);
        let _ = writeln!(text, "{verb} {}{label} of {when}: {}", run.id, run.arms.join(" | "));
    }
    if runs.is_empty() {
        let _ = writeln!(text, "{verb} nothing.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str, started: i64, arm: &str) -> ListedRun {
        ListedRun {
            id: id.to_owned(),
            label: None,
            started,
            state: RunState::Complete,
            machine: "m".to_owned(),
            argv: vec!["scruple".to_owned()],
            arms: vec![arm.to_owned()],
        }
    }

    #[test]
    fn runs_of_labels_baselines_and_histories_are_not_collected() {
        let mut all = vec![
            run("newest", 9, "a"),
            run("recent", 8, "a"),
            run("old-one", 1, "a"),
            run("labelled", 1, "a"),
            run("history", 1, "a"),
            run("baseline-1", 1, "a"),
            run("another", 1, "b"),
            run("under-way", 1, "a"),
            run("cut-short", 1, "c"),
        ];
        all[0].argv.extend(["--baseline".to_owned(), "--against=baseline".to_owned()]);
        all[3].label = Some("v1".to_owned());
        all[7].state = RunState::Running;
        all[8].state = RunState::Interrupted;
        let histories = HashSet::from(["history".to_owned()]);
        let gone: Vec<&str> = unneeded(&all, &histories, 5).iter().map(|run| run.id.as_str()).collect();
        assert_eq!(gone, ["old-one", "cut-short"]);
        assert!(unneeded(&all, &histories, 0).is_empty());
    }
}
