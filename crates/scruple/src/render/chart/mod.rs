//! Draws the charts of pages as SVG.
//!
//! A chart has no view box: its positions are percentages horizontally and pixels vertically. Therefore text and marks
//! keep their size at every width without a script. Only curves are stretched, in an inner picture whose strokes keep
//! their width.

pub mod flame;
pub mod frame;
pub mod heat;
pub mod plot;
pub mod rows;
pub mod scale;
pub mod small;
pub(crate) mod thin;

use super::page::{Chart, Drawn};
use maud::{Markup, PreEscaped, html};

/// The largest number of marks on a page for which marks have tooltips.
pub const MOST_TOOLTIPS: usize = 2000;

/// Draws a chart for a page.
pub(crate) fn draw(chart: &Chart, tooltips: bool) -> Markup {
    match &chart.drawn {
        Drawn::Rows(rows) => rows::draw(rows, &chart.label, tooltips),
        Drawn::Plot(plot) => plot::draw(plot, &chart.label, tooltips),
        Drawn::Heat(heat) => heat::draw(heat, &chart.label),
        Drawn::Flame(flame) => flame::draw(flame, &chart.label),
    }
}

/// Returns the number of marks of a chart that may have tooltips.
pub(crate) fn marks(chart: &Chart) -> usize {
    match &chart.drawn {
        Drawn::Rows(rows) => rows.rows.iter().map(|row| row.dots.len()).sum(),
        Drawn::Plot(plot) => plot.layers.iter().map(plot::marks).sum(),
        Drawn::Heat(_) | Drawn::Flame(_) => 0,
    }
}

/// Draws charts below each other as a separate picture, which follows the reader's choice of light or dark.
pub(crate) fn picture<'a>(charts: impl IntoIterator<Item = &'a Chart>) -> String {
    const WIDTH: u32 = 860;
    const HEAD: f64 = 36.0;
    let mut height = 0.0;
    let mut labels = Vec::new();
    let mut drawn: Vec<(&Chart, f64, f64, Markup)> = Vec::new();
    for chart in charts {
        let (body, tall) = match &chart.drawn {
            Drawn::Rows(rows) => rows::picture(rows),
            Drawn::Plot(plot) => plot::picture(plot),
            Drawn::Heat(heat) => heat::picture(heat),
            Drawn::Flame(flame) => flame::picture(flame),
        };
        labels.push(chart.label.as_str());
        drawn.push((chart, height, tall, body));
        height += HEAD + tall + 8.0;
    }
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" class="chart alone" width=(WIDTH) height=(height) role="img" aria-label=(labels.join(". ")) {
            style { (PreEscaped(super::colours::STYLE_SHEET)) }
            (frame::definitions())
            rect class="paper" width="100%" height="100%" {}
            @for (chart, top, tall, body) in drawn {
                text class="title" x="16" y=(top + 24.0) { (chart.title) }
                @if let Some(note) = thin::note(chart) {
                    text x=(WIDTH - 16) y=(top + 24.0) text-anchor="end" { (note) }
                }
                svg x="16" y=(top + HEAD) width=(WIDTH - 32) height=(tall + 8.0) overflow="visible" { (body) }
            }
        }
    };
    picture.into_string() + "\n"
}
