//! `scruple run`: weighs commands, which are launched anew for every reading.

pub mod args;
pub mod arms;
pub mod deciding;
pub mod hooks;
pub mod ignored_failures;
pub mod parameters;
pub mod passes;
pub mod shell;
pub mod verb;
