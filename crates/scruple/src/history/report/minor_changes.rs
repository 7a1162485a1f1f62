//! Changes that tables leave out: those of counts that are too small to matter.

use super::HistoryReport;
use super::words::{change_text, number, plain, short};
use scruple_core::unit::share;

/// Writes the sentence that no change was found.
pub(crate) fn no_change(page: &HistoryReport<'_>) -> String {
    let beyond = match page.events.is_empty() {
        true => String::new(),
        false => format!(" beyond the margin of {}", share(page.margin())),
    };
    match page.shown.iter().filter(|series| series.cannot.is_none()).count() {
        0 => "No series could be judged.".to_owned(),
        judged => format!("No change{beyond} was found in {judged} series."),
    }
}

/// Writes a line that summarises the changes of counts that are too small to matter.
pub(crate) fn line(page: &HistoryReport<'_>) -> Option<String> {
    let minor = page.minor();
    let changes = || minor.iter().flat_map(|event| &event.changes);
    let largest = changes().map(|(_, change)| (change.ratio - 1.0).abs()).fold(0.0, f64::max);
    let bounds = [(0.000_1, "0.01 %"), (0.001, "0.1 %"), (0.01, "1 %")];
    let bound = bounds.into_iter().find(|(bound, _)| largest < *bound);
    let bound = bound.map_or_else(|| share(page.margin()), |(_, text)| text.to_owned());
    let names: Vec<String> = minor
        .iter()
        .take(MINOR)
        .filter_map(|event| {
            let (series, change) = event.changes.first()?;
            let of = crate::render::metric_words::title(&series.metric);
            let by = change_text(series, change);
            Some(format!("#{} {} {} {by}", event.number, short(page, event.at), plain(&of)))
        })
        .collect();
    let more = minor.len().saturating_sub(MINOR);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let count = number(minor.len(), "change");
    (!minor.is_empty()).then(|| format!("{count} below {bound}: {}{more}.", names.join(", ")))
}

/// The largest number of small changes that are named.
const MINOR: usize = 8;

/// Says why a report shows no course of a metric.
pub(crate) fn nothing_shown(page: &HistoryReport<'_>) -> &'static str {
    match page.judgement.series.is_empty() {
        true => "No version was weighed, so nothing is known about costs.",
        false => {
            "The metrics of --metrics were not read at any version; `scruple history report --metrics all` shows those that were."
        }
    }
}
