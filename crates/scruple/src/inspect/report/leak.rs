//! Reports on a search for leaks: the live memory at each size of the work, and the verdict.

use super::leak_sites;
use crate::inspect::leak_judgement::LeakJudgement;
use crate::inspect::leak_points::{LeakPoint, LeftOut, MALLOC, OtherMemory, PEAK, PassedOver, RESIDENT};
use crate::inspect::leak_sites::Sites;
use crate::render::align::{fit, on_points, remark, right, wrap};
use crate::render::colours::{BAD, BOLD, DIM, GOOD, OPEN};
use crate::render::page::Tone;
use scruple_core::harmless_text::plain;
use scruple_core::metric::Pass;
use scruple_core::sample::Reading;
use scruple_core::unit::{Unit, exact, grouped, quantity};
use scruple_measure::runtimes::LIVE;
use scruple_stats::Interval;
use scruple_stats::leak::{GrowthDoubt, Retained};
use serde::Serialize;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// The width of the bar that shows the growth, in columns.
const BAR: usize = 40;

/// The result of a search for leaks.
pub struct Leak {
    /// The words of the command.
    pub command: Vec<String>,
    /// The key of the metric that was used.
    pub metric: &'static str,
    /// The pass that read the metric.
    pub pass: Pass,
    /// The preferred metrics that were not available.
    pub passed_over: Vec<PassedOver>,
    /// The launches, by size.
    pub points: Vec<LeakPoint>,
    /// What the readings say.
    pub judgement: LeakJudgement,
    /// The memory that the metric does not contain.
    pub other_memory: OtherMemory,
    /// The number of collections with a size of the work, if it decides the verdict.
    pub collections: Option<(f64, Reading)>,
    /// The sites that keep the memory.
    pub sites: Sites,
    /// The launches that did not fit into the budget, if any.
    pub left_out: Option<LeftOut>,
}

fn meaning(metric: &str) -> &'static str {
    match metric {
        "heap.live" => "the most that is alive after collections of the whole heap",
        "heap.live_max" => "the most live data seen at a collection",
        "malloc.live" => "the bytes of malloc that are left as the program ends",
        PEAK => "the most bytes allocated by malloc at one time",
        _ => "the largest resident size: it hides small growth, and includes memory that was freed later",
    }
}

/// Writes the table and the verdict for a terminal with this many columns.
pub fn text(leak: &Leak, width: usize) -> String {
    let source = leak.points.first().map_or("", |point| point.source(leak.metric));
    let mut out = format!("{BOLD}‘{}’{BOLD:#}\n", plain(&leak.command.join(" ")));
    let line = format!("{}: {}, by {source}", leak.metric, meaning(leak.metric));
    let _ = writeln!(out, "{}", wrap(&line, width));
    for PassedOver { metric, why } in &leak.passed_over {
        let _ = writeln!(out, "{DIM}{}{DIM:#}", wrap(&format!("{metric}: absent, because {why}"), width));
    }
    out.push('\n');
    let mut sizes: Vec<String> = leak.points.iter().map(|point| grouped(point.size)).collect();
    let mut bytes: Vec<String> = leak.points.iter().map(|point| exact(point.bytes(), &Unit::Bytes)).collect();
    for cells in [&mut sizes, &mut bytes] {
        on_points(cells);
    }
    let widest =
        |cells: &[String], least| cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(least);
    let (first, second) = (widest(&sizes, 4), widest(&bytes, 4));
    let most = leak.points.iter().map(LeakPoint::bytes).fold(0.0, f64::max);
    let head = format!("  {}  {}", right("size", first), right("live", second));
    let _ = writeln!(out, "{DIM}{head}{DIM:#}");
    let mut rows = sizes.iter().zip(&bytes).zip(&leak.points).collect::<Vec<_>>();
    // Launches with the same size and value share a row.
    rows.dedup_by_key(|((size, bytes), _)| (*size, *bytes));
    for ((size, bytes), point) in rows {
        let columns = if most > 0.0 { (point.bytes() / most * BAR as f64).round() as usize } else { 0 };
        let bar = fit(&"▇".repeat(columns), BAR);
        let line = format!("  {}  {}  {bar}", right(size, first), right(bytes, second));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let (tone, word, sentence) = describe(&leak.judgement.verdict);
    let style = match tone {
        Tone::Worse => BAD,
        Tone::Better => GOOD,
        _ => OPEN,
    };
    let lines = wrap(&format!("{word}: {sentence}"), width);
    let _ = writeln!(out, "\n{}", lines.replacen(word, &format!("{style}{word}{style:#}"), 1));
    let mut remarks = remarks(&leak.judgement, leak.metric, leak.other_memory.resident_unread.as_deref());
    remarks.extend(leak.left_out.as_ref().map(not_made));
    out.extend(remarks.iter().map(|text| remark(text, width)));
    out.push_str(&leak_sites::text(&leak.sites, width));
    out
}

/// Returns the remarks of a judgement besides its verdict. `why` is the reason why the resident size was not read, if
/// it is known.
pub fn remarks(judgement: &LeakJudgement, metric: &str, why: Option<&str>) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(per_unit) = judgement.resident_growth {
        remarks.push(format!(
            "memory.peak grows by about {} for each unit of work: it includes memory that belongs to objects but is not \
             in the heap (mapped memory, buffers, stacks), and objects that nothing uses.",
            amount(per_unit)
        ));
    }
    let grows = matches!(judgement.verdict, Retained::Grows { .. });
    if let (Some(Retained::Grows { per_unit, .. }), false) = (&judgement.peak, grows) {
        remarks.push(format!(
            "Its peak (malloc.peak) does grow with the work, by about {} for each unit: it is freed before the end.",
            amount(*per_unit)
        ));
    }
    let outside = if metric == LIVE { "is outside the heap" } else { "does not come from malloc" };
    if let Some(per_unit) = judgement.unseen_growth {
        remarks.push(format!(
            "Memory that {outside} was looked for in memory.peak, where growth of less than 1 MiB over all sizes is not seen: \
             up to {} for each unit of work. Larger sizes show smaller growth.",
            amount(per_unit)
        ));
    }
    if judgement.unread.contains(&RESIDENT.0) {
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        remarks.push(format!("Memory that {outside} was not examined{why}."));
    }
    remarks
}

fn not_made(left_out: &LeftOut) -> String {
    let what = match &left_out.sizes[..] {
        [] => format!("{} repetitions", left_out.runs),
        [one] => format!("the size {one}"),
        several => format!("the sizes {}", several.join(", ")),
    };
    format!(
        "Left out, because the budget was spent: {what}. All launches take about {}; a longer --budget makes them.",
        quantity(left_out.whole as f64, &Unit::Nanoseconds)
    )
}

fn amount(value: f64) -> String {
    quantity(value, &Unit::Bytes)
}

fn between(power: &Interval) -> String {
    match (power.high - power.low) < 0.045 {
        true => format!("about the power {:.2} of the size", (power.low + power.high) / 2.0),
        false => format!("a power of the size between {:.2} and {:.2}", power.low, power.high),
    }
}

/// Describes a verdict: its tone, a word for it, and the explanation.
pub fn describe(verdict: &Retained) -> (Tone, &'static str, String) {
    const NEARLY_ONE: f64 = 1.1;
    match verdict {
        Retained::Grows { per_unit, interval, power } => {
            let faster = if power.low > NEARLY_ONE { ", and more for larger work" } else { "" };
            let (low, high) = (amount(interval.low), amount(interval.high));
            let ends = if low == high { String::new() } else { format!(", {low} to {high} at 95 %") };
            let text = format!(
                "{} are kept for each unit of work{ends}{faster}. That is a leak, unless the program is meant to hold \
                 all of its work at once.",
                amount(*per_unit)
            );
            (Tone::Worse, "grows with the work", text)
        }
        Retained::Slows { power } => {
            let text = format!(
                "as {}: a power of 0.5 is a square root, 0 a logarithm, and below 0 the heap is bounded. No leak.",
                between(power)
            );
            (Tone::Better, "grows less and less", text)
        }
        Retained::Stops { after } => (
            Tone::Better,
            "stops growing",
            format!("nothing is added beyond the size {}. No leak.", grouped(*after)),
        ),
        Retained::Constant { interval } => {
            let most = interval.high.max(0.0);
            let text = format!("no more than {} for each unit of work at 99 %. No leak.", amount(most));
            (Tone::Better, "constant", text)
        }
        Retained::Unknown(doubt) => (Tone::Open, "can’t tell", said_of(doubt)),
    }
}

fn said_of(doubt: &GrowthDoubt) -> String {
    match doubt {
        GrowthDoubt::TooFewSizes => "the figures are of too few sizes; take more.".to_owned(),
        GrowthDoubt::Noise { at_most } => format!(
            "up to {} could be kept for each unit of work without being noticed. Use larger sizes or more --runs, or set \
            --smallest to the growth that does not matter.",
            amount(*at_most)
        ),
        GrowthDoubt::OutsideTheHeap { per_unit } => format!(
            "the live heap does not grow with the work, but malloc.live does, by about {} for each unit: native code keeps \
             memory, or the runtime takes more from malloc for its heap. --metric malloc.live shows it.",
            amount(*per_unit)
        ),
        GrowthDoubt::OutsideMalloc { per_unit } => format!(
            "this figure does not grow with the work, but memory.peak does, by about {} for each unit more than malloc \
             explains: mapped memory, mapped files, threads that are not ended, or, in a language runtime with small \
             sizes of the work, objects that were not collected yet. --metric memory.peak shows it.",
            amount(*per_unit)
        ),
        GrowthDoubt::InProcesses { per_unit } => format!(
            "what all processes together have left as they end grows by about {} for each unit, but malloc.peak, that of \
             the largest process, does not: more work may only take more processes, whose memory is free as they end.",
            amount(*per_unit)
        ),
        GrowthDoubt::Uncollected { per_unit } => format!(
            "memory.peak grows with the work, by about {} for each unit, but the language runtime collected less than \
             twice, or does not say how often, so these may be objects that nothing uses. Use larger sizes, or let the \
             program print what is alive.",
            amount(*per_unit)
        ),
        GrowthDoubt::Form { power } => format!(
            "it grows as {}, which may be a leak or not: a power of 0.5 is a square root, 1 is in proportion. Use more and larger sizes.",
            between(power)
        ),
    }
}

/// A launch in JSON, with sizes in bytes.
#[derive(Serialize)]
struct LeakRunEntry {
    n: f64,
    bytes: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<f64>,
    /// The number of collections of all kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    gc_count: Option<f64>,
    /// The number of full collections. Only these show the whole live memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    gc_major: Option<f64>,
}

impl LeakRunEntry {
    fn of(point: &LeakPoint) -> LeakRunEntry {
        LeakRunEntry {
            n: point.size,
            bytes: point.bytes(),
            at_most: point.at_most(),
            gc_count: point.value("gc.count"),
            gc_major: point.value("gc.major"),
        }
    }
}

/// The report in JSON, with sizes in bytes.
#[derive(Serialize)]
pub struct LeakReport<'a> {
    command: &'a [String],
    metric: &'a str,
    source: &'a str,
    passed_over: &'a [PassedOver],
    runs: Vec<LeakRunEntry>,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_unit: Option<f64>,
    /// The interval of the bytes per unit of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<[f64; 2]>,
    /// The interval of the exponent of the growth, as a power of the size.
    #[serde(skip_serializing_if = "Option::is_none")]
    power: Option<[f64; 2]>,
    /// The size from which on the memory does not grow.
    #[serde(skip_serializing_if = "Option::is_none")]
    stops_after: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sites: Option<leak_sites::LeakSitesEntry<'a>>,
    /// The sizes of the work and the bytes of malloc that were left at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    malloc_live: Option<Vec<(f64, f64)>>,
    /// The sizes of the work and the largest resident sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_peak: Option<Vec<(f64, f64)>>,
    /// The resident bytes per unit of work, if they are more than the growth of the live heap explains.
    #[serde(skip_serializing_if = "Option::is_none")]
    resident_bytes_per_unit: Option<f64>,
    /// The resident bytes per unit of work that could be kept without being noticed, if there seems to be no leak.
    #[serde(skip_serializing_if = "Option::is_none")]
    unseen_bytes_per_unit: Option<f64>,
    /// Why memory that the metric does not contain was not examined.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_examined: Option<&'a str>,
    /// The launches that did not fit into the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<&'a LeftOut>,
}

/// Creates the report.
pub fn report(leak: &Leak) -> LeakReport<'_> {
    let mut report = LeakReport {
        command: &leak.command,
        metric: leak.metric,
        source: leak.points.first().map_or("", |point| point.source(leak.metric)),
        passed_over: &leak.passed_over,
        runs: leak.points.iter().map(LeakRunEntry::of).collect(),
        verdict: "",
        bytes_per_unit: None,
        interval: None,
        power: None,
        stops_after: None,
        why: None,
        sites: leak_sites::entry(&leak.sites),
        malloc_live: leak.other_memory.bytes(MALLOC.0),
        memory_peak: leak.other_memory.bytes(RESIDENT.0),
        resident_bytes_per_unit: leak.judgement.resident_growth,
        unseen_bytes_per_unit: leak.judgement.unseen_growth,
        not_examined: leak.other_memory.resident_unread.as_deref(),
        left_out: leak.left_out.as_ref(),
    };
    let pair = |interval: &Interval| Some([interval.low, interval.high]);
    match &leak.judgement.verdict {
        Retained::Grows { per_unit, interval, power } => {
            (report.verdict, report.bytes_per_unit) = ("grows", Some(*per_unit));
            (report.interval, report.power) = (pair(interval), pair(power));
        }
        Retained::Slows { power } => (report.verdict, report.power) = ("slows", pair(power)),
        Retained::Stops { after } => (report.verdict, report.stops_after) = ("stops", Some(*after)),
        Retained::Constant { interval } => (report.verdict, report.interval) = ("constant", pair(interval)),
        Retained::Unknown(doubt) => {
            (report.verdict, report.why) = ("unknown", Some(said_of(doubt)));
            if let GrowthDoubt::Form { power } = doubt {
                report.power = pair(power);
            }
        }
    }
    report
}
