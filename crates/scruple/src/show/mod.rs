//! `scruple show`: a stored run again.

pub mod args;
pub mod verb;
