//! Memory maps: scripted maps with exact values, and real programs whose memory is known by construction.

use crate::pages::all_is_well;
use crate::scripted_readings::arm;
use crate::support::{Place, at};
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::process::Command;

const SMAPS: &str = "\
55f0c0a00000-55f0c0a40000 r-xp 00000000 08:01 123                        /usr/bin/server
Rss:                 256 kB
Pss:                 128 kB
Shared_Clean:        256 kB
55f0c0a40000-55f0c0a50000 r--p 00040000 08:01 123                        /usr/bin/server
Rss:                  64 kB
Pss:                  64 kB
Private_Clean:        64 kB
55f0c0a50000-55f0c0a54000 rw-p 00050000 08:01 123                        /usr/bin/server
Rss:                  16 kB
Pss:                  16 kB
Private_Dirty:        16 kB
55f0c1000000-55f0c1400000 rw-p 00000000 00:00 0                          [heap]
Rss:                 512 kB
Pss:                 512 kB
Private_Dirty:       512 kB
7f0000000000-7f0000100000 rw-s 00000000 00:01 9                          /dev/zero (deleted)
Rss:                 128 kB
Pss:                  64 kB
Shared_Dirty:        128 kB
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
Rss:                  24 kB
Pss:                  24 kB
Private_Dirty:        24 kB
";

fn watched(place: &Place) {
    place.script(&[("server", arm(1.0, 1))]);
    let mut script: Value = serde_json::from_str(&place.read("script.json")).expect("a script");
    let moments =
        [(0, 262_144, 131_072, 65_536), (40, 1_024_000, 827_392, 630_784), (80, 524_288, 400_000, 300_000)];
    script["arms"]["server"]["map"] = json!([{"watched": {"smaps": SMAPS, "moments": moments}}]);
    place.write("script.json", script.to_string());
}

const RUN: [&str; 10] =
    ["run", "--scripted", "script.json", "--memory-map", "-n", "server", "-r", "16", "true", "--metrics"];

#[test]
fn a_scripted_map_is_a_table_and_a_picture() {
    let place = Place::new();
    watched(&place);
    let answer = place.run(RUN.iter().chain(&["memory", "--no-store"]));
    assert_snapshot!(answer.stdout, @r"
    1 command · 10 blocks · seed 1

    peak memory
      server  1.50 MB
    private dirty
      server  ~565 kB
    proportional
      server  ~827 kB
    unique
      server  ~631 kB


    Memory map of ‘server’
    Process 1 (‘scripted’), 40.0 ms after the beginning: then 1.02 MB were resident in all, and 1.02 MB
    at most

                                  shared          private
                      perm  maps   clean   dirty    clean     dirty   resident
    from files                 3  262 kB    0 B   65.5 kB   16.4 kB  344    kB
      code            r-xp     1  262 kB    0 B    0   B     0   B   262    kB  ░░░░░░░░░░
      read-only data  r--p     1    0 B     0 B   65.5 kB    0   B    65.5  kB  ▓▓▓
      data            rw-p     1    0 B     0 B    0   B    16.4 kB   16.4  kB  █
    without a file             3    0 B   131 kB   0   B   549   kB  680    kB
      heap            rw-p     1    0 B     0 B    0   B   524   kB  524    kB  ████████████████████
      stack           rw-p     1    0 B     0 B    0   B    24.6 kB   24.6  kB  █
      shared memory   rw-s     1    0 B   131 kB   0   B     0   B   131    kB  ▒▒▒▒▒
    all                        6  262 kB  131 kB  65.5 kB  565   kB    1.02 MB
    █ private dirty  ▓ private clean  ▒ shared dirty  ░ shared clean

    Over 80.0 ms, 3 moments
      resident (RSS)      ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃███████████████████▅  at most 1.02 MB
      proportional (PSS)  ▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▄  at most 827 kB
      unique (USS)        ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▃  at most 631 kB
      high water          1.02 MB in one process, as the kernel recorded
    ");
    let mut narrow = place.command(RUN.iter().chain(&["memory", "--no-store"]));
    let narrow = place.finish(narrow.env("COLUMNS", "80"));
    assert!(narrow.stdout.lines().all(|line| line.chars().count() <= 80), "{}", narrow.stdout);
}

#[test]
fn the_figures_of_a_map_are_kept_and_can_be_limited() {
    let place = Place::new();
    watched(&place);
    let over = ["memory", "--limit", "memory.private_dirty<500kB"];
    let answer = place.run(RUN.iter().chain(&over));
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    let again = place.run(["show", "--json"]).json();
    assert_eq!(at(&again, "/arms/0/metrics/memory.private_dirty/estimate"), 565_248.0);
    assert_eq!(at(&again, "/arms/0/metrics/memory.pss/estimate"), 827_392.0);
    assert_eq!(at(&again, "/arms/0/metrics/memory.uss/estimate"), 630_784.0);
}

#[test]
fn a_stored_map_is_shown_as_the_one_that_was_watched() {
    let place = Place::new();
    watched(&place);
    let live = place.run(RUN.iter().chain(&["memory", "--json", "--export", "live.html"])).json();
    let again = place.run(["show", "--json"]).json();
    assert_eq!(at(&live, "/arms/0/memory_map"), at(&again, "/arms/0/memory_map"));
    let shown = place.run(["show"]).stdout;
    assert!(shown.contains("resident (RSS)      ▃▃▃") && shown.contains("at most 1.02 MB"), "{shown}");
    let answer = place.run(["report", "--metrics", "memory", "--export", "page.html"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let page = place.read("page.html");
    assert_eq!(page, place.read("live.html"));
    for part in ["<h2>Memory map</h2>", "Memory of server over time", "proportional (PSS)", "565\u{a0}kB"] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    all_is_well(&[place.file("page.html")]);
}

#[test]
fn a_map_in_json_adds_up() {
    let place = Place::new();
    watched(&place);
    let run = place.run(RUN.iter().chain(&["memory", "--no-store", "--json"])).json();
    let map = at(&run, "/arms/0/memory_map");
    assert_eq!(at(map, "/mapped/shared_clean"), 262_144);
    assert_eq!(at(map, "/anonymous/private_dirty"), 548_864);
    assert_eq!(at(map, "/anonymous/shared_dirty"), 131_072);
    assert_eq!(at(map, "/peak/resident"), 1_024_000);
    assert_eq!(at(map, "/rows/0/class"), "code");
    assert_eq!(at(map, "/course/1/proportional"), 827_392);
}

/// A C program that writes to as many bytes as its argument says and waits for the end of its input.
const TOUCH: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(int argc, char **argv) {
    size_t bytes = strtoul(argv[1], 0, 10);
    char *volatile own = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(own, 1, bytes);
    puts("ready");
    fflush(stdout);
    if (argc > 2) getchar();
    else for (volatile unsigned long i = 0; i < 1200000000; i++) {}
    return own[bytes / 2] != 1;
}
"#;

const TOUCHED: u64 = 64 << 20;

/// Checks that the private dirty anonymous memory is what [`TOUCH`] wrote, plus at most 1 MiB of the program's own.
fn assert_touched(map: &Value) {
    let dirty = at(map, "/anonymous/private_dirty").as_u64().expect("bytes");
    assert!((TOUCHED..TOUCHED + (1 << 20)).contains(&dirty), "{dirty} of {TOUCHED}: {map:#}");
    let clean = at(map, "/anonymous/private_clean").as_u64().expect("bytes");
    assert!(clean < 1 << 20, "{clean}");
}

#[test]
fn private_dirty_memory_is_what_a_program_touched() {
    let place = Place::new();
    place.compile("touch", TOUCH, &[]);
    let command = format!("./touch {TOUCHED}");
    let run = place.run(["run", "--no-store", "--json", "--memory-map", "-r", "1", &command]).json();
    assert_touched(at(&run, "/arms/0/memory_map"));
}

#[test]
fn a_running_process_can_be_examined_and_watched() {
    use std::io::{BufRead, BufReader};
    let place = Place::new();
    let program = place.compile("touch", TOUCH, &[]);
    let mut child = Command::new(program)
        .args([&TOUCHED.to_string(), "wait"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut ready = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut ready).expect("a line");
    let pid = child.id().to_string();
    let once = place.run(["inspect", "memory", "--pid", &pid, "--json"]).json();
    assert_touched(at(&once, "/memory_map"));
    let watched = place.run(["inspect", "memory", "--pid", &pid, "--for", "100ms", "--json"]).json();
    assert_touched(at(&watched, "/memory_map"));
    assert!(at(&watched, "/memory_map/course").as_array().is_some_and(|course| course.len() > 1));
    drop(child.stdin.take());
    child.wait().expect("it ends");
    let gone = place.run(["inspect", "memory", "--pid", &pid]);
    assert_eq!(gone.code, 2, "{}", gone.exchange());
}
