//! Runs whose core was shared in all blocks, as earlier runs in the store show.

use crate::fake::bench_words;
use crate::support::{Answer, Place};
use serde_json::Value;

const CASE: &str = r#"{"name":"ant","cost":50}"#;

fn weighed(place: &Place, label: &str) -> Answer {
    let options = [
        "--store",
        "store.db",
        "--label",
        label,
        "--json",
        "--seed",
        "7",
        "--processes",
        "3",
        "--blocks",
        "12",
    ];
    place.run(bench_words(place, &options, &[CASE]))
}

/// The lower end of the interval of the net, in nanoseconds.
fn low(document: &Value) -> f64 {
    let arms = document["arms"].as_array().expect("arms");
    let net = arms.iter().find_map(|arm| arm["metrics"]["time.wall"]["net"]["interval"][0].as_f64());
    net.expect("a net with an interval")
}

fn says_that_the_core_was_shared(document: &Value) -> bool {
    let warnings = document["warnings"].as_array().expect("warnings");
    warnings.iter().any(|warning| warning["code"] == "shared-core")
}

#[test]
fn intervals_hold_the_time_on_a_core_alone_if_earlier_runs_were_alone() {
    let place = Place::new();
    let first = weighed(&place, "alone").json();
    assert!(!says_that_the_core_was_shared(&first), "nothing is known of earlier runs: {first}");
    assert!(low(&first) > 45.0, "{first}");
    // In the earlier run, the additions took a third of what they take on this machine alone.
    let store = rusqlite::Connection::open(place.file("store.db")).expect("the store");
    let query = "SELECT readings FROM sample WHERE metric = 'batch.additions' LIMIT 1";
    let readings: String = store.query_row(query, [], |row| row.get(0)).expect("the additions");
    let readings: Vec<f64> = serde_json::from_str(&readings).expect("numbers");
    let third = readings.iter().map(|reading| reading / 3.0).collect::<Vec<_>>();
    let third = serde_json::to_string(&third).expect("JSON");
    let changed = store.execute("UPDATE sample SET readings = ?1 WHERE metric = 'batch.additions'", [third]);
    assert!(changed.is_ok_and(|rows| rows > 0));
    drop(store);
    let second = weighed(&place, "shared").json();
    assert!(says_that_the_core_was_shared(&second), "{second}");
    assert!((20.0..26.0).contains(&low(&second)), "{second}");
    // Neither run has a copy of the program, so that the machine is the reason.
    let compared = place.run(["compare", "--store", "store.db", "alone", "shared"]);
    let text = compared.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let reason = text.split_once("other work on the core, may account for a difference of ");
    let margin =
        reason.and_then(|(_, rest)| rest.split_once(" % between the two runs")?.0.parse::<f64>().ok());
    // The additions took about three times as long as before: the net is between the time measured and half of it.
    assert!(margin.is_some_and(|margin| (90.0..150.0).contains(&margin)), "{}", compared.exchange());
}
