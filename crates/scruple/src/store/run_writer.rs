//! The writer of a run: writes the run to the store while the run is under way.

use super::{Store, StoreError, add_readings};
use crate::address::StoreAddress;
use crate::fault::Fault;
use crate::render::page::Section;
use scruple_core::metric::Pass;
use scruple_core::run::Run;
use scruple_core::sample::Reading;

/// The connection of one run to its store, if it has one. An error of the store ends the writing, but never the
/// measurement.
#[derive(Default)]
pub struct RunWriter {
    store: Option<Store>,
    /// The store in which the run is begun later.
    waiting: Option<Store>,
    sequence: u64,
    /// The error after which the store received no more readings, if there was one.
    pub fault: Option<StoreError>,
}

impl RunWriter {
    /// Begins the run in the store, if there is one.
    pub fn begin(store: Option<Store>, run: &Run) -> Result<RunWriter, Fault> {
        if let Some(store) = &store {
            store.begin(run).map_err(|error| error.avoidable())?;
        }
        Ok(RunWriter { store, ..RunWriter::default() })
    }

    /// Returns a writer that begins the run at the first call of [`RunWriter::begin_waiting`].
    pub fn wait(store: Store) -> RunWriter {
        RunWriter { waiting: Some(store), ..RunWriter::default() }
    }

    /// Begins the run, if that was put off.
    pub fn begin_waiting(&mut self, run: &Run) -> Result<(), Fault> {
        if let Some(store) = self.waiting.take() {
            *self = RunWriter::begin(Some(store), run)?;
        }
        Ok(())
    }

    /// Adds the readings of one launch to an arm, and writes them to the journal.
    pub fn keep(&mut self, run: &mut Run, arm: usize, pass: Pass, block: u32, readings: Vec<Reading>) {
        self.journal(run, arm, pass, block, &readings);
        add_readings(&mut run.arms[arm], readings, pass, block);
    }

    /// Writes the readings of one launch or window of an arm to the journal.
    pub fn journal(&mut self, run: &Run, arm: usize, pass: Pass, block: u32, readings: &[Reading]) {
        if let Some(store) = &self.store
            && let Err(error) = store.journal(&run.id, self.sequence, arm, pass, block, readings)
        {
            self.fault = Some(error);
            self.store = None;
        }
        self.sequence += 1;
    }

    /// Stores sections of the run's page that do not follow from its readings alone.
    pub fn keep_sections(&mut self, run: &Run, sections: &[Section]) {
        if let Some(store) = &self.store
            && let Err(error) = store.put_sections(&run.id, sections)
        {
            self.fault = Some(error);
        }
    }

    /// Writes the run in its final state.
    pub fn finish(&mut self, run: &Run) {
        if let Some(store) = self.store.take() {
            match store.finish(run) {
                Ok(()) => self.store = Some(store),
                Err(error) => self.fault = Some(error),
            }
        }
    }

    /// Returns the store, once the run has begun in it.
    pub fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// Returns the address of the stored run, if it is stored.
    pub fn address(&self, run: &Run) -> Option<StoreAddress> {
        self.store.as_ref().and_then(|store| store.address_of_run(&run.id))
    }
}
