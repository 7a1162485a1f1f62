//! Writes the JSON of speedscope: one profile for each count.

use super::{COUNTS, CallProfile};
use serde_json::{Value, json};

pub(super) fn text(profile: &CallProfile) -> String {
    let frames: Vec<Value> = profile
        .frames
        .iter()
        .map(|frame| match frame.object.is_empty() {
            true => json!({ "name": frame.name }),
            false => json!({ "name": frame.name, "file": frame.object }),
        })
        .collect();
    let profiles: Vec<Value> = COUNTS
        .iter()
        .map(|(count, name, unit)| {
            let counted = profile.nodes.iter().enumerate().filter(|(_, node)| node.own.of(*count) > 0);
            let (samples, weights): (Vec<Vec<usize>>, Vec<u64>) =
                counted.map(|(place, node)| (profile.path(place), node.own.of(*count))).unzip();
            json!({
                "type": "sampled",
                "name": format!("{name} of {}", profile.title),
                "unit": if *unit == "bytes" { "bytes" } else { "none" },
                "startValue": 0,
                "endValue": profile.total().of(*count),
                "samples": samples,
                "weights": weights,
            })
        })
        .collect();
    let document = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("scruple ", env!("CARGO_PKG_VERSION")),
        "name": profile.title,
        "activeProfileIndex": 0,
        "shared": { "frames": frames },
        "profiles": profiles,
    });
    format!("{document}\n")
}
