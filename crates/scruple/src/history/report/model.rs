//! The page of a range as data, from which pages for browsers and pictures are written.

use super::event::HistoryEvent;
use super::{
    ChartOptions, ExplainedChange, ExplainedRow, HistoryReport, chart, commit_links, markdown, minor_changes,
    open_questions, words,
};
use crate::render::json::timestamp;
use crate::render::page::{
    self as model, Cell, ColumnHeading, Fold, Section, SectionPart, Span, Table, Tone, harmless_name,
    harmless_sentence,
};
use crate::run_page::environment;
use crate::run_page::of_run;
use scruple_core::history::{Change, Series, VersionState};
use scruple_core::unit::{quantity, relative_spread, share};

/// The largest number of charts on a page. More would make it too large to read.
const MOST_CHARTS: usize = 30;

/// The largest number of rows in a table that is not folded.
const OPEN_ROWS: usize = 40;

/// The number of lines of a log that a page shows.
const LOG_LINES: usize = 20;

/// Converts the report into the page.
pub(crate) fn of(page: &HistoryReport<'_>) -> model::Page {
    let history = page.history;
    let (repository, range) = (harmless_name(&history.repository), harmless_name(&history.range));
    let mut kind = vec![format!("History of {repository}, {range}")];
    kind.extend(of_run(&history.run));
    kind.extend(history.remote.as_deref().map(|remote| harmless_name(&commit_links::without_user(remote))));
    let wins = page.judgement.break_even.iter().map(|one| words::break_even(page, one));
    let mut sections: Vec<Section> = Vec::new();
    sections.extend(changes(page));
    sections.extend(list("Build cost against run time", wins));
    sections.extend(charts(page));
    sections.extend(summary(page));
    sections.extend(list("Still open", open_questions::sentences(page)));
    sections.extend(list("Smaller steps may have been missed", words::detectable(page)));
    sections.extend(list("Spread among versions with the same binary", words::same_binary_noise(page)));
    sections.push(versions(page));
    sections.extend(logs(page));
    sections.push(Section {
        title: "To paste".to_owned(),
        folded: Some("The changes in Markdown".to_owned()),
        parts: vec![SectionPart::Code(markdown::text(page))],
    });
    sections.push(environment::section(&history.run));
    sections.extend(environment::again(&history.run));
    model::Page {
        title: format!("{repository} {range}"),
        kind,
        verdict: verdict(page),
        notes: vec![harmless_sentence(&words::counts(page))],
        warnings: history.run.warnings.iter().map(|warning| harmless_sentence(&warning.text)).collect(),
        sections,
    }
}

/// Writes a sentence with the number of changes, and the most important one with the commit that caused it.
fn verdict(page: &HistoryReport<'_>) -> Vec<Span> {
    if page.shown.is_empty() {
        return vec![Span::plain(minor_changes::nothing_shown(page))];
    }
    let shown = page.shown_events();
    let Some(first) = shown.first() else { return vec![Span::plain(minor_changes::no_change(page))] };
    let of = |tone: Tone| shown.iter().filter(|event| chart::tone(event) == tone).count();
    let alike = shown.iter().filter(|event| chart::tone(event) == chart::tone(first));
    let first = alike.max_by(|one, other| one.size().total_cmp(&other.size())).unwrap_or(first);
    let mut spans = Vec::new();
    for (tone, word) in
        [(Tone::Worse, "regression"), (Tone::Better, "improvement"), (Tone::Plain, "other change")]
    {
        if of(tone) > 0 {
            spans.extend((!spans.is_empty()).then(|| Span::plain(", ")));
            spans.push(Span::new(words::number(of(tone), word), tone));
        }
    }
    spans.push(Span::plain(format!(" in {}", words::number(page.history.versions.len(), "version"))));
    if let Some((series, change)) = first.changes.first() {
        let most = match (shown.len(), chart::tone(first)) {
            (1, _) => "it",
            (_, Tone::Worse) => "the largest regression",
            (_, Tone::Better) => "the largest improvement",
            _ => "the largest change",
        };
        let what = format!("{} {}", words::series(series), words::change_text(series, change));
        spans.push(Span::plain(format!("; {most} is #{}, ", first.number)));
        spans.push(Span::new(harmless_sentence(&what), chart::tone(first)));
        spans.push(Span::plain(format!(", at {}", harmless_sentence(&words::culprit(page, first)))));
        if let Some(at) = words::likeliest(page, first) {
            let version = page.version(at);
            let [title, author] = [&version.title, &version.author].map(|text| harmless_name(text));
            // Versions of an imported series have neither.
            let named = if title.is_empty() { String::new() } else { format!(": ‘{title}’") };
            spans.push(Span::plain(match author.is_empty() {
                true => named,
                false => format!("{named} by {author}"),
            }));
        }
    }
    spans.push(Span::plain("."));
    spans
}

/// Makes a section from sentences, if there are any.
fn list(head: &str, lines: impl IntoIterator<Item = String>) -> Option<Section> {
    let lines: Vec<String> = lines.into_iter().map(|line| harmless_sentence(&line)).collect();
    (!lines.is_empty()).then(|| Section {
        title: head.to_owned(),
        folded: None,
        parts: vec![SectionPart::List(lines)],
    })
}

/// Makes the section of the changes, with regressions first.
fn changes(page: &HistoryReport<'_>) -> Option<Section> {
    if page.shown.is_empty() {
        return None;
    }
    let shown = page.shown_events();
    let mut parts = Vec::new();
    match shown.is_empty() {
        true => parts.push(SectionPart::Words(harmless_sentence(&minor_changes::no_change(page)))),
        false => {
            let mut head =
                vec![ColumnHeading::text("#"), ColumnHeading::text("Version"), ColumnHeading::text("Metric")];
            head.extend(["Before", "After", "Change"].map(ColumnHeading::number));
            head.extend([
                ColumnHeading::text("Result"),
                ColumnHeading::number("By chance"),
                ColumnHeading::text("Title"),
            ]);
            let rows: Vec<Vec<Cell>> = shown.iter().flat_map(|event| rows(page, event)).collect();
            let table = |rows| {
                SectionPart::Table(Table {
                    label: "Changes".to_owned(),
                    head,
                    rows,
                    stacks: true,
                    ..Table::default()
                })
            };
            parts.push(match rows.len() > 2 * OPEN_ROWS {
                true => SectionPart::Fold(Fold {
                    summary: format!(
                        "{} of {}",
                        words::number(rows.len(), "change"),
                        words::number(shown.len(), "version")
                    ),
                    parts: vec![table(rows)],
                }),
                false => table(rows),
            });
        }
    }
    for event in &shown {
        let head = format!("#{}", event.number);
        parts.extend(page.explained_of(event).flat_map(|one| explained(&head, one)));
    }
    if let Some(line) = minor_changes::line(page) {
        parts.push(SectionPart::Note(harmless_sentence(&line)));
        for event in page.minor() {
            let head = words::short(page, event.at);
            parts.extend(page.explained_of(event).flat_map(|one| explained(&head, one)));
        }
    }
    Some(Section { title: "Changes".to_owned(), folded: None, parts })
}

/// Writes where a change of a command comes from: the sentences, and a folded table of functions.
fn explained(head: &str, one: &ExplainedChange) -> Vec<SectionPart> {
    let lines: Vec<String> =
        one.named_sentences().map(|line| harmless_sentence(&format!("{head}: {line}"))).collect();
    let mut parts = vec![SectionPart::List(lines)];
    if !one.rows.is_empty() {
        let subject = harmless_name(&one.subject);
        let row = |row: &ExplainedRow| {
            let hunk = row.hunk.as_deref().map(|hunk| Span::plain(harmless_sentence(hunk)));
            vec![
                Cell::text(harmless_name(&row.function)),
                Cell::text(row.difference.clone()),
                Cell::text(row.share.clone()),
                Cell::text(row.code.clone()),
                Cell { tail: hunk, ..Cell::text(harmless_sentence(&row.what)) },
            ]
        };
        let mut heads = vec![ColumnHeading::text("Function")];
        heads.extend(["difference", "share"].map(ColumnHeading::number));
        heads.extend(["code", "what"].map(ColumnHeading::text));
        let label = format!("{head}: functions of {subject}");
        let table = Table {
            label: label.clone(),
            head: heads,
            rows: one.rows.iter().map(row).collect(),
            stacks: true,
            ..Table::default()
        };
        parts.push(SectionPart::Fold(Fold { summary: label, parts: vec![SectionPart::Table(table)] }));
    }
    parts
}

/// Returns the rows of an event, one for each series.
fn rows(page: &HistoryReport<'_>, event: &HistoryEvent<'_>) -> Vec<Vec<Cell>> {
    let (from, to) = (page.version(event.before), page.version(event.last()));
    let link = commit_links::compare_link(page.history.remote.as_deref(), &from.commit, &to.commit);
    let row = |(index, (series, change)): (usize, &(&Series, &Change))| {
        let tone = direction(change.better, change.accepted.is_some());
        let mut version = Cell {
            link: link.clone().filter(|_| index == 0),
            ..Cell::text(harmless_sentence(&words::culprit(page, event)))
        };
        let likeliest = words::likeliest(page, event);
        if index == 0 {
            version.tail = words::favoured(page, event).map(Span::plain);
        }
        let mut title = Cell::default();
        if index == 0 {
            title.text = likeliest.map_or(String::new(), |at| harmless_name(&page.version(at).title));
            let kinds = words::kind(page, event).join("; ");
            title.tail = Some(Span::plain(harmless_sentence(&kinds))).filter(|_| !kinds.is_empty());
        }
        vec![
            Cell::toned(format!("#{}", event.number), chart::tone(event)),
            version,
            Cell::text(harmless_sentence(&words::series(series))),
            Cell::text(quantity(change.from, &series.unit)),
            Cell::text(quantity(change.to, &series.unit)),
            Cell::text(words::change_text(series, change)),
            Cell::toned(change_in_words(series, change), tone),
            Cell::text(chance(series, change.p)),
            title,
        ]
    };
    event.changes.iter().enumerate().map(row).collect()
}

/// Returns the tone of a change with this direction.
fn direction(better: Option<bool>, accepted: bool) -> Tone {
    match better {
        Some(true) => Tone::Better,
        Some(false) if !accepted => Tone::Worse,
        _ => Tone::Plain,
    }
}

fn change_in_words(series: &Series, change: &Change) -> String {
    let word = words::direction(series, change.ratio);
    match words::form(change) {
        "" => word.to_owned(),
        form => format!("{word}, {form}"),
    }
}

/// Writes the probability that noise alone caused the change (the p-value).
fn chance(series: &Series, p: f64) -> String {
    match series.exact {
        true => "exact".to_owned(),
        false if p < 0.001 => "< 0.1 %".to_owned(),
        false => share(p),
    }
}

/// Draws a chart for each series with a change. If the page stays small, it has folded charts of the other series as
/// well.
fn charts(page: &HistoryReport<'_>) -> Option<Section> {
    let shown = page.shown_events();
    let changed = |series: &&Series| {
        shown.iter().any(|event| event.changes.iter().any(|(one, _)| std::ptr::eq(*one, *series)))
    };
    let drawn: Vec<&Series> = page.shown.iter().copied().filter(|series| !series.points.is_empty()).collect();
    let (first, rest): (Vec<&Series>, Vec<&Series>) = drawn.iter().partition(|series| changed(series));
    let left = first.len().saturating_sub(MOST_CHARTS);
    let shown: Vec<&Series> = first.into_iter().take(MOST_CHARTS).collect();
    let few = drawn.len() <= MOST_CHARTS;
    let readings = chart::shows_readings(if few { &drawn } else { &shown });
    let draw = |series: &&Series| chart::of_series(page, series, ChartOptions::default(), readings);
    let mut parts: Vec<SectionPart> = shown.iter().filter_map(draw).map(SectionPart::Chart).collect();
    if left > 0 {
        parts.push(SectionPart::Note(format!(
            "{} more series with changes have no chart here, to keep the page small: their course is in the table below, and \
             --metrics chooses what is shown.",
            left
        )));
    }
    let rest: Vec<SectionPart> =
        rest.iter().filter(|_| few).filter_map(draw).map(SectionPart::Chart).collect();
    if !rest.is_empty() {
        let count = rest.len();
        let summary = format!("{count} without a change");
        parts.push(SectionPart::Fold(Fold { summary, parts: rest }));
    }
    (!parts.is_empty()).then(|| Section { title: "Course".to_owned(), folded: None, parts })
}

/// Makes the section that compares the first version with the last, in every metric.
fn summary(page: &HistoryReport<'_>) -> Option<Section> {
    if page.shown.is_empty() {
        return None;
    }
    let head = || {
        let mut head = vec![
            ColumnHeading::text("Subject"),
            ColumnHeading::text("Metric"),
            ColumnHeading::text("Course"),
        ];
        head.extend(["first", "last", "change"].map(ColumnHeading::number));
        head.push(ColumnHeading::text(""));
        head.extend(
            ["versions", "readings", "noise", "smallest step to be found"].map(ColumnHeading::number),
        );
        head
    };
    let label = "From the first version to the last";
    let table = |rows: Vec<Vec<Cell>>| {
        SectionPart::Table(Table {
            label: label.to_owned(),
            head: head(),
            rows,
            stacks: true,
            ..Table::default()
        })
    };
    let (shown, same): (Vec<&Series>, Vec<&Series>) =
        page.shown.iter().partition(|series| page.shown.len() <= OPEN_ROWS || !series.changes.is_empty());
    let mut parts = Vec::new();
    if !shown.is_empty() {
        parts.push(table(shown.iter().map(|series| course(series)).collect()));
    }
    if !same.is_empty() {
        parts.push(SectionPart::Fold(Fold {
            summary: format!("{} without a change", same.len()),
            parts: vec![table(same.iter().map(|series| course(series)).collect())],
        }));
    }
    Some(Section { title: label.to_owned(), folded: None, parts })
}

/// Returns the row of a series: its first and last values, and their uncertainty.
fn course(series: &Series) -> Vec<Cell> {
    let shown = series.whole.as_ref().and_then(|whole| Some((whole, words::overall_change(series, whole)?)));
    let readings: usize = series.points.iter().map(|point| point.readings.len()).sum();
    let noise = match series.noise {
        _ if series.exact => "exact".to_owned(),
        Some(noise) => relative_spread(noise),
        None => "–".to_owned(),
    };
    let step = series.detectable.filter(|_| !series.exact).map_or("–".to_owned(), relative_spread);
    let points = series.points.iter().filter(|point| point.value.is_finite());
    let mut cells = vec![
        Cell::code(harmless_name(&series.subject)),
        Cell::text(harmless_name(&crate::render::metric_words::title(&series.metric))),
        Cell { course: points.map(|point| (point.version as f64, point.value)).collect(), ..Cell::default() },
    ];
    match shown {
        Some((whole, (from, to, effect))) => {
            let (word, better) = words::verdict(series, whole);
            cells.extend([from, to, effect].map(Cell::text));
            cells.push(Cell::toned(word, direction(better, false)));
        }
        None => {
            cells.extend(["–", "–", "–"].map(Cell::text));
            let why = words::not_compared(series);
            cells.push(Cell::toned(harmless_sentence(why), Tone::Open));
        }
    }
    cells.extend([series.points.len().to_string(), readings.to_string(), noise, step].map(Cell::text));
    cells
}

/// Makes the section that lists every version with its state.
fn versions(page: &HistoryReport<'_>) -> Section {
    let mut head = vec![
        ColumnHeading::number("Place"),
        ColumnHeading::text("Version"),
        ColumnHeading::text("State"),
        ColumnHeading::text("Title"),
    ];
    head.extend([ColumnHeading::text("Author"), ColumnHeading::number("Date")]);
    let rows: Vec<Vec<Cell>> = (0..page.history.versions.len()).map(|index| version(page, index)).collect();
    let folded = (rows.len() > OPEN_ROWS).then(|| format!("All {}", words::number(rows.len(), "version")));
    let label = "Versions and their states".to_owned();
    let table = Table { label, head, rows, stacks: true, ..Table::default() };
    Section { title: "Versions".to_owned(), folded, parts: vec![SectionPart::Table(table)] }
}

fn version(page: &HistoryReport<'_>, index: usize) -> Vec<Cell> {
    let version = page.version(index);
    let date = timestamp(version.time);
    let mut about = Vec::new();
    if version.parents.len() > 1 {
        about.push("merge".to_owned());
    }
    if version.left_out > 0 {
        about.push(format!("{} before it left out", words::number(version.left_out, "commit")));
    }
    let tone = match version.state {
        state if state.failed() => Tone::Worse,
        VersionState::Built if page.is_weighed(index) => Tone::Plain,
        _ => Tone::Open,
    };
    let why = version.why.as_deref().map_or(String::new(), |why| format!(": {why}"));
    vec![
        Cell::text((index + 1).to_string()),
        Cell {
            link: commit_links::commit_link(page.history.remote.as_deref(), &version.commit),
            tail: Some(Span::plain(about.join(", "))).filter(|_| !about.is_empty()),
            ..Cell::text(harmless_sentence(&words::named(page, index)))
        },
        Cell::toned(harmless_sentence(&format!("{}{why}", words::state(page, index))), tone),
        Cell::text(harmless_name(&version.title)),
        Cell::text(harmless_name(&version.author)),
        Cell::text(date.split('T').next().unwrap_or_default()),
    ]
}

/// Makes the section of the logs of failed versions, as far as the caller has read them.
fn logs(page: &HistoryReport<'_>) -> Option<Section> {
    let read = |(index, version): (usize, &scruple_core::history::Version)| {
        let path = version.log.as_ref()?;
        let summary = harmless_sentence(&format!(
            "{}, {}: {path}",
            words::short(page, index),
            words::state(page, index)
        ));
        Some(match page.logs.get(path) {
            Some(text) => {
                let lines: Vec<String> = text.lines().take(LOG_LINES).map(words::plain).collect();
                SectionPart::Fold(Fold { summary, parts: vec![SectionPart::Code(lines.join("\n"))] })
            }
            None => SectionPart::Words(summary),
        })
    };
    let parts: Vec<SectionPart> = page.history.versions.iter().enumerate().filter_map(read).collect();
    (!parts.is_empty()).then(|| Section { title: "Logs".to_owned(), folded: None, parts })
}
