//! All descendants of a process.

use crate::process_stat::shows_own_namespace;
use std::fs;

/// The processes below `root` in the kernel's lists of children, parents before their children. There are none where
/// `/proc` shows another namespace, whose numbers mean other processes here.
pub(crate) fn descendants(root: i32) -> Vec<i32> {
    let mut found: Vec<i32> = Vec::new();
    let mut next = 0;
    let mut parent = Some(root).filter(|_| shows_own_namespace());
    while let Some(pid) = parent {
        for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|word| word.parse().ok()) {
                if !found.contains(&child) {
                    found.push(child);
                }
            }
        }
        parent = found.get(next).copied();
        next += 1;
    }
    found
}
