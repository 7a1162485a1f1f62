//! The verbs of `scruple store` that change, check and export the stored runs.

mod damaged;
mod server;
mod stored_runs;

use crate::support::{Answer, Place};
use rusqlite::Connection;
use serde_json::Value;

/// A place with three runs, the first of which has a label.
fn with_runs() -> Place {
    let place = Place::new();
    for words in [&["--label", "first"][..], &[], &[]] {
        let run = ["run", "--time-only", "-r", "6", "true", "false", "-i"];
        assert_eq!(place.run([&run[..], words].concat()).code, 0);
    }
    place
}

/// The ids of the stored runs, newest first.
fn ids(place: &Place) -> Vec<String> {
    let listed = place.run(["store", "list", "--json"]).json();
    let id = |run: &Value| run["id"].as_str().expect("an id").to_owned();
    listed.as_array().expect("runs").iter().map(id).collect()
}

fn age(place: &Place, id: &str) {
    let store = Connection::open(place.file("store.db")).expect("the store");
    let day_one = store.execute("UPDATE run SET started = 1000 WHERE id = ?1", [id]);
    assert_eq!(day_one, Ok(1));
}

fn rows(answer: &Answer) -> Vec<Value> {
    answer.stdout.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

#[test]
fn runs_are_removed_by_name_all_of_them_or_none() {
    let place = with_runs();
    let all = ids(&place);
    let dry = place.run(["store", "rm", "--dry-run", "first", &all[0]]);
    assert_eq!((dry.code, dry.stdout.lines().count()), (0, 2), "{}", dry.exchange());
    let wrong = place.run(["store", "rm", "first", "nobody"]);
    assert_eq!(wrong.code, 2, "{}", wrong.exchange());
    assert_eq!(ids(&place), all);
    let gone = place.run(["store", "rm", "first", &all[0], "last"]);
    assert_eq!(gone.code, 0, "{}", gone.exchange());
    assert!(gone.stdout.contains(&format!("Removed {} (‘first’) of", all[2])), "{}", gone.exchange());
    assert!(gone.stdout.lines().all(|line| line.contains(" UTC: ")), "{}", gone.exchange());
    assert_eq!(ids(&place), [all[1].clone()]);
    let store = Connection::open(place.file("store.db")).expect("the store");
    let orphans = "SELECT (SELECT count(*) FROM arm WHERE run_id != ?1) + (SELECT count(*) FROM sample WHERE run_id != ?1)";
    let orphans: i64 = store.query_row(orphans, [&all[1]], |row| row.get(0)).expect("a count");
    assert_eq!(orphans, 0);
    assert_eq!(place.run(["store", "rm", "--store", "none.db", "last"]).code, 2);
    assert!(!place.file("none.db").exists());
}

#[test]
fn unneeded_runs_are_collected() {
    let place = with_runs();
    let all = ids(&place);
    all.iter().for_each(|id| age(&place, id));
    let newest = ids(&place)[0].clone();
    let dry = place.run(["store", "gc", "--dry-run"]);
    assert!(dry.stdout.ends_with("2 runs stay.\n"), "{}", dry.exchange());
    assert_eq!(ids(&place).len(), 3);
    let answer = place.run(["store", "gc", "--older-than", "30d"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    // The labelled run and the newest run of these subjects remain.
    assert_eq!(ids(&place).len(), 2);
    assert!(ids(&place).contains(&newest));
    assert!(place.run(["store", "gc"]).stdout.starts_with("Removed nothing."));
    assert_eq!(place.run(["store", "check"]).code, 0);
}

#[test]
fn every_reading_is_exported_in_a_row() {
    let place = with_runs();
    let answer = place.run(["store", "export", "first"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let shown = place.run(["show", "first", "--json"]).json();
    let (mut readings, mut absent) = (0, 0);
    for arm in shown["arms"].as_array().expect("arms") {
        for metric in arm["metrics"].as_object().expect("metrics").values() {
            readings += metric["readings"].as_array().map_or(0, Vec::len);
            absent += usize::from(metric["absent"].is_string());
        }
    }
    let rows_told = rows(&answer);
    assert_eq!(rows_told.iter().filter(|row| row["value"].is_number()).count(), readings);
    assert_eq!(rows_told.iter().filter(|row| row["absent"].is_string()).count(), absent);
    assert!(readings > 0 && rows_told.len() == readings + absent);
    let wall: Vec<&Value> = rows_told
        .iter()
        .filter(|row| row["metric"] == "time.wall" && row["arm"] == "false")
        .map(|row| &row["value"])
        .collect();
    let same: Vec<&Value> =
        shown["arms"][1]["metrics"]["time.wall"]["readings"].as_array().into_iter().flatten().collect();
    assert_eq!(wall, same);
    assert_eq!(place.run(["store", "export", "--export", "all.csv"]).code, 0);
    let csv = place.read("all.csv");
    assert!(csv.starts_with(
        "run,label,started,arm,role,version,params,metric,unit,pass,quality,source,block,value,absent\n"
    ));
    assert_eq!(csv.lines().count(), 1 + rows(&place.run(["store", "export"])).len());
    assert_eq!(place.run(["store", "export", "nobody"]).code, 2);
    let unknown = place.run(["store", "export", "--export", "all.foo"]);
    assert_eq!(unknown.code, 2, "{}", unknown.exchange());
    assert!(unknown.stderr.contains("this verb writes .jsonl and .csv"), "{}", unknown.exchange());
    assert!(unknown.stderr.contains("`scruple show RUN --json > FILE`"), "{}", unknown.exchange());
    assert!(!place.file("all.foo").exists());
    // A label that equals the id of another run does not hide that run.
    let id = shown["run"]["id"].as_str().expect("an id");
    assert_eq!(place.run(["run", "--time-only", "-r", "1", "--label", id, "true"]).code, 0);
    let all = rows(&place.run(["store", "export"]));
    assert!(rows_told.iter().all(|row| all.contains(row)), "every row of the first run is still there");
    let full = place.run(["store", "export", "--export", "/dev/full"]);
    assert_eq!(full.code, 2, "{}", full.exchange());
}

#[test]
fn rows_that_something_else_wrote_are_damage_and_not_zeros() {
    for (change, what) in [
        ("UPDATE run SET started = 'yesterday'", "column"),
        ("UPDATE run SET state = 'fine'", "an unknown state"),
        ("UPDATE arm SET name = x'00ff'", "does not hold a text"),
        (
            "UPDATE sample SET position = -1 WHERE position = 0 AND metric = 'time.wall'",
            "a number in its range",
        ),
        ("UPDATE sample SET blocks = '[0]' WHERE absent IS NULL", "one block for each reading"),
    ] {
        let place = Place::new();
        assert_eq!(place.run(["run", "--time-only", "-r", "6", "true"]).code, 0);
        assert_eq!(
            place.run(["store", "check"]).stdout,
            "The store ‘store.db’ is sound: 1 run can be read.\n"
        );
        let store = Connection::open(place.file("store.db")).expect("the store");
        store
            .execute_batch(&format!(
                "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; {change}"
            ))
            .expect("a change");
        drop(store);
        for verb in [&["store", "check"][..], &["show", "last"]] {
            let answer = place.run(verb);
            assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{change}: {}", answer.exchange());
            assert!(answer.stderr.contains("damaged"), "{change}: {}", answer.exchange());
            assert!(answer.stderr.contains(what), "{change}: {}", answer.exchange());
        }
    }
}

#[test]
fn runs_that_can_be_read_are_exported_although_another_is_damaged() {
    let place = Place::new();
    for label in ["one", "two"] {
        assert_eq!(place.run(["run", "--time-only", "-r", "1", "--label", label, "true"]).code, 0);
    }
    let store = Connection::open(place.file("store.db")).expect("the store");
    let change = "UPDATE sample SET readings = '[null]' WHERE absent IS NULL \
                  AND run_id = (SELECT id FROM run WHERE label = 'one')";
    store.execute_batch(change).expect("a change");
    drop(store);
    let answer = place.run(["store", "export"]);
    assert!(answer.code == 2 && answer.stderr.contains("damaged"), "{}", answer.exchange());
    let found: Vec<Value> =
        answer.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(!found.is_empty() && found.iter().all(|row| row["label"] == "two"), "{}", answer.exchange());
}

/// The comparisons of a JSON document, with their verdicts.
fn verdicts(page: &Value) -> Vec<Value> {
    page["comparisons"].as_array().expect("comparisons").clone()
}

#[test]
fn results_of_many_files_each_name_their_own_file_and_summaries_are_refused() {
    let place = Place::new();
    let results = r#"{"results": [{"command": "true", "mean": 0.1, "times": [0.1, 0.1, 0.2]}]}"#;
    place.write("one.json", results);
    place.write("two.json", results);
    let imported = place.run(["store", "import", "one.json", "two.json"]);
    assert_eq!(imported.code, 0, "{}", imported.exchange());
    let words = |run: &str| place.run(["show", run, "--json"]).json()["run"]["argv"].to_string();
    let (first, second) = (words("last~1"), words("last"));
    assert!(first.contains("one.json") && !first.contains("two.json"), "{first}");
    assert!(second.contains("two.json") && !second.contains("one.json"), "{second}");
    place.write("table.csv", "command,mean,stddev,median,user,system,min,max\ntrue,0.1,0,0.1,0,0,0.1,0.1\n");
    let refused = place.run(["store", "import", "table.csv"]);
    assert_eq!(refused.code, 2);
    place.write("empty.json", "");
    let empty = place.run(["store", "import", "empty.json"]);
    assert!(empty.code == 2 && empty.stderr.contains("‘empty.json’: it is empty"), "{}", empty.exchange());
    let advice = "it is a summary of hyperfine, without the readings; write it again with --export-json FILE";
    assert!(refused.stderr.contains(advice), "{}", refused.exchange());
}

#[test]
fn a_run_that_was_written_as_json_is_imported_with_the_same_verdicts() {
    let place = Place::new();
    let answer = place.run([
        "run",
        "-r",
        "10",
        "--reference",
        "true",
        "--export-json",
        "run.json",
        "--label",
        "mine",
        "sh -c true",
    ]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let before: Value =
        serde_json::from_str(&place.read("run.json").replace(&place.path().display().to_string(), "[place]"))
            .expect("JSON");
    let again = place.run(["store", "import", "run.json"]);
    assert_eq!(again.code, 2, "{}", again.exchange());
    assert!(again.stderr.contains("is in the store already"), "{}", again.exchange());
    let import = place.run(["store", "import", "--store", "other.db", "run.json"]);
    assert_eq!(import.code, 0, "{}", import.exchange());
    let after = place.run(["show", "mine", "--store", "other.db", "--json"]).json();
    assert!(!verdicts(&before).is_empty());
    for part in ["run", "provenance", "arms", "comparisons", "warnings"] {
        assert_eq!(after[part], before[part], "{part}");
    }
    let shown = |store: &str| place.run(["show", "mine", "--store", store]).stdout;
    assert_eq!(shown("other.db"), shown("store.db"));
    place.write("newer.json", place.read("run.json").replace("\"schema\": 1", "\"schema\": 9"));
    let newer = place.run(["store", "import", "--store", "third.db", "newer.json"]);
    assert!(newer.code == 2 && newer.stderr.contains("schema 9"), "{}", newer.exchange());
    place.write("short.json", &place.read("run.json")[..2000]);
    let short = place.run(["store", "import", "--store", "third.db", "short.json"]);
    assert!(short.code == 2 && short.stderr.contains("Nothing was imported"), "{}", short.exchange());
}
