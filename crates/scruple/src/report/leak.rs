//! The verdict on a leak: what was live at each size of the work, and what that means.

use super::align::{fit, on_points, right, wrap};
use super::terminal::{BAD, BOLD, DIM, GOOD, OPEN};
use scruple_core::unit::{Unit, exact, grouped, quantity, times};
use scruple_measure::runtimes::ghc::leak::Verdict;
use serde::Serialize;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// Columns of the bar that shows the growth.
const BAR: usize = 40;

/// What was found.
pub struct Leak {
    /// The words of the command.
    pub command: Vec<String>,
    /// The metric taken.
    pub metric: &'static str,
    /// Metrics that would have been better, each with the reason why they could not be taken.
    pub passed_over: Vec<(String, String)>,
    /// The runs, by size.
    pub points: Vec<Point>,
    /// What they show.
    pub verdict: Verdict,
}

/// One run.
pub struct Point {
    /// The size of its work.
    pub size: f64,
    /// What was live, at most.
    pub bytes: f64,
    /// Who said so.
    pub source: String,
    /// Collections of all kinds.
    pub collections: Option<f64>,
    /// Collections of the whole heap, the only moments at which all that is live can be seen.
    pub majors: Option<f64>,
}

fn meaning(metric: &str) -> &'static str {
    match metric {
        "heap.live_max" => "the most live data seen at a collection",
        "malloc.peak" => "the most bytes allocated by malloc at one time",
        _ => "the largest resident size: it hides small growth and forgets nothing that was given back",
    }
}

/// Writes table and verdict for a terminal of that many columns.
pub fn text(leak: &Leak, width: usize) -> String {
    let source = leak.points.first().map_or("", |point| point.source.as_str());
    let mut out = format!("{BOLD}‘{}’{BOLD:#}\n", leak.command.join(" "));
    let line = format!("{}: {}, by {source}", leak.metric, meaning(leak.metric));
    let _ = writeln!(out, "{}", wrap(&line, width));
    for (key, why) in &leak.passed_over {
        let _ = writeln!(out, "{DIM}{}{DIM:#}", wrap(&format!("not {key}: {why}"), width));
    }
    out.push('\n');
    let mut sizes: Vec<String> = leak.points.iter().map(|point| grouped(point.size)).collect();
    let mut bytes: Vec<String> = leak.points.iter().map(|point| exact(point.bytes, &Unit::Bytes)).collect();
    for cells in [&mut sizes, &mut bytes] {
        on_points(cells);
    }
    let widest =
        |cells: &[String], least| cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(least);
    let (first, second) = (widest(&sizes, 4), widest(&bytes, 4));
    let majors = leak.points.iter().any(|point| point.majors.is_some());
    let most = leak.points.iter().map(|point| point.bytes).fold(0.0, f64::max);
    let head = format!(
        "  {}  {}  {}",
        right("size", first),
        right("live", second),
        if majors { "major GCs" } else { "" }
    );
    let _ = writeln!(out, "{DIM}{}{DIM:#}", head.trim_end());
    for ((size, bytes), point) in sizes.iter().zip(&bytes).zip(&leak.points) {
        let count = point.majors.map_or(String::new(), grouped);
        let count = if majors { right(&count, 9) } else { String::new() };
        let columns = if most > 0.0 { (point.bytes / most * BAR as f64).round() as usize } else { 0 };
        let line = format!(
            "  {}  {}  {count}  {}",
            right(size, first),
            right(bytes, second),
            fit(&"▇".repeat(columns), BAR)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let (style, word, sentence) = sentence(leak);
    let _ = writeln!(
        out,
        "\n{style}{word}{style:#}: {}",
        wrap(&sentence, width.saturating_sub(word.width() + 2))
    );
    if leak.metric == "heap.live_max"
        && leak.points.iter().any(|point| point.collections.is_some_and(|n| n < 3.0))
    {
        let few = "Some runs had fewer than three collections, so much may have lived unseen between them: larger \
                   sizes tell more.";
        let _ = writeln!(out, "{OPEN}!{OPEN:#} {}", wrap(few, width.saturating_sub(2)).replace('\n', "\n  "));
    }
    out
}

fn sentence(leak: &Leak) -> (anstyle::Style, &'static str, String) {
    match &leak.verdict {
        Verdict::Grows { bytes_per_unit, fit } => (
            BAD,
            "grows with the work",
            format!(
                "about {} are kept for each unit of work (R² {fit:.3}). That is a leak, unless the program is meant to \
                 hold all of its work at once.",
                quantity(*bytes_per_unit, &Unit::Bytes)
            ),
        ),
        Verdict::Slows { power } => (
            GOOD,
            "grows less and less",
            format!("as about the power {power:.2} of the size: no leak in proportion to the work."),
        ),
        Verdict::Steady { ratio } => {
            (GOOD, "constant", format!("the largest figure is {} the smallest. No leak.", times(*ratio)))
        }
        Verdict::Unknown { why } => (OPEN, "can’t tell", format!("{why}.")),
    }
}

/// The same in JSON: bytes.
#[derive(Serialize)]
pub struct View<'a> {
    command: &'a [String],
    metric: &'a str,
    source: &'a str,
    passed_over: Vec<PassedOver<'a>>,
    runs: Vec<RunView>,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_unit: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fit: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    power: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

#[derive(Serialize)]
struct PassedOver<'a> {
    metric: &'a str,
    why: &'a str,
}

#[derive(Serialize)]
struct RunView {
    n: f64,
    bytes: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    gc_count: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gc_major: Option<f64>,
}

/// Makes the view.
pub fn view(leak: &Leak) -> View<'_> {
    let mut view = View {
        command: &leak.command,
        metric: leak.metric,
        source: leak.points.first().map_or("", |point| &point.source),
        passed_over: leak.passed_over.iter().map(|(metric, why)| PassedOver { metric, why }).collect(),
        runs: leak
            .points
            .iter()
            .map(|point| RunView {
                n: point.size,
                bytes: point.bytes,
                gc_count: point.collections,
                gc_major: point.majors,
            })
            .collect(),
        verdict: "",
        bytes_per_unit: None,
        fit: None,
        power: None,
        ratio: None,
        why: None,
    };
    match &leak.verdict {
        Verdict::Grows { bytes_per_unit, fit } => {
            (view.verdict, view.bytes_per_unit, view.fit) = ("grows", Some(*bytes_per_unit), Some(*fit));
        }
        Verdict::Slows { power } => (view.verdict, view.power) = ("slows", Some(*power)),
        Verdict::Steady { ratio } => (view.verdict, view.ratio) = ("constant", Some(*ratio)),
        Verdict::Unknown { why } => (view.verdict, view.why) = ("unknown", Some(why.as_str())),
    }
    view
}
