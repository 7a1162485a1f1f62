//! Counts the allocations of a program exactly, at nearly its normal speed.
//!
//! A small library is loaded before the program's own (`LD_PRELOAD`) and intercepts `malloc` and its relatives. Each
//! thread adds to its own slot in a file that all processes of the tree map. So nothing is lost when a process is
//! killed, calls `_exit` or replaces itself, and the file can be read at any time.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use scruple_measure::heap::{self, LiveBytes, HeapSession};
//!
//! let program = std::path::Path::new("/usr/bin/sort");
//! heap::measurable(program)?;
//! let session = HeapSession::start(&std::env::temp_dir(), LiveBytes::Usable)?;
//! std::process::Command::new(program).arg("words").envs(session.environment(None)).status()?;
//! let totals = session.read()?;
//! println!("{} allocations of {} bytes", totals.counts().allocations, totals.counts().bytes);
//! # Ok(())
//! # }
//! ```
//!
//! With [`HeapSession::start_with_sites`] it also records where memory is allocated: at some allocations, or at all,
//! the registers and the stack are written to a file, and [`HeapSession::read_sites`] finds the callers afterwards.
//!
//! The numbers agree exactly with valgrind's "total heap usage". Where a program's allocations do not pass through a
//! replaceable `malloc`, [`measurable`] reports that beforehand, [`HeapSession::read`] fails if nothing was counted at
//! all, and [`Totals::unseen`] names the programs of the tree that were started and not counted.

mod error;
mod format;
mod instrument;
mod measurable;
mod session;
mod site_recorder;
mod sites;
pub(crate) mod system;
mod totals;

pub use error::HeapError;
pub use format::SiteSampling;
pub use instrument::{HeapInstrument, REQUESTED_KEYS};
pub use measurable::{Unmeasurable, measurable};
pub use session::{DATA_VARIABLE, HeapSession};
pub use site_recorder::{RecordedSites, SiteRecorder};
pub use totals::{AllocationCounts, LiveMemory, Process, ProcessOrigin, Totals, TreePeak, UnrecordedProgram};

/// What is recorded besides calls and requested bytes. Each mode has its own library, so that no mode pays for
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveBytes {
    /// Nothing else is recorded, which is the cheapest.
    Off,
    /// Live and peak bytes as the allocator sees them (`malloc_usable_size`). The placement of blocks is unaffected, so
    /// resident memory and addresses are those of the plain program.
    Usable,
    /// Live and peak bytes as requested, which is what DHAT shows. Every block grows by two bytes, so figures of
    /// resident memory or time from such a run are not valid.
    Requested,
}
