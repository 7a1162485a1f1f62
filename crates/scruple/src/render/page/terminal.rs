//! Draws the charts of a page for a terminal, with block and Braille characters.

use super::{AxisScale, ChartRow, Drawn, Heat, Layer, LayerShape, Page, Plot, RowChart};
use crate::render::align::{fit, right, wrap};
use crate::render::block_characters::histogram;
use crate::render::chart::scale::{Ruler, window};
use crate::render::colours::{BOLD, DIM};
use std::fmt::Write as _;

/// The height of a plot, in lines.
const LINES: usize = 10;

/// Draws every chart for a terminal with this many columns.
pub(crate) fn charts(page: &Page, width: usize) -> String {
    let mut out = String::new();
    for chart in page.charts() {
        let _ = writeln!(out, "{BOLD}{}{BOLD:#} {DIM}({}){DIM:#}", chart.title, chart.name);
        if !chart.note.is_empty() {
            let _ = writeln!(out, "{DIM}{}{DIM:#}", wrap(&chart.note, width));
        }
        match &chart.drawn {
            Drawn::Rows(rows) => rows_of(rows, width, &mut out),
            Drawn::Plot(plot) => plot_of(plot, width, &mut out),
            Drawn::Heat(heat) => heat_of(heat, width, &mut out),
            Drawn::Flame(_) => out.push_str(&wrap(&chart.label, width)),
        }
        out.push('\n');
    }
    if out.is_empty() { format!("{}\n", wrap(NO_CHART, width)) } else { out }
}

/// What is written if a page has no chart.
const NO_CHART: &str = "Nothing of this run can be drawn: no metric has more than one reading.";

/// The signs of arms, which resemble the marks on pages.
const SIGNS: [char; 5] = ['●', '■', '▲', '◆', '▼'];

fn sign(arm: usize) -> char {
    SIGNS[arm % SIGNS.len()]
}

fn rows_of(rows: &RowChart, width: usize, out: &mut String) {
    let dots = || rows.rows.iter().flat_map(|row| &row.dots).map(|dot| dot.value);
    let ends = rows.rows.iter().flat_map(|row| {
        let interval = row.interval.filter(|_| row.dots.is_empty());
        row.middle.into_iter().chain(interval.into_iter().flat_map(|(low, high)| [low, high]))
    });
    let marked = rows.shade.iter().flat_map(|shade| [shade.low, shade.high]).chain(rows.zero);
    let positive = |value: &f64| rows.axis.scale == AxisScale::Linear || *value > 0.0;
    let mut range = window(dots().filter(positive));
    if dots().next().is_none() {
        range = (f64::INFINITY, f64::NEG_INFINITY);
    }
    for value in ends.chain(marked).filter(positive) {
        range = (range.0.min(value), range.1.max(value));
    }
    let ruler = Ruler::new(&rows.axis, range, (0.02, 0.02));
    let name = rows.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).min(width / 4);
    let room = width.saturating_sub(name + 8).max(10);
    for row in &rows.rows {
        let head = format!("  {} {} ", sign(row.arm), fit(&row.name, name));
        if !row.dots.is_empty() {
            let places: Vec<f64> = row.dots.iter().map(|dot| ruler.place(dot.value)).collect();
            let _ = writeln!(out, "{head}{}", histogram(&places, (0.0, 1.0), room).trim_end());
        }
        let head = if row.dots.is_empty() { head } else { " ".repeat(name + 5) };
        let _ = writeln!(out, "{head}{}", interval(rows, row, &ruler, room).trim_end());
        let texts: Vec<&str> = [&row.figure, &row.interval_text, &row.tail.text]
            .into_iter()
            .map(String::as_str)
            .filter(|text| !text.is_empty())
            .collect();
        if !texts.is_empty() {
            let _ = writeln!(out, "{}{DIM}{}{DIM:#}", " ".repeat(name + 5), texts.join("  "));
        }
    }
    let _ = writeln!(out, "{}{}", " ".repeat(name + 5), axis(&ruler, room).trim_end());
}

/// Draws the interval and the estimate on a line, with the ends of the margin and zero.
fn interval(rows: &RowChart, row: &ChartRow, ruler: &Ruler<'_>, room: usize) -> String {
    let mut line = vec![' '; room];
    let column = |value: f64| ((ruler.place(value) * room as f64) as usize).min(room - 1);
    if let Some(shade) = &rows.shade {
        line[column(shade.low)..=column(shade.high)].fill('░');
    }
    if let Some(zero) = rows.zero {
        line[column(zero)] = '│';
    }
    if let Some((low, high)) = row.interval {
        let (from, to) = (column(low.max(ruler.value(0.0))), column(high.min(ruler.value(1.0))));
        line[from..=to].fill('─');
        (line[from], line[to]) = ('├', '┤');
    }
    if let Some(middle) = row.middle {
        line[column(middle)] = sign(row.arm);
    }
    line.into_iter().collect()
}

/// Writes as many labels below an axis as fit.
fn axis(ruler: &Ruler<'_>, room: usize) -> String {
    let mut line: Vec<char> = vec![' '; room];
    let mut free = 0;
    for tick in ruler.ticks() {
        let length = tick.text.chars().count();
        let middle = (tick.place * room as f64) as usize;
        let from = middle.saturating_sub(length / 2).min(room.saturating_sub(length));
        if from < free || length > room {
            continue;
        }
        for (place, c) in tick.text.chars().enumerate() {
            line[from + place] = c;
        }
        free = from + length + 2;
    }
    line.into_iter().collect()
}

/// A canvas of Braille characters, each with two columns and four rows of dots (Unicode Standard, block U+2800).
struct Canvas {
    columns: usize,
    cells: Vec<u8>,
}

impl Canvas {
    fn new(columns: usize) -> Canvas {
        Canvas { columns, cells: vec![0; columns * LINES] }
    }

    /// Sets the dot at a position. Both coordinates are between 0 and 1, and `y` increases upwards.
    fn set(&mut self, x: f64, y: f64) {
        if !(0.0..=1.0).contains(&x) || !(0.0..=1.0).contains(&y) {
            return;
        }
        let column = ((x * (self.columns * 2) as f64) as usize).min(self.columns * 2 - 1);
        let line = (((1.0 - y) * (LINES * 4) as f64) as usize).min(LINES * 4 - 1);
        const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        self.cells[line / 4 * self.columns + column / 2] |= BITS[line % 4][column % 2];
    }

    fn stroke(&mut self, from: (f64, f64), to: (f64, f64)) {
        let steps = self.columns * 4;
        for step in 0..=steps {
            let share = step as f64 / steps as f64;
            self.set(from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share);
        }
    }

    fn line(&self, line: usize) -> String {
        let cells = &self.cells[line * self.columns..(line + 1) * self.columns];
        cells.iter().map(|bits| char::from_u32(0x2800 + u32::from(*bits)).unwrap_or(' ')).collect()
    }
}

fn plot_of(plot: &Plot, width: usize, out: &mut String) {
    let points = || plot.layers.iter().flat_map(|layer| layer.pieces.iter().flatten());
    let positive =
        |scale: &AxisScale, value: f64| value > 0.0 || !matches!(scale, AxisScale::Log | AxisScale::Ratio);
    let range = |range: (f64, f64), value: f64| (range.0.min(value), range.1.max(value));
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    let across = points().map(|point| point.x).filter(|x| positive(&plot.x.scale, *x)).fold(none, range);
    let ys = points()
        .flat_map(|point| [Some(point.y), point.low])
        .flatten()
        .filter(|y| positive(&plot.y.scale, *y));
    let up = ys.chain(plot.zero).fold(none, range);
    if across.0 > across.1 || up.0 > up.1 {
        return;
    }
    let (x, y) = (Ruler::new(&plot.x, across, (0.01, 0.01)), Ruler::new(&plot.y, up, (0.02, 0.02)));
    let labels = y.ticks();
    let left = labels.iter().map(|tick| tick.text.chars().count()).max().unwrap_or(0);
    let columns = width.saturating_sub(left + 4).clamp(10, 160);
    let mut layers: Vec<&Layer> = plot.layers.iter().collect();
    layers.retain(|layer| layer.pieces.iter().any(|piece| !piece.is_empty()));
    // The dots of several arms cannot be distinguished in one picture; those of the courses of one series can.
    let series = !plot.x.places.is_empty();
    // Layers without names belong to one arm, such as the points and the interval around them.
    for layers in layers.chunk_by(|one, other| series || (one.name.is_empty() && other.name.is_empty())) {
        let mut canvas = Canvas::new(columns);
        for (layer, piece) in
            layers.iter().flat_map(|layer| layer.pieces.iter().map(move |piece| (layer, piece)))
        {
            let places: Vec<_> = piece.iter().map(|point| (x.place(point.x), y.place(point.y))).collect();
            draw(layer.shape, &places, &mut canvas);
        }
        if let [layer] = layers
            && !layer.name.is_empty()
        {
            let _ = writeln!(out, "  {} {}", sign(layer.arm), layer.name);
        }
        for line in 0..LINES {
            let here = |place: f64| (((1.0 - place) * LINES as f64) as usize).min(LINES - 1) == line;
            let label = labels.iter().find(|tick| here(tick.place)).map_or("", |tick| &tick.text);
            let _ = writeln!(out, "  {} {}", right(label, left), canvas.line(line));
        }
    }
    let _ = writeln!(out, "  {} {}", " ".repeat(left), axis(&x, columns).trim_end());
}

/// Draws a heat map with shaded blocks. If several fields share a block, the darkest one is shown.
fn heat_of(heat: &Heat, width: usize, out: &mut String) {
    if heat.fields.is_empty() {
        return;
    }
    let (across, up) = heat.ends();
    let (x, y) = (Ruler::new(&heat.x, across, (0.0, 0.0)), Ruler::new(&heat.y, up, (0.0, 0.0)));
    let labels = y.ticks();
    let left = labels.iter().map(|tick| tick.text.chars().count()).max().unwrap_or(0);
    let columns = width.saturating_sub(left + 4).clamp(10, 160);
    let mut blocks = vec![0; columns * LINES];
    let cell = |place: f64, most: usize| ((place * most as f64) as usize).min(most - 1);
    for field in &heat.fields {
        let middle = (y.place(field.up.0) + y.place(field.up.1)) / 2.0;
        let line = cell(1.0 - middle, LINES);
        let shade = heat.shade(field.count);
        for column in
            cell(x.place(field.across.0) + 1e-9, columns)..=cell(x.place(field.across.1) - 1e-9, columns)
        {
            let block: &mut usize = &mut blocks[line * columns + column];
            *block = (*block).max(shade);
        }
    }
    for line in 0..LINES {
        let label =
            labels.iter().find(|tick| cell(1.0 - tick.place, LINES) == line).map_or("", |tick| &tick.text);
        let shades = [' ', '░', '░', '▒', '▒', '▓', '█'];
        let text: String =
            blocks[line * columns..(line + 1) * columns].iter().map(|shade| shades[*shade]).collect();
        let _ = writeln!(out, "  {} {}", right(label, left), text.trim_end());
    }
    let _ = writeln!(out, "  {} {}", " ".repeat(left), axis(&x, columns).trim_end());
}

fn draw(shape: LayerShape, places: &[(f64, f64)], canvas: &mut Canvas) {
    match shape {
        LayerShape::Points | LayerShape::Course | LayerShape::Spots => {
            places.iter().for_each(|(x, y)| canvas.set(*x, *y))
        }
        LayerShape::Line | LayerShape::Area => {
            places.windows(2).for_each(|pair| canvas.stroke(pair[0], pair[1]));
            places.iter().for_each(|(x, y)| canvas.set(*x, *y));
        }
        LayerShape::Below => {}
        LayerShape::Steps => places.windows(2).for_each(|pair| {
            canvas.stroke(pair[0], (pair[1].0, pair[0].1));
            canvas.stroke((pair[1].0, pair[0].1), pair[1]);
        }),
    }
}
