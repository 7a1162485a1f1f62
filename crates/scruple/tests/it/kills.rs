//! Kills at any moment, and several runs at once: the store survives both.

use crate::programs::eventually;
use crate::support::{Place, at};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Enough kills to hit every phase of a run many times. Runs are short, so that all kills take seconds.
const KILLS: u64 = 200;

/// Starts a run of `program`, which writes one byte to `log-LABEL` at the end of each launch.
fn start(place: &Place, label: &str, program: &str) -> Child {
    let command = format!("{program} log-{label}");
    let words = ["run", "--time-only", "-r", "100000", "--label", label, &command];
    let mut command = place.command(words);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("scruple runs")
}

/// The number of stored readings of wall time of the run with this label, or `None` if the run was never stored.
fn kept(place: &Place, label: &str) -> Option<u64> {
    let answer = place.run(["show", "--json", label]);
    if answer.code == 2 && answer.stderr.contains("no stored run is called") {
        return None;
    }
    assert_eq!(answer.code, 0, "the store must stay readable: {}", answer.exchange());
    let run = answer.json();
    assert_eq!(at(&run, "/run/state"), "interrupted");
    Some(run["arms"][0]["metrics"]["time.wall"]["n"].as_u64().unwrap_or(0))
}

#[test]
fn two_hundred_kills_lose_at_most_the_launch_under_way_each() {
    let place = Place::new();
    place.compile(
        "mark",
        r#"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (argc > 2) for (;;) pause();
    int log = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0644);
    return write(log, "x", 1) != 1;
}
"#,
        &[],
    );
    let first = place.run(["run", "-r", "6", "--time-only", "true"]);
    assert_eq!(first.code, 0, "{}", first.exchange());
    let mut moment = 1_u64;
    for kill in 0..KILLS {
        moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let label = format!("kill-{kill}");
        let mut child = start(&place, &label, "./mark");
        // Half of the kills come at a random moment after the start, the other half once launches are under way.
        if kill % 2 == 0 {
            eventually(|| {
                let ended = child.try_wait().expect("a child").is_some();
                assert!(!ended, "a run of a hundred thousand launches ended by itself");
                place.length(&format!("log-{label}")) > 0
            });
        }
        std::thread::sleep(Duration::from_micros((moment >> 33) % 30_000));
        child.kill().expect("a kill");
        child.wait().expect("an end");
    }
    place.assert_no_processes();
    let mut begun = 0;
    for kill in 0..KILLS {
        let label = format!("kill-{kill}");
        let launched = place.length(&format!("log-{label}"));
        match kept(&place, &label) {
            None => assert_eq!(launched, 0, "{label} launched something before it began a run"),
            Some(kept) => {
                begun += 1;
                // The last launch may have written its byte without its reading being journalled.
                assert!(
                    kept <= launched && launched <= kept + 1,
                    "{label}: {launched} launches, {kept} kept"
                );
            }
        }
    }
    assert!(begun >= KILLS / 2, "only {begun} runs had begun");
    assert_swept(&place);
}

/// Checks that the next run removes the work folders of killed runs.
fn assert_swept(place: &Place) {
    assert!(!place.left_by_runs().is_empty(), "killed runs leave their folders");
    assert_eq!(place.run(["run", "--no-store", "-r", "1", "true"]).code, 0);
    place.assert_no_work_folder();
}

#[test]
fn a_measured_program_does_not_outlive_a_killed_scruple() {
    let place = Place::new();
    place.shell_script("endless", "printf x >> log; sleep 1000 & exec sleep 1000");
    for words in [vec!["run", "--time-only", "./endless"], vec!["run", "./endless"]] {
        let before = place.length("log");
        let mut child = place.command(words).stdout(Stdio::null()).spawn().expect("scruple runs");
        assert!(eventually(|| place.length("log") > before));
        child.kill().expect("a kill");
        child.wait().expect("an end");
        place.assert_no_processes();
    }
}

#[test]
fn several_writers_share_one_store_from_its_first_moment() {
    let place = Place::new();
    let children: Vec<Child> = (0..4)
        .map(|_| {
            let mut command = place.command(["run", "--time-only", "-r", "20", "true"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("scruple runs")
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().expect("an answer");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let list = place.run(["store", "list", "--json"]).json();
    let runs = list.as_array().expect("runs");
    assert_eq!(runs.len(), 4);
    for run in runs {
        assert_eq!(run["state"], "complete");
        let shown = place.run(["show", "--json", run["id"].as_str().unwrap_or("")]).json();
        assert_eq!(shown["arms"][0]["metrics"]["time.wall"]["n"], 20);
    }
}

#[test]
fn a_run_of_another_machine_is_under_way_until_it_is_silent_for_a_day() {
    let place = Place::new();
    let mut child = start(&place, "one", "sh -c 'echo x >> $0'");
    eventually(|| place.length("log-one") > 20);
    child.kill().expect("a kill");
    child.wait().expect("an end");
    let state = || at(&place.run(["show", "--json", "one"]).json(), "/run/state").clone();
    assert_eq!(state(), "interrupted");
    let change = |sql: &str| {
        let store = rusqlite::Connection::open(place.file("store.db")).expect("the store");
        assert!(store.execute(sql, []).expect("a change") > 0);
    };
    change("UPDATE run SET host = 'elsewhere/1 2 pid:[3]'");
    assert_eq!(state(), "running");
    let remove = place.run(["store", "rm", "one"]);
    assert!(remove.code == 2 && remove.stderr.contains("under way"), "{}", remove.exchange());
    change("UPDATE journal SET taken = taken - 90000000");
    assert_eq!(state(), "interrupted");
}
