//! The table of what a request costs, of loads that are replayed from a script.

use super::{load, script, windows};
use crate::support::{Place, at};
use serde_json::{Value, json};

/// A server that allocates most when it has the fewest requests, as one whose collector runs now and then.
#[test]
fn a_cost_that_the_fit_does_not_find_has_an_upper_end_only() {
    let place = Place::new();
    let bytes = [90_000, 40_000, 900_000, 500_000, 10_000, 1_200_000, 700_000, 30_000, 80_000, 20_000];
    let windows: Vec<Value> = (0..10)
        .map(|i| {
            let requests = [1000, 3000, 2000][i % 3];
            let grown =
                json!({"malloc.count": requests * 6, "malloc.bytes": bytes[i] + 4_000_000 - requests * 20});
            json!({"span": requests, "response": [[200, requests]], "grown": grown, "resident": 10_000_000})
        })
        .collect();
    script(&place, &[("new", windows)]);
    let answer = place.run(load(&["--warmup", "off", "--export", "page.html"]));
    let of = |name: &str| answer.stdout.lines().find(|line| line.trim_start().starts_with(name));
    let line = of("malloc bytes").expect("a row");
    assert!(line.contains("< 249 B  below resolution"), "{}", answer.stdout);
    assert!(!line.contains("0 B"), "{line}");
    assert!(of("mallocs").is_some_and(|line| line.contains("[6, 6]")), "{}", answer.stdout);
    let json = place.run(load(&["--warmup", "off", "--json"])).json();
    let costs = at(&json, "/load/servers/0/cost").as_array().expect("costs");
    let of = |counter: &str| costs.iter().find(|cost| cost["counter"] == counter).expect("a row");
    assert_eq!(of("malloc.bytes")["below_resolution"], of("malloc.bytes")["each"]["interval"]["high"]);
    assert_eq!(of("malloc.count")["below_resolution"], Value::Null);
    assert!(place.read("page.html").contains("&lt; "), "the page names no cost of zero either");
}

#[test]
fn requests_that_all_fail_have_costs_but_no_rate_and_no_latencies() {
    let place = Place::new();
    let windows: Vec<Value> = windows(200)
        .into_iter()
        .zip([1000, 3000, 2000].into_iter().cycle())
        .map(|(_, requests)| {
            json!({"span": 1000, "failures": {"bad-status": requests}, "grown": {"time.cpu": requests * 30_000}})
        })
        .collect();
    script(&place, &[("new", windows)]);
    let words =
        ["load", "http://127.0.0.1:9/", "--scripted", "load.json", "--name", "new", "--no-store", "-c", "2"];
    let answer = place.run(words);
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    assert!(
        answer.stdout.contains("Cost of a request (closed loop, every request failed)"),
        "{}",
        answer.stdout
    );
    assert!(!answer.stdout.contains("p99"), "no latency was read: {}", answer.stdout);
}
