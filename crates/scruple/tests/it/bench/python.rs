//! The SDK for Python, whose small objects come from malloc only in processes that count.

use crate::support::{Place, at};
use serde_json::Value;

const SUITE: &str = r#"
import sys
sys.path.insert(0, "SDK")
from scruple_bench import bench, main

@bench
def nothing():
    pass

@bench
def three():
    object()
    object()
    object()

@bench
def kept(made=[None]):
    made[0] = bytes(1000)

main()
"#;

/// Counts the cases in Python with these options. Returns the figures of each.
fn counted(options: &[&str]) -> Vec<Value> {
    let place = Place::new();
    let sdk = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python");
    place.write("suite.py", SUITE.replace("SDK", sdk));
    let words = [&["bench", "--no-store", "--count-only", "--json", "--", "python3"], options, &["suite.py"]]
        .concat();
    let answer = place.run(words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let arms = at(&answer.json(), "/arms").as_array().expect("a list").clone();
    arms.into_iter().filter(|arm| arm["role"] == "subject").map(|arm| arm["metrics"].clone()).collect()
}

#[test]
fn every_object_of_python_is_counted_exactly() {
    let figures = counted(&[]);
    assert_eq!(figures.len(), 3);
    for (figures, (calls, bytes)) in figures.iter().zip([(0.0, 0.0), (3.0, 48.0), (1.0, 1033.0)]) {
        let (count, size) = (&figures["malloc.count"], &figures["malloc.bytes"]);
        let found = [count, size, &figures["malloc.frees"]].map(|figure| figure["estimate"].as_f64());
        assert_eq!(found, [Some(calls), Some(bytes), Some(calls)], "{figures}");
        assert_eq!((&count["quality"], &size["quality"]), (&"exact".into(), &"exact".into()), "{figures}");
    }
}

#[test]
fn objects_that_malloc_does_not_serve_are_not_counted_as_nothing() {
    for figures in counted(&["-E"]) {
        assert!(figures.get("malloc.count").is_none() && figures.get("malloc.bytes").is_none(), "{figures}");
    }
}
