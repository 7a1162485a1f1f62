//! The memory of a server: its growth, and its map before and after a load.

use super::{load, script};
use crate::support::{Place, at};
use insta::assert_snapshot;
use serde_json::{Value, json};

#[test]
fn a_collected_heap_that_may_still_fill_is_not_called_a_leak() {
    let place = Place::new();
    let mut resident = 10_000_000;
    let windows: Vec<Value> = (0..10)
        .map(|_| {
            resident += 500_000;
            let grown = json!({"time.cpu": 30_000_000});
            json!({"span": 1000, "response": [[200, 1000]], "grown": grown, "resident": resident, "runtime": "go"})
        })
        .collect();
    script(&place, &[("new", windows)]);
    let words = load(&["--warmup", "off", "--json"]);
    let answer = place.run(words).json();
    assert_eq!(at(&answer, "/load/servers/0/memory/0/leak"), &Value::Null);
    let shown = place.run(load(&["--warmup", "off"])).stdout;
    assert!(shown.contains("can’t tell whether it leaks") && !shown.contains("goes on"), "{shown}");
}

/// The text of `/proc/PID/smaps` for a server with `heap` kilobytes of heap.
fn smaps(heap: u64) -> String {
    let mapping = |head: &str, resident: u64, field: &str| {
        format!(
            "{head}\nSize: {resident} kB\nRss: {resident} kB\nPss: {resident} kB\n{field}: {resident} kB\n"
        )
    };
    mapping("1000-2000 r-xp 00000000 08:01 1 /bin/server", 400, "Shared_Clean")
        + &mapping("2000-3000 rw-p 00000000 08:01 1 /bin/server", 8, "Private_Dirty")
        + &mapping("3000-9000 rw-p 00000000 00:00 0 [heap]", heap, "Private_Dirty")
}

#[test]
fn the_memory_map_is_shown_before_and_after() {
    let place = Place::new();
    let windows: Vec<Value> = [100, 2000, 3000]
        .iter()
        .map(|heap| {
            let requests = 1000 + heap;
            json!({"span": requests, "response": [[200, requests]], "grown": {"time.cpu": requests * 30_000},
                "resident": heap * 1024, "smaps": smaps(*heap)})
        })
        .collect();
    script(&place, &[("new", windows)]);
    let words = ["--warmup", "off", "--windows", "3", "--with", "memory-map", "--export", "page.html"];
    let shown = place.run(load(&words)).stdout;
    let table = shown.split_once("Memory map").map_or("", |(_, table)| table);
    assert_snapshot!(table, @"
    before and after
                                                  resident                private dirty
                       perm     before      after     more     before    after     more
       from files            418    kB  418    kB  0    B     8.19 kB  8.19 kB  0    B
         code          r-xp  410    kB  410    kB  0    B     0    B   0    B   0    B
         data          rw-p    8.19 kB    8.19 kB  0    B     8.19 kB  8.19 kB  0    B
       without a file        102    kB    3.07 MB  2.97 MB  102    kB  3.07 MB  2.97 MB
         heap          rw-p  102    kB    3.07 MB  2.97 MB  102    kB  3.07 MB  2.97 MB
       all                   520    kB    3.49 MB  2.97 MB  111    kB  3.08 MB  2.97 MB
    ");
    assert!(place.read("page.html").contains("Memory map before and after"));
    let answer =
        place.run(load(&["--warmup", "off", "--windows", "3", "--json", "--export", "page.html"])).json();
    let rows = |side: &str| {
        at(&answer, &format!("/load/servers/0/memory_map/{side}")).as_array().expect("rows").clone()
    };
    let heap = |side: &str| {
        rows(side).iter().find(|row| row["class"] == "heap").expect("a heap")["private_dirty"].clone()
    };
    assert_eq!((heap("before"), heap("after")), (102_400.into(), 3_072_000.into()));
    assert!(place.read("page.html").contains("<details><summary>Memory map before and after"));
    let words = ["--warmup", "off", "--windows", "3", "--with", "memory-map", "--label", "kept"];
    assert_eq!(place.run(load(&words)).code, 0);
    let stored = place.run(["report", "kept", "--export", "stored.html"]);
    assert_eq!(stored.code, 0, "{}", stored.exchange());
    assert!(place.read("stored.html").contains("<details><summary>Memory map before and after"));
}
