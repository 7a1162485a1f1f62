//! The intervals of counts that fit a line exactly by chance. An event of rare requests, such as a leak in one of a
//! hundred, may occur once more or once less in a window, depending on where the window begins.

use super::cost_row::CostRow;
use super::window::Window;
use scruple_core::per_request::Bounds;
use scruple_core::unit::Unit;
use scruple_stats::Interval;

/// Widens intervals without width by one event in the windows, unless the cost is a whole number: the event may then
/// happen at each request.
pub(super) fn allow_for_one_more(rows: &mut [CostRow], windows: &[Window]) {
    let lengths = windows.iter().map(|window| window.requests);
    let Some((least, most)) = lengths.clone().min().zip(lengths.max()) else { return };
    let each = |key: &str| {
        let row = rows.iter().find(|row| row.key == key)?;
        Some(row.cost.as_ref().ok()?.each.value)
    };
    // The size of one block, where blocks are allocated.
    let block = each("malloc.bytes").zip(each("malloc.count")).map(|(bytes, blocks)| bytes / blocks);
    for row in rows {
        let one = match (&row.unit, block) {
            (Unit::Count, _) => 1.0,
            (Unit::Bytes, Some(block)) if row.key == "malloc.bytes" && block.is_finite() => block,
            _ => continue,
        };
        if let Ok(cost) = &mut row.cost {
            cost.each = widened(cost.each, one / (most - least).max(1) as f64);
        }
    }
}

/// The bounds, wider by `half` on both sides if they are exact and no whole number.
fn widened(each: Bounds, half: f64) -> Bounds {
    // The precision of the sums of a regression.
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    match each.interval {
        Some(Interval { low, high, level }) if near(low, high) && !near(each.value, each.value.round()) => {
            Bounds { interval: Some(Interval { low: low - half, high: high + half, level }), ..each }
        }
        _ => each,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_core::per_request::fit;

    #[test]
    fn an_event_at_every_hundredth_request_is_within_the_interval_of_a_line_that_fits_by_chance() {
        // Windows of 125, 375 and 250 requests, of which each hundredth allocates: 2, 4 and 3 times.
        let found = fit(&[125.0, 375.0, 250.0], &[2.0, 4.0, 3.0], 0.95).expect("a line").each;
        assert!((found.value - 0.008).abs() < 1e-12, "{found:?}");
        let interval = widened(found, 1.0 / 250.0).interval.expect("three windows");
        assert!(interval.low < 0.0041 && interval.high > 0.0119, "{interval:?}");
        // Three allocations at each request are exact.
        let found = fit(&[125.0, 375.0, 250.0], &[376.0, 1126.0, 751.0], 0.95).expect("a line").each;
        assert_eq!(widened(found, 1.0 / 250.0), found);
        // The interval of a line that does not fit is kept.
        let found = fit(&[125.0, 375.0, 250.0], &[2.0, 4.0, 4.0], 0.95).expect("a line").each;
        assert_eq!(widened(found, 1.0 / 250.0), found);
    }
}
