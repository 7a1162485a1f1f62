//! Memory maps: what the largest process of an arm had mapped, and the memory of all its processes over time.

use super::capital;
use crate::inspect::report::memory::{COLUMNS, TableLine, lines, when};
use crate::render::page::chart::slug;
use crate::render::page::{
    Axis, Cell, Chart, ChartPoint, ColumnHeading, Drawn, Layer, LayerShape, Plot, Section, SectionPart,
    Table, harmless_name, harmless_sentence,
};
use scruple_core::memory_map::{Divided, MemoryCourse, Moment};
use scruple_core::run::Run;
use scruple_core::unit::{Unit, quantity};

/// Makes the section, or returns `None` if no memory was watched.
pub fn section(run: &Run) -> Option<Section> {
    let watched: Vec<(String, &MemoryCourse)> =
        run.arms.iter().filter_map(|arm| Some((harmless_name(&arm.name), arm.memory.as_ref()?))).collect();
    if watched.is_empty() {
        return None;
    }
    let mut parts = Vec::new();
    for (arm, course) in &watched {
        parts.push(SectionPart::Words(format!("‘{arm}’: {}", harmless_sentence(&describe(course)))));
        parts.extend(table(arm, course).map(SectionPart::Table));
    }
    let charts: Vec<Chart> = watched.iter().filter_map(|(arm, course)| over_time(arm, course)).collect();
    if !charts.is_empty() {
        parts.push(SectionPart::Charts(charts));
    }
    Some(Section { title: "Memory map".to_owned(), folded: None, parts })
}

fn describe(course: &MemoryCourse) -> String {
    match (&course.largest, course.peak()) {
        (Some(largest), Some(peak)) => {
            let text = when(largest, peak, course.moments.len());
            let high_water = quantity(course.high_water as f64, &Unit::Bytes);
            format!("{text}. The kernel recorded up to {high_water} in one process.")
        }
        (None, Some(_)) => "the kernel does not show its mappings.".to_owned(),
        (_, None) => "it ended before its memory could be read.".to_owned(),
    }
}

fn table(arm: &str, course: &MemoryCourse) -> Option<Table> {
    course.largest.as_ref()?;
    let lines = lines(course);
    let swapped = lines.iter().any(|line| line.amount.swapped > 0);
    let shown = if swapped { &COLUMNS[..] } else { &COLUMNS[..COLUMNS.len() - 1] };
    let mut head = vec![
        ColumnHeading::text("Mappings"),
        ColumnHeading::text("permissions"),
        ColumnHeading::number("count"),
    ];
    let mut group = "";
    head.extend(shown.iter().map(|(of, title, _)| {
        group = if of.is_empty() { group } else { of };
        let whole = matches!(*title, "resident" | "swapped");
        ColumnHeading::number(if whole { (*title).to_owned() } else { format!("{group} {title}") })
    }));
    let row = |line: &TableLine| {
        let title = if line.sum { capital(line.head.trim()) } else { line.head.trim().to_owned() };
        let texts = [title, line.permissions.clone(), line.mappings.clone()];
        let mut cells: Vec<Cell> = texts.into_iter().map(Cell::text).collect();
        cells.extend(
            shown.iter().map(|(_, _, pick)| Cell::text(quantity(pick(&line.amount) as f64, &Unit::Bytes))),
        );
        cells
    };
    Some(Table {
        label: format!("Memory map of {arm}"),
        head,
        rows: lines.iter().map(row).collect(),
        stacks: true,
        ..Table::default()
    })
}

/// Draws the memory of all processes of an arm over time.
fn over_time(arm: &str, course: &MemoryCourse) -> Option<Chart> {
    if course.moments.len() < 2 {
        return None;
    }
    let point = |moment: &Moment, bytes: u64| ChartPoint::at(moment.at.as_nanos() as f64, bytes as f64);
    let divided = |pick: fn(&Divided) -> u64| -> Vec<ChartPoint> {
        course.moments.iter().filter_map(|moment| Some(point(moment, pick(&moment.divided?)))).collect()
    };
    let layers = [
        ("resident (RSS)", course.moments.iter().map(|moment| point(moment, moment.resident)).collect()),
        ("proportional (PSS)", divided(|divided| divided.proportional)),
        ("unique (USS)", divided(|divided| divided.unique)),
    ];
    let layers = layers.into_iter().enumerate().filter(|(_, (_, points))| points.len() > 1);
    let layers: Vec<Layer> = layers
        .map(|(place, (name, points))| Layer {
            arm: place,
            name: name.to_owned(),
            code: false,
            shape: LayerShape::Line,
            pieces: vec![points],
        })
        .collect();
    let peak = course.peak().map_or(0, |peak| peak.resident);
    Some(Chart {
        name: slug(&format!("memory-over-time-{arm}")),
        title: format!("Memory of {arm} over time"),
        note: String::new(),
        label: format!("resident memory of {arm}: at most {}", quantity(peak as f64, &Unit::Bytes)),
        drawn: Drawn::Plot(Plot {
            x: Axis::linear("at", Unit::Nanoseconds),
            y: Axis::linear("bytes", Unit::Bytes),
            shade: None,
            column: None,
            zero: Some(0.0),
            layers,
            small: false,
        }),
    })
}
