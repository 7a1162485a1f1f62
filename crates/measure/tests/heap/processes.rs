//! Tests of all kinds of forks, of chains of exec, and of many processes.

use std::process::Command;

use scruple_measure::heap::{LiveBytes, ProcessOrigin};

use crate::harness::{Workshop, sums};

#[test]
fn every_kind_of_fork_gets_a_record_of_its_own() {
    let workshop = Workshop::new();
    let program = workshop.c("forks.c", &[]);
    for kind in ["fork", "_Fork", "clone"] {
        let counted = workshop.count(LiveBytes::Usable, Command::new(&program).arg(kind));
        let each: Vec<(ProcessOrigin, u64, u64)> = counted
            .totals
            .processes
            .iter()
            .map(|process| (process.origin, process.counts.allocations, process.counts.bytes))
            .collect();
        let expected =
            [(ProcessOrigin::Exec, 10, 10_000), (ProcessOrigin::Fork, 3, 150), (ProcessOrigin::Fork, 2, 140)];
        assert_eq!(each, expected, "{kind}");
        let [parent, child, grandchild] = counted.totals.processes.as_slice() else { panic!() };
        assert_eq!((child.parent, grandchild.parent), (parent.pid, child.pid));
        assert_eq!(child.exe, parent.exe);
    }
}

#[test]
fn a_vforked_child_counts_with_its_parent() {
    let workshop = Workshop::new();
    let program = workshop.c("forks.c", &[]);
    let counted = workshop.count(LiveBytes::Usable, Command::new(&program).arg("vfork"));
    assert_eq!(sums(&counted.totals), (15, 10_250, 0));
    assert_eq!(counted.totals.processes.len(), 1);
}

#[test]
fn the_peak_contains_what_a_vforked_child_allocates_before_its_parent() {
    let workshop = Workshop::new();
    let program = workshop.c("forks.c", &[]);
    let counted = workshop.count(LiveBytes::Requested, Command::new(&program).arg("vfork-first"));
    assert_eq!(sums(&counted.totals), (5, 250, 0));
    assert_eq!(counted.totals.largest_peak().map(|(_, live)| live.peak), Some(250));
}

#[test]
fn a_chain_of_programs_is_followed() {
    let workshop = Workshop::new();
    let program = workshop.c("chain.c", &[]);
    let counted = workshop.count(LiveBytes::Off, Command::new(&program).arg("5"));
    assert!(counted.output.status.success());
    let bytes: Vec<u64> = counted.totals.processes.iter().map(|process| process.counts.bytes).collect();
    assert_eq!(bytes, [6, 5, 4, 3, 2, 1]);
    let first = counted.totals.processes[0].pid;
    assert!(counted.totals.processes.iter().all(|process| process.pid == first));
    assert!(counted.totals.is_complete(), "{:?}", counted.totals.unseen);
}

#[test]
fn two_thousand_processes_are_all_there() {
    let workshop = Workshop::new();
    let program = workshop.c("many.c", &[]);
    let counted = workshop.count(LiveBytes::Usable, Command::new(&program).arg("2000"));
    assert_eq!(sums(&counted.totals), (2000, 14_000, 0));
    assert_eq!(counted.totals.processes.len(), 2001);
    assert_eq!(counted.totals.refused, 0);
}

#[test]
fn a_shell_and_what_it_starts_are_counted_one_by_one() {
    let workshop = Workshop::new();
    let program = workshop.c("entry_points.c", &[]);
    let script = format!("for i in 1 2 3; do {} ; done | cat", program.display());
    let counted = workshop.count(LiveBytes::Usable, Command::new("/bin/sh").args(["-c", &script]));
    let ours = counted.totals.processes.iter().filter(|process| process.exe.ends_with("/entry_points"));
    let each: Vec<u64> = ours.map(|process| process.counts.allocations).collect();
    assert_eq!(each, [114, 114, 114]);
    assert!(counted.totals.is_complete(), "{:?}", counted.totals.unseen);
}
