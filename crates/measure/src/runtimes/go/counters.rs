//! The counters of a Go process, read from its memory: while it is stopped at its exit, or between requests.

use super::layout::{Layout, Layouts};
use crate::descendants::descendants;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// The counts of a Go runtime since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Bytes allocated.
    pub bytes: u64,
    /// Objects allocated; tiny ones that share a block count separately.
    pub objects: u64,
    /// Collections completed.
    pub collections: u64,
    /// Nanoseconds with the program stopped.
    pub stopped: u64,
    /// The longest stop among the last 256 collections, in nanoseconds.
    pub longest_stop: u64,
    /// Bytes obtained for the heap.
    pub heap: u64,
    /// Live bytes after the last collection.
    pub live: u64,
}

/// A Go process at its exit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The process.
    pub pid: i32,
    /// Its counters, or why they could not be read.
    pub counters: Result<Counters, String>,
}

/// Reads a process that is stopped; none where it is not a Go program.
pub(crate) fn at_exit(pid: i32, layouts: &mut Layouts) -> Option<Exit> {
    let counters = match layouts.of(pid) {
        Ok(None) => return None,
        Ok(Some(layout)) => read(pid, &layout),
        Err(why) => Err(why),
    };
    Some(Exit { pid, counters })
}

/// Reads a process and its descendants while they run: a server between two requests. Where one of them allocates
/// meanwhile, its figures may lag by what it has not yet added up.
pub(crate) fn while_running(pid: i32) -> Vec<Exit> {
    let mut layouts = Layouts::default();
    let all = std::iter::once(pid).chain(descendants(pid));
    all.filter_map(|pid| at_exit(pid, &mut layouts)).collect()
}

/// When the last collections (at most 256 of each) stopped a process and its descendants, start and end in nanoseconds
/// since 1970. A collection stops a Go program twice; its runtime keeps the sum of both and when the second ended, so a
/// stop is assumed to have that length before that time.
///
/// # Errors
/// Why they cannot be read.
pub(crate) fn stops_while_running(pid: i32, layouts: &mut Layouts) -> Result<Vec<(u64, u64)>, String> {
    let mut stops = Vec::new();
    for pid in std::iter::once(pid).chain(descendants(pid)) {
        let Some(layout) = layouts.of(pid)? else { continue };
        let (memory, moved) = (Memory::of(pid)?, moved(pid, &layout)?);
        let stats = layout.variables["runtime.memstats"].wrapping_add(moved);
        let ring = |name| memory.bytes(stats + layout.member("runtime.mstats", name)?, RING * 8);
        let (took, ended) = (ring("pause_ns")?, ring("pause_end")?);
        let known = longs(&took).zip(longs(&ended)).filter(|(_, end)| *end > 0);
        stops.extend(known.map(|(took, end)| (end.saturating_sub(took), end)));
    }
    Ok(stops)
}

/// The number of collections whose stops are kept.
const RING: usize = 256;

/// The offset of a program's addresses from those of its symbols.
fn moved(pid: i32, layout: &Layout) -> Result<u64, String> {
    match layout.movable_from {
        Some(first) => Ok(base(pid)?.wrapping_sub(first)),
        None => Ok(0),
    }
}

struct Memory {
    file: File,
}

impl Memory {
    fn of(pid: i32) -> Result<Memory, String> {
        let file = File::open(format!("/proc/{pid}/mem"));
        file.map(|file| Memory { file }).map_err(|error| format!("its memory cannot be read: {error}"))
    }

    fn bytes(&self, at: u64, size: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; size];
        self.file
            .read_exact_at(&mut bytes, at)
            .map_err(|error| format!("its memory cannot be read at {at:#x}: {error}"))?;
        Ok(bytes)
    }

    fn number(&self, at: u64, size: usize) -> Result<u64, String> {
        let mut word = [0; 8];
        word[..size].copy_from_slice(&self.bytes(at, size)?);
        Ok(u64::from_le_bytes(word))
    }

    fn long(&self, at: u64) -> Result<u64, String> {
        self.number(at, 8)
    }
}

/// The address of the first mapping of the program's file.
fn base(pid: i32) -> Result<u64, String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|error| error.to_string())?;
    let exe = fs::read_link(format!("/proc/{pid}/exe")).map_err(|error| error.to_string())?;
    let exe = exe.to_string_lossy();
    maps.lines()
        .find(|line| line.ends_with(&*exe))
        .and_then(|line| u64::from_str_radix(line.split('-').next()?, 16).ok())
        .ok_or_else(|| "its program is not mapped".to_owned())
}

fn read(pid: i32, layout: &Layout) -> Result<Counters, String> {
    let (memory, moved) = (Memory::of(pid)?, moved(pid, layout)?);
    let variable = |name: &str| layout.variables[name].wrapping_add(moved);
    let mstats =
        |name| Ok::<u64, String>(variable("runtime.memstats") + layout.member("runtime.mstats", name)?);
    let control = |name| {
        Ok::<u64, String>(
            variable("runtime.gcController") + layout.member("runtime.gcControllerState", name)?,
        )
    };

    let mut counters = Counters {
        bytes: memory.long(control("totalAlloc")?)?,
        collections: memory.number(mstats("numgc")?, 4)?,
        live: memory.long(control("heapMarked")?)?,
        stopped: memory.long(mstats("pause_total_ns")?)?,
        ..Counters::default()
    };
    let ring = memory.bytes(mstats("pause_ns")?, RING * 8)?;
    counters.longest_stop = longs(&ring).max().unwrap_or(0);
    for part in ["heapInUse", "heapFree", "heapReleased"] {
        counters.heap += memory.long(control(part)?)?;
    }
    counters.objects = objects(&memory, layout, mstats("heapStats")?)?;
    add_caches(&memory, layout, variable("runtime.allp"), &mut counters)?;
    Ok(counters)
}

fn longs(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(8).map(|chunk| chunk.try_into().map_or(0, u64::from_le_bytes))
}

/// The consistent statistics are kept three times, for writers of different moments; their sum is the total.
fn objects(memory: &Memory, layout: &Layout, stats: u64) -> Result<u64, String> {
    const DELTA: &str = "runtime.heapStatsDelta";
    let first = stats + layout.member("runtime.consistentHeapStats", "stats")?;
    let size = layout.size(DELTA)?;
    let (small, end) = (layout.member(DELTA, "smallAllocCount")?, layout.member(DELTA, "smallFreeCount")?);
    let classes = end.abs_diff(small).min(1024) as usize;
    // The members are sums of signed differences: a single part may be negative.
    let mut total = 0_u64;
    for part in 0..3 {
        let at = first + part * size;
        total = total.wrapping_add(memory.long(at + layout.member(DELTA, "largeAllocCount")?)?);
        total = total.wrapping_add(memory.long(at + layout.member(DELTA, "tinyAllocCount")?)?);
        let counts = memory.bytes(at + small.min(end), classes.min(68 * 8))?;
        total = longs(&counts).fold(total, u64::wrapping_add);
    }
    Ok(total)
}

/// Each processor of the scheduler allocates from its own spans, which are added up only when they are full.
fn add_caches(memory: &Memory, layout: &Layout, allp: u64, counters: &mut Counters) -> Result<(), String> {
    const SPAN: &str = "runtime.mspan";
    let (processors, count) = (memory.long(allp)?, memory.long(allp + 8)?);
    let cache_of = layout.member("runtime.p", "mcache")?;
    let spans = layout.member("runtime.mcache", "alloc")?;
    let span_count = layout.size("runtime.mcache")?.saturating_sub(spans).min(136 * 8) / 8;
    let tiny = layout.member("runtime.mcache", "tinyAllocs")?;
    let [used, before, size] =
        ["allocCount", "allocCountBeforeCache", "elemsize"].map(|name| layout.member(SPAN, name));
    let (used, before, size) = (used?, before?, size?);
    for i in 0..count.min(4096) {
        let processor = memory.long(processors + i * 8)?;
        let cache = if processor == 0 { 0 } else { memory.long(processor + cache_of)? };
        if cache == 0 {
            continue;
        }
        counters.objects += memory.long(cache + tiny)?;
        for span in longs(&memory.bytes(cache + spans, span_count as usize * 8)?).filter(|span| *span != 0) {
            let slots = memory.number(span + used, 2)?.saturating_sub(memory.number(span + before, 2)?);
            counters.objects += slots;
            counters.bytes += slots * memory.long(span + size)?;
        }
    }
    Ok(())
}
