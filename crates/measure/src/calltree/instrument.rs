//! An instrument that records the call tree of each launch.

use super::choose_tool::ChosenTool;
use super::session::{CalltreeSession, CountDetail, Settings};
use crate::instructions::steady;
use crate::instrument::Instrument;
use crate::launcher::{Launch, LaunchResult};
use crate::program::Program;
use scruple_code::{CalltreeError, Profiles};
use scruple_core::sample::Reading;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The times of files lag behind the clock by up to a tick of the kernel. The longest tick of any kernel takes this
/// long.
const TICK: Duration = Duration::from_millis(10);

/// Records the call tree of each launch. Sources of variation, such as random addresses, are removed.
pub struct Trees {
    counter: ChosenTool,
    folder: PathBuf,
    counts: CountDetail,
    first_began: SystemTime,
    session: Option<CalltreeSession>,
    failed: Option<String>,
    taken: Option<Result<Profiles, CalltreeError>>,
}

impl Trees {
    /// Uses this counter. Profiles are in `folder` while a program runs. The first run is taken to begin now: files
    /// that change from now on until a launch are what earlier runs left.
    pub fn new(counter: &ChosenTool, folder: &Path) -> Trees {
        let folder = folder.to_owned();
        Trees {
            counter: counter.clone(),
            folder,
            counts: CountDetail::Tree,
            first_began: SystemTime::now() - TICK,
            session: None,
            failed: None,
            taken: None,
        }
    }

    /// Sets what further launches count.
    pub fn count(&mut self, counts: CountDetail) {
        self.counts = counts;
    }

    /// The tool that counts.
    pub fn counter(&self) -> &ChosenTool {
        &self.counter
    }

    /// Uses another counter from the next launch on.
    pub fn count_by(&mut self, counter: &ChosenTool) {
        self.counter = counter.clone();
    }

    /// The message of Valgrind if Valgrind itself failed in the launch that has just ended.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Takes the profiles of the launch that has just ended; `None` if nothing was launched.
    pub fn take(&mut self) -> Option<Result<Profiles, CalltreeError>> {
        self.taken.take()
    }
}

impl Instrument for Trees {
    fn name(&self) -> &'static str {
        "the call tree"
    }

    fn available(&self, program: &Program) -> Result<(), String> {
        program.can_run_under_valgrind()
    }

    fn metrics(&self) -> &'static [&'static str] {
        &[]
    }

    fn decorate(&mut self, launch: &mut Launch) -> Result<(), String> {
        steady(launch);
        let settings = Settings {
            counts: self.counts,
            steady: true,
            control: false,
            first_began: Some(self.first_began),
        };
        let session = CalltreeSession::start(&self.counter, settings, &self.folder)
            .map_err(|error| error.to_string())?;
        session.decorate(launch);
        self.session = Some(session);
        Ok(())
    }

    fn read(&mut self, outcome: &LaunchResult) -> Vec<Reading> {
        self.failed = self.session.as_ref().and_then(CalltreeSession::failure);
        let of = |session: CalltreeSession| {
            let counted = session.read()?;
            Ok(Profiles { left_behind: outcome.left_behind, ..counted.profiles })
        };
        self.taken = self.session.take().map(of);
        Vec::new()
    }
}
