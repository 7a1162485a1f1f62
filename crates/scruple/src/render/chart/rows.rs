//! Rows over one axis: each shows every reading as a dot, and below the dots the estimate and its interval.

use super::frame::{OffScale, beyond, class, columns, key, labels, mark, percent, pixels};
use super::scale::{Ruler, anchor, window};
use super::thin;
use crate::render::page::typeset::typeset;
use crate::render::page::{AxisScale, ChartRow, Dot, RowChart, Tone};
use maud::{Markup, html};
use scruple_core::unit::{change, quantity};

/// The heights of a row with readings, and of one with an interval only, in pixels.
const HIGH: f64 = 64.0;
const LOW: f64 = 26.0;

/// The additional height of a row that says how many readings are outside the range.
const BEYOND: f64 = 14.0;

/// The smallest widths of a row, on a screen that is not narrow and on one that is, in pixels.
const WIDTHS: (f64, f64) = (480.0, 290.0);

/// With more readings than this in a row, its dots are small and faint.
const MANY: usize = 400;

/// Writes a value with its unit, or as a change if the axis is one of ratios.
fn text(rows: &RowChart, value: f64) -> String {
    match rows.axis.scale {
        AxisScale::Ratio => change(value),
        _ => quantity(value, &rows.axis.unit),
    }
}

/// Returns the axis over the range of all readings, or of all intervals if there are no readings.
fn ruler(rows: &RowChart) -> Ruler<'_> {
    let dots = || rows.rows.iter().flat_map(|row| &row.dots).map(|dot| dot.value);
    let ends = || rows.rows.iter().flat_map(|row| row.interval.iter().flat_map(|(low, high)| [*low, *high]));
    let middles = || rows.rows.iter().filter_map(|row| row.middle);
    let positive = |value: &f64| rows.axis.scale == AxisScale::Linear || *value > 0.0;
    let mut range = match dots().next() {
        Some(_) => window(dots().filter(positive)),
        None => window(ends().chain(middles()).filter(positive)),
    };
    let marked = rows.shade.iter().flat_map(|shade| {
        let room = (shade.high - shade.low) / 4.0;
        [shade.low - room, shade.high + room]
    });
    // The range always includes the estimate, even if it is outside the range of the readings.
    for value in middles().chain(marked).chain(rows.zero).filter(positive) {
        range = (range.0.min(value), range.1.max(value));
    }
    Ruler::new(&rows.axis, range, (0.03, 0.03))
}

fn height(row: &ChartRow, ruler: &Ruler<'_>) -> f64 {
    match row.dots.is_empty() {
        true => LOW,
        false if row.dots.iter().all(|dot| ruler.shows(dot.value)) => HIGH,
        false => HIGH + BEYOND,
    }
}

/// Draws the rows for a page. Names are at the left and figures at the right; on narrow screens both are above the row.
pub(crate) fn draw(rows: &RowChart, label: &str, tooltips: bool) -> Markup {
    let ruler = ruler(rows);
    let ticks = ruler.ticks_beside(WIDTHS);
    html! {
        div.rows role="group" aria-label=(label) {
            @if let Some(shade) = rows.shade.as_ref().filter(|shade| !shade.text.is_empty()) {
                div.foot { svg.chart width="100%" height="16" aria-hidden="true" {
                    @let place = ruler.place((shade.low * shade.high).abs().sqrt());
                    text.tick x=(percent(place)) y="12" text-anchor=(anchor(place)) { (shade.text) }
                } }
            }
            @for row in &rows.rows {
                div.r {
                    div.what { (key(row.arm)) (row.name) }
                    div.plot {
                        svg.chart width="100%" height=(height(row, &ruler)) role="img" aria-label=(describe_row(rows, row)) {
                            (body(rows, row, &ruler, tooltips))
                        }
                    }
                    div.fig {
                        @if !row.figure.is_empty() { b { (typeset(&row.figure)) } " " }
                        @if !row.interval_text.is_empty() { small { (typeset(&row.interval_text)) } }
                        @if !row.tail.text.is_empty() { div class=(tone(row.tail.tone)) { (typeset(&row.tail.text)) } }
                    }
                }
            }
            div.foot { svg.chart width="100%" height="22" aria-hidden="true" {
                (columns(&ticks, 0.0, 4.0)) (labels(&ticks, 18.0))
            } }
        }
    }
}

/// Draws the rows as a separate picture with names above them, and returns its height in pixels.
pub(crate) fn picture(rows: &RowChart) -> (Markup, f64) {
    let ruler = ruler(rows);
    let ticks = ruler.ticks_beside(WIDTHS);
    let mut at = 0.0;
    let mut places = Vec::new();
    for row in &rows.rows {
        places.push(at + 18.0);
        at += 18.0 + height(row, &ruler) + 8.0;
    }
    let markup = html! {
        @for (row, y) in rows.rows.iter().zip(&places) {
            svg x="0" y=(pixels(y - 14.0)) width="26" height="12" overflow="visible" { (key(row.arm)) }
            text x="34" y=(pixels(y - 5.0)) { (row.name) }
            text x="100%" y=(pixels(y - 5.0)) text-anchor="end" { (row.figure) " " (row.interval_text) "  " (row.tail.text) }
            svg x="0" y=(pixels(*y)) width="100%" height=(height(row, &ruler)) overflow="visible" { (body(rows, row, &ruler, true)) }
        }
        (labels(&ticks, at + 12.0))
    };
    (markup, at + 22.0)
}

/// Returns the style class of a tone.
pub(crate) fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Worse => "worse",
        Tone::Better => "better",
        Tone::Same => "same",
        Tone::Open => "open",
    }
}

/// Describes in words what a row shows.
fn describe_row(rows: &RowChart, row: &ChartRow) -> String {
    let mut parts = vec![row.name.clone()];
    if !row.dots.is_empty() {
        parts.push(format!("{} readings", row.dots.len()));
    }
    let apart = row.dots.iter().filter(|dot| dot.apart).count();
    if apart > 0 {
        parts.push(format!("{apart} of them in disturbed blocks, which do not count"));
    }
    if let Some(middle) = row.middle {
        parts.push(text(rows, middle));
    }
    if let Some((low, high)) = row.interval {
        parts.push(format!("interval {} to {}", text(rows, low), text(rows, high)));
    }
    parts.push(row.tail.text.clone());
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

fn body(rows: &RowChart, row: &ChartRow, ruler: &Ruler<'_>, tooltips: bool) -> Markup {
    let high = height(row, ruler);
    let ticks = ruler.ticks_beside(WIDTHS);
    html! {
        rect.band width="100%" height=(high) rx="4" {}
        @if let Some(shade) = &rows.shade {
            @let (low, wide) = (ruler.place(shade.low).max(0.0), ruler.place(shade.high).min(1.0));
            rect.margin x=(percent(low)) width=(percent((wide - low).max(0.0))) height=(high) {}
        }
        (columns(&ticks, 0.0, high))
        @if let Some(zero) = rows.zero {
            @let x = percent(ruler.place(zero));
            line.zero x1=(x) x2=(x) y1="0" y2=(high) {}
        }
        (dots(rows, row, ruler, tooltips))
        (estimate(rows, row, ruler, if row.dots.is_empty() { high / 2.0 } else { HIGH - 10.0 }))
    }
}

/// Draws the readings, the first one at the top, and the numbers of readings outside the range.
fn dots(rows: &RowChart, row: &ChartRow, ruler: &Ruler<'_>, tooltips: bool) -> Markup {
    let last = row.dots.len().saturating_sub(1).max(1) as f64;
    let y = |index: usize| 7.0 + (HIGH - 28.0) * index as f64 / last;
    let many = row.dots.len() > MANY;
    let title = |block: u32, value: f64| format!("block {}: {}", block + 1, text(rows, value));
    let values: Vec<f64> = row.dots.iter().map(|dot| dot.value).collect();
    let drawn: Vec<(usize, &Dot)> = thin::drawn(&values).into_iter().map(|i| (i, &row.dots[i])).collect();
    let shown = drawn.iter().filter(|(_, dot)| ruler.shows(dot.value));
    let beyond_dots =
        drawn.iter().filter_map(|(i, dot)| Some((*i, *dot, OffScale::along(ruler, dot.value)?)));
    let far = |off_scale: OffScale| {
        values.iter().copied().filter(move |value| OffScale::along(ruler, *value) == Some(off_scale))
    };
    let (above, below) = (far(OffScale::Right), far(OffScale::Left));
    let (most, least) =
        (above.clone().fold(f64::NEG_INFINITY, f64::max), below.clone().fold(f64::INFINITY, f64::min));
    html! {
        g class={ "dots " (class(row.arm)) @if many { " many" } } {
            @for (index, dot) in shown {
                circle class=[dot.apart.then_some("apart")] cx=(percent(ruler.place(dot.value))) cy=(pixels(y(*index))) r=(if many { "1.6" } else { "3" }) {
                    @if tooltips {
                        title { (title(dot.block, dot.value)) @if dot.apart { ", disturbed: does not count" } }
                    }
                }
            }
        }
        @for (index, dot, off_scale) in beyond_dots {
            @let x = if off_scale == OffScale::Right { "100%" } else { "0" };
            (beyond(x, y(index), off_scale, row.arm, Some(&title(dot.block, dot.value))))
        }
        @if above.clone().count() > 0 {
            text.tick x="99.5%" y=(pixels(HIGH + BEYOND - 5.0)) text-anchor="end" { (above.count()) " beyond, up to " (text(rows, most)) }
        }
        @if below.clone().count() > 0 {
            text.tick x="0.5%" y=(pixels(HIGH + BEYOND - 5.0)) { (below.count()) " beyond, down to " (text(rows, least)) }
        }
    }
}

/// Draws the estimate and its interval.
fn estimate(rows: &RowChart, row: &ChartRow, ruler: &Ruler<'_>, y: f64) -> Markup {
    let class = class(row.arm);
    let at = pixels(y);
    html! {
        @if let Some((low, high)) = row.interval {
            @let (left, right) = (ruler.place(low).clamp(0.0, 1.0), ruler.place(high).clamp(0.0, 1.0));
            line class={ "whisker " (class) } x1=(percent(left)) x2=(percent(right)) y1=(at) y2=(at) {}
            @for (end, place) in [(low, left), (high, right)] {
                @match OffScale::along(ruler, end) {
                    None => line class={ "whisker " (class) } x1=(percent(place)) x2=(percent(place)) y1=(pixels(y - 4.0)) y2=(pixels(y + 4.0)) {},
                    Some(off_scale) => (beyond(if off_scale == OffScale::Right { "100%" } else { "0" }, y, off_scale, row.arm, Some(&text(rows, end)))),
                }
            }
        }
        @if let Some(middle) = row.middle {
            (mark(&percent(ruler.place(middle).clamp(0.0, 1.0)), y, row.arm, true, Some(&text(rows, middle))))
        }
    }
}
