//! Curves and points over two axes.

use super::frame::{
    Towards, beyond, class, columns, dash, key, labels, lines, mark, percent, pixels, side_labels,
};
use super::scale::{Ruler, window};
use crate::show::page::{Layer, Plot, Point, Scale, Shape};
use maud::{Markup, html};
use scruple_core::unit::{change, quantity};

const TOP: f64 = 10.0;
const TALL: f64 = 200.0;
const SMALL: f64 = 130.0;

/// The width of the inner picture whose curves stretch.
const WIDTH: f64 = 1000.0;

/// Above this many points in a layer, points are drawn as one path without tooltips.
const MANY: usize = 400;

/// The marks of a layer, which tooltips would belong to.
pub(crate) fn marks(layer: &Layer) -> usize {
    let points = layer.pieces.iter().map(Vec::len).sum();
    match layer.shape {
        Shape::Points | Shape::Course if points <= MANY => points,
        _ => 0,
    }
}

struct Frame<'a> {
    plot: &'a Plot,
    x: Ruler<'a>,
    y: Ruler<'a>,
    bottom: f64,
}

impl Frame<'_> {
    fn of(plot: &Plot) -> Frame<'_> {
        let points = || plot.layers.iter().flat_map(|layer| layer.pieces.iter().flatten());
        let positive = |scale: &Scale| matches!(scale, Scale::Log | Scale::Ratio);
        let keep = |scale: &Scale, value: f64| value.is_finite() && (value > 0.0 || !positive(scale));
        let xs = points().map(|point| point.x).filter(|x| keep(&plot.x.scale, *x));
        let range = |range: (f64, f64), value: f64| (range.0.min(value), range.1.max(value));
        let across = xs.fold((f64::INFINITY, f64::NEG_INFINITY), range);
        let across = if across.0.is_finite() { across } else { (0.0, 1.0) };
        let ys = points()
            .flat_map(|point| [Some(point.y), point.low])
            .flatten()
            .filter(|y| keep(&plot.y.scale, *y));
        let areas = plot.layers.iter().any(|layer| layer.shape == Shape::Area);
        let steps = plot.layers.iter().any(|layer| layer.shape == Shape::Steps);
        let mut up = match areas || steps {
            true => ys.fold((f64::INFINITY, f64::NEG_INFINITY), range),
            false => window(ys),
        };
        if !up.0.is_finite() {
            up = (0.0, 1.0);
        }
        if let Some(shade) = &plot.shade {
            let room = (shade.high - shade.low) / 4.0;
            up = range(range(up, shade.low - room), shade.high + room);
        }
        if let Some(zero) = plot.zero.filter(|zero| keep(&plot.y.scale, *zero)) {
            up = range(up, zero);
        }
        let exact = areas || steps;
        let room = match steps || matches!(plot.x.scale, Scale::Nines) {
            true => (0.0, 0.0),
            // Labels of the vertical axis stand at the left.
            false => (if plot.small { 0.2 } else { 0.13 }, 0.02),
        };
        Frame {
            plot,
            x: Ruler::new(&plot.x, across, room),
            y: Ruler::new(&plot.y, up, if exact { (0.0, 0.0) } else { (0.07, 0.07) }),
            bottom: if plot.small { SMALL } else { TALL },
        }
    }

    fn y(&self, place: f64) -> f64 {
        self.bottom - place * (self.bottom - TOP)
    }

    fn title(&self, point: &Point) -> String {
        let along = quantity(point.x, &self.plot.x.unit);
        let apart = if point.apart { ", disturbed: does not count" } else { "" };
        format!("{} {along}: {}{apart}", self.plot.x.title, self.value(point.y)).trim_start().to_owned()
    }

    fn value(&self, value: f64) -> String {
        match self.plot.y.scale {
            Scale::Ratio => change(value),
            _ => quantity(value, &self.plot.y.unit),
        }
    }
}

/// The chart of a page.
pub(crate) fn draw(plot: &Plot, label: &str, tooltips: bool) -> Markup {
    let frame = Frame::of(plot);
    html! {
        svg.chart width="100%" height=(frame.bottom + 20.0) role="img" aria-label=(label) {
            (body(&frame, tooltips))
        }
    }
}

/// The same as a picture of its own, with its height.
pub(crate) fn picture(plot: &Plot) -> (Markup, f64) {
    let frame = Frame::of(plot);
    let mut named: Vec<(usize, &str)> = Vec::new();
    for layer in plot.layers.iter().filter(|layer| !layer.name.is_empty()) {
        if !named.contains(&(layer.arm, layer.name.as_str())) {
            named.push((layer.arm, &layer.name));
        }
    }
    let y = frame.bottom + 40.0;
    let markup = html! {
        (body(&frame, true))
        @for (place, (arm, name)) in named.iter().enumerate() {
            @let line = y + 18.0 * place as f64;
            svg x="0" y=(pixels(line - 10.0)) width="26" height="12" overflow="visible" { (key(*arm)) }
            text x="34" y=(pixels(line)) { (name) }
        }
    };
    (markup, y + 18.0 * named.len() as f64)
}

fn body(frame: &Frame<'_>, tooltips: bool) -> Markup {
    let plot = frame.plot;
    // The least width of a plot on a screen that is not narrow.
    let width = if plot.small { 240.0 } else { 400.0 };
    let (across, up) = (frame.x.ticks_within(width), frame.y.ticks());
    let y = |place: f64| frame.y(place);
    let at_right = plot.layers.iter().any(|layer| layer.shape == Shape::Steps);
    html! {
        @if let Some(shade) = &plot.shade {
            @let (top, low) = (frame.y(frame.y.place(shade.high).min(1.0)), frame.y(frame.y.place(shade.low).max(0.0)));
            rect.margin width="100%" y=(pixels(top)) height=(pixels((low - top).max(0.0))) {}
        }
        @if let Some(shade) = &plot.column {
            @let (left, right) = (frame.x.place(shade.low).clamp(0.0, 1.0), frame.x.place(shade.high).clamp(0.0, 1.0));
            rect.margin x=(percent(left)) width=(percent(right - left)) y=(pixels(TOP)) height=(pixels(frame.bottom - TOP)) {}
            text.tick.halo x=(percent(right - 0.005)) y=(pixels(frame.bottom - 6.0)) text-anchor="end" { (shade.text) }
        }
        (columns(&across, TOP, frame.bottom))
        (lines(&up, y))
        @if let Some(zero) = plot.zero {
            @let at = pixels(frame.y(frame.y.place(zero)));
            line.zero x1="0" x2="100%" y1=(at) y2=(at) {}
        }
        @for layer in &plot.layers { (layer_of(frame, layer, tooltips)) }
        (labels(&across, frame.bottom + 15.0))
        (side_labels(&up, at_right, y))
    }
}

fn layer_of(frame: &Frame<'_>, layer: &Layer, tooltips: bool) -> Markup {
    let points: usize = layer.pieces.iter().map(Vec::len).sum();
    let marked = matches!(layer.shape, Shape::Points | Shape::Course);
    // A line of one point would be invisible.
    let lonely = matches!(layer.shape, Shape::Line)
        .then(|| layer.pieces.iter().filter(|piece| piece.len() == 1).flatten());
    html! {
        @match layer.shape {
            Shape::Area => (stretched(frame, layer, "area", area)),
            Shape::Line => (stretched(frame, layer, "curve", line)),
            Shape::Steps => (stretched(frame, layer, "curve", steps)),
            Shape::Course => (stretched(frame, layer, "curve thin", line)),
            Shape::Points => {},
        }
        @if marked && points > MANY { (stretched(frame, layer, "curve spots", spots)) }
        @if marked && points <= MANY {
            @for point in layer.pieces.iter().flatten() { (mark_of(frame, layer.arm, point, tooltips)) }
        }
        @for point in lonely.into_iter().flatten() { (mark_of(frame, layer.arm, point, tooltips)) }
    }
}

fn mark_of(frame: &Frame<'_>, arm: usize, point: &Point, tooltips: bool) -> Markup {
    let x = percent(frame.x.place(point.x));
    let title = frame.title(point);
    let place = frame.y.place(point.y);
    match frame.y.shows(point.y) {
        true => mark(&x, frame.y(place), arm, !point.apart, tooltips.then_some(title.as_str())),
        false if place > 1.0 => beyond(&x, TOP - 3.0, Towards::Up, arm, Some(&title)),
        false => beyond(&x, frame.bottom + 1.0, Towards::Down, arm, Some(&title)),
    }
}

/// A path that stretches with the page while its strokes keep their width.
fn stretched(frame: &Frame<'_>, layer: &Layer, kind: &str, path: fn(&[(f64, f64, f64)]) -> String) -> Markup {
    let height = frame.bottom - TOP;
    let place = |point: &Point| {
        let y = |value: f64| (1.0 - frame.y.place(value).clamp(-0.02, 1.02)) * height;
        (frame.x.place(point.x) * WIDTH, y(point.y), y(point.low.unwrap_or(point.y)))
    };
    let paths = layer.pieces.iter().map(|piece| path(&piece.iter().map(place).collect::<Vec<_>>()));
    let dash = if kind == "curve" { dash(layer.arm) } else { "none" };
    html! {
        svg x="0" y=(pixels(TOP)) width="100%" height=(pixels(height)) viewBox={ "0 0 " (WIDTH) " " (height) } preserveAspectRatio="none" overflow="visible" {
            path class={ (kind) " " (class(layer.arm)) } stroke-dasharray=(dash) d=(paths.collect::<String>()) {}
        }
    }
}

fn line(points: &[(f64, f64, f64)]) -> String {
    let each = points.iter().enumerate();
    each.map(|(index, (x, y, _))| format!("{}{x:.1} {y:.1}", if index == 0 { "M" } else { "L" })).collect()
}

/// A curve that goes to the right before it goes up or down.
fn steps(points: &[(f64, f64, f64)]) -> String {
    let each = points.iter().enumerate();
    each.map(
        |(index, (x, y, _))| if index == 0 { format!("M{x:.1} {y:.1}") } else { format!("H{x:.1}V{y:.1}") },
    )
    .collect()
}

fn area(points: &[(f64, f64, f64)]) -> String {
    if points.is_empty() {
        return String::new();
    }
    let forth = line(points);
    let back: String = points.iter().rev().map(|(x, _, low)| format!("L{x:.1} {low:.1}")).collect();
    format!("{forth}{back}Z")
}

/// Points as strokes without length, whose round ends make them dots.
fn spots(points: &[(f64, f64, f64)]) -> String {
    points.iter().map(|(x, y, _)| format!("M{x:.1} {y:.1}h0")).collect()
}
