//! Reads the data file that the preload library writes (`preload/layout.h` describes it).
//!
//! Every counted program could write to the file, so nothing in it is trusted: lengths are bounded by what was read,
//! sums saturate, and an impossible number is an error or 0, never a panic.

use scruple_stats::sorting;
use std::collections::HashMap;

use super::{
    AllocationCounts, HeapError, LiveBytes, LiveMemory, Process, ProcessOrigin, Totals, TreePeak,
    UnrecordedProgram,
};

const MAGIC: u64 = 0x3170_6165_682e_6373;
const VERSION: u32 = 4;
/// The largest number of units that is accepted: 256 MiB in units of 4 KiB.
pub(super) const LIMIT: u32 = 65_536;
/// The smallest size of a unit in bytes; the library maps this much as the header.
pub(super) const HEADER: usize = 4096;

const SLOT: usize = 128;
const HEAD: usize = 256;
const BATCH: u64 = 64 * 1024;
const OWNER_NONE: i32 = 0;
const OWNER_NOTE: i32 = -1;
const NOTE_OPEN: u32 = 1;
const KIND_PROCESS: u32 = 1;
const KIND_THREADS: u32 = 2;
const ORIGIN_FORK: u32 = 2;
const FLAG_FOREIGN_MALLOC: u32 = 1;
const FLAG_NO_SIZES: u32 = 2;

/// The extension of the records' file (`NAME_OF_RECORDS` of layout.h).
pub(super) const RECORDS: &str = "site";
/// The size in bytes of a piece of the records' file.
pub(super) const PIECE: u32 = 128 * 1024;
/// The largest number of pieces that the library may claim: 16 GiB.
pub(super) const MOST_PIECES: u32 = 131_072;

/// Which allocations are recorded with their stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteSampling {
    /// The mean number of requested bytes from one recorded allocation to the next. With 1, every allocation is
    /// recorded.
    pub mean: u64,
    /// The start of the random numbers. A program that runs alike twice is sampled alike with the same seed.
    pub seed: u64,
}

impl SiteSampling {
    /// One sample in 512 KiB: hardly any cost for most programs.
    pub const USUAL: SiteSampling = SiteSampling { mean: 512 * 1024, seed: 1 };
    /// Every allocation.
    pub const EVERY: SiteSampling = SiteSampling { mean: 1, seed: 1 };
}

/// The first unit of a new data file: the header.
pub(super) fn header(mode: LiveBytes, unit: u32, sampling: Option<SiteSampling>) -> Vec<u8> {
    let mut bytes = MAGIC.to_ne_bytes().to_vec();
    for word in [VERSION, unit, mode_word(mode), LIMIT, 1, 0] {
        bytes.extend(word.to_ne_bytes());
    }
    if let Some(sampling) = sampling {
        bytes.resize(52, 0);
        bytes.extend(PIECE.to_ne_bytes());
        bytes.extend(sampling.mean.max(1).to_ne_bytes());
        bytes.extend(sampling.seed.to_ne_bytes());
        bytes.extend(MOST_PIECES.to_ne_bytes());
    }
    bytes.resize(unit as usize, 0);
    bytes
}

/// The size in bytes of the claimed units, with the header.
pub(super) fn claimed_bytes(header: &[u8], unit: u32) -> Result<u64, HeapError> {
    check(header, None, unit)?;
    Ok(u64::from(word(header, 24).min(LIMIT)) * u64::from(unit))
}

/// Reads all records of the data file.
pub(super) fn parse(file: &[u8], mode: LiveBytes, unit: u32) -> Result<Totals, HeapError> {
    check(file, Some(mode), unit)?;
    let common = Slot::at(file, SLOT, mode);
    let mut totals = Totals {
        mode,
        processes: Vec::new(),
        unseen: Vec::new(),
        unattributed: counts(&common, 0, 0, 0, mode),
        refused: word(file, 28),
        tree: None,
    };
    let mut slots = Vec::new();
    let mut gathered: HashMap<u32, GatheredSlots> = HashMap::new();
    let mut order = Vec::new();
    let mut notes = Vec::new();
    let units = file.chunks_exact(unit as usize).enumerate().skip(1);
    for (index, bytes) in units.take(LIMIT as usize) {
        let index = index as u32;
        let first = match word(bytes, 0) {
            KIND_PROCESS => HEAD,
            KIND_THREADS => SLOT,
            _ => continue,
        };
        let owner = if first == HEAD { index } else { word(bytes, 4) };
        let process = gathered.entry(owner).or_default();
        if first == HEAD {
            process.head = Some(ProcessHeader::read(bytes));
            order.push(index);
        }
        for offset in (first..bytes.len()).step_by(SLOT) {
            match word(bytes, offset) as i32 {
                OWNER_NONE => {}
                OWNER_NOTE => notes.extend(Note::read(&bytes[offset..])),
                _ => process.add(&Slot::at(bytes, offset, mode)),
            }
        }
    }
    let began: Vec<(u32, i32)> =
        order.iter().filter_map(|unit| Some((*unit, gathered.get(unit)?.head.as_ref()?.pid))).collect();
    totals.unseen = unanswered(notes, &began);
    for unit in order {
        let Some(process) = gathered.remove(&unit) else { continue };
        slots.push(process.slots);
        totals.processes.extend(process.finish(unit, mode));
    }
    for orphan in gathered.values() {
        totals.unattributed.add(&counts(&orphan.sum, 0, 0, 0, mode));
    }
    totals.tree = tree_peak(file, &totals, slots);
    Ok(totals)
}

/// The peak of all processes together; `None` if a process found no slot in which to record its own.
fn tree_peak(file: &[u8], totals: &Totals, mut slots: Vec<u64>) -> Option<TreePeak> {
    let (settled, at_once, turned_away) = (long(file, 32) as i64, word(file, 44), word(file, 48));
    let (_, largest) = totals.largest_peak()?;
    if turned_away > 0 {
        return None;
    }
    // Each thread that ran at the time of the peak may have had an unsettled batch.
    sorting::by(&mut slots, |a, b| b.cmp(a));
    let threads: u64 = slots.iter().take(at_once as usize).sum();
    let peak = largest.peak.max(u64::try_from(settled).unwrap_or(0));
    Some(TreePeak { peak, error: threads.saturating_sub(1).saturating_mul(BATCH) })
}

fn check(file: &[u8], mode: Option<LiveBytes>, unit: u32) -> Result<(), HeapError> {
    if file.len() < HEADER || !(unit as usize).is_multiple_of(HEADER) || unit == 0 {
        return Err(HeapError::Damaged("the file is shorter than its header"));
    }
    if long(file, 0) != MAGIC || word(file, 8) != VERSION {
        return Err(HeapError::Damaged("the header is not that of this version"));
    }
    if word(file, 12) != unit || mode.is_some_and(|mode| word(file, 16) != mode_word(mode)) {
        return Err(HeapError::Damaged("the header was changed"));
    }
    Ok(())
}

fn mode_word(mode: LiveBytes) -> u32 {
    match mode {
        LiveBytes::Off => 0,
        LiveBytes::Usable => 1,
        LiveBytes::Requested => 2,
    }
}

/// The head of a process and the sum of its threads' slots, which may be in several units.
#[derive(Default)]
struct GatheredSlots {
    head: Option<ProcessHeader>,
    sum: Slot,
    slots: u64,
}

struct ProcessHeader {
    pid: i32,
    parent: i32,
    origin: ProcessOrigin,
    flags: u32,
    threads: u32,
    inherited: i64,
    live: i64,
    peak: i64,
    began: u64,
    inherited_blocks: i64,
    exe: String,
}

/// The account of one thread, or the sum of several accounts.
#[derive(Default)]
struct Slot {
    allocations: u64,
    bytes: u64,
    frees: u64,
    returned: u64,
    drift: i64,
    crest: i64,
}

struct Note {
    pid: i32,
    since: u32,
    path: String,
}

impl GatheredSlots {
    fn add(&mut self, slot: &Slot) {
        let sum = &mut self.sum;
        sum.allocations = sum.allocations.saturating_add(slot.allocations);
        sum.bytes = sum.bytes.saturating_add(slot.bytes);
        sum.frees = sum.frees.saturating_add(slot.frees);
        sum.returned = sum.returned.saturating_add(slot.returned);
        sum.drift = sum.drift.saturating_add(slot.drift);
        sum.crest = sum.crest.max(slot.crest);
        self.slots += 1;
    }

    fn finish(self, unit: u32, mode: LiveBytes) -> Option<Process> {
        let head = self.head?;
        // A slot is reused only after its thread has ended, so the number of slots bounds the number of threads at
        // one time.
        let error = self.slots.saturating_sub(1).saturating_mul(BATCH);
        let counts = counts(&self.sum, head.live, head.peak, error, mode);
        Some(Process {
            pid: head.pid,
            parent: head.parent,
            origin: head.origin,
            exe: head.exe,
            threads: head.threads,
            foreign_malloc: head.flags & FLAG_FOREIGN_MALLOC != 0,
            lacks_sizes: head.flags & FLAG_NO_SIZES != 0,
            counts,
            unit,
            inherited: head.inherited,
            inherited_blocks: head.inherited_blocks,
            began: head.began,
        })
    }
}

impl ProcessHeader {
    fn read(unit: &[u8]) -> ProcessHeader {
        ProcessHeader {
            pid: word(unit, 8) as i32,
            parent: word(unit, 12) as i32,
            origin: if word(unit, 16) == ORIGIN_FORK { ProcessOrigin::Fork } else { ProcessOrigin::Exec },
            flags: word(unit, 20),
            threads: word(unit, 24),
            inherited: long(unit, 32) as i64,
            live: long(unit, 40) as i64,
            peak: long(unit, 48) as i64,
            began: long(unit, 56),
            inherited_blocks: long(unit, 64) as i64,
            exe: text(&unit[SLOT..HEAD]),
        }
    }
}

impl Slot {
    fn at(unit: &[u8], offset: usize, mode: LiveBytes) -> Slot {
        let (bytes, returned) = (long(unit, offset + 16), long(unit, offset + 32));
        let taken = if mode == LiveBytes::Requested { bytes } else { long(unit, offset + 40) };
        let settled = long(unit, offset + 56) as i64;
        Slot {
            allocations: long(unit, offset + 8),
            bytes,
            frees: long(unit, offset + 24),
            returned,
            drift: (taken.wrapping_sub(returned) as i64).wrapping_sub(settled),
            crest: (long(unit, offset + 48) as i64).wrapping_sub(settled),
        }
    }
}

impl Note {
    fn read(slot: &[u8]) -> Option<Note> {
        let open = word(slot, 12) == NOTE_OPEN;
        open.then(|| Note { pid: word(slot, 4) as i32, since: word(slot, 8), path: text(&slot[16..SLOT]) })
    }
}

/// Programs whose start was announced but that left no record, at most one for each process.
fn unanswered(notes: Vec<Note>, began: &[(u32, i32)]) -> Vec<UnrecordedProgram> {
    let mut last: HashMap<i32, u32> = HashMap::new();
    for (unit, pid) in began {
        let unit_of = last.entry(*pid).or_default();
        *unit_of = (*unit_of).max(*unit);
    }
    let mut unseen: Vec<UnrecordedProgram> = Vec::new();
    for note in notes {
        let answered = last.get(&note.pid).is_some_and(|unit| *unit >= note.since);
        if !answered && !unseen.iter().any(|known| known.pid == note.pid) {
            unseen.push(UnrecordedProgram { pid: note.pid, path: note.path });
        }
    }
    unseen
}

fn counts(sum: &Slot, live: i64, peak: i64, error: u64, mode: LiveBytes) -> AllocationCounts {
    let now = live.saturating_add(sum.drift);
    let peak = peak.max(live.saturating_add(sum.crest)).max(now);
    let live = LiveMemory {
        freed: sum.returned,
        bytes: now,
        peak: u64::try_from(peak).unwrap_or(0),
        peak_error: error,
    };
    AllocationCounts {
        allocations: sum.allocations,
        bytes: sum.bytes,
        frees: sum.frees,
        live: (mode != LiveBytes::Off).then_some(live),
    }
}

pub(super) fn word(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..offset + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

pub(super) fn long(bytes: &[u8], offset: usize) -> u64 {
    bytes.get(offset..offset + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// The text up to the first zero byte; bytes that are not UTF-8 are replaced.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests;
