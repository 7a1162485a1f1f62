//! The report for a terminal: a section for each metric, a row for each arm, verdicts, remarks.

use super::{Report, few_readings, ranking, sentence, unlike_medians};
use crate::address::StoreAddress;
use crate::inspect::report::memory;
use crate::render::align::{fit, fit_names, left_out_line, remark, right, wrap};
use crate::render::block_characters;
use crate::render::colours::{BAD, BOLD, DIM, GOOD, OPEN};
use crate::render::metric_words::{effect_text, title, verdict_words};
use anstyle::Style;
use scruple_core::gate::without_version;
use scruple_core::judge::limits::Kept;
use scruple_core::judge::{Estimate, declaration};
use scruple_core::metric::Quality;
use scruple_core::plural::counted;
use scruple_core::sample::Sample;
use scruple_core::subject::{Arm, Role};
use scruple_core::unit::{Scale, Unit, exact};
use scruple_core::verdict::{Direction, Verdict};
use scruple_stats::sorting;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// The number of bins in the small histogram of a row.
const HISTOGRAM: usize = 12;

/// The number of columns below which names are not shortened.
const LEAST_NAME: usize = 12;

/// The texts of a row, before they are padded.
struct RowText {
    name: String,
    value: String,
    interval: String,
    histogram: String,
    effect: String,
    verdict: String,
    style: Style,
}

/// The part of the report about one metric, or about several that are absent for the same reason.
struct MetricSection {
    head: String,
    rows: Vec<RowText>,
    /// Why figures are absent, a line for each reason.
    absent: Vec<String>,
}

/// Writes what a reader of two stored runs must know first.
pub(crate) fn preface(report: &Report<'_>, width: usize) -> String {
    let lines = report.preface();
    let text: String = lines.iter().map(|line| wrap(line, width) + "\n").collect();
    if text.is_empty() { text } else { text + "\n" }
}

/// Writes the sections, the verdicts and the remarks.
pub(crate) fn body(report: &Report<'_>, width: usize) -> String {
    let mut out = String::new();
    let sections = with_common_absences(report.shown.iter().map(|key| section(report, key)).collect());
    let rows = || sections.iter().flat_map(|section| &section.rows);
    let widest = |of: fn(&RowText) -> &str| rows().map(|row| of(row).width()).max().unwrap_or(0);
    let (value, intervals) = (widest(|r| &r.value), widest(|r| &r.interval));
    let (effects, verdict) = (widest(|r| &r.effect), widest(|r| &r.verdict));
    let estimates = widest(|r| estimate(&r.effect));
    let least_name = widest(|r| &r.name).min(LEAST_NAME);
    // The end of a row is not written where it is blank.
    let blank = if effects + verdict == 0 { 4 } else { 0 };
    // The columns of intervals and of differences. Differences lose their intervals before they are left out.
    let fixed = |(intervals, effects): (Option<usize>, Option<usize>)| {
        let column = |columns: Option<usize>| columns.map_or(0, |columns| 2 + columns);
        4 + value + column(intervals) + column(effects) + 2 + verdict
    };
    let whole = (Some(intervals), Some(effects));
    let fits = |shown: &(Option<usize>, Option<usize>)| fixed(*shown) + least_name <= width + blank;
    let choices = [whole, (None, Some(effects)), (None, Some(estimates))];
    let shown = choices.into_iter().find(fits).unwrap_or_default();
    let fixed_of_shown = fixed(shown);
    let with_histogram =
        rows().any(|row| !row.histogram.is_empty()) && fixed_of_shown + HISTOGRAM + 2 + 16 <= width;
    let room = width.saturating_sub(fixed_of_shown + if with_histogram { HISTOGRAM + 2 } else { 0 });
    let name = widest(|r| &r.name).min(room.max(LEAST_NAME));
    let names = fit_names(&rows().map(|row| row.name.as_str()).collect::<Vec<_>>(), name);
    for MetricSection { head, rows, absent } in &sections {
        let _ = writeln!(out, "{BOLD}{}{BOLD:#}", wrap(head, width));
        for row in rows {
            let mut line = format!("  {}  {}", names[row.name.as_str()], right(&row.value, value));
            if let Some(columns) = shown.0 {
                let _ = write!(line, "  {}", fit(&row.interval, columns));
            }
            if with_histogram {
                let _ = write!(line, "  {}", fit(&row.histogram, HISTOGRAM));
            }
            if let Some(columns) = shown.1 {
                let effect = if columns < effects { estimate(&row.effect) } else { &row.effect };
                let _ = write!(line, "  {}", fit(effect, columns));
            }
            line.push_str("  ");
            let style = row.style;
            let plain = format!("{line}{}", row.verdict);
            let line = if row.verdict.is_empty() {
                line.trim_end().to_owned()
            } else {
                format!("{line}{style}{}{style:#}", row.verdict)
            };
            let _ = writeln!(out, "{}", if plain.trim_end().is_empty() { "" } else { &line });
        }
        for line in absent {
            let line = wrap(line, width.saturating_sub(4)).replace('\n', "\n    ");
            let _ = writeln!(out, "  {DIM}{line}{DIM:#}");
        }
    }
    let lacks_intervals =
        shown.0.unwrap_or(0) < intervals || shown.1.is_some_and(|columns| columns < effects);
    let optional =
        [("intervals", lacks_intervals), ("differences", shown.1.unwrap_or(0) == 0 && effects > 0)];
    let left_out: Vec<&str> =
        optional.iter().filter(|(_, left_out)| *left_out).map(|(head, _)| *head).collect();
    out.push_str(&left_out_line(&left_out, fixed(whole) + least_name - blank, width));
    out.push('\n');
    let paragraphs = [
        sentence::verdicts(report),
        few_readings::lines(report),
        unlike_medians::lines(report),
        ranking::line(report).into_iter().collect(),
        sentence::growth_lines(report),
        sentence::tare_lines(report),
    ];
    for (index, lines) in paragraphs.iter().enumerate() {
        for line in lines {
            let style = if index == 0 { BOLD } else { Style::new() };
            let _ = writeln!(out, "{style}{}{style:#}", wrap(line, width));
        }
    }
    remarks(report, width, &mut out);
    for arm in &report.run.arms {
        if let Some(course) = &arm.memory {
            let _ = write!(out, "\n{}", memory::text(&arm.name, course, width));
        }
    }
    out
}

/// A difference without its interval.
fn estimate(effect: &str) -> &str {
    effect.split(" [").next().unwrap_or_default().trim_end()
}

/// Writes limits and warnings, which follow every table.
pub(crate) fn remarks(report: &Report<'_>, width: usize, out: &mut String) {
    checked(report, width, out);
    out.extend(report.run.warnings.iter().map(|warning| remark(&warning.text, width)));
}

/// Says where a run is stored: on one line, or on two if it is wider than this many columns. `option` is what another
/// command needs to find the store.
pub fn stored(id: &str, place: &StoreAddress, option: &str, width: usize) -> String {
    let here = std::env::current_dir().ok();
    let place = match (place, &here) {
        (StoreAddress::File(path), Some(here)) => {
            path.strip_prefix(here).unwrap_or(path).display().to_string()
        }
        _ => place.to_string(),
    };
    let (where_it_is, how_to_show_it) =
        (format!("Stored as {id} in {place};"), format!("`scruple show {id}{option}` shows it again."));
    // The command stays on one line, so that it can be copied.
    let fits = where_it_is.width() + 1 + how_to_show_it.width() <= width;
    let gap = if fits { " " } else { "\n" };
    format!("{DIM}{where_it_is}{gap}{how_to_show_it}{DIM:#}")
}

pub(crate) fn header(report: &Report<'_>) -> String {
    // A comparison of two stored runs contains each subject twice, and a series as often as it has values.
    let of_two_runs =
        !report.side_by_side && report.run.arms_of(Role::Subject).all(|arm| arm.version.is_some());
    let subjects = match of_two_runs {
        true => sorting::distinct(report.run.arms_of(Role::Subject).map(without_version)).len(),
        false => report.run.arms_of(Role::Subject).count(),
    };
    let requests = report.of_requests();
    let (what, clock) = if requests { ("server", "load.rate") } else { ("command", "time.wall") };
    let blocks = report
        .run
        .arms_of(Role::Subject)
        .filter_map(|arm| arm.sample(clock).map(|sample| sample.readings.len()))
        .min()
        .unwrap_or(0);
    let state = match report.run.state {
        scruple_core::run::RunState::Complete => String::new(),
        state => format!(" · {}: these are the readings taken so far", state.word()),
    };
    if let Some(tool) = &report.run.provenance.tool {
        return format!("{} · imported from {tool}", counted(subjects, what));
    }
    let readings = match (blocks, requests) {
        (0, false) => "not timed".to_owned(),
        (blocks, false) => counted(blocks, "block"),
        (windows, true) => counted(windows, "window"),
    };
    let how = match subjects {
        _ if of_two_runs => " of each run",
        _ if subjects == 1 || blocks == 0 => "",
        _ => ", interleaved",
    };
    format!("{} · {readings}{how} · seed {}{state}", counted(subjects, what), report.run.seed)
}

fn section(report: &Report<'_>, key: &str) -> MetricSection {
    let arms: Vec<(&Arm, &Sample, Estimate)> =
        report.rows().filter_map(|arm| Some((arm, arm.sample(key)?, report.estimate(arm, key)?))).collect();
    let unit = arms.first().map(|(_, sample, _)| sample.unit.clone());
    let counted = arms.iter().all(|(_, sample, estimate)| {
        let whole = sample.readings.iter().all(|reading| reading.fract() == 0.0);
        sample.quality <= Quality::Near && estimate.interval.is_none() && whole
    });
    let highest = |of: fn(&Estimate) -> f64| arms.iter().map(|(_, _, e)| of(e)).fold(0.0, f64::max);
    let scale = unit.as_ref().map(|unit| match highest(|estimate| estimate.value) {
        0.0 => unit.scale(highest(|estimate| estimate.range.1)),
        value => unit.scale(value),
    });
    let decimals = scale.as_ref().map_or(0, |scale| common_decimals(scale, &arms));
    let range = block_characters::common_range(arms.iter().map(|(_, sample, _)| sample.readings.as_slice()));
    let of_metric = report.judged.iter().filter(|judged| judged.metric == key);
    let references: HashSet<&str> = of_metric.map(|judged| judged.reference.as_str()).collect();
    let reference = |arm: &Arm| references.contains(arm.name.as_str());
    let rows = arms
        .iter()
        .map(|(arm, sample, estimate)| {
            let judged = report.judged_of(&arm.name, key);
            let (value, interval) = match (&scale, &unit) {
                (Some(_), Some(unit)) if counted => {
                    (exact(estimate.value, unit), disagreement(sample, estimate))
                }
                (Some(scale), _) => {
                    (scale.text(estimate.value, decimals), interval_text(scale, estimate, decimals))
                }
                _ => (String::new(), String::new()),
            };
            RowText {
                name: arm.name.clone(),
                value: format!("{}{value}", sample.worth().mark()),
                interval,
                histogram: match sample.readings.len() >= 6 && estimate.interval.is_some() {
                    true => block_characters::histogram(&sample.readings, range, HISTOGRAM),
                    false => String::new(),
                },
                effect: judged.map_or(String::new(), |judged| effect_text(key, &judged.comparison)),
                verdict: match judged {
                    Some(judged) => verdict_words(key, &judged.comparison).into_owned(),
                    None if reference(arm) => "reference".to_owned(),
                    None => String::new(),
                },
                style: judged.map_or(DIM, |judged| {
                    match (judged.comparison.verdict, judged.comparison.direction) {
                        (Verdict::CantTell, _) => OPEN,
                        (_, Some(Direction::Better)) => GOOD,
                        (_, Some(Direction::Worse)) => BAD,
                        _ => DIM,
                    }
                }),
            }
        })
        .collect();
    let absent =
        sentence::absences(report.rows().filter_map(|arm| Some((arm.name.as_str(), arm.absent(key)?))));
    MetricSection { head: title(key), rows, absent }
}

/// Says once, below the names of all of them, why several metrics are absent.
fn with_common_absences(sections: Vec<MetricSection>) -> Vec<MetricSection> {
    let mut heads: HashMap<String, Vec<String>> = HashMap::new();
    for section in &sections {
        for line in &section.absent {
            heads.entry(line.clone()).or_default().push(section.head.clone());
        }
    }
    let mut out: Vec<MetricSection> = Vec::new();
    for MetricSection { head, rows, absent } in sections {
        let (own, common): (Vec<String>, Vec<String>) =
            absent.into_iter().partition(|line| heads[line].len() == 1);
        if !rows.is_empty() || !own.is_empty() || common.is_empty() {
            out.push(MetricSection { head: head.clone(), rows, absent: own });
        }
        for line in common.into_iter().filter(|line| heads[line].last() == Some(&head)) {
            let all = heads[&line].join(", ");
            match out.last_mut().filter(|last| last.head == all) {
                Some(last) => last.absent.push(line),
                None => out.push(MetricSection { head: all, rows: Vec::new(), absent: vec![line] }),
            }
        }
    }
    out
}

/// Returns the number of decimals that suits the most precise row. All rows use it, so that they align on the decimal
/// point.
fn common_decimals(scale: &Scale, arms: &[(&Arm, &Sample, Estimate)]) -> usize {
    let whole = |(_, sample, _): &(&Arm, &Sample, Estimate)| {
        sample.unit == Unit::Count && sample.readings.iter().all(|r| (r / scale.divisor).fract() == 0.0)
    };
    if arms.iter().all(whole) {
        return 0;
    }
    arms.iter()
        .map(|(_, sample, estimate)| {
            let width = estimate.interval.map(|interval| (interval.high - interval.low) / 2.0);
            let width = width.or_else(|| {
                let spread = (estimate.range.1 - estimate.range.0) / 2.0;
                (!sample.repeats()).then_some(spread)
            });
            scale.decimals(estimate.value, width)
        })
        .max()
        .unwrap_or(0)
        .min(4)
}

fn interval_text(scale: &Scale, estimate: &Estimate, decimals: usize) -> String {
    let bounds =
        |low: f64, high: f64| format!("{}, {}", scale.number(low, decimals), scale.number(high, decimals));
    match estimate.interval {
        Some(interval) => format!("[{}]", bounds(interval.low, interval.high)),
        None if estimate.range.0 < estimate.range.1 => {
            format!("({})", bounds(estimate.range.0, estimate.range.1))
        }
        None => String::new(),
    }
}

/// Writes the range of the readings of a count if they differ.
fn disagreement(sample: &Sample, estimate: &Estimate) -> String {
    match sample.repeats() {
        true => String::new(),
        false => {
            let unit = &declaration("", sample).unit;
            format!("({}, {})", exact(estimate.range.0, unit), exact(estimate.range.1, unit))
        }
    }
}

/// With more limits than this, the kept ones are only counted.
const LIMITS: usize = 8;

fn checked(report: &Report<'_>, width: usize, out: &mut String) {
    let few = report.checked.len() <= LIMITS;
    for checked in report.checked.iter().filter(|checked| few || checked.kept != Kept::Yes) {
        let style = match checked.kept {
            Kept::Yes => GOOD,
            Kept::No => BAD,
            Kept::CantTell => OPEN,
        };
        let word = sentence::kept(checked);
        let line = wrap(&sentence::limit(checked), width).replace('\n', "\n  ");
        let _ = writeln!(out, "{}", line.replacen(word, &format!("{style}{word}{style:#}"), 1));
    }
    let kept = report.checked.iter().filter(|checked| checked.kept == Kept::Yes).count();
    if !few && kept > 0 {
        let others = if kept < report.checked.len() { "other " } else { "" };
        let _ = writeln!(out, "{GOOD}Kept{GOOD:#}: {kept} {others}limits");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_shows_a_run_again_is_not_broken() {
        let lines = |width| {
            let place = StoreAddress::File("/elsewhere/.scruple/store.db".into());
            anstream::adapter::strip_str(&stored("1abcdefgh0123", &place, "", width)).to_string()
        };
        let (first, second) = (
            "Stored as 1abcdefgh0123 in /elsewhere/.scruple/store.db;",
            "`scruple show 1abcdefgh0123` shows it again.",
        );
        assert_eq!(lines(101), format!("{first} {second}"));
        assert_eq!(lines(100), format!("{first}\n{second}"));
    }
}
