//! How the versions of a selection descend from each other, and which commits between them the selection leaves out. A
//! left-out commit may have caused a change that is seen at a listed version.

use super::selected_version::SelectedVersion;
use super::source_repository::Source;
use crate::fault::Fault;
use std::collections::{HashMap, HashSet};

/// Sets two fields of each listed version, which are given oldest first: the listed versions that it directly follows,
/// and the left-out commits within these revisions that it adds. Commits before the first version are ignored.
pub fn find(
    source: &Source,
    within: &[&str],
    first_parent: bool,
    listed: &mut [SelectedVersion],
) -> Result<(), Fault> {
    let Some(first) = listed.first() else { return Ok(()) };
    let before = format!("^{}", first.version.commit);
    let mut words = vec!["rev-list", "--parents"];
    words.extend(first_parent.then_some("--first-parent"));
    words.push("--end-of-options");
    words.extend(within);
    words.extend([before.as_str(), "--"]);
    let answer = source.repository.ask(&words);
    let answer = answer.map_err(|refused| refused.fault("cannot list the commits between the versions"))?;
    let parents: HashMap<&str, Vec<&str>> = answer
        .lines()
        .filter_map(|line| {
            let mut ids = line.split_whitespace();
            let followed = if first_parent { 1 } else { usize::MAX };
            Some((ids.next()?, ids.take(followed).collect()))
        })
        .collect();
    let ids: Vec<String> = listed.iter().map(|one| one.version.commit.clone()).collect();
    let chosen: HashSet<&str> = ids.iter().map(String::as_str).collect();
    let follows: Vec<Vec<String>> = ids.iter().map(|id| nearest(id, &parents, &chosen)).collect();
    for (one, follows) in listed.iter_mut().zip(follows) {
        one.version.follows = follows;
        if !first_parent {
            detach_from_branches(source, one, |parent| {
                parents.contains_key(parent) || chosen.contains(parent)
            });
        }
    }
    let mut seen: HashSet<&str> = HashSet::new();
    for (one, id) in listed.iter_mut().zip(&ids) {
        let mut open = vec![id.as_str()];
        while let Some(commit) = open.pop() {
            let Some(parents) = parents.get(commit).filter(|_| seen.insert(commit)) else { continue };
            if !chosen.contains(commit) {
                one.left_out.push(commit.to_owned());
            }
            open.extend(parents);
        }
        one.version.left_out = one.left_out.len();
    }
    Ok(())
}

/// Sets the same fields for versions between which no commits are left out.
pub fn directly(source: &Source, first_parent: bool, listed: &mut [SelectedVersion]) {
    let ids: HashSet<String> = listed.iter().map(|one| one.version.commit.clone()).collect();
    for one in listed {
        let parents = one.version.parents.iter().take(if first_parent { 1 } else { usize::MAX });
        one.version.follows = parents.filter(|parent| ids.contains(*parent)).cloned().collect();
        if !first_parent {
            detach_from_branches(source, one, |parent| ids.contains(parent));
        }
    }
}

/// Lets a merge follow nothing if the line that it continues is not in the range, unless one of the versions that it
/// follows descends from that line. Otherwise these versions are only branches: the line may have differed from them
/// before the range, and the merge would seem to cause that difference.
fn detach_from_branches(source: &Source, merge: &mut SelectedVersion, in_range: impl Fn(&str) -> bool) {
    let follows = &merge.version.follows;
    let Some(line) = merge.version.parents.first().filter(|line| !follows.is_empty() && !in_range(line))
    else {
        return;
    };
    let behind = |branch: &String| {
        source.repository.ask(["merge-base", "--is-ancestor", line.as_str(), branch.as_str()]).is_ok()
    };
    if !follows.iter().any(behind) {
        merge.version.follows.clear();
    }
}

/// Returns the nearest chosen ancestors of a commit; those reached through the first parent come first.
fn nearest(id: &str, parents: &HashMap<&str, Vec<&str>>, chosen: &HashSet<&str>) -> Vec<String> {
    let before = |id: &str| parents.get(id).into_iter().flatten().rev().copied();
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let mut open: Vec<&str> = before(id).collect();
    while let Some(commit) = open.pop() {
        if !seen.insert(commit) {
            continue;
        }
        match chosen.contains(commit) {
            true => found.push(commit.to_owned()),
            false => open.extend(before(commit)),
        }
    }
    found
}
