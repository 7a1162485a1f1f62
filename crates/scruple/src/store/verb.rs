//! `scruple store`: the runs that are kept.

use super::args::StoreVerb;
use super::import::verb::import;
use super::list::list;
use crate::fault::{Code, Fault};

/// Does one of the group's verbs.
pub fn store(verb: &StoreVerb) -> Result<Code, Fault> {
    match verb {
        StoreVerb::List(args) => list(args),
        StoreVerb::Import(args) => import(args),
    }
}
