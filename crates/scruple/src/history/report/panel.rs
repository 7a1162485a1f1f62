//! One panel of the chart: a series with all its data, or three on separate axes.

use super::axis::Axis;
use super::chart::{Columns, Options, class};
use super::svg_text::label;
use super::{Page, csv, words};
use crate::show::svg::cut;
use scruple_core::history::{Point, Series};
use std::fmt::Write as _;

/// Above this many readings in all panels, they are not drawn individually.
const DOTS: usize = 20_000;

/// The metrics of each of the three axes of a combined panel.
const THREE: [&[&str]; 3] = [&csv::ALLOCATIONS, &csv::MEMORY, &csv::TIME];

/// What a panel shows.
pub(crate) struct Frame<'a> {
    /// Its series: one, or up to three that share it.
    pub(crate) series: Vec<&'a Series>,
    /// Whether there are few enough readings to draw them individually.
    dots: bool,
    options: Options,
}

/// The panels of a chart.
pub(crate) fn frames<'a>(page: &Page<'a>, options: Options) -> Vec<Frame<'a>> {
    let drawn = || page.shown.iter().copied().filter(|series| !series.points.is_empty());
    if !options.combined {
        let points = drawn().flat_map(|series| &series.points);
        let dots = points.map(|point| point.readings.len()).sum::<usize>() <= DOTS;
        return drawn().map(|series| Frame { series: vec![series], dots, options }).collect();
    }
    let choose = |subject: &str, keys: &[&str]| {
        // The three axes do not depend on which metrics tables show.
        let of = |key: &&str| {
            let fits = |one: &&Series| {
                one.subject == subject
                    && one.metric == *key
                    && one.points.iter().any(|point| point.least > 0.0)
            };
            page.judgement.series.iter().find(fits)
        };
        keys.iter().find_map(of)
    };
    let frame = |subject: &str| Frame {
        series: THREE.iter().filter_map(|keys| choose(subject, keys)).collect(),
        dots: false,
        options,
    };
    page.subjects().into_iter().map(frame).filter(|frame| !frame.series.is_empty()).collect()
}

/// Draws a panel between two heights.
pub(crate) fn draw(
    page: &Page<'_>,
    frame: &Frame<'_>,
    columns: &Columns,
    (top, bottom): (f64, f64),
    out: &mut String,
) {
    let _ = writeln!(
        out,
        "<rect class=\"frame\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
        columns.left,
        columns.right - columns.left,
        bottom - top
    );
    match frame.options.combined {
        true => three(frame, columns, (top, bottom), out),
        false => one(page, frame, columns, (top, bottom), out),
    }
}

/// One series: levels, intervals, medians, least readings, all readings.
fn one(page: &Page<'_>, frame: &Frame<'_>, columns: &Columns, (top, bottom): (f64, f64), out: &mut String) {
    let Some(series) = frame.series.first() else { return };
    let points = &series.points;
    let drawn = |point: &Point| {
        let bounds = point.interval.map_or([point.value; 2], |interval| [interval.low, interval.high]);
        let most = point.readings.iter().copied().filter(|_| frame.dots).fold(point.value, f64::max);
        [point.value, point.least, bounds[0], bounds[1], most]
    };
    let Some(axis) = Axis::of(points.iter().flat_map(drawn), !frame.options.linear, (top, bottom)) else {
        return;
    };
    let effect = series.whole.as_ref().and_then(|whole| words::whole(series, whole));
    let told = effect.map_or(String::new(), |(from, to, effect)| format!("{from} → {to}, {effect}"));
    let scale = if !axis.logarithmic && !frame.options.linear {
        " (linear, since not all values are above zero)"
    } else {
        ""
    };
    let name = format!("{}{scale}", words::series(series));
    let room = columns.right - columns.left - 6.7 * told.chars().count() as f64 - 12.0;
    out.push_str(&label("name", (columns.left, top - 6.0), &cut(&name, room)));
    out.push_str(&label("told", (columns.right, top - 6.0), &told));
    out.push('\n');
    grid(&axis, series, columns, out);
    for event in &page.events {
        if event.changes.iter().any(|(one, _)| std::ptr::eq(*one, *series)) {
            let x = columns.edge(event.at);
            let class = class(event);
            let _ = writeln!(
                out,
                "<line class=\"turn {class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/>"
            );
        }
    }
    out.push_str("<g class=\"c1\">");
    band(points, &axis, columns, out);
    if frame.dots {
        dots(points, &axis, columns, out);
    }
    if points.iter().any(|point| point.least < point.value) {
        line("least", points.iter().map(|point| (point.version, point.least)), &axis, columns, out);
    }
    line("median", points.iter().map(|point| (point.version, point.value)), &axis, columns, out);
    levels(series, &axis, columns, out);
    if columns.step() >= 5.0 {
        for point in points.iter().filter(|point| point.value.is_finite()) {
            let class = if point.copied { "copy" } else { "mark" };
            let (x, y) = (columns.x(point.version), axis.y(point.value));
            let _ = write!(out, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.4\"/>");
        }
    }
    out.push_str("</g>\n");
}

/// Allocations, memory and time, each on its own axis with its own mark.
fn three(frame: &Frame<'_>, columns: &Columns, (top, bottom): (f64, f64), out: &mut String) {
    let mut beside = columns.left;
    let mut ruled = None;
    if let Some(first) = frame.series.first() {
        let name = words::plain(&first.subject);
        out.push_str(&label("name", (beside, top - 6.0), &cut(&name, 300.0)));
        out.push('\n');
        beside += 6.7 * name.chars().count().min(44) as f64 + 24.0;
    }
    for series in &frame.series {
        // The position and colour of an axis depend on its metric, whether or not the others exist.
        let place = THREE.iter().position(|keys| keys.contains(&series.metric.as_str())).unwrap_or(0);
        let values = series.points.iter().map(|point| point.least);
        let Some(axis) = Axis::of(values, !frame.options.linear, (top, bottom)) else { continue };
        ruled = ruled.or(Some(place));
        let class = ["c1", "c2", "c3"][place];
        let mark = ["m0 -3.4a3.4 3.4 0 1 0 .01 0z", "m-3 -3h6v6h-6z", "m0 -4l4 7h-8z"][place];
        let _ = write!(out, "<g class=\"{class}\">");
        let at = match place {
            0 => columns.left - 6.0,
            other => columns.right + 8.0 + 72.0 * (other - 1) as f64,
        };
        for (value, text) in axis.ticks(&series.unit) {
            let y = axis.y(value);
            if ruled == Some(place) {
                let (left, right) = (columns.left, columns.right);
                let _ =
                    write!(out, "<path class=\"line\" fill=\"none\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>");
            }
            let class = if place == 0 { "hue told" } else { "hue" };
            out.push_str(&label(class, (at, y + 4.0), &text));
        }
        let metric = words::plain(&crate::show::title(&series.metric));
        let _ = write!(
            out,
            "<path class=\"mark\" d=\"M{beside:.1} {:.1}{mark}\"/>{}",
            top - 10.0,
            label("hue", (beside + 10.0, top - 6.0), &metric)
        );
        beside += 6.7 * metric.chars().count() as f64 + 34.0;
        line("median", series.points.iter().map(|point| (point.version, point.least)), &axis, columns, out);
        if columns.step() >= 5.0 {
            let mut path = String::new();
            for point in &series.points {
                let _ = write!(path, "M{:.1} {:.1}{mark}", columns.x(point.version), axis.y(point.least));
            }
            let _ = write!(out, "<path class=\"mark\" d=\"{path}\"/>");
        }
        out.push_str("</g>\n");
    }
}

fn grid(axis: &Axis, series: &Series, columns: &Columns, out: &mut String) {
    for (value, text) in axis.ticks(&series.unit) {
        let y = axis.y(value);
        let _ = writeln!(
            out,
            "<line class=\"line\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             {}",
            columns.left,
            columns.right,
            label("told", (columns.left - 6.0, y + 4.0), &text)
        );
    }
}

/// The intervals of the values, as one area.
fn band(points: &[Point], axis: &Axis, columns: &Columns, out: &mut String) {
    let bounds = points.iter().filter_map(|point| Some((columns.x(point.version), point.interval?)));
    let bounds: Vec<_> = bounds.collect();
    if bounds.len() < 2 {
        return;
    }
    let mut corners = String::new();
    for (x, interval) in &bounds {
        let _ = write!(corners, "{x:.1},{:.1} ", axis.y(interval.high));
    }
    for (x, interval) in bounds.iter().rev() {
        let _ = write!(corners, "{x:.1},{:.1} ", axis.y(interval.low));
    }
    let _ = write!(out, "<polygon class=\"band\" points=\"{}\"/>", corners.trim_end());
}

/// Every reading, those of one version beside each other where there is room.
fn dots(points: &[Point], axis: &Axis, columns: &Columns, out: &mut String) {
    let spread = (columns.step() * 0.6).min(8.0);
    let mut path = String::new();
    for point in points.iter().filter(|point| !point.copied) {
        let last = point.readings.len().saturating_sub(1).max(1) as f64;
        for (index, reading) in point.readings.iter().enumerate().filter(|(_, reading)| reading.is_finite()) {
            let x = columns.x(point.version) + (index as f64 / last - 0.5) * spread;
            let _ = write!(path, "M{x:.1} {:.1}h0", axis.y(*reading));
        }
    }
    if !path.is_empty() {
        let _ = write!(out, "<path class=\"dots\" d=\"{path}\"/>");
    }
}

fn line(
    class: &str,
    values: impl Iterator<Item = (usize, f64)>,
    axis: &Axis,
    columns: &Columns,
    out: &mut String,
) {
    let mut path = String::new();
    for (version, value) in values.filter(|(_, value)| value.is_finite()) {
        let _ = write!(path, "{:.1},{:.1} ", columns.x(version), axis.y(value));
    }
    if !path.is_empty() {
        let _ = write!(out, "<polyline class=\"{class}\" points=\"{}\"/>", path.trim_end());
    }
}

/// The level of each stretch, as a line with steps.
fn levels(series: &Series, axis: &Axis, columns: &Columns, out: &mut String) {
    let mut path = String::new();
    let mut end = None;
    for (first, last, level) in &series.levels {
        let (y, left, right) = (axis.y(*level), columns.edge(*first), columns.edge(last + 1));
        let _ = match end == Some(*first) {
            true => write!(path, "V{y:.1}H{right:.1}"),
            false => write!(path, "M{left:.1} {y:.1}H{right:.1}"),
        };
        end = Some(last + 1);
    }
    if !path.is_empty() {
        let _ = write!(out, "<path class=\"level\" d=\"{path}\"/>");
    }
}
