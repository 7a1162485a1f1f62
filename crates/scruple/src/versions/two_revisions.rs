//! Builds two versions to weigh side by side: two revisions, or a revision and the working tree.

use super::artefacts::Artefacts;
use super::build::{BuildOutcome, VersionBuilder};
use super::source_repository::Source;
use super::{BuildStarter, Recipe, SubjectTemplate, VersionSelection, untracked};
use crate::command::arms::{Hooks, Prepared};
use crate::fault::Fault;
use crate::git::{self, Repository};
use crate::store::add_readings;
use scruple_core::harmless_text::{list_names, plain};
use scruple_core::history::Acceptance;
use scruple_core::metric::{Pass, metric};
use scruple_core::provenance::short_commit;
use scruple_core::sample::Reading;
use scruple_core::subject::Arm;
use std::path::PathBuf;
use std::time::Duration;

/// The label of the version with uncommitted changes.
pub const WORKING_TREE: &str = "working tree";

/// Sentences that the user should read, each with its code.
pub type Remarks = Vec<(&'static str, String)>;

/// Which two versions to build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revisions {
    /// The reference revision, or a branch whose merge base with HEAD is the reference.
    pub reference: String,
    /// Whether `reference` is a branch whose merge base is used.
    pub base: bool,
    /// The other revision; `None` means the working tree.
    pub other: Option<String>,
    /// The files that results are written to. No remark is needed if these are not tracked.
    pub written: Vec<PathBuf>,
}

/// Two versions that were built. No other process builds in their folder while this value exists.
pub struct BuiltPair {
    /// The lock of the folder of builds, and the identity of the builds in it.
    pub hold: VersionBuilder,
    /// The ids of the commits, the reference first.
    pub commits: [String; 2],
    /// The repository that has the objects of both commits.
    pub objects: PathBuf,
    /// The names of the versions, the reference first.
    pub labels: [String; 2],
    /// Whether the builds are byte for byte the same, so that no measurement is needed.
    pub same_build: bool,
    /// The versions that are earlier builds of the same tree by the same steps, with the moment of
    /// [`Artefacts::built_at`].
    pub built_earlier: Vec<(String, i64)>,
    /// The changes that commits between the versions declare as intended.
    pub accepted: Vec<Acceptance>,
    /// The arms of each subject, the reference first. The arms of the first subject carry the build costs.
    pub prepared: Vec<Prepared>,
    /// Sentences that the user should read.
    pub remarks: Remarks,
}

/// Two versions that are to be built. No other process builds in their folder while this value exists.
pub struct ChosenVersions {
    /// What builds them.
    pub builder: VersionBuilder,
    /// The label and the commit of each version, the reference first.
    pub versions: [(String, String); 2],
    /// Whether the second version is the working tree, whose objects only this machine has.
    pub uncommitted: bool,
    accepted: Vec<Acceptance>,
    /// Sentences that the user should read.
    pub remarks: Remarks,
}

/// Builds both versions, one after the other, before anything is measured.
pub fn build(
    place: &str,
    revisions: &Revisions,
    recipe: Recipe,
    subjects: &[SubjectTemplate],
    time_limit: Option<Duration>,
    starter: BuildStarter,
) -> Result<BuiltPair, Fault> {
    choose(place, revisions, recipe, starter)?.build(subjects, time_limit)
}

/// Returns the label of a merge base: the branch and the beginning of the commit's id. Jobs of continuous integration
/// name a commit by its whole id instead of a branch.
fn label_of_base(reference: &str, base: &str) -> String {
    let short = |id: &str| id[..10.min(id.len())].to_owned();
    let is_id = reference.len() >= 40 && reference.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_id {
        true if reference == base => short(base),
        true => format!("{} ({})", short(reference), short(base)),
        false => format!("{reference} ({})", short(base)),
    }
}

/// Finds the commits of both versions. The working tree becomes a commit in the folder of builds.
pub fn choose(
    place: &str,
    revisions: &Revisions,
    recipe: Recipe,
    starter: BuildStarter,
) -> Result<ChosenVersions, Fault> {
    let (cache, mut launcher) = starter.take(place)?;
    let source = Source::open(place, cache.folder(), &mut launcher)?;
    let head = source.commit("HEAD")?;
    let resolved = recipe.resolve(&source)?;
    let mut builder = VersionBuilder::new(cache, launcher, resolved, source.origin());
    builder.prepare_tree(&head)?;
    let mut remarks = Vec::new();
    let reference = match revisions.base {
        false => (revisions.reference.clone(), source.commit(&revisions.reference)?),
        true => {
            let base = source.merge_base(&revisions.reference)?;
            (label_of_base(&revisions.reference, &base), base)
        }
    };
    let mut uncommitted = false;
    let other = match &revisions.other {
        Some(revision) => (revision.clone(), source.commit(revision)?),
        None => match source.snapshot(&builder.objects())? {
            Some(snapshot) => {
                uncommitted = true;
                (WORKING_TREE.to_owned(), snapshot)
            }
            None => (format!("HEAD ({})", &head[..10.min(head.len())]), head.clone()),
        },
    };
    match revisions.other {
        Some(_) => remarks.extend(source.remarks.clone()),
        None => {
            let artefacts = &builder.recipe().recipe().artefacts;
            remarks.extend(untracked::remark(&source, &builder.cache, artefacts, &revisions.written)?);
            remarks.extend(changed_submodules(&source));
        }
    }
    let end = if revisions.other.is_some() { other.1.clone() } else { head };
    let accepted = accepted(&source, &reference.1, &end, &mut remarks)?;
    Ok(ChosenVersions { builder, versions: [reference, other], uncommitted, accepted, remarks })
}

impl ChosenVersions {
    /// Returns the arms of each subject without readings, the reference first.
    pub fn arms(&self, subjects: &[SubjectTemplate]) -> Vec<Arm> {
        let arms = |subject: &SubjectTemplate| {
            self.versions.each_ref().map(|(label, commit)| arm(&self.builder, subject, (label, commit)))
        };
        subjects.iter().flat_map(arms).collect()
    }

    /// Builds both versions, one after the other.
    fn build(
        mut self,
        subjects: &[SubjectTemplate],
        time_limit: Option<Duration>,
    ) -> Result<BuiltPair, Fault> {
        let [reference, other] = self.versions;
        let builder = &mut self.builder;
        let (old, new) = (ready(builder, reference, false)?, ready(builder, other, true)?);
        let objects = builder.cache.tree();
        let changed = changed(&Repository::at(&objects), &old.commit, &new.commit);
        let pair = [&old, &new];
        let (prepared, same_build) =
            prepare(builder, subjects, pair, &changed, time_limit, &mut self.remarks)?;
        let is_earlier =
            |one: &&Built| one.artefacts.reused && !builder.settings(&one.commit).steps.is_empty();
        let built_earlier = pair.into_iter().filter(is_earlier);
        let built_earlier = built_earlier.map(|one| (one.label.clone(), one.artefacts.built_at)).collect();
        Ok(BuiltPair {
            hold: self.builder,
            commits: [old.commit, new.commit],
            objects,
            labels: [old.label, new.label],
            same_build,
            built_earlier,
            accepted: self.accepted,
            prepared,
            remarks: self.remarks,
        })
    }
}

/// Returns the arms of each subject at both versions, ready to be launched, and whether both builds are the same. Adds
/// remarks on the versions.
pub fn prepare(
    builder: &VersionBuilder,
    subjects: &[SubjectTemplate],
    [old, new]: [&Built; 2],
    changed: &[String],
    time_limit: Option<Duration>,
    remarks: &mut Remarks,
) -> Result<(Vec<Prepared>, bool), Fault> {
    let mut prepared: Vec<Prepared> = Vec::new();
    for subject in subjects {
        for version in [old, new] {
            prepared.push(launchable(builder, subject, version, prepared.len() < 2, time_limit)?);
        }
    }
    let other_work = |pair: &&[Prepared]| pair[0].arm.params != pair[1].arm.params;
    if let Some([old, new]) = prepared.chunks(2).find(other_work) {
        remarks.push((
            "other-work",
            format!(
                "‘{}’ and ‘{}’ have different parameters, so their figures are not for the same work",
                old.arm.name, new.arm.name
            ),
        ));
    }
    let same_build = old.artefacts.digest == new.artefacts.digest && !prepared.chunks(2).any(other_launch);
    if same_build {
        remarks.push(("same-build", same_build_text(old, new, changed)));
    }
    Ok((prepared, same_build))
}

/// Returns a remark about submodules with changes of their own that are not committed. Git records only the commit of
/// a submodule, so these changes are not built. Git is asked in each submodule, because it would otherwise run there
/// with the settings of the submodule.
fn changed_submodules(source: &Source) -> Option<(&'static str, String)> {
    let answer = source.repository.ask(["ls-files", "--stage", "-z"]).unwrap_or_default();
    let is_changed = |name: &&str| {
        let folder = source.repository.folder().join(name);
        folder.join(".git").exists() && git::state(&folder).is_some_and(|state| state.dirty)
    };
    let modules = answer.split('\0').filter_map(|line| line.strip_prefix("160000 ")?.split_once('\t'));
    let names: Vec<&str> = modules.map(|(_, name)| name).filter(is_changed).collect();
    let has = if names.len() == 1 { "has" } else { "have" };
    (!names.is_empty()).then(|| {
        let text = format!(
            "{} {has} changes that are not committed in the submodule, so they are not part of the working tree here",
            list_names(names)
        );
        ("submodule", text)
    })
}

/// Whether two launches differ in anything other than their artefacts.
fn other_launch(pair: &[Prepared]) -> bool {
    let [old, new] = pair else { return true };
    old.job.argv != new.job.argv || old.job.env != new.job.env || old.arm.params != new.arm.params
}

/// The largest number of changed files that are named.
const NAMED: usize = 4;

fn same_build_text(old: &Built, new: &Built, changed: &[String]) -> String {
    let (commits, [old, new]) = ([&old.commit, &new.commit], [&old.label, &new.label]);
    if commits[0] == commits[1] {
        return format!("‘{old}’ and ‘{new}’ are the same commit, so there is no change to weigh");
    }
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
pub fn changed(repository: &Repository, old: &str, new: &str) -> Vec<String> {
    let words =
        ["diff", "--name-only", "--no-ext-diff", "--no-textconv", "-z", "--end-of-options", old, new, "--"];
    let answer = repository.ask(words).unwrap_or_default();
    answer.split('\0').filter(|name| !name.is_empty()).map(plain).collect()
}

/// Returns the changes that commits after the reference, up to the end, declare as intended. Adds a remark if a shallow
/// clone may lack some of these commits.
fn accepted(
    source: &Source,
    reference: &str,
    end: &str,
    remarks: &mut Remarks,
) -> Result<Vec<Acceptance>, Fault> {
    let range = format!("{reference}..{end}");
    let members = source.members(&range)?;
    if members.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(cut) = source.first_end(members.iter().map(String::as_str)) {
        let text = format!(
            "the clone is shallow and ends at {}: changes that earlier commits accept are not known (`git fetch \
             --unshallow`)",
            short_commit(cut)
        );
        remarks.push(("shallow", text));
    }
    let selection =
        VersionSelection { range: Some(range), beyond_shallow: true, ..VersionSelection::default() };
    let all = selection.versions(source)?;
    Ok(all.into_iter().flat_map(|one| one.version.accepted).collect())
}

/// Builds a version, in the second tree if `in_second_tree`.
pub fn ready(
    builder: &mut VersionBuilder,
    (label, commit): (String, String),
    in_second_tree: bool,
) -> Result<Built, Fault> {
    let tree = tree(builder, &label, &commit)?;
    let built = match in_second_tree {
        true => builder.build_in_second_tree(&commit, &tree),
        false => builder.build(&commit, &tree),
    };
    match built? {
        BuildOutcome::Ready(artefacts) => Ok(Built { label, commit, artefacts }),
        BuildOutcome::Failed(failure) => {
            let what = format!("see ‘{}’, which", builder.cache.log(&commit).display());
            Err(not_built(&label, &failure.why, &what, &builder.cache.shown_lines_of_log(&commit)))
        }
    }
}

/// Creates the error of a version that cannot be weighed. `log` is the beginning of the clause about the log of its
/// build, such as "its log", and `shown` are the lines of it.
pub fn not_built(label: &str, why: &str, log: &str, shown: &str) -> Fault {
    let ending = match shown.is_empty() {
        true => String::new(),
        false => format!("; {log} ends with:{shown}"),
    };
    Fault::program(format!("‘{label}’ cannot be weighed: {why}{ending}"))
}

/// Returns the id of a commit's tree.
pub fn tree(builder: &VersionBuilder, label: &str, commit: &str) -> Result<String, Fault> {
    let tree = Repository::at(&builder.cache.tree()).ask(["rev-parse", &format!("{commit}^{{tree}}")]);
    tree.map_err(|refused| refused.fault(&format!("cannot read the tree of ‘{label}’")))
}

/// A version that was built and may be weighed.
pub struct Built {
    /// The name of the version.
    pub label: String,
    /// The id of the commit.
    pub commit: String,
    /// What the build made.
    pub artefacts: Artefacts,
}

/// Returns the arm of a subject at a version, without readings.
fn arm(builder: &VersionBuilder, subject: &SubjectTemplate, (label, commit): (&str, &str)) -> Arm {
    let arm = subject.arm(commit, &builder.settings(commit), 0);
    Arm { name: format!("{} @{label}", subject.name), ..arm }
}

fn launchable(
    builder: &VersionBuilder,
    subject: &SubjectTemplate,
    version: &Built,
    first: bool,
    time_limit: Option<Duration>,
) -> Result<Prepared, Fault> {
    let (label, artefacts) = (&version.label, &version.artefacts);
    let settings = builder.settings(&version.commit);
    let folder: PathBuf = builder.cache.built(&artefacts.digest);
    let mut job = subject.job(label, &settings, 0, &folder, time_limit).map_err(|why| {
        Fault::usage(format!(
            "‘{}’ cannot be launched among the artefacts of ‘{label}’: {why}; --artifact names what to keep",
            subject.name
        ))
    })?;
    let mut arm = arm(builder, subject, (label, &version.commit));
    job.name.clone_from(&arm.name);
    let reading = |key: &str, value: u64, source: &str| Some(Reading::of(metric(key)?, value as f64, source));
    let readings = [
        reading("build.time", artefacts.time, "the build steps' elapsed time"),
        reading("build.bytes", artefacts.bytes, "sizes of files"),
    ];
    if first && !settings.steps.is_empty() {
        add_readings(&mut arm, readings.into_iter().flatten(), Pass::Build, 0);
    }
    Ok(Prepared { arm, job, hooks: Hooks::default() })
}
