//! Heat maps: fields over two axes, drawn as one path for each shade.

use super::frame::{columns, labels, lines, pixels, side_labels};
use super::scale::Ruler;
use crate::render::page::Heat;
use maud::{Markup, html};
use std::fmt::Write as _;

const TOP: f64 = 10.0;
const BOTTOM: f64 = 200.0;

/// The width of the inner picture, which is stretched to the chart, in its own units.
const WIDTH: f64 = 1000.0;

/// The smallest width of the chart, in pixels.
const NARROW: f64 = 240.0;

/// Draws the heat map for a page.
pub(crate) fn draw(heat: &Heat, label: &str) -> Markup {
    html! {
        svg.chart width="100%" height=(BOTTOM + 20.0) role="img" aria-label=(label) { (body(heat)) }
    }
}

/// Draws the heat map as a separate picture, and returns its height in pixels.
pub(crate) fn picture(heat: &Heat) -> (Markup, f64) {
    (body(heat), BOTTOM + 40.0)
}

fn body(heat: &Heat) -> Markup {
    if heat.fields.is_empty() {
        return html! {};
    }
    let (across, up) = heat.ends();
    // The space at the left is for the labels of the vertical axis.
    let (x, y) = (Ruler::new(&heat.x, across, (0.13, 0.0)), Ruler::new(&heat.y, up, (0.0, 0.0)));
    let height = BOTTOM - TOP;
    let (ticks, heights) = (x.ticks_beside((NARROW, NARROW)), y.ticks_above_each_other(height));
    let place = |share: f64| BOTTOM - share * height;
    let mut paths = vec![String::new(); Heat::SHADES];
    for field in &heat.fields {
        let (left, right) = (x.place(field.across.0) * WIDTH, x.place(field.across.1) * WIDTH);
        let (top, low) = ((1.0 - y.place(field.up.1)) * height, (1.0 - y.place(field.up.0)) * height);
        let (wide, tall) = (right - left, low - top);
        let path = &mut paths[heat.shade(field.count) - 1];
        let _ = write!(path, "M{left:.1} {top:.1}h{wide:.1}v{tall:.1}h-{wide:.1}z");
    }
    html! {
        (columns(&ticks, TOP, BOTTOM))
        (lines(&heights, place))
        svg x="0" y=(pixels(TOP)) width="100%" height=(pixels(height)) viewBox={ "0 0 " (WIDTH) " " (height) } preserveAspectRatio="none" shape-rendering="crispEdges" {
            @for (shade, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
                path class={ "heat h" (shade + 1) } d=(path) {}
            }
        }
        (labels(&ticks, BOTTOM + 15.0))
        (side_labels(&heights, false, place))
    }
}
