//! A load as a page: the distribution, the course, the search, the cost. One file, nothing is fetched.

use super::{memory_map, sheet, terminal};
use crate::load::windows::Slice;
use crate::load::windows::{Loaded, Loads, Sought};
use crate::show::Report;
use crate::show::svg::{colour, escape};
use scruple_core::unit::{Unit, grouped, quantity};
use std::fmt::Write as _;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 80.0;
const BOTTOM: f64 = 260.0;
const TOP: f64 = 20.0;

/// Writes the page.
pub fn text(report: &Report<'_>, loads: &Loads) -> String {
    let title = match loads.servers.as_slice() {
        [server] => server.name.clone(),
        several => several.iter().map(|server| server.name.as_str()).collect::<Vec<_>>().join(", "),
    };
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{}</title>\n<style>\n\
         :root{{color-scheme:light dark;--ink:light-dark(#1c1c1c,#e6e6e6);--faint:light-dark(#d8d8d8,#3a3d42);--lightness:50%}}\n\
         body{{font:14px system-ui,sans-serif;color:var(--ink);max-width:{WIDTH}px;margin:2em auto;padding:0 1em}}\n\
         pre{{overflow-x:auto;font-size:12px}}svg{{width:100%}}svg text{{fill:var(--ink);font-size:11px}}\n\
         .line{{stroke:var(--faint)}}.curve{{fill:none;stroke-width:1.5}}\n</style>\n<h1>{}</h1>",
        escape(&title),
        escape(&title)
    );
    match &loads.capacity {
        Some(sought) => knee(sought, &mut out),
        None => {
            let curves: Vec<Curve> = loads.servers.iter().map(distribution).collect();
            chart("Latency by percentile", &curves, &percentiles(), &mut out);
            let curves: Vec<Curve> = loads.servers.iter().flat_map(course).collect();
            chart("Course: p50 and p99", &curves, &[], &mut out);
        }
    }
    let plain = anstream::adapter::strip_str(&terminal::text(report, loads, 110)).to_string();
    let _ = writeln!(out, "<h2>Figures</h2>\n<pre>{}</pre>", escape(&plain));
    for server in &loads.servers {
        every_function(server, &mut out);
        memory_map(server, loads.show_map, &mut out);
    }
    out.push_str("</html>\n");
    out
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

fn knee(sought: &Sought, out: &mut String) {
    let _ = writeln!(out, "<p><strong>{}</strong></p>", escape(&terminal::answer(sought)));
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
    chart("Latency by rate", &[of("p50", 0.5), of("p99", 0.99)], &ticks, out);
}

/// Draws curves over a logarithmic scale of latency.
fn chart(title: &str, curves: &[Curve], ticks: &[(f64, String)], out: &mut String) {
    let values =
        || curves.iter().flat_map(|curve| curve.pieces.iter().flatten().map(|(_, value)| value.max(1.0)));
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    if !low.is_finite() {
        return;
    }
    let (low, high) = (low.log10().floor(), high.log10().ceil().max(low.log10().floor() + 1.0));
    let x = |at: f64| LEFT + at * (WIDTH - LEFT - 20.0);
    let y = |value: f64| BOTTOM - (value.max(1.0).log10() - low) / (high - low) * (BOTTOM - TOP);
    let _ = writeln!(
        out,
        "<h2>{}</h2>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escape(title),
        escape(title)
    );
    for decade in low as i32..=high as i32 {
        let value = 10_f64.powi(decade);
        let _ = writeln!(
            out,
            "<line class=\"line\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{1:.1}\" y2=\"{1:.1}\"/><text x=\"{2}\" y=\"{1:.1}\" \
             text-anchor=\"end\">{3}</text>",
            WIDTH - 20.0,
            y(value),
            LEFT - 6.0,
            escape(&quantity(value, &Unit::Nanoseconds))
        );
    }
    for (at, text) in ticks {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
            x(*at),
            BOTTOM + 16.0,
            // At the edge the middle of a text would leave it no room.
            if *at > 0.95 { "end" } else { "middle" },
            escape(text)
        );
    }
    for (index, curve) in curves.iter().enumerate() {
        let paint = colour(&curve.name);
        for piece in &curve.pieces {
            let points: Vec<String> =
                piece.iter().map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value))).collect();
            let _ = match points.as_slice() {
                [] => Ok(()),
                // A line of one point would not be seen.
                [_] => writeln!(
                    out,
                    "<circle fill=\"{paint}\" r=\"1.5\" cx=\"{:.1}\" cy=\"{:.1}\"/>",
                    x(piece[0].0),
                    y(piece[0].1)
                ),
                several => writeln!(
                    out,
                    "<polyline class=\"curve\" stroke=\"{paint}\" points=\"{}\"/>",
                    several.join(" ")
                ),
            };
        }
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" style=\"fill:{paint}\">{}</text>",
            LEFT + 8.0,
            TOP + 14.0 * index as f64,
            escape(&curve.name)
        );
    }
    out.push_str("</svg>\n");
}

/// The memory map before and after, unless it stands among the figures already.
fn memory_map(server: &Loaded, shown: bool, out: &mut String) {
    let Some(sheet) = server.sheet.as_ref().filter(|_| !shown) else { return };
    let mut table = String::new();
    memory_map::text(&sheet.maps, &mut table);
    if table.is_empty() {
        return;
    }
    let plain = anstream::adapter::strip_str(&table).to_string();
    let _ = writeln!(
        out,
        "<details><summary>Memory map of {}</summary>\n<pre>{}</pre></details>",
        escape(&server.name),
        escape(plain.trim_start_matches('\n'))
    );
}

/// All functions that cost anything, where they were counted.
fn every_function(server: &Loaded, out: &mut String) {
    let Some(Ok(found)) = &server.instructions else { return };
    let _ = writeln!(
        out,
        "<details><summary>{} of {}: {} by function</summary>\n<pre>",
        grouped(found.functions.len() as f64),
        escape(&server.name),
        sheet::title("instructions")
    );
    for cost in &found.functions {
        let _ = writeln!(
            out,
            "{:>14} {:>10} calls  {}",
            grouped(cost.own),
            quantity(cost.calls, &Unit::Count),
            escape(&cost.function.name)
        );
    }
    out.push_str("</pre></details>\n");
}
