//! Interruptions: Scruple prints and keeps what it measured, and leaves no process and no folder behind.

use crate::load::servers::{HELLO, request, serve};
use crate::programs::{eventually, send};
use crate::support::{Answer, Place};
use insta::assert_snapshot;
use std::io::Write as _;
use std::process::Stdio;

/// Starts `scruple run`, waits until the file `log` has `after` bytes, sends the signal, and returns the answer.
fn interrupted(place: &Place, signal: &str, after: u64, words: &[&str]) -> Answer {
    let words: Vec<&str> = ["run"].iter().chain(words).copied().collect();
    interrupted_command(place, signal, after, &words)
}

fn interrupted_command(place: &Place, signal: &str, after: u64, words: &[&str]) -> Answer {
    let mut command = place.command(words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("scruple runs");
    assert!(eventually(|| place.length("log") >= after), "the program never ran");
    send(&child, signal);
    let answer = Answer::of(child.wait_with_output().expect("an answer"), place.path());
    place.assert_no_processes();
    place.assert_no_work_folder();
    answer
}

#[test]
fn readings_before_an_interruption_are_printed_and_kept() {
    for signal in ["INT", "TERM"] {
        let place = Place::new();
        place.shell_script("short", "printf x >> log");
        let words = ["-r", "100000", "--metrics", "time.cpu", "./short"];
        let answer = interrupted(&place, signal, 20, &words);
        assert_eq!(answer.code, 130, "{}", answer.exchange());
        assert!(
            answer.stdout.contains("· interrupted: these are the readings taken so far"),
            "{}",
            answer.stdout
        );
        assert_eq!(answer.stderr, "error: interrupted; the readings so far are shown above\n");
        let shown = place.run(["show", "--metrics", "time.cpu"]);
        let first = |text: &str| text.lines().next().unwrap_or("").to_owned();
        assert_eq!(first(&shown.stdout), first(&answer.stdout));
    }
}

#[test]
fn a_suite_that_has_not_described_itself_ends_at_an_interruption() {
    let place = Place::new();
    place.shell_script("silent", "printf x >> log; exec sleep 1000");
    let answer = interrupted_command(&place, "TERM", 1, &["bench", "--no-store", "--", "./silent"]);
    assert_snapshot!(answer.exchange(), @r"
    exit 130
    --- stderr
    error: interrupted
    ");
}

#[test]
fn a_program_that_never_ends_is_ended_by_an_interruption() {
    let place = Place::new();
    place.shell_script("endless", "printf x >> log; sleep 1000 & while :; do sleep 1000; done");
    let answer = interrupted(&place, "INT", 1, &["./endless"]);
    assert_snapshot!(answer.exchange(), @r"
    exit 130
    --- stderr
    error: interrupted
    ");
    assert!(place.run(["store", "list"]).stdout.contains("./endless (interrupted)"));
}

#[test]
fn an_interruption_ends_a_hook_as_well_and_still_cleans_up() {
    let place = Place::new();
    let words = ["-p", "printf x >> log; exec sleep 1000", "-c", "echo cleaned >> after", "true", "true 2"];
    let answer = interrupted(&place, "TERM", 1, &words);
    assert_eq!(answer.code, 130, "{}", answer.exchange());
    assert_eq!(place.read("after"), "cleaned\n");
}

#[test]
fn a_program_that_ignores_the_interruption_is_killed() {
    let place = Place::new();
    place.shell_script("stubborn", "trap '' TERM INT; printf x >> log; while :; do sleep 1000; done");
    assert_eq!(interrupted(&place, "INT", 1, &["./stubborn"]).code, 130);
}

#[test]
fn a_search_for_the_highest_rate_is_ended_by_an_interruption() {
    let place = Place::new();
    let log = place.path().join("log");
    let address = serve(move |mut stream| {
        while request(&mut stream).is_some() && stream.write_all(HELLO).is_ok() {
            let _ = std::fs::write(&log, "x");
        }
    });
    let url = format!("http://{address}/");
    let words = ["load", &url, "--slo", "p99<10s", "--rate", "10..20", "-d", "1000s", "--no-cost"];
    let answer = interrupted_command(&place, "TERM", 1, &words);
    assert_eq!(answer.code, 130, "{}", answer.exchange());
    let text = "Nothing was found: the search was interrupted in its first measurement.";
    assert!(answer.stdout.contains(text), "{}", answer.exchange());
    assert_eq!(answer.stderr, "error: interrupted; the results so far are shown above\n");
    let list = place.run(["store", "list"]);
    assert!(list.stdout.contains("(interrupted)"), "{}", list.exchange());
}

#[test]
fn the_wait_for_a_server_to_start_is_ended_by_an_interruption() {
    let place = Place::new();
    place.shell_script("deaf", "printf x >> log; exec sleep 1000");
    let words = ["load", "http://127.0.0.1:9/", "--patience", "1000s", "--", "./deaf"];
    let answer = interrupted_command(&place, "INT", 1, &words);
    assert_snapshot!(answer.exchange(), @r"
    exit 130
    --- stderr
    error: interrupted while the server was starting; nothing was measured
    ");
}

#[test]
fn a_suite_of_very_many_cases_ends_at_a_signal_and_says_what_is_left_out() {
    let place = Place::new();
    let header = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../sdk/c");
    let source = r#"
#define SCRUPLE_IMPLEMENTATION
#include "scruple.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static uint32_t noted(uint32_t h)
{
    static int text;
    if (!text++) close(open("log", O_CREAT | O_WRONLY | O_APPEND, 0600)), (void)!truncate("log", 1);
    return h;
}
SCRUPLE_BODY(id, uint32_t, h, uint32_t, noted(h))
int main(int argc, char **argv)
{
    static uint32_t basis = 1;
    static char names[200000][16];
    for (int i = 0; i < 200000; i++) {
        snprintf(names[i], sizeof names[i], "case %d", i);
        scruple_data(SCRUPLE_BENCH(names[i], id), &basis);
    }
    return scruple_main(argc, argv);
}
"#;
    place.compile("many", source, &[header, "-pthread"]);
    let words = ["bench", "--no-store", "--budget", "20s", "--", "./many"];
    let answer = interrupted_command(&place, "TERM", 1, &words);
    assert_eq!(answer.code, 130, "{}", answer.exchange());
    assert!(
        answer.stdout.contains("interrupted: these are the readings taken so far"),
        "{}",
        answer.exchange()
    );
    let heading = answer.stdout.lines().next().unwrap_or_default();
    assert!(heading.contains(" case") && !heading.contains("command"), "{}", answer.exchange());
    let text = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("are left out: the run was interrupted first"), "{}", answer.exchange());
}
