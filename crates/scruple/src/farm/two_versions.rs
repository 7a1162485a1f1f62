//! Two versions that the nodes of a farm weigh: they are built once, and every node takes the same artefacts.

use super::Farm;
use super::same_version::VERSION;
use super::unit_data::{BuiltBy, BuiltVersion, UnitFile, UnitOutcome, UnitWork, Versions, WorkUnit, text};
use crate::command::arms::Prepared;
use crate::fault::Fault;
use crate::git::Repository;
use crate::versions::SubjectTemplate;
use crate::versions::build::VersionBuilder;
use crate::versions::source_repository::key;
use crate::versions::two_revisions::{
    Built, ChosenVersions, Remarks, changed, not_built, prepare, ready, tree,
};
use scruple_core::metric::Pass;
use scruple_core::sample::Figure;
use scruple_measure::error_output::shown_lines;
use std::collections::HashSet;
use std::time::Duration;

/// What nodes need in order to build and weigh two versions.
pub struct VersionsForNodes {
    /// The units that build versions.
    pub builds: Vec<WorkUnit>,
    /// The versions, as the units that weigh them name them.
    pub versions: Versions,
    /// The lock of the folder of builds.
    _hold: VersionBuilder,
}

/// Builds what this machine has to build, and plans units for the other versions. This machine builds both versions
/// if the configuration says so, and the working tree in any case, because nodes do not have its objects.
pub fn build(chosen: ChosenVersions, place: &str, farm: &Farm) -> Result<VersionsForNodes, Fault> {
    let ChosenVersions { mut builder, versions, uncommitted, .. } = chosen;
    let shared = match &farm.folder {
        Some(folder) => folder.join(key(place)),
        None => builder.cache.folder().to_owned(),
    };
    for part in ["built", "lists"].map(|part| shared.join(part)) {
        std::fs::create_dir_all(&part).map_err(|error| Fault::unwritable(&part, error))?;
    }
    let commits: HashSet<String> = versions.iter().map(|(_, commit)| commit.clone()).collect();
    let recipe = builder.recipe().for_commits(&commits);
    let objects = Repository::at(&builder.cache.tree());
    let changed = changed(&objects, &versions[0].1, &versions[1].1);
    let (mut builds, mut both) = (Vec::new(), Vec::new());
    for (number, (label, commit)) in versions.into_iter().enumerate() {
        let in_second_tree = number == 1;
        let built = if farm.builds_on_nodes() && !(in_second_tree && uncommitted) {
            let tree = tree(&builder, &label, &commit)?;
            let unit = WorkUnit {
                scruple: VERSION.to_owned(),
                place: place.to_owned(),
                origin: builder.origin().clone(),
                recipe: recipe.clone(),
                shared: shared.clone(),
                work: UnitWork::Build { commit: commit.clone(), tree },
            };
            let name = crate::digest::digest(&text(&UnitFile::Version(Box::new(unit.clone())))?);
            builds.push(unit);
            BuiltBy::Unit(name)
        } else {
            let one = ready(&mut builder, (label.clone(), commit.clone()), in_second_tree)?;
            builder.cache.share(&shared, &one.artefacts.digest)?;
            BuiltBy::Sender(one.artefacts)
        };
        both.push(BuiltVersion { label, commit, built });
    }
    let origin = builder.origin().clone();
    let versions = Versions { place: place.to_owned(), origin, recipe, shared, both, changed };
    Ok(VersionsForNodes { builds, versions, _hold: builder })
}

/// Takes the artefacts of both versions, and returns the arms of each subject, ready to be launched on this node, with
/// remarks. `outcome` returns the outcome of a unit. The costs of the builds and the remarks are the same on all nodes:
/// only the `first` node has them.
pub fn fetch(
    builder: &VersionBuilder,
    versions: &Versions,
    subjects: &[SubjectTemplate],
    time_limit: Option<Duration>,
    first: bool,
    outcome: impl Fn(&str) -> Result<UnitOutcome, Fault>,
) -> Result<(Vec<Prepared>, Remarks), Fault> {
    let built = |version: &BuiltVersion| -> Result<Built, Fault> {
        let BuiltVersion { label, commit, built } = version;
        let artefacts = match built {
            BuiltBy::Sender(artefacts) => artefacts.clone(),
            BuiltBy::Unit(unit) => match outcome(unit)? {
                UnitOutcome::Built(artefacts) => artefacts,
                UnitOutcome::NotBuilt { why, log, .. } => {
                    return Err(not_built(label, &why, "its log", &shown_lines(log.as_bytes())));
                }
                _ => return Err(Fault::internal("a unit that was to build a version has weighed some")),
            },
        };
        if !builder.cache.fetch(&versions.shared, &artefacts.digest)? {
            return Err(Fault::usage(format!(
                "the artefacts of ‘{label}’ are not in ‘{}’: all nodes must see that folder; [farm] folder names another one",
                versions.shared.display()
            )));
        }
        Ok(Built { label: label.clone(), commit: commit.clone(), artefacts })
    };
    let [old, new] = &versions.both[..] else {
        return Err(Fault::internal("a unit that compares has other than two versions"));
    };
    let (old, new, mut remarks) = (built(old)?, built(new)?, Vec::new());
    let pair = [&old, &new];
    let (mut prepared, _) = prepare(builder, subjects, pair, &versions.changed, time_limit, &mut remarks)?;
    if !first {
        remarks.clear();
        let of_build =
            |figure: &Figure| matches!(figure, Figure::Sample(sample) if sample.pass == Pass::Build);
        prepared.iter_mut().for_each(|one| one.arm.figures.retain(|_, figure| !of_build(figure)));
    }
    Ok((prepared, remarks))
}
