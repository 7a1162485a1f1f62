//! Tests that every entry point counts as it should, however the program ends, and with each C library.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use scruple_measure::heap::{LiveBytes, ProcessOrigin};

use crate::harness::{Workshop, found, sums};

/// The allocations, bytes and frees of `entry_points.c`, summed call by call.
fn entry_points() -> (u64, u64, u64) {
    let single: [(u64, u64, u64); 12] = [
        (1, 10, 1),  // malloc, free
        (1, 0, 1),   // malloc(0), free
        (1, 21, 0),  // calloc
        (1, 100, 1), // realloc to more
        (1, 4, 1),   // realloc to less
        (1, 5, 1),   // realloc of nothing, realloc to 0
        (1, 100, 1), // reallocarray
        (1, 100, 1), // posix_memalign
        (1, 512, 1), // aligned_alloc, free_aligned_sized
        (1, 33, 1),  // memalign, free_sized
        (1, 11, 1),  // valloc, cfree
        (1, 12, 1),  // pvalloc
    ];
    let many = (100, 100 * 5050, 97);
    let large = (2, (1 << 20) + (3 << 20), 2);
    let last = (0, 0, 1);
    single
        .into_iter()
        .chain([many, large, last])
        .fold((0, 0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1, sum.2 + each.2))
}

#[test]
fn every_entry_point_counts_in_every_mode() {
    let workshop = Workshop::new();
    let program = workshop.c("entry_points.c", &[]);
    for peak in [LiveBytes::Off, LiveBytes::Usable, LiveBytes::Requested] {
        let totals = workshop.count_plain(peak, &program);
        assert_eq!(sums(&totals), entry_points(), "{peak:?}");
        assert_eq!(totals.counts().live_blocks(), 3);
        assert!(totals.is_complete() && totals.refused == 0);
    }
}

#[test]
fn calls_that_fail_for_want_of_memory_count_for_nothing() {
    let workshop = Workshop::new();
    let program = workshop.c("limited.c", &[]);
    let mut itself = Command::new(&program);
    itself.arg("itself");
    let mut from_outside = Command::new("sh");
    from_outside.args(["-c", "ulimit -v 65536; exec \"$0\""]).arg(&program);
    for (mut command, by) in [(itself, "itself"), (from_outside, "the shell")] {
        for peak in [LiveBytes::Off, LiveBytes::Usable] {
            let counted = workshop.count(peak, &mut command);
            assert!(counted.output.status.success(), "{by}: {:?}", counted.output);
            let output = String::from_utf8_lossy(&counted.output.stdout);
            let blocks: u64 = output.trim().parse().expect("a number of blocks");
            let of_program = counted.totals.processes.iter().find(|one| one.exe.ends_with("/limited"));
            let counts = of_program.expect("a record").counts;
            assert!(blocks > 1000, "{blocks}");
            assert_eq!(
                (counts.allocations, counts.bytes),
                (blocks + 1, blocks * 1000 + 10),
                "{by}, {peak:?}"
            );
        }
    }
}

#[test]
fn nothing_is_lost_at_exit_without_ceremony_or_by_a_signal() {
    let workshop = Workshop::new();
    let program = workshop.c("entry_points.c", &[]);
    for (end, signal) in [("_exit", None), ("kill", Some(9))] {
        let counted = workshop.count(LiveBytes::Usable, Command::new(&program).arg(end));
        assert_eq!(counted.output.status.signal(), signal);
        assert_eq!(sums(&counted.totals), entry_points(), "{end}");
    }
}

#[test]
fn a_program_that_never_allocates_has_a_record_of_zero() {
    let workshop = Workshop::new();
    let totals = workshop.count_plain(LiveBytes::Usable, &workshop.c("nothing.c", &[]));
    assert_eq!(sums(&totals), (0, 0, 0));
    let [process] = totals.processes.as_slice() else { panic!("{totals:?}") };
    assert_eq!(process.origin, ProcessOrigin::Exec);
    assert!(process.exe.ends_with("/nothing") && process.threads == 0 && !process.foreign_malloc);
}

#[test]
fn musl_counts_the_same_with_the_same_library() {
    if found("musl-gcc").is_none() {
        return;
    }
    let workshop = Workshop::new();
    let program = workshop.compile("musl-gcc", "entry_points.c", &["-DMUSL"]);
    for peak in [LiveBytes::Off, LiveBytes::Usable, LiveBytes::Requested] {
        let (allocations, bytes, frees) = entry_points();
        let expected = (allocations - 1, bytes - 12, frees - 1); // it has no pvalloc
        assert_eq!(sums(&workshop.count_plain(peak, &program)), expected, "{peak:?}");
    }
}

#[test]
fn operator_new_counts_once_through_malloc() {
    let workshop = Workshop::new();
    let program = workshop.compile("c++", "containers.cc", &["-std=c++17"]);
    let totals = workshop.count_plain(LiveBytes::Off, &program);
    // 300 by operator new, and at least a node, a key and a vector's storage for most entries; libstdc++ keeps one
    // pool block.
    let (allocations, _, frees) = sums(&totals);
    assert!(allocations - frees <= 1, "{totals:?}");
    assert!((2300..4400).contains(&allocations), "{totals:?}");
}

#[test]
fn a_rust_program_is_counted() {
    let Some(_) = found("rustc") else { return };
    let workshop = Workshop::new();
    let program = workshop.compile("rustc", "boxes.rs", &["-O"]);
    let totals = workshop.count_plain(LiveBytes::Off, &program);
    assert!(sums(&totals).0 >= 980 + 500 && sums(&totals).0 < 980 + 500 + 100, "{totals:?}");
    assert!(totals.counts().live_blocks().abs() <= 3, "{totals:?}");
}

#[test]
fn two_runs_agree() {
    let workshop = Workshop::new();
    let program = workshop.compile("c++", "containers.cc", &["-std=c++17"]);
    let one = sums(&workshop.count_plain(LiveBytes::Usable, &program));
    assert_eq!(one, sums(&workshop.count_plain(LiveBytes::Requested, &program)));
}
