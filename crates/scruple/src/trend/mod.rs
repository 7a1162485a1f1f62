//! `scruple trend`: shows one subject over all stored runs, and where its cost changed.

pub mod args;
pub mod report;
pub mod series;
pub mod verb;
