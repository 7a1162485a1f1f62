//! Decides which of several versions with the same artefacts is weighed to represent them all.

use crate::store::StoredVersion;
use crate::versions::build::VersionBuilder;
use scruple_core::history::VersionState;
use std::collections::HashMap;

/// Makes sure that exactly one of the listed versions with the same artefacts is weighed, and that the others refer to
/// it. An earlier selection may have left out their representative, which a later one includes again.
pub fn elect(entries: &mut [StoredVersion], builder: &VersionBuilder) {
    let groups = groups(entries, builder);
    for group in groups {
        let built = |index: &&usize| entries[**index].version.state == VersionState::Built;
        // A version that was counted already needs less work than the others.
        let counted = |index: &&usize| (entries[**index].counted, std::cmp::Reverse(**index));
        let elected = group.iter().filter(built).max_by_key(counted).or(group.iter().max_by_key(counted));
        let Some(elected) = elected.copied() else { continue };
        let commit = entries[elected].version.commit.clone();
        for index in group {
            let version = &mut entries[index].version;
            (version.state, version.same_as) = match index == elected {
                true => (VersionState::Built, None),
                false => (VersionState::SameBinary, Some(commit.clone())),
            };
        }
    }
}

/// Returns groups of indices of versions that are weighed as one.
fn groups(entries: &[StoredVersion], builder: &VersionBuilder) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let (mut by_commit, mut by_build) = (HashMap::new(), HashMap::new());
    // A repeated build may differ byte for byte, so versions also belong together if one refers to the other.
    for state in [VersionState::Built, VersionState::SameBinary] {
        for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.version.state == state) {
            let version = &entry.version;
            let commit = version.same_as.as_ref().unwrap_or(&version.commit);
            let settings = builder.settings(&version.commit);
            let build = entry.artefacts.clone().map(|digest| (digest, settings.params, settings.env));
            let known = by_commit.get(commit).or(build.as_ref().and_then(|build| by_build.get(build)));
            let group = known.copied().unwrap_or(groups.len());
            if group == groups.len() {
                groups.push(Vec::new());
            }
            groups[group].push(index);
            by_commit.entry(commit.clone()).or_insert(group);
            by_build.extend(build.map(|build| (build, group)));
        }
    }
    groups
}
