//! The cost sheet: the growth of counters around windows of load, per request.

use super::cost_row::{self, CostRow};
use super::memory_growth::{GrowthPerRequest, growth};
use super::rare_events;
use super::user_and_system_time;
use super::window::Window;
use crate::memory_map::MemoryMap;
use scruple_core::sample::Reading;

/// The cost of a request, by counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// The windows, in the order in which they were run.
    pub windows: Vec<Window>,
    /// One row for each counter, in the order in which the first window read them.
    pub rows: Vec<CostRow>,
    /// The growth of the server's memory.
    pub growth: Vec<GrowthPerRequest>,
    /// The memory map before the first window and after the last.
    pub maps: (MemoryMap, MemoryMap),
}

impl Sheet {
    /// The same sheet without user and system time, because ticks were in step with the requests.
    pub fn without_division(mut self) -> Sheet {
        user_and_system_time::withdraw(&mut self.rows);
        self
    }

    /// The sheet of these windows. `known` describes the counters, and `idle` is their growth per second without load.
    pub fn of(
        known: &[Reading],
        windows: Vec<Window>,
        idle: &[(String, f64)],
        maps: (MemoryMap, MemoryMap),
    ) -> Sheet {
        let mut rows: Vec<CostRow> =
            known.iter().map(|reading| cost_row::row(reading, &windows, idle)).collect();
        user_and_system_time::divide(&mut rows, &windows);
        rare_events::allow_for_one_more(&mut rows, &windows);
        rows.iter_mut().for_each(cost_row::at_least_nothing);
        Sheet { rows, growth: growth(&windows), maps, windows }
    }
}
