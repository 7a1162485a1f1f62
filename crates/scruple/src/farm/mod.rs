//! Measuring on other machines: work is written down in units, a farm has them done, and their results are put together.
//!
//! The data flow is plan → measure → store → judge. A [`unit`] is a file, its result is another one, and which results there
//! are is the only truth about what was done: a farm may do a unit twice, and the first result stands. The queue is
//! Slurm or GNU parallel; nothing of that kind is here.

pub mod args;
pub mod batch;
pub mod config;
pub mod dispatch;
pub mod folder;
mod line;
pub mod lines;
pub mod merge;
#[cfg(test)]
mod simulation;
pub mod unit;
pub mod work;

pub use config::FarmEntry;
pub use dispatch::Farm;
