//! Where the processes of a session allocated: from recorded registers and stacks to calling contexts.

mod code_map;
mod frame_rules;
mod records;
mod registers;
mod replay;
mod stack;

use super::format::{MOST_PIECES, PIECE, long, word};
use super::{Process, Totals};
use code_map::{CodeMap, FileAddress, Files};
use records::{AllocationSample, SiteRecord, ThreadRecords};
use registers::Registers;
use replay::{HeapChange, HeapEvent};
use scruple_code::Symbols;
use scruple_code::allocation_sites::{
    HeapAmounts, HeapSites, MemoryBlocks, SiteCounting, SiteFrame, SiteIndex,
};
use scruple_core::explain::is_allocator;
use scruple_core::plural::counted;
use scruple_stats::sampled_bytes;
use scruple_stats::sorting::SortedMap;
use stack::{ActiveFunctions, RecordedStack};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The figures of the data file's header about recording.
struct RecordingFigures {
    mean: u64,
    pieces: u32,
    lost_samples: u64,
    lost_frees: u64,
    lost_maps: u32,
}

impl RecordingFigures {
    fn of(header: &[u8]) -> RecordingFigures {
        RecordingFigures {
            mean: long(header, 56).max(1),
            pieces: word(header, 76).min(MOST_PIECES),
            lost_samples: long(header, 80),
            lost_frees: long(header, 88),
            lost_maps: word(header, 96),
        }
    }
}

/// Reads the allocation sites of all processes of a session from the records' file. `header` is the data file's, and
/// `library` the library's file.
pub(super) fn read(
    records: &File,
    header: &[u8],
    totals: &Totals,
    library: &'static [u8],
) -> Result<Vec<HeapSites>, std::io::Error> {
    let recorded = RecordingFigures::of(header);
    let mut reading = SitesReader {
        files: Files::new(library),
        symbols: Symbols::new(),
        names: HashMap::new(),
        processes: SortedMap::new(),
        damaged: 0,
    };
    for process in &totals.processes {
        reading.processes.insert(process.unit, ProcessSites::default());
    }
    // Maps are read first, because the map of a sample may be in another thread's piece.
    each_piece(records, recorded.pieces, |piece| reading.read_maps(piece))?;
    each_piece(records, recorded.pieces, |piece| reading.read_samples(piece, recorded.mean))?;
    let damaged = reading.damaged;
    let finish = |process: &Process| {
        let found = reading.processes.remove(&process.unit).unwrap_or_default();
        let mut sites = found.finish(process, recorded.mean);
        sites.unseen.extend(lost(&recorded, damaged, totals));
        sites
    };
    Ok(totals.processes.iter().map(finish).collect())
}

/// What is missing in all processes together.
fn lost(recorded: &RecordingFigures, damaged: u64, totals: &Totals) -> Vec<String> {
    let of_all = "in all processes together";
    let phrases = [
        (recorded.lost_samples, "chosen allocation", "could not be recorded"),
        (recorded.lost_frees, "free", "of recorded blocks could not be recorded: these blocks count as live"),
        (u64::from(recorded.lost_maps), "list", "of loaded libraries could not be recorded whole"),
        (damaged, "damaged piece", "of the records"),
        (
            totals.unattributed.allocations,
            "allocation",
            "could not be chosen, because there is no record of the thread",
        ),
    ];
    let lost = phrases.into_iter().filter(|(count, ..)| *count > 0);
    lost.map(|(count, noun, rest)| format!("{} {rest} ({of_all})", counted(count, noun))).collect()
}

fn each_piece(
    file: &File,
    pieces: u32,
    mut each: impl FnMut(&mut ThreadRecords),
) -> Result<(), std::io::Error> {
    let (length, size) = (file.metadata()?.len(), u64::from(PIECE));
    let mut bytes = vec![0; PIECE as usize];
    for index in 0..u64::from(pieces).min(length / size) {
        file.read_exact_at(&mut bytes, index * size)?;
        if let Some(mut piece) = ThreadRecords::of(&bytes, index * size) {
            each(&mut piece);
        }
    }
    Ok(())
}

struct SitesReader {
    files: Files,
    symbols: Symbols,
    /// The functions at a place, innermost first.
    names: HashMap<FileAddress, Vec<SiteFrame>>,
    processes: SortedMap<u32, ProcessSites>,
    damaged: u64,
}

/// What was found of one process.
#[derive(Default)]
struct ProcessSites {
    maps: SortedMap<u32, CodeMap>,
    sites: HeapSites,
    index: SiteIndex,
    /// The context of each distinct list of callers.
    known: HashMap<ActiveFunctions, usize>,
    events: Vec<HeapEvent>,
    /// The number of samples whose outer callers are missing, by reason.
    missing: SortedMap<&'static str, u64>,
}

impl SitesReader {
    fn read_maps(&mut self, piece: &mut ThreadRecords) {
        let Some(process) = self.processes.get_mut(&piece.owner) else { return };
        while let Some(record) = piece.next() {
            if let Ok(SiteRecord::Map { number, line, library, seen }) = record {
                let map = process.maps.entry(number).or_default();
                let _ = self.files.add(map, &line, library, seen);
            }
        }
    }

    fn read_samples(&mut self, piece: &mut ThreadRecords, mean: u64) {
        let Some(mut process) = self.processes.remove(&piece.owner) else { return };
        let owner = piece.owner;
        while let Some(record) = piece.next() {
            match record {
                Ok(SiteRecord::Sample(sample)) => self.add(&mut process, &sample, mean),
                Ok(SiteRecord::Free { time, block, live }) => {
                    process.events.push(HeapEvent { time, live, block, what: HeapChange::Freed });
                }
                Ok(SiteRecord::Map { .. }) => {}
                Err(records::Damaged) => self.damaged += 1,
            }
        }
        self.processes.insert(owner, process);
    }

    fn add(&mut self, process: &mut ProcessSites, sample: &AllocationSample, mean: u64) {
        let stack = RecordedStack { begin: sample.registers[1], bytes: sample.stack, cut: sample.cut };
        let registers = Registers::recorded(sample.registers);
        // Another thread may have been about to write the next map.
        let next = process.maps.get(&(sample.map + 1));
        let map = process.maps.get(&sample.map).filter(|map| next.is_none() || map.contains(registers.code));
        let callers = match map.or(next) {
            Some(map) => stack.callers(registers, map, &mut self.files),
            None => ActiveFunctions {
                missing: Some("the list of loaded libraries is missing"),
                ..ActiveFunctions::default()
            },
        };
        if let Some(why) = callers.missing {
            *process.missing.entry(why).or_default() += 1;
        }
        let context = match process.known.get(&callers) {
            Some(context) => *context,
            None => self.context(process, callers),
        };
        let portion = sampled_bytes::probability(sample.bytes, mean);
        let what = HeapChange::Allocated { context, bytes: sample.bytes, probability: portion };
        process.events.push(HeapEvent { time: sample.time, live: sample.live, block: sample.block, what });
    }

    /// Adds the context of these callers.
    fn context(&mut self, process: &mut ProcessSites, callers: ActiveFunctions) -> usize {
        let mut frames: Vec<SiteFrame> = Vec::new();
        for place in &callers.places {
            frames.extend(self.frames(*place).iter().cloned());
        }
        let passing = frames.iter().take_while(|frame| is_allocator(&frame.name)).count();
        // If no caller of an allocator is known, the allocator is shown: the bytes must be attributed to something.
        let passing = if passing == frames.len() { passing.saturating_sub(1) } else { passing };
        let outer = callers.missing.map(|why| format!("(callers unknown: {why})"));
        let outer = outer.map(|name| SiteFrame { name, ..SiteFrame::default() });
        let mut context = None;
        for frame in outer.into_iter().chain(frames.drain(passing..).rev()) {
            context = Some(process.index.context(&mut process.sites, context, frame));
        }
        let unknown = || SiteFrame { name: "(no callers)".to_owned(), ..SiteFrame::default() };
        let context = context.unwrap_or_else(|| process.index.context(&mut process.sites, None, unknown()));
        process.known.insert(callers, context);
        context
    }

    fn frames(&mut self, place: FileAddress) -> &[SiteFrame] {
        let (files, symbols) = (&self.files, &mut self.symbols);
        self.names.entry(place).or_insert_with(|| {
            let path = &files.file(place.file).path;
            let location = symbols.locate(Some(path), place.address);
            let object = Some(path.clone());
            if location.frames.is_empty() {
                return vec![SiteFrame { name: location.place, object, file: None, line: None }];
            }
            let frames = location.frames.iter().map(|frame| SiteFrame {
                name: frame.name.clone().unwrap_or_else(|| location.place.clone()),
                object: object.clone(),
                file: frame.file.clone(),
                line: frame.line,
            });
            frames.collect()
        })
    }
}

impl ProcessSites {
    fn finish(mut self, process: &Process, mean: u64) -> HeapSites {
        self.events.sort_by_key(|event| (event.time, matches!(event.what, HeapChange::Freed)));
        let mut sites = self.sites;
        sites.process = process.pid;
        sites.words = vec![process.exe.clone()];
        let (samples, returned) = replay::fill(&mut sites, &self.events, process.began);
        sites.counting = match mean {
            1 => SiteCounting::Exact,
            bytes => SiteCounting::Sampled { bytes, samples },
        };
        let (counts, live) = (process.counts, process.counts.live.unwrap_or_default());
        let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
        let at_end = counts.live_blocks().saturating_add(process.inherited_blocks);
        sites.total = HeapAmounts {
            allocated: MemoryBlocks { blocks: counts.allocations, bytes: counts.bytes },
            at_peak: MemoryBlocks { blocks: 0, bytes: live.peak },
            at_end: MemoryBlocks { blocks: unsigned(at_end), bytes: unsigned(live.bytes) },
        };
        if mean > 1 {
            replay::reduce_to_total(&mut sites);
        }
        // The number of blocks at the peak is not counted.
        let inherited = unsigned(process.inherited_blocks).saturating_sub(returned);
        sites.total.at_peak.blocks = sites.sum().at_peak.blocks.saturating_add(inherited);
        sites.inherited.bytes = unsigned(process.inherited);
        let missing = self.missing.iter();
        sites.unseen.extend(
            missing
                .map(|(why, samples)| format!("the outer callers of {samples} recorded allocations: {why}")),
        );
        sites
    }
}

#[cfg(test)]
mod tests;
