//! Figures of malloc, from Scruple's preload library if it is attached.

use crate::json::Object;

type Snapshot = unsafe extern "C" fn(*mut u64);

/// Reads the totals; all are unknown without the library.
#[derive(Clone, Copy)]
pub struct Heap(Option<Snapshot>);

/// Totals in this order: allocations, bytes, frees, freed bytes, live, peak live, threads, lost.
pub type Totals = [u64; 8];

/// The value of a figure that the library does not keep.
const UNKNOWN: u64 = u64::MAX;

/// Keys and units of the differences, in the order of the totals.
const COUNTERS: [(&str, &str); 4] = [
    ("malloc.count", "count"),
    ("malloc.bytes", "bytes"),
    ("malloc.frees", "count"),
    ("malloc.freed_bytes", "bytes"),
];

/// Adds the differences between two readings to the entry of a batch.
pub fn tell(entry: Object, before: &Totals, after: &Totals) -> Object {
    let known = COUNTERS.iter().enumerate().filter(|(i, _)| after[*i] != UNKNOWN);
    let entry = known.fold(entry, |entry, (i, (key, _))| entry.integer(key, after[i] - before[i]));
    // If the batch did not raise the process's peak, its own peak is unknown. With several threads the two sizes are
    // not read at the same moment.
    if after[5] != UNKNOWN && after[5] > before[5] && after[5] > before[4] {
        entry.integer("malloc.peak", after[5] - before[4])
    } else {
        entry
    }
}

/// The number of events that the library reports as missed between two readings.
pub fn lost(before: &Totals, after: &Totals) -> u64 {
    after[7] - before[7]
}

#[cfg(unix)]
fn find() -> Option<Snapshot> {
    use std::ffi::{c_char, c_void};
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    #[cfg(target_vendor = "apple")]
    let anywhere = std::ptr::without_provenance_mut(usize::MAX - 1);
    #[cfg(not(target_vendor = "apple"))]
    let anywhere = std::ptr::null_mut();
    // SAFETY: the name ends with a zero byte; the symbol, if it is there, is a function of this signature.
    unsafe {
        let found = dlsym(anywhere, c"scruple_heap_snapshot".as_ptr());
        (!found.is_null()).then(|| std::mem::transmute::<*mut c_void, Snapshot>(found))
    }
}

#[cfg(not(unix))]
fn find() -> Option<Snapshot> {
    None
}

impl Heap {
    pub fn look() -> Heap {
        Heap(find())
    }

    /// The counters that this process reports.
    pub fn announce(self) -> Vec<String> {
        let totals = self.read();
        let of = |key: &str, unit: &str| {
            Object::default().text("key", key).text("unit", unit).text("quality", "exact")
        };
        let known = COUNTERS.iter().enumerate().filter(|(i, _)| totals[*i] != UNKNOWN);
        let mut counters: Vec<String> = known.map(|(_, (key, unit))| of(key, unit).done()).collect();
        if totals[5] != UNKNOWN {
            counters.push(of("malloc.peak", "bytes").text("per", "batch").done());
        }
        counters
    }

    #[inline(always)]
    pub fn read(self) -> Totals {
        let mut totals = [UNKNOWN; 8];
        if let Some(snapshot) = self.0 {
            // SAFETY: the library writes eight numbers.
            unsafe { snapshot(totals.as_mut_ptr()) };
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_that_is_not_above_what_was_live_before_is_left_out() {
        let totals = |live: u64, peak: u64| -> Totals { [0, 0, 0, 0, live, peak, 2, 0] };
        let told = |before: Totals, after: Totals| tell(Object::default(), &before, &after).done();
        assert!(told(totals(100, 150), totals(100, 180)).contains("\"malloc.peak\":80"));
        // Another thread's memory is counted as live, but not yet in the peak.
        assert!(!told(totals(300, 150), totals(100, 180)).contains("malloc.peak"));
    }
}
