//! `scruple store`: manages the stored runs.

use super::args::StoreVerb;
use super::check::check;
use super::copy::copy;
use super::export::export;
use super::import::verb::import;
use super::list::list;
use super::remove::{gc, rm};
use crate::fault::{Code, Fault};

/// Runs one of the subcommands.
pub fn store(verb: &StoreVerb) -> Result<Code, Fault> {
    match verb {
        StoreVerb::List(args) => list(args),
        StoreVerb::Import(args) => import(args),
        StoreVerb::Export(args) => export(args),
        StoreVerb::Rm(args) => rm(args),
        StoreVerb::Gc(args) => gc(args),
        StoreVerb::Copy(args) => copy(args),
        StoreVerb::Check(args) => check(args),
    }
}
