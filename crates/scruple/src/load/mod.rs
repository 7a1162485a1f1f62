//! `scruple load`: requests that servers answer.

pub mod args;
pub mod report;
pub mod verb;
pub mod windows;
