//! Sends recorded requests again, at the times at which they were recorded.

mod access_log;
mod har;

pub use access_log::{access_log, is_access_log};
pub use har::har;

use super::request::{Request, RequestOrder};
use super::scenario::{RequestFileContent, Scenario};
use scruple_stats::sorting;
use std::collections::HashMap;

/// A recorded request with the time at which it was sent, in nanoseconds since 1970.
struct RecordedRequest {
    at: i64,
    request: Request,
}

/// The scenario that sends these requests again. Times count from the first request.
fn replayed(mut all: Vec<RecordedRequest>, notes: Vec<String>) -> RequestFileContent {
    sorting::by_key(&mut all, |recorded| recorded.at);
    let first = all.first().map_or(0, |recorded| recorded.at);
    let mut requests: Vec<Request> = Vec::new();
    // Requests with the same bytes become one kind of request.
    let mut known: HashMap<Vec<u8>, u32> = HashMap::new();
    let mut times = Vec::new();
    for RecordedRequest { at, request } in all {
        let key = request.http1("", true);
        let number = *known.entry(key).or_insert_with(|| {
            requests.push(request);
            requests.len() as u32 - 1
        });
        times.push((at.abs_diff(first), number));
    }
    let scenario = Scenario::of_recorded(&requests, times);
    RequestFileContent {
        requests,
        order: RequestOrder::Weighted,
        scenario: Some(scenario),
        limits: Vec::new(),
        notes,
    }
}

/// The statuses that a replayed request may have: a request that succeeded must succeed again, and one that failed
/// must fail with the same status.
fn expected(status: u16) -> Vec<String> {
    if (400..=999).contains(&status) { vec![status.to_string()] } else { Vec::new() }
}

/// A count with its noun.
fn times(count: usize, one: &str, several: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {several}") }
}
