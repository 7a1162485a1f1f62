//! Haskell programs compiled with GHC.
//!
//! The runtime always keeps exact counts. There are three ways to read them, and the best available one is used: the
//! runtime's report (`-s`, which every default build permits through `GHCRTS`), taken from standard error inside the
//! process; the user's own one-line report, if the user asked for one; and the runtime's structure in memory, found
//! through the program's symbols, if the report is forbidden or never printed (`-rtsopts=none`, `exitImmediately`).

pub mod cost_centres;
pub mod heap_profile;
pub mod log;
pub mod report;
mod times;

use super::Runtime;
use super::adapter::{Adapter, Recognition};
use super::agent_records::{AgentRecord, HookFile, ProcessState};
use super::elf::{Elf, FileMarks, word_after};
use super::figures::{COMMON, LIVE, RuntimeFigure};
use scruple_core::metric::Quality;

pub(super) const ADAPTER: Adapter = Adapter {
    word: "ghc",
    lacks: &[("alloc.objects", "the runtime counts bytes, not objects; a build with -ticky counts closures")],
    marks: FileMarks {
        local: &["CCS_MAIN", "GC_coll_max_pause", "stats"],
        texts: &["GHCRTS", "Link with -rtsopts"],
        ..FileMarks::NONE
    },
    find,
    figures_of,
    tells_when: true,
    ..Adapter::SILENT
};

/// The reason for absence in a program whose runtime was not asked for its report.
pub(super) const FROM_MEMORY: &str = "ghc: read from the runtime's memory, which keeps no times unless it is asked, and \
                                      the program forbids or itself uses its runtime's reports; link it with \
                                      -rtsopts=some for times";

/// The reason why a static program reports only some figures.
pub(super) const STATIC: &str = "a static program; link it dynamically for the whole report";

/// The reason for absence in a program that ignores `GHCRTS` and lacks the symbols for reading its memory.
pub(super) const SILENT: &str = "the program was linked with -rtsopts=ignoreAll or none, and is stripped or static, so \
                                 its runtime neither reports nor can be read; link it with -rtsopts=some";

/// How a stripped program will be queried, whose file does not show whether it ignores `GHCRTS`.
const MAY_IGNORE: &str = "its report, through GHCRTS, unless it was linked with -rtsopts=ignoreAll or none, which a stripped file \
                          does not say and a run shows";

/// The indices of the agent's values for this runtime.
mod value {
    pub(super) const GCS: usize = 0;
    pub(super) const MAJOR_GCS: usize = 1;
    pub(super) const ALLOCATED: usize = 2;
    pub(super) const MAX_LIVE: usize = 3;
    pub(super) const MAX_IN_USE: usize = 4;
    pub(super) const COPIED: usize = 5;
    pub(super) const SHUT_DOWN: usize = 8;
    /// 1 in a forked child whose runtime restarted its counts.
    pub(super) const ANEW: usize = 9;
    /// 1 if the oldest generation was collected each time it had grown by a tenth.
    pub(super) const FULL: usize = 10;
    pub(super) const REST_SIZE: usize = 11;
    pub(super) const REST: usize = 12;
}

fn find(elf: &Elf) -> Option<Recognition> {
    let version = word_after(&elf.comment, "GHC ");
    let by = if version.is_some() {
        "the compiler's mark in the file"
    } else if elf.link_note().is_some() {
        "GHC's link note"
    } else if elf.needs("libHSrts").is_some() {
        "the runtime library it needs"
    } else if elf.holds("GHCRTS") && elf.holds("Link with -rtsopts") {
        "the runtime's messages in the file"
    } else {
        return None;
    };
    let note = elf.link_note().unwrap_or("");
    let closed = note.contains("RtsOptsNone") || note.contains("RtsOptsIgnoreAll");
    let structure = elf.has("stats") && elf.has("GC_coll_max_pause");
    let mut found = Recognition { version, by, asked: "its report, through GHCRTS", not: Vec::new() };
    if !elf.dynamic && closed {
        let keys = COMMON.iter().filter(|key| Runtime::Ghc.counts(key));
        found.not.extend(keys.map(|key| (*key, SILENT.to_owned())));
    } else if !elf.dynamic {
        found.asked = "its one-line report, through GHCRTS, cut out of standard error";
        for key in ["gc.minor", "gc.major", "gc.pause_max"] {
            found.not.push((key, STATIC.to_owned()));
        }
    } else if closed {
        found.asked = "the runtime's structure in memory, at the end of the process";
        for key in ["gc.time", "gc.pause_max"] {
            found.not.push((
                key,
                "the program was linked to ignore GHCRTS; link it with -rtsopts=some".to_owned(),
            ));
        }
        if !structure {
            for key in ["alloc.bytes", "gc.count", "gc.minor", "gc.major", "heap.live_max", "heap.peak"] {
                found.not.push((
                    key,
                    "it was linked to ignore GHCRTS and has no symbols; link it with -rtsopts=some, or do not strip it".to_owned(),
                ));
            }
        }
    } else if note.is_empty() && !structure {
        found.asked = MAY_IGNORE;
    }
    Some(found)
}

fn figures_of(record: &AgentRecord, _answers: &[&HookFile]) -> Result<Vec<RuntimeFigure>, String> {
    let text = record.text();
    let report = report::read(&text);
    let anew = record.reported() && record.values[value::ANEW] == 1;
    // A forked child's report may contain its parent's counts; the runtime's structure shows whether it does. The
    // bytes include the parent's in any case.
    if let Some(mut report) = report.filter(|_| !record.forked() || anew) {
        if let Some(times) =
            record.reported().then(|| times::find(rest_of_structure(record), &report)).flatten()
        {
            (report.mutator, report.collecting) = (times.mutator, times.collecting);
            // The report rounds pauses to a tenth of a millisecond.
            report.longest_pause = report.longest_pause.map(|pause| pause.min(times.collecting.1));
        }
        let mut figures = report.figures();
        if anew {
            figures.retain(|figure| figure.key != "alloc.bytes");
            figures.push(forked_bytes(record));
        }
        // Without these frequent collections, live data are only seen when the old generation has doubled, or later.
        let seen =
            if record.values[value::FULL] == 1 { RuntimeFigure::near } else { RuntimeFigure::estimated };
        figures.extend((report.max_live > 0.0).then(|| seen(LIVE, report.max_live)));
        if report.major.is_none() && record.reported() {
            figures.extend(collections(record));
        }
        // The log has a resolution of one millisecond and the summary of a tenth, but only the log has a line for
        // each collection.
        if let Some(log) = log::read(&text).filter(|log| log.longest_pause() > 0.0) {
            figures.retain(|figure| figure.key != "gc.pause_max");
            figures.push(RuntimeFigure::noisy("gc.pause_max", log.longest_pause() * 1e9));
        }
        return Ok(figures);
    }
    if record.reported() {
        let value = |at: usize| record.values[at] as f64;
        let complete = record.values[value::SHUT_DOWN] == 1;
        if !complete && record.values[value::GCS] == 0 {
            if record.state == ProcessState::Executed {
                return Err("the program executed another one before any collection, which is when its runtime adds up \
                            what it has allocated"
                    .to_owned());
            }
            return Err(
                "the program exited without ending its runtime (exitImmediately), before any collection"
                    .to_owned(),
            );
        }
        let mut figures = vec![
            RuntimeFigure::exact("alloc.bytes", value(value::ALLOCATED)),
            RuntimeFigure::exact("gc.count", value(value::GCS)),
            RuntimeFigure::exact("heap.live_max", value(value::MAX_LIVE)),
            RuntimeFigure::exact("heap.peak", value(value::MAX_IN_USE)),
            RuntimeFigure::exact("ghc.copied", value(value::COPIED)),
        ];
        figures.extend(collections(record));
        if record.forked() {
            figures[0] = forked_bytes(record);
        }
        if !complete {
            // Allocations since the last collection are missing: up to an allocation area for each core.
            figures.iter_mut().for_each(|figure| figure.quality = Quality::Estimated);
        }
        return Ok(figures);
    }
    let unasked = record.refused() || !record.asked();
    Err(match (unasked, record.forked()) {
        (_, true) => {
            "a forked Haskell process without symbols: its own figures cannot be separated from its parent's; \
                      do not strip the program"
                .to_owned()
        }
        // A program that was killed or executed another one would have reported at its normal end.
        (true, _) if record.state == ProcessState::Exited => SILENT.to_owned(),
        _ => record.silence(),
    })
}

/// What follows the known fields of the runtime's structure.
fn rest_of_structure(record: &AgentRecord) -> &[u64] {
    let size = usize::try_from(record.values[value::REST_SIZE]).unwrap_or(usize::MAX);
    let rest = &record.values[value::REST..];
    &rest[..size.min(rest.len())]
}

/// The allocated bytes of a forked process. They include what the parent allocated since its last collection.
fn forked_bytes(record: &AgentRecord) -> RuntimeFigure {
    RuntimeFigure::estimated("alloc.bytes", record.values[value::ALLOCATED] as f64)
}

fn collections(record: &AgentRecord) -> [RuntimeFigure; 2] {
    let (all, major) = (record.values[value::GCS], record.values[value::MAJOR_GCS]);
    [
        RuntimeFigure::exact("gc.minor", all.saturating_sub(major) as f64),
        RuntimeFigure::exact("gc.major", major as f64),
    ]
}

/// The profiles that a program can produce, as its file shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfileKinds {
    /// Whether the program can write a heap profile by closure type (`-hT`), which requires linking with `-rtsopts`.
    pub heap_by_type: bool,
    /// Whether the program can write profiles by cost centre (`-p`, `-hc`), which requires a build with `-prof`.
    pub by_cost_centre: bool,
}

/// Determines the profiles that a program can produce. A stripped program does not show its options, so it has none.
pub fn profiles(program: &crate::program::Program) -> ProfileKinds {
    let Some(elf) = Elf::read(&program.resolved().path) else { return ProfileKinds::default() };
    let note = elf.link_note().unwrap_or("");
    let all = note.contains("RtsOptsAll");
    let profiled = ["rts_p", "rts_thr_p", "HSrts_p", "HSrts_thr_p"].iter().any(|way| note.contains(way))
        || elf.has("CCS_MAIN");
    // The sampling interval and the output file are set by options that only `-rtsopts` permits.
    ProfileKinds { heap_by_type: all, by_cost_centre: all && profiled }
}

/// Whether the program reports if `GHCRTS` requests it. The link note of an unstripped program shows a prohibition.
pub(super) fn grants_reports(elf: &Elf) -> bool {
    let note = elf.link_note().unwrap_or("");
    !["RtsOptsNone", "RtsOptsIgnoreAll", "Just \""].iter().any(|word| note.contains(word))
}

/// Whether these options make the runtime print a report.
pub(super) fn asks_for_reports(options: &str) -> bool {
    options
        .split_whitespace()
        .any(|word| ["-s", "-S", "-t", "-T"].iter().any(|option| word.starts_with(option)))
}
