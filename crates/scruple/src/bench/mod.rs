//! `scruple bench`: weighs the cases of bench programs.

pub mod args;
pub mod report;
pub mod suite;
pub mod verb;
