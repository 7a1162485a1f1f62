//! Intended changes, declared by a trailer in the commit's message or by a line in a tracked file.

use super::selected_version::SelectedVersion;
use super::source_repository::Source;
use crate::fault::Fault;
use scruple_core::history::Acceptance;

/// The path of the tracked file of acceptances, relative to the top folder of the repository.
pub const FILE: &str = ".scruple-accepted";
/// The key of the trailer that declares an acceptance in a commit message.
pub const TRAILER: &str = "Scruple-Accept";

/// Parses `METRIC: REASON`, `SUBJECT/METRIC: REASON` or `*: REASON`. Returns `None` if the reason is missing.
pub fn parse(text: &str) -> Option<Acceptance> {
    let text = text.trim();
    let (mut about, mut reason) = text.split_once(": ").or_else(|| text.split_once(':'))?;
    // The name of a subject may contain colons, the key of a metric contains none.
    let metric = about.rfind('/').map_or(0, |slash| slash + 1);
    if let Some(colon) = about[metric..].find(':') {
        (about, reason) = (&text[..metric + colon], &text[metric + colon + 1..]);
    }
    let named = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty() && text != "*");
    let (subject, metric) = match about.rsplit_once('/') {
        Some((subject, metric)) => (named(subject), named(metric)),
        None => (None, named(about)),
    };
    let reason = reason.trim();
    (!reason.is_empty()).then(|| Acceptance { subject, metric, reason: reason.to_owned() })
}

/// Formats an acceptance as the text that [`parse`] reads.
pub fn text(acceptance: &Acceptance) -> String {
    let metric = acceptance.metric.as_deref().unwrap_or("*");
    match &acceptance.subject {
        Some(subject) => format!("{subject}/{metric}: {}", acceptance.reason),
        None => format!("{metric}: {}", acceptance.reason),
    }
}

/// Adds the acceptances of the newest version's tracked file to the versions. Each line of the file holds a commit id,
/// a space, and the text of a trailer. Lines that start with `#` are comments.
pub fn from_file(source: &Source, all: &mut [SelectedVersion]) -> Result<(), Fault> {
    let Some(newest) = all.last() else { return Ok(()) };
    let blob = format!("{}:{FILE}", newest.version.commit);
    // Uncommitted changes of the file count as well, so that an acceptance takes effect at once.
    let working = std::fs::read_to_string(source.repository.folder().join(FILE)).ok();
    let Some(text) = working.or_else(|| source.repository.ask(["cat-file", "blob", &blob]).ok()) else {
        return Ok(());
    };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let acceptance = line.split_once(' ').and_then(|(commit, rest)| Some((commit, parse(rest)?)));
        let Some((commit, acceptance)) = acceptance else {
            return Err(Fault::usage(format!(
                "‘{FILE}’ has a line that cannot be read, ‘{line}’: write COMMIT METRIC: REASON"
            )));
        };
        if let Some(one) = all.iter_mut().find(|one| one.version.commit.starts_with(commit)) {
            one.version.accepted.push(acceptance);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_values_are_read_back() {
        let lines = ["time.cpu: safer hashing", "parse/malloc.bytes: a cache", "*: rewritten: all of it"];
        let with_colons = ["map::insert/malloc.bytes: a cache", "http://h:80/p/*: see http://h/1: all"];
        for line in lines.into_iter().chain(with_colons) {
            assert_eq!(text(&parse(line).expect("an acceptance")), line);
        }
        assert_eq!(parse("time.cpu:safer: all of it"), parse("time.cpu: safer: all of it"));
        assert_eq!(parse("time.cpu:"), None);
        assert_eq!(parse("no reason"), None);
    }
}
