//! Tests that damaged profiles of the Haskell runtime give an error or less data, but never a panic.

use scruple_fuzz::Corpus;
use scruple_measure::runtimes::ghc::{cost_centres, heap_profile, log, report};

#[test]
fn damaged_profiles_and_logs_of_haskell_are_survived() {
    let corpus = Corpus::folder(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/runtimes/ghc"));
    corpus.is_survived_by_text(|text| {
        let _ = (report::read(text), report::page(text), report::one_line(text));
        if let Ok(profile) = cost_centres::read(text) {
            drop(profile.folded(|node| node.ticks));
        }
        if let Ok(profile) = heap_profile::read(text) {
            let _ = (profile.largest(), profile.peak().map(heap_profile::HeapSample::total));
        }
        if let Some(log) = log::read(text) {
            let _ = (log.longest_pause(), log.pause(0.99), log.residency());
        }
    });
}
