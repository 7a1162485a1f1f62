//! Tests live and peak memory against the program's own account, and on programs where they are known by
//! construction.

use scruple_measure::heap::{LiveBytes, LiveMemory};

use crate::harness::Workshop;

#[test]
fn usable_bytes_are_those_of_malloc_usable_size() {
    let workshop = Workshop::new();
    let program = workshop.c("peak.c", &[]);
    let counted = workshop.count(LiveBytes::Usable, &mut std::process::Command::new(&program));
    let text = String::from_utf8(counted.output.stdout).unwrap();
    let numbers: Vec<i64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let live = counted.totals.counts().live.unwrap();
    let expected =
        LiveMemory { peak: numbers[0] as u64, bytes: numbers[1], freed: numbers[2] as u64, peak_error: 0 };
    assert_eq!(live, expected);
}

#[test]
fn requested_bytes_are_exact() {
    let workshop = Workshop::new();
    let totals = workshop.count_plain(LiveBytes::Requested, &workshop.c("entry_points.c", &[]));
    let small = 100 + 200 + 300;
    let expected = LiveMemory {
        peak: 4 + small + (3 << 20),
        bytes: small as i64,
        freed: totals.counts().bytes - small,
        peak_error: 0,
    };
    assert_eq!(totals.counts().live, Some(expected));
}

#[test]
fn counting_alone_keeps_no_live_memory() {
    let workshop = Workshop::new();
    let totals = workshop.count_plain(LiveBytes::Off, &workshop.c("entry_points.c", &[]));
    assert_eq!(totals.counts().live, None);
    assert!(totals.largest_peak().is_none());
}

#[test]
fn a_forked_child_begins_with_its_parents_memory() {
    let workshop = Workshop::new();
    let totals = workshop.count_plain(LiveBytes::Requested, &workshop.c("forks.c", &[]));
    let live: Vec<(i64, u64)> = totals
        .processes
        .iter()
        .map(|process| process.counts.live.unwrap())
        .map(|l| (l.bytes, l.peak))
        .collect();
    assert_eq!(live, [(10_000, 10_000), (10_150, 10_150), (10_290, 10_290)]);
}

#[test]
fn a_program_reads_its_own_counts() {
    let workshop = Workshop::new();
    let program = workshop.c("snapshot.c", &[]);
    let numbers = |counted: crate::harness::CountedRun| String::from_utf8(counted.output.stdout).unwrap();
    let run = |peak| numbers(workshop.count(peak, &mut std::process::Command::new(&program)));
    assert_eq!(run(LiveBytes::Requested), "2 1024 1 1000 24 1000 0 0 \n");
    assert_eq!(run(LiveBytes::Usable), "2 1024 1 1000 24 1000 0 0 \n");
    assert_eq!(run(LiveBytes::Off), "2 1024 1 0 0 0 0 0 \n");
    let alone = std::process::Command::new(&program).output().unwrap();
    assert_eq!(String::from_utf8(alone.stdout).unwrap(), "none\n");
}
