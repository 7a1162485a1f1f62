//! The content of the charts of a page as CSV, with one row for each reading, point or interval.

use super::{Chart, Drawn, Page};
use crate::render::csv::quoted;
use std::fmt::Write as _;

/// Writes the rows of every chart.
pub(crate) fn text(page: &Page) -> String {
    let mut out = String::from("chart,series,kind,x,y,low,high,counts\n");
    for chart in page.charts() {
        rows(chart, &mut out);
    }
    out
}

fn rows(chart: &Chart, out: &mut String) {
    let number = |value: Option<f64>| {
        value.filter(|value| value.is_finite()).map_or(String::new(), |value| value.to_string())
    };
    let mut line = |series: &str,
                    kind: &str,
                    x: Option<f64>,
                    y: Option<f64>,
                    ends: (Option<f64>, Option<f64>),
                    counts: bool| {
        let (x, y, low, high) = (number(x), number(y), number(ends.0), number(ends.1));
        let (chart, series) = (quoted(&chart.name), quoted(series));
        let _ = writeln!(
            out,
            "{chart},{series},{kind},{x},{y},{low},{high},{}",
            if counts { "yes" } else { "no" }
        );
    };
    match &chart.drawn {
        Drawn::Rows(rows) => {
            for row in &rows.rows {
                for dot in &row.dots {
                    line(
                        &row.name,
                        "reading",
                        Some(f64::from(dot.block)),
                        Some(dot.value),
                        (None, None),
                        !dot.apart,
                    );
                }
                let ends = row.interval.map_or((None, None), |(low, high)| (Some(low), Some(high)));
                line(&row.name, "estimate", None, row.middle, ends, true);
            }
        }
        Drawn::Heat(heat) => {
            for field in &heat.fields {
                let up = (Some(field.up.0), Some(field.up.1));
                line("", "field", Some(field.across.0), Some(field.count), up, true);
            }
        }
        Drawn::Flame(flame) => {
            for one in &flame.boxes {
                let ends = (Some(one.from), Some(one.from + one.wide));
                line(&one.name, "box", None, Some(one.level as f64), ends, true);
            }
        }
        Drawn::Plot(plot) => {
            for layer in &plot.layers {
                for point in layer.pieces.iter().flatten() {
                    line(&layer.name, "point", Some(point.x), Some(point.y), (point.low, None), !point.apart);
                }
            }
        }
    }
}
