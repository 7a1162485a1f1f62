//! Selects the commits of a repository that are versions of a history.

use super::selected_version::SelectedVersion;
use super::source_repository::Source;
use super::{accepted_changes, ancestry};
use crate::fault::Fault;
use crate::git::GitError;
use scruple_core::harmless_text::shortened;
use scruple_core::history::{Version, VersionState};
use scruple_core::provenance::short_commit;
use std::collections::{HashMap, HashSet};

/// The criteria by which commits are selected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VersionSelection {
    /// A range as git understands it. `None` means all commits that HEAD reaches.
    pub range: Option<String>,
    /// Whether to follow first parents only.
    pub first_parent: bool,
    /// `true` selects only merges, `false` only other commits.
    pub merges: Option<bool>,
    /// Whether to select only commits that a tag names.
    pub tags: bool,
    /// Selects every n-th commit, counted from the last.
    pub every: Option<usize>,
    /// Selects this many commits, evenly spaced, including both ends.
    pub steps: Option<usize>,
    /// Selects commits that are not older than this date.
    pub since: Option<String>,
    /// Selects commits that are not younger than this date.
    pub until: Option<String>,
    /// Selects these commits and no others.
    pub commits: Vec<String>,
    /// Whether the range may continue before the end of a shallow clone.
    pub beyond_shallow: bool,
}

/// The format of the log: these fields of each commit. With `-z`, each field ends with a zero byte, the only byte that
/// the text of a commit cannot contain. Bytes of value 1 separate trailers.
const FORMAT: &str =
    "--format=%H%x00%P%x00%T%x00%ct%x00%an%x00%s%x00%(trailers:key=Scruple-Accept,valueonly,separator=%x01)";

/// The number of fields of the format.
const FIELDS: usize = 7;

impl VersionSelection {
    /// Returns a text that describes the range.
    pub fn text(&self) -> String {
        match (&self.range, self.commits.len()) {
            (Some(range), _) => range.clone(),
            (None, 0) => "HEAD".to_owned(),
            (None, n) => format!("{n} commits"),
        }
    }

    /// Returns the selected versions in topological order, oldest first.
    pub fn versions(&self, source: &Source) -> Result<Vec<SelectedVersion>, Fault> {
        let chosen: Vec<String> =
            self.commits.iter().map(|revision| source.commit(revision)).collect::<Result<_, _>>()?;
        let text = self.text();
        let mut words: Vec<&str> = vec!["log", "-z", "--topo-order", "--reverse", FORMAT];
        words.extend(self.first_parent.then_some("--first-parent"));
        words.extend(self.merges.map(|only| if only { "--merges" } else { "--no-merges" }));
        let since = self.since.as_ref().map(|moment| format!("--since={moment}"));
        let until = self.until.as_ref().map(|moment| format!("--until={moment}"));
        words.extend(since.iter().chain(&until).map(String::as_str));
        words.push("--end-of-options");
        let within: Vec<&str> = match chosen.is_empty() {
            true => revisions(source, &text),
            false => chosen.iter().map(String::as_str).collect(),
        };
        words.extend(&within);
        words.push("--");
        let answer = source.repository.ask(&words).map_err(|refused| self.refused(source, refused))?;
        let tags = tags(source)?;
        let fields: Vec<&str> = answer.split('\0').collect();
        let mut all: Vec<SelectedVersion> =
            fields.chunks_exact(FIELDS).filter_map(|fields| selected(fields, &tags)).collect();
        if !self.beyond_shallow {
            check_depth(source, &all)?;
        }
        if !chosen.is_empty() {
            let chosen: HashSet<&String> = chosen.iter().collect();
            all.retain(|one| chosen.contains(&one.version.commit));
        }
        if self.tags {
            all.retain(|one| !one.version.tags.is_empty());
        }
        let mut all = self.thinned(all);
        if all.is_empty() {
            return Err(Fault::usage(format!(
                "the range ‘{text}’ of ‘{}’ has no commits{}: `git log {text}` shows what a range has",
                source.place,
                if self.restricts() { " that fit the other options" } else { "" }
            )));
        }
        accepted_changes::from_file(source, &mut all)?;
        if self.restricts() || self.every.is_some() || self.steps.is_some() || !chosen.is_empty() {
            ancestry::find(source, &within, self.first_parent, &mut all)?;
        } else {
            ancestry::directly(source, self.first_parent, &mut all);
        }
        Ok(all)
    }

    fn restricts(&self) -> bool {
        self.merges.is_some() || self.tags || self.since.is_some() || self.until.is_some()
    }

    fn thinned(&self, all: Vec<SelectedVersion>) -> Vec<SelectedVersion> {
        let count = all.len();
        let kept: HashSet<usize> = match (self.every, self.steps) {
            (Some(every), _) => (0..count).rev().step_by(every.max(1)).collect(),
            (_, Some(steps)) if steps < count => {
                let last = steps.max(2) - 1;
                (0..=last).map(|step| (step * (count - 1) + last / 2) / last).collect()
            }
            _ => return all,
        };
        all.into_iter().enumerate().filter(|(index, _)| kept.contains(index)).map(|(_, one)| one).collect()
    }

    fn refused(&self, source: &Source, refused: GitError) -> Fault {
        let text = self.text();
        match refused {
            GitError::Message(message)
                if message.contains("unknown revision") || message.contains("bad revision") =>
            {
                match self.range.is_some() || source.repository.ask(["rev-parse", "--verify", "HEAD"]).is_ok()
                {
                    true => source.unknown(&text),
                    false => Fault::usage(format!("‘{}’ has no commits yet", source.place)),
                }
            }
            refused => refused.fault(&format!("cannot list the commits of ‘{text}’")),
        }
    }
}

/// Returns an error if a shallow clone cuts the range off. Its oldest commit would otherwise appear to be the first
/// one.
fn check_depth(source: &Source, all: &[SelectedVersion]) -> Result<(), Fault> {
    match source.first_end(all.iter().map(|one| one.version.commit.as_str())) {
        None => Ok(()),
        Some(end) => Err(Fault::usage(format!(
            "‘{}’ is a shallow clone that ends at {}, inside the range: `git fetch --unshallow` gets the rest, or name a range above it",
            source.place,
            short_commit(end)
        ))),
    }
}

/// Returns the revisions and ranges that a text consists of. One that git knows may itself contain spaces, as
/// `:/two words` and `main@{2 days ago}..main` do.
fn revisions<'t>(source: &Source, text: &'t str) -> Vec<&'t str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let whole = ["rev-list", "--max-count=1", "--end-of-options", text, "--"];
    match words.len() > 1 && source.repository.ask(whole).is_ok() {
        true => vec![text],
        false => words,
    }
}

fn selected(fields: &[&str], tags: &HashMap<String, Vec<String>>) -> Option<SelectedVersion> {
    let [commit, parents, tree, time, author, title, accepted] = fields else { return None };
    let version = Version {
        commit: (*commit).to_owned(),
        parents: parents.split_whitespace().map(str::to_owned).collect(),
        follows: Vec::new(),
        // The title of a message with lines of Windows, when git quotes it in the title of a revert, contains one.
        title: shortened(&title.replace('\r', ""), LONG_TITLE),
        author: (*author).to_owned(),
        time: time.parse::<i64>().unwrap_or(0) * 1000,
        tags: tags.get(*commit).cloned().unwrap_or_default(),
        state: VersionState::Queued,
        why: None,
        log: None,
        same_as: None,
        accepted: accepted.split('\x01').filter_map(accepted_changes::parse).collect(),
        left_out: 0,
    };
    Some(SelectedVersion { version, tree: (*tree).to_owned(), left_out: Vec::new() })
}

/// The most characters of a title. Longer ones are too long for tables and lines of progress.
const LONG_TITLE: usize = 201;

/// Returns the tags of each commit. An annotated tag is an object of its own, which refers to the commit.
fn tags(source: &Source) -> Result<HashMap<String, Vec<String>>, Fault> {
    let words = ["for-each-ref", "refs/tags", "--format=%(objectname) %(*objectname) %(refname:short)"];
    let answer = source.repository.ask(words).map_err(|refused| refused.fault("cannot list tags"))?;
    let mut found: HashMap<String, Vec<String>> = HashMap::new();
    for line in answer.lines() {
        let mut parts = line.splitn(3, ' ');
        if let (Some(object), Some(peeled), Some(name)) = (parts.next(), parts.next(), parts.next()) {
            let commit = if peeled.is_empty() { object } else { peeled };
            found.entry(commit.to_owned()).or_default().push(name.to_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_has_no_carriage_return() {
        let fields = ["c", "", "t", "0", "Ann", "Revert \"Less work\r\"", ""];
        let title = selected(&fields, &HashMap::new()).expect("a version").version.title;
        assert_eq!(title, "Revert \"Less work\"");
    }
}
