//! Reports where a program's memory was allocated as a page: sites, a flame graph, and the course.

use super::sites::{self, COLUMNS, share_of};
use crate::inspect::command_sites::CommandSites;
use crate::inspect::site_rows::{SiteRow, called, place, rows};
use crate::render::export::Formats;
use crate::render::flame_graph;
use crate::render::page::{
    self, Axis, Cell, Chart, ChartPoint, ColumnHeading, Drawn, Flame, Layer, LayerShape, Page, Plot, Section,
    SectionPart, SortOrder, Span, Stacked, Table, Tone, harmless_name, harmless_sentence,
};
use scruple_code::allocation_sites::{CourseUnit, HeapAmounts, HeapSites};
use scruple_core::harmless_text::plain;
use scruple_core::unit::{Unit, quantity, share};
use std::slice;

/// The formats of the page that are not also formats of the data.
pub const FORMATS: Formats<fn(&Page) -> String, 3> =
    [("html", page::html::text), ("htm", page::html::text), ("md", page::markdown::text)];

/// The smallest share of the bytes at the peak that a box of the flame graph represents.
const LEAST: f64 = 0.002;

/// Makes the page with this many sites in each table.
pub fn page(found: &CommandSites, most: usize) -> Page {
    let mut sections = Vec::new();
    let mut verdict = String::new();
    if let Some(sites) = found.processes.first() {
        let by_peak = rows(sites, sites::peak);
        verdict = sites::sentence(found, sites, &by_peak);
        let table = table(sites, &by_peak, most);
        sections.push(Section {
            title: "Sites".to_owned(),
            folded: None,
            parts: vec![SectionPart::Table(table)],
        });
        let charts = [("By caller", flame_chart(sites)), ("Over time", course(sites))];
        sections.extend(charts.into_iter().filter_map(|(title, chart)| {
            Some(Section { title: title.to_owned(), folded: None, parts: vec![SectionPart::Chart(chart?)] })
        }));
    }
    Page {
        title: format!("Memory of {}", harmless_name(&found.title)),
        kind: vec!["Memory by allocation site".to_owned(), harmless_name(&found.title)],
        verdict: vec![Span::plain(harmless_sentence(&verdict))],
        notes: sites::remarks(found).iter().map(|remark| harmless_sentence(remark)).collect(),
        warnings: Vec::new(),
        sections,
    }
}

fn table(sites: &HeapSites, rows: &[SiteRow], most: usize) -> Table {
    let (shown, rest) = rows.split_at(most.min(rows.len()));
    let cells = |title: String, path: String, amounts: &HeapAmounts, share: String| {
        let mut cells = vec![Cell::text(title)];
        cells.extend(COLUMNS.iter().map(|(_, figure)| Cell::text(figure(amounts))));
        cells.insert(2, Cell::text(share));
        cells.push(Cell::text(path));
        cells
    };
    let path = |row: &SiteRow| {
        let through = row.through.iter().map(|through| format!("through {through}"));
        let callers = std::iter::successors(row.callers.first(), |row| row.callers.first());
        let callers = callers.take(4).map(|caller| format!("← {}", place(&caller.frame)));
        harmless_sentence(&through.chain(callers).collect::<Vec<_>>().join(" "))
    };
    let mut lines: Vec<Vec<Cell>> = shown
        .iter()
        .map(|row| {
            cells(
                harmless_name(&place(&row.frame)),
                path(row),
                &row.amounts,
                share_of(sites, slice::from_ref(row)),
            )
        })
        .collect();
    let mut all: Vec<HeapAmounts> = shown.iter().map(|row| row.amounts).collect();
    if !rest.is_empty() {
        let mut others = HeapAmounts::default();
        rest.iter().for_each(|row| others += row.amounts);
        lines.push(cells(sites::others_of(rest.len()), String::new(), &others, share_of(sites, rest)));
        all.push(others);
    }
    lines.push(cells("all".to_owned(), String::new(), &sites.total, share(1.0)));
    let mut head = vec![ColumnHeading::text("Site")];
    head.extend(["At the peak", "Share", "Blocks", "At the end", "Allocated"].map(ColumnHeading::number));
    head.push(ColumnHeading::text("Through and from, the largest part"));
    let key = |figure: fn(&HeapAmounts) -> u64| {
        let last = Some(-1.0);
        all.iter().map(|amounts| Some(figure(amounts) as f64)).chain([last]).collect::<Vec<Option<f64>>>()
    };
    let orders = vec![
        SortOrder::given("at the peak", lines.len()),
        SortOrder::greatest("at the end", &key(|amounts| amounts.at_end.bytes)),
        SortOrder::greatest("allocated", &key(|amounts| amounts.allocated.bytes)),
    ];
    let label = "Allocation sites by their bytes at the peak".to_owned();
    Table { label, head, rows: lines, stacks: true, orders }
}

fn flame_chart(sites: &HeapSites) -> Option<Chart> {
    let frames = sites::frames(sites);
    let layout = flame_graph::layout(&frames, LEAST);
    let boxes: Vec<Stacked> = layout
        .boxes
        .iter()
        .map(|placed| {
            let bytes = quantity(layout.whole[placed.index], &Unit::Bytes);
            let frame = &sites.frames[sites.contexts[placed.index].frame];
            Stacked {
                from: placed.from,
                wide: placed.wide,
                level: placed.level,
                name: harmless_name(&called(frame)),
                about: format!(
                    "{bytes}, {} of the peak; {}",
                    share(placed.wide),
                    harmless_name(&frames[placed.index].label)
                ),
                tone: Tone::Plain,
            }
        })
        .collect();
    let label = boxes.iter().take(12).map(|one| one.name.as_str()).collect::<Vec<_>>().join("; ");
    (layout.all > 0.0).then(|| Chart {
        name: "peak".to_owned(),
        title: "What was in use at the peak".to_owned(),
        note: "A box is as wide as the bytes that it and the functions above it had in use at the peak. Callers are below."
            .to_owned(),
        label,
        drawn: Drawn::Flame(Flame { boxes }),
    })
}

fn course(sites: &HeapSites) -> Option<Chart> {
    let course = &sites.course;
    let (last, _) = course.points.last()?;
    let (title, unit) = match course.unit {
        CourseUnit::Instructions => ("instructions", Unit::Count),
        CourseUnit::Nanoseconds => ("time", Unit::Nanoseconds),
        CourseUnit::AllocatedBytes => ("bytes allocated", Unit::Bytes),
    };
    let points: Vec<ChartPoint> =
        course.points.iter().map(|(at, bytes)| ChartPoint::at(*at as f64, *bytes as f64)).collect();
    let layer = Layer {
        arm: 0,
        name: plain(&sites.words.first().cloned().unwrap_or_default()),
        code: true,
        shape: LayerShape::Steps,
        pieces: vec![points],
    };
    let plot = Plot {
        x: Axis::linear(title, unit),
        y: Axis::linear("in use", Unit::Bytes),
        shade: None,
        column: None,
        zero: Some(0.0),
        layers: vec![layer],
        small: false,
    };
    Some(Chart {
        name: "course".to_owned(),
        title: "In use over the course of the program".to_owned(),
        note: "Each point is the most that was in use in its part of the course.".to_owned(),
        label: format!(
            "In use over {}: at most {}",
            sites::position(course.unit, *last),
            quantity(sites.total.at_peak.bytes as f64, &Unit::Bytes)
        ),
        drawn: Drawn::Plot(plot),
    })
}
