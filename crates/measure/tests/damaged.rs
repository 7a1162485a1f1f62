//! Tests that damaged profiles of the Haskell runtime, recordings and scenarios give an error or less data, but never a
//! panic.

use scruple_fuzz::Corpus;
use scruple_measure::load::{access_log, har, request_file, scenario};
use scruple_measure::runtimes::ghc::{cost_centres, heap_profile, log, report};
use std::path::Path;

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

#[test]
fn damaged_recordings_of_requests_are_survived() {
    assert!(har(include_str!("../../fuzz/corpus/har/visit.har")).is_ok());
    Corpus::named("har").is_survived_by_text(|text| drop(har(text)));
    assert!(access_log(include_str!("../../fuzz/corpus/access-log/combined.log")).is_ok());
    Corpus::named("access-log").is_survived_by_text(|text| drop(access_log(text)));
}

#[test]
fn damaged_scenarios_and_files_of_requests_are_survived() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/load"));
    for whole in ["weighted", "sessions"] {
        let path = format!("{}/../fuzz/corpus/scenario/{whole}.toml", env!("CARGO_MANIFEST_DIR"));
        scenario(&std::fs::read_to_string(path).expect("a file"), folder).expect("a scenario");
    }
    Corpus::named("scenario").is_survived_by_text(|text| drop(scenario(text, folder)));
    assert!(request_file(include_str!("../../fuzz/corpus/requests/lines.txt"), folder).is_ok());
    Corpus::named("requests").is_survived_by_text(|text| drop(request_file(text, folder)));
}
