//! Writes the trend as lines and as JSON.

use super::series::{ChosenRuns, SeriesChanges, Trend, is_worse};

use crate::history::report::sparkline::{self, VersionCell};
use crate::render::align;
use crate::render::align::wrap;
use crate::render::colours::{BAD, BOLD, DIM, GOOD};
use crate::render::json::{document, timestamp};
use crate::store::StoredPoint;
use scruple_core::environment;
use scruple_core::harmless_text::plain;
use scruple_core::plural::counted;
use scruple_core::provenance::short_commit;
use scruple_core::unit::{change, change_between, exact, quantity, relative_spread, share};
use scruple_stats::changepoint::{ChangePoint, FEW_VALUES, StepSize};
use scruple_stats::paired::Why;
use serde::Serialize;
use std::fmt::Write as _;

/// The largest width of a line, in columns.
const COLUMNS: usize = 80;

/// Writes the series for a terminal with this many columns.
pub fn terminal(chosen: &ChosenRuns, trends: &[Trend], width: usize) -> String {
    let points = &chosen.points;
    let ends = [points.first(), points.last()].map(|point| point.map_or_else(String::new, day));
    let machine = chosen.machine.as_deref().unwrap_or("machines of all classes");
    let mut out = format!(
        "{} · {}, {} to {} UTC · {machine}\n",
        chosen.subject,
        counted(points.len(), "run"),
        ends[0],
        ends[1]
    );
    for trend in trends {
        one(points, trend, width, &mut out);
    }
    for (class, count) in &chosen.left_out {
        let text = format!(
            "{} of the class ‘{class}’ left out, whose times cannot be compared: --machine {} shows {}",
            counted(*count, "run"),
            shell_words::quote(class),
            if *count == 1 { "it" } else { "them" }
        );
        let _ = writeln!(out, "\n{DIM}{}{DIM:#}", wrap(&text, width));
    }
    if chosen.machine.is_none() {
        let text = "The runs are of machines of several classes, whose times cannot be compared: only the counts of this series can.";
        let _ = write!(out, "\n{}", align::remark(text, width));
    }
    out
}

fn one(points: &[StoredPoint], trend: &Trend, width: usize, out: &mut String) {
    let (title, unit) = (&trend.metric.title, &trend.metric.unit);
    let text = |value: f64| if trend.exact { exact(value, unit) } else { quantity(value, unit) };
    let (first, last) = (trend.values.first(), trend.values.last());
    let (first, last) = (first.map_or(0.0, |one| one.1), last.map_or(0.0, |one| one.1));
    let whole =
        if first > 0.0 && first != last { format!("  ({})", change(last / first)) } else { String::new() };
    let _ = writeln!(out, "\n{BOLD}{title}{BOLD:#}  {} → {}{whole}", text(first), text(last));
    let mut cells = vec![VersionCell::Empty; points.len()];
    trend.values.iter().for_each(|(place, value)| cells[*place] = VersionCell::Value(*value));
    let columns = COLUMNS.min(width.saturating_sub(2));
    let _ = writeln!(out, "  {}", sparkline::line(&cells, columns));
    match &trend.found {
        Ok(found) => changes(points, trend, found, columns, width, out),
        Err(Why::TooFew { have, need }) => {
            let runs = if *have == 1 { "run is" } else { "runs are" };
            let text = format!("{have} {runs} too few to tell changes from noise: {need} are needed.");
            let _ = writeln!(out, "  {DIM}{text}{DIM:#}");
        }
        Err(why) => _ = writeln!(out, "  {DIM}Can’t tell: {why}.{DIM:#}"),
    }
}

fn changes(
    points: &[StoredPoint],
    trend: &Trend,
    found: &SeriesChanges,
    columns: usize,
    width: usize,
    out: &mut String,
) {
    let place = |at: usize| trend.values[at].0;
    let events: Vec<(usize, usize)> =
        found.changes.iter().enumerate().map(|(index, one)| (index + 1, place(one.at))).collect();
    if !events.is_empty() {
        let _ =
            writeln!(out, "  {}", sparkline::marks(&events, points.len(), columns, width.saturating_sub(2)));
    }
    for (index, one) in found.changes.iter().enumerate() {
        let (before, at) = (&points[place(one.at - 1)], &points[place(one.at)]);
        let style = if is_worse(&trend.metric, one.step) { BAD } else { GOOD };
        let set = match one.last > one.first {
            true => format!(
                ", or another from {} to {}",
                day(&points[place(one.first)]),
                day(&points[place(one.last)])
            ),
            false => String::new(),
        };
        let line = format!("{}  {}{set}  {}", index + 1, named(at), step(trend, one));
        let _ = writeln!(
            out,
            "  {style}{}{style:#}",
            wrap(&line, width.saturating_sub(2)).replace('\n', "\n     ")
        );
        let other = environment::differences(&before.provenance, &at.provenance);
        let other: Vec<&str> = other.iter().map(|difference| difference.name.as_str()).collect();
        if !other.is_empty() {
            let text = format!("also changed since the run before: {}", other.join(", "));
            let _ = writeln!(
                out,
                "     {DIM}{}{DIM:#}",
                wrap(&text, width.saturating_sub(5)).replace('\n', "\n     ")
            );
        }
    }
    if let Some(text) = remark(trend, found) {
        let _ = writeln!(out, "  {DIM}{}{DIM:#}", wrap(&text, width.saturating_sub(2)).replace('\n', "\n  "));
    }
}

/// Writes remarks on a series other than its changes.
fn remark(trend: &Trend, found: &SeriesChanges) -> Option<String> {
    let unit = &trend.metric.unit;
    let Some(series) = &found.noisy else {
        return found.changes.is_empty().then(|| "The same in every run.".to_owned());
    };
    if let Some([low, high]) = series.modes {
        return Some(format!(
            "It goes back and forth between {} and {}, so no run can be named.",
            quantity(low, unit),
            quantity(high, unit)
        ));
    }
    let ratios = trend.values.iter().all(|(_, value)| *value > 0.0);
    let noise = if ratios { relative_spread(series.noise) } else { quantity(series.noise, unit) };
    let slow = match series.background.as_ref().map(|background| background.range) {
        Some(StepSize::Ratio(ratio)) => {
            format!("; also a slow drift of {}, which no single run caused", share(ratio - 1.0))
        }
        Some(StepSize::Difference(_)) => "; also a slow drift, which no single run caused".to_owned(),
        None => String::new(),
    };
    let changes =
        if found.changes.is_empty() { "No change was found; runs" } else { "Without a change, runs" };
    let few = !found.changes.is_empty() && trend.values.len() < FEW_VALUES;
    let drift = if few { " In so few runs, drift of the machine may look like a change." } else { "" };
    Some(format!("{changes} differ by ±{noise}{slow}.{drift}"))
}

fn step(trend: &Trend, one: &ChangePoint) -> String {
    match (one.step, one.interval) {
        (StepSize::Ratio(ratio), Some(interval)) => change_between(ratio, interval.low, interval.high),
        (StepSize::Ratio(ratio), None) => {
            let values = [one.at - 1, one.at].map(|at| exact(trend.values[at].1, &trend.metric.unit));
            format!("{} → {} ({})", values[0], values[1], change(ratio))
        }
        (StepSize::Difference(difference), _) => {
            let sign = if difference > 0.0 { "+" } else { "" };
            format!("{sign}{}", quantity(difference, &trend.metric.unit))
        }
    }
}

/// Names a run so that a reader can find it again.
fn named(point: &StoredPoint) -> String {
    let label = point.label.as_ref().map_or_else(String::new, |label| format!(" {}", plain(label)));
    let commit = point.version.as_ref().or(point.provenance.commit.as_ref());
    let commit = commit.map_or_else(String::new, |commit| format!(" @{}", plain(short_commit(commit))));
    format!("{} {}{label}{commit}", day(point), point.run)
}

fn day(point: &StoredPoint) -> String {
    let text = timestamp(point.started);
    text.get(..16).map_or_else(|| text.clone(), |text| text.replace('T', " "))
}

#[derive(Serialize)]
struct SubjectTrend<'a> {
    trend: TrendView<'a>,
}

#[derive(Serialize)]
struct TrendView<'a> {
    subject: &'a str,
    machine_class: Option<&'a str>,
    runs: Vec<RunView<'a>>,
    series: Vec<SeriesView<'a>>,
}

#[derive(Serialize)]
struct RunView<'a> {
    id: &'a str,
    label: Option<&'a str>,
    started: String,
    version: Option<&'a str>,
    machine_class: &'a str,
}

#[derive(Serialize)]
struct SeriesView<'a> {
    metric: &'a str,
    unit: &'a str,
    exact: bool,
    values: Vec<Option<f64>>,
    changes: Vec<ChangeView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Serialize)]
struct ChangeView {
    at: usize,
    first: usize,
    last: usize,
    step: StepSize,
    interval: Option<[f64; 2]>,
    p: f64,
}

/// Writes the series as JSON. Positions are indices of runs.
pub fn json(chosen: &ChosenRuns, trends: &[Trend]) -> String {
    let runs = chosen.points.iter().map(|point| RunView {
        id: &point.run,
        label: point.label.as_deref(),
        started: timestamp(point.started),
        version: point.version.as_deref(),
        machine_class: &point.provenance.machine_class,
    });
    let series = trends.iter().map(|trend| {
        let mut values = vec![None; chosen.points.len()];
        trend.values.iter().for_each(|(place, value)| values[*place] = Some(*value));
        let place = |at: usize| trend.values[at].0;
        let changes = trend.found.iter().flat_map(|found| &found.changes).map(|one| ChangeView {
            at: place(one.at),
            first: place(one.first),
            last: place(one.last),
            step: one.step,
            interval: one.interval.map(|interval| [interval.low, interval.high]),
            p: one.p,
        });
        SeriesView {
            metric: &trend.metric.key,
            unit: trend.metric.unit.name(),
            exact: trend.exact,
            values,
            changes: changes.collect(),
            why: trend.found.as_ref().err().map(ToString::to_string),
        }
    });
    document(&SubjectTrend {
        trend: TrendView {
            subject: &chosen.subject,
            machine_class: chosen.machine.as_deref(),
            runs: runs.collect(),
            series: series.collect(),
        },
    })
}
