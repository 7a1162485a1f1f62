//! Tests with many threads at once, and with many threads one after the other.

use std::process::Command;

use scruple_measure::heap::LiveBytes;

use crate::harness::Workshop;

/// The counts of `threads.c` without those of starting the threads.
fn work(peak: LiveBytes, arguments: &[&str]) -> (u64, u64, u64, scruple_measure::heap::Totals) {
    let workshop = Workshop::new();
    let program = workshop.c("threads.c", &["-pthread"]);
    let run = |blocks: &str| {
        let mut command = Command::new(&program);
        command.args([arguments[0], blocks]).args(&arguments[1..]);
        let counted = workshop.count(peak, &mut command);
        assert!(counted.output.status.success());
        counted.totals
    };
    let (idle, busy) = (run("0").counts(), run("50"));
    let counts = busy.counts();
    (counts.allocations - idle.allocations, counts.bytes - idle.bytes, counts.frees - idle.frees, busy)
}

#[test]
fn two_thousand_short_threads_share_a_few_slots() {
    let (allocations, bytes, frees, totals) = work(LiveBytes::Usable, &["2000"]);
    assert_eq!((allocations, bytes, frees), (100_000, 10_000_000, 98_000));
    assert_eq!(totals.threads(), 2001);
    let live = totals.counts().live.unwrap();
    assert!(live.peak_error < 64 * 65536, "slots were not reused: {live:?}");
}

#[test]
fn sixty_four_threads_at_once_lose_nothing() {
    let (allocations, bytes, frees, totals) = work(LiveBytes::Usable, &["64", "together"]);
    assert_eq!((allocations, bytes, frees), (3200, 320_000, 3136));
    assert_eq!(totals.threads(), 65);
    let live = totals.counts().live.unwrap();
    assert_eq!(live.peak_error, 64 * 65536);
    assert!(live.peak as i64 >= live.bytes);
}

#[test]
fn two_thousand_threads_at_once_lose_nothing() {
    let (allocations, bytes, frees, totals) = work(LiveBytes::Off, &["2000", "together"]);
    assert_eq!((allocations, bytes, frees), (100_000, 10_000_000, 98_000));
    assert_eq!((totals.threads(), totals.refused), (2001, 0));
}

#[test]
fn the_peak_of_several_threads_is_within_the_stated_error() {
    let (.., totals) = work(LiveBytes::Requested, &["8", "together"]);
    let live = totals.counts().live.unwrap();
    let most = totals.counts().bytes;
    assert!(live.peak <= most + live.peak_error && live.peak + live.peak_error >= live.bytes as u64);
}
