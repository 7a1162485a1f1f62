//! Loads whose generator was late itself: its delay is not attributed to the server.

use super::{load, script, window};
use crate::support::{Place, at};
use serde_json::{Value, json};

/// Windows of 1000 requests, of which one may have been read 90 ms late.
fn windows() -> Vec<Value> {
    let window = json!({
        "span": 1000,
        "response": [[1000, 900], [2000, 99], [100_000, 1]],
        "delayed": [[100_000, 1]],
        "least": [[10_000, 1]],
    });
    vec![window; 10]
}

#[test]
fn a_limit_that_only_a_delay_of_the_generator_exceeds_is_undecided() {
    let place = Place::new();
    script(&place, &[("new", windows())]);
    let code = |limit: &str| place.run(load(&["--limit", limit])).code;
    assert_eq!(code("load.max<50ms"), 3, "it is between 10 and 100 ms");
    assert_eq!(code("load.max<9ms"), 1, "it is at least 10 ms");
    assert_eq!(code("load.max<101ms"), 0, "it is at most 100 ms");
    let answer = place.run(load(&["--limit", "load.max<50ms", "--json"]));
    let json = answer.json();
    assert_eq!(at(&json, "/limits/0/found"), "100 ms [10.0 ms, 100 ms]", "{}", answer.exchange());
    let delayed = at(&json, "/load/servers/0/delayed");
    assert_eq!((at(delayed, "/count"), at(delayed, "/least/count")), (&json!(10), &json!(10_000)));
    assert!(at(delayed, "/least/max").as_u64().is_some_and(|max| max < 10_100_000), "{delayed}");
    // Without such delays they are not mentioned.
    let clean = json!({ "span": 1000, "response": [[1000, 900], [100_000, 1]] });
    script(&place, &[("new", vec![clean; 10])]);
    let answer = place.run(load(&["--limit", "load.max<50ms", "--json"]));
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    assert!(answer.json().pointer("/load/servers/0/delayed").is_none());
}

/// Windows in which the generator was late by more than the plan allows.
fn late_windows() -> Vec<Value> {
    let late = json!({"code": "generator-late", "voids": false, "text": "the generator itself was late"});
    let mut windows = windows();
    windows.iter_mut().for_each(|window| window["doubts"] = json!([late]));
    windows
}

#[test]
fn a_late_generator_leaves_bounds_of_the_responses_and_nothing_of_the_service() {
    let place = Place::new();
    script(&place, &[("new", late_windows())]);
    let code = |limit: &str| place.run(load(&["--limit", limit])).code;
    assert_eq!(code("load.max<9ms"), 1, "it is at least 10 ms");
    assert_eq!(code("load.max<50ms"), 3, "it is between 10 and 100 ms");
    assert_eq!(code("load.max<101ms"), 0, "it is at most 100 ms");
    assert_eq!(code("load.service.p99<1s"), 3, "requests came in groups");
    let answer = place.run(load(&["--json"]));
    assert_eq!(at(&answer.json(), "/load/servers/0/void"), 0);
    let text = "10 of 10,000 responses contain its delay: the longest is between 10.0 ms and 100 ms";
    let remark = at(&answer.json(), "/warnings").to_string();
    assert!(remark.contains(text), "{remark}");
}

#[test]
fn a_doubt_of_several_turns_says_that_its_figures_are_those_of_the_first() {
    let place = Place::new();
    let late = |number: usize| {
        let text = format!("the generator itself was late by {} ms", 5 + number);
        let mut window = window(1000);
        window["doubts"] = json!([{"code": "generator-late", "voids": false, "text": text}]);
        window
    };
    script(&place, &[("new", (0..20).map(late).collect()), ("old", vec![window(1000); 20])]);
    let text = place.run(load(&["--against", "old=:10"])).unwrapped();
    assert!(text.contains("late by 5 ms (10 of 10 turns, figures of the first)"), "{text}");
}

#[test]
fn servers_are_compared_by_what_both_bounds_of_a_late_generator_say() {
    let place = Place::new();
    let of = |recorded: u64, least: u64| -> Vec<Value> {
        let late = json!({"code": "generator-late", "voids": false, "text": "the generator itself was late"});
        (0..20_u64)
            .map(|window| {
                // Windows differ a little, so that there is something to compute an interval from.
                json!({
                    "span": 1000,
                    "response": [[1000 + 3 * (window % 5), 800], [recorded + window % 7, 200]],
                    "delayed": [[recorded + window % 7, 200]],
                    "least": [[least + window % 7, 200]],
                    "doubts": [late],
                })
            })
            .collect()
    };
    let verdict = |new: Vec<Value>, old: Vec<Value>| {
        script(&place, &[("new", new), ("old", old)]);
        let answer = place.run(load(&["--against", "old=:10", "--json"]));
        let json = answer.json();
        assert_eq!(
            (at(&json, "/load/servers/0/void"), at(&json, "/load/servers/1/void")),
            (&json!(0), &json!(0))
        );
        let rows = at(&json, "/comparisons").as_array().expect("rows").clone();
        let row = rows.iter().find(|row| row["metric"] == "load.p99").cloned().expect("a row");
        row["verdict"].as_str().unwrap_or_else(|| panic!("{row}")).to_owned()
    };
    // Recorded as twice as long, which the delays may have done; and ten times, which they cannot.
    assert_eq!(verdict(of(20_000, 8_000), of(10_000, 8_000)), "can't tell");
    assert_eq!(verdict(of(100_000, 80_000), of(10_000, 8_000)), "different");
}

#[test]
fn the_page_shows_responses_without_the_delays_of_the_generator() {
    let place = Place::new();
    script(&place, &[("new", windows())]);
    assert_eq!(place.run(load(&["--export", "page.html"])).code, 0);
    let page = place.read("page.html");
    let row = page.split_once("response without the delays of the generator").expect("a row").1;
    assert!(row.split("</tr>").next().expect("its end").contains("10.0"), "{row}");
}
