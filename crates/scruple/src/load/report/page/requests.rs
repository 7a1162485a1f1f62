//! Details about requests other than their distribution: kinds, parts that are set apart, stalls, the generator. The
//! measurements of a search are here as well.

use super::super::search::counted_measurements;
use super::super::terminal::row_name;
use super::of_server;
use crate::load::windows::{Loads, RateSearch, ServerResults};
use crate::render::page::{
    Cell, ColumnHeading, Section, SectionPart, SortOrder, Table, Tone, harmless_name, harmless_sentence,
};
use scruple_core::knee::RateOutcome;
use scruple_core::unit::{Unit, grouped, quantity, share};
use scruple_measure::load::{Latencies, RatePoint};

/// Makes the section, which is folded.
pub(super) fn section(loads: &Loads) -> Option<Section> {
    let mut parts = Vec::new();
    for server in &loads.servers {
        let label = |what: &str| of_server(loads, server, what);
        parts.extend(rows(server, label("Requests by kind")).map(SectionPart::Table));
        parts.extend(distributions(server, label("Response, service and lag")).map(SectionPart::Table));
        parts.extend(failures(server, label("Failed requests")).map(SectionPart::Table));
        parts.extend(stalls(server, label("Stalls")).map(SectionPart::Table));
    }
    parts.extend(generators(loads).map(SectionPart::Table));
    let folded = Some("Kinds of requests, service and lag, failures, stalls, the generator".to_owned());
    (!parts.is_empty()).then_some(Section { title: "Requests in detail".to_owned(), folded, parts })
}

fn time(ns: f64) -> String {
    quantity(ns, &Unit::Nanoseconds)
}

const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("longest", 1.0)];

fn quantiles(of: &Latencies) -> Vec<Cell> {
    let cell = |(_, q): (&str, f64)| of.quantile(q).map_or("–".to_owned(), |ns| time(ns as f64));
    QUANTILES.map(cell).into_iter().map(Cell::text).collect()
}

fn count(count: u64, bad: bool) -> Cell {
    Cell::toned(grouped(count as f64), if bad && count > 0 { Tone::Worse } else { Tone::Plain })
}

/// Makes the table of kinds of requests, groups and sessions.
fn rows(server: &ServerResults, label: String) -> Option<Table> {
    let pool = &server.pool;
    let mut keys: Vec<(String, [Option<f64>; 3])> = Vec::new();
    let rows = pool.kinds.iter().filter_map(|kind| {
        let (.., response) = pool.rows.iter().find(|(name, of, _)| *name == kind.name && *of == kind.of)?;
        let failed = kind.failures.total();
        let shown = row_name(&kind.name, kind.of);
        let p99 = response.quantile(0.99).map(|ns| ns as f64);
        keys.push((shown.clone(), [Some(kind.answered as f64), Some(failed as f64), p99]));
        let mut cells =
            vec![Cell::text(harmless_name(&shown)), count(kind.answered, false), count(failed, true)];
        cells.extend(quantiles(response));
        Some(cells)
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    if rows.len() < 2 {
        return None;
    }
    let by = |which: usize| keys.iter().map(|(_, keys)| keys[which]).collect::<Vec<_>>();
    let names: Vec<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
    let orders = vec![
        SortOrder::given("as asked", rows.len()),
        SortOrder::by("name", &names, Ord::cmp),
        SortOrder::greatest("answered", &by(0)),
        SortOrder::greatest("failed", &by(1)),
        SortOrder::greatest("p99", &by(2)),
    ];
    let mut head = vec![
        ColumnHeading::text("Request"),
        ColumnHeading::number("answered"),
        ColumnHeading::number("failed"),
    ];
    head.extend(QUANTILES.map(|(title, _)| ColumnHeading::number(title)));
    Some(Table { label, head, rows, orders, ..Table::default() })
}

/// Makes the table of the times that count (response, service and lag), and of the response times that are set apart.
fn distributions(server: &ServerResults, label: String) -> Option<Table> {
    let pool = &server.pool;
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (what, latencies) in [
        ("response: due to answered", &pool.times.response),
        ("service: sent to answered", &pool.times.service),
        ("lag: due to sent", &pool.times.lag),
        ("lateness of the generator", &pool.times.lateness),
        ("making a connection", &pool.connect),
    ] {
        if latencies.count() > 0 {
            let mut cells = vec![Cell::text(what), count(latencies.count(), false), Cell::text("")];
            cells.extend(quantiles(latencies));
            rows.push(cells);
        }
    }
    if pool.times.delayed.count() > 0 {
        let what = "response without the delays of the generator";
        let mut cells = vec![Cell::text(what), count(pool.times.delayed.count(), false), Cell::text("")];
        cells.extend(quantiles(&pool.times.delayed.least_of(&pool.times.response)));
        rows.push(cells);
    }
    for aside in &pool.aside {
        let what = format!("set apart as {}: {}", aside.why, time(aside.span as f64));
        let mut cells =
            vec![Cell::text(what), count(aside.answered, false), count(aside.failures.total(), true)];
        cells.extend(quantiles(&aside.response));
        rows.push(cells);
    }
    let mut head =
        vec![ColumnHeading::text(""), ColumnHeading::number("requests"), ColumnHeading::number("failed")];
    head.extend(QUANTILES.map(|(title, _)| ColumnHeading::number(title)));
    (!rows.is_empty()).then_some(Table { label, head, rows, ..Table::default() })
}

fn failures(server: &ServerResults, label: String) -> Option<Table> {
    let due = server.pool.counts.due.max(1) as f64;
    let row = |(class, failed): (scruple_measure::load::Failure, u64)| {
        vec![
            Cell::text(class.name()),
            count(failed, true),
            Cell::text(share(failed as f64 / due)),
            Cell::text(server.pool.counts.failures.describe(class)),
        ]
    };
    let rows: Vec<Vec<Cell>> = server.pool.counts.failures.each().map(row).collect();
    let head = vec![
        ColumnHeading::text("Failed"),
        ColumnHeading::number("requests"),
        ColumnHeading::number("of all"),
        ColumnHeading::text("meaning"),
    ];
    (!rows.is_empty()).then_some(Table { label, head, rows, ..Table::default() })
}

fn stalls(server: &ServerResults, label: String) -> Option<Table> {
    let stalls = &server.pool.stalls;
    let length = |stall: &scruple_measure::load::Stall| (stall.to - stall.from).max(0) as f64;
    let row = |stall: &scruple_measure::load::Stall| {
        vec![
            Cell::text(time(stall.from as f64)),
            Cell::text(time(length(stall))),
            Cell::text(grouped(stall.requests as f64)),
        ]
    };
    let lengths: Vec<Option<f64>> = stalls.iter().map(|stall| Some(length(stall))).collect();
    let orders = vec![SortOrder::given("moment", stalls.len()), SortOrder::greatest("length", &lengths)];
    let head =
        ["Nothing was answered at", "for so long", "requests that waited"].map(ColumnHeading::number).into();
    let rows = stalls.iter().map(row).collect();
    (!stalls.is_empty()).then_some(Table { label, head, rows, orders, ..Table::default() })
}

fn generators(loads: &Loads) -> Option<Table> {
    let row = |server: &ServerResults| {
        let own = server.pool.generator;
        let each = time((own.user + own.system) as f64 / own.requests.max(1) as f64);
        let late = server.pool.times.lateness.quantile(0.99).map_or("–".to_owned(), |ns| time(ns as f64));
        vec![
            Cell::code(harmless_name(&server.name)),
            Cell::text(share(own.busy())),
            Cell::text(each),
            Cell::text(late),
            Cell::text(grouped(server.pool.counts.backlog as f64)),
        ]
    };
    let mut head = vec![ColumnHeading::text("Generator for")];
    let titles = ["of its core", "cpu / request", "late, p99", "longest backlog"];
    head.extend(titles.map(ColumnHeading::number));
    let rows: Vec<Vec<Cell>> =
        loads.servers.iter().filter(|server| server.pool.generator.requests > 0).map(row).collect();
    let label = "The generator".to_owned();
    (!rows.is_empty()).then_some(Table { label, head, rows, ..Table::default() })
}

/// Makes the section with the measurements of a search, in their order.
pub(super) fn search(sought: &RateSearch) -> Section {
    let points = &sought.found.points;
    let row = |(number, point): (usize, &RatePoint)| {
        let (word, tone) = match point.outcome {
            RateOutcome::Good => ("kept", Tone::Better),
            RateOutcome::Bad => ("broken", Tone::Worse),
            RateOutcome::Void => ("void", Tone::Open),
        };
        let quantile = |q: f64| point.response.quantile(q).map_or("–".to_owned(), |ns| time(ns as f64));
        vec![
            Cell::text(format!("{}", number + 1)),
            Cell::text(format!("{}/s", grouped(point.rate))),
            Cell::text(format!("{}/s", grouped(point.load.rate()))),
            Cell::text(quantile(0.5)),
            Cell::text(quantile(0.99)),
            count(point.load.counts.failures.total(), true),
            Cell::toned(word, tone),
            Cell::text(harmless_sentence(&point.broken.join(", "))),
        ]
    };
    let of = |value: fn(&RatePoint) -> Option<f64>| points.iter().map(value).collect::<Vec<_>>();
    let orders = vec![
        SortOrder::given("order", points.len()),
        SortOrder::greatest("rate", &of(|point| Some(point.rate))),
        SortOrder::greatest("p99", &of(|point| point.response.quantile(0.99).map(|ns| ns as f64))),
    ];
    let mut head = vec![ColumnHeading::number("Measurement")];
    head.extend(["asked", "achieved", "p50", "p99", "failed"].map(ColumnHeading::number));
    head.extend([ColumnHeading::text("limits"), ColumnHeading::text("which")]);
    let table = Table {
        label: "Measurements of the search".to_owned(),
        head,
        rows: points.iter().enumerate().map(row).collect(),
        orders,
        ..Table::default()
    };
    let folded = Some(counted_measurements(points.len()));
    Section { title: "The search".to_owned(), folded, parts: vec![SectionPart::Table(table)] }
}
