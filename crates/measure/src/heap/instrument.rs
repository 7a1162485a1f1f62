//! The allocation counter as an instrument of the counting pass.

use super::{Peak, Session, Totals, measurable};
use crate::instrument::{Instrument, let_sanitizers_be_second};
use crate::launch::{Launch, Outcome};
use crate::program::Program;
use scruple_core::metric::{Quality, metric};
use scruple_core::sample::Reading;
use std::path::{Path, PathBuf};

const KEYS: &[&str] = &["malloc.count", "malloc.bytes", "malloc.frees", "malloc.live", "malloc.peak"];

/// Counts the allocations of one launch at a time.
#[derive(Debug)]
pub struct HeapInstrument {
    folder: PathBuf,
    session: Option<Session>,
}

impl HeapInstrument {
    /// An instrument that keeps its files in this folder.
    pub fn new(folder: &Path) -> HeapInstrument {
        HeapInstrument { folder: folder.to_owned(), session: None }
    }
}

impl Instrument for HeapInstrument {
    fn name(&self) -> &'static str {
        "preload counter"
    }

    fn available(&self, program: &Program) -> Result<(), String> {
        measurable(&program.path).map_err(|error| error.to_string())
    }

    fn metrics(&self) -> &'static [&'static str] {
        KEYS
    }

    fn decorate(&mut self, launch: &mut Launch) -> Result<(), String> {
        let session = Session::start(&self.folder, Peak::Usable).map_err(|error| error.to_string())?;
        let existing =
            launch.env.iter().find(|(name, _)| name == "LD_PRELOAD").map(|(_, value)| value.clone());
        for (name, value) in session.environment(existing.as_deref()) {
            launch.env.retain(|(other, _)| *other != name);
            launch.env.push((name, value));
        }
        let_sanitizers_be_second(&mut launch.env);
        self.session = Some(session);
        Ok(())
    }

    fn read(&mut self, _outcome: &Outcome) -> Vec<Reading> {
        let Some(session) = self.session.take() else { return Vec::new() };
        match session.read() {
            Ok(totals) if totals.whole() => readings(&totals, self.name()),
            Ok(totals) => all_absent(&partial(&totals)),
            Err(error) => all_absent(&error.to_string()),
        }
    }
}

fn readings(totals: &Totals, source: &str) -> Vec<Reading> {
    let counts = totals.counts();
    let mut figures = vec![
        ("malloc.count", counts.allocations as f64, Quality::Exact),
        ("malloc.bytes", counts.bytes as f64, Quality::Exact),
        ("malloc.frees", counts.frees as f64, Quality::Exact),
    ];
    if let Some(live) = counts.live {
        figures.push(("malloc.live", live.bytes as f64, Quality::Exact));
    }
    if let Some((_, live)) = totals.largest_peak() {
        let quality = if live.peak_error == 0 { Quality::Exact } else { Quality::Near };
        figures.push(("malloc.peak", live.peak as f64, quality));
    }
    figures
        .into_iter()
        .filter_map(|(key, value, quality)| {
            Some(Reading::of(metric(key)?, value, source).with_quality(quality))
        })
        .collect()
}

fn all_absent(why: &str) -> Vec<Reading> {
    KEYS.iter().filter_map(|key| metric(key)).map(|metric| Reading::absent(metric, why)).collect()
}

/// Counts of a part of the tree would look like those of the whole.
fn partial(totals: &Totals) -> String {
    let seen = totals.counts().allocations;
    let mut parts: Vec<String> =
        totals.unseen.iter().map(|unseen| format!("{} did not load the counter", unseen.path)).collect();
    let foreign = totals.processes.iter().filter(|process| process.foreign_malloc);
    parts.extend(foreign.map(|process| format!("{} has an allocator of its own", process.exe)));
    parts.dedup();
    parts.truncate(3);
    format!("not all could be counted ({}); the rest made {seen} allocations", parts.join(", "))
}
