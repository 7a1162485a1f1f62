//! Writes the JSON of speedscope: one profile for each count of each side.

use super::stacks::Stacks;
use serde_json::{Value, json};

pub(super) fn text(sides: &[Stacks<'_>]) -> String {
    let shown = |frame: &super::ProfileFrame| match (&frame.line, frame.object.is_empty()) {
        (Some((file, line)), _) => json!({ "name": frame.name, "file": file, "line": line }),
        (None, true) => json!({ "name": frame.name }),
        (None, false) => json!({ "name": frame.name, "file": frame.object }),
    };
    let frames: Vec<Value> = sides.iter().flat_map(|side| side.frames.iter()).map(shown).collect();
    let number = sides.first().map_or(0, |side| side.columns.len());
    let each = (0..number).flat_map(|column| (0..sides.len()).map(move |side| (column, side)));
    let profiles: Vec<Value> = each
        .map(|(column, side)| {
            let before: usize = sides[..side].iter().map(|side| side.frames.len()).sum();
            let (profile, column) = (&sides[side], &sides[side].columns[column]);
            let counted = column.own.iter().enumerate().filter(|(_, count)| **count > 0);
            let stack = |place| profile.path(place).iter().map(|frame| before + frame).collect();
            let (samples, weights): (Vec<Vec<usize>>, Vec<u64>) =
                counted.map(|(place, count)| (stack(place), count)).unzip();
            json!({
                "type": "sampled",
                "name": format!("{} of {}", column.word, profile.title),
                "unit": if column.unit == "bytes" { "bytes" } else { "none" },
                "startValue": 0,
                "endValue": column.own.iter().sum::<u64>(),
                "samples": samples,
                "weights": weights,
            })
        })
        .collect();
    let titles: Vec<&str> = sides.iter().map(|side| &*side.title).collect();
    let document = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("scruple ", env!("CARGO_PKG_VERSION")),
        "name": titles.join("; "),
        "activeProfileIndex": sides.first().map_or(0, |side| side.main * sides.len()),
        "shared": { "frames": frames },
        "profiles": profiles,
    });
    format!("{document}\n")
}
