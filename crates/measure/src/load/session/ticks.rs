//! Ticks: how late the machine wakes a thread of ordinary priority, beside a generator that has a priority or cores of
//! its own.

use super::super::clock;
use super::super::latencies::{Latencies, SparseHistogram};
use super::watch::TurnStart;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time from tick to tick, in nanoseconds.
const TICK: u64 = 1_000_000;

/// How late the calling thread noticed each tick, from the start of the turn until it is `over`. Each tick counts by
/// itself, even if several were noticed together, so the share of late ticks is a share of the time.
pub(super) fn lateness(start: &TurnStart, over: &AtomicBool) -> Latencies {
    let mut record = SparseHistogram::default();
    let mut due = 0;
    while !over.load(Ordering::Relaxed) {
        if due == 0 {
            due = start.monotonic.load(Ordering::Relaxed);
        }
        let now = clock::now();
        while due > 0 && due <= now {
            record.record(now - due);
            due += TICK;
        }
        // The start may be far, so no pause is longer than a tick.
        let pause = if due > now { (due - now).min(TICK) } else { TICK };
        std::thread::sleep(Duration::from_nanos(pause));
    }
    record.latencies()
}
