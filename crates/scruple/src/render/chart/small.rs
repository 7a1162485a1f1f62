//! A sparkline as a picture, small enough for a cell of a table.

use maud::{Markup, html};
use std::fmt::Write as _;

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 22.0;

/// Draws the values, on a logarithmic scale if all are positive. The scale spans at least a tenth of the values, as in
/// other charts.
pub(crate) fn line(points: &[(f64, f64)]) -> Markup {
    let positive = points.iter().all(|(_, value)| *value > 0.0);
    let transformed = |value: f64| if positive { value.ln() } else { value };
    let range = |range: (f64, f64), value: f64| (range.0.min(value), range.1.max(value));
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    let across = points.iter().map(|(x, _)| *x).fold(none, range);
    let (low, high) = points.iter().map(|(_, y)| transformed(*y)).fold(none, range);
    let least = if positive { 1.1_f64.ln() } else { 0.1 * low.abs().max(high.abs()) };
    let missing = (least - (high - low)).max(0.0) / 2.0;
    let (low, high) = (low - missing, high + missing);
    let share = |value: f64, low: f64, high: f64| if high > low { (value - low) / (high - low) } else { 0.5 };
    let mut path = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let x = 1.0 + share(*x, across.0, across.1) * (WIDTH - 2.0);
        let y = 2.0 + (1.0 - share(transformed(*y), low, high)) * (HEIGHT - 4.0);
        let _ = write!(path, "{}{x:.0} {y:.1}", if index == 0 { 'M' } else { 'L' });
    }
    html! {
        svg.small width=(WIDTH) height=(HEIGHT) aria-hidden="true" { path class="curve a1" d=(path) {} }
    }
}
