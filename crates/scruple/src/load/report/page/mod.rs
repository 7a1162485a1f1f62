//! What a load stores for its page, and the additional sections of a load that has just ended.

mod cost;
mod functions;
mod requests;

use super::search;
use crate::load::windows::{Loads, ServerResults};
use crate::render::page::Section;
use scruple_core::subject::{LoadCourse, LoadSlice};
use scruple_stats::sorting::SortedMap;

/// Returns the course of a server, which is stored.
pub fn course(server: &ServerResults, loads: &Loads) -> LoadCourse {
    let pool = &server.pool;
    let slices = pool.timeline.iter().map(|slice| LoadSlice {
        from: slice.from,
        to: slice.to,
        answered: slice.answered,
        failed: slice.failed,
        p50: slice.p50,
        p99: slice.p99,
        counts: classes(slice.response.each()),
        failures: slice.failures.each().map(|(class, count)| (class.name().to_owned(), count)).collect(),
    });
    // In a search each rate has an arm of its own, whose name contains the rate.
    let offered = loads
        .plan
        .rate()
        .filter(|_| pool.fell_behind() && loads.capacity.is_none() && loads.plan.scenario.is_none());
    LoadCourse {
        due: pool.counts.due,
        answered: pool.counts.answered,
        failed: pool.counts.failures.total(),
        windows: (pool.windows as u64, server.void as u64),
        rate: pool.rate(),
        least_rate: pool.least_rate(),
        offered,
        response: pool.times.response.each().to_vec(),
        slices: slices.collect(),
        stalls: pool.stalls.iter().map(|stall| (stall.from, stall.to)).collect(),
        answer: loads.capacity.as_ref().map(search::answer),
    }
}

/// Counts response times by their class.
fn classes(each: &[(u64, u64)]) -> Vec<(i32, u64)> {
    let mut counts: SortedMap<i32, u64> = SortedMap::new();
    for (response, count) in each {
        *counts.entry(LoadSlice::class(*response)).or_default() += count;
    }
    counts.into_iter().collect()
}

/// Returns the sections about what the stored course does not contain.
pub fn sections(loads: &Loads) -> Vec<Section> {
    let found = loads.capacity.iter().map(requests::search);
    let of_costs = [cost::section(loads), functions::section(loads), requests::section(loads)];
    found.chain(of_costs.into_iter().flatten()).collect()
}

/// Returns the label of a table. It contains the server's name if there are several servers.
fn of_server(loads: &Loads, server: &ServerResults, what: &str) -> String {
    match loads.servers.len() {
        1 => what.to_owned(),
        _ => format!("{what} of {}", crate::render::page::harmless_name(&server.name)),
    }
}
