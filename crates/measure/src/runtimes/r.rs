//! R: a profile script of ours runs the user's own, and reads the collector's counts at the end of the session.

use super::adapter::{Adapter, Recognition};
use super::agent_records::{AgentRecord, HookFile, field};
use super::elf::Elf;
use super::figures::RuntimeFigure;

pub(super) const ADAPTER: Adapter = Adapter {
    word: "r",
    lacks: &[
        ("alloc.bytes", "R keeps no total; Rprofmem logs single allocations"),
        ("alloc.objects", "R keeps no total; Rprofmem logs single allocations"),
        ("gc.minor", "levels of collection are not distinguished; gcinfo(TRUE) prints them"),
        ("gc.major", "levels of collection are not distinguished; gcinfo(TRUE) prints them"),
        ("gc.pause_max", "R keeps the sum of its pauses only"),
        ("heap.live_max", "R keeps the most in use, not the most alive; see heap.peak"),
    ],
    find,
    figures_of,
    counts_from_its_parent: true,
    hook: Some(("hook.R", include_str!("hooks/hook.R"))),
    ..Adapter::SILENT
};

fn find(elf: &Elf) -> Option<Recognition> {
    let asked = "gc() at the end, by a profile through R_PROFILE_USER";
    elf.needs("libR.so").and_then(|_| Recognition::new(None, "the library it needs", asked))
}

fn figures_of(record: &AgentRecord, answers: &[&HookFile]) -> Result<Vec<RuntimeFigure>, String> {
    let Some(answer) = answers.first() else {
        return Err(format!("{}; with --vanilla R runs no profile", record.silence()));
    };
    let value = |name: &str| field(&answer.text, name);
    let mut figures = Vec::new();
    figures.extend(value("cycles").map(|cycles| RuntimeFigure::near("gc.count", cycles)));
    figures
        .extend(value("gc_seconds").map(|seconds| RuntimeFigure::noisy("gc.time", (seconds * 1e9).round())));
    figures.extend(
        value("max_used_mb").map(|size| RuntimeFigure::near("heap.peak", (size * 1024.0 * 1024.0).round())),
    );
    Ok(figures)
}
