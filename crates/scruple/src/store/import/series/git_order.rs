//! The order of versions that have the same time, as git knows it.

use crate::git::Repository;
use std::path::Path;

/// If more versions than this have one time, the times do not order them at all, and they stay as they are.
const MOST: usize = 50;

/// Puts versions of equal times, which are neighbours, into the order of their descent, if the repository of the working
/// folder has them. Returns the number of versions whose order stays that of the text.
pub(super) fn order(versions: &mut [(String, Option<i64>)]) -> usize {
    let repository = Repository::at(Path::new("."));
    let descends = |from: &str, to: &str| {
        let words = ["merge-base", "--is-ancestor", from, to];
        repository.ask(words).is_ok()
    };
    order_by(versions, &descends)
}

fn order_by(versions: &mut [(String, Option<i64>)], descends: &dyn Fn(&str, &str) -> bool) -> usize {
    let mut unknown = 0;
    for tied in versions.chunk_by_mut(|one, other| one.1 == other.1).filter(|tied| tied.len() > 1) {
        let is_commit = |id: &str| id.len() >= 7 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        // A commit that the repository has is its own ancestor.
        let known = |id: &str| is_commit(id) && descends(id, id);
        if tied.len() > MOST || !tied.iter().all(|(id, _)| known(id)) {
            unknown += tied.len();
            continue;
        }
        let mut sorted: Vec<(String, Option<i64>)> = Vec::with_capacity(tied.len());
        for version in tied.iter() {
            let later = sorted.iter().position(|(placed, _)| descends(&version.0, placed));
            sorted.insert(later.unwrap_or(sorted.len()), version.clone());
        }
        tied.clone_from_slice(&sorted);
    }
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_neighbours_of_one_time_that_git_knows_are_put_into_its_order() {
        let line = ["aaaaaaa", "bbbbbbb", "ccccccc"];
        let place = |id: &str| line.iter().position(|known| *known == id);
        let descends = |from: &str, to: &str| place(from).is_some_and(|from| place(to) >= Some(from));
        let with_times = |all: &[(&str, i64)]| -> Vec<(String, Option<i64>)> {
            all.iter().map(|(id, time)| ((*id).to_owned(), Some(*time))).collect()
        };
        let mut tied = with_times(&[("ddddddd", 1), ("ccccccc", 2), ("aaaaaaa", 2), ("bbbbbbb", 2)]);
        assert_eq!(order_by(&mut tied, &descends), 0);
        assert_eq!(tied, with_times(&[("ddddddd", 1), ("aaaaaaa", 2), ("bbbbbbb", 2), ("ccccccc", 2)]));
        let mut unknown = with_times(&[("ccccccc", 2), ("--upload", 2)]);
        assert_eq!(order_by(&mut unknown, &descends), 2);
        assert_eq!(unknown[0].0, "ccccccc");
    }
}
