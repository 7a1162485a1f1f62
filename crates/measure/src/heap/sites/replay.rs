//! Replays the records of a process in the order of time: what was live at the peak and at the end.

use scruple_code::allocation_sites::{
    CourseUnit, HeapCourse, HeapSites, MemoryBlocks, SiteContext, SiteEstimates,
};
use scruple_stats::sampled_bytes::SampledBytes;
use std::collections::HashMap;

/// The largest number of points of a course.
const POINTS: u64 = 250;

/// A record, with the live bytes of the process at its time.
pub(super) struct HeapEvent {
    /// Nanoseconds of the monotonic clock.
    pub(super) time: u64,
    pub(super) live: i64,
    /// The block's name.
    pub(super) block: u64,
    pub(super) what: HeapChange,
}

pub(super) enum HeapChange {
    /// A block of `bytes` bytes was allocated in a context, and recorded with this probability.
    Allocated {
        context: usize,
        bytes: u64,
        probability: f64,
    },
    Freed,
}

/// Sums of the blocks of one context. The number of blocks is estimated like the bytes.
#[derive(Clone, Copy, Default)]
struct Sum {
    blocks: f64,
    bytes: SampledBytes,
}

/// Fills in the figures of all contexts and the course, from events in the order of time. `began` is the time at which
/// the process began. Returns the number of samples, and that of the recorded blocks of its parent that it freed before
/// the peak.
pub(super) fn fill(sites: &mut HeapSites, events: &[HeapEvent], began: u64) -> (u64, u64) {
    let highest = events.iter().map(|event| event.live).max().unwrap_or(0);
    let peak = events.iter().position(|event| event.live == highest).unwrap_or(0);
    let mut freed: HashMap<u64, usize> = HashMap::new();
    for (at, event) in events.iter().enumerate() {
        if matches!(event.what, HeapChange::Freed) {
            freed.entry(event.block).or_insert(at);
        }
    }
    let mut sums = vec![[Sum::default(); 3]; sites.contexts.len()];
    let (mut samples, mut returned) = (0, freed.values().filter(|at| **at <= peak).count() as u64);
    for (at, event) in events.iter().enumerate() {
        let HeapChange::Allocated { context, bytes, probability } = event.what else { continue };
        samples += 1;
        let gone = freed.get(&event.block);
        returned = returned.saturating_sub(u64::from(gone.is_some_and(|gone| *gone <= peak)));
        let at_peak = at <= peak && gone.is_none_or(|gone| *gone > peak);
        let counted = [true, at_peak, gone.is_none()];
        for (sum, _) in sums[context].iter_mut().zip(counted).filter(|(_, counted)| *counted) {
            sum.blocks += 1.0 / probability;
            sum.bytes.add(bytes, probability);
        }
    }
    for (context, sums) in sites.contexts.iter_mut().zip(&sums) {
        let blocks = |sum: &Sum| MemoryBlocks {
            blocks: sum.blocks.round() as u64,
            bytes: sum.bytes.sum.round() as u64,
        };
        context.own.allocated = blocks(&sums[0]);
        context.own.at_peak = blocks(&sums[1]);
        context.own.at_end = blocks(&sums[2]);
    }
    let estimates = sums.iter().map(|[allocated, at_peak, at_end]| SiteEstimates {
        allocated: allocated.bytes,
        at_peak: at_peak.bytes,
        at_end: at_end.bytes,
    });
    sites.estimates = estimates.collect();
    sites.course = course(events, began);
    (samples, returned)
}

/// Reduces the figures of contexts in proportion where their sum exceeds what was counted in the whole process, so that
/// no part is larger than the whole. The number of blocks at the peak is not counted, so it is reduced in the same
/// proportion as the bytes at the peak.
pub(super) fn reduce_to_total(sites: &mut HeapSites) {
    let (counted, sum) = (sites.total, sites.sum());
    let at_peak = kept(counted.at_peak.bytes, sum.at_peak.bytes);
    let end = (kept(counted.at_end.blocks, sum.at_end.blocks), kept(counted.at_end.bytes, sum.at_end.bytes));
    let all = (
        kept(counted.allocated.blocks, sum.allocated.blocks),
        kept(counted.allocated.bytes, sum.allocated.bytes),
    );
    for SiteContext { own, .. } in &mut sites.contexts {
        own.at_peak = share_of(own.at_peak, (at_peak, at_peak));
        own.at_end = share_of(own.at_end, end);
        own.allocated = share_of(own.allocated, all);
    }
}

/// The part of a sum that is kept, so that no more than `counted` is left.
fn kept(counted: u64, sum: u64) -> f64 {
    if sum > counted { counted as f64 / sum as f64 } else { 1.0 }
}

fn share_of(whole: MemoryBlocks, (blocks, bytes): (f64, f64)) -> MemoryBlocks {
    MemoryBlocks { blocks: (whole.blocks as f64 * blocks) as u64, bytes: (whole.bytes as f64 * bytes) as u64 }
}

/// The live bytes over time: the largest value in each of many equal intervals.
fn course(events: &[HeapEvent], began: u64) -> HeapCourse {
    let last = events.last().map_or(0, |event| event.time.saturating_sub(began));
    let width = (last / POINTS).max(1);
    let mut points: Vec<(u64, u64)> = Vec::new();
    for event in events {
        let time = event.time.saturating_sub(began);
        let live = u64::try_from(event.live).unwrap_or(0);
        match points.last_mut() {
            Some(point) if time / width == point.0 / width => {
                if live > point.1 {
                    *point = (time, live);
                }
            }
            _ => points.push((time, live)),
        }
    }
    HeapCourse { unit: CourseUnit::Nanoseconds, points }
}
