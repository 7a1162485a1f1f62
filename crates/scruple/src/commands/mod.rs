//! The verbs, one file each.

pub mod bench;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod ghc;
pub mod history;
pub mod import;
pub mod leak;
pub mod list;
pub mod load;
pub mod memory;
pub mod metrics;
mod one;
pub mod output;
mod revisions;
pub mod run;
pub mod show;
pub mod start;
