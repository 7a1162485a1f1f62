//! Reads the counters of a Go process from its memory, while it is stopped at its exit or between two requests.

use super::layout::Layout;
use super::layouts::Layouts;
use crate::descendants::descendants;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// The counts of a Go runtime since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// The number of bytes allocated.
    pub bytes: u64,
    /// The number of objects allocated; tiny objects that share a block count separately.
    pub objects: u64,
    /// The number of completed collections.
    pub collections: u64,
    /// How long collections stopped the program in total, in nanoseconds.
    pub stopped: u64,
    /// The longest sum of the two stops of one collection, among the last 256 collections, in nanoseconds.
    pub longest_stop: u64,
    /// The number of bytes obtained from the system for the heap.
    pub heap: u64,
    /// The number of live bytes after the last collection.
    pub live: u64,
    /// `live` and the bytes that were allocated since, including the free places of the blocks in use.
    pub live_at_most: u64,
}

/// The counters of a Go process at its exit, or when they were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The process id.
    pub pid: i32,
    /// The process's counters, or why they could not be read.
    pub counters: Result<Counters, String>,
}

/// Reads a stopped process; `None` if it does not run a Go program.
pub(crate) fn at_exit(pid: i32, layouts: &mut Layouts) -> Option<Exit> {
    let counters = match layouts.of(pid) {
        Ok(None) => return None,
        Ok(Some(layout)) => read(pid, &layout),
        Err(why) => Err(why),
    };
    Some(Exit { pid, counters })
}

/// Reads a process and its descendants while they run, such as a server between two requests. If a process allocates
/// meanwhile, its figures may lack what its runtime has not yet added up.
pub(crate) fn while_running(pid: i32) -> Vec<Exit> {
    let mut layouts = Layouts::default();
    let all = std::iter::once(pid).chain(descendants(pid));
    all.filter_map(|pid| at_exit(pid, &mut layouts)).collect()
}

/// The stops of a process and its descendants by the last collections, at most 256 for each process: start and end in
/// nanoseconds since 1970. A collection stops a Go program twice; the runtime keeps the sum of both lengths and the
/// end of the second, so one stop with the length of both is assumed to end at that time.
///
/// # Errors
/// Says why the stops cannot be read.
pub(crate) fn stops_while_running(pid: i32, layouts: &mut Layouts) -> Result<Vec<(u64, u64)>, String> {
    let mut stops = Vec::new();
    for pid in std::iter::once(pid).chain(descendants(pid)) {
        let Some(layout) = layouts.of(pid)? else { continue };
        let (memory, moved) = (ProcessMemory::of(pid)?, moved(pid, &layout)?);
        let stats = layout.variables["runtime.memstats"].wrapping_add(moved);
        let ring = |name| memory.bytes(stats + layout.member("runtime.mstats", name)?, RING * 8);
        let (took, ended) = (ring("pause_ns")?, ring("pause_end")?);
        let known = longs(&took).zip(longs(&ended)).filter(|(_, end)| *end > 0);
        stops.extend(known.map(|(took, end)| (end.saturating_sub(took), end)));
    }
    Ok(stops)
}

/// The number of collections whose stops the runtime keeps.
const RING: usize = 256;

/// The offset of a program's addresses in memory from those of its symbols: 0 unless the program is relocatable.
fn moved(pid: i32, layout: &Layout) -> Result<u64, String> {
    match layout.movable_from {
        Some(first) => Ok(base(pid)?.wrapping_sub(first)),
        None => Ok(0),
    }
}

struct ProcessMemory {
    file: File,
}

impl ProcessMemory {
    fn of(pid: i32) -> Result<ProcessMemory, String> {
        let file = File::open(format!("/proc/{pid}/mem"));
        file.map(|file| ProcessMemory { file }).map_err(|error| format!("its memory cannot be read: {error}"))
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
    let (memory, moved) = (ProcessMemory::of(pid)?, moved(pid, layout)?);
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
        live_at_most: memory.long(control("heapLive")?)?,
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

/// The number of objects allocated. The runtime keeps these statistics in three parts, which writers use in turn; the
/// total is the sum of the three.
fn objects(memory: &ProcessMemory, layout: &Layout, stats: u64) -> Result<u64, String> {
    const DELTA: &str = "runtime.heapStatsDelta";
    let first = stats + layout.member("runtime.consistentHeapStats", "stats")?;
    let size = layout.size(DELTA)?;
    let (small, end) = (layout.member(DELTA, "smallAllocCount")?, layout.member(DELTA, "smallFreeCount")?);
    let classes = end.abs_diff(small).min(1024) as usize;
    // The members are sums of signed differences, so one part may be negative: the addition wraps.
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

/// Adds allocations that are not yet in the totals: each processor of the scheduler allocates from its own spans,
/// which are added up only when they are full.
fn add_caches(
    memory: &ProcessMemory,
    layout: &Layout,
    allp: u64,
    counters: &mut Counters,
) -> Result<(), String> {
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
