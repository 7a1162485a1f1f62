//! Flame graphs: boxes above each other, as wide as their shares of the whole.

use super::frame::{percent, pixels};
use super::rows::tone;
use crate::render::page::{Flame, Stacked};
use maud::{Markup, html};

/// The height of a box with the gap above it, in pixels.
const ROW: f64 = 20.0;
/// The smallest share of the width whose box has a name.
const NAMED: f64 = 0.02;

/// Draws the graph for a page.
pub(crate) fn draw(flame: &Flame, label: &str) -> Markup {
    html! {
        svg.chart width="100%" height=(pixels(height(flame))) role="img" aria-label=(label) { (body(flame)) }
    }
}

/// Draws the graph as a separate picture, and returns its height in pixels.
pub(crate) fn picture(flame: &Flame) -> (Markup, f64) {
    (body(flame), height(flame))
}

fn height(flame: &Flame) -> f64 {
    ROW * (flame.boxes.iter().map(|one| one.level).max().unwrap_or(0) + 1) as f64
}

/// A box is a picture of its own, which cuts off the part of its name that has no room.
fn body(flame: &Flame) -> Markup {
    let height = height(flame);
    let top = |one: &Stacked| height - ROW * (one.level + 1) as f64;
    html! {
        @for one in &flame.boxes {
            svg x=(percent(one.from)) y=(pixels(top(one))) width=(percent(one.wide)) height=(pixels(ROW - 1.0)) {
                title { (one.name) ": " (one.about) }
                rect class={ "flame " (tone(one.tone)) } width="100%" height="100%" {}
                @if one.wide >= NAMED { text x="4" y="14" { (one.name) } }
            }
        }
    }
}
