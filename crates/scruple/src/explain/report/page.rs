//! Writes the explanation as a page: the text, and a flame graph of increases and decreases.

use super::terminal;
use crate::explain::findings::Findings;
use crate::show::flame::{self, Frame};
use crate::show::svg::escape;
use scruple_core::explain::{Difference, differences};
use scruple_measure::calltree::Side;
use std::fmt::Write as _;

/// Writes the page, which loads no other files.
pub fn text(found: &Findings, rows: usize, first: &Side, second: &Side) -> String {
    let plain = anstream::adapter::strip_str(&terminal::text(found, rows, 120)).to_string();
    let mut out = String::new();
    let title = format!("{} → {}", found.names[0], found.names[1]);
    let _ = writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{}</title>\n<style>\n\
         :root{{color-scheme:light dark}}body{{font:14px system-ui,sans-serif;max-width:1240px;margin:2em auto;padding:0 1em}}\n\
         pre{{overflow-x:auto;font-size:12px}}svg{{max-width:100%;height:auto}}\n</style>\n<h1>{}</h1>\n<pre>{}</pre>",
        escape(&title),
        escape(&title),
        escape(&plain)
    );
    let frames: Vec<Frame> = differences(&first.tree, &second.tree).into_iter().map(frame).collect();
    let _ = writeln!(
        out,
        "<h2>What is more and what is less</h2>\n<p>Boxes are as wide as what differs in them and above them, whether more \
         (red) or less (blue); so what B does no more can be seen as well. Callers are below.</p>\n{}</html>",
        flame::svg("Differences of instructions by calling context", &frames, super::words::count)
    );
    out
}

fn frame(one: Difference) -> Frame {
    let name = if one.name.is_empty() { "code without a name".to_owned() } else { one.name };
    let label = format!("{name} ({})", super::words::signed(one.net));
    let group = if one.net > 0.0 { flame::MORE } else { flame::LESS };
    Frame { label, group: group.to_owned(), own: one.gross, parent: one.parent }
}
