//! Writes the JSON of speedscope: one profile for each count of each side.

use super::{CallProfile, columns};
use serde_json::{Value, json};

pub(super) fn text(sides: &[CallProfile]) -> String {
    let shown = |frame: &super::Frame| match frame.object.is_empty() {
        true => json!({ "name": frame.name }),
        false => json!({ "name": frame.name, "file": frame.object }),
    };
    let frames: Vec<Value> = sides.iter().flat_map(|side| &side.frames).map(shown).collect();
    let profiles: Vec<Value> = columns(sides)
        .iter()
        .map(|column| {
            let profile = &sides[column.side];
            let before: usize = sides[..column.side].iter().map(|side| side.frames.len()).sum();
            let counted = profile.nodes.iter().enumerate().filter(|(_, node)| node.own.of(column.count) > 0);
            let stack = |place| profile.path(place).iter().map(|frame| before + frame).collect();
            let (samples, weights): (Vec<Vec<usize>>, Vec<u64>) =
                counted.map(|(place, node)| (stack(place), node.own.of(column.count))).unzip();
            json!({
                "type": "sampled",
                "name": format!("{} of {}", column.word, profile.title),
                "unit": if column.unit == "bytes" { "bytes" } else { "none" },
                "startValue": 0,
                "endValue": profile.total().of(column.count),
                "samples": samples,
                "weights": weights,
            })
        })
        .collect();
    let titles: Vec<&str> = sides.iter().map(|side| side.title.as_str()).collect();
    let document = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("scruple ", env!("CARGO_PKG_VERSION")),
        "name": titles.join("; "),
        "activeProfileIndex": 0,
        "shared": { "frames": frames },
        "profiles": profiles,
    });
    format!("{document}\n")
}
