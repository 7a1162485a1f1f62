//! Elements that all charts share: marks, grids, labels, arrows at the edge.

use super::scale::{Ruler, Tick, anchor};
use crate::render::page::LayerShape;
use maud::{Markup, html};

/// The ids of the marks that distinguish arms without colour, by the index of the arm.
const MARKS: [&str; 5] = ["m-c", "m-s", "m-t", "m-d", "m-v"];

/// The dash patterns of lines that distinguish arms without colour, by the index of the arm.
const DASHES: [&str; 5] = ["none", "7 3", "2 3", "9 3 2 3", "1 2"];

/// Writes a horizontal position from 0 to 1 as a percentage.
pub(crate) fn percent(place: f64) -> String {
    format!("{:.2}%", place.clamp(-0.05, 1.05) * 100.0)
}

/// Writes a vertical position in pixels.
pub(crate) fn pixels(y: f64) -> String {
    format!("{y:.1}")
}

/// Returns the class of an arm's colour. There are five colours; from the sixth arm on they repeat, with hollow marks.
pub(crate) fn class(arm: usize) -> String {
    format!("a{}", arm % 5)
}

/// Returns the dash pattern of an arm's line.
pub(crate) fn dash(arm: usize) -> &'static str {
    DASHES[arm % 5]
}

/// Writes the definitions of the marks, which a document needs once.
pub(crate) fn definitions() -> Markup {
    html! {
        defs {
            circle id="m-c" r="3.4" {}
            rect id="m-s" x="-3" y="-3" width="6" height="6" {}
            path id="m-t" d="M0-4 3.8 3H-3.8z" {}
            path id="m-d" d="M0-4.4 4.4 0 0 4.4-4.4 0z" {}
            path id="m-v" d="M0 4 3.8-3H-3.8z" {}
        }
    }
}

/// Draws the mark of an arm. It is hollow if the value is not used, and from the sixth arm on.
pub(crate) fn mark(x: &str, y: f64, arm: usize, solid: bool, title: Option<&str>) -> Markup {
    let solid = if solid && arm < 5 { " solid" } else { "" };
    html! {
        use href={ "#" (MARKS[arm % 5]) } class={ "mark " (class(arm)) (solid) } x=(x) y=(pixels(y)) {
            @if let Some(title) = title { title { (title) } }
        }
    }
}

/// Draws the sign of an arm in a legend: its mark on its line.
pub(crate) fn key(arm: usize) -> Markup {
    html! {
        svg class="key" width="26" height="12" aria-hidden="true" {
            line class={ "curve " (class(arm)) } x1="0" x2="26" y1="6" y2="6" stroke-width="1.8" stroke-dasharray=(dash(arm)) {}
            (mark("13", 6.0, arm, true, None))
        }
    }
}

/// Draws the sign of a layer in a legend, according to the layer's shape.
pub(crate) fn key_of(arm: usize, shape: LayerShape) -> Markup {
    let class = class(arm);
    html! {
        @match shape {
            LayerShape::Area => svg.key width="14" height="12" aria-hidden="true" { rect class={ "area " (class) } width="14" height="12" {} },
            LayerShape::Spots => svg.key width="14" height="12" aria-hidden="true" { path class={ "curve spots " (class) } d="M3 8h0M7 4h0M11 7h0" {} },
            LayerShape::Below => svg.key width="14" height="12" aria-hidden="true" { (mark("7", 6.0, arm, false, None)) },
            LayerShape::Line => svg.key width="26" height="12" aria-hidden="true" {
                line class={ "curve " (class) } x1="0" x2="26" y1="6" y2="6" stroke-dasharray=(dash(arm)) {}
            },
            _ => (key(arm)),
        }
    }
}

/// Draws vertical lines at the ticks.
pub(crate) fn columns(ticks: &[Tick], top: f64, bottom: f64) -> Markup {
    html! {
        @for tick in ticks {
            @let x = percent(tick.place);
            line class={ "grid" @if tick.minor { " minor" } } x1=(x) x2=(x) y1=(pixels(top)) y2=(pixels(bottom)) {}
        }
    }
}

/// Draws the labels of the ticks below a chart. The first and the last one stay inside the chart.
pub(crate) fn labels(ticks: &[Tick], y: f64) -> Markup {
    html! {
        @for tick in ticks {
            text class={ "tick" @if tick.minor { " minor" } } x=(percent(tick.place)) y=(pixels(y)) text-anchor=(anchor(tick.place)) {
                (tick.text)
            }
        }
    }
}

/// Draws horizontal lines at the ticks.
pub(crate) fn lines(ticks: &[Tick], y: impl Fn(f64) -> f64) -> Markup {
    html! {
        @for tick in ticks {
            @let y = pixels(y(tick.place));
            line class={ "grid" @if tick.minor { " minor" } } x1="0" x2="100%" y1=(y) y2=(y) {}
        }
    }
}

/// Draws the labels of horizontal lines inside the chart, at the left or the right end of each line.
pub(crate) fn side_labels(ticks: &[Tick], at_right: bool, y: impl Fn(f64) -> f64) -> Markup {
    let (x, anchor) = if at_right { ("100%", "end") } else { ("0", "start") };
    html! {
        @for tick in ticks {
            text class={ "tick halo" @if tick.minor { " minor" } } x=(x) y=(pixels(y(tick.place) - 3.0)) text-anchor=(anchor) {
                (tick.text)
            }
        }
    }
}

/// Draws an arrow at the edge that points towards a value outside the range.
pub(crate) fn beyond(x: &str, y: f64, off_scale: OffScale, arm: usize, title: Option<&str>) -> Markup {
    let path = match off_scale {
        OffScale::Right => "M-9-3.5-3 0-9 3.5",
        OffScale::Left => "M9-3.5 3 0 9 3.5",
        OffScale::Up => "M-4 9 0 3 4 9",
        OffScale::Down => "M-4-9 0-3 4-9",
    };
    html! {
        svg x=(x) y=(pixels(y)) overflow="visible" {
            path class={ "over " (class(arm)) } d=(path) { @if let Some(title) = title { title { (title) } } }
        }
    }
}

/// The direction of a value outside the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OffScale {
    Left,
    Right,
    Up,
    Down,
}

impl OffScale {
    /// Returns the direction of a value outside a horizontal range, or `None` if it is inside.
    pub(crate) fn along(ruler: &Ruler<'_>, value: f64) -> Option<OffScale> {
        match ruler.place(value) {
            place if place > 1.0 + 1e-9 => Some(OffScale::Right),
            place if place < -1e-9 => Some(OffScale::Left),
            _ => None,
        }
    }
}
