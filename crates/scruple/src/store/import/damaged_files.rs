//! Tests that damaged files of other tools cause an error or are read in part, but never cause a panic.

use super::*;
use scruple_fuzz::Corpus;
use std::path::PathBuf;

#[test]
fn damaged_files_of_every_tool_are_survived_by_every_reader() {
    let corpus = Corpus::folder(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/import"));
    corpus.is_survived_by_text(|text| {
        for format in recognise(text).into_iter().chain([Format::Go, Format::Weigh, Format::Criterion]) {
            drop(read(format, text));
        }
    });
}

#[test]
fn damaged_series_are_survived() {
    Corpus::named("series").is_survived_by_text(|text| {
        let _ = (
            series::columns::recognises(text),
            series::json::recognises(text),
            series::asv::recognises(text),
        );
        drop((series::columns::read(text, "own"), series::json::read(text, "own"), series::asv::read(text)));
    });
}
