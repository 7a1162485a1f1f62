//! `scruple inspect`: examines one program by itself.

pub mod args;
pub mod calls;
pub mod ghc;
pub mod launch;
pub mod leak;
pub mod memory;
pub mod metrics;
pub mod report;
pub mod verb;
