//! The charts of a range: one for each series over the versions, with its changes and the versions that could not be
//! weighed.

use super::event::{EventDirection, HistoryEvent};
use super::{HistoryReport, csv, words};
use crate::history::args::ChartForm;
use crate::render::metric_words::title;
use crate::render::page::chart::slug;
use crate::render::page::{
    self, Axis, AxisLabel, AxisScale, Chart, ChartPoint, Drawn, Layer, LayerShape, Plot, Tone, harmless_name,
    harmless_sentence,
};
use scruple_core::history::{self, Series, VersionState};
use scruple_core::unit::quantity;

/// Options for drawing charts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChartOptions {
    /// Whether the scale is linear rather than logarithmic.
    pub linear: bool,
    /// Whether each subject has one chart, with allocations, memory and time relative to their first values, rather
    /// than one chart for each metric.
    pub combined: bool,
}

impl ChartOptions {
    /// Returns the options that these words of the command line select.
    pub fn of(forms: &[ChartForm]) -> ChartOptions {
        ChartOptions {
            linear: forms.contains(&ChartForm::Linear),
            combined: forms.contains(&ChartForm::Combined),
        }
    }
}

/// The largest total number of readings that are drawn as single points.
const MOST_READINGS: usize = 20_000;

/// The largest number of versions for which points are drawn. Charts of more versions show only the line.
const MOST_MARKS: usize = 120;

/// The metrics that share a combined chart. In each group, the preferred metric is first.
const TOGETHER: [&[&str]; 3] = [&csv::ALLOCATIONS, &csv::MEMORY, &csv::TIME];

/// The states of versions that were not weighed, each with the number of the arm whose mark represents it.
const STATES: [(&[VersionState], usize, &str); 4] = [
    (&[VersionState::BuildFailed], 2, "build failed"),
    (
        &[VersionState::CheckFailed, VersionState::RunFailed, VersionState::TimedOut],
        4,
        "check or run failed, or timed out",
    ),
    (&[VersionState::SameBinary], 3, "same binary as another"),
    (&[VersionState::Skipped, VersionState::Queued, VersionState::Building], 0, "not weighed"),
];

/// Returns all charts, to be drawn in a separate picture.
pub(crate) fn all(page: &HistoryReport<'_>, options: ChartOptions) -> Vec<Chart> {
    if options.combined {
        return page.subjects().iter().filter_map(|subject| combined_chart(page, subject)).collect();
    }
    let drawn: Vec<&Series> = page.shown.iter().copied().filter(|series| !series.points.is_empty()).collect();
    let readings = shows_readings(&drawn);
    drawn.iter().filter_map(|series| of_series(page, series, options, readings)).collect()
}

/// Whether there are few enough readings to draw each as a point.
pub(crate) fn shows_readings(drawn: &[&Series]) -> bool {
    let points = drawn.iter().flat_map(|series| &series.points);
    points.map(|point| point.readings.len()).sum::<usize>() <= MOST_READINGS
}

/// Returns the tone of an event.
pub(crate) fn tone(event: &HistoryEvent<'_>) -> Tone {
    match event.outcome() {
        EventDirection::Regression => Tone::Worse,
        EventDirection::Improvement => Tone::Better,
        EventDirection::Change => Tone::Plain,
    }
}

/// Returns the axis of the versions, with the events of the given kind.
fn versions(page: &HistoryReport<'_>, of: impl Fn(&HistoryEvent<'_>) -> bool) -> Axis {
    let mut axis = Axis::new("version", scruple_core::unit::Unit::Count, AxisScale::Linear);
    axis.places = (0..page.history.versions.len())
        .map(|index| AxisLabel {
            at: index as f64,
            name: named(page, index),
            about: page::harmless_name(&page.version(index).title),
            event: page.events.iter().find(|event| event.at == index && of(event)).map(|event| {
                page::ChartEvent {
                    sign: format!("#{}", event.number),
                    tone: tone(event),
                    within: within(page, event),
                }
            }),
        })
        .collect();
    axis
}

/// Returns the first tag of a version, or else its short id.
fn named(page: &HistoryReport<'_>, index: usize) -> String {
    let version = page.version(index);
    page::harmless_name(version.tags.first().map_or(version.short(), String::as_str))
}

/// Returns the range of versions that may have caused an event, if there are several.
fn within(page: &HistoryReport<'_>, event: &HistoryEvent<'_>) -> Option<(f64, f64)> {
    let first = event.set.first().copied().unwrap_or(event.at);
    let several = event.set.len() + words::left_out(page, event) > 1;
    several.then(|| (first as f64 - 0.5, event.last() as f64 + 0.5))
}

/// Draws one series: its levels, intervals, medians and readings.
pub(crate) fn of_series(
    page: &HistoryReport<'_>,
    series: &Series,
    options: ChartOptions,
    readings: bool,
) -> Option<Chart> {
    let points = &series.points;
    points.first()?;
    let at = |point: &history::Point| point.version as f64;
    let known = |values: &mut dyn Iterator<Item = ChartPoint>| -> Vec<ChartPoint> {
        values.filter(|point| point.y.is_finite()).collect()
    };
    let interval = known(&mut points.iter().filter_map(|point| {
        let interval = point.interval?;
        Some(ChartPoint { low: Some(interval.low), ..ChartPoint::at(at(point), interval.high) })
    }));
    let median = known(
        &mut points
            .iter()
            .map(|point| ChartPoint { apart: point.copied, ..ChartPoint::at(at(point), point.value) }),
    );
    let each = points.iter().filter(|point| readings && !point.copied && !series.exact);
    let spots = known(&mut each.flat_map(|point| {
        let last = point.readings.len().saturating_sub(1).max(1) as f64;
        let beside = move |index: usize| (index as f64 / last - 0.5) * 0.6;
        point
            .readings
            .iter()
            .enumerate()
            .map(move |(index, value)| ChartPoint::at(at(point) + beside(index), *value))
    }));
    let least = points.iter().any(|point| point.least < point.value);
    let least =
        known(&mut points.iter().filter(|_| least).map(|point| ChartPoint::at(at(point), point.least)));
    let copied = points.iter().any(|point| point.copied);
    let positive = points.iter().all(|point| point.value > 0.0 && point.least > 0.0);
    let shape = if median.len() > MOST_MARKS { LayerShape::Line } else { LayerShape::Course };
    let mut layers = vec![
        layer(1, "interval", LayerShape::Area, vec![interval]),
        layer(1, "readings", LayerShape::Spots, vec![spots]),
        layer(2, "least reading", LayerShape::Line, vec![least]),
        layer(0, "level", LayerShape::Line, levels(series)),
        layer(1, "median", shape, vec![median]),
    ];
    layers.extend(below(page));
    layers.retain(|layer| layer.pieces.iter().any(|piece| !piece.is_empty()));
    let scale = if positive && !options.linear { AxisScale::Log } else { AxisScale::Linear };
    let change = whole_change(series);
    let mut note = change.clone();
    if copied {
        note.push_str(". Hollow: readings of another version with the same binary");
    }
    Some(Chart {
        name: slug(&format!("{}-{}", harmless_name(&series.subject), title(&series.metric))),
        title: harmless_sentence(&words::series(series)),
        note,
        label: harmless_sentence(&format!("{}: {change}{}", words::series(series), changes(page, series))),
        drawn: Drawn::Plot(Plot {
            x: versions(page, |event| event.changes.iter().any(|(one, _)| std::ptr::eq(*one, series))),
            y: Axis::new(title(&series.metric), series.unit.clone(), scale),
            shade: None,
            column: None,
            zero: None,
            layers,
            small: false,
        }),
    })
}

fn layer(arm: usize, name: &str, shape: LayerShape, pieces: Vec<Vec<ChartPoint>>) -> Layer {
    Layer { arm, name: name.to_owned(), code: false, shape, pieces }
}

/// Describes the change from the first to the last version.
fn whole_change(series: &Series) -> String {
    let whole = series.whole.as_ref().and_then(|whole| words::overall_change(series, whole));
    whole.map_or(String::new(), |(from, to, effect)| format!("{from} → {to}, {effect}"))
}

/// Describes the changes of a series.
fn changes(page: &HistoryReport<'_>, series: &Series) -> String {
    let changes: Vec<String> = series
        .changes
        .iter()
        .map(|change| {
            let (from, to) = (quantity(change.from, &series.unit), quantity(change.to, &series.unit));
            format!("{from} to {to} at {}", words::short(page, change.at))
        })
        .collect();
    if changes.is_empty() { String::new() } else { format!("; changes: {}", changes.join("; ")) }
}

/// Returns the level of each stretch between changes, as lines with steps at the borders of versions.
fn levels(series: &Series) -> Vec<Vec<ChartPoint>> {
    let mut pieces: Vec<Vec<ChartPoint>> = Vec::new();
    let mut end = None;
    for (first, last, level) in series.levels.iter().filter(|(_, _, level)| level.is_finite()) {
        if end != Some(*first) {
            pieces.push(Vec::new());
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(ChartPoint::at(*first as f64 - 0.5, *level));
            piece.push(ChartPoint::at(*last as f64 + 0.5, *level));
        }
        end = Some(last + 1);
    }
    pieces
}

/// Returns the marks below the chart, one for each version that was not weighed itself.
fn below<'p>(page: &'p HistoryReport<'_>) -> impl Iterator<Item = Layer> + 'p {
    STATES.iter().map(move |(states, arm, word)| {
        let of =
            page.history.versions.iter().enumerate().filter(|(_, version)| states.contains(&version.state));
        layer(
            *arm,
            word,
            LayerShape::Below,
            vec![of.map(|(index, _)| ChartPoint::at(index as f64, 0.0)).collect()],
        )
    })
}

/// Draws allocations, memory and time of a subject in one chart. Each is relative to its first value, since the three
/// have no unit in common.
fn combined_chart(page: &HistoryReport<'_>, subject: &str) -> Option<Chart> {
    // The contents of this chart do not depend on the metrics that tables show.
    let fits = |one: &&Series, key: &str| {
        one.subject == subject
            && one.metric == key
            && one.points.first().is_some_and(|first| first.least > 0.0)
    };
    let choose =
        |keys: &[&str]| keys.iter().find_map(|key| page.judgement.series.iter().find(|one| fits(one, key)));
    let layers: Vec<Layer> = TOGETHER
        .iter()
        .enumerate()
        .filter_map(|(place, keys)| {
            let series = choose(keys)?;
            let first = series.points.first()?.least;
            let points = series.points.iter().filter(|point| point.least > 0.0);
            let points = points.map(|point| ChartPoint {
                apart: point.copied,
                ..ChartPoint::at(point.version as f64, point.least / first)
            });
            Some(layer(
                place + 1,
                &harmless_sentence(&title(&series.metric)),
                LayerShape::Course,
                vec![points.collect()],
            ))
        })
        .collect();
    let label: Vec<String> = layers
        .iter()
        .filter_map(|layer| {
            Some(format!("{} {}", layer.name, scruple_core::unit::change(layer.pieces[0].last()?.y)))
        })
        .collect();
    (!layers.is_empty()).then(|| Chart {
        name: slug(&format!("{}-together", harmless_name(subject))),
        title: harmless_name(subject),
        note: "The smallest readings, relative to those of the first version.".to_owned(),
        label: format!("{} at the last version: {}", harmless_name(subject), label.join(", ")),
        drawn: Drawn::Plot(Plot {
            x: versions(page, |event| event.changes.iter().any(|(one, _)| one.subject == subject)),
            y: Axis::ratio("by the first version"),
            shade: None,
            column: None,
            zero: Some(1.0),
            layers: layers
                .into_iter()
                .chain(below(page))
                .filter(|layer| !layer.pieces[0].is_empty())
                .collect(),
            small: false,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::report::fixture::rich;

    #[test]
    fn the_chart_marks_failures_and_numbers_changes() {
        let made = rich();
        let page = HistoryReport::of(&made.history, &made.judgement);
        let svg = page.svg(ChartOptions::default());
        let charts = all(&page, ChartOptions::default());
        assert_eq!(charts.len(), 6);
        let plots: Vec<&Plot> = charts.iter().filter_map(plot).collect();
        let below = |name: &str| {
            let of =
                plots[0].layers.iter().filter(|layer| layer.shape == LayerShape::Below && layer.name == name);
            of.flat_map(|layer| &layer.pieces[0]).count()
        };
        assert_eq!(below("build failed"), 2);
        assert_eq!(below("check or run failed, or timed out"), 2);
        assert_eq!(below("same binary as another"), 1);
        assert_eq!(below("not weighed"), 2);
        let signs = |plot: &Plot| -> Vec<String> {
            plot.x.places.iter().filter_map(|place| Some(place.event.as_ref()?.sign.clone())).collect()
        };
        assert_eq!(signs(plots[0]), ["#1"], "a chart marks the changes of its own series");
        assert_eq!(signs(plots[1]), ["#1", "#2", "#3", "#4", "#6"]);
        let unsure: Vec<_> =
            plots[1].x.places.iter().filter_map(|place| place.event.as_ref()?.within).collect();
        assert_eq!(unsure, [(26.5, 30.5)], "one of four versions");
        assert!(
            svg.contains(">100 ms</text>")
                && page.svg(ChartOptions { linear: true, combined: false }).contains(">0</text>")
        );
        assert!(svg.contains("class=\"sign worse\"") && svg.contains("class=\"within better\""));
        let combined = all(&page, ChartOptions { combined: true, linear: false });
        let drawn: Vec<usize> = combined
            .iter()
            .filter_map(plot)
            .map(|plot| plot.layers.iter().filter(|layer| layer.shape == LayerShape::Course).count())
            .collect();
        assert_eq!(drawn, [3, 2], "nobody read the memory of parse");
    }

    fn plot(chart: &Chart) -> Option<&Plot> {
        match &chart.drawn {
            Drawn::Plot(plot) => Some(plot),
            _ => None,
        }
    }
}
