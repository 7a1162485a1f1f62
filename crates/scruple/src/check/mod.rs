//! `scruple check`: the gate. Results weighed side by side are compared with limits and with the reference.

pub mod args;
pub mod explained;
pub mod report;
pub mod revisions;
pub mod summary;
pub mod verb;
