//! Plots: curves and points over two axes.

use super::frame::{
    OffScale, beyond, class, columns, dash, key_of, labels, lines, mark, percent, pixels, side_labels,
};
use super::rows::tone;
use super::scale::{Ruler, anchor, window};
use super::thin;
use crate::render::page::{AxisLabel, AxisScale, ChartEvent, ChartPoint, Layer, LayerShape, Plot};
use maud::{Markup, html};
use scruple_core::unit::{change, quantity};

/// The space above a plot, and the additional space for each row of event signs, in pixels.
const TOP: f64 = 10.0;
const SIGNS: f64 = 15.0;
/// The largest number of rows of event signs above a plot.
const MOST_ROWS: usize = 3;
/// The space for points without a height, below the names of places, in pixels.
const BELOW: f64 = 18.0;

const TALL: f64 = 200.0;
const SMALL: f64 = 130.0;

/// The width of the inner picture whose curves are stretched, in its own units.
const WIDTH: f64 = 1000.0;

/// With more points than this in a layer, its points are drawn as one path without tooltips.
const MANY: usize = 400;

/// Returns the number of marks of a layer that may have tooltips.
pub(crate) fn marks(layer: &Layer) -> usize {
    let points = layer.pieces.iter().map(Vec::len).sum();
    match layer.shape {
        LayerShape::Points | LayerShape::Course | LayerShape::Below if points <= MANY => points,
        _ => 0,
    }
}

struct PlotFrame<'a> {
    plot: &'a Plot,
    x: Ruler<'a>,
    y: Ruler<'a>,
    /// The signs above the plot: position from 0 to 1, row, event.
    signs: Vec<(f64, usize, &'a ChartEvent)>,
    top: f64,
    bottom: f64,
}

impl PlotFrame<'_> {
    fn of(plot: &Plot) -> PlotFrame<'_> {
        let points = || plot.layers.iter().flat_map(|layer| layer.pieces.iter().flatten());
        let with_height = plot.layers.iter().filter(|layer| layer.shape != LayerShape::Below);
        let with_height = || with_height.clone().flat_map(|layer| layer.pieces.iter().flatten());
        let positive = |scale: &AxisScale| matches!(scale, AxisScale::Log | AxisScale::Ratio);
        let keep = |scale: &AxisScale, value: f64| value.is_finite() && (value > 0.0 || !positive(scale));
        let places = plot.x.places.iter().map(|place| place.at);
        let xs = points().map(|point| point.x).chain(places).filter(|x| keep(&plot.x.scale, *x));
        let range = |range: (f64, f64), value: f64| (range.0.min(value), range.1.max(value));
        let across = xs.fold((f64::INFINITY, f64::NEG_INFINITY), range);
        let across = if across.0.is_finite() { across } else { (0.0, 1.0) };
        let ys = with_height()
            .flat_map(|point| [Some(point.y), point.low])
            .flatten()
            .filter(|y| keep(&plot.y.scale, *y));
        let areas = plot.layers.iter().any(|layer| layer.shape == LayerShape::Area);
        let steps = plot.layers.iter().any(|layer| layer.shape == LayerShape::Steps);
        let named = !plot.x.places.is_empty();
        // Curves have many points, so that `window` would take the few measured points beside them for outliers.
        let curves = plot.layers.iter().any(|layer| layer.shape == LayerShape::Line);
        let mut up = match areas || steps || named || curves {
            true => ys.fold((f64::INFINITY, f64::NEG_INFINITY), range),
            false => window(ys),
        };
        if !up.0.is_finite() {
            up = (0.0, 1.0);
        }
        if named {
            up = at_least_a_tenth(up);
        }
        if let Some(shade) = &plot.shade {
            let room = (shade.high - shade.low) / 4.0;
            up = range(range(up, shade.low - room), shade.high + room);
        }
        if let Some(zero) = plot.zero.filter(|zero| keep(&plot.y.scale, *zero)) {
            up = range(up, zero);
        }
        let exact = areas || steps;
        // The space at one side is for the labels of the vertical axis: those of steps, which rise to the right, are there.
        let side = if plot.small { 0.2 } else { 0.13 };
        let room = match &plot.x.scale {
            _ if steps => (0.0, side),
            AxisScale::Nines => (side, 0.0),
            _ => (side, 0.02),
        };
        let x = Ruler::new(&plot.x, across, room);
        let signs = signs(&x, &plot.x.places);
        let rows = signs.iter().map(|(_, row, _)| (row + 1).min(MOST_ROWS)).max().unwrap_or(0);
        let top = TOP + SIGNS * rows as f64;
        PlotFrame {
            plot,
            x,
            y: Ruler::new(&plot.y, up, if exact { (0.0, 0.0) } else { (0.07, 0.07) }),
            signs,
            top,
            bottom: top - TOP + if plot.small { SMALL } else { TALL },
        }
    }

    fn y(&self, place: f64) -> f64 {
        self.bottom - place * (self.bottom - self.top)
    }

    /// Returns the height of the whole picture, including what is below the plot, in pixels.
    fn height(&self) -> f64 {
        let below = self.plot.layers.iter().any(|layer| layer.shape == LayerShape::Below);
        self.bottom + 20.0 + if below { BELOW } else { 0.0 }
    }

    fn title(&self, point: &ChartPoint) -> String {
        let place = self.plot.x.places.iter().find(|place| place.at == point.x);
        if let Some(place) = place {
            return format!("{} {}: {}", place.name, place.about, self.value(point.y));
        }
        let along = quantity(point.x, &self.plot.x.unit);
        let apart = if point.apart { ", disturbed: does not count" } else { "" };
        format!("{} {along}: {}{apart}", self.plot.x.title, self.value(point.y)).trim_start().to_owned()
    }

    fn value(&self, value: f64) -> String {
        match self.plot.y.scale {
            AxisScale::Ratio => change(value),
            _ => quantity(value, &self.plot.y.unit),
        }
    }
}

/// Draws the plot for a page.
pub(crate) fn draw(plot: &Plot, label: &str, tooltips: bool) -> Markup {
    let frame = PlotFrame::of(plot);
    html! {
        svg.chart width="100%" height=(frame.height()) role="img" aria-label=(label) {
            (body(&frame, tooltips))
        }
    }
}

/// Returns the sign of each named layer, and a layer with this name, or nothing if there is only one.
pub(crate) fn legend(plot: &Plot) -> Vec<(Markup, &Layer)> {
    let mut named: Vec<&Layer> = Vec::new();
    for layer in plot.layers.iter().filter(|layer| !layer.name.is_empty()) {
        if !named.iter().any(|known| known.arm == layer.arm && known.name == layer.name) {
            named.push(layer);
        }
    }
    if named.len() < 2 {
        return Vec::new();
    }
    named.into_iter().map(|layer| (key_of(layer.arm, layer.shape), layer)).collect()
}

/// Draws the plot as a separate picture, and returns its height in pixels.
pub(crate) fn picture(plot: &Plot) -> (Markup, f64) {
    let frame = PlotFrame::of(plot);
    let named = legend(plot);
    let y = frame.height() + 20.0;
    let markup = html! {
        (body(&frame, true))
        @for (place, (sign, layer)) in named.iter().enumerate() {
            @let line = y + 18.0 * place as f64;
            svg x="0" y=(pixels(line - 10.0)) width="26" height="12" overflow="visible" { (sign) }
            text x="34" y=(pixels(line)) { (layer.name) }
        }
    };
    (markup, y + 18.0 * named.len() as f64)
}

fn body(frame: &PlotFrame<'_>, tooltips: bool) -> Markup {
    let plot = frame.plot;
    // The smallest widths of a plot, on a screen that is not narrow and on one that is, in pixels.
    let widths = match plot.small {
        true => (240.0, 240.0),
        false if !plot.x.places.is_empty() => (640.0, 290.0),
        false => (400.0, 290.0),
    };
    let (across, up) =
        (frame.x.ticks_beside(widths), frame.y.ticks_above_each_other(frame.bottom - frame.top));
    let top = frame.top;
    let y = |place: f64| frame.y(place);
    let at_right = plot.layers.iter().any(|layer| layer.shape == LayerShape::Steps);
    html! {
        @if let Some(shade) = &plot.shade {
            @let (top, low) = (frame.y(frame.y.place(shade.high).min(1.0)), frame.y(frame.y.place(shade.low).max(0.0)));
            rect.margin width="100%" y=(pixels(top)) height=(pixels((low - top).max(0.0))) {}
        }
        @if let Some(shade) = &plot.column {
            @let (left, right) = (frame.x.place(shade.low).clamp(0.0, 1.0), frame.x.place(shade.high).clamp(0.0, 1.0));
            rect.margin x=(percent(left)) width=(percent(right - left)) y=(pixels(top)) height=(pixels(frame.bottom - frame.top)) {}
            text.tick.halo x=(percent(right - 0.005)) y=(pixels(frame.bottom - 6.0)) text-anchor="end" { (shade.text) }
        }
        (columns(&across, TOP, frame.bottom))
        (lines(&up, y))
        @if let Some(zero) = plot.zero {
            @let at = pixels(frame.y(frame.y.place(zero)));
            line.zero x1="0" x2="100%" y1=(at) y2=(at) {}
        }
        @for (place, row, event) in &frame.signs { (event_of(frame, *place, *row, event)) }
        @for layer in &plot.layers { (layer_of(frame, layer, tooltips)) }
        (labels(&across, frame.bottom + 15.0))
        (side_labels(&up, at_right, y))
    }
}

/// Assigns rows to the signs above a plot, so that no two overlap on a narrow screen. A sign beyond the last row is not
/// drawn; its line is.
fn signs<'a>(x: &Ruler<'_>, places: &'a [AxisLabel]) -> Vec<(f64, usize, &'a ChartEvent)> {
    const APART: f64 = 0.09;
    let mut ends = [f64::NEG_INFINITY; MOST_ROWS];
    let marked = places.iter().filter_map(|place| Some((x.place(place.at), place.event.as_ref()?)));
    marked
        .map(|(place, event)| {
            let row = ends.iter().position(|end| *end <= place).unwrap_or(MOST_ROWS);
            if let Some(end) = ends.get_mut(row) {
                *end = place + APART;
            }
            (place, row, event)
        })
        .collect()
}

/// Draws the line of an event, the sign above it, and the shade over the range where it may have happened.
fn event_of(frame: &PlotFrame<'_>, place: f64, row: usize, event: &ChartEvent) -> Markup {
    let (x, height) = (percent(place), frame.bottom - frame.top);
    let class = tone(event.tone);
    html! {
        @if let Some((from, to)) = event.within {
            @let (left, right) = (frame.x.place(from), frame.x.place(to));
            rect class={ "within " (class) } x=(percent(left)) width=(percent(right - left)) y=(pixels(frame.top)) height=(pixels(height)) {}
        }
        line class={ "event " (class) } x1=(x) x2=(x) y1=(pixels(frame.top - 2.0)) y2=(pixels(frame.bottom)) {}
        @if row < MOST_ROWS {
            text class={ "sign " (class) } x=(x) y=(pixels(frame.top - 5.0 - SIGNS * row as f64)) text-anchor=(anchor(place)) { (event.sign) }
        }
    }
}

/// Widens a range to at least a tenth of its values, so that small changes look small.
fn at_least_a_tenth((low, high): (f64, f64)) -> (f64, f64) {
    let missing = (0.1 * low.abs().max(high.abs()) - (high - low)).max(0.0) / 2.0;
    (low - missing, high + missing)
}

fn layer_of(frame: &PlotFrame<'_>, layer: &Layer, tooltips: bool) -> Markup {
    let points: usize = layer.pieces.iter().map(Vec::len).sum();
    let marked = matches!(layer.shape, LayerShape::Points | LayerShape::Course);
    if layer.shape == LayerShape::Below {
        let y = frame.height() - 8.0;
        let title = |point: &ChartPoint| {
            let place = frame.plot.x.places.iter().find(|place| place.at == point.x);
            format!("{} {}", place.map_or("", |place| &place.name), layer.name)
        };
        return html! {
            @for point in layer.pieces.iter().flatten() {
                (mark(&percent(frame.x.place(point.x)), y, layer.arm, false, tooltips.then(|| title(point)).as_deref()))
            }
        };
    }
    // A line through one point would be invisible, so such a point is drawn as a mark.
    let single = matches!(layer.shape, LayerShape::Line)
        .then(|| layer.pieces.iter().filter(|piece| piece.len() == 1).flatten());
    html! {
        @match layer.shape {
            LayerShape::Area => (stretched(frame, layer, "area", area)),
            LayerShape::Line => (stretched(frame, layer, "curve", line)),
            LayerShape::Steps => (stretched(frame, layer, "curve", steps)),
            LayerShape::Course => (stretched(frame, layer, "curve thin", line)),
            LayerShape::Points | LayerShape::Below => {},
            LayerShape::Spots => (stretched(frame, layer, "curve spots", spots)),
        }
        @if marked && points > MANY { (stretched(frame, layer, "curve spots", spots)) }
        @if marked && points <= MANY {
            @for point in layer.pieces.iter().flatten() { (mark_of(frame, layer.arm, point, tooltips)) }
        }
        @for point in single.into_iter().flatten() { (mark_of(frame, layer.arm, point, tooltips)) }
    }
}

fn mark_of(frame: &PlotFrame<'_>, arm: usize, point: &ChartPoint, tooltips: bool) -> Markup {
    let x = percent(frame.x.place(point.x));
    let title = frame.title(point);
    let place = frame.y.place(point.y);
    match frame.y.shows(point.y) {
        true => mark(&x, frame.y(place), arm, !point.apart, tooltips.then_some(title.as_str())),
        false if place > 1.0 => beyond(&x, frame.top - 3.0, OffScale::Up, arm, Some(&title)),
        false => beyond(&x, frame.bottom + 1.0, OffScale::Down, arm, Some(&title)),
    }
}

/// Draws a path that is stretched with the page while its strokes keep their width.
fn stretched(
    frame: &PlotFrame<'_>,
    layer: &Layer,
    kind: &str,
    path: fn(&[(f64, f64, f64)]) -> String,
) -> Markup {
    let height = frame.bottom - frame.top;
    let place = |point: &ChartPoint| {
        let y = |value: f64| (1.0 - frame.y.place(value).clamp(-0.02, 1.02)) * height;
        (frame.x.place(point.x) * WIDTH, y(point.y), y(point.low.unwrap_or(point.y)))
    };
    let paths = layer.pieces.iter().map(|piece| match thin::is_thinned(layer.shape) {
        true => {
            let values: Vec<f64> = piece.iter().map(|point| point.y).collect();
            path(&thin::drawn(&values).into_iter().map(|i| place(&piece[i])).collect::<Vec<_>>())
        }
        false => path(&piece.iter().map(place).collect::<Vec<_>>()),
    });
    let dash = if kind == "curve" { dash(layer.arm) } else { "none" };
    html! {
        svg x="0" y=(pixels(frame.top)) width="100%" height=(pixels(height)) viewBox={ "0 0 " (WIDTH) " " (height) } preserveAspectRatio="none" overflow="visible" {
            path class={ (kind) " " (class(layer.arm)) } stroke-dasharray=(dash) d=(paths.collect::<String>()) {}
        }
    }
}

fn line(points: &[(f64, f64, f64)]) -> String {
    let each = points.iter().enumerate();
    each.map(|(index, (x, y, _))| format!("{}{x:.1} {y:.1}", if index == 0 { "M" } else { "L" })).collect()
}

/// Returns the path of a curve with steps: it moves to the right before it moves up or down.
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

/// Returns the path of points drawn as strokes without length, whose round ends make them dots.
fn spots(points: &[(f64, f64, f64)]) -> String {
    points.iter().map(|(x, y, _)| format!("M{x:.1} {y:.1}h0")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::page::Axis;
    use scruple_core::unit::Unit;

    #[test]
    fn a_curve_of_quantiles_begins_beside_the_labels_of_its_axis() {
        let axis =
            |unit: Unit, scale| Axis { title: String::new(), unit, scale, whole: false, places: Vec::new() };
        let points = [(0.0, 1e5), (0.9, 1e6), (0.99, 1e7)];
        let point = |(x, y): (f64, f64)| ChartPoint { x, y, ..ChartPoint::default() };
        let layer = Layer {
            arm: 0,
            name: String::new(),
            code: false,
            shape: LayerShape::Line,
            pieces: vec![points.map(point).to_vec()],
        };
        let plot = Plot {
            x: axis(Unit::Ratio, AxisScale::Nines),
            y: axis(Unit::Nanoseconds, AxisScale::Log),
            shade: None,
            column: None,
            zero: None,
            layers: vec![layer],
            small: false,
        };
        let drawn = draw(&plot, "quantiles", false).into_string();
        let path = drawn.split(" d=\"M").nth(1).expect("a curve");
        let left: f64 = path.split(' ').next().and_then(|x| x.parse().ok()).expect("its first place");
        // A label has up to six characters, and a plot is at least 400 pixels wide.
        assert!(left / WIDTH * 400.0 >= 42.0, "{left}: {drawn}");
    }
}
