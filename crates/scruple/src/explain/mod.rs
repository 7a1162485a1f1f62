//! `scruple explain`: where in the code the difference of two programs comes from.

pub mod args;
pub mod changes;
pub mod counted_runs;
pub mod findings;
pub mod hunks;
pub mod report;
pub mod verb;
