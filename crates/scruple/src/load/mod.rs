//! `scruple load`: requests that servers answer.

pub mod args;
pub mod limits;
pub mod report;
pub mod verb;
pub mod windows;
