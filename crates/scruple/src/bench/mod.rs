//! `scruple bench`: cases of bench programs.

pub mod args;
pub mod report;
pub mod suite;
pub mod verb;
