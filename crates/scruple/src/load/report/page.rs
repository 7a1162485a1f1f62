//! A load as a page: the distribution, the course, the search, the cost. One file, nothing is fetched.

use super::{instructions, memory_map, sheet, terminal};
use crate::load::windows::Slice;
use crate::load::windows::{Loaded, Loads, Sought};
use crate::show::Report;
use crate::show::svg::colour;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use scruple_core::harmless_text::{plain, plain_lines};
use scruple_core::unit::{Unit, grouped, quantity};
use std::fmt::Write as _;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 80.0;
const BOTTOM: f64 = 260.0;
const TOP: f64 = 20.0;

const STYLE: &str = "\n\
    :root{color-scheme:light dark;--ink:light-dark(#1c1c1c,#e6e6e6);--faint:light-dark(#d8d8d8,#3a3d42);--lightness:50%}\n\
    body{font:14px system-ui,sans-serif;color:var(--ink);max-width:860px;margin:2em auto;padding:0 1em}\n\
    pre{overflow-x:auto;font-size:12px}svg{width:100%}svg text{fill:var(--ink);font-size:11px}\n\
    .line{stroke:var(--faint)}.curve{fill:none;stroke-width:1.5}\n";

/// Writes the page.
pub fn text(report: &Report<'_>, loads: &Loads) -> String {
    let title = match loads.servers.as_slice() {
        [server] => server.name.clone(),
        several => several.iter().map(|server| server.name.as_str()).collect::<Vec<_>>().join(", "),
    };
    let title = plain(&title);
    let pictures = match &loads.capacity {
        Some(sought) => knee(sought),
        None => {
            let distributions: Vec<Curve> = loads.servers.iter().map(distribution).collect();
            let courses: Vec<Curve> = loads.servers.iter().flat_map(course).collect();
            html! {
                (chart("Latency by percentile", &distributions, &percentiles()))
                (chart("Course: p50 and p99", &courses, &[]))
            }
        }
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; title { (title) } style { (PreEscaped(STYLE)) } }
            body {
                h1 { (title) }
                (pictures)
                h2 { "Figures" }
                pre { (uncoloured(&terminal::text(report, loads, 110))) }
                @for server in &loads.servers { (every_function(server)) (memory_map(server, loads.show_map)) }
            }
        }
    };
    page.into_string() + "\n"
}

/// A text for a terminal without its colours.
fn uncoloured(text: &str) -> String {
    plain_lines(&anstream::adapter::strip_str(text).to_string())
}

/// A curve: its name, and places from 0 to 1 with latencies in nanoseconds, in pieces where it is broken.
struct Curve {
    name: String,
    pieces: Vec<Vec<(f64, f64)>>,
}

/// How far to the right a share of requests stands: by the nines, up to five of them.
fn place(share: f64) -> f64 {
    (-(1.0 - share).max(1e-5).log10() / 5.0).clamp(0.0, 1.0)
}

fn percentiles() -> Vec<(f64, String)> {
    [(0.0, "0"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %"), (0.99999, "99.999 %")]
        .map(|(share, text)| (place(share), text.to_owned()))
        .to_vec()
}

fn distribution(server: &Loaded) -> Curve {
    let response = &server.pool.response;
    let most = place(1.0 - 1.0 / response.count().max(1) as f64);
    let steps = (0..=200).map(|step| f64::from(step) / 200.0 * most);
    let points =
        steps.filter_map(|at| Some((at, response.quantile(1.0 - 10_f64.powf(-5.0 * at))? as f64))).collect();
    Curve { name: server.name.clone(), pieces: vec![points] }
}

/// Slices with more nanoseconds than this between them do not belong together.
const APART: i64 = 1000;

fn course(server: &Loaded) -> Vec<Curve> {
    let span = server.pool.span.max(1) as f64;
    let of = |name: &str, pick: fn(&Slice) -> Option<u64>| {
        let point = |slice: &Slice| Some(((slice.from + slice.to) as f64 / 2.0 / span, pick(slice)? as f64));
        // Where a window is left out as void, the next slice does not begin where the last has ended.
        let runs = server.pool.timeline.chunk_by(|slice, next| next.from - slice.to <= APART);
        Curve {
            name: format!("{} {name}", server.name),
            pieces: runs.map(|run| run.iter().filter_map(point).collect()).collect(),
        }
    };
    vec![of("p50", |slice| slice.p50), of("p99", |slice| slice.p99)]
}

fn knee(sought: &Sought) -> Markup {
    let rates = || sought.found.tallies.iter().map(|tally| tally.rate);
    let (least, most) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    let at = |rate: f64| if most > least { (rate / least).ln() / (most / least).ln() } else { 0.5 };
    let of = |name: &str, q: f64| {
        let mut points: Vec<(f64, f64)> = sought
            .found
            .points
            .iter()
            .filter_map(|point| Some((at(point.rate), point.load.response.quantile(q)? as f64)))
            .collect();
        points.sort_by(|left, right| left.0.total_cmp(&right.0));
        Curve { name: name.to_owned(), pieces: vec![points] }
    };
    let mut ticks: Vec<(f64, String)> =
        rates().map(|rate| (at(rate), format!("{}/s", grouped(rate)))).collect();
    // Labels that would lie on top of each other help nobody.
    let mut last = f64::NEG_INFINITY;
    ticks.retain(|(at, _)| {
        let room = at - last >= 0.08;
        if room {
            last = *at;
        }
        room
    });
    html! {
        p { strong { (plain_lines(&terminal::answer(sought))) } }
        (chart("Latency by rate", &[of("p50", 0.5), of("p99", 0.99)], &ticks))
    }
}

/// Draws curves over a logarithmic scale of latency.
fn chart(title: &str, curves: &[Curve], ticks: &[(f64, String)]) -> Markup {
    let values =
        || curves.iter().flat_map(|curve| curve.pieces.iter().flatten().map(|(_, value)| value.max(1.0)));
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    if !low.is_finite() {
        return html! {};
    }
    let (low, high) = (low.log10().floor(), high.log10().ceil().max(low.log10().floor() + 1.0));
    let x = |at: f64| one(LEFT + at * (WIDTH - LEFT - 20.0));
    let y = |value: f64| one(BOTTOM - (value.max(1.0).log10() - low) / (high - low) * (BOTTOM - TOP));
    html! {
        h2 { (title) }
        svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(title) {
            @for value in (low as i32..=high as i32).map(|decade| 10_f64.powi(decade)) {
                line class="line" x1=(LEFT) x2=(WIDTH - 20.0) y1=(y(value)) y2=(y(value)) {}
                text x=(LEFT - 6.0) y=(y(value)) text-anchor="end" { (quantity(value, &Unit::Nanoseconds)) }
            }
            @for (at, text) in ticks {
                // At the edge the middle of a text would leave it no room.
                text x=(x(*at)) y=(BOTTOM + 16.0) text-anchor=(if *at > 0.95 { "end" } else { "middle" }) { (text) }
            }
            @for (index, curve) in curves.iter().enumerate() {
                @let paint = colour(&curve.name);
                @for piece in &curve.pieces {
                    @match piece.as_slice() {
                        [] => {},
                        // A line of one point would not be seen.
                        [(at, value)] => { circle fill=(paint) r="1.5" cx=(x(*at)) cy=(y(*value)) {} },
                        several => {
                            @let points = several.iter().map(|(at, value)| format!("{},{}", x(*at), y(*value)));
                            polyline class="curve" stroke=(paint) points=(points.collect::<Vec<_>>().join(" ")) {}
                        },
                    }
                }
                text x=(LEFT + 8.0) y=(TOP + 14.0 * index as f64) style={ "fill:" (paint) } { (plain(&curve.name)) }
            }
        }
    }
}

fn one(value: f64) -> String {
    format!("{value:.1}")
}

/// The memory map before and after, unless it stands among the figures already.
fn memory_map(server: &Loaded, shown: bool) -> Markup {
    let mut table = String::new();
    if let Some(sheet) = server.sheet.as_ref().filter(|_| !shown) {
        memory_map::text(&sheet.maps, &mut table);
    }
    html! {
        @if !table.is_empty() {
            details {
                summary { "Memory map of " (plain(&server.name)) }
                pre { (uncoloured(&table).trim_start_matches('\n')) }
            }
        }
    }
}

/// All functions that cost anything, where they were counted.
fn every_function(server: &Loaded) -> Markup {
    let Some(Ok(found)) = &server.instructions else { return html! {} };
    let mut table = String::new();
    for cost in &found.functions {
        let (own, all) = (grouped(cost.own.value), grouped(cost.inclusive.value));
        let calls = quantity(cost.calls, &Unit::Count);
        let _ = writeln!(
            table,
            "{own:>14} {all:>14} with callees {calls:>10} calls  {}",
            plain(instructions::name(cost))
        );
    }
    let count = grouped(found.functions.len() as f64);
    html! {
        details {
            summary { (count) " of " (plain(&server.name)) ": " (sheet::title("instructions")) " by function" }
            pre { (table) }
        }
    }
}
