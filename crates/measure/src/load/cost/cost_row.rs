//! The cost of a request by one counter.

use super::window::{LENGTHS, LEVEL, Window};
use scruple_core::metric::Quality;
use scruple_core::per_request::{self, PerRequest};
use scruple_core::sample::Reading;
use scruple_core::unit::Unit;

/// The cost of a request by one counter.
#[derive(Clone, Debug, PartialEq)]
pub struct CostRow {
    /// The metric's key.
    pub key: String,
    /// The unit of the counter.
    pub unit: Unit,
    /// The quality of its readings.
    pub quality: Quality,
    /// The instrument that reads the counter.
    pub source: String,
    /// The counter's growth per second without requests, which was subtracted from the other figures.
    pub idle: f64,
    /// The cost per request and the cost per window, or why they are not known.
    pub cost: Result<PerRequest, String>,
}

/// The row of the counter that `reading` describes. `idle` is the growth of each counter per second without load.
pub(super) fn row(reading: &Reading, windows: &[Window], idle: &[(String, f64)]) -> CostRow {
    let of =
        |list: &[(String, f64)]| list.iter().find(|(key, _)| *key == reading.key).map(|(_, value)| *value);
    let idle = of(idle).unwrap_or(0.0);
    let (mut planned, mut requests, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    // A window that is not counted by itself belongs to the next one.
    let mut length = 0;
    for (window, parts) in windows.iter().zip(LENGTHS.into_iter().cycle()) {
        length += parts;
        if let Some(growth) = of(&window.grown) {
            planned.push(std::mem::take(&mut length) as f64);
            requests.push(window.requests as f64);
            costs.push(growth - idle * window.elapsed as f64 / 1e9);
        }
    }
    let cost = match &reading.value {
        Err(why) => Err(why.clone()),
        Ok(_) => per_request::fit_planned(&planned, &requests, &costs, LEVEL)
            .ok_or_else(|| "the windows do not differ in their requests".to_owned()),
    };
    CostRow {
        key: reading.key.clone(),
        unit: reading.unit.clone(),
        quality: reading.quality,
        source: reading.source.clone(),
        idle,
        cost,
    }
}

/// Limits the cost to at least 0, since a counter only grows, though the regression may give a negative slope. Without
/// an interval, a negative slope says nothing.
pub(super) fn at_least_nothing(row: &mut CostRow) {
    let Ok(cost) = &mut row.cost else { return };
    match cost.each.interval {
        Some(interval) if interval.high < 0.0 => {
            row.cost = Err("the server did more without requests than under load".to_owned());
        }
        None if cost.each.value < 0.0 => {
            row.cost = Err("the window with more requests cost less than the other".to_owned());
        }
        _ => cost.each = cost.each.at_least(0.0),
    }
}
