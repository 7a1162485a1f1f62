//! Draws how throughput grows with the number of threads, beside that of an ideal program.

use crate::render::page::chart::slug;
use crate::render::page::{
    Axis, AxisLabel, AxisScale, Cell, Chart, ChartPoint, ColumnHeading, Drawn, Layer, LayerShape, Plot,
    Section, SectionPart, Span, Table, Tone, harmless_name,
};
use crate::run_report::scaling::{Scaling, ScalingPoint};
use crate::run_report::{Report, scaling};
use scruple_core::plural::{counted, noun};
use scruple_core::unit::{Unit, quantity, share, times};

/// The largest number of charts. The table has every subject.
const MOST_CHARTS: usize = 12;

/// The ratio of the most threads to the fewest from which on both axes are logarithmic.
const WIDE: f64 = 8.0;

/// Makes the section with a chart for each subject and a table of all, if any ran with several numbers of threads.
pub fn section(report: &Report<'_>) -> Option<Section> {
    let found = scaling::of(report);
    if found.is_empty() {
        return None;
    }
    let mut names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
    names.dedup();
    let versions_of = |name: &str| -> Vec<&Scaling> { found.iter().filter(|one| one.name == name).collect() };
    let charts: Vec<Chart> = names
        .iter()
        .take(MOST_CHARTS)
        .filter_map(|name| chart(&versions_of(name), names.len() > 1))
        .collect();
    let mut note = "Ideal: the throughput with the fewest threads, times the number of threads.".to_owned();
    let cores = report.run.provenance.cores;
    let most = found.iter().flat_map(|one| &one.steps).map(|step| step.threads).fold(0.0, f64::max);
    if cores > 0 && most > f64::from(cores) {
        let cores = counted(cores, "core");
        note.push_str(&format!(" The machine has {cores}, which more threads have to share."));
    }
    if names.len() > MOST_CHARTS {
        note.push_str(&format!(" {} more subjects are only in the table.", names.len() - MOST_CHARTS));
    }
    let parts = vec![
        SectionPart::Note(note),
        SectionPart::Charts(charts),
        SectionPart::Table(table(&found, names.len() > 1)),
    ];
    Some(Section { title: "Scaling over threads".to_owned(), folded: None, parts })
}

fn chart(versions: &[&Scaling], small: bool) -> Option<Chart> {
    let first = versions.first()?;
    let (fewest, most) = (first.steps.first()?.threads, first.steps.last()?.threads);
    let scale = if fewest > 0.0 && most / fewest >= WIDE { AxisScale::Log } else { AxisScale::Linear };
    let called = |one: &Scaling, what: &str| match &one.version {
        Some(version) => format!("{what} @{}", harmless_name(version)),
        None => what.to_owned(),
    };
    let mut layers = Vec::new();
    for (arm, one) in versions.iter().enumerate() {
        let band = one.steps.iter().filter_map(|step| {
            let (low, high) = step.interval?;
            Some(ChartPoint { low: Some(low), ..ChartPoint::at(step.threads, high) })
        });
        let layer =
            |name: String, shape, points| Layer { arm, name, code: false, shape, pieces: vec![points] };
        layers.push(layer(String::new(), LayerShape::Area, band.collect()));
        let measured = one.steps.iter().map(|step| ChartPoint::at(step.threads, step.rate)).collect();
        layers.push(layer(called(one, "measured"), LayerShape::Course, measured));
    }
    layers.push(Layer {
        arm: versions.len(),
        name: if versions.len() > 1 { called(first, "ideal") } else { "ideal".to_owned() },
        code: false,
        shape: LayerShape::Line,
        pieces: vec![first.steps.iter().map(|step| ChartPoint::at(step.threads, step.ideal())).collect()],
    });
    let texts = versions.iter().flat_map(|one| {
        one.steps.iter().map(|step| {
            format!(
                "{}: {} ({})",
                called(one, &of_threads(step)),
                per_second(step.rate),
                times(step.speed_up)
            )
        })
    });
    let x = Axis {
        places: first
            .steps
            .iter()
            .map(|step| AxisLabel {
                at: step.threads,
                name: quantity(step.threads, &Unit::Count),
                about: if step.threads == 1.0 { "thread" } else { "threads" }.to_owned(),
                event: None,
            })
            .collect(),
        ..Axis::new("threads", Unit::Count, scale.clone())
    };
    Some(Chart {
        name: slug(&format!("threads-{}", harmless_name(&first.name))),
        title: format!("‘{}’ per second, by threads", harmless_name(&first.name)),
        note: String::new(),
        label: texts.collect::<Vec<_>>().join("; "),
        drawn: Drawn::Plot(Plot {
            x,
            y: Axis::new("per second", Unit::Count, scale.clone()),
            shade: None,
            column: None,
            zero: (scale == AxisScale::Linear).then_some(0.0),
            layers,
            small,
        }),
    })
}

fn of_threads(step: &ScalingPoint) -> String {
    format!("{} {}", quantity(step.threads, &Unit::Count), noun(step.threads, "thread"))
}

fn per_second(rate: f64) -> String {
    format!("{}/s", quantity(rate, &Unit::Count))
}

fn table(found: &[Scaling], named: bool) -> Table {
    let versions = found.iter().any(|one| one.version.is_some());
    let fair = found.iter().flat_map(|one| &one.steps).any(|step| step.fairness.is_some());
    let mut head = Vec::new();
    head.extend(named.then(|| ColumnHeading::text("Subject")));
    head.extend(versions.then(|| ColumnHeading::text("Version")));
    head.extend(["Threads", "Throughput", "Speed-up", "Efficiency"].map(ColumnHeading::number));
    head.extend(fair.then(|| ColumnHeading::number("Fairness")));
    let row = |one: &Scaling, step: &ScalingPoint| {
        let interval = step
            .interval
            .map_or(String::new(), |(low, high)| format!("[{}, {}]", per_second(low), per_second(high)));
        let mut cells = Vec::new();
        cells.extend(named.then(|| Cell::code(harmless_name(&one.name))));
        cells.extend(
            versions.then(|| Cell::text(one.version.as_deref().map(harmless_name).unwrap_or_default())),
        );
        cells.push(Cell::text(quantity(step.threads, &Unit::Count)));
        cells.push(Cell { tail: Some(Span::new(interval, Tone::Same)), ..Cell::text(per_second(step.rate)) });
        cells.push(Cell::text(times(step.speed_up)));
        cells.push(Cell::text(share(step.efficiency)));
        cells.extend(
            fair.then(|| {
                Cell::text(step.fairness.map_or("–".to_owned(), |fairness| format!("{fairness:.3}")))
            }),
        );
        cells
    };
    Table {
        label: "Throughput by the number of threads".to_owned(),
        head,
        rows: found.iter().flat_map(|one| one.steps.iter().map(|step| row(one, step))).collect(),
        stacks: true,
        ..Table::default()
    }
}
