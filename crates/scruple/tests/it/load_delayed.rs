//! Loads whose generator was late itself: its delay is not put down to the server.

use super::load::{load, script};
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
fn a_limit_that_only_a_delay_of_the_generator_exceeds_cannot_be_told() {
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
    // Without such delays nothing is said of them.
    let clean = json!({ "span": 1000, "response": [[1000, 900], [100_000, 1]] });
    script(&place, &[("new", vec![clean; 10])]);
    let answer = place.run(load(&["--limit", "load.max<50ms", "--json"]));
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    assert!(answer.json().pointer("/load/servers/0/delayed").is_none());
}

#[test]
fn a_late_generator_leaves_bounds_to_a_single_server_and_nothing_to_a_comparison() {
    let place = Place::new();
    let late = json!({"code": "generator-late", "voids": false, "text": "the generator itself was late"});
    let mut windows = windows();
    windows.iter_mut().for_each(|window| window["doubts"] = json!([late]));
    script(&place, &[("new", windows.clone())]);
    let code = |limit: &str| place.run(load(&["--limit", limit])).code;
    assert_eq!(code("load.max<9ms"), 1, "it is at least 10 ms");
    assert_eq!(code("load.max<50ms"), 3, "it is between 10 and 100 ms");
    assert_eq!(code("load.max<101ms"), 0, "it is at most 100 ms");
    let json = place.run(load(&["--json"])).json();
    assert_eq!(at(&json, "/load/servers/0/void"), 0);
    let good = json!({ "span": 1000, "response": [[1000, 900], [2000, 100]] });
    script(&place, &[("new", windows), ("old", vec![good; 10])]);
    let answer = place.run(load(&["--against", "old=:10", "--json"]));
    let json = answer.json();
    let void = |server: u32| at(&json, &format!("/load/servers/{server}/void")).as_u64().expect("a number");
    assert_eq!((void(0) > 0, void(1) > 0), (false, true), "{}", answer.exchange());
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
