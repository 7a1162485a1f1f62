//! The history of a repository: every version of a range is built once, and then weighed side by side with the others.
//!
//! [`take`] runs one history from its current state until no work is left.

pub mod args;
pub mod arms;
pub mod benches;
pub mod campaign;
mod expected_work;
pub mod node_agreement;
pub mod remarks;
pub mod report;
pub mod representatives;
mod request;
pub mod resolve;
pub mod schedule;
pub mod verb;

pub use request::{Aim, Definition, HistoryRequest, WeighingTools};
pub use schedule::HistoryEffort;

use crate::digest::digest;
use crate::farm::Farm;
use crate::fault::Fault;
use crate::paths;
use crate::store::{Store, StoredHistory, StoredVersion};
use crate::versions::build::VersionBuilder;
use crate::versions::selected_version::SelectedVersion;
use crate::versions::source_repository::Source;
use crate::versions::{BuildStarter, Recipe, VersionSelection};
use campaign::Campaign;
use scruple_core::history::{History, Version, VersionState, find_changes};
use scruple_core::run::Run;
use scruple_stats::sorting;
use std::collections::{HashMap, HashSet};

/// Histories with more versions than this are adaptive, unless the user says otherwise.
const MANY: usize = 16;

/// Runs a history until no work is left. Returns it together with the error that ended it early, if there is one.
/// `fresh` creates the run of a new history.
pub fn take(
    request: HistoryRequest,
    starter: BuildStarter,
    weighing: WeighingTools,
    store: Store,
    mut farm: Option<Farm>,
    fresh: impl FnOnce() -> Run,
) -> Result<(History, Option<Fault>), Fault> {
    let interrupted = starter.interrupted.clone();
    let (cache, mut launcher) = starter.take(&request.place)?;
    let source = Source::open(&request.place, cache.folder(), &mut launcher)?;
    let mut run = fresh();
    let class = farm.as_ref().and_then(Farm::class).unwrap_or(run.provenance.machine_class.clone());
    let identity = identity(&request, &class);
    let stored = store.history(&identity)?;
    let (mut selected, range) = select(&source, &request, stored.as_ref())?;
    let recipe = request.of.recipe.clone().resolve(&source)?;
    let before = stored.clone();
    let mut entries: HashMap<String, StoredVersion> = HashMap::new();
    if let Some(stored) = stored {
        run = stored.run;
        run.terms.margin = request.margin.unwrap_or(run.terms.margin);
        let all = stored.entries.into_iter().chain(stored.unlisted);
        entries = all.map(|entry| (entry.version.commit.clone(), entry)).collect();
    }
    let builder = VersionBuilder::new(cache, launcher, recipe, source.origin());
    let list = |selected: &[SelectedVersion]| {
        let listed = |one: &SelectedVersion| listed(&one.version, &entries, request.retry);
        let mut entries: Vec<StoredVersion> = selected.iter().map(listed).collect();
        representatives::elect(&mut entries, &builder);
        entries
    };
    let mut history = StoredHistory {
        identity,
        source: source.place.clone(),
        repository: source.name.clone(),
        remote: source.remote.clone(),
        range,
        entries: list(&selected),
        unlisted: Vec::new(),
        request: serde_json::to_string(&request.of).ok(),
        run,
    };
    if request.aim == Aim::Sets {
        let more = suspected(&history, &selected);
        if !more.is_empty() {
            selected = add_stored_versions(&source, &request.selection, &more, &history.entries)?;
            history.entries = list(&selected);
        }
    }
    let listed: HashSet<&String> = history.entries.iter().map(|entry| &entry.version.commit).collect();
    let mut unlisted: Vec<StoredVersion> =
        entries.values().filter(|entry| !listed.contains(&entry.version.commit)).cloned().collect();
    sorting::by(&mut unlisted, |a, b| a.version.commit.cmp(&b.version.commit));
    history.unlisted = unlisted;
    let trees = selected.into_iter().map(|one| (one.version.commit, one.tree)).collect();
    remarks::begin(&mut history, before.as_ref(), &source);
    let changed = begin_or_resume(&store, &history, before.as_ref())?;
    let effort = HistoryEffort {
        adaptive: request.adaptive.unwrap_or(history.entries.len() > MANY),
        ..request.effort.clone()
    };
    let mut campaign =
        Campaign::new(store, history, trees, builder, (weighing, interrupted), &request, effort)?;
    let fault = campaign.run(changed, farm.as_mut()).err();
    Ok((campaign.into_history(), fault))
}

/// Returns the versions that the request names, and the text of their range. A stored history may add its own.
fn select(
    source: &Source,
    request: &HistoryRequest,
    stored: Option<&StoredHistory>,
) -> Result<(Vec<SelectedVersion>, String), Fault> {
    let selection = &request.selection;
    let with_stored = |commits: &[String], stored: &StoredHistory| {
        add_stored_versions(source, selection, commits, &stored.entries)
    };
    match stored {
        Some(stored) if request.as_listed => Ok((with_stored(&[], stored)?, stored.range.clone())),
        Some(stored) if request.aim == Aim::Beside => {
            let selected = ids(&selection.versions(source)?);
            Ok((with_stored(&selected, stored)?, extended(&stored.range, &selection.text())))
        }
        _ => Ok((selection.versions(source)?, selection.text())),
    }
}

/// Stores a history that begins or goes on. Returns whether what is stored has changed.
fn begin_or_resume(
    store: &Store,
    history: &StoredHistory,
    before: Option<&StoredHistory>,
) -> Result<bool, Fault> {
    let Some(before) = before else {
        store.begin_history(history)?;
        return Ok(true);
    };
    let changed = before.entries != history.entries
        || before.range != history.range
        || before.request != history.request
        || before.run.terms.margin != history.run.terms.margin;
    if changed {
        store.resume_history(history)?;
    }
    Ok(changed)
}

/// Returns the left-out commits that may have caused a change, judging by the readings of the listed versions.
fn suspected(history: &StoredHistory, listed: &[SelectedVersion]) -> Vec<String> {
    let judgement = find_changes(&history.clone().view());
    let changes = judgement.series.iter().flat_map(|series| &series.changes);
    let versions: HashSet<usize> = changes.flat_map(|change| change.set.iter().copied()).collect();
    let of = |index: usize| listed[index].left_out.iter().cloned();
    versions.into_iter().flat_map(of).collect()
}

/// Returns these commits and the existing versions of a history, in order. Commits that the repository no longer has
/// are left out.
fn add_stored_versions(
    source: &Source,
    selection: &VersionSelection,
    commits: &[String],
    entries: &[StoredVersion],
) -> Result<Vec<SelectedVersion>, Fault> {
    let known =
        entries.iter().map(|entry| &entry.version.commit).filter(|commit| source.commit(commit).is_ok());
    let commits = known.chain(commits).cloned().collect();
    VersionSelection { commits, first_parent: selection.first_parent, ..VersionSelection::default() }
        .versions(source)
}

fn ids(selected: &[SelectedVersion]) -> Vec<String> {
    selected.iter().map(|one| one.version.commit.clone()).collect()
}

/// Returns the text that describes a range extended by another.
fn extended(range: &str, more: &str) -> String {
    match range.split(" and ").any(|part| part == more) {
        true => range.to_owned(),
        false => format!("{range} and {more}"),
    }
}

/// Selects one of the stored histories of a repository.
pub enum HistoryChoice<'a> {
    /// The history whose run has this id, label or prefix of an id.
    Named(&'a str),
    /// The newest history.
    Newest,
    /// The newest history in which at least one version could be weighed.
    Weighed,
}

/// Returns a stored history in the form that reports use.
pub fn stored(place: &str, which: &HistoryChoice<'_>, store: &Store) -> Result<History, Fault> {
    found(place, which, store).map(StoredHistory::view)
}

/// Returns the definition of a stored history, or `None` if Scruple did not measure it.
pub fn definition(
    place: &str,
    which: &HistoryChoice<'_>,
    store: &Store,
) -> Result<Option<Definition>, Fault> {
    let request = found(place, which, store)?.request;
    Ok(request.and_then(|text| serde_json::from_str(&text).ok()))
}

fn found(place: &str, which: &HistoryChoice<'_>, store: &Store) -> Result<StoredHistory, Fault> {
    let listed = || store.histories_of(place);
    let id = match which {
        HistoryChoice::Named(name) => Some(store.find_id(name)?),
        HistoryChoice::Newest => {
            listed()?.into_iter().max_by_key(|one| (one.started, one.id.clone())).map(|one| one.id)
        }
        HistoryChoice::Weighed => listed()?.into_iter().next().map(|listed| listed.id),
    };
    let found = id.map_or(Ok(None), |id| store.history_of_run(&id))?;
    found.ok_or_else(|| {
        let path = store.address();
        match which {
            HistoryChoice::Named(name) => Fault::usage(format!(
                "the run ‘{name}’ in ‘{path}’ is not a history: {} shows all runs",
                store.list_command()
            )),
            _ => Fault::usage(format!(
                "the store ‘{path}’ has no history of ‘{place}’: `scruple history{}` makes one, or name another repository with --repo",
                paths::store_option(path)
            )),
        }
    })
}

/// Returns the stored history that a run belongs to, if there is one.
pub fn of_run(id: &str, store: &Store) -> Result<Option<History>, Fault> {
    Ok(store.history_of_run(id)?.map(StoredHistory::view))
}

/// Returns the stored entry of a version, or a new one. Tags and acceptances are updated, since they may change while
/// the commit does not.
fn listed(version: &Version, known: &HashMap<String, StoredVersion>, retry: bool) -> StoredVersion {
    let Some(mut entry) = known.get(&version.commit).cloned() else {
        return StoredVersion::new(version.clone());
    };
    (entry.version.tags, entry.version.accepted) = (version.tags.clone(), version.accepted.clone());
    (entry.version.follows, entry.version.left_out) = (version.follows.clone(), version.left_out);
    if entry.version.state == VersionState::Building || (retry && entry.version.state.failed()) {
        (entry.version.state, entry.version.why, entry.version.log) = (VersionState::Queued, None, None);
    }
    entry
}

/// Returns the identity of a history. Histories with the same repository, recipe, subjects and machine class are the
/// same, whatever their range.
fn identity(request: &HistoryRequest, machine_class: &str) -> String {
    let recipe = Recipe { limit: None, ..request.of.recipe.clone() };
    let parts =
        (&request.place, recipe.recipe_key(), &request.of.subjects, request.of.same_output, machine_class);
    digest(&format!("{parts:?}"))
}
