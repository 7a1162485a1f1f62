//! Stores that are or become unusable: Scruple prints a clear error and does not lose what it measured.

use crate::programs::skip;
use crate::repository::Repository;
use crate::support::{Answer, Place};
use insta::assert_snapshot;
use std::process::Command;

/// A place whose store holds one run.
fn place_with_a_run() -> Place {
    let place = Place::new();
    assert_eq!(place.run(["run", "--time-only", "-r", "6", "true"]).code, 0);
    place
}

#[test]
fn a_file_that_is_no_store_is_not_touched() {
    let place = Place::new();
    let text = "These are notes, and not a database at all.\n".repeat(100);
    place.write("store.db", &text);
    let answer = place.run(["run", "-r", "1", "true"]);
    assert_snapshot!(answer.exchange(), @r#"
    exit 2
    --- stderr
    error: ‘store.db’ is not a store (file is not a database): name another file with --store FILE, or use --no-store
    "#);
    // Verbs that do not measure have no --no-store, and a history cannot do without a store.
    Repository::new(&place, "repo").commit_allocations([1]);
    let history = ["history", "--repo", "repo", "--", "./app"];
    for words in [&["store", "list"][..], &["show"], &["compare", "a", "b"], &["trend", "x"], &history] {
        let answer = place.run(words);
        assert_eq!(answer.code, 2, "{words:?}: {}", answer.exchange());
        assert!(
            answer.stderr.ends_with("name another file with --store FILE\n"),
            "{words:?}: {}",
            answer.stderr
        );
    }
    assert_eq!(place.read("store.db"), text);
}

#[test]
fn a_store_whose_creation_met_a_full_disk_is_no_store_yet() {
    let place = Place::new();
    // SQLite writes the first page when it begins a write-ahead log, before there is a table.
    let begun = rusqlite::Connection::open(place.file("store.db")).expect("a database");
    begun.execute_batch("PRAGMA journal_mode = WAL").expect("a first page");
    assert!(std::fs::metadata(place.file("store.db")).is_ok_and(|data| data.len() > 0));
    assert_snapshot!(place.run(["store", "list"]).exchange(), @r#"
    exit 2
    --- stderr
    error: there is no store at ‘store.db’: `scruple run` makes one, or name another with --store FILE
    "#);
    assert_eq!(place.run(["run", "--time-only", "-r", "1", "true"]).code, 0);
    assert_eq!(place.run(["store", "list"]).code, 0);
}

#[test]
fn a_database_of_something_else_is_not_touched() {
    let place = Place::new();
    let other = rusqlite::Connection::open(place.file("store.db")).expect("a database");
    other.execute_batch("CREATE TABLE recipes (name TEXT)").expect("a table");
    let answer = place.run(["run", "-r", "1", "true"]);
    assert_snapshot!(answer.exchange(), @r#"
    exit 2
    --- stderr
    error: ‘store.db’ is not a store (it contains the tables of another program): name another file with --store FILE, or use --no-store
    "#);
    assert_eq!(place.run(["store", "list"]).code, 2);
    let tables: i64 =
        other.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0)).expect("a count");
    assert_eq!(tables, 1);
}

#[test]
fn a_damaged_store_says_so() {
    let place = place_with_a_run();
    let mut bytes = std::fs::read(place.file("store.db")).expect("the store");
    let middle = bytes.len() / 3;
    bytes[middle..].fill(0xa5);
    place.write("store.db", &bytes);
    let answer = place.run(["show"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{}", answer.exchange());
    assert!(answer.stderr.contains("is damaged"), "{}", answer.stderr);
    assert!(answer.stderr.ends_with("or use --store FILE\n"), "{}", answer.stderr);
    let answer = place.run(["run", "--time-only", "-r", "1", "true"]);
    assert!(answer.stderr.ends_with("or use --store FILE or --no-store\n"), "{}", answer.exchange());
}

#[test]
fn a_store_of_a_newer_scruple_is_left_alone() {
    let place = place_with_a_run();
    let store = rusqlite::Connection::open(place.file("store.db")).expect("the store");
    store.execute("UPDATE schema_version SET version = 99", []).expect("a version");
    let answer = place.run(["run", "-r", "1", "true"]);
    assert_snapshot!(answer.exchange(), @r"
    exit 2
    --- stderr
    error: the store ‘store.db’ has version 99, and this scruple knows versions up to 8: use the newer scruple that wrote it, or --store FILE
    ");
    assert_eq!(place.run(["show"]).exchange(), answer.exchange());
}

#[test]
fn a_store_that_cannot_be_made_is_an_error_before_anything_is_measured() {
    let place = Place::new();
    place.write("file", "");
    let words = |store| ["run", "-r", "1", "touch ran", "--store", store];
    assert_snapshot!(place.run(words("file/store.db")).exchange(), @r"
    exit 2
    --- stderr
    error: the store ‘file/store.db’ cannot be opened (File exists (os error 17)): make it and its folder writable, or use --store FILE or --no-store
    ");
    assert_snapshot!(place.run(words("/proc/store.db")).exchange(), @r"
    exit 2
    --- stderr
    error: the store ‘/proc/store.db’ cannot be opened (unable to open database file: /proc/store.db): make it and its folder writable, or use --store FILE or --no-store
    ");
    assert!(!place.file("ran").exists());
}

#[test]
fn a_writer_waits_for_another_one() {
    let place = place_with_a_run();
    let other = rusqlite::Connection::open(place.file("store.db")).expect("the store");
    other.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    let waiting = place.command(["run", "--time-only", "-r", "6", "true"]).spawn().expect("scruple runs");
    std::thread::sleep(std::time::Duration::from_millis(300));
    other.execute_batch("ROLLBACK").expect("an unlock");
    assert!(waiting.wait_with_output().expect("an end").status.success());
}

/// Runs a shell script in its own mount namespace with a file system of `size` at `disk`. Returns `None` if this
/// machine does not allow such a mount.
fn on_a_small_disk(place: &Place, size: &str, script: &str) -> Option<Answer> {
    std::fs::create_dir_all(place.file("disk")).expect("a folder");
    let scruple = place.command::<&str>([]);
    let mut command = Command::new("unshare");
    let mount = format!("mount -t tmpfs -o size={size} tmpfs disk || exit 77; {script}");
    command.args(["-m", "sh", "-c", &mount]).arg(scruple.get_program()).current_dir(place.path());
    for (name, value) in scruple.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let answer = Answer::of(command.output().ok()?, place.path());
    let allowed = answer.code != 77 && !answer.stderr.starts_with("unshare:");
    allowed.then_some(answer)
}

#[test]
fn a_disk_that_fills_up_does_not_cost_what_was_measured() {
    let place = Place::new();
    let run = "run --store disk/store.db --time-only --metrics time.cpu -r 600";
    let script =
        format!("\"$0\" {run} true; echo \"code $?\"; \"$0\" show --store disk/store.db --metrics time.cpu");
    let Some(answer) = on_a_small_disk(&place, "200k", &script) else {
        return skip("mounting a small disk is not allowed here");
    };
    let (first, rest) = answer.stdout.split_once("code ").expect("a code");
    assert!(first.starts_with("1 command · 600 blocks"), "{}", answer.exchange());
    assert!(
        rest.starts_with("2\n1 command · "),
        "the readings before the disk was full: {}",
        answer.exchange()
    );
    assert_snapshot!(answer.stderr, @r"error: the run was measured but could not be stored: the store ‘disk/store.db’ cannot grow (database or disk is full): free disk space, or use --store FILE or --no-store");
}

#[test]
fn a_disk_that_is_full_from_the_start_is_an_error_at_once() {
    let place = Place::new();
    let script = "dd if=/dev/zero of=disk/ballast bs=1k 2>/dev/null; \"$0\" run --store disk/store.db -r 1 'touch ran'";
    let Some(answer) = on_a_small_disk(&place, "64k", script) else {
        return skip("mounting a small disk is not allowed here");
    };
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert_snapshot!(answer.exchange(), @r"
    exit 2
    --- stderr
    error: the store ‘disk/store.db’ cannot grow (database or disk is full): free disk space, or use --store FILE or --no-store
    ");
    assert!(!place.file("ran").exists());
}

#[test]
fn a_store_on_a_read_only_disk_can_be_read_and_not_written() {
    let place = Place::new();
    let script = "\"$0\" run --store disk/store.db --time-only -r 6 true >/dev/null && mount -o remount,ro disk && \
                  \"$0\" store list --store disk/store.db; \"$0\" run --store disk/store.db -r 1 true";
    let Some(answer) = on_a_small_disk(&place, "1m", script) else {
        return skip("mounting a small disk is not allowed here");
    };
    assert_eq!((answer.code, answer.stdout.lines().count()), (2, 1), "{}", answer.exchange());
    assert!(answer.stdout.ends_with("  true\n"), "{}", answer.exchange());
    assert_snapshot!(answer.stderr, @r"error: the store ‘disk/store.db’ cannot be opened (unable to open database file): make it and its folder writable, or use --store FILE or --no-store");
}

#[test]
fn a_limit_of_file_sizes_is_an_error_as_a_full_disk_is() {
    let place = Place::new();
    let scruple = env!("CARGO_BIN_EXE_scruple");
    let limited = format!("ulimit -f 40; exec {scruple} run -r 3 true");
    let mut shell = std::process::Command::new("sh");
    for (name, value) in place.command(["run"]).get_envs() {
        value.map(|value| shell.env(name, value));
    }
    let answer = place.finish(shell.args(["-c", &limited]).current_dir(place.path()));
    assert_snapshot!(answer.exchange(), @r"
    exit 2
    --- stderr
    error: the store ‘store.db’ cannot grow (disk I/O error): free disk space, or use --store FILE or --no-store
    ");
}
