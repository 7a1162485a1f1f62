//! A self-contained page for browsers: no script, no font, no server. The markup library escapes all text.

use super::event::{Event, Outcome};
use super::{Options, Page, chart, commit_links, markdown, minor_changes, words};
use crate::show::json::timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use scruple_core::history::{Change, Series, State};
use scruple_core::unit::{Unit, quantity, share};

/// Above this many values the page has one chart instead of one for each kind of axis.
const VALUES: usize = 6000;

/// Writes the page.
pub(crate) fn text(page: &Page<'_>) -> String {
    let (name, range) = (words::plain(&page.history.repository), words::plain(&page.history.range));
    let title = format!("{name} {range}");
    let wins = page.judgement.break_even.iter().map(|one| words::break_even(page, one));
    let remarks = page.history.run.warnings.iter().map(|warning| words::plain(&warning.text));
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                meta name="color-scheme" content="light dark";
                title { (title) }
                // Our own style, without text from outside.
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                h1 { (title) }
                p { (words::counts(page)) }
                (summary(page))
                (charts(page))
                (changes(page))
                (list("Is it a win?", wins))
                (list("Still open", words::open(page)))
                (list("Smaller steps would have been missed", words::detectable(page)))
                (list("So much do versions with the same binary differ", words::twins(page)))
                (list("Remarks", remarks))
                (versions(page))
                h2 { "To paste" }
                pre.whole { (markdown::text(page)) }
                (provenance(page))
            }
        }
    };
    markup.into_string() + "\n"
}

/// A section of sentences, if there are any.
fn list(head: &str, lines: impl IntoIterator<Item = String>) -> Markup {
    let lines: Vec<String> = lines.into_iter().collect();
    html! {
        @if !lines.is_empty() {
            h2 { (head) }
            ul { @for line in &lines { li { (line) } } }
        }
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
fn summary(page: &Page<'_>) -> Markup {
    if page.shown.is_empty() {
        return html! { p { "No version was weighed, so nothing can be said of costs." } };
    }
    html! {
        h2 { "From the first version to the last" }
        div.wide {
            table {
                tr {
                    th { "subject" } th { "metric" } th.n { "first" } th.n { "last" } th.n { "change" } th {}
                    th.n { "versions" } th.n { "readings" } th.n { "noise" } th.n { "smallest step to be found" }
                }
                @for series in &page.shown { (course(series)) }
            }
        }
    }
}

/// The row of a series: its ends, and their uncertainty.
fn course(series: &Series) -> Markup {
    let told = series.whole.as_ref().and_then(|whole| Some((whole, words::whole(series, whole)?)));
    let readings: usize = series.points.iter().map(|point| point.readings.len()).sum();
    let noise = match series.noise {
        _ if series.exact => "exact".to_owned(),
        Some(noise) => share(noise),
        None => "–".to_owned(),
    };
    let step = series.detectable.filter(|_| !series.exact).map_or("–".to_owned(), share);
    html! {
        tr {
            td { (words::plain(&series.subject)) }
            td { (words::plain(&crate::show::title(&series.metric))) }
            @match told {
                Some((whole, (from, to, effect))) => {
                    @let (word, better) = words::verdict(series, whole);
                    td.n { (from) } td.n { (to) } td.n { (effect) }
                    td class={ "verdict " (direction(better, false)) } { (word) }
                }
                None => td colspan="4" {
                    (words::plain(series.cannot.as_deref().unwrap_or("fewer than two versions were weighed")))
                }
            }
            td.n { (series.points.len()) } td.n { (readings) } td.n { (noise) } td.n { (step) }
        }
    }
}

/// The chart; where it is not too large, in each of its forms, selected by buttons without a script.
fn charts(page: &Page<'_>) -> Markup {
    let forms = [
        ("log", "logarithmic", Options::default()),
        ("lin", "linear", Options { linear: true, combined: false }),
        ("all", "three axes in one", Options { linear: false, combined: true }),
    ];
    let values: usize = page.shown.iter().map(|series| series.points.len()).sum();
    let few = (1..=VALUES).contains(&values);
    let forms = if few { &forms[..] } else { &forms[..1] };
    html! {
        h2 { "Course" }
        @if few {
            @for (index, (id, name, _)) in forms.iter().enumerate() {
                input type="radio" name="form" id=(id) checked[index == 0];
                label for=(id) { (name) }
            }
        }
        @for (id, _, options) in forms {
            // A picture is separate markup, in which texts are escaped.
            div class={ "wide " @if few { "form " (id) } } { (PreEscaped(chart::svg(page, *options))) }
        }
    }
}

fn changes(page: &Page<'_>) -> Markup {
    if page.shown.is_empty() {
        return html! {};
    }
    let told = page.told();
    html! {
        h2 #changes { "Changes" }
        @if told.is_empty() {
            p { (minor_changes::no_change(page)) }
        } @else {
            div.wide {
                table {
                    tr {
                        th.n { "#" } th { "version" } th { "title" } th { "metric" } th.n { "before" } th.n { "after" }
                        th.n { "change" } th {} th.n { "by chance" }
                    }
                    @for event in told { (rows(page, event)) }
                }
            }
        }
        @if let Some(minor) = minor_changes::line(page) { p { (minor) } }
    }
}

/// The rows of an event, one for each series.
fn rows(page: &Page<'_>, event: &Event<'_>) -> Markup {
    html! {
        @for (index, (series, change)) in event.changes.iter().enumerate() {
            tr.first[index == 0] {
                @if index == 0 { (event_cells(page, event)) }
                td.verdict { (words::series(series)) }
                td.n { (quantity(change.from, &series.unit)) }
                td.n { (quantity(change.to, &series.unit)) }
                td.n { (words::change_text(series, change)) }
                td class={ "verdict " (direction(change.better, change.accepted.is_some())) } { (said(series, change)) }
                td.n { (chance(series, change.p)) }
            }
        }
    }
}

fn said(series: &Series, change: &Change) -> String {
    let word = words::direction(series, change.ratio);
    match words::form(change) {
        "" => word.to_owned(),
        form => format!("{word}, {form}"),
    }
}

/// The probability in noise alone.
fn chance(series: &Series, p: f64) -> String {
    match series.exact {
        true => "exact".to_owned(),
        false if p < 0.001 => "< 0.1 %".to_owned(),
        false => share(p),
    }
}

/// The first cells of an event's rows.
fn event_cells(page: &Page<'_>, event: &Event<'_>) -> Markup {
    let class = match event.outcome() {
        Outcome::Regression => "bad",
        Outcome::Improvement => "good",
        Outcome::Change => "mild",
    };
    let rows = event.changes.len();
    let (from, to) = (page.version(event.before), page.version(event.last()));
    let link = commit_links::compare_link(page.history.remote.as_deref(), &from.commit, &to.commit);
    let likeliest = words::likeliest(page, event);
    html! {
        td class={ "n " (class) } rowspan=(rows) { b { (event.number) } }
        td.which rowspan=(rows) {
            code { (linked(link, &words::culprit(page, event))) }
            @if let Some(at) = likeliest.filter(|_| event.set.len() > 1) {
                br; small { "most likely " (words::short(page, at)) }
            }
        }
        td.title rowspan=(rows) {
            @if let Some(at) = likeliest { (words::plain(&page.version(at).title)) }
            @for kind in words::kind(page, event) { br; small { (kind) } }
        }
    }
}

/// A text, with a link where there is one.
fn linked(link: Option<String>, text: &str) -> Markup {
    html! {
        @match link {
            Some(link) => a href=(link) { (text) },
            None => (text),
        }
    }
}

/// Every version with its state.
fn versions(page: &Page<'_>) -> Markup {
    html! {
        h2 { "Versions" }
        div.wide {
            table {
                tr { th.n { "place" } th { "version" } th { "state" } th { "title" } th { "author" } th.n { "date" } }
                @for index in 0..page.history.versions.len() { (version(page, index)) }
            }
        }
    }
}

fn version(page: &Page<'_>, index: usize) -> Markup {
    let version = &page.history.versions[index];
    let class = match version.state {
        state if state.failed() => "bad",
        State::Built if page.is_weighed(index) => "",
        _ => "mild",
    };
    let date = timestamp(version.time);
    let link = commit_links::commit_link(page.history.remote.as_deref(), &version.commit);
    html! {
        tr {
            td.n { (index + 1) }
            td {
                code { (linked(link, &words::named(page, index))) }
                @if version.parents.len() > 1 { " " small { "merge" } }
                @if version.left_out > 0 {
                    br; small { (words::number(version.left_out, "commit")) " before it left out" }
                }
            }
            td class=(class) { (words::state(page, index)) (why(page, index)) }
            td.title { (words::plain(&version.title)) }
            td { (words::plain(&version.author)) }
            td.n { (date.split('T').next().unwrap_or_default()) }
        }
    }
}

/// Why a version was not weighed, with the start of its log if that was read.
fn why(page: &Page<'_>, index: usize) -> Markup {
    let version = page.version(index);
    html! {
        @if let Some(why) = &version.why { ": " (words::plain(why)) }
        @if let Some(path) = &version.log {
            @let name = words::plain(path);
            @match page.logs.get(path) {
                Some(text) => details {
                    summary { code { (name) } }
                    pre { (text.lines().take(20).map(words::plain).collect::<Vec<String>>().join("\n")) }
                }
                None => { br; small { code { (name) } } }
            }
        }
    }
}

/// Where it was taken, and the command that repeats it.
fn provenance(page: &Page<'_>) -> Markup {
    let (run, place) = (&page.history.run, &page.history.run.provenance);
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let rows = [
        ("repository", page.history.remote.as_deref().map_or(String::new(), commit_links::without_user)),
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
    let argv: Vec<&str> = run.argv.iter().map(String::as_str).collect();
    html! {
        h2 { "Where and how" }
        table {
            @for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
                tr { th { (name) } td { (words::plain(value)) } }
            }
        }
        p { "To take it again, in the repository (the seed was " (run.seed) "):" }
        pre.whole { (words::plain(&shell_words::join(argv))) }
    }
}
