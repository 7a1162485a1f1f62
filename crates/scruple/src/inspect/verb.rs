//! `scruple inspect`: examines one program by itself.

use super::args::InspectVerb;
use super::calls::calls;
use super::ghc::ghc;
use super::leak::leak;
use super::memory::memory;
use super::metrics::metrics;
use crate::fault::{Code, Fault};

/// Runs one of the subcommands.
pub fn inspect(verb: &InspectVerb) -> Result<Code, Fault> {
    match verb {
        InspectVerb::Memory(args) => memory(args),
        InspectVerb::Leak(args) => leak(args),
        InspectVerb::Calls(args) => calls(args),
        InspectVerb::Ghc(args) => ghc(args),
        InspectVerb::Metrics => metrics(),
    }
}
