//! `scruple explain`: where in the code the difference of two programs comes from.

pub mod args;
pub mod changes;
pub mod found;
pub mod gather;
pub mod hunks;
pub mod report;
pub mod verb;
