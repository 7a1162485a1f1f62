//! How precisely user and system time are known. The kernel knows the processor time exactly. At each tick it notes in
//! which mode a thread is, and it divides the processor time in the proportion of these ticks. That is a usable
//! estimate only if ticks fall into requests at random.

use super::cost_row::CostRow;
use super::window::Window;
use scruple_core::per_request::Bounds;

/// The fewest ticks per second of processor time that a Linux kernel is built with.
const TICKS_PER_SECOND: f64 = 100.0;

/// The metrics of the division.
pub const KEYS: [&str; 2] = ["time.user", "time.sys"];

/// Why user and system time are not known if requests are due at even intervals: a server that handles 1000 requests
/// per second is in the same state at each of 250 ticks per second.
pub const TICKS_IN_STEP: &str = "the kernel divides processor time at its clock ticks, which fall into the same \
                                 moments of requests at even intervals; --rate poisson:RATE avoids this";

/// Widens the intervals of user and system time by the uncertainty that the number of ticks leaves, or marks them as
/// absent if that is more than the whole processor time. Neither time is larger than the whole.
pub(super) fn divide(rows: &mut [CostRow], windows: &[Window]) {
    let each = |row: &CostRow| row.cost.as_ref().ok().map(|cost| cost.each);
    let Some(whole) = rows.iter().find(|row| row.key == "time.cpu").and_then(each) else { return };
    let total = |wanted: &str| {
        let grown = windows.iter().flat_map(|window| &window.grown);
        grown.filter(|(key, _)| key == wanted).map(|(_, growth)| growth).sum::<f64>()
    };
    let all = total("time.cpu");
    for row in divided(rows) {
        let vague = |part: Bounds| {
            part.value < 0.0 || part.interval.is_none_or(|i| i.high - i.low > 2.0 * whole.value.abs())
        };
        let share = (total(&row.key) / all).clamp(0.0, 1.0);
        if each(row).is_some_and(vague) {
            row.cost =
                Err("the kernel counts it in ticks, too few of which fell into the windows".to_owned());
        } else if let Ok(cost) = &mut row.cost {
            cost.each = cost.each.divided_by_ticks(whole, share, all / 1e9 * TICKS_PER_SECOND).at_most(whole);
        }
    }
}

/// Marks user and system time as absent, because ticks were in step with the requests.
pub(super) fn withdraw(rows: &mut [CostRow]) {
    for row in divided(rows) {
        row.cost = Err(TICKS_IN_STEP.to_owned());
    }
}

fn divided(rows: &mut [CostRow]) -> impl Iterator<Item = &mut CostRow> {
    rows.iter_mut().filter(|row| KEYS.contains(&row.key.as_str()))
}
