//! A store on a PostgreSQL server behaves like a store in a file, and an outage of the server loses nothing.

use crate::postgres_server::PostgresServer;
use crate::repository::{BUILD, Repository};
use crate::support::{Answer, Place};
use serde_json::Value;
use std::process::Stdio;

/// Runs Scruple with the store `store`.
fn with(place: &Place, store: &str, words: &[&str]) -> Answer {
    place.finish(place.command(words).env("SCRUPLE_STORE", store))
}

fn fine(place: &Place, store: &str, words: &[&str]) -> Answer {
    let answer = with(place, store, words);
    assert_eq!(answer.code, 0, "{words:?}: {}", answer.exchange());
    answer
}

const WEIGH: [&str; 6] = ["run", "--time-only", "-r", "6", "true", "true -v"];

fn listed(place: &Place, store: &str) -> Vec<Value> {
    let json = fine(place, store, &["store", "list", "--json"]).json();
    json.as_array().expect("a list").clone()
}

fn files_that_wait(place: &Place) -> Vec<String> {
    let folder = place.file("data/scruple");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".db"))
        .collect()
}

fn waiting_file(place: &Place) -> String {
    let files = files_that_wait(place);
    assert_eq!(files.len(), 1);
    place.file("data/scruple").join(&files[0]).display().to_string()
}

#[test]
fn a_server_does_what_a_file_does() {
    let place = Place::new();
    let server = PostgresServer::shared().database();
    let mut words = WEIGH.to_vec();
    words.extend(["--label", "first"]);
    let first = fine(&place, &server, &words);
    assert!(
        first.stdout.contains("Stored as") && first.stdout.contains("in postgres://owner@/"),
        "{}",
        first.exchange()
    );
    fine(&place, &server, &WEIGH);
    // Both stores give the same answers for the same runs.
    fine(&place, "store.db", &["store", "copy", &server, "store.db"]);
    for words in [
        &["store", "list"][..],
        &["store", "list", "--json"],
        &["show", "first", "--json"],
        &["show", "last", "--json"],
        &["compare", "first", "last", "--json"],
        &["store", "export"],
        &["store", "export", "--format", "csv"],
    ] {
        let (on_server, in_file) = (with(&place, &server, words), with(&place, "store.db", words));
        assert_eq!(
            (on_server.code, &on_server.stdout),
            (in_file.code, &in_file.stdout),
            "{words:?}: {}",
            on_server.exchange()
        );
        assert!(!on_server.stdout.is_empty());
    }
    let check = fine(&place, &server, &["store", "check"]);
    assert!(check.stdout.contains("is sound: 2 runs"), "{}", check.exchange());
    let id = listed(&place, &server)[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(with(&place, &server, &["store", "rm", "nobody", &id]).code, 2);
    fine(&place, &server, &["store", "rm", &id]);
    assert_eq!(listed(&place, &server).len(), 1);
    let gc = fine(&place, &server, &["store", "gc", "--older-than", "0d"]);
    assert!(gc.stdout.contains("1 run stays"), "{}", gc.exchange());
    assert_eq!(with(&place, &server, &["show", &id]).code, 2);
}

#[test]
fn copying_twice_changes_nothing() {
    let place = Place::new();
    let server = PostgresServer::shared().database();
    fine(&place, "store.db", &WEIGH);
    let copy = ["store", "copy", "store.db", &server];
    assert_eq!(fine(&place, "store.db", &copy).stdout, "Copied 1 run.\n");
    assert_eq!(fine(&place, "store.db", &copy).stdout, "Copied 0 runs; 1 already there.\n");
    let back = ["store", "copy", &server, "back.db"];
    fine(&place, "store.db", &back);
    let show = |store: &str| fine(&place, store, &["show", "last", "--json"]).stdout;
    assert_eq!(show("store.db"), show("back.db"));
    // A copy never overwrites a run of the same id that has other readings.
    let client = rusqlite::Connection::open(place.file("back.db")).expect("a store");
    client.execute("UPDATE sample SET readings = replace(readings, '[', '[1.5,'), blocks = replace(blocks, '[', '[0,') WHERE metric = 'time.cpu'", []).expect("a change");
    drop(client);
    let apart = with(&place, "store.db", &["store", "copy", "back.db", &server]);
    assert_eq!(apart.code, 2, "{}", apart.exchange());
    assert!(apart.stderr.contains("has other readings"), "{}", apart.exchange());
    assert_eq!(show(&server), show("store.db"));
}

/// The reader waits between its queries for a lock on the arms while the run is removed.
#[test]
fn a_run_that_is_removed_while_it_is_read_is_read_whole() {
    let place = Place::new();
    let server = PostgresServer::shared().database();
    fine(&place, &server, &WEIGH);
    let whole = fine(&place, &server, &["show", "last", "--json"]).json();
    let id = listed(&place, &server)[0]["id"].as_str().expect("an id").to_owned();
    let mut client = PostgresServer::shared().client_of(&server);
    let mut removal = client.transaction().expect("a transaction");
    removal.batch_execute("LOCK TABLE arm IN ACCESS EXCLUSIVE MODE").expect("the lock");
    let mut show = place.command(["show", &id, "--json"]);
    let mut reader = show
        .env("SCRUPLE_STORE", &server)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a reader");
    let waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'arm'::regclass";
    while removal.query(waits, &[]).expect("the locks").is_empty() {
        let ended = reader.try_wait().expect("a process");
        assert!(ended.is_none(), "the reader ended without the arms: {ended:?}");
        std::thread::yield_now();
    }
    removal.execute("DELETE FROM run WHERE id = $1", &[&id]).expect("the removal");
    removal.commit().expect("the removal");
    let read = reader.wait_with_output().expect("an end");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let read: Value = serde_json::from_slice(&read.stdout).expect("JSON");
    assert_eq!(read["arms"], whole["arms"]);
    assert!(listed(&place, &server).is_empty());
}

#[test]
fn a_run_waits_on_this_machine_while_the_server_is_away() {
    let place = Place::new();
    let server = PostgresServer::start();
    let url = server.database();
    fine(&place, &url, &WEIGH);
    assert_eq!(listed(&place, &url).len(), 1);
    server.kill();
    let away = fine(&place, &url, &WEIGH);
    assert!(
        away.stderr.contains("cannot be reached") && away.stderr.contains("is kept in"),
        "{}",
        away.exchange()
    );
    let list = with(&place, &url, &["store", "list"]);
    assert_eq!(list.code, 2, "{}", list.exchange());
    assert!(
        list.stderr.contains("cannot be reached") && list.stderr.contains("1 run is still in"),
        "{}",
        list.exchange()
    );
    server.restart();
    assert_eq!(listed(&place, &url).len(), 1);
    fine(&place, &url, &WEIGH);
    assert_eq!(listed(&place, &url).len(), 3);
    assert!(listed_in(&waiting_file(&place)).is_empty());
}

fn listed_in(file: &str) -> Vec<String> {
    let store = rusqlite::Connection::open(file).expect("a store");
    let mut ids = store.prepare("SELECT id FROM run").expect("a query");
    let ids = ids.query_map([], |row| row.get(0)).expect("rows");
    ids.map(|id| id.expect("an id")).collect()
}

#[test]
fn a_server_that_is_killed_during_a_run_loses_nothing() {
    let place = Place::new();
    let server = PostgresServer::start();
    let url = server.database();
    let mut run = place.command(["run", "--time-only", "-r", "6", "touch started; sleep 0.2"]);
    let child =
        run.env("SCRUPLE_STORE", &url).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a run");
    while !place.file("started").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    server.kill();
    server.restart();
    let answer = Answer::of(child.wait_with_output().expect("an end"), place.path());
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let runs = listed(&place, &url);
    assert_eq!((runs.len(), &runs[0]["state"]), (1, &Value::from("complete")), "{}", answer.exchange());
}

#[test]
fn a_run_that_was_killed_is_put_on_the_server_by_the_next() {
    let place = Place::new();
    let url = PostgresServer::shared().database();
    let mut run = place.command(["run", "--time-only", "-r", "500", "echo x >> launches; sleep 0.05"]);
    let mut child = run.env("SCRUPLE_STORE", &url).stdout(Stdio::null()).spawn().expect("a run");
    let launches = || std::fs::read_to_string(place.file("launches")).unwrap_or_default().lines().count();
    while launches() < 8 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().expect("a kill");
    child.wait().expect("an end");
    assert!(listed_in(&waiting_file(&place)).len() == 1);
    fine(&place, &url, &WEIGH);
    let runs = listed(&place, &url);
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[1]["state"], "interrupted");
    let id = runs[1]["id"].as_str().expect("an id");
    let shown = fine(&place, &url, &["show", id, "--json"]).json();
    let readings = shown["arms"][0]["metrics"]["time.wall"]["readings"].as_array().map_or(0, Vec::len);
    assert!(readings >= 5, "{shown:#}");
}

#[test]
fn writers_on_several_machines_take_turns() {
    let url = PostgresServer::shared().database();
    let places: Vec<Place> = (0..4).map(|_| Place::new()).collect();
    let start = |place: &Place| {
        let mut run = place.command(WEIGH);
        run.env("SCRUPLE_STORE", &url).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a run")
    };
    let children: Vec<_> = places.iter().map(start).collect();
    for (child, place) in children.into_iter().zip(&places) {
        let answer = Answer::of(child.wait_with_output().expect("an end"), place.path());
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        assert!(listed_in(&waiting_file(place)).is_empty());
    }
    assert_eq!(listed(&places[0], &url).len(), 4);
    fine(&places[0], &url, &["store", "check"]);
}

#[test]
fn writers_that_share_a_file_of_waiting_runs_take_each_others_runs_without_a_message() {
    let (place, url) = (Place::new(), PostgresServer::shared().database());
    let start = |_| {
        let mut run = place.command(WEIGH);
        run.env("SCRUPLE_STORE", &url).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a run")
    };
    for _ in 0..3 {
        let children: Vec<_> = (0..4).map(start).collect();
        for child in children {
            let answer = Answer::of(child.wait_with_output().expect("an end"), place.path());
            assert_eq!(answer.code, 0, "{}", answer.exchange());
            assert!(!answer.stderr.contains("is kept in"), "{}", answer.exchange());
        }
    }
    assert_eq!(listed(&place, &url).len(), 12);
    assert!(listed_in(&waiting_file(&place)).is_empty());
}

#[test]
fn runs_and_copies_of_one_file_reach_the_server_at_the_same_time() {
    let url = PostgresServer::shared().database();
    let places: Vec<Place> = (0..4).map(|_| Place::new()).collect();
    let file = places[0].file("file.db").display().to_string();
    fine(&places[0], &file, &WEIGH);
    let copy = ["store", "copy", &file, &url];
    let start = |(number, place): (usize, &Place)| {
        let mut command = if number % 2 == 0 { place.command(WEIGH) } else { place.command(copy) };
        command.env("SCRUPLE_STORE", &url).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("scruple runs")
    };
    let children: Vec<_> = places.iter().enumerate().map(start).collect();
    for (child, place) in children.into_iter().zip(&places) {
        let answer = Answer::of(child.wait_with_output().expect("an end"), place.path());
        assert_eq!(answer.code, 0, "{}", answer.exchange());
    }
    assert_eq!(listed(&places[0], &url).len(), 3, "two runs, and the copied one once");
    fine(&places[0], &url, &["store", "check"]);
}

#[test]
fn a_server_that_refuses_says_what_is_wrong_and_what_to_do() {
    let place = Place::new();
    let server = PostgresServer::shared();
    let url = server.database();
    let run = |store: &str, part: &str| {
        let answer = with(&place, store, &WEIGH);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        assert!(answer.stderr.contains(part), "{part}: {}", answer.exchange());
        assert!(!answer.stderr.contains("s3cret"), "{}", answer.exchange());
    };
    // A user without privileges.
    let mut client = server.client_of(&url);
    client.batch_execute("REVOKE ALL ON SCHEMA public FROM public; CREATE ROLE guest LOGIN").expect("a role");
    run(&url.replace("owner@", "guest@"), "refuses this user");
    // A database that does not exist.
    run(&server.url("nowhere", "owner"), "database \"nowhere\" does not exist");
    // A wrong password.
    run(&server.by_network(&url).replace("s3cret", "s3cret2"), "password authentication failed");
    // A database with the tables of another program.
    let foreign = server.database();
    server.client_of(&foreign).batch_execute("CREATE TABLE orders (id BIGINT)").expect("a table");
    run(&foreign, "it contains the tables of another program");
    // A store with the schema of a newer Scruple.
    fine(&place, &url, &WEIGH);
    client.batch_execute("UPDATE schema_version SET version = version + 991").expect("a version");
    run(&url, "has version ");
    client.batch_execute("UPDATE schema_version SET version = version - 991").expect("a version");
    // A user without the privilege to use the schema, or to read its tables, does not hear that there is no store.
    let guest = url.replace("owner@", "guest@");
    let refused = |part: &str| {
        let answer = with(&place, &guest, &["store", "list"]);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        assert!(answer.stderr.contains(part), "{}", answer.exchange());
    };
    refused("no schema of the search path that this user may use");
    client.batch_execute("GRANT USAGE ON SCHEMA public TO guest").expect("a right");
    refused("permission denied for table schema_version");
    // A user with the privilege to read can read.
    client
        .batch_execute(
            "GRANT USAGE ON SCHEMA public TO guest; GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest",
        )
        .expect("rights");
    fine(&place, &url.replace("owner@", "guest@"), &["show", "last"]);
    // And a run of theirs is refused before it measures.
    run(&url.replace("owner@", "guest@"), "permission denied for table run");
    run("postgres://127.0.0.1:notaport/x", "the URL cannot be read");
    run("mysql://u:s3cret@h/x", "mysql is not supported");
    assert_eq!(with(&place, &server.database(), &["store", "list"]).code, 2);
}

#[test]
fn the_name_of_a_schema_may_have_capital_letters() {
    let place = Place::new();
    let server = PostgresServer::shared();
    let url = server.database();
    server.client_of(&url).batch_execute("CREATE SCHEMA \"Team-A\"").expect("a schema");
    let joint = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{joint}options=-c%20search_path%3D%22Team-A%22");
    fine(&place, &url, &WEIGH);
    fine(&place, &url, &WEIGH);
    fine(&place, &url, &["store", "check"]);
    fine(&place, &url, &["store", "gc", "--older-than", "0s"]);
    assert_eq!(listed(&place, &url).len(), 1);
}

#[test]
fn a_full_disk_of_the_server_keeps_the_run_here() {
    let place = Place::new();
    let server = PostgresServer::shared();
    let url = server.database();
    fine(&place, &url, &WEIGH);
    let mut client = server.client_of(&url);
    client
        .batch_execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE 'could not extend file: no space left on device' USING ERRCODE = '53100'; END $$; \
             CREATE TRIGGER full_disk BEFORE INSERT ON sample FOR EACH ROW EXECUTE FUNCTION full_disk()",
        )
        .expect("a trigger");
    let full = fine(&place, &url, &WEIGH);
    assert!(
        full.stderr.contains("free disk space, or") && full.stderr.contains("is kept in"),
        "{}",
        full.exchange()
    );
    // The failed run left nothing on the server.
    assert_eq!(listed(&place, &url).len(), 1);
    client.batch_execute("DROP TRIGGER full_disk ON sample").expect("a change");
    let copy = fine(&place, &url, &["store", "copy", &waiting_file(&place), &url]);
    assert_eq!(copy.stdout, "Copied 1 run.\n");
    assert_eq!(listed(&place, &url).len(), 2);
}

#[test]
fn network_connections_are_encrypted_and_the_server_is_verified() {
    let place = Place::new();
    let server = PostgresServer::shared();
    let url = server.by_network(&server.database());
    let secure = format!("{url}?sslmode=verify-full&sslrootcert={}", server.authority.display());
    fine(&place, &secure, &WEIGH);
    assert_eq!(listed(&place, &secure).len(), 1);
    let other = format!("{url}?sslmode=require&sslrootcert={}", server.other_authority.display());
    let refused = with(&place, &other, &["store", "list"]);
    assert_eq!(refused.code, 2, "{}", refused.exchange());
    assert!(
        refused.stderr.contains("certificate") && !refused.stderr.contains("s3cret"),
        "{}",
        refused.exchange()
    );
    // The certificate is not one of this host name.
    let elsewhere = secure.replacen("127.0.0.1", "elsewhere.example", 1) + "&hostaddr=127.0.0.1";
    let refused = with(&place, &elsewhere, &["store", "list"]);
    assert!(
        refused.code == 2
            && refused.stderr.contains("certificate")
            && refused.stderr.contains("elsewhere.example"),
        "{}",
        refused.exchange()
    );
    // PGPASSWORD applies to a URL that the user gave, and not to one from scruple.toml.
    let bare = url.replace(":s3cret@", "@");
    let list = |command: &mut std::process::Command| place.finish(command.env("PGPASSWORD", "s3cret"));
    let named = list(place.command(["store", "list"]).env("SCRUPLE_STORE", &bare));
    assert_eq!(named.code, 0, "{}", named.exchange());
    place.write("scruple.toml", format!("[store]\nurl = \"{bare}\"\n"));
    let configured = list(place.command(["store", "list"]).env_remove("SCRUPLE_STORE"));
    assert_eq!(configured.code, 2, "{}", configured.exchange());
    // A server that asks for a password refuses; it is not away, so that nothing is measured and kept for it.
    let words = ["run", "-r", "1", "--label", "refused", "true"];
    let refused = list(place.command(words).env_remove("SCRUPLE_STORE"));
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{}", refused.exchange());
    assert!(
        refused.stderr.contains("password missing): check its name and password"),
        "{}",
        refused.exchange()
    );
}

#[test]
fn a_password_is_not_stored_with_the_command_line() {
    let place = Place::new();
    let server = PostgresServer::shared();
    let url = server.by_network(&server.database());
    let mut words = WEIGH.to_vec();
    words.extend(["--store", &url]);
    fine(&place, "unused.db", &words);
    for words in [&["show", "last", "--json"][..], &["store", "list", "--json"], &["run", "--help"]] {
        let answer = fine(&place, &url, words);
        assert!(!answer.stdout.contains("s3cret"), "{}", answer.exchange());
    }
}

#[test]
fn a_history_goes_on_from_the_server() {
    let place = Place::new();
    let url = PostgresServer::shared().database();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1, 2]);
    let build = [&["history", "--repo", "repo", "--rounds", "2"], &BUILD[..]].concat();
    let take = |data: &str| {
        let mut command = place.command(build.iter().chain(&["--json", "--", "./app"]));
        let answer = place.finish(command.env("SCRUPLE_STORE", &url).env("XDG_DATA_HOME", place.file(data)));
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        answer
    };
    take("here");
    repository.commit_allocations([3]);
    let there = take("there");
    let runs = listed(&place, &url);
    assert_eq!(runs.len(), 1, "one history: {runs:?}");
    assert_eq!(there.json()["history"]["versions"].as_array().map(Vec::len), Some(3));
    let again = take("here");
    assert_eq!(again.json()["series"], there.json()["series"]);
}

#[test]
fn a_shorter_range_takes_the_place_of_another_on_a_server_as_in_a_file() {
    let place = Place::new();
    let url = PostgresServer::shared().database();
    Repository::new(&place, "repo").commit_allocations([1, 2, 3]);
    for store in ["store.db", &url] {
        for (range, count) in [(&[][..], 3), (&["HEAD~1..HEAD"], 1)] {
            let words =
                [&["history"][..], range, &["--repo", "repo", "--rounds", "2"], &BUILD, &["--", "./app"]];
            fine(&place, store, &words.concat());
            let status = fine(&place, store, &["history", "status", "--repo", "repo", "--json"]).json();
            let versions = status["history"]["versions"].as_array().map(Vec::len);
            assert_eq!(versions, Some(count), "{store} {range:?}: {status}");
        }
    }
}

#[test]
fn states_of_versions_are_copied_without_new_readings() {
    let place = Place::new();
    let server = PostgresServer::shared();
    let url = server.database();
    Repository::new(&place, "repo").commit_allocations([1, 2]);
    let words = [&["history", "--repo", "repo", "--rounds", "2"], &BUILD[..], &["--", "./app"]].concat();
    fine(&place, "store.db", &words);
    fine(&place, "store.db", &["store", "copy", "store.db", &url]);
    server.client_of(&url).batch_execute("UPDATE run SET state = 'interrupted'").expect("a change");
    let back = fine(&place, "store.db", &["store", "copy", &url, "store.db"]);
    assert_eq!(back.stdout, "Copied 0 runs; 1 already there.\n");
    let again = fine(&place, "store.db", &["store", "copy", "store.db", &url]);
    assert_eq!(again.stdout, "Copied 0 runs; 1 replaced an earlier copy.\n");
    assert_eq!(listed(&place, &url)[0]["state"], "complete");
}
