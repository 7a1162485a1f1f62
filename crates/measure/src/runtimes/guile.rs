//! Guile 3, and all other programs with the Boehm-Demers-Weiser collector (libgc): reads its events and totals.

use super::adapter::{Adapter, Recognition};
use super::agent_records::{AgentRecord, HookFile};
use super::elf::Elf;
use super::figures::{LIVE, RuntimeFigure};

pub(super) const ADAPTER: Adapter = Adapter {
    word: "guile",
    lacks: &[
        ("alloc.objects", "the collector counts bytes, not objects"),
        ("gc.minor", "the collector has no generations; see gc.count"),
        ("gc.major", "the collector has no generations; see gc.count"),
    ],
    find,
    figures_of,
    tells_when: true,
    ..Adapter::SILENT
};

fn find(elf: &Elf) -> Option<Recognition> {
    let asked = "the collector's own counters and events, from inside the process";
    if let Some(library) = elf.needs("libguile-") {
        let version = library.strip_prefix("libguile-").and_then(|rest| rest.split(".so").next());
        return Recognition::new(version.map(str::to_owned), "the library it needs", asked);
    }
    elf.needs("libgc.so")
        .and_then(|_| Recognition::new(None, "the collector's library, which it needs", asked))
}

fn figures_of(record: &AgentRecord, _answers: &[&HookFile]) -> Result<Vec<RuntimeFigure>, String> {
    if !record.reported() {
        return Err(record.silence());
    }
    let value = |at: usize| record.values[at] as f64;
    let mut figures = vec![
        RuntimeFigure::near("alloc.bytes", value(0)),
        RuntimeFigure::exact("gc.count", value(1)),
        RuntimeFigure::noisy("gc.time", value(2)),
        RuntimeFigure::noisy("gc.pause_max", value(3)),
        RuntimeFigure::near("heap.peak", value(5)),
    ];
    if value(4) > 0.0 {
        figures.push(RuntimeFigure::estimated("heap.live_max", value(4)));
    }
    if value(6) > 0.0 {
        figures.push(RuntimeFigure::near(LIVE, value(6)));
    }
    Ok(figures)
}
