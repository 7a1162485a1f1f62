//! Builds two versions to weigh side by side: two revisions, or a revision and the working tree.

use super::artefacts::Artefacts;
use super::build::{Builder, Outcome};
use super::source::Source;
use super::{Recipe, Selection, Starter, Template};
use crate::command::arms::{Hooks, Prepared};
use crate::fault::Fault;
use crate::git::Repository;
use crate::store::add_readings;
use scruple_core::harmless_text::plain;
use scruple_core::history::Acceptance;
use scruple_core::metric::{Pass, metric};
use scruple_core::sample::Reading;
use std::path::PathBuf;
use std::time::Duration;

/// The label of the version with uncommitted changes.
pub const WORKING_TREE: &str = "working tree";

/// Which two versions to build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revisions {
    /// The reference revision, or a branch whose merge base with HEAD is the reference.
    pub reference: String,
    /// Whether `reference` is a branch whose merge base is used.
    pub base: bool,
    /// The other revision; `None` means the working tree.
    pub other: Option<String>,
}

/// Two versions that were built. No other process builds in their folder while this value exists.
pub struct Pair {
    /// The lock of the folder of builds, and the identity of the builds in it.
    pub hold: Builder,
    /// The ids of the commits, the reference first.
    pub commits: [String; 2],
    /// The repository that has the objects of both commits.
    pub objects: PathBuf,
    /// The names of the versions, the reference first.
    pub labels: [String; 2],
    /// Whether the builds are byte for byte the same, so that no measurement is needed.
    pub same_build: bool,
    /// The changes that commits between the versions declare as intended.
    pub accepted: Vec<Acceptance>,
    /// The arms of each subject, the reference first. The arms of the first subject carry the build costs.
    pub prepared: Vec<Prepared>,
    /// Sentences that the user should read.
    pub remarks: Vec<(&'static str, String)>,
}

/// Builds both versions, one after the other, before anything is measured.
pub fn build(
    place: &str,
    revisions: &Revisions,
    recipe: Recipe,
    subjects: &[Template],
    time_limit: Option<Duration>,
    starter: Starter,
) -> Result<Pair, Fault> {
    let (cache, mut hands) = starter.take(place)?;
    let source = Source::open(place, cache.folder(), &mut hands)?;
    let head = source.commit("HEAD")?;
    let resolved = recipe.resolve(&source)?;
    let mut builder = Builder::new(cache, hands, resolved, source.origin());
    builder.prepare_tree(&head)?;
    let mut remarks = Vec::new();
    let reference = match revisions.base {
        false => (revisions.reference.clone(), source.commit(&revisions.reference)?),
        true => {
            let base = source.merge_base(&revisions.reference)?;
            (format!("{} ({})", revisions.reference, &base[..10.min(base.len())]), base)
        }
    };
    let other = match &revisions.other {
        Some(revision) => (revision.clone(), source.commit(revision)?),
        None => match source.snapshot(&builder.objects())? {
            Some(snapshot) => (WORKING_TREE.to_owned(), snapshot),
            None => (format!("HEAD ({})", &head[..10.min(head.len())]), head.clone()),
        },
    };
    match revisions.other {
        Some(_) => remarks.extend(source.remarks.clone()),
        None => remarks.extend(untracked(&source)),
    }
    let end = if revisions.other.is_some() { other.1.clone() } else { head };
    let accepted = accepted(&source, &reference.1, &end)?;
    let (old, new) = (ready(&mut builder, reference, false)?, ready(&mut builder, other, true)?);
    let mut prepared: Vec<Prepared> = Vec::new();
    for subject in subjects {
        for version in [&old, &new] {
            prepared.push(arm(&builder, subject, version, prepared.len() < 2, time_limit)?);
        }
    }
    let other_work = |pair: &&[Prepared]| pair[0].arm.params != pair[1].arm.params;
    if let Some([old, new]) = prepared.chunks(2).find(other_work) {
        remarks.push((
            "other-work",
            format!(
                "‘{}’ and ‘{}’ have other parameters, so that their figures are not of the same work",
                old.arm.name, new.arm.name
            ),
        ));
    }
    let objects = builder.cache.tree();
    let changed = changed(&Repository::at(&objects), &old.commit, &new.commit);
    let same_build = old.artefacts.digest == new.artefacts.digest && !prepared.chunks(2).any(other_launch);
    if same_build {
        remarks.push(("same-build", same_build_text(&old.label, &new.label, &changed)));
    }
    Ok(Pair {
        hold: builder,
        commits: [old.commit, new.commit],
        objects,
        labels: [old.label, new.label],
        same_build,
        accepted,
        prepared,
        remarks,
    })
}

/// Returns a remark about untracked files. They are not built, which a user may not expect.
fn untracked(source: &Source) -> Option<(&'static str, String)> {
    let words = ["ls-files", "--others", "--exclude-standard", "-z", ":/"];
    let answer = source.repository.ask_of_tree(words, &[]).unwrap_or_default();
    let names: Vec<&str> = answer.split('\0').filter(|name| !name.is_empty()).collect();
    let first = plain(names.first()?);
    let more = if names.len() > 1 { format!(" and {} more files", names.len() - 1) } else { String::new() };
    let text = format!(
        "‘{first}’{more} are not tracked by git, and no part of the working tree here: `git add` makes them one"
    );
    Some(("untracked", text))
}

/// Whether two launches differ in anything other than their artefacts.
fn other_launch(pair: &[Prepared]) -> bool {
    let [old, new] = pair else { return true };
    old.job.argv != new.job.argv || old.job.env != new.job.env || old.arm.params != new.arm.params
}

/// The largest number of changed files that are named.
const NAMED: usize = 4;

fn same_build_text(old: &str, new: &str, changed: &[String]) -> String {
    let head = format!("the builds of ‘{old}’ and ‘{new}’ are the same, byte for byte");
    let names: Vec<String> = changed.iter().take(NAMED).map(|name| format!("‘{name}’")).collect();
    match changed.len() {
        0 => format!("{head}, and so are their files"),
        n if n > NAMED => {
            format!("{head}, although {} and {} more files differ", names.join(", "), n - NAMED)
        }
        1 => format!("{head}, although {} differs", names[0]),
        _ => format!("{head}, although {} differ", names.join(", ")),
    }
}

/// Returns the files that differ between two commits.
fn changed(repository: &Repository, old: &str, new: &str) -> Vec<String> {
    let words =
        ["diff", "--name-only", "--no-ext-diff", "--no-textconv", "-z", "--end-of-options", old, new, "--"];
    let answer = repository.ask(words).unwrap_or_default();
    answer.split('\0').filter(|name| !name.is_empty()).map(plain).collect()
}

/// Returns the changes that commits after the reference, up to the end, declare as intended.
fn accepted(source: &Source, reference: &str, end: &str) -> Result<Vec<Acceptance>, Fault> {
    let range = format!("{reference}..{end}");
    if source.members(&range)?.is_empty() {
        return Ok(Vec::new());
    }
    let all = Selection { range: Some(range), ..Selection::default() }.versions(source)?;
    Ok(all.into_iter().flat_map(|one| one.version.accepted).collect())
}

fn ready(builder: &mut Builder, (label, commit): (String, String), aside: bool) -> Result<Built, Fault> {
    let tree = Repository::at(&builder.cache.tree()).ask(["rev-parse", &format!("{commit}^{{tree}}")]);
    let tree = tree.map_err(|refused| refused.fault(&format!("cannot read the tree of ‘{label}’")))?;
    let built = if aside { builder.build_aside(&commit, &tree) } else { builder.build(&commit, &tree) };
    match built? {
        Outcome::Ready(artefacts) => Ok(Built { label, commit, artefacts }),
        Outcome::Failed(_, why) => {
            let log = builder.cache.log(&commit);
            Err(Fault::program(format!("‘{label}’ cannot be weighed: {why}; see {}", log.display())))
        }
    }
}

/// A version that was built and may be weighed.
struct Built {
    label: String,
    commit: String,
    artefacts: Artefacts,
}

fn arm(
    builder: &Builder,
    subject: &Template,
    version: &Built,
    first: bool,
    time_limit: Option<Duration>,
) -> Result<Prepared, Fault> {
    let (label, artefacts) = (&version.label, &version.artefacts);
    let effective = builder.effective(&version.commit);
    let folder: PathBuf = builder.cache.built(&artefacts.digest);
    let mut job = subject.job(label, &effective, 0, &folder, time_limit).map_err(|why| {
        Fault::usage(format!(
            "‘{}’ cannot be launched among the artefacts of ‘{label}’: {why}; --artifact names what to keep",
            subject.name
        ))
    })?;
    let mut arm = subject.arm(&version.commit, &effective, 0);
    arm.name = format!("{} @{label}", subject.name);
    job.name.clone_from(&arm.name);
    let reading = |key: &str, value: u64, source: &str| Some(Reading::of(metric(key)?, value as f64, source));
    let readings = [
        reading("build.time", artefacts.time, "the build steps' elapsed time"),
        reading("build.bytes", artefacts.bytes, "sizes of files"),
    ];
    if first && !effective.steps.is_empty() {
        add_readings(&mut arm, readings.into_iter().flatten(), Pass::Build, 0);
    }
    Ok(Prepared { arm, job, hooks: Hooks::default() })
}
