//! The allocation counter as an instrument of the counting pass.

use super::{HeapSession, LiveBytes, Totals, measurable};
use crate::instrument::{Instrument, let_sanitizers_be_second};
use crate::launcher::{Launch, LaunchResult};
use crate::program::Program;
use scruple_core::metric::{Quality, metric};
use scruple_core::sample::Reading;
use std::path::{Path, PathBuf};

const KEYS: &[&str] =
    &["malloc.count", "malloc.bytes", "malloc.frees", "malloc.live", "malloc.peak", "malloc.tree_peak"];

/// Those that need the sizes of blocks.
const LIVE_KEYS: &[&str] = &["malloc.live", "malloc.peak", "malloc.tree_peak"];

/// The metrics that only a counter which stores the size of each request can read.
pub const REQUESTED_KEYS: &[&str] = &["malloc.requested_live", "malloc.requested_peak"];

/// The instrument that counts the allocations of one launch at a time.
#[derive(Debug)]
pub struct HeapInstrument {
    folder: PathBuf,
    peak: LiveBytes,
    session: Option<HeapSession>,
}

impl HeapInstrument {
    /// Creates an instrument that keeps its files in this folder.
    pub fn new(folder: &Path) -> HeapInstrument {
        HeapInstrument { folder: folder.to_owned(), peak: LiveBytes::Usable, session: None }
    }

    /// Creates an instrument that reads only live and peak memory in requested bytes. It is separate from the other,
    /// because its library makes every block larger.
    pub fn of_requests(folder: &Path) -> HeapInstrument {
        HeapInstrument { peak: LiveBytes::Requested, ..HeapInstrument::new(folder) }
    }
}

impl Instrument for HeapInstrument {
    fn name(&self) -> &'static str {
        match self.peak {
            LiveBytes::Requested => "preload counter of requests",
            LiveBytes::Off | LiveBytes::Usable => "preload counter",
        }
    }

    fn available(&self, program: &Program) -> Result<(), String> {
        measurable(&program.path).map_err(|error| error.to_string())
    }

    fn metrics(&self) -> &'static [&'static str] {
        match self.peak {
            LiveBytes::Requested => REQUESTED_KEYS,
            LiveBytes::Off | LiveBytes::Usable => KEYS,
        }
    }

    fn decorate(&mut self, launch: &mut Launch) -> Result<(), String> {
        let session = HeapSession::start(&self.folder, self.peak).map_err(|error| error.to_string())?;
        load_into(launch, &session);
        self.session = Some(session);
        Ok(())
    }

    fn read(&mut self, _outcome: &LaunchResult) -> Vec<Reading> {
        let Some(session) = self.session.take() else { return Vec::new() };
        let all_absent = |why: &str| absent(self.metrics(), why);
        match session.read() {
            Ok(totals) if totals.is_complete() => readings(&totals, self.name()),
            Ok(totals) => all_absent(&partial(&totals)),
            Err(error) => all_absent(&error.to_string()),
        }
    }
}

/// Sets the environment of a launch so that the session's library is loaded.
pub(super) fn load_into(launch: &mut Launch, session: &HeapSession) {
    let existing = launch.env.iter().find(|(name, _)| name == "LD_PRELOAD").map(|(_, value)| value.clone());
    for (name, value) in session.environment(existing.as_deref()) {
        launch.env.retain(|(other, _)| *other != name);
        launch.env.push((name, value));
    }
    let_sanitizers_be_second(&mut launch.env);
}

fn readings(totals: &Totals, source: &str) -> Vec<Reading> {
    let found = |key: &str, value: f64, error: u64| {
        let quality = if error == 0 { Quality::Exact } else { Quality::Near };
        Some(Reading::of(metric(key)?, value, source).with_quality(quality))
    };
    let counts = totals.counts();
    let calls = match totals.mode {
        LiveBytes::Requested => Vec::new(),
        LiveBytes::Off | LiveBytes::Usable => vec![
            found("malloc.count", counts.allocations as f64, 0),
            found("malloc.bytes", counts.bytes as f64, 0),
            found("malloc.frees", counts.frees as f64, 0),
        ],
    };
    let calls = calls.into_iter().flatten();
    if let Some(process) = totals.processes.iter().find(|process| process.lacks_sizes) {
        let keys = if totals.mode == LiveBytes::Requested { REQUESTED_KEYS } else { LIVE_KEYS };
        let why =
            format!("malloc in ‘{}’ is of a library that does not tell the sizes of blocks", process.exe);
        return calls.chain(absent(keys, &why)).collect();
    }
    let live = counts.live.map(|live| live.bytes as f64);
    let peak = |key: &str| match totals.largest_peak() {
        Some((_, live)) => found(key, live.peak as f64, live.peak_error),
        None if live.is_some() => unknown_peak(key, totals),
        None => None,
    };
    let figures = match totals.mode {
        LiveBytes::Requested => vec![
            live.and_then(|bytes| found("malloc.requested_live", bytes, 0)),
            peak("malloc.requested_peak"),
        ],
        LiveBytes::Off | LiveBytes::Usable => vec![
            live.and_then(|bytes| found("malloc.live", bytes, 0)),
            peak("malloc.peak"),
            totals.tree.map_or_else(
                || unknown_peak("malloc.tree_peak", totals),
                |tree| found("malloc.tree_peak", tree.peak as f64, tree.error),
            ),
        ],
    };
    calls.chain(figures.into_iter().flatten()).collect()
}

/// The absence of a peak, with its reason.
fn unknown_peak(key: &str, totals: &Totals) -> Option<Reading> {
    let why = match totals.refused {
        0 => "more processes ran at once than the counter has room for, or one ran in a namespace of process ids of \
              its own"
            .to_owned(),
        1 => "a process or thread had no record of its own; the counter's file had no room for it, or it could not \
              open the file, for example as another user, or not write it (‘ulimit -f’)"
            .to_owned(),
        refused => format!(
            "{refused} processes or threads had no records of their own; the counter's file had no room for them, or \
             they could not open the file, for example as another user, or not write it (‘ulimit -f’)"
        ),
    };
    Some(Reading::absent(metric(key)?, why))
}

fn absent(keys: &[&str], why: &str) -> Vec<Reading> {
    keys.iter().filter_map(|key| metric(key)).map(|metric| Reading::absent(metric, why)).collect()
}

/// The reason why totals are absent: the sum over a part of the tree must not look like that of the whole tree.
fn partial(totals: &Totals) -> String {
    let seen = totals.counts().allocations;
    let mut parts = totals.missing();
    parts.dedup();
    parts.truncate(3);
    format!("not all could be counted ({}); the rest made {seen} allocations", parts.join(", "))
}
