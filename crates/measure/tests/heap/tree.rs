//! Tests of the peak of all processes together.

use std::process::Command;

use scruple_measure::heap::{LiveBytes, Totals};

use crate::harness::{Workshop, skip};

const BLOCK: u64 = 10_000_000;

fn run(workshop: &Workshop, words: &[&str]) -> Totals {
    let program = workshop.path().join("family");
    workshop.count(LiveBytes::Requested, Command::new(program).args(words)).totals
}

/// Checks that the tree's peak is that of this number of blocks, within the stated error.
fn assert_blocks(totals: &Totals, blocks: u64, what: &str) {
    let tree = totals.tree.unwrap();
    assert!(tree.peak.abs_diff(blocks * BLOCK) <= tree.error + 2000, "{what}: {totals:?}");
    assert!(tree.error <= 3 * 65_536, "{what}: {tree:?}");
}

#[test]
fn memory_of_concurrent_processes_adds_up() {
    let workshop = Workshop::new();
    workshop.c("family.c", &[]);
    let totals = run(&workshop, &["together"]);
    assert_blocks(&totals, 1 + 2 + 3, "together");
    // The live bytes of the largest process include its parent's block.
    assert!(totals.largest_peak().unwrap().1.peak.abs_diff(4 * BLOCK) < 2000);
}

#[test]
fn ended_processes_no_longer_count() {
    let workshop = Workshop::new();
    workshop.c("family.c", &[]);
    for end in ["exit", "_exit", "kill"] {
        assert_blocks(&run(&workshop, &["in turn", end]), 1 + 3, end);
    }
}

#[test]
fn a_program_that_becomes_another_leaves_nothing_behind() {
    let workshop = Workshop::new();
    workshop.c("family.c", &[]);
    let totals = run(&workshop, &["exec", "2"]);
    assert_eq!(totals.processes.len(), 3);
    assert_blocks(&totals, 4, "exec");
}

#[test]
fn the_tree_of_a_single_process_peaks_with_it() {
    let workshop = Workshop::new();
    for (name, peak) in [("peak.c", LiveBytes::Usable), ("entry_points.c", LiveBytes::Requested)] {
        let totals = workshop.count_plain(peak, &workshop.c(name, &[]));
        let tree = totals.tree.unwrap();
        assert_eq!((tree.peak, tree.error), (totals.largest_peak().unwrap().1.peak, 0));
    }
    let totals = workshop.count_plain(LiveBytes::Off, &workshop.c("peak.c", &[]));
    assert_eq!(totals.tree, None);
}

#[test]
fn more_processes_at_once_than_can_be_followed_have_no_peak_of_their_tree() {
    let workshop = Workshop::new();
    workshop.c("crowd.c", &[]);
    let run = |count: &str| {
        let program = workshop.path().join("crowd");
        workshop.count(LiveBytes::Usable, Command::new(program).arg(count)).totals
    };
    let some = run("100");
    assert!(some.tree.unwrap().error <= 101 * 65_536, "{:?}", some.tree);
    assert_eq!((run("200").tree, some.processes.len()), (None, 101));
}

/// Two processes of different namespaces may have the same id, and cannot ask whether the other still runs.
#[test]
fn processes_of_another_namespace_have_no_peak_of_their_tree() {
    let workshop = Workshop::new();
    let program = workshop.c("peak.c", &[]);
    let mut command = Command::new("unshare");
    let run = workshop.count(LiveBytes::Usable, command.args(["-rfp"]).arg(program));
    if !run.output.status.success() {
        return skip("namespaces cannot be made here");
    }
    assert!(run.totals.processes.len() >= 2 && run.totals.largest_peak().is_some(), "{:?}", run.totals);
    assert_eq!(run.totals.tree, None);
}
