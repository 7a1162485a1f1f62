//! The observers of a running load: a file of every request, and other programs.

use super::args::LoadArgs;
use super::live::LiveReport;
use super::report::export::requests::{FORMATS, RequestFormat, RequestWriter, RowNames};
use super::windows::TargetServer;
use crate::fault::Fault;
use crate::render::export::{Export, writer};
use scruple_measure::load::{LoadProgress, Plan};

/// The observers of a load.
#[derive(Default)]
pub struct Watchers {
    requests: Option<RequestWriter>,
    live: Option<LiveReport>,
}

impl Watchers {
    /// Creates the observers that the command line requests.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn of(args: &LoadArgs, exports: &[Export], sides: &[TargetServer]) -> Result<Watchers, Fault> {
        let form = |export: &Export| writer(&FORMATS, &export.format);
        let files: Vec<(&Export, RequestFormat)> =
            exports.iter().filter_map(|export| Some((export, form(export)?))).collect();
        let watched = !files.is_empty() || args.live.is_some();
        if watched && args.slo().is_some() {
            return Err(Fault::usage(
                "a search for the highest rate is not reported while it runs: leave out --live and the file of requests",
            ));
        }
        let requests = match files.as_slice() {
            [] => None,
            [(export, form)] => {
                let servers = sides.iter().map(|side| side.name.clone()).collect();
                let kinds = sides.iter().take(1).flat_map(|side| &side.requests);
                let names =
                    RowNames { servers, requests: kinds.map(|request| request.name.clone()).collect() };
                Some(RequestWriter::begin(&export.path, *form, names)?)
            }
            [_, (second, _), ..] => {
                return Err(Fault::usage(format!(
                    "every request is written to one file: leave ‘{}’ out",
                    second.path.display()
                )));
            }
        };
        Ok(Watchers { requests, live: args.live.as_deref().map(LiveReport::begin).transpose()? })
    }

    /// Returns the plan of a server's turn, with its observers.
    pub fn watch(&self, plan: Plan, server: usize, turn: u32) -> Plan {
        let each = self.requests.as_ref().map(|requests| requests.receiver(server, turn));
        Plan { each, live: self.live.is_some(), ..plan }
    }

    /// Reports the progress of a turn to other programs.
    pub fn update(&self, server: &str, seen: &LoadProgress) {
        if let Some(live) = &self.live {
            live.update(server, seen);
        }
    }

    /// Ends the observers. Returns a sentence about what could not be reported to other programs.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn end(&mut self) -> Result<Option<String>, Fault> {
        let trouble = self.live.take().and_then(LiveReport::end);
        self.requests.take().map_or(Ok(()), RequestWriter::end)?;
        Ok(trouble)
    }
}
