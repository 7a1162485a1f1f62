//! Reads the records' file that the preload library writes (`preload/layout.h` describes it), piece by piece.
//!
//! Every recorded program could write to the file, so nothing in it is trusted: lengths are bounded by what was read,
//! and an impossible record ends its piece.

use super::registers::RECORDED;
use crate::heap::format::{long, word};

const KIND_PIECE: u32 = 1;
const HEAD: usize = 32;
const SAMPLE: usize = 48 + 8 * RECORDED;
const GONE: usize = 32;
const MAP: usize = 32;

/// The stack is longer than what was recorded.
const CUT: u16 = 1;
/// The system did not let the stack be read.
const NO_STACK: u16 = 2;

/// A piece: the records of one thread, in order.
pub(super) struct ThreadRecords<'a> {
    /// The unit of the process in the data file.
    pub(super) owner: u32,
    /// The place of the piece in the file.
    place: u64,
    bytes: &'a [u8],
    at: usize,
    used: usize,
    /// The stack of the previous sample, and the address of its end.
    stack: Vec<u8>,
    end: u64,
}

/// One record.
pub(super) enum SiteRecord<'a> {
    Sample(AllocationSample<'a>),
    Free { time: u64, block: u64, live: i64 },
    Map { number: u32, line: String, library: u64, seen: u64 },
}

/// A recorded allocation.
pub(super) struct AllocationSample<'a> {
    /// The place of the record in the file, which names the block.
    pub(super) block: u64,
    /// Nanoseconds of the monotonic clock.
    pub(super) time: u64,
    pub(super) bytes: u64,
    pub(super) live: i64,
    pub(super) map: u32,
    pub(super) registers: [u64; RECORDED],
    pub(super) stack: &'a [u8],
    pub(super) cut: Option<&'static str>,
}

impl ThreadRecords<'_> {
    /// Reads the head of a piece; `None` if it was claimed and never used.
    pub(super) fn of(bytes: &[u8], place: u64) -> Option<ThreadRecords<'_>> {
        let used = usize::try_from(long(bytes, 8)).ok()?.min(bytes.len());
        let (owner, end) = (word(bytes, 4), 0);
        let piece = ThreadRecords { owner, place, bytes, at: HEAD, used, stack: Vec::new(), end };
        (word(bytes, 0) == KIND_PIECE && bytes.len() > HEAD).then_some(piece)
    }

    /// The next record. The error says that the rest of the piece is damaged.
    pub(super) fn next(&mut self) -> Option<Result<SiteRecord<'_>, Damaged>> {
        if self.at >= self.used {
            return None;
        }
        let all = self.bytes;
        let record = all.get(self.at..self.used).unwrap_or_default();
        let (size, place) = (word(record, 0) as usize, self.place + self.at as u64);
        let kind = word(record, 4);
        let least = match kind & 0xffff {
            1 => SAMPLE,
            2 => GONE,
            3 => MAP,
            _ => usize::MAX,
        };
        if size < least || size > record.len() || !size.is_multiple_of(8) {
            self.at = self.used;
            return Some(Err(Damaged));
        }
        self.at += size;
        let record = &record[..size];
        let read = match kind & 0xffff {
            1 => self.sample(record, (kind >> 16) as u16, place).map(SiteRecord::Sample),
            2 => Some(SiteRecord::Free {
                time: long(record, 8),
                block: long(record, 16),
                live: long(record, 24) as i64,
            }),
            _ => map(record),
        };
        Some(read.ok_or(Damaged))
    }

    fn sample(&mut self, record: &[u8], flags: u16, block: u64) -> Option<AllocationSample<'_>> {
        let (depth, fresh) = (word(record, 40) as usize, word(record, 44) as usize);
        let mut registers = [0; RECORDED];
        for (at, register) in registers.iter_mut().enumerate() {
            *register = long(record, 48 + 8 * at);
        }
        let begin = registers[1];
        let end = begin.checked_add(depth as u64)?;
        let new = record.get(SAMPLE..)?.get(..fresh)?;
        // The rest is that of the previous stack, which ends at the same address.
        let old = depth.checked_sub(fresh)?;
        let from = self.stack.len().checked_sub(old)?;
        if old > 0 && self.end != end {
            return None;
        }
        let rest = self.stack.split_off(from);
        self.stack.clear();
        self.stack.extend_from_slice(new);
        self.stack.extend(rest);
        self.end = end;
        let cut = match flags {
            flags if flags & NO_STACK != 0 => Some("the system did not permit reading the stack"),
            flags if flags & CUT != 0 => Some("the stack is longer than the part that was recorded"),
            _ => None,
        };
        Some(AllocationSample {
            block,
            time: long(record, 8),
            bytes: long(record, 16),
            live: long(record, 24) as i64,
            map: word(record, 32),
            registers,
            stack: &self.stack,
            cut,
        })
    }
}

/// A part of the file that the library never writes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damaged;

fn map(record: &[u8]) -> Option<SiteRecord<'static>> {
    let text = record.get(MAP..)?.get(..word(record, 12) as usize)?;
    Some(SiteRecord::Map {
        number: word(record, 8),
        line: String::from_utf8_lossy(text).into_owned(),
        seen: long(record, 16),
        library: long(record, 24),
    })
}
