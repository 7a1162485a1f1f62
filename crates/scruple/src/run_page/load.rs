//! The page of servers under load: the distribution of response times, their course, and the search for the highest
//! rate.

use super::COLOURS;
use crate::render::page::chart::slug;
use crate::render::page::{
    Axis, AxisScale, Cell, Chart, ChartPoint, ColumnHeading, Drawn, Field, Heat, Layer, LayerShape, Plot,
    Section, SectionPart, Shade, Span, Table, Tone, harmless_name, harmless_sentence,
};
use crate::run_report::Report;
use scruple_core::judge::Judged;
use scruple_core::run::RunState;
use scruple_core::subject::{Arm, LoadCourse, LoadSlice, Parameter, Role};
use scruple_core::unit::{Unit, grouped, quantity};
use scruple_core::verdict::Verdict;
use scruple_stats::sorting::{self, SortedMap};

/// The number of points through which a distribution is drawn.
const STEPS: usize = 200;

/// A percentile is uncertain if fewer requests than this are beyond it.
const FEW: f64 = 10.0;

/// The largest gap between connected slices, in nanoseconds.
const APART: i64 = 1000;

/// The quantiles that have columns in tables.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("longest", 1.0)];

/// Returns the servers that have a course, each with its index among the arms.
fn servers<'a>(report: &Report<'a>) -> Vec<(usize, &'a Arm, &'a LoadCourse)> {
    let arms = report.run.arms.iter().filter(|arm| matches!(arm.role, Role::Subject | Role::Yardstick));
    arms.enumerate().filter_map(|(place, arm)| Some((place, arm, arm.course.as_ref()?))).collect()
}

/// Whether the arms of the run are servers with stored courses.
pub fn is_one(report: &Report<'_>) -> bool {
    !servers(report).is_empty()
}

/// Writes the first line of the page, if no comparison provides it.
pub fn lead(report: &Report<'_>) -> Option<Vec<Span>> {
    let servers = servers(report);
    let (_, arm, course) = servers.first()?;
    if let Some(answer) = &course.answer {
        return Some(vec![Span::plain(harmless_sentence(answer.trim_end_matches('.')))]);
    }
    if report.run.arms_of(Role::Subject).count() > 1 {
        return None;
    }
    let server = harmless_name(&arm.name);
    let (windows, void) = course.windows;
    if windows == 0 {
        return Some(vec![Span::new(format!("‘{server}’ was not measured"), Tone::Open)]);
    }
    if windows == void {
        return Some(vec![Span::new(
            format!("Can’t tell how fast ‘{server}’ answers: the generator itself was late in every window"),
            Tone::Open,
        )]);
    }
    let time = |share: f64| course.quantile(share).map(|value| quantity(value as f64, &Unit::Nanoseconds));
    let mut spans = vec![Span::plain(match time(0.5).zip(time(0.99)) {
        Some((half, most)) => format!(
            "‘{server}’ answers {} requests/s, half of them within {half} and 99 % within {most}",
            grouped(course.rate)
        ),
        None => format!("‘{server}’ answers nothing"),
    })];
    if course.failed > 0 {
        let failed =
            format!("; {} of {} requests failed", grouped(course.failed as f64), grouped(course.due as f64));
        spans.push(Span::new(failed, Tone::Worse));
    }
    if report.run.state == RunState::Interrupted {
        spans.push(Span::plain(" (until the load was interrupted)".to_owned()));
    }
    Some(spans)
}

/// Writes what the windows of a server tell, if its load ended before its course was stored.
pub fn without_course(report: &Report<'_>, arm: &Arm) -> Option<Span> {
    let rate = report.estimate(arm, "load.rate").filter(|_| report.of_requests())?.value;
    let half = report.estimate(arm, "load.p50").map_or(String::new(), |half| {
        format!(", with a median response time of {}", quantity(half.value, &Unit::Nanoseconds))
    });
    let answered =
        if rate > 0.0 { format!("{} requests/s{half}", grouped(rate)) } else { "nothing".to_owned() };
    let name = harmless_name(&arm.name);
    Some(Span::plain(format!("‘{name}’ answered {answered}, until the load was interrupted")))
}

/// Returns the sentence that the response times of several servers are unknown because the generator was late, if that
/// is so.
pub fn void(report: &Report<'_>) -> Option<Span> {
    let servers = servers(report);
    let late = |(_, _, course): &(usize, &Arm, &LoadCourse)| {
        course.windows.0 > 0 && course.windows.0 == course.windows.1
    };
    let text = "Can’t tell how fast the servers answer: the generator itself was late in every window. ";
    (!servers.is_empty() && servers.iter().all(late)).then(|| Span::new(text, Tone::Open))
}

/// Writes the verdict about the response times of two servers, if the first line quotes another metric.
pub fn response_times(report: &Report<'_>, quoted: &[&Judged]) -> Option<Span> {
    let [one] = quoted else { return None };
    if one.metric.starts_with("load.p") || !is_one(report) || void(report).is_some() {
        return None;
    }
    let of_arm = |key: &str| report.judged_of(&one.arm, key).filter(|_| report.is_shown(key));
    let verdicts: Vec<Verdict> =
        ["load.p50", "load.p99"].iter().filter_map(|key| Some(of_arm(key)?.comparison.verdict)).collect();
    let all = |wanted: Verdict| !verdicts.is_empty() && verdicts.iter().all(|verdict| *verdict == wanted);
    let text = match () {
        () if all(Verdict::CantTell) => "; can’t tell whether response times differ",
        () if all(Verdict::Same) => "; response times are the same",
        () => return None,
    };
    Some(Span::new(text, Tone::Open))
}

/// Makes the section about response times.
pub fn section(report: &Report<'_>) -> Section {
    let servers = servers(report);
    let mut parts = vec![SectionPart::Table(table(&servers))];
    match servers.iter().any(|(_, _, course)| course.answer.is_some()) {
        true => parts.extend(by_rate(&servers).map(SectionPart::Chart)),
        false => {
            parts.extend(by_percentile(&servers).map(SectionPart::Chart));
            for charts in [over_time, by_length_over_time, failures_over_time] {
                let charts: Vec<Chart> = servers.iter().filter_map(charts).collect();
                parts.extend(
                    Some(SectionPart::Charts(charts))
                        .filter(|part| !matches!(part, SectionPart::Charts(c) if c.is_empty())),
                );
            }
        }
    }
    Section { title: "Response time".to_owned(), folded: None, parts }
}

fn table(servers: &[(usize, &Arm, &LoadCourse)]) -> Table {
    let mut head = vec![ColumnHeading::text("Server")];
    head.extend(QUANTILES.map(|(title, _)| ColumnHeading::number(title)));
    head.extend(["answered/s", "answered", "failed", "void windows"].map(ColumnHeading::number));
    let row = |(_, arm, course): &(usize, &Arm, &LoadCourse)| {
        let mut cells = vec![Cell::code(harmless_name(&arm.name))];
        cells.extend(QUANTILES.map(|(_, share)| {
            let value = course.quantile(share).map(|value| quantity(value as f64, &Unit::Nanoseconds));
            Cell::text(value.unwrap_or_else(|| "–".to_owned()))
        }));
        let bad = |count: u64| if count > 0 { Tone::Worse } else { Tone::Plain };
        let rate = match course.least_rate {
            Some(least) => format!("{} to {}", grouped(least), grouped(course.rate)),
            None => grouped(course.rate),
        };
        cells.push(match course.offered {
            Some(due) => Cell::toned(format!("{rate}/s of {}/s", grouped(due)), Tone::Worse),
            None => Cell::text(rate),
        });
        cells.push(Cell::text(grouped(course.answered as f64)));
        cells.push(Cell::toned(grouped(course.failed as f64), bad(course.failed)));
        let (windows, void) = course.windows;
        cells.push(Cell::toned(format!("{void} of {windows}"), bad(void)));
        cells
    };
    let rows = servers.iter().map(row).collect();
    Table { label: "Response times by percentile".to_owned(), head, rows, stacks: true, ..Table::default() }
}

/// Describes a chart of response times in words.
fn describe_response_times(servers: &[(usize, &Arm, &LoadCourse)]) -> String {
    let each = servers.iter().map(|(_, arm, course)| {
        let time = |share: f64| {
            course.quantile(share).map_or("–".to_owned(), |v| quantity(v as f64, &Unit::Nanoseconds))
        };
        format!("{}: half within {}, 99 % within {}", harmless_name(&arm.name), time(0.5), time(0.99))
    });
    each.collect::<Vec<_>>().join("; ")
}

fn by_percentile(servers: &[(usize, &Arm, &LoadCourse)]) -> Option<Chart> {
    let answered =
        servers.iter().map(|(_, _, course)| course.answered).max().filter(|most| *most > 1)? as f64;
    let layers = servers.iter().map(|(place, arm, course)| {
        let most = (course.answered.max(2) as f64).log10();
        let shares = (0..=STEPS).map(|step| 1.0 - 10_f64.powf(-most * step as f64 / STEPS as f64));
        let points = shares.filter_map(|share| Some(ChartPoint::at(share, course.quantile(share)? as f64)));
        Layer {
            arm: *place,
            name: harmless_name(&arm.name),
            code: true,
            shape: LayerShape::Line,
            pieces: vec![points.collect()],
        }
    });
    let few = Shade {
        low: 1.0 - FEW / answered,
        high: 1.0 - 1.0 / answered,
        text: "fewer than ten requests".to_owned(),
    };
    Some(Chart {
        name: "percentiles".to_owned(),
        title: "By percentile".to_owned(),
        note: String::new(),
        label: describe_response_times(servers),
        drawn: Drawn::Plot(Plot {
            x: Axis::new("share", Unit::Ratio, AxisScale::Nines),
            y: Axis::log("response", Unit::Nanoseconds),
            shade: None,
            column: Some(few).filter(|few| few.low > 0.0),
            zero: None,
            layers: layers.collect(),
            small: false,
        }),
    })
}

/// Draws the course of one server: the median as a line, and the range from there to the 99th percentile as an area.
fn over_time((place, arm, course): &(usize, &Arm, &LoadCourse)) -> Option<Chart> {
    // If a void window is left out, the next slice does not start where the previous one ended.
    let runs = || course.slices.chunk_by(|slice, next| next.from - slice.to <= APART);
    let middle = |from: i64, to: i64| (from + to) as f64 / 2.0;
    let line = runs().map(|run| {
        run.iter()
            .filter_map(|slice| Some(ChartPoint::at(middle(slice.from, slice.to), slice.p50? as f64)))
            .collect()
    });
    let line: Vec<Vec<ChartPoint>> = line.collect();
    if line.iter().all(Vec::is_empty) {
        return None;
    }
    let area = runs().map(|run| {
        let each = run.iter().filter_map(|slice| {
            let at = middle(slice.from, slice.to);
            Some(ChartPoint { low: Some(slice.p50? as f64), ..ChartPoint::at(at, slice.p99? as f64) })
        });
        each.collect()
    });
    let area: Vec<Vec<ChartPoint>> = area.collect();
    let arm_name = harmless_name(&arm.name);
    let stalls = match course.stalls.len() {
        0 => String::new(),
        1 => " It stalled once.".to_owned(),
        more => format!(" It stalled {more} times."),
    };
    let void = match course.windows.1 {
        0 => "",
        _ => " Void windows, in which the generator was late, are gaps.",
    };
    let layer =
        |shape, pieces| Layer { arm: place % COLOURS, name: String::new(), code: false, shape, pieces };
    Some(Chart {
        name: slug(&format!("course-{arm_name}")),
        title: format!("{arm_name} over the run"),
        note: format!("The line is p50, the shade goes up to p99.{stalls}{void}"),
        label: describe_response_times(&[(*place, arm, course)]),
        drawn: Drawn::Plot(Plot {
            x: Axis::linear("at", Unit::Nanoseconds),
            y: Axis::log("response", Unit::Nanoseconds),
            shade: None,
            column: None,
            zero: None,
            layers: vec![layer(LayerShape::Area, area), layer(LayerShape::Line, line)],
            small: true,
        }),
    })
}

/// Draws how many responses of each duration occurred in each part of the run.
fn by_length_over_time((_, arm, course): &(usize, &Arm, &LoadCourse)) -> Option<Chart> {
    let fields: Vec<Field> = course
        .slices
        .iter()
        .flat_map(|slice| {
            let up = |class: i32| (LoadSlice::least(class), LoadSlice::least(class + 1));
            let across = (slice.from as f64, slice.to as f64);
            slice.counts.iter().map(move |(class, count)| Field {
                across,
                up: up(*class),
                count: *count as f64,
            })
        })
        .collect();
    if fields.is_empty() {
        return None;
    }
    let arm_name = harmless_name(&arm.name);
    let longest = course
        .quantile(1.0)
        .map_or(String::new(), |ns| format!(", the longest {}", quantity(ns as f64, &Unit::Nanoseconds)));
    Some(Chart {
        name: slug(&format!("heat-{arm_name}")),
        title: format!("{arm_name}: how long responses took, over time"),
        note: "The darker a field, the more responses; the lightest has one or a few.".to_owned(),
        label: format!("{} responses over the run{longest}", grouped(course.answered as f64)),
        drawn: Drawn::Heat(Heat {
            x: Axis::linear("at", Unit::Nanoseconds),
            y: Axis::log("response", Unit::Nanoseconds),
            fields,
        }),
    })
}

/// Draws the failed requests per second by their class, if there are any.
fn failures_over_time((_, arm, course): &(usize, &Arm, &LoadCourse)) -> Option<Chart> {
    let mut totals: SortedMap<&str, u64> = SortedMap::new();
    for (class, count) in course.slices.iter().flat_map(|slice| &slice.failures) {
        *totals.entry(class).or_default() += count;
    }
    let mut classes: Vec<(&str, u64)> = totals.into_iter().collect();
    sorting::by_key(&mut classes, |(_, count)| std::cmp::Reverse(*count));
    let of = |slice: &LoadSlice, class: &str| {
        let count = slice.failures.iter().find(|(known, _)| known == class).map_or(0, |(_, count)| *count);
        count as f64 * 1e9 / (slice.to - slice.from).max(1) as f64
    };
    let layer = |(place, (class, count)): (usize, &(&str, u64))| {
        // If a void window is left out, the next slice does not start where the previous one ended.
        let runs = course.slices.chunk_by(|slice, next| next.from - slice.to <= APART);
        let points = |run: &[LoadSlice]| {
            let each = run
                .iter()
                .map(|slice| ChartPoint::at((slice.from + slice.to) as f64 / 2.0, of(slice, class)));
            each.collect()
        };
        let called = format!("{class} ({})", grouped(*count as f64));
        Layer {
            arm: place % COLOURS,
            name: called,
            code: false,
            shape: LayerShape::Line,
            pieces: runs.map(points).collect(),
        }
    };
    let layers: Vec<Layer> = classes.iter().enumerate().map(layer).collect();
    let label: Vec<String> = layers.iter().map(|layer| layer.name.clone()).collect();
    let arm_name = harmless_name(&arm.name);
    (!layers.is_empty()).then(|| Chart {
        name: slug(&format!("failures-{arm_name}")),
        title: format!("{arm_name}: failed requests per second over the run"),
        note: label.join(", "),
        label: format!("failed: {}", label.join(", ")),
        drawn: Drawn::Plot(Plot {
            x: Axis::linear("at", Unit::Nanoseconds),
            y: Axis::linear("failed/s", Unit::Count),
            shade: None,
            column: None,
            zero: Some(0.0),
            layers,
            small: true,
        }),
    })
}

/// Draws the response time by requested rate.
fn by_rate(servers: &[(usize, &Arm, &LoadCourse)]) -> Option<Chart> {
    let rate = |arm: &Arm| match arm.params.get("rate") {
        Some(Parameter::Number(rate)) => Some(*rate),
        _ => None,
    };
    let layer = |place: usize, called: &str, share: f64| {
        let each = servers
            .iter()
            .filter_map(|(_, arm, course)| Some(ChartPoint::at(rate(arm)?, course.quantile(share)? as f64)));
        let mut points: Vec<ChartPoint> = each.collect();
        sorting::by(&mut points, |one, other| one.x.total_cmp(&other.x));
        Layer {
            arm: place,
            name: called.to_owned(),
            code: false,
            shape: LayerShape::Course,
            pieces: vec![points],
        }
    };
    let layers = vec![layer(1, "p50", 0.5), layer(2, "p99", 0.99)];
    layers[0].pieces[0].first()?;
    Some(Chart {
        name: "rates".to_owned(),
        title: "Latency by rate".to_owned(),
        note: String::new(),
        label: describe_response_times(servers),
        drawn: Drawn::Plot(Plot {
            x: Axis::log("requests/s", Unit::Count),
            y: Axis::log("response", Unit::Nanoseconds),
            shade: None,
            column: None,
            zero: None,
            layers,
            small: false,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::super::lead;
    use crate::run_report::Report;
    use scruple_core::metric::{Pass, metric};
    use scruple_core::run::{Run, RunState};
    use scruple_core::sample::Reading;
    use scruple_core::subject::{Arm, Role, Subject};

    /// The first line of the page of a killed load with these readings of its only window.
    fn lead_of(readings: &[(&str, f64)]) -> String {
        let subject =
            Subject::Request { url: "u".to_owned(), server: Vec::new(), rate: None, connections: 1 };
        let mut arm = Arm::new("app".to_owned(), subject, Role::Subject);
        for (key, value) in readings {
            let reading = Reading::of(metric(key).expect("a metric"), *value, "a test");
            crate::store::add_readings(&mut arm, [reading], Pass::Timing, 0);
        }
        let run = Run { state: RunState::Interrupted, ..Run::of(vec![arm]) };
        lead::of(&Report::of(&run, &[], &[])).into_iter().map(|span| span.text).collect()
    }

    #[test]
    fn of_a_killed_load_the_page_says_what_was_answered_until_then() {
        assert_eq!(lead_of(&[("load.rate", 0.0)]), "‘app’ answered nothing, until the load was interrupted.");
        assert_eq!(
            lead_of(&[("load.rate", 97.0), ("load.p50", 5e5)]),
            "‘app’ answered 97 requests/s, with a median response time of 500 µs, until the load was interrupted."
        );
    }
}
