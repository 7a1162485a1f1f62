//! The table of cases: net, raw and tare side by side, allocations, throughput, comparison.

use super::panel;
use crate::render::align::{fit, left_out_line, on_points, wrap};
use crate::render::colours::{BAD, BOLD, DIM, GOOD, OPEN};
use crate::render::metric_words::{effect_text, title, verdict_words};
use crate::run_report::terminal::preface;
use crate::run_report::{Report, scaling, sentence};
use scruple_core::judge::{Estimate, bench_cases, headline};
use scruple_core::metric::Quality;
use scruple_core::plural::counted;
use scruple_core::run::RunState;
use scruple_core::subject::{Arm, Role, Subject, tells_skip};
use scruple_core::unit::{Unit, exact, quantity, relative_spread, share, times};
use scruple_core::verdict::{Direction, Verdict};
use scruple_stats::sorting;
use scruple_stats::tare::Net;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// The counters that have columns, if any case has readings of them.
const COUNTERS: [&str; 12] = [
    "instructions",
    "alloc.bytes",
    "js.external",
    "alloc.objects",
    "gc.count",
    "ghc.live",
    "ghc.live.max",
    "ghc.mapped.max",
    "malloc.count",
    "malloc.bytes",
    "malloc.peak",
    "threads.fairness",
];

/// A case with the estimates for its row.
struct CaseRow<'a> {
    arm: &'a Arm,
    raw: Option<Estimate>,
    tare: Option<Estimate>,
    net: Option<Net>,
}

/// Writes the report of a suite.
pub(crate) fn text(report: &Report<'_>, width: usize) -> String {
    let rows = rows(report);
    let mut out = format!("{}\n\n{}", wrap(&header(report, &rows), width), preface(report, width));
    let left_out = grid(&mut out, report, &rows, width);
    out.push_str(&left_out);
    out.push('\n');
    let mut lines = sentence::growth_lines(report);
    lines.extend(suspicion(&rows));
    let matrix = super::matrix::text(report, width);
    if matrix.is_empty() {
        lines.extend(versus_sentences(report));
    }
    lines.extend(tare_in_differences(report, &rows));
    for line in lines {
        let _ = writeln!(out, "{}", wrap(&line, width));
    }
    out.push_str(&matrix);
    out.push_str(&scaling_lines(report));
    out.push_str(&super::queues::text(report, width));
    crate::run_report::terminal::remarks(report, width, &mut out);
    out
}

/// Writes the results so far, while cases are being weighed.
pub(crate) fn partial_table(report: &Report<'_>, width: usize) -> String {
    let rows = rows(report);
    let mut out = format!("so far, from {}:\n", processes_of(&rows));
    grid(&mut out, report, &rows, width);
    out
}

/// Writes the header and the rows of the table, and returns a line that names the columns that did not fit.
fn grid(out: &mut String, report: &Report<'_>, rows: &[CaseRow<'_>], width: usize) -> String {
    let mut columns = columns(report, rows);
    let names: Vec<String> = rows.iter().map(|row| leaf(row.arm)).collect();
    let widest = names.iter().map(|name| name.width()).max().unwrap_or(4);
    let names_width = 2 + widest.min(NAME);
    let whole = names_width + room(&columns);
    let left_out = leave_out(&mut columns, report, width.saturating_sub(names_width));
    let name = widest.min(width.saturating_sub(room(&columns) + 2).max(16));
    let mut heads = " ".repeat(name + 2);
    for (head, cells) in &columns {
        let _ = write!(
            heads,
            "  {}",
            fit(&crate::render::align::right(head, cells[0].width()), cells[0].width())
        );
    }
    let _ = writeln!(out, "{DIM}{}{DIM:#}", heads.trim_end());
    let mut group = "";
    for (index, row) in rows.iter().enumerate() {
        if group_of(row.arm) != group {
            group = group_of(row.arm);
            let _ = writeln!(out, "{BOLD}{group}{BOLD:#}");
        }
        let mut line = format!("  {}", fit(&names[index], name));
        match row.arm.absent("time.wall") {
            Some(why) if tells_skip(why) => {
                let _ = write!(line, "  {}", why.replace('\n', "\n    "));
            }
            Some(why) => {
                let _ = write!(line, "  {BAD}failed{BAD:#}: {}", why.replace('\n', "\n    "));
            }
            None => columns.iter().for_each(|(_, cells)| {
                let _ = write!(line, "  {}", cells[index + 1]);
            }),
        }
        let _ = writeln!(out, "{}", line.trim_end());
        if report.detail {
            out.push_str(&panel::panel(report.run, row.arm));
        }
    }
    left_out_line(&left_out, whole, width)
}

fn rows<'a>(report: &Report<'a>) -> Vec<CaseRow<'a>> {
    let level = report.run.terms.level;
    let arms = &report.run.arms;
    (0..arms.len())
        .filter(|index| arms[*index].role == Role::Subject)
        .map(|index| {
            let arm = &arms[index];
            // The arm of the tare follows the arm of its case.
            let tare = arms.get(index + 1).filter(|tare| tare.role == Role::Tare);
            CaseRow {
                arm,
                raw: report.estimate(arm, "time.wall"),
                tare: tare.and_then(|tare| report.estimate(tare, "time.wall")),
                net: tare.and_then(|tare| bench_cases::net(arm, tare, "time.wall", level)),
            }
        })
        .collect()
}

fn header(report: &Report<'_>, rows: &[CaseRow<'_>]) -> String {
    let without_times = rows.iter().filter_map(|row| row.arm.absent("time.wall"));
    let (skipped, failed): (Vec<&str>, Vec<&str>) = without_times.partition(|why| tells_skip(why));
    let ended: String = [(failed.len(), "failed"), (skipped.len(), "skipped")]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!(" · {count} {word}"))
        .collect();
    let cases = counted(rows.len(), "case");
    if let Some(tool) = &report.run.provenance.tool {
        return format!("{cases} · imported from {tool}{ended}");
    }
    let state = match report.run.state {
        RunState::Complete => String::new(),
        state => format!(" · {}: these are the readings taken so far", state.word()),
    };
    format!("{cases} · {} · seed {}{ended}{state}", processes_of(rows), report.run.seed)
}

/// Writes the number of processes that the times come from.
fn processes_of(rows: &[CaseRow<'_>]) -> String {
    let of_row = |row: &CaseRow<'_>| Some(row.arm.sample("time.wall")?.by_process().len());
    let Some(processes) = rows.iter().filter_map(of_row).max() else { return "not timed".to_owned() };
    counted(processes, "fresh process")
}

/// The width beyond which names are shortened before columns are left out.
const NAME: usize = 36;

/// The columns that are left out if the table is too wide, the least important first.
const LEAST_IMPORTANT: [&str; 15] = [
    "threads.fairness",
    "ghc.mapped.max",
    "ghc.live.max",
    "ghc.live",
    "malloc.peak",
    "malloc.count",
    "alloc.objects",
    "gc.count",
    "throughput",
    "js.external",
    "malloc.bytes",
    "alloc.bytes",
    "tare",
    "timing",
    "instructions",
];

type TableColumns = Vec<(String, Vec<String>)>;

/// Returns the width of the columns, including the space before each.
fn room(columns: &TableColumns) -> usize {
    columns.iter().map(|(_, cells)| cells[0].width() + 2).sum()
}

/// Removes columns until the others fit, first those of metrics that only another tool has, and returns the names of the
/// removed ones.
fn leave_out(columns: &mut TableColumns, report: &Report<'_>, width: usize) -> Vec<String> {
    let mut left_out = Vec::new();
    let others = report.shown.iter().filter(|key| is_other(key)).map(|key| title(key)).rev();
    let own = LEAST_IMPORTANT.iter().map(|key| if key.contains('.') { head(key) } else { (*key).to_owned() });
    for head in others.chain(own) {
        if room(columns) <= width {
            break;
        }
        if let Some(position) = columns.iter().position(|(other, _)| *other == head) {
            columns.remove(position);
            left_out.push(head);
        }
    }
    left_out
}

/// Returns the columns. Each consists of a heading, the widest cell (which determines the width), and a cell for each
/// row.
fn columns(report: &Report<'_>, rows: &[CaseRow<'_>]) -> TableColumns {
    let time = |value: f64| quantity(value, &Unit::Nanoseconds);
    let mut columns = vec![
        ("net".to_owned(), rows.iter().map(|row| net_text(row)).collect::<Vec<_>>()),
        ("±".to_owned(), rows.iter().map(precision).collect()),
        ("raw".to_owned(), rows.iter().map(raw_text).collect()),
        (
            "tare".to_owned(),
            rows.iter().map(|row| row.tare.as_ref().map_or(String::new(), |tare| time(tare.value))).collect(),
        ),
    ];
    // Cases may differ in what their time covers. The column ‘timing’ shows that, so that the time of four steps does
    // not look like four times that of one step.
    let timings: Vec<String> = rows
        .iter()
        .map(|row| row.arm.subject.timing().map_or(String::new(), |t| t.word().to_owned()))
        .collect();
    if sorting::distinct(&timings).len() > 1 {
        columns.push(("timing".to_owned(), timings));
    }
    let known = |key: &str| rows.iter().any(|row| row.arm.sample(key).is_some());
    let any = |key: &str| {
        rows.iter()
            .any(|row| row.arm.sample(key).is_some_and(|sample| sample.readings.iter().any(|r| *r != 0.0)))
    };
    // If the runtime has allocation figures of its own, those of other memory are shown only if some case uses it.
    let is_other_memory = |key: &str| key.starts_with("malloc.") || key == "js.external";
    let of_interest = |key: &str| known(key) && (!is_other_memory(key) || !known("alloc.bytes") || any(key));
    for key in COUNTERS.iter().filter(|key| of_interest(key)) {
        columns.push((head(key), rows.iter().map(|row| counter(report, row.arm, key)).collect()));
    }
    for key in report.shown.iter().filter(|key| report.run.provenance.tool.is_some() && is_other(key)) {
        columns.push((title(key), rows.iter().map(|row| counter(report, row.arm, key)).collect()));
    }
    columns.push(("throughput".to_owned(), rows.iter().map(throughput).collect()));
    let versus = rows.iter().map(|row| versus(report, row.arm)).collect();
    columns.push(("vs reference".to_owned(), versus));
    columns.retain(|(_, cells)| cells.iter().any(|cell| !cell.is_empty()));
    for (head, cells) in &mut columns {
        if head != "vs reference" {
            on_points(cells);
        }
        let width = cells.iter().map(|cell| plain_width(cell)).max().unwrap_or(0).max(head.width());
        for cell in cells.iter_mut() {
            let pad = " ".repeat(width - plain_width(cell));
            *cell = if head == "vs reference" { format!("{cell}{pad}") } else { format!("{pad}{cell}") };
        }
        cells.insert(0, " ".repeat(width));
    }
    columns
}

/// Returns the heading of a counter's column. Counters that `scruple run` shows as well have the same names here.
fn head(key: &str) -> String {
    match key {
        "js.external" => "outside heap".to_owned(),
        "ghc.live" => "live".to_owned(),
        "ghc.live.max" => "max".to_owned(),
        "ghc.mapped.max" => "max OS".to_owned(),
        _ => title(key),
    }
}

/// Whether a metric was read by another tool and has no column yet.
fn is_other(key: &str) -> bool {
    let shown = key == "time.wall" || COUNTERS.contains(&key);
    !shown && !key.starts_with("work.") && !key.starts_with("batch.")
}

/// Returns the width of a cell without its colour codes.
fn plain_width(cell: &str) -> usize {
    anstream::adapter::strip_str(cell).to_string().width()
}

fn net_text(row: &CaseRow<'_>) -> String {
    match &row.net {
        Some(net) => match net.below_resolution {
            Some(limit) => format!("< {}", quantity(limit, &Unit::Nanoseconds)),
            None if net.unknown => "can’t\u{a0}tell".to_owned(),
            None => quantity(net.estimate, &Unit::Nanoseconds),
        },
        None => String::new(),
    }
}

/// Whether the net is known as a number, rather than as a bound or a range.
fn is_known(net: &Net) -> bool {
    net.below_resolution.is_none() && !net.unknown
}

/// Writes the raw time, with the mark of its quality.
fn raw_text(row: &CaseRow<'_>) -> String {
    match (&row.raw, row.arm.sample("time.wall")) {
        (Some(raw), Some(sample)) => {
            format!("{}{}", sample.worth().mark(), quantity(raw.value, &Unit::Nanoseconds))
        }
        _ => String::new(),
    }
}

/// Writes half the width of the interval, relative to the net time, or to the raw time if there is no tare.
fn precision(row: &CaseRow<'_>) -> String {
    let raw = row.raw.as_ref().filter(|raw| row.tare.is_none() && raw.value > 0.0);
    match (&row.net, raw.and_then(|raw| Some((raw.value, raw.interval?)))) {
        (None, Some((value, interval))) => relative_spread(interval.half_width() / value),
        (Some(net), _) if is_known(net) => relative_spread(net.interval.half_width() / net.estimate),
        _ => String::new(),
    }
}

fn counter(report: &Report<'_>, arm: &Arm, key: &str) -> String {
    let Some((sample, estimate)) = arm.sample(key).zip(report.estimate(arm, key)) else {
        return String::new();
    };
    let mark = sample.worth().mark();
    if sample.quality <= Quality::Near && estimate.value.fract() == 0.0 {
        return format!("{mark}{}", exact(estimate.value, &sample.unit));
    }
    match sample.unit {
        Unit::Ratio => format!("{:.3}", estimate.value),
        _ => format!("{mark}{}", quantity(estimate.value.max(0.0), &sample.unit)),
    }
}

fn throughput(row: &CaseRow<'_>) -> String {
    let Some(time) = row
        .net
        .as_ref()
        .filter(|net| is_known(net))
        .map(|net| net.estimate)
        .or(row.raw.as_ref().map(|raw| raw.value))
    else {
        return String::new();
    };
    for (key, unit, suffix) in [("work.bytes", Unit::Bytes, "/s"), ("work.items", Unit::Count, " items/s")] {
        if let Some(amount) = row.arm.sample(key).and_then(|sample| sample.readings.first()) {
            return format!("{}{suffix}", quantity(amount / time * 1e9, &unit));
        }
    }
    String::new()
}

fn versus(report: &Report<'_>, arm: &Arm) -> String {
    let Some(judged) = headline(&report.judged, &report.shown, &arm.name) else {
        return match report.uncompared(arm) {
            "" => String::new(),
            what => format!("{DIM}{what}{DIM:#}"),
        };
    };
    let comparison = &judged.comparison;
    let style = match (comparison.verdict, comparison.direction) {
        (Verdict::CantTell, _) => OPEN,
        (_, Some(Direction::Better)) => GOOD,
        (_, Some(Direction::Worse)) => BAD,
        _ => DIM,
    };
    let which = match judged.metric.as_str() {
        "time.wall" => String::new(),
        key => format!(" ({})", title(key)),
    };
    format!(
        "{} {style}{}{style:#}{which}",
        effect_text(&judged.metric, comparison),
        verdict_words(&judged.metric, comparison)
    )
}

/// Returns the part of a case's path that is below its group, with parameters and threads.
fn leaf(arm: &Arm) -> String {
    let below = arm.name.strip_prefix(group_of(arm)).and_then(|rest| rest.strip_prefix('/'));
    match below.unwrap_or(&arm.name) {
        // A row without a name would look like a mistake of the table.
        blank if blank.trim().is_empty() => format!("‘{blank}’"),
        name => name.to_owned(),
    }
}

/// Returns the group that the program declared for a case, or else its name up to the last slash.
fn group_of(arm: &Arm) -> &str {
    match &arm.subject {
        Subject::Case { group: Some(group), .. } => group,
        Subject::Case { name, .. } => name.rsplit_once('/').map_or("", |(group, _)| group),
        Subject::Command { .. } | Subject::Request { .. } => "",
    }
}

/// Names the cases whose cost vanishes once the tare is subtracted. Either that is correct, or the compiler removed the
/// work.
fn suspicion(rows: &[CaseRow<'_>]) -> Vec<String> {
    let gone: Vec<&CaseRow<'_>> = rows
        .iter()
        .filter(|row| row.net.as_ref().is_some_and(|net| net.below_resolution.is_some()))
        .collect();
    let names: Vec<String> = gone.iter().map(|row| format!("‘{}’", row.arm.name)).collect();
    let mut lines = match names.as_slice() {
        [] => Vec::new(),
        [one] => vec![format!(
            "The net cost of {one} is below resolution: it costs no more than the loop around it, or the compiler has removed its work."
        )],
        [some @ .., last] => vec![format!(
            "The net cost is below resolution for {} and {last} alike: these cost no more than the loop around them, or the compiler has removed their work.",
            some.join(", ")
        )],
    };
    let unknown = rows.iter().filter_map(|row| Some((row, row.net.as_ref().filter(|net| net.unknown)?)));
    lines.extend(unknown.map(|(row, net)| {
        format!(
            "Can’t tell the net cost of ‘{}’: the readings allow anything from {} to {}.",
            row.arm.name,
            quantity(net.interval.low.max(0.0), &Unit::Nanoseconds),
            quantity(net.interval.high, &Unit::Nanoseconds)
        )
    }));
    lines
}

/// Writes a sentence for each case whose time differs between two programs.
fn versus_sentences(report: &Report<'_>) -> Vec<String> {
    match report.run.arms.first().is_some_and(|arm| arm.version.is_some()) {
        true => sentence::verdicts(report),
        false => Vec::new(),
    }
}

/// Says that the nets, which the table shows first, differ by more than the raw times, where the tare is a large part of
/// these.
fn tare_in_differences<'a>(report: &Report<'_>, rows: &[CaseRow<'a>]) -> Option<String> {
    let of_time = report.judged.iter().filter(|one| one.metric.starts_with("time."));
    let compared: Vec<&str> = of_time.flat_map(|one| [one.arm.as_str(), one.reference.as_str()]).collect();
    let part = |row: &CaseRow<'a>| {
        let part = row.tare.as_ref()?.value / row.raw.as_ref()?.value;
        (compared.contains(&row.arm.name.as_str()) && part > 0.05).then_some((part.min(1.0), row.arm))
    };
    let (part, arm) = rows.iter().filter_map(part).max_by(|one, other| one.0.total_cmp(&other.0))?;
    let (part, name) = (share(part), &arm.name);
    Some(format!(
        "Differences are of raw times, which contain the tare, up to {part} (‘{name}’): nets may differ by more."
    ))
}

/// Writes throughput, speed-up and fairness of the cases that ran with several numbers of threads.
fn scaling_lines(report: &Report<'_>) -> String {
    let mut out = String::new();
    for one in scaling::of(report) {
        let version = one.version.map_or(String::new(), |version| format!(" @{version}"));
        let _ = writeln!(out, "Scaling of ‘{}{version}’:", one.name);
        for step in &one.steps {
            let fairness =
                step.fairness.map_or(String::new(), |fairness| format!("   fairness {fairness:.3}"));
            let _ = writeln!(
                out,
                "  {:>3} threads   {:>12}/s   {:>8}   efficiency {:>5}{fairness}",
                step.threads,
                quantity(step.rate, &Unit::Count),
                times(step.speed_up),
                share(step.efficiency)
            );
        }
    }
    out
}
