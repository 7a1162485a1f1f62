//! Go programs. They have no C library that could load the agent, so they are stopped at their exit, and the counters
//! of their runtime are read from their memory, at the places that their debugging information gives.

mod build;
pub mod counters;
mod empty_program;
pub(super) mod gctrace_log;
mod layout;
mod layout_of_stripped;
mod layouts;

use super::Runtime;
use super::adapter::{Adapter, Recognition, Setting};
use super::agent_records::{AgentRecord, HookFile};
use super::elf::{Elf, FileMarks};
use super::executed_programs::TreePrograms;
use super::figures::{LIVE, LIVE_AT_MOST, RuntimeFigure, RuntimeReport};
use crate::process_stat::why_absent;
pub use build::Build;
pub use counters::{Counters, Exit};
pub use empty_program::EmptyProgram;
use layout::STRIPPED;
pub(super) use layout_of_stripped::empty_program_of;
pub(crate) use layouts::Layouts;
use std::path::Path;

pub(super) const ADAPTER: Adapter = Adapter {
    word: "go",
    lacks: &[
        ("gc.minor", "the collector has no generations; see gc.count"),
        ("gc.major", "the collector has no generations; see gc.count"),
        (
            "heap.live_max",
            "the runtime keeps what the last collection found alive, not the most; see heap.peak",
        ),
    ],
    marks: FileMarks { local: &["runtime.memstats"], ..FileMarks::NONE },
    find,
    figures_of: |_: &AgentRecord, _: &[&HookFile]| Ok(Vec::new()),
    tells_when: true,
    for_resident_size: &[
        (COLLECT_OFTEN.0, Setting::Is(COLLECT_OFTEN.1)),
        ("GODEBUG", Setting::Ends { separator: ",", text: COLLECT_STOPPED }),
    ],
    ..Adapter::SILENT
};

fn find(elf: &Elf) -> Option<Recognition> {
    if !elf.section(".go.buildinfo") && !elf.section(".note.go.buildid") && !elf.section(".gopclntab") {
        return None;
    }
    Recognition::new(
        None,
        "the linker's build information",
        "its counters are read from its memory, stopped at its exit",
    )
}

/// Says how a stripped program is queried, and what it lacks if the places of its counters cannot be learnt.
pub(super) fn explain_stripped(path: &Path, elf: &Elf, found: &mut Recognition) {
    if let Some(Err(why)) = is_stripped_go(elf).then(|| empty_program_of(path)) {
        found.asked = "the log of its collections, through GODEBUG, cut out of standard error";
        found.not.extend(["alloc.bytes", "alloc.objects", "heap.peak"].map(|key| (key, why.clone())));
    }
}

/// Whether the file is a Go program without the symbols or debugging information that give the places of the counters.
pub(super) fn is_stripped_go(elf: &Elf) -> bool {
    let is_described =
        elf.has("runtime.memstats") && (elf.section(".debug_info") || elf.section(".zdebug_info"));
    find(elf).is_some() && !is_described
}

/// The variable that makes the collector run whenever the heap has grown by a twentieth, unless the user has set it.
pub(super) const COLLECT_OFTEN: (&str, &str) = ("GOGC", "5");
/// The setting that makes the collector stop the program while it runs, since allocations during a collection count
/// as live.
pub(super) const COLLECT_STOPPED: &str = "gcstoptheworld=1";

/// The empty programs that match the stripped programs that an earlier launch has shown.
pub(super) fn empty_programs(seen: &TreePrograms) -> Vec<EmptyProgram> {
    seen.stripped_go.iter().map(EmptyProgram::of).collect()
}

/// The reason for absence in a process that was killed, so that it could not be stopped at its exit.
pub(crate) const KILLED: &str = "a Go process was killed before its counters could be read";
/// The reason for absence in a process that executed another program.
pub(crate) const EXECUTED: &str = "a Go process executed another program, and its counters were lost with it";
/// The reason for absence in a process that traces others, and therefore cannot be traced.
pub(crate) const TRACES: &str = "a Go program that traces others itself cannot be stopped at its exit";

/// The report of one process; `fully` adds its live size after the last collection, and with all that was allocated
/// since, which may be alive as well.
pub(super) fn report_of(exit: &Exit, fully: bool) -> RuntimeReport {
    let mut figures = exit.counters.as_ref().map(figures).map_err(Clone::clone);
    if let (true, Ok(counters), Ok(figures)) = (fully, &exit.counters, &mut figures)
        && counters.collections > 0
    {
        figures.push(RuntimeFigure::near(LIVE, counters.live as f64));
        figures.push(RuntimeFigure::near(LIVE_AT_MOST, counters.live_at_most as f64));
    }
    RuntimeReport { runtime: Runtime::Go, pid: exit.pid, figures, missing: None }
}

/// Why the counters of one of these processes were not found, if that is because it was stripped.
pub(super) fn unknown_place(exits: &[Exit]) -> Option<String> {
    let mut reasons = exits.iter().filter_map(|exit| exit.counters.as_ref().err());
    reasons.find(|why| why.contains(STRIPPED)).cloned()
}

/// The report for a Go program whose exit was not seen.
pub(super) fn not_stopped() -> RuntimeReport {
    let why = "the Go program could not be stopped at its exit: it was killed, or tracing is refused here (in a \
               container, allow SYS_PTRACE)";
    RuntimeReport { runtime: Runtime::Go, pid: 0, figures: Err(why_absent(why).to_owned()), missing: None }
}

fn figures(counters: &Counters) -> Vec<RuntimeFigure> {
    vec![
        RuntimeFigure::near("alloc.bytes", counters.bytes as f64),
        RuntimeFigure::near("alloc.objects", counters.objects as f64),
        RuntimeFigure::noisy("gc.count", counters.collections as f64),
        // Only the time with the program stopped counts; marking runs concurrently with the program.
        RuntimeFigure::noisy("gc.time", counters.stopped as f64),
        RuntimeFigure::noisy("gc.pause_max", counters.longest_stop as f64),
        RuntimeFigure::near("heap.peak", counters.heap as f64),
    ]
}
