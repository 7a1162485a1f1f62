//! The page of a run with many arms: counts of verdicts, a row for each arm, and a panel for those that changed.

use super::{lead, matrix, panel, what};
use crate::render::page::chart::slug;
use crate::render::page::{
    Axis, Cell, Chart, ChartRow, ColumnHeading, Drawn, Fold, RowChart, Section, SectionPart, Shade, Span,
    Table, Tone, harmless_name, tone,
};
use crate::run_report::{Report, net};
use scruple_core::judge::{self, Judged};
use scruple_core::subject::{Arm, Role};
use scruple_core::unit::{Unit, quantity, share};
use scruple_core::verdict::Verdict;
use scruple_stats::sorting;
use scruple_stats::tare::Net;

/// The largest number of panels on a page. More would make it too large to read.
const MOST_PANELS: usize = 30;

/// The largest number of rows in a table that is not folded.
const OPEN_ROWS: usize = 40;

/// Returns the sections of the page.
pub fn sections(report: &Report<'_>) -> Vec<Section> {
    let arms: Vec<&Arm> = report.run.arms_of(Role::Subject).collect();
    let headlines = judge::headlines(&report.judged, &report.shown);
    let mut quoted: Vec<(&Arm, &Judged)> =
        arms.iter().filter_map(|arm| Some((*arm, *headlines.get(arm.name.as_str())?))).collect();
    sorting::by(&mut quoted, |one, other| worst_first(one.1).total_cmp(&worst_first(other.1)));
    let mut sections = Vec::new();
    if !quoted.is_empty() {
        sections.push(compared(&quoted));
    }
    sections.push(table(report, &arms));
    sections.extend(panels(report, &arms, &quoted));
    sections
}

/// Returns the sort key of a comparison. The order is: worse, better, undecided, same. Within each, the end of the
/// interval that is nearer to no difference decides.
fn worst_first(judged: &Judged) -> f64 {
    let near = match (judged.comparison.interval(), judged.comparison.evidence.effect()) {
        (Some(interval), _) if interval.low > 1.0 => interval.low.ln(),
        (Some(interval), _) if interval.high < 1.0 => -interval.high.ln(),
        (None, Some(effect)) if effect > 0.0 => effect.ln().abs(),
        _ => 0.0,
    };
    let class = match tone(&judged.comparison) {
        Tone::Worse => 0.0,
        Tone::Better => 1.0,
        Tone::Plain => 2.0,
        Tone::Open => 3.0,
        Tone::Same => 4.0,
    };
    class * 1e6 - near.min(1e5)
}

/// Makes the section of differences, with a row for each. Arms that are the same are folded.
fn compared(quoted: &[(&Arm, &Judged)]) -> Section {
    let (same, others): (Vec<&(&Arm, &Judged)>, Vec<_>) =
        quoted.iter().partition(|(_, judged)| judged.comparison.verdict == Verdict::Same);
    let decided = others
        .iter()
        .any(|(_, judged)| matches!(judged.comparison.verdict, Verdict::Different | Verdict::Small));
    let mut parts = Vec::new();
    if !decided && !others.is_empty() {
        let words = "No difference was found; these readings cannot tell.";
        parts.push(SectionPart::Words(words.to_owned()));
    }
    match others.as_slice() {
        [] => parts.push(SectionPart::Words("No difference was found.".to_owned())),
        others => {
            parts.extend(chart("differences", "Differences, the worst first", others).map(SectionPart::Chart))
        }
    }
    if !same.is_empty() {
        let widest = same
            .iter()
            .filter_map(|(_, judged)| judged.comparison.interval())
            .map(|interval| interval.low.ln().abs().max(interval.high.ln().abs()).exp_m1())
            .fold(0.0, f64::max);
        let within = if widest > 0.0 {
            format!(" (none moved by more than {})", share(widest))
        } else {
            String::new()
        };
        let summary = format!("{} the same{within}", same.len());
        let parts_of = chart("same", "The same", &same).map(SectionPart::Chart).into_iter().collect();
        parts.push(SectionPart::Fold(Fold { summary, parts: parts_of }));
    }
    let title = if decided { "What changed" } else { "What may have changed" };
    Section { title: title.to_owned(), folded: None, parts }
}

fn chart(called: &str, heading: &str, quoted: &[&(&Arm, &Judged)]) -> Option<Chart> {
    let metric = &quoted.first()?.1.metric;
    let of_one = quoted.iter().all(|(_, judged)| judged.metric == *metric);
    let all: Vec<&Judged> = quoted.iter().map(|(_, judged)| *judged).collect();
    let common = lead::versions(&all).is_some();
    let named = |judged: &Judged| match judged.arm.rsplit_once(" @") {
        Some((subject, _)) if common => harmless_name(subject),
        _ => harmless_name(&judged.arm),
    };
    let called_by = |judged: &Judged| match of_one {
        true => named(judged),
        false => format!("{} · {}", named(judged), what(&judged.metric)),
    };
    let rows: Vec<ChartRow> = quoted
        .iter()
        .map(|(_, judged)| ChartRow { name: called_by(judged), ..panel::difference(arm_of(judged), judged) })
        .collect();
    let margin = quoted.iter().map(|(_, judged)| judged.comparison.margin).fold(0.0, f64::max);
    let drawn = rows.iter().any(|row| row.middle.is_some_and(|middle| middle > 0.0));
    let texts: Vec<String> =
        rows.iter().take(12).map(|row| format!("{} {} {}", row.name, row.figure, row.tail.text)).collect();
    let more = if rows.len() > 12 { format!("; and {} more", rows.len() - 12) } else { String::new() };
    drawn.then(|| Chart {
        name: slug(called),
        title: if of_one { format!("{heading} ({})", what(metric)) } else { heading.to_owned() },
        note: String::new(),
        label: format!("{}{more}", texts.join("; ")),
        drawn: Drawn::Rows(RowChart {
            axis: Axis::ratio("change"),
            shade: Some(Shade::margin(margin)),
            zero: Some(1.0),
            rows,
        }),
    })
}

/// Returns the number of the mark for a difference, which depends on its direction.
fn arm_of(judged: &Judged) -> usize {
    match tone(&judged.comparison) {
        Tone::Worse => 2,
        Tone::Better => 3,
        _ => 0,
    }
}

/// Makes the table of every arm with every shown metric.
pub fn table(report: &Report<'_>, arms: &[&Arm]) -> Section {
    let mut head = vec![ColumnHeading::text(if report.of_cases() { "Case" } else { "Command" })];
    let keys = &report.shown;
    let nets: Vec<Option<Net>> = arms.iter().map(|arm| net::of(report, arm)).collect();
    let with_net = nets.iter().any(Option::is_some);
    head.extend(with_net.then(|| ColumnHeading::number("net wall time")));
    head.extend(keys.iter().map(|key| ColumnHeading::number(what(key))));
    let row = |(arm, net): (&&Arm, &Option<Net>)| {
        let mut cells = vec![Cell::code(harmless_name(&arm.name))];
        cells.extend(with_net.then(|| net_cell(net.as_ref())));
        cells.extend(keys.iter().map(|key| matrix::cell(report, key, arm, true)));
        cells
    };
    let rows: Vec<Vec<Cell>> = arms.iter().zip(&nets).map(row).collect();
    let label = "Every arm with every metric".to_owned();
    let title = if report.of_cases() { "All cases" } else { "All commands" }.to_owned();
    let folded = (rows.len() > OPEN_ROWS).then(|| format!("All {} with every metric", rows.len()));
    let mut parts = vec![SectionPart::Table(Table { label, head, rows, stacks: true, ..Table::default() })];
    let note = "Net: less the tare, which is the same loop without the case. All other columns are as read.";
    parts.extend(with_net.then(|| SectionPart::Note(note.to_owned())));
    Section { title, folded, parts }
}

/// Returns the cell of a time less the tare: a number, an upper bound, or a range.
fn net_cell(net: Option<&Net>) -> Cell {
    let time = |value: f64| quantity(value, &Unit::Nanoseconds);
    let Some(net) = net else { return Cell::text("–") };
    let range = net::range(net);
    match net.below_resolution {
        Some(limit) => Cell {
            text: format!("< {}", time(limit)),
            tail: Some(Span::new("below resolution", Tone::Same)),
            ..Cell::default()
        },
        None if net.unknown => {
            Cell { text: "?".to_owned(), tail: Some(Span::new(range, Tone::Open)), ..Cell::default() }
        }
        None => {
            Cell { text: time(net.estimate), tail: Some(Span::new(range, Tone::Same)), ..Cell::default() }
        }
    }
}

/// Makes the panels with the readings of the arms that changed, or of all arms if none were compared.
fn panels(report: &Report<'_>, arms: &[&Arm], quoted: &[(&Arm, &Judged)]) -> Option<Section> {
    let shown: Vec<(&Arm, Option<&Judged>)> = match quoted {
        [] => arms.iter().map(|arm| (*arm, None)).collect(),
        quoted => quoted
            .iter()
            .filter(|(_, judged)| judged.comparison.verdict != Verdict::Same)
            .map(|(arm, judged)| (*arm, Some(*judged)))
            .collect(),
    };
    let left = shown.len().saturating_sub(MOST_PANELS);
    let mut parts: Vec<SectionPart> =
        shown.iter().take(MOST_PANELS).filter_map(|(arm, judged)| fold(report, arm, *judged)).collect();
    if parts.is_empty() {
        return None;
    }
    if left > 0 {
        parts.push(SectionPart::Note(format!(
            "{left} more have no panel here, to keep the page small; `scruple show --json` has every reading."
        )));
    }
    Some(Section { title: "Readings".to_owned(), folded: None, parts })
}

fn fold(report: &Report<'_>, arm: &Arm, judged: Option<&Judged>) -> Option<SectionPart> {
    let varies = |key: &&String| arm.sample(key).is_some_and(|sample| !sample.repeats());
    let key =
        judged.map(|judged| &judged.metric).filter(varies).or_else(|| report.shown.iter().find(varies))?;
    let reference =
        judged.and_then(|judged| report.run.arms.iter().find(|other| other.name == judged.reference));
    let sides: Vec<&Arm> = reference.into_iter().chain([arm]).collect();
    let mut parts = panel::parts(report, key, &sides);
    for part in &mut parts {
        prefix(part, &harmless_name(&arm.name));
    }
    let verdict =
        judged.map(|judged| format!(": {}", matrix::verdict_in_words(judged).text)).unwrap_or_default();
    Some(SectionPart::Fold(Fold {
        summary: format!("{}, {}{verdict}", harmless_name(&arm.name), what(key)),
        parts,
    }))
}

/// Puts the name of the arm before the names of its charts, so that charts of different arms have different names.
fn prefix(part: &mut SectionPart, arm: &str) {
    let rename = |chart: &mut Chart| chart.name = slug(&format!("{arm}-{}", chart.name));
    match part {
        SectionPart::Chart(chart) => rename(chart),
        SectionPart::Charts(charts) => charts.iter_mut().for_each(rename),
        _ => {}
    }
}
