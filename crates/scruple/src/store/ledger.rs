//! A run that is written down while it goes on.

use super::{Store, StoreError};
use crate::address::Address;
use crate::show::page::Section;
use scruple_core::metric::Pass;
use scruple_core::run::Run;
use scruple_core::sample::Reading;

/// Where the readings of one run go, if anywhere. A store that takes no more ends the writing, never the measuring.
#[derive(Default)]
pub struct Ledger {
    store: Option<Store>,
    sequence: u64,
    /// Why the store stopped taking readings, if it did.
    pub fault: Option<StoreError>,
}

impl Ledger {
    /// Begins the run in the store, where there is one.
    pub fn begin(store: Option<Store>, run: &Run) -> Result<Ledger, StoreError> {
        if let Some(store) = &store {
            store.begin(run)?;
        }
        Ok(Ledger { store, ..Ledger::default() })
    }

    /// Journals the readings of one launch or window of an arm.
    pub fn journal(&mut self, run: &Run, arm: usize, pass: Pass, block: u32, readings: &[Reading]) {
        if let Some(store) = &self.store
            && let Err(error) = store.journal(&run.id, self.sequence, arm, pass, block, readings)
        {
            self.fault = Some(error);
            self.store = None;
        }
        self.sequence += 1;
    }

    /// Keeps sections of the run's page that follow from more than its readings.
    pub fn keep_sections(&mut self, run: &Run, sections: &[Section]) {
        if let Some(store) = &self.store
            && let Err(error) = store.put_sections(&run.id, sections)
        {
            self.fault = Some(error);
        }
    }

    /// Writes the run as it has ended.
    pub fn finish(&mut self, run: &Run) {
        if let Some(store) = self.store.take() {
            match store.finish(run) {
                Ok(()) => self.store = Some(store),
                Err(error) => self.fault = Some(error),
            }
        }
    }

    /// Where the run is stored, if it is.
    pub fn address(&self, run: &Run) -> Option<Address> {
        self.store.as_ref().and_then(|store| store.home_of(&run.id))
    }
}
