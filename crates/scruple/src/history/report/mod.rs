//! The report of a range of versions: one page, written for terminals, documents, browsers and programs.

pub mod chart;
pub mod commit_links;
pub mod csv;
pub mod event;
#[cfg(test)]
pub mod fixture;
pub mod json;
pub mod markdown;
pub mod minor_changes;
pub mod model;
pub mod open_questions;
pub mod sparkline;
pub mod terminal;
#[cfg(test)]
pub mod tests;
pub mod words;

pub use chart::ChartOptions;

use crate::history::args::PageArgs;
use crate::render::export::Formats;
use event::HistoryEvent;
use scruple_core::history::{
    BreakEven, Graph, History, Judgement, Series, Version, VersionState, comparable,
};
use scruple_core::metric::{DEFAULT_METRICS, Pass};
use scruple_core::provenance::short_commit;
use scruple_core::subject::Arm;
use scruple_stats::sorting::{self, SortedMap};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;

/// The formats of the report, by the endings of their file names.
pub const FORMATS: Formats<fn(&HistoryReport<'_>, &PageArgs) -> String, 6> = [
    ("html", |page, _| page.html()),
    ("svg", |page, args| page.svg(ChartOptions::of(&args.chart))),
    ("md", |page, _| page.markdown()),
    ("csv", |page, args| page.csv(args.subject.as_deref())),
    ("json", |page, _| page.json()),
    ("readings", |page, _| page.csv_all()),
];

/// A range of versions with its conclusions, ready to be written in any format.
pub struct HistoryReport<'a> {
    /// The history that is reported.
    pub history: &'a History,
    /// The conclusions from the history.
    pub judgement: &'a Judgement,
    /// Excerpts of build logs, by the paths that versions name. A caller that can read the files sets them.
    pub logs: SortedMap<String, String>,
    /// Explanations of where changes come from. A caller that can read them sets them.
    pub explained: Vec<ExplainedChange>,
    shown: Vec<&'a Series>,
    events: Vec<HistoryEvent<'a>>,
    /// The arms in the form in which they are compared, and their indices by version.
    arms: Vec<Cow<'a, Arm>>,
    places: HashMap<String, Vec<usize>>,
}

/// An explanation of where in the code a change of a command comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExplainedChange {
    /// The version before the change.
    pub before: String,
    /// The version that brought the change.
    pub at: String,
    /// The name of the command.
    pub subject: String,
    /// The sentences of the explanation. The first one gives the size of the change.
    pub sentences: Vec<String>,
    /// The functions that the change comes from.
    pub rows: Vec<ExplainedRow>,
}

impl ExplainedChange {
    /// Returns the sentences. The first one says which versions A and B are.
    pub fn named_sentences(&self) -> impl Iterator<Item = String> {
        let sides = format!("From {} (A) to {} (B): ", short_commit(&self.before), short_commit(&self.at));
        let sentences = self.sentences.iter().enumerate();
        sentences.map(move |(at, text)| if at == 0 { format!("{sides}{text}") } else { text.clone() })
    }
}

/// A function that a change comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExplainedRow {
    /// The additional cost of the function, with its sign.
    pub difference: String,
    /// The function's share of the whole change.
    pub share: String,
    /// Whether the code of the function changed.
    pub code: String,
    /// The name of the function.
    pub function: String,
    /// Which of its costs increased.
    pub what: String,
    /// The part of the source difference between the versions that concerns the function.
    pub hunk: Option<String>,
}

/// Says in a sentence whether a change of the build's cost pays off between two versions with these names.
pub fn pays_off(one: &BreakEven, from: &str, to: &str) -> String {
    words::pays_off(one, from, to)
}

impl<'a> HistoryReport<'a> {
    /// Creates the page with the metrics that tables usually show and those that bench programs define.
    pub fn of(history: &'a History, judgement: &'a Judgement) -> HistoryReport<'a> {
        let usual = |series: &&Series| {
            DEFAULT_METRICS.contains(&series.metric.as_str())
                || scruple_core::metric::metric(&series.metric).is_none()
        };
        let arms = comparable(&history.run);
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, arm) in arms.iter().enumerate() {
            if let Some(version) = &arm.version {
                places.entry(version.clone()).or_default().push(place);
            }
        }
        let shown: Vec<&Series> = judgement.series.iter().filter(usual).collect();
        let events = event::of(&shown, history.run.terms.margin);
        HistoryReport {
            history,
            judgement,
            logs: SortedMap::new(),
            explained: Vec::new(),
            shown,
            events,
            arms,
            places,
        }
    }

    /// Returns the page with the metrics that match these patterns. Without patterns, the page is unchanged.
    pub fn showing(mut self, metrics: &[String]) -> HistoryReport<'a> {
        if !metrics.is_empty() {
            let named = |series: &&Series| {
                let declared = crate::render::metric_words::declared(&series.metric);
                metrics.iter().any(|pattern| declared.matches(pattern))
            };
            self.shown = self.judgement.series.iter().filter(named).collect();
            self.events = event::of(&self.shown, self.margin());
        }
        self
    }

    /// Writes the report for a terminal with this many columns. Colours are always written; the output stream strips
    /// them.
    pub fn terminal(&self, width: usize) -> String {
        terminal::text(self, width)
    }

    /// Writes CSV with the columns `commit;allocations;memory;time`, in bytes, bytes and seconds, for one subject.
    ///
    /// If no subject is named, the first one that has any of these metrics is used. Each cell is the smallest reading.
    /// Allocations are `alloc.bytes` or else `malloc.bytes`, memory is `memory.peak` or else `heap.live_max`, time is
    /// `time.wall`. The metric is chosen once for the subject, so that a column never changes its meaning. A version
    /// that was not weighed has empty cells.
    pub fn csv(&self, subject: Option<&str>) -> String {
        csv::short(self, subject)
    }

    /// Writes CSV with a row for each metric of each subject at each version. Versions without figures have a row with
    /// their state.
    pub fn csv_all(&self) -> String {
        csv::all(self)
    }

    /// Writes the changes in Markdown, as lines and as a table.
    pub fn markdown(&self) -> String {
        markdown::text(self)
    }

    /// Writes one line for each subject with the changes between two versions, given by their indices in the range.
    pub fn markdown_pair(&self, from: usize, to: usize) -> String {
        markdown::pair(self, from, to)
    }

    /// Draws the chart as a separate picture.
    pub fn svg(&self, options: ChartOptions) -> String {
        let charts = chart::all(self, options);
        crate::render::chart::picture(&charts)
    }

    /// Returns the page as data.
    pub fn model(&self) -> crate::render::page::Page {
        model::of(self)
    }

    /// Writes a self-contained page for browsers.
    pub fn html(&self) -> String {
        crate::render::page::html::text(&self.model())
    }

    /// Writes JSON, schema 1.
    pub fn json(&self) -> String {
        json::text(self)
    }

    /// Returns the known explanations of an event.
    fn explained_of(&self, event: &HistoryEvent<'_>) -> impl Iterator<Item = &ExplainedChange> {
        let at = event.at;
        self.explained.iter().filter(move |one| self.history.versions[at].commit == one.at)
    }

    /// Returns the index of the version whose readings represent this one: itself, or the weighed version with the same
    /// artefacts.
    fn stands_for(&self, index: usize) -> usize {
        let version = &self.history.versions[index];
        let same = version.same_as.as_ref().filter(|_| version.state == VersionState::SameBinary);
        same.and_then(|commit| self.history.versions.iter().position(|other| other.commit == *commit))
            .unwrap_or(index)
    }

    /// Returns the arms with readings that represent a version: its own, or those of the weighed version with the same
    /// artefacts.
    fn arms_at(&self, index: usize) -> impl Iterator<Item = &Arm> {
        let commit = self.history.versions[self.stands_for(index)].commit.as_str();
        let places = self.places.get(commit).map_or(&[][..], Vec::as_slice);
        places.iter().map(|place| self.arms[*place].as_ref())
    }

    /// Returns the names of the subjects, in the order in which they were weighed.
    pub fn subjects(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let judged = self.judgement.series.iter().map(|series| series.subject.as_str());
        let weighed = self.arms.iter().map(|arm| arm.name.as_str());
        let mut seen = std::collections::HashSet::new();
        names.extend(judged.chain(weighed).filter(|name| seen.insert(*name)));
        names
    }

    /// Returns the events that tables show, the most important first.
    fn shown_events(&self) -> Vec<&HistoryEvent<'a>> {
        event::worst_first(self.events.iter().filter(|event| !event.is_minor()))
    }

    /// Returns the events that are mentioned in one line, the largest first: changes of counts that are too small to
    /// matter.
    fn minor(&self) -> Vec<&HistoryEvent<'a>> {
        let mut minor: Vec<&HistoryEvent<'_>> = self.events.iter().filter(|event| event.is_minor()).collect();
        sorting::by(&mut minor, |one, other| other.size().total_cmp(&one.size()));
        minor
    }

    fn margin(&self) -> f64 {
        self.history.run.terms.margin
    }

    /// Whether a version has readings of its own, besides the costs of its build.
    fn is_weighed(&self, index: usize) -> bool {
        let read = |arm: &Arm, key: &String| arm.sample(key).is_some_and(|read| read.pass != Pass::Build);
        self.history.versions[index].state == VersionState::Built
            && self.arms_at(index).any(|arm| arm.figures.keys().any(|key| read(arm, key)))
    }

    /// Whether two parents of a merge have no version of the range in common.
    fn diverged_before(&self, merge: usize) -> bool {
        let graph = Graph::of(&self.history.versions);
        graph.diverged_before(graph.before(merge))
    }

    fn version(&self, index: usize) -> &'a Version {
        &self.history.versions[index]
    }
}
