//! How a server's memory grows with the number of its requests, and whether the growth stops.

use super::process_tree::TreeMemory;
use super::window::{LEVEL, Window};
use scruple_core::per_request::{self, Bounds};

/// The growth of one measure of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct GrowthPerRequest {
    /// The measure: `resident` or `anonymous`.
    pub of: &'static str,
    /// Growth in bytes per 1000 requests. If its interval excludes 0 and the growth does not stop, it is a leak.
    pub per_thousand: Bounds,
    /// The same growth over the later half of the windows. A heap that merely fills has stopped growing by then.
    pub lately: Bounds,
    /// The number of requests of all windows.
    pub requests: u64,
    /// The memory after the last window, divided by that after the first.
    pub ratio: f64,
    /// The name of the server's language runtime, if it frees memory only when it collects.
    pub collected_by: Option<String>,
}

impl GrowthPerRequest {
    /// Whether the growth is a leak: it goes on, and it is not a collected heap that may still be filling.
    pub fn is_leak(&self) -> bool {
        self.goes_on() && !self.may_be_filling()
    }

    /// Whether the growth is a leak or a collected heap that fills until its next collection: these look the same.
    pub fn is_undecided(&self) -> bool {
        self.goes_on() && self.may_be_filling()
    }

    fn may_be_filling(&self) -> bool {
        self.collected_by.is_some() && self.ratio < FILLED
    }

    /// Whether the growth does not stop. It must be certain; it must exceed that of an allocator that is settling (a page
    /// per 1000 requests, and in all twice what an allocator takes from the kernel at a time); and in the later half
    /// it must possibly be at least half as fast as overall: an allocator takes memory in large steps, so that a
    /// small leak shows in few of them.
    fn goes_on(&self) -> bool {
        self.per_thousand.interval.is_some_and(|interval| interval.low > 0.0)
            && self.per_thousand.value >= 4096.0
            && self.per_thousand.value * self.requests as f64 / 1000.0 >= 2.0 * ARENA
            && self.lately.interval.map_or(self.lately.value, |lately| lately.high)
                >= self.per_thousand.value / 2.0
            && self.lately.value > 0.0
    }
}

/// The size of the pieces in which glibc's allocator takes memory from the kernel, in bytes.
const ARENA: f64 = 132.0 * 1024.0;

/// A collected heap that has grown to this many times its size is not just filling. Collectors let a heap grow to a
/// small multiple of the live data: Go to twice (GOGC=100), V8 to at most four times.
pub const FILLED: f64 = 8.0;

/// The growth of each measure of memory over these windows.
pub(super) fn growth(windows: &[Window]) -> Vec<GrowthPerRequest> {
    // A window that is continued has served requests that are counted only with the next one, so its memory matches
    // no count.
    let windows: Vec<&Window> = windows.iter().filter(|window| window.requests > 0).collect();
    let mut served = 0;
    let totals: Vec<f64> = windows
        .iter()
        .map(|window| {
            served += window.requests;
            served as f64
        })
        .collect();
    let of = |of: &'static str, pick: fn(&TreeMemory) -> u64| {
        let sizes: Vec<f64> = windows.iter().map(|window| pick(&window.memory) as f64).collect();
        let half = totals.len() / 2;
        let fit = per_request::fit(&totals, &sizes, LEVEL)?.each;
        let lately = per_request::fit(&totals[half..], &sizes[half..], LEVEL).map_or(fit, |late| late.each);
        Some(GrowthPerRequest {
            of,
            per_thousand: fit.times(1000.0),
            lately: lately.times(1000.0),
            requests: served,
            ratio: sizes.last()? / sizes.first()?.max(1.0),
            collected_by: None,
        })
    };
    [of("resident", |memory| memory.resident), of("anonymous", |memory| memory.anonymous)]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The growth over ten windows of 1000 requests, each of which keeps 1000 bytes, from this size on.
    fn steady(first: u64, collected_by: Option<&str>) -> GrowthPerRequest {
        let windows: Vec<Window> = (0..10)
            .map(|index| {
                let memory = TreeMemory { resident: first + 1_000_000 * index, ..TreeMemory::default() };
                Window { requests: 1000, elapsed: 1, grown: Vec::new(), memory }
            })
            .collect();
        let found = growth(&windows).swap_remove(0);
        GrowthPerRequest { collected_by: collected_by.map(str::to_owned), ..found }
    }

    #[test]
    fn a_collected_heap_that_may_still_fill_is_no_leak_until_it_is_many_times_as_large() {
        let conclusions = |found: GrowthPerRequest| (found.is_leak(), found.is_undecided());
        assert_eq!(conclusions(steady(8_000_000, None)), (true, false));
        assert_eq!(conclusions(steady(8_000_000, Some("go"))), (false, true));
        assert_eq!(conclusions(steady(1_000_000, Some("go"))), (true, false));
    }

    #[test]
    fn memory_of_a_window_that_goes_on_is_not_held_against_the_requests_before_it() {
        let mut served = 0;
        let windows =
            [(1000, 1000), (0, 700), (3000, 2300), (2000, 2000)].map(|(counted, more): (u64, u64)| {
                served += more;
                let memory = TreeMemory { anonymous: 1_000_000 + 100 * served, ..TreeMemory::default() };
                Window { requests: counted, elapsed: 1, grown: Vec::new(), memory }
            });
        let found = growth(&windows);
        let anonymous = found.iter().find(|growth| growth.of == "anonymous").expect("a growth");
        assert!((anonymous.per_thousand.value - 100_000.0).abs() < 1e-3, "{anonymous:?}");
    }
}
