use super::is_collector;
use crate::explain::allocator::tests::{explained, tree};
use crate::explain::{Explanation, PartKind, Tree};

/// A program in which a scheduler runs `work`, which has `own` instructions of its own, and a collector, which it runs
/// `collections` times with its callees.
fn collecting(collector: &str, own: u64, collections: u64) -> Tree {
    tree(&[
        (0, "", "", 1, 0),
        (0, "schedule", "program", 1, 1_000),
        (1, "work", "program", 1, own),
        (1, collector, "program", collections, 10 * collections),
        (3, "evacuate", "program", 9 * collections, 90 * collections),
    ])
}

fn rows(found: &Explanation) -> Vec<(&str, f64, bool)> {
    found.rows.iter().map(|row| (row.name.as_str(), row.delta, row.is_consequence())).collect()
}

#[test]
fn collections_are_a_consequence_and_not_an_origin() {
    for collector in ["scheduleDoGC", "runtime.gcBgMarkStartWorkers.gowrap1"] {
        let few = collecting(collector, 500, 4);
        let found = explained(&few, &collecting(collector, 700, 40), "work");
        assert_eq!(rows(&found), [("work", 200.0, false), (collector, 3_600.0, true)], "{found:#?}");
        let part = &found.rows[1].parts[0];
        assert_eq!((part.kind, part.site.as_deref(), part.calls), (PartKind::Calls, None, (4, 40)));
        let rest = found.without_consequences();
        assert_eq!((rest.delta(), rest.rows.len()), (200.0, 1));
        // The function that differs stands first although its code is the same, and then there is no other.
        let found = explained(&few, &collecting(collector, 700, 40), "");
        assert_eq!(rows(&found)[0], ("work", 200.0, false), "{found:#?}");
        let found = explained(&few, &collecting(collector, 500, 40), "");
        assert_eq!(rows(&found), [(collector, 3_600.0, true)], "{found:#?}");
    }
}

#[test]
fn a_collector_with_other_code_is_an_origin() {
    let (few, many) = (collecting("scheduleDoGC", 500, 4), collecting("scheduleDoGC", 700, 40));
    let found = explained(&few, &many, "evacuate");
    assert_eq!(rows(&found), [("scheduleDoGC", 3_600.0, false), ("work", 200.0, false)], "{found:#?}");
}

#[test]
fn collectors_are_known_by_file_and_name() {
    assert!(is_collector("program", "runtime.gcBgMarkStartWorkers.func1"));
    assert!(!is_collector("program", "runtime.gcBgMarkStartWorkersLater"));
    assert!(!is_collector("libother.so", "GarbageCollect"));
}
