//! Three ways to keep events by deadline and hand out the earliest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event: its deadline and its number.
pub type Event = (u64, u32);

/// Keeps events. Numbers are dense from 0, and each is added once.
pub trait Scheduler {
    fn new() -> Self;
    fn add(&mut self, event: Event);
    /// Whether the event was still there.
    fn cancel(&mut self, event: Event) -> bool;
    /// Removes the earliest event and returns it.
    fn next(&mut self) -> Option<Event>;
}

/// A list in order of deadlines, the earliest last: adding moves what is earlier.
pub struct SortedList(Vec<Event>);

impl Scheduler for SortedList {
    fn new() -> SortedList {
        SortedList(Vec::new())
    }

    fn add(&mut self, event: Event) {
        let at = self.0.partition_point(|other| *other > event);
        self.0.insert(at, event);
    }

    fn cancel(&mut self, event: Event) -> bool {
        let at = self.0.partition_point(|other| *other > event);
        let found = self.0.get(at) == Some(&event);
        if found {
            self.0.remove(at);
        }
        found
    }

    fn next(&mut self) -> Option<Event> {
        self.0.pop()
    }
}

/// Events that were cancelled before their time, in structures that cannot find them.
#[derive(Default)]
struct Cancelled(Vec<bool>);

impl Cancelled {
    fn add(&mut self, number: u32) -> bool {
        let at = number as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, false);
        }
        !std::mem::replace(&mut self.0[at], true)
    }

    fn has(&self, number: u32) -> bool {
        self.0.get(number as usize) == Some(&true)
    }
}

/// A binary heap; what is cancelled stays until its time.
pub struct Heap {
    events: BinaryHeap<Reverse<Event>>,
    gone: Cancelled,
}

impl Scheduler for Heap {
    fn new() -> Heap {
        Heap { events: BinaryHeap::new(), gone: Cancelled::default() }
    }

    fn add(&mut self, event: Event) {
        self.events.push(Reverse(event));
    }

    fn cancel(&mut self, (_, number): Event) -> bool {
        self.gone.add(number)
    }

    fn next(&mut self) -> Option<Event> {
        loop {
            let Reverse(event) = self.events.pop()?;
            if !self.gone.has(event.1) {
                self.gone.add(event.1);
                return Some(event);
            }
        }
    }
}

const BITS: u32 = 6;
const SLOTS: u64 = 1 << BITS;
const LEVELS: u32 = 6;

/// A hierarchical timer wheel: an event is in the level of the highest digit in which its deadline differs from the present,
/// and comes down as that is reached. Deadlines end below 64^6.
pub struct Wheel {
    now: u64,
    slots: Vec<Vec<Event>>,
    occupied: [u64; LEVELS as usize],
    gone: Cancelled,
}

impl Wheel {
    fn place(&mut self, event: Event) {
        // What is overdue is due now.
        let deadline = event.0.max(self.now);
        let level = (deadline ^ self.now).checked_ilog2().unwrap_or(0) / BITS;
        let slot = (deadline >> (BITS * level)) % SLOTS;
        self.occupied[level as usize] |= 1 << slot;
        self.slots[(u64::from(level) * SLOTS + slot) as usize].push(event);
    }

    /// The first occupied slot of a level from the present one on.
    fn first(&self, level: u32) -> Option<u64> {
        let present = (self.now >> (BITS * level)) % SLOTS;
        let ahead = self.occupied[level as usize] & (u64::MAX << present);
        (ahead != 0).then(|| u64::from(ahead.trailing_zeros()))
    }

    /// Goes to the nearest occupied slot above the lowest level and deals its events to the levels below.
    fn come_down(&mut self) -> Option<()> {
        let (level, slot) = (1..LEVELS).find_map(|level| Some((level, self.first(level)?)))?;
        let below = BITS * level;
        self.now = (self.now >> (below + BITS) << (below + BITS)) | (slot << below);
        self.occupied[level as usize] &= !(1 << slot);
        let events = std::mem::take(&mut self.slots[(u64::from(level) * SLOTS + slot) as usize]);
        events.into_iter().for_each(|event| self.place(event));
        Some(())
    }
}

impl Scheduler for Wheel {
    fn new() -> Wheel {
        let slots = (0..u64::from(LEVELS) * SLOTS).map(|_| Vec::new()).collect();
        Wheel { now: 0, slots, occupied: [0; LEVELS as usize], gone: Cancelled::default() }
    }

    fn add(&mut self, event: Event) {
        self.place(event);
    }

    fn cancel(&mut self, (_, number): Event) -> bool {
        self.gone.add(number)
    }

    fn next(&mut self) -> Option<Event> {
        loop {
            let Some(slot) = self.first(0) else {
                self.come_down()?;
                continue;
            };
            self.now = self.now / SLOTS * SLOTS + slot;
            match self.slots[slot as usize].pop() {
                Some(event) if self.gone.has(event.1) => {}
                Some(event) => {
                    self.gone.add(event.1);
                    return Some(event);
                }
                None => self.occupied[0] &= !(1 << slot),
            }
        }
    }
}
