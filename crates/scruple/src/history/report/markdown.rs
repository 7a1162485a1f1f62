//! Markdown: lines that can be pasted into a message, and the table behind them.

use super::event::{EventDirection, HistoryEvent, rank};
use super::{ExplainedChange, HistoryReport, commit_links, csv, minor_changes, open_questions, words};
use crate::render::markup::{Markup, code, escaped};
use crate::render::metric_words::title;
use scruple_core::history::Series;
use scruple_core::judge::{Nodes, Pair, compare_pairs};
use scruple_core::subject::Arm;
use scruple_core::unit::{percent, quantity};
use scruple_stats::Interval;
use scruple_stats::sorting;
use std::fmt::Write as _;

/// Writes a line for the whole range, a line for each event, the table of the changes, and the versions that could not
/// be weighed.
pub(crate) fn text(page: &HistoryReport<'_>) -> String {
    let mut out = format!(
        "{} {}: {}\n",
        code(&words::plain(&page.history.repository), Markup::Markdown),
        code(&words::plain(&page.history.range), Markup::Markdown),
        words::counts(page)
    );
    let ends = page.shown.iter().filter_map(|series| series.whole.as_ref());
    let (from, to) = (ends.clone().map(|whole| whole.from).min(), ends.map(|whole| whole.to).max());
    if let Some((from, to)) = from.zip(to) {
        let _ = write!(out, "\n## From the first version to the last\n\n{}", pair(page, from, to));
    }
    let events = page.shown_events();
    if !events.is_empty() {
        out.push_str("\n## Changes\n\n");
        for event in events {
            out.push_str(&event_lines(page, event));
        }
        out.push('\n');
        table(page, &mut out);
    } else if !page.shown.is_empty() {
        let _ = writeln!(out, "\n{}", minor_changes::no_change(page));
    }
    if let Some(minor) = minor_changes::line(page) {
        let _ = writeln!(out, "\n{}", escaped(&minor));
        for event in page.minor() {
            for sentence in page.explained_of(event).flat_map(ExplainedChange::named_sentences) {
                let _ = writeln!(out, "- {}: {}", words::short(page, event.at), escaped(&sentence));
            }
        }
    }
    for (index, (version, why)) in words::failed(page).enumerate() {
        if index == 0 {
            out.push_str("\n## Could not be weighed\n\n");
        }
        let _ = writeln!(out, "- {}: {}", words::short(page, version), code(&why, Markup::Markdown));
    }
    let detectable = words::detectable(page);
    if !detectable.is_empty() {
        let _ = writeln!(out, "\nSmaller steps may have been missed: {}.", escaped(&detectable.join(", ")));
    }
    for one in &page.judgement.break_even {
        let _ = writeln!(out, "\nBuild cost against run time: {}", escaped(&words::break_even(page, one)));
    }
    let open = open_questions::sentences(page);
    if !open.is_empty() {
        out.push('\n');
        open.iter().for_each(|line| {
            let _ = writeln!(out, "- {}", escaped(line));
        });
    }
    out
}

/// Writes a line for each subject that changed between two versions, or one line that says that none did.
pub(crate) fn pair(page: &HistoryReport<'_>, from: usize, to: usize) -> String {
    if from.max(to) >= page.history.versions.len() {
        return String::new();
    }
    let mut out = String::new();
    for subject in subjects(page) {
        let series = page.shown.iter().filter(|series| series.subject == subject);
        let found: Vec<(&Series, f64)> =
            series.filter_map(|series| Some((*series, between(page, series, from, to)?))).collect();
        if !found.is_empty() {
            let of = |(series, ratio): &&(&Series, f64)| rank(&series.metric, *ratio, page.margin());
            let most_important = found.iter().min_by_key(of);
            let outcome = most_important.map_or(EventDirection::Change, |(series, ratio)| {
                EventDirection::of_metric(&series.metric, words::is_better(series, *ratio))
            });
            out.push_str(&line(page, outcome, subject, &amounts(&found), from, to));
            out.push('\n');
        }
    }
    match out.is_empty() {
        true => format!("No change ({})\n", commits(page, from, to)),
        false => out,
    }
}

/// Writes the lines of an event. The first names the subject of its most important change; other subjects follow below.
fn event_lines(page: &HistoryReport<'_>, event: &HistoryEvent<'_>) -> String {
    let mut out = String::new();
    let changed = |subject: &str| -> Vec<(&Series, f64)> {
        let of = event.changes.iter().filter(|(series, _)| series.subject == subject);
        of.map(|(series, change)| (*series, change.ratio)).collect()
    };
    let mut found: Vec<_> = subjects(page).into_iter().map(|subject| (subject, changed(subject))).collect();
    found.retain(|(_, changes)| !changes.is_empty());
    sorting::by_key(&mut found, |(_, changes)| {
        changes.iter().map(|(series, ratio)| rank(&series.metric, *ratio, page.margin())).min()
    });
    for (place, (subject, changes)) in found.iter().enumerate() {
        let parts = amounts(changes);
        if place > 0 {
            let _ = writeln!(out, "  - {}: {parts}", code(&words::plain(subject), Markup::Markdown));
            continue;
        }
        let mut item = line(page, event.outcome(), subject, &parts, event.before, event.last());
        let which = Some(words::culprit(page, event)).filter(|_| words::left_out(page, event) > 0);
        for kind in which.into_iter().chain(words::kind(page, event)) {
            let _ = write!(item, " – {}", escaped(&kind));
        }
        let _ = writeln!(out, "- {item}");
    }
    for one in page.explained_of(event) {
        for sentence in one.named_sentences() {
            let _ = writeln!(out, "  - {}", escaped(&sentence));
        }
    }
    out
}

/// Writes a line such as `**Improvement**: Allocations: -46.17%  Memory: -1.20%  Time: -36.88% (Commit [a...b](link))`.
fn line(
    page: &HistoryReport<'_>,
    outcome: EventDirection,
    subject: &str,
    parts: &str,
    from: usize,
    to: usize,
) -> String {
    let whom = match subjects(page).len() {
        0 | 1 => String::new(),
        _ => format!(" of {}", code(&words::plain(subject), Markup::Markdown)),
    };
    format!("**{}**{whom}: {parts} ({})", outcome.word(), commits(page, from, to))
}

/// Writes the amounts of a line, such as `Allocations: -46.17%  Memory: -1.20%  Time: -36.88%`.
///
/// Metrics that did not change are left out. Processor time is written if wall time is not available. Other metrics
/// appear only if none of the three changed.
fn amounts(found: &[(&Series, f64)]) -> String {
    // Bytes that a runtime's collector allocates and bytes requested from malloc are different figures.
    let columns: [(&str, &[&str]); 4] = [
        ("Allocations", &["alloc.bytes"]),
        ("malloc", &["malloc.bytes"]),
        ("Memory", &csv::MEMORY),
        ("Time", &csv::TIME),
    ];
    let ratio = |keys: &[&str]| keys.iter().find_map(|key| found.iter().find(|(one, _)| one.metric == *key));
    let mut parts: Vec<String> =
        columns.iter().filter_map(|(name, keys)| Some(format!("{name}: {}", amount(ratio(keys)?)))).collect();
    // On a busy machine, processor time is often the only time with a result.
    if let (None, Some((_, cpu))) = (ratio(&csv::TIME), ratio(&["time.cpu"])) {
        parts.push(format!("CPU: {}", percent(*cpu)));
    }
    if parts.is_empty() {
        let other = |one: &(&Series, f64)| {
            format!("{}: {}", escaped(&words::plain(&title(&one.0.metric))), amount(one))
        };
        parts = found.iter().map(other).collect();
    }
    parts.join("  ")
}

/// Writes the change of a series. If its values have both signs, only the direction is written.
fn amount((series, ratio): &(&Series, f64)) -> String {
    let crosses = series.points.iter().any(|point| point.least < 0.0);
    match (crosses && ratio.is_infinite(), *ratio > 0.0) {
        (false, _) => percent(*ratio),
        (true, true) => "more".to_owned(),
        (true, false) => "less".to_owned(),
    }
}

fn commits(page: &HistoryReport<'_>, from: usize, to: usize) -> String {
    let (a, b) = (page.version(from), page.version(to));
    let short = format!("{}...{}", words::short(page, from), words::short(page, to));
    match commit_links::compare_link(page.history.remote.as_deref(), &a.commit, &b.commit) {
        Some(link) => format!("Commit [{short}]({link})"),
        None => format!("Commit {short}"),
    }
}

/// Returns the ratio of a series between two versions, if the series certainly changed.
///
/// The judgement of the whole range is used if it applies. Otherwise, the values of exact series are divided. For noisy
/// series, the readings of shared blocks decide, or the levels if there are too few such readings.
fn between(page: &HistoryReport<'_>, series: &Series, from: usize, to: usize) -> Option<f64> {
    if let Some(whole) = series.whole.as_ref().filter(|whole| (whole.from, whole.to) == (from, to)) {
        return whole.surely.then_some(whole.ratio);
    }
    let value = |index: usize| {
        let index = page.stands_for(index);
        series.points.iter().find(|point| page.stands_for(point.version) == index).map(|point| point.value)
    };
    let ratio = value(to)? / value(from)?;
    if series.exact {
        return (ratio != 1.0 && !ratio.is_nan()).then_some(ratio);
    }
    if let Some((effect, interval)) = side_by_side(page, series, from, to) {
        return (!interval.contains(1.0)).then_some(effect);
    }
    let level = |index: usize| {
        series
            .levels
            .iter()
            .find(|(first, last, _)| (*first..=*last).contains(&index))
            .map(|(_, _, level)| *level)
    };
    let (old, new) = (level(from)?, level(to)?);
    // Values with different signs have no meaningful ratio, only a direction.
    let crosses = series.points.iter().any(|point| point.least < 0.0);
    let ratio = if crosses { (new - old).signum() * f64::INFINITY } else { new / old };
    (old != new).then_some(ratio)
}

fn side_by_side(
    page: &HistoryReport<'_>,
    series: &Series,
    from: usize,
    to: usize,
) -> Option<(f64, Interval)> {
    let arm = |index: usize| -> Option<&Arm> {
        let has = |arm: &&Arm| arm.name == series.subject && arm.sample(&series.metric).is_some();
        // Build costs are stored with the first subject only.
        page.arms_at(index).find(has)
    };
    let pair = Pair {
        reference: arm(from)?,
        arm: arm(to)?,
        paired: true,
        tares: None,
        nodes: Nodes::of(&page.history.run),
    };
    let judged = compare_pairs(&[pair], &page.history.run.terms);
    let comparison = &judged.iter().find(|judged| judged.metric == series.metric)?.comparison;
    Some((comparison.evidence.effect()?, comparison.interval()?))
}

fn subjects<'p>(page: &'p HistoryReport<'_>) -> Vec<&'p str> {
    let mut names: Vec<&str> = page.shown.iter().map(|series| series.subject.as_str()).collect();
    names.dedup();
    names
}

fn table(page: &HistoryReport<'_>, out: &mut String) {
    out.push_str("| # | version | title | metric | before | after | change |\n");
    out.push_str("|---:|:---|:---|:---|---:|---:|---:|\n");
    for event in page.shown_events() {
        for (index, (series, change)) in event.changes.iter().enumerate() {
            let (number, version, title) = match index {
                0 => (
                    event.number.to_string(),
                    escaped(&words::culprit(page, event)),
                    words::likeliest(page, event).map_or(String::new(), |at| {
                        code(&words::plain(&page.version(at).title), Markup::Markdown)
                    }),
                ),
                _ => Default::default(),
            };
            let _ = writeln!(
                out,
                "| {number} | {version} | {title} | {} | {} | {} | {} |",
                escaped(&words::series(series)),
                quantity(change.from, &series.unit),
                quantity(change.to, &series.unit),
                words::change_text(series, change).replace('|', "\\|"),
            );
        }
    }
}
