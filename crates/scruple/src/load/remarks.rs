//! The remarks on a load.

use super::windows::{Loads, TargetServer};
use crate::progress::in_words;
use scruple_core::harmless_text::plain;
use scruple_core::plural;
use scruple_core::run::Run;
use scruple_core::subject::{Arm, Subject};
use scruple_measure::load::cost::memory_growth::FILLED;
use scruple_measure::load::{self, Doubt, Failure};

/// Adds remarks on how the requests were read.
pub fn note(run: &mut Run, sides: &[TargetServer]) {
    // The remarks of one server suffice, because all servers receive the same requests.
    for text in sides.iter().take(1).flat_map(|side| &side.notes) {
        run.warn("recording", text.clone());
    }
}

/// Adds a remark if a quota of processor time, given in cores, held up the load. A server that Scruple started shares
/// it.
pub fn remark_on_quota(run: &mut Run, cores: Option<f64>) {
    if let Some(cores) = cores {
        let text = format!(
            "the control group of Scruple may use {cores:.2} cores, and this quota held it up: the delays may not be the \
             server's; raise the quota (docker --cpus, cpu.max), or lower the rate"
        );
        run.warn("quota", text);
    }
}

/// Adds the remarks that a reader needs in order not to be misled.
pub fn remark(run: &mut Run, loads: &Loads) {
    let several = loads.servers.len() > 1;
    let division = loads.division;
    if several && division.turns < division.windows {
        let turn = in_words(division.turn(&loads.plan));
        let text = format!(
            "each server is loaded in turns of {turn}: what happens between its turns is not seen, a stall at the end of \
             a turn is cut off, and a queue can grow only for one turn. To see these, load a server by itself, and for \
             longer"
        );
        run.warn("turns", text);
    }
    for (index, server) in loads.servers.iter().enumerate() {
        let of = if several { format!("‘{}’: ", server.name) } else { String::new() };
        let all = server.pool.windows;
        // A turn may end during a pause that later answers would have made up for. Therefore this doubt is ignored if
        // the server kept up on the whole.
        let kept_up = !server.pool.fell_behind() && server.pool.counts.failures.of(Failure::Unsent) == 0;
        let is_shown = |(doubt, _): &&(Doubt, usize)| match doubt.code.as_str() {
            "rate-not-met" => !kept_up,
            // The requests of all turns count together.
            "few-requests" => false,
            _ => true,
        };
        let turns = loads.division.turns;
        let mut bounds = load::delay_bounds(&server.pool.times);
        for (doubt, times) in server.pool.doubts.iter().filter(is_shown) {
            // The text is that of the first turn with this doubt.
            let first = match *times > 1 && doubt.text.contains(char::is_numeric) {
                true => ", figures of the first",
                false => "",
            };
            let often = if turns > 1 { format!(" ({times} of {turns} turns{first})") } else { String::new() };
            let of_generator = ["generator-late", "generator-unpunctual"].contains(&doubt.code.as_str());
            let known = if of_generator && !doubt.voids { bounds.take() } else { None };
            let known = known.map_or(String::new(), |bounds| format!(". {bounds}"));
            run.warn(&doubt.code, format!("{of}{}{often}{known}", doubt.text));
        }
        if let Some(few) = load::few_requests(server.pool.times.response.count()) {
            run.warn(&few.code, format!("{of}{}", few.text));
        }
        if server.pool.unfinished > 0 {
            let sessions = plural::grouped(server.pool.unfinished, "session");
            let text = "unfinished at the end: requests in them are counted, as sessions they are not";
            run.warn("unfinished", format!("{of}{sessions} {text}"));
        }
        if server.void > 0 {
            run.warn(
                "void",
                format!("{of}{} of {all} windows are void, because the generator itself was late or starved: their latencies are set apart", server.void),
            );
        }
        if let Some(text) = server.costs_of_void_windows() {
            run.warn("void-costs", format!("{of}{text}"));
        }
        let growths = || server.sheet.iter().flat_map(|sheet| &sheet.growth);
        if let Some(leak) = growths().find(|growth| growth.is_leak()) {
            let text = "the server’s memory grows with the requests and does not stop: a leak, or a heap that still fills";
            // The objects of a collected heap have no sites.
            let sites = if leak.collected_by.is_none() {
                where_it_is_kept(run.arms.get(index))
            } else {
                String::new()
            };
            run.warn("leak", format!("{of}{text}{sites}"));
        } else if let Some(runtime) =
            growths().find(|growth| growth.is_undecided()).and_then(|growth| growth.collected_by.as_ref())
        {
            let text = format!(
                "the server’s memory grows with the requests: can’t tell whether it leaks, because a heap that is \
                 collected ({runtime}) also grows, until a collection. Load it for longer: if its memory becomes {FILLED} \
                 times as large and still grows, it leaks"
            );
            run.warn("memory-grows", format!("{of}{text}"));
        }
    }
}

/// Writes which command shows the code that keeps the memory of the server of an arm.
fn where_it_is_kept(arm: Option<&Arm>) -> String {
    let words = match arm.map(|arm| &arm.subject) {
        Some(Subject::Request { server, .. }) if !server.is_empty() => plain(&shell_words::join(server)),
        _ => "SERVER".to_owned(),
    };
    format!(
        ". Load it while ‘scruple inspect memory -i -- timeout -s INT 60 {words}’ runs, which then shows the code that keeps it"
    )
}
