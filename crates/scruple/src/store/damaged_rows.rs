//! Tests that rows whose texts another program changed cause an error or other figures, but never a panic.

use super::Store;
use super::migrations::MIGRATIONS;
use crate::address::StoreAddress;
use scruple_core::metric::{Pass, metric};
use scruple_core::provenance::Provenance;
use scruple_core::run::{Run, RunState, Terms, Warning};
use scruple_core::sample::Reading;
use scruple_core::subject::{Arm, Parameter, Role, Subject};
use scruple_fuzz::Corpus;
use std::cell::Cell;

/// The columns that hold words or JSON.
const COLUMNS: [(&str, &str); 16] = [
    ("run", "state"),
    ("run", "seed"),
    ("run", "argv"),
    ("run", "terms"),
    ("run", "provenance"),
    ("run", "warnings"),
    ("arm", "role"),
    ("arm", "subject"),
    ("arm", "params"),
    ("sample", "pass"),
    ("sample", "unit"),
    ("sample", "quality"),
    ("sample", "readings"),
    ("sample", "blocks"),
    ("journal", "pass"),
    ("journal", "readings"),
];

fn run(id: &str) -> Run {
    let subject = Subject::Command { argv: vec!["app".to_owned(), "x y".to_owned()] };
    let params = [("n".to_owned(), Parameter::Number(3.0))];
    Run {
        id: id.to_owned(),
        label: Some("v1".to_owned()),
        started: 1,
        state: RunState::Running,
        seed: 7,
        argv: vec!["scruple".to_owned(), "run".to_owned()],
        terms: Terms::default(),
        provenance: Provenance::default(),
        arms: vec![Arm { params: params.into(), ..Arm::new("app", subject, Role::Subject) }],
        warnings: vec![Warning { code: "left-behind".into(), text: "text".to_owned() }],
    }
}

#[test]
fn damaged_rows_are_survived() {
    assert!(!MIGRATIONS.is_empty());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = Store::open(&StoreAddress::File(path.clone())).expect("a store");
    let time = metric("time.wall").expect("declared");
    for id in ["whole", "cut-short"] {
        let mut run = run(id);
        store.begin(&run).expect("begun");
        for block in 0..3 {
            let reading = Reading::of(time, f64::from(block) + 0.5, "the clock");
            let readings = std::slice::from_ref(&reading);
            store.journal(id, block.into(), 0, Pass::Timing, block, readings).expect("journalled");
            super::add_readings(&mut run.arms[0], [reading], Pass::Timing, block);
        }
        if id == "whole" {
            run.state = RunState::Complete;
            store.finish(&run).expect("finished");
        }
    }
    let other = rusqlite::Connection::open(&path).expect("the same file");
    other.execute_batch("PRAGMA synchronous = OFF; PRAGMA busy_timeout = 60000").expect("settings");
    let mut corpus = Corpus::default();
    for (table, column) in COLUMNS {
        let query = format!("SELECT CAST({column} AS TEXT) FROM {table} WHERE {column} IS NOT NULL LIMIT 1");
        let text: String = other.query_row(&query, [], |row| row.get(0)).expect("a row");
        corpus = corpus.with(&format!("{table}.{column}"), text);
    }
    let next = Cell::new(0);
    corpus.is_survived_by_text(|text| {
        let (table, column) = COLUMNS[next.replace((next.get() + 1) % COLUMNS.len())];
        let kept: Vec<(i64, Option<String>)> = other
            .prepare(&format!("SELECT rowid, {column} FROM {table}"))
            .and_then(|mut rows| rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
            .expect("rows");
        other.execute(&format!("UPDATE {table} SET {column} = ?1"), [text]).expect("changed");
        for id in ["whole", "cut-short"] {
            let _ = store.find(id);
        }
        let _ = store.list(10);
        for (row, text) in kept {
            let restore = format!("UPDATE {table} SET {column} = ?1 WHERE rowid = ?2");
            other.execute(&restore, rusqlite::params![text, row]).expect("restored");
        }
    });
    assert!(store.find("whole").is_ok_and(|run| run.arms[0].sample("time.wall").is_some()));
}
