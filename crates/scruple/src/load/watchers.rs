//! Who is told how a load goes while it goes on: a file of every request, other programs.

use super::args::LoadArgs;
use super::live::Live;
use super::report::export::requests::{FORMATS, Form, Names, Requests};
use super::windows::Side;
use crate::fault::Fault;
use crate::show::export::{Export, writer};
use scruple_measure::load::{Plan, Progress};

/// Who is told.
#[derive(Default)]
pub struct Watchers {
    requests: Option<Requests>,
    live: Option<Live>,
}

impl Watchers {
    /// Those that were asked for.
    ///
    /// # Errors
    /// When they cannot be told.
    pub fn of(args: &LoadArgs, exports: &[Export], sides: &[Side]) -> Result<Watchers, Fault> {
        let form = |export: &Export| writer(&FORMATS, &export.format);
        let files: Vec<(&Export, Form)> =
            exports.iter().filter_map(|export| Some((export, form(export)?))).collect();
        let watched = !files.is_empty() || args.live.is_some();
        if watched && args.slo().is_some() {
            return Err(Fault::usage(
                "a search for the highest rate is not told while it goes on: leave --live and the file of requests out",
            ));
        }
        let requests = match files.as_slice() {
            [] => None,
            [(export, form)] => {
                let servers = sides.iter().map(|side| side.name.clone()).collect();
                let kinds = sides.iter().take(1).flat_map(|side| &side.requests);
                let names = Names { servers, requests: kinds.map(|request| request.name.clone()).collect() };
                Some(Requests::begin(&export.path, *form, names)?)
            }
            [_, (second, _), ..] => {
                return Err(Fault::usage(format!(
                    "every request is written to one file: leave ‘{}’ out",
                    second.path.display()
                )));
            }
        };
        Ok(Watchers { requests, live: args.live.as_deref().map(Live::begin).transpose()? })
    }

    /// The plan of a turn of a server, with who is told of it.
    pub fn watch(&self, plan: Plan, server: usize, turn: u32) -> Plan {
        let each = self.requests.as_ref().map(|requests| requests.listeners(server, turn));
        Plan { each, live: self.live.is_some(), ..plan }
    }

    /// Tells how a turn goes.
    pub fn tell(&self, server: &str, seen: &Progress) {
        if let Some(live) = &self.live {
            live.tell(server, seen);
        }
    }

    /// Ends it. What could not be told to other programs comes back as a sentence.
    ///
    /// # Errors
    /// When the file could not be written.
    pub fn end(&mut self) -> Result<Option<String>, Fault> {
        let trouble = self.live.take().and_then(Live::end);
        self.requests.take().map_or(Ok(()), Requests::end)?;
        Ok(trouble)
    }
}
