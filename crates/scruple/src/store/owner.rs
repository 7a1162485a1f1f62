//! Determines which process owns a run under way, and whether it is still running. The store may be visible to several
//! machines.

use super::database::{DatabaseFailure, StoredRow};
use super::{Store, damaged};
use jiff::Timestamp;
use scruple_core::run::RunState;
use scruple_measure::host::host_name;
use scruple_measure::process_stat;
use std::fs;

/// The schema version from which on runs have hosts.
const SINCE: i64 = 7;

/// The time without writing after which a run on another machine counts as interrupted, in milliseconds: one day. The
/// process on the other machine cannot be checked.
const SILENCE: i64 = 24 * 3_600_000;

/// Returns a text that distinguishes processes with the same id: the machine, its boot, and the namespace of its
/// processes. The parts contain no spaces.
pub(super) fn host() -> String {
    let read = |path: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().collect::<String>()
    };
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!(
        "{}/{} {} {}",
        host_name(),
        read("/etc/machine-id"),
        read("/proc/sys/kernel/random/boot_id"),
        space.display()
    )
}

/// Returns the current time in milliseconds since 1970.
pub(super) fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

impl Store {
    /// Returns the columns of a run that [`state`] reads: its state and start, its process and host, and the time when
    /// it last wrote.
    pub(super) fn owner_columns(&self) -> Result<&'static str, DatabaseFailure> {
        Ok(match self.version()? < SINCE {
            // A store of an earlier Scruple is read without migration.
            true => "state, started, owner, NULL, NULL",
            false => {
                "state, started, owner, host, \
                 (SELECT taken FROM journal WHERE run_id = run.id ORDER BY sequence DESC LIMIT 1)"
            }
        })
    }
}

/// Returns the state of a run from a row whose columns from `first` on are those of [`Store::owner_columns`]. A run
/// that is marked as running counts as interrupted if its process is gone.
pub(super) fn state(row: &StoredRow, first: usize) -> Result<RunState, DatabaseFailure> {
    let state = RunState::from_word(row.text(first)?).ok_or_else(damaged_state)?;
    if state != RunState::Running {
        return Ok(state);
    }
    let written = if row.is_null(first + 4) { row.integer(first + 1)? } else { row.integer(first + 4)? };
    let (owner, theirs) = (row.integer(first + 2)?, row.optional_text(first + 3)?);
    let lives = match theirs {
        Some(theirs) => may_be_running(theirs, &host(), owner, now() - written),
        None => has_process(owner),
    };
    Ok(if lives { RunState::Running } else { RunState::Interrupted })
}

pub(super) fn damaged_state() -> DatabaseFailure {
    damaged("a run has an unknown state")
}

/// Whether a run on the host `theirs` may still be running, as far as this host can determine.
fn may_be_running(theirs: &str, ours: &str, process: i64, silent: i64) -> bool {
    let mut parts = theirs.split(' ').zip(ours.split(' ')).map(|(their, our)| their == our);
    match [parts.next(), parts.next(), parts.next()] {
        [Some(true), Some(true), Some(true)] => has_process(process),
        // The machine was restarted since the run began.
        [Some(true), Some(false), _] => false,
        _ => silent < SILENCE,
    }
}

fn has_process(process: i64) -> bool {
    i32::try_from(process).is_ok_and(process_stat::is_alive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_that_was_killed_is_gone_before_it_is_reaped() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("it starts");
        let owner = i64::from(child.id());
        assert!(has_process(owner));
        child.kill().expect("it is killed");
        while has_process(owner) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(fs::exists(format!("/proc/{owner}")).expect("proc"), "it is not reaped yet");
        child.wait().expect("it is reaped");
    }

    #[test]
    fn a_run_of_another_machine_goes_on_until_it_is_silent_for_a_day() {
        let own = i64::from(std::process::id());
        let here = "m1/a boot1 pid:[1]";
        assert!(may_be_running(here, here, own, 2 * SILENCE), "its process is there");
        assert!(!may_be_running(here, here, i64::MAX, 0), "its process is gone");
        assert!(!may_be_running("m1/a boot0 pid:[1]", here, own, 0), "the machine was started again");
        for elsewhere in ["m2/b boot2 pid:[1]", "m1/a boot1 pid:[2]", ""] {
            assert!(may_be_running(elsewhere, here, i64::MAX, SILENCE - 1));
            assert!(!may_be_running(elsewhere, here, own, SILENCE + 1));
        }
        assert_eq!(host().split(' ').count(), 3, "{}", host());
    }
}
