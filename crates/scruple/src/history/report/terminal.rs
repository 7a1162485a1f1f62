//! Writes the report for a terminal.

use super::event::{EventDirection, HistoryEvent};
use super::sparkline;
use super::sparkline::VersionCell;
use super::{HistoryReport, minor_changes, open_questions, words};
use crate::render::align::{fit, remark, right, wrap};
use crate::render::colours::{BAD, BOLD, DIM, GOOD, OPEN};
use crate::render::metric_words::title;
use anstyle::Style;
use scruple_core::history::Series;
use scruple_core::unit::quantity;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// The largest number of versions in one state that are listed.
const LISTED: usize = 12;

/// Writes the page. Colours are always written; the output stream strips them.
pub(crate) fn text(page: &HistoryReport<'_>, width: usize) -> String {
    let mut out = String::new();
    let (name, range) = (words::plain(&page.history.repository), words::plain(&page.history.range));
    let _ = writeln!(out, "{BOLD}{}{BOLD:#}", wrap(&format!("{name} · {range}"), width));
    let _ = writeln!(out, "{}", wrap(&words::counts(page), width));
    if page.history.run.state != scruple_core::run::RunState::Complete {
        let state = page.history.run.state.word();
        out.push_str(&remark(&format!("{state}: these are the readings taken so far"), width));
    }
    if page.shown.is_empty() {
        let _ = writeln!(out, "\n{}", wrap(minor_changes::nothing_shown(page), width));
    }
    courses(page, width, &mut out);
    changes(page, width, &mut out);
    not_weighed(page, width, &mut out);
    let known = [
        ("Smaller steps may have been missed", words::detectable(page)),
        ("Spread among versions with the same binary", words::same_binary_noise(page)),
    ];
    for (head, figures) in known.iter().filter(|(_, figures)| !figures.is_empty()) {
        let _ = writeln!(out, "\n{}", hanging(&format!("{head}: {}.", figures.join(", ")), width));
    }
    section(
        "Build cost against run time",
        page.judgement.break_even.iter().map(|one| words::break_even(page, one)),
        width,
        &mut out,
    );
    section("Still open", open_questions::sentences(page), width, &mut out);
    for warning in &page.history.run.warnings {
        out.push_str(&remark(&words::plain(&warning.text), width));
    }
    out
}

/// Writes lines below a heading, if there are any.
fn section(head: &str, lines: impl IntoIterator<Item = String>, width: usize, out: &mut String) {
    for (index, line) in lines.into_iter().enumerate() {
        if index == 0 {
            let _ = writeln!(out, "\n{BOLD}{head}{BOLD:#}");
        }
        let _ = writeln!(out, "  {}", hanging(&line, width.saturating_sub(2)).replace('\n', "\n  "));
    }
}

/// Wraps a line, and indents its continuation lines.
fn hanging(text: &str, width: usize) -> String {
    wrap(text, width.saturating_sub(2)).replace('\n', "\n  ")
}

/// Writes the series: their first and last values, and the course between.
fn courses(page: &HistoryReport<'_>, width: usize, out: &mut String) {
    let name = page.shown.iter().map(|series| metric_name(series).width()).max().unwrap_or(0);
    let values: Vec<Option<(String, String, String)>> = page
        .shown
        .iter()
        .map(|series| series.whole.as_ref().and_then(|whole| words::overall_change(series, whole)))
        .collect();
    let widest = |pick: fn(&(String, String, String)) -> &String| {
        values.iter().flatten().map(|value| pick(value).width()).max().unwrap_or(0)
    };
    let (from, to) = (widest(|value| &value.0), widest(|value| &value.1));
    let mut subject = None;
    for (series, value) in page.shown.iter().zip(&values) {
        if subject != Some(&series.subject) {
            subject = Some(&series.subject);
            let _ =
                writeln!(out, "\n{BOLD}{}{BOLD:#}", fit(&words::plain(&series.subject), width).trim_end());
        }
        let head = format!("  {}  ", fit(&metric_name(series), name));
        match (value, &series.whole) {
            (Some((first, last, effect)), Some(whole)) => {
                let head = format!("{head}{} → {}", right(first, from), right(last, to));
                let (word, better) = words::verdict(series, whole);
                let style = better.map_or(DIM, |better| if better { GOOD } else { BAD });
                write_side_by_side(&[&head, effect], (word, style), 4, width, out);
            }
            _ => {
                let only = series.points.first().map(|point| quantity(point.value, &series.unit));
                let why = words::not_compared(series);
                let text = format!(
                    "{head}{}{}",
                    only.map_or(String::new(), |value| value + "  "),
                    words::plain(why)
                );
                let _ = writeln!(out, "{}", fit(&text, width).trim_end());
            }
        }
        picture(page, series, name + 4, width, out);
    }
}

fn metric_name(series: &Series) -> String {
    words::plain(&title(&series.metric))
}

/// Writes the sparkline of a series, with the numbers of the changes below.
fn picture(page: &HistoryReport<'_>, series: &Series, indent: usize, width: usize, out: &mut String) {
    let count = page.history.versions.len();
    if count < 2 || width < indent + 8 {
        return;
    }
    let columns = count.min(width - indent);
    let _ = writeln!(out, "{}{}", " ".repeat(indent), sparkline::line(&cells(page, series), columns));
    let here = |event: &&HistoryEvent<'_>| event.changes.iter().any(|(one, _)| std::ptr::eq(*one, series));
    let events: Vec<(usize, usize)> =
        page.events.iter().filter(here).map(|event| (event.number, event.at)).collect();
    let marks = sparkline::marks(&events, count, columns, width - indent);
    if !events.is_empty() {
        let _ = writeln!(out, "{}{DIM}{}{DIM:#}", " ".repeat(indent), marks.trim_end());
    }
}

/// Returns the cells of a series, one for each version.
fn cells(page: &HistoryReport<'_>, series: &Series) -> Vec<VersionCell> {
    let mut cells: Vec<VersionCell> = page
        .history
        .versions
        .iter()
        .map(|version| match version.state {
            state if state.failed() => VersionCell::Failed,
            _ => VersionCell::Empty,
        })
        .collect();
    for point in series.points.iter().filter(|point| point.value.is_finite()) {
        if let Some(cell) = cells.get_mut(point.version) {
            *cell = VersionCell::Value(point.value);
        }
    }
    cells
}

fn changes(page: &HistoryReport<'_>, width: usize, out: &mut String) {
    if page.shown.is_empty() {
        return;
    }
    let minor = minor_changes::line(page);
    let shown = page.shown_events();
    if shown.is_empty() {
        let _ = writeln!(out, "\n{}", wrap(&minor_changes::no_change(page), width));
        if let Some(minor) = &minor {
            let _ = writeln!(out, "{DIM}{}{DIM:#}", wrap(minor, width));
        }
        return;
    }
    let _ = writeln!(out, "\n{BOLD}Changes, regressions first{BOLD:#}");
    let number = page.events.len().to_string().len() + 1;
    for event in shown {
        let (word, style) = match event.outcome() {
            EventDirection::Regression => ("regression", BAD),
            EventDirection::Improvement => ("improvement", GOOD),
            EventDirection::Change => ("change", OPEN),
        };
        let head = format!("{} ", right(&format!("#{}", event.number), number + 1));
        let indent = head.width();
        let room = width.saturating_sub(indent + word.len() + 2).max(12);
        let pieces = which(page, event, room, width.saturating_sub(indent));
        let _ = writeln!(
            out,
            "{head}{style}{word}{style:#}  {}",
            pieces.join(&format!("\n{}", " ".repeat(indent)))
        );
        for kind in words::kind(page, event) {
            let text =
                wrap(&kind, width.saturating_sub(indent)).replace('\n', &format!("\n{}", " ".repeat(indent)));
            let _ = writeln!(out, "{}{OPEN}{text}{OPEN:#}", " ".repeat(indent));
        }
        effects(event, indent, width, out);
    }
    if let Some(minor) = &minor {
        let _ = writeln!(out, "{DIM}{}{DIM:#}", wrap(minor, width));
    }
    let quiet = (0..page.history.versions.len()).filter(|index| page.is_weighed(*index)).filter(|index| {
        // The version of an event may have been weighed as another version with the same binary.
        let weighed_as = |version: &usize| page.stands_for(*version) == *index;
        let changed = |event: &HistoryEvent<'_>| event.set.iter().any(weighed_as) || weighed_as(&event.at);
        !page.events.iter().any(changed)
    });
    let others = match quiet.count() {
        0 => return,
        1 => "weighed version".to_owned(),
        count => format!("{count} weighed versions"),
    };
    let text = format!("No change was found at the other {others}.");
    let _ = writeln!(out, "{DIM}{}{DIM:#}", wrap(&text, width));
}

/// Names the version of an event, with its title if it is known. The text is one line if it fits into `room` columns.
/// Otherwise it is wrapped, and the last line leaves space for `below` columns.
fn which(page: &HistoryReport<'_>, event: &HistoryEvent<'_>, room: usize, below: usize) -> Vec<String> {
    let culprit = words::culprit(page, event);
    let title = words::likeliest(page, event)
        .map_or(String::new(), |at| format!("  {}", words::plain(&page.version(at).title)));
    let favoured = words::favoured(page, event).map(|favoured| format!("{favoured}{title}"));
    let line = match &favoured {
        Some(favoured) => format!("{culprit}; {favoured}"),
        None if title.is_empty() => return wrap(&culprit, room).lines().map(str::to_owned).collect(),
        None => format!("{culprit}{title}"),
    };
    if let Some(favoured) = favoured.filter(|_| line.width() > room) {
        let mut pieces: Vec<String> = wrap(&culprit, room).lines().map(str::to_owned).collect();
        pieces.push(fit(&favoured, below).trim_end().to_owned());
        return pieces;
    }
    vec![fit(&line, room).trim_end().to_owned()]
}

/// Writes the effects of an event, one line for each series.
fn effects(event: &HistoryEvent<'_>, indent: usize, width: usize, out: &mut String) {
    let several = event.changes.iter().any(|(series, _)| series.subject != event.changes[0].0.subject);
    let name = |series: &Series| if several { words::series(series) } else { metric_name(series) };
    let names = event.changes.iter().map(|(series, _)| name(series).width()).max().unwrap_or(0);
    for (series, change) in &event.changes {
        let style = match (change.better, &change.accepted) {
            (Some(true), _) => GOOD,
            (Some(false), None) => BAD,
            _ => Style::new(),
        };
        let levels =
            format!("{} → {}", quantity(change.from, &series.unit), quantity(change.to, &series.unit));
        let head = format!("{}{}", " ".repeat(indent), fit(&name(series), names));
        let word = words::direction(series, change.ratio);
        write_side_by_side(
            &[&head, &levels, &words::change_text(series, change)],
            (word, style),
            indent + 2,
            width,
            out,
        );
    }
}

/// Writes pieces side by side with a word at the end, in as many lines as they need.
fn write_side_by_side(
    pieces: &[&str],
    (word, style): (&str, Style),
    indent: usize,
    width: usize,
    out: &mut String,
) {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for (index, piece) in pieces.iter().chain([&word]).enumerate() {
        let gap = if index == 0 { 0 } else { 2 };
        if used > 0 && used + gap + piece.width() > width {
            lines.push(" ".repeat(indent));
            used = indent;
        } else {
            used += gap;
        }
        used += piece.width();
        if let Some(line) = lines.last_mut() {
            if !line.trim().is_empty() {
                line.push_str("  ");
            }
            match index == pieces.len() {
                true => line.push_str(&format!("{style}{word}{style:#}")),
                false => line.push_str(piece),
            }
        }
    }
    for line in lines {
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// Lists the versions that could not be built or weighed, with reasons.
fn not_weighed(page: &HistoryReport<'_>, width: usize, out: &mut String) {
    let failed: Vec<(usize, String)> = words::failed(page).collect();
    if failed.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{BOLD}Could not be weighed{BOLD:#}");
    for (index, why) in failed.iter().take(LISTED) {
        let head = format!("  {}  ", words::short(page, *index));
        let text = wrap(why, width.saturating_sub(head.width()).max(12));
        let _ = writeln!(out, "{head}{}", text.replace('\n', &format!("\n{}", " ".repeat(head.width()))));
        if let Some(log) = &page.version(*index).log {
            let _ = writeln!(out, "{}{DIM}{}{DIM:#}", " ".repeat(head.width()), words::plain(log));
        }
    }
    if failed.len() > LISTED {
        let _ = writeln!(out, "  {DIM}and {} more{DIM:#}", failed.len() - LISTED);
    }
}

#[cfg(test)]
mod tests {
    use crate::history::report::HistoryReport;
    use crate::history::report::fixture::{JudgedHistory, rich};
    use scruple_core::history::VersionState;
    use scruple_core::metric::Pass;
    use scruple_core::sample::Figure;

    #[test]
    fn a_weighed_version_that_stands_for_the_version_of_a_change_is_not_among_the_others() {
        let mut made = rich();
        let others = |made: &JudgedHistory| {
            let text = HistoryReport::of(&made.history, &made.judgement).terminal(200);
            let text = anstream::adapter::strip_str(&text).to_string();
            let line = text.lines().find(|line| line.starts_with("No change was found")).map(str::to_owned);
            line.expect("other versions were weighed")
        };
        assert_eq!(others(&made), "No change was found at the other 20 weighed versions.");
        let page = HistoryReport::of(&made.history, &made.judgement);
        let title = |at: usize| made.history.versions[at].title == "Check every access";
        let at = page.events.iter().map(|event| event.at).find(|at| title(*at)).expect("the event");
        let same = made.history.versions[at + 1].commit.clone();
        made.history.versions[at].state = VersionState::SameBinary;
        made.history.versions[at].same_as = Some(same);
        assert_eq!(others(&made), "No change was found at the other 19 weighed versions.");
    }

    #[test]
    fn a_version_that_was_built_and_not_launched_is_not_weighed() {
        let mut made = rich();
        let first_line = |made: &JudgedHistory| {
            let text = HistoryReport::of(&made.history, &made.judgement).terminal(200);
            anstream::adapter::strip_str(&text).to_string().lines().nth(1).map(str::to_owned)
        };
        let weighed = |line: Option<String>| line.is_some_and(|line| line.contains("built, not weighed"));
        assert!(!weighed(first_line(&made)));
        let commit = made.history.versions[1].commit.clone();
        for arm in made.history.run.arms.iter_mut().filter(|arm| arm.version.as_ref() == Some(&commit)) {
            for figure in arm.figures.values_mut() {
                if let Figure::Sample(sample) = figure {
                    sample.pass = Pass::Build;
                }
            }
        }
        assert!(weighed(first_line(&made)), "{:?}", first_line(&made));
    }
}
