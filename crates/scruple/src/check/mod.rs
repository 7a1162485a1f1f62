//! `scruple check`: the gate. What is weighed side by side is held against limits and against what it was before.

pub mod args;
pub mod explained;
pub mod report;
pub mod revisions;
pub mod summary;
pub mod verb;
