//! The recorder of allocation sites as an instrument.

use super::instrument::load_into;
use super::{HeapError, HeapSession, SiteSampling, measurable};
use crate::instrument::Instrument;
use crate::launcher::{Launch, LaunchResult};
use crate::program::Program;
use scruple_code::allocation_sites::HeapSites;
use scruple_core::sample::Reading;
use std::path::{Path, PathBuf};

/// The instrument that records where the program of a launch allocates.
#[derive(Debug)]
pub struct SiteRecorder {
    folder: PathBuf,
    sampling: SiteSampling,
    session: Option<HeapSession>,
    taken: Option<Result<RecordedSites, HeapError>>,
}

/// What was recorded in one launch.
#[derive(Debug)]
pub struct RecordedSites {
    /// The sites of each process, in the order in which they started.
    pub processes: Vec<HeapSites>,
    /// Programs of the tree whose allocations are missing, one phrase each.
    pub missing: Vec<String>,
}

impl SiteRecorder {
    /// Creates an instrument that keeps its files in this folder.
    pub fn new(folder: &Path, sampling: SiteSampling) -> SiteRecorder {
        SiteRecorder { folder: folder.to_owned(), sampling, session: None, taken: None }
    }

    /// Takes the records of the launch that has just ended; `None` if nothing was launched.
    pub fn take(&mut self) -> Option<Result<RecordedSites, HeapError>> {
        self.taken.take()
    }
}

impl Instrument for SiteRecorder {
    fn name(&self) -> &'static str {
        "the recorder of allocation sites"
    }

    fn available(&self, program: &Program) -> Result<(), String> {
        measurable(&program.path).map_err(|error| error.to_string())
    }

    fn metrics(&self) -> &'static [&'static str] {
        &[]
    }

    fn decorate(&mut self, launch: &mut Launch) -> Result<(), String> {
        let session = HeapSession::start_with_sites(&self.folder, self.sampling);
        let session = session.map_err(|error| error.to_string())?;
        load_into(launch, &session);
        self.session = Some(session);
        Ok(())
    }

    fn read(&mut self, _outcome: &LaunchResult) -> Vec<Reading> {
        let of = |session: HeapSession| {
            let totals = session.read()?;
            let processes = session.read_sites(&totals)?;
            Ok(RecordedSites { processes, missing: totals.missing() })
        };
        self.taken = self.session.take().map(of);
        Vec::new()
    }
}
