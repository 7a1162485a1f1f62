//! Says beforehand how long a load will take.

use super::windows::Division;
use super::windows::passes::time_of_counting;
use crate::progress::in_words;
use scruple_core::evidence::APART;
use scruple_measure::load::Plan;
use std::time::Duration;

/// How often each of this many servers is counted. Servers that are compared are counted often enough to show that
/// counts differ.
pub fn times_of_counting(servers: u32) -> u32 {
    if servers > 1 { APART as u32 } else { 1 }
}

/// Says how long the load of this many servers will take. `counts` says whether allocations are counted and runtimes
/// are asked.
pub fn announcement(plan: &Plan, division: &Division, servers: u32, counts: bool) -> String {
    let (turns, turn) = (division.turns, in_words(division.turn(plan)));
    let each = match servers {
        0 | 1 => String::new(),
        _ => format!(" ({servers} servers in {turns} turns of {turn} each)"),
    };
    let behind = if counts {
        let [usual, slow] = time_of_counting(plan, times_of_counting(servers));
        let up_to =
            if slow > usual { format!(", or {} for a slow one", in_words(slow)) } else { String::new() };
        let of = if servers > 1 { " for each server" } else { "" };
        format!(
            "; then allocations are counted and the runtime is asked, about {} more{of}{up_to}",
            in_words(usual)
        )
    } else {
        String::new()
    };
    format!("{} of load{each}{behind}", in_words(Duration::from_nanos(plan.span()) * servers))
}
