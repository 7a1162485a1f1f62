//! What every unit of work needs of the node that does it: its provenance, its result, its folder of builds.

use crate::farm::same_version::VERSION;
use crate::farm::unit_data::{UnitOutcome, UnitResult};
use crate::fault::Fault;
use crate::new_run;
use crate::versions::cache::Cache;
use crate::versions::{self};
use scruple_core::provenance::Provenance;
use scruple_core::run::Terms;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Returns the result of a unit that this node has done.
pub fn result(node: &str, found: UnitOutcome) -> UnitResult {
    UnitResult { scruple: VERSION.to_owned(), node: node.to_owned(), machine: this_machine(), found }
}

/// Returns the provenance of this node.
pub fn this_machine() -> Provenance {
    new_run::empty_run(None, None, Terms::default(), &[]).provenance
}

/// Locks this machine's folder of builds. Waits while another unit holds the lock, for example one whose node was
/// considered lost. Returns `None` if `there` reports in the meantime that the result exists.
pub fn take(
    place: &str,
    launchers: &[i32],
    flag: &Arc<AtomicBool>,
    there: impl Fn() -> Result<bool, Fault>,
) -> Result<Option<Cache>, Fault> {
    let folder = versions::folder_of(place)?;
    loop {
        match Cache::take(folder.clone(), launchers) {
            Ok(cache) => return Ok((!there()?).then_some(cache)),
            Err(fault) if !Cache::is_held(&folder) && !there()? => return Err(fault),
            Err(_) if there()? => return Ok(None),
            Err(_) if flag.load(Ordering::Relaxed) => return Err(Fault::interrupted()),
            Err(_) => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}
