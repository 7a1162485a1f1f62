//! A page for browsers that needs nothing besides itself: no script, no font, no server.

use super::event::{Event, Outcome, worst_first};
use super::{Options, Page, chart, forge, markdown, words};
use crate::report::json::timestamp;
use crate::report::svg::escape;
use scruple_core::history::{Series, State};
use scruple_core::unit::{Unit, quantity, share};
use std::fmt::Write as _;

/// Above this many values the page has one chart instead of one for each kind of axis.
const VALUES: usize = 6000;

/// Writes the page.
pub(super) fn text(page: &Page<'_>) -> String {
    let (name, range) = (words::plain(&page.history.repository), words::plain(&page.history.range));
    let title = escape(&format!("{name} {range}"));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p>{}</p>\n",
        include_str!("page.css"),
        escape(&words::counts(page))
    );
    summary(page, &mut out);
    charts(page, &mut out);
    changes(page, &mut out);
    list("Is it a win?", page.judgement.break_even.iter().map(|one| words::break_even(page, one)), &mut out);
    list("Still open", words::open(page), &mut out);
    let detectable = words::detectable(page).into_iter();
    list("Smaller steps would have been missed", detectable, &mut out);
    list("So much do versions with the same binary differ", words::twins(page), &mut out);
    list("Remarks", page.history.run.warnings.iter().map(|warning| words::plain(&warning.text)), &mut out);
    versions(page, &mut out);
    let _ = writeln!(out, "<h2>To paste</h2>\n<pre class=\"whole\">{}</pre>", escape(&markdown::text(page)));
    provenance(page, &mut out);
    out.push_str("</body>\n</html>\n");
    out
}

/// A section of sentences, if there are any.
fn list(head: &str, lines: impl IntoIterator<Item = String>, out: &mut String) {
    let items: String = lines.into_iter().map(|line| format!("<li>{}</li>\n", escape(&line))).collect();
    if !items.is_empty() {
        let _ = writeln!(out, "<h2>{head}</h2>\n<ul>\n{items}</ul>");
    }
}

/// The class of a cell whose change has that direction.
fn direction(better: Option<bool>, accepted: bool) -> &'static str {
    match better {
        Some(true) => "good",
        Some(false) if !accepted => "bad",
        _ => "mild",
    }
}

/// From the first version to the last, in every metric.
fn summary(page: &Page<'_>, out: &mut String) {
    if page.shown.is_empty() {
        out.push_str("<p>No version was weighed, so nothing can be said of costs.</p>\n");
        return;
    }
    out.push_str(
        "<h2>From the first version to the last</h2>\n<div class=\"wide\"><table>\n<tr><th>subject<th>metric\
         <th class=\"n\">first<th class=\"n\">last<th class=\"n\">change<th><th class=\"n\">versions<th class=\"n\">readings\
         <th class=\"n\">noise<th class=\"n\">smallest step to be found</tr>\n",
    );
    for series in &page.shown {
        let told = series.whole.as_ref().and_then(|whole| Some((whole, words::whole(series, whole)?)));
        let cells = match told {
            Some((whole, (from, to, effect))) => {
                let (word, better) = words::verdict(series, whole);
                let class = direction(better, false);
                format!(
                    "<td class=\"n\">{from}<td class=\"n\">{to}<td class=\"n\">{}<td class=\"verdict {class}\">{word}",
                    escape(&effect)
                )
            }
            None => {
                let why = series.cannot.as_deref().unwrap_or("fewer than two versions were weighed");
                format!("<td colspan=\"4\">{}", escape(&words::plain(why)))
            }
        };
        let readings: usize = series.points.iter().map(|point| point.readings.len()).sum();
        let noise = if series.exact { "exact".to_owned() } else { share(series.noise) };
        let step = series.detectable.filter(|_| !series.exact).map_or("–".to_owned(), share);
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}{cells}<td class=\"n\">{}<td class=\"n\">{readings}<td class=\"n\">{noise}<td class=\"n\">{step}</tr>",
            escape(&words::plain(&series.subject)),
            escape(&words::plain(&crate::report::title(&series.metric))),
            series.points.len(),
        );
    }
    out.push_str("</table></div>\n");
}

/// The chart; where it is not too large, in each of its forms, of which buttons without script show one.
fn charts(page: &Page<'_>, out: &mut String) {
    out.push_str("<h2>Course</h2>\n");
    let forms = [
        ("log", "logarithmic", Options::default()),
        ("lin", "linear", Options { linear: true, combined: false }),
        ("all", "three axes in one", Options { linear: false, combined: true }),
    ];
    let values: usize = page.shown.iter().map(|series| series.points.len()).sum();
    let few = (1..=VALUES).contains(&values);
    let forms = if few { &forms[..] } else { &forms[..1] };
    if few {
        for (index, (id, name, _)) in forms.iter().enumerate() {
            let checked = if index == 0 { " checked" } else { "" };
            let _ = writeln!(
                out,
                "<input type=\"radio\" name=\"form\" id=\"{id}\"{checked}><label for=\"{id}\">{name}</label>"
            );
        }
    }
    for (id, _, options) in forms {
        let class = if few { format!("form {id}") } else { String::new() };
        let _ = writeln!(out, "<div class=\"wide {class}\">\n{}</div>", chart::svg(page, *options));
    }
}

fn changes(page: &Page<'_>, out: &mut String) {
    if page.shown.is_empty() {
        return;
    }
    out.push_str("<h2 id=\"changes\">Changes</h2>\n");
    if page.events.is_empty() {
        let _ = writeln!(out, "<p>No change was found in {} series.</p>", page.shown.len());
        return;
    }
    out.push_str(
        "<div class=\"wide\"><table>\n<tr><th class=\"n\">#<th>version<th>title<th>metric<th class=\"n\">before\
         <th class=\"n\">after<th class=\"n\">change<th><th class=\"n\">by chance</tr>\n",
    );
    for event in worst_first(&page.events) {
        let rows = event.changes.len();
        for (index, (series, change)) in event.changes.iter().enumerate() {
            let head = if index == 0 { event_cells(page, event, rows) } else { String::new() };
            let class = direction(change.better, change.accepted.is_some());
            let word = words::direction(series, change.ratio);
            let form = match words::form(change) {
                "" => String::new(),
                form => format!(", {form}"),
            };
            let _ = writeln!(
                out,
                "<tr{}>{head}<td class=\"verdict\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"verdict {class}\">{word}{form}<td class=\"n\">{}</tr>",
                if index == 0 { " class=\"first\"" } else { "" },
                escape(&words::series(series)),
                quantity(change.from, &series.unit),
                quantity(change.to, &series.unit),
                escape(&words::change_text(series, change)),
                chance(series, change.p),
            );
        }
    }
    out.push_str("</table></div>\n");
}

/// How probable it is that noise alone did it.
fn chance(series: &Series, p: f64) -> String {
    match series.exact {
        true => "exact".to_owned(),
        false if p < 0.001 => "&lt; 0.1 %".to_owned(),
        false => share(p),
    }
}

/// The cells that stand before all changes of an event.
fn event_cells(page: &Page<'_>, event: &Event<'_>, rows: usize) -> String {
    let class = match event.outcome() {
        Outcome::Regression => "bad",
        Outcome::Improvement => "good",
        Outcome::Change => "mild",
    };
    let (from, to) = (page.version(event.before), page.version(event.last()));
    let culprit = escape(&words::culprit(page, event));
    let culprit = match forge::compare_link(page.history.remote.as_deref(), &from.commit, &to.commit) {
        Some(link) => format!("<a href=\"{}\">{culprit}</a>", escape(&link)),
        None => culprit,
    };
    let likeliest = words::likeliest(page, event);
    let most = match likeliest.filter(|_| event.set.len() > 1) {
        None => String::new(),
        Some(at) => format!("<br><small>most likely {}</small>", escape(&words::short(page, at))),
    };
    let title = likeliest.map_or(String::new(), |at| escape(&words::plain(&page.version(at).title)));
    let kinds: String =
        words::kind(page, event).iter().map(|kind| format!("<br><small>{}</small>", escape(kind))).collect();
    format!(
        "<td class=\"n {class}\" rowspan=\"{rows}\"><b>{}</b><td class=\"which\" rowspan=\"{rows}\"><code>{culprit}</code>{most}\
         <td rowspan=\"{rows}\" class=\"title\">{title}{kinds}",
        event.number,
    )
}

/// Every version, and what became of it.
fn versions(page: &Page<'_>, out: &mut String) {
    out.push_str(
        "<h2>Versions</h2>\n<div class=\"wide\"><table>\n<tr><th class=\"n\">place<th>version<th>state<th>title<th>author<th class=\"n\">date</tr>\n",
    );
    for (index, version) in page.history.versions.iter().enumerate() {
        let class = match version.state {
            state if state.failed() => "bad",
            State::Built if page.is_weighed(index) => "",
            _ => "mild",
        };
        let merge = if version.parents.len() > 1 { " <small>merge</small>" } else { "" };
        let before = match version.left_out {
            0 => String::new(),
            count => format!("<br><small>{} before it left out</small>", words::number(count, "commit")),
        };
        let date = timestamp(version.time);
        let name = escape(&words::named(page, index));
        let name = match forge::commit_link(page.history.remote.as_deref(), &version.commit) {
            Some(link) => format!("<a href=\"{}\">{name}</a>", escape(&link)),
            None => name,
        };
        let _ = writeln!(
            out,
            "<tr><td class=\"n\">{}<td><code>{name}</code>{merge}{before}<td class=\"{class}\">{}{}<td class=\"title\">{}<td>{}<td class=\"n\">{}</tr>",
            index + 1,
            escape(&words::state(page, index)),
            why(page, index),
            escape(&words::plain(&version.title)),
            escape(&words::plain(&version.author)),
            escape(date.split('T').next().unwrap_or_default()),
        );
    }
    out.push_str("</table></div>\n");
}

/// Why a version was not weighed, and the beginning of its log where somebody has read it.
fn why(page: &Page<'_>, index: usize) -> String {
    let version = page.version(index);
    let mut told = String::new();
    if let Some(why) = &version.why {
        let _ = write!(told, ": {}", escape(&words::plain(why)));
    }
    if let Some(path) = &version.log {
        let name = escape(&words::plain(path));
        let _ = match page.logs.get(path) {
            Some(text) => {
                let lines: Vec<String> = text.lines().take(20).map(words::plain).collect();
                write!(
                    told,
                    "<details><summary><code>{name}</code></summary><pre>{}</pre></details>",
                    escape(&lines.join("\n"))
                )
            }
            None => write!(told, "<br><small><code>{name}</code></small>"),
        };
    }
    told
}

/// Where it was taken, and the words that take it again.
fn provenance(page: &Page<'_>, out: &mut String) {
    let (run, place) = (&page.history.run, &page.history.run.provenance);
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let rows = [
        ("repository", page.history.remote.as_deref().map_or(String::new(), forge::without_user)),
        ("run", format!("{}, {}", run.id, run.state.word())),
        ("started", timestamp(run.started)),
        ("machine", place.machine_class.clone()),
        ("processor", format!("{}, {}", place.cpu, words::number(place.cores as usize, "core"))),
        ("memory", quantity(place.memory as f64, &Unit::Bytes)),
        ("system", format!("{} {}", place.os, place.kernel)),
        ("virtualized", text(&place.virtualized)),
        ("governor", text(&place.governor)),
        ("load at the start", format!("{:.2}", place.load)),
        ("Scruple", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    out.push_str("<h2>Where and how</h2>\n<table>\n");
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(out, "<tr><th>{name}<td>{}</tr>", escape(&words::plain(value)));
    }
    let argv: Vec<&str> = run.argv.iter().map(String::as_str).collect();
    let _ = writeln!(
        out,
        "</table>\n<p>To take it again, in the repository (the seed was {}):</p>\n<pre class=\"whole\">{}</pre>",
        run.seed,
        escape(&words::plain(&shell_words::join(argv)))
    );
}
