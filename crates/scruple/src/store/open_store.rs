//! Opens the store that a command line means.

use super::Store;
use crate::cli::shared_args::StoreArgs;
use crate::cli::values;
use crate::fault::Fault;
use crate::paths;
use std::path::Path;

/// Opens the store for a new run, unless the user wants none.
pub fn for_run(args: &StoreArgs) -> Result<Option<Store>, Fault> {
    values::label(args.label.as_deref())?;
    if args.no_store {
        return Ok(None);
    }
    let opened = Store::open_for_runs(&paths::store_address(args.store.as_deref())?);
    opened.map(Some).map_err(|error| error.avoidable())
}

/// Opens the store of a history, which continues from what is stored.
pub fn for_history(args: &StoreArgs) -> Result<Store, Fault> {
    if args.no_store {
        return Err(Fault::usage("a history continues from what is stored: leave out --no-store"));
    }
    values::label(args.label.as_deref())?;
    Ok(Store::open_for_runs(&paths::store_address(args.store.as_deref())?)?)
}

/// Opens the store for reading.
pub fn existing(named: Option<&Path>) -> Result<Store, Fault> {
    Ok(Store::open_existing(&paths::store_address(named)?)?)
}
