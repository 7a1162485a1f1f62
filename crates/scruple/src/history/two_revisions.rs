//! Two versions to be weighed side by side: two revisions, or a revision and what is in the working tree.

use super::artefacts::Artefacts;
use super::build::{Builder, Outcome};
use super::source::Source;
use super::{Recipe, Starter, Template};
use crate::command::arms::{Hooks, Prepared};
use crate::fault::Fault;
use crate::git::Repository;
use crate::store::add_readings;
use scruple_core::metric::{Pass, metric};
use scruple_core::sample::Reading;
use std::path::PathBuf;
use std::time::Duration;

/// Which two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revisions {
    /// The revision compared with; or a branch, whose merge base with HEAD is meant.
    pub reference: String,
    /// Whether it is such a branch.
    pub base: bool,
    /// The other revision; what is in the working tree where there is none.
    pub other: Option<String>,
}

/// Both versions, built; nobody else builds in that folder while this is there.
pub struct Pair {
    _builder: Builder,
    /// The commits, the reference first, and the repository that has both of them.
    pub commits: [String; 2],
    /// See [`Pair::commits`].
    pub objects: PathBuf,
    /// The arms of each subject, the reference first; those of the first subject have what building them cost.
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
    let mut builder = Builder::new(cache, hands, resolved, &source);
    builder.prepare_tree(&head)?;
    let mut remarks = Vec::new();
    let reference = match revisions.base {
        false => (revisions.reference.clone(), source.commit(&revisions.reference)?),
        true => {
            source.commit(&revisions.reference)?;
            let base = source.repository.ask(["merge-base", &revisions.reference, "HEAD"]);
            let base = base.map_err(|_| {
                Fault::usage(format!(
                    "‘{}’ and HEAD have no commit in common: name a revision instead",
                    revisions.reference
                ))
            })?;
            (format!("{} ({})", revisions.reference, &base[..10.min(base.len())]), base)
        }
    };
    let other = match &revisions.other {
        Some(revision) => (revision.clone(), source.commit(revision)?),
        None => match source.snapshot(&builder.objects())? {
            Some(snapshot) => ("working tree".to_owned(), snapshot),
            None => (format!("HEAD ({})", &head[..10.min(head.len())]), head),
        },
    };
    if revisions.other.is_some() {
        remarks.extend(source.remarks.clone());
    }
    let (old, new) = (ready(&mut builder, reference)?, ready(&mut builder, other)?);
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
    let commits = [old.commit, new.commit];
    let objects = builder.cache.tree();
    Ok(Pair { _builder: builder, commits, objects, prepared, remarks })
}

fn ready(builder: &mut Builder, (label, commit): (String, String)) -> Result<Built, Fault> {
    let tree = Repository::at(&builder.cache.tree()).ask(["rev-parse", &format!("{commit}^{{tree}}")]);
    let tree = tree.map_err(|refused| refused.fault(&format!("cannot read the tree of ‘{label}’")))?;
    match builder.build(&commit, &tree)? {
        Outcome::Ready(artefacts) => Ok(Built { label, commit, artefacts }),
        Outcome::Failed(_, why) => {
            let log = builder.cache.log(&commit);
            Err(Fault::program(format!("‘{label}’ cannot be weighed: {why}; see {}", log.display())))
        }
    }
}

/// A version that may be weighed.
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
    if first {
        add_readings(&mut arm, readings.into_iter().flatten(), Pass::Build, 0);
    }
    Ok(Prepared { arm, job, hooks: Hooks::default() })
}
