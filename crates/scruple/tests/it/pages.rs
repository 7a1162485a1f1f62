//! Pages in a real browser: no findings at any width, light or dark, folded or open, and with any names.

use crate::fake::bench;
use crate::load;
use crate::programs::skip;
use crate::repository::Repository;
use crate::scripted_readings::{Arm, arm, noisy_arm};
use crate::support::Place;
use scruple_core::harmless_text::plain;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names that would break a page, a terminal, or a table if they were not escaped.
pub const HOSTILE: [&str; 4] = [
    "</title><script>alert(1)</script><img src=x onerror=alert(2)>",
    "\u{202e}\u{1b}[31mred\u{7}\u{2066}\n| `x` | **b** <details> &lt;",
    "\" onload=\"alert(3)\" style=\"width:99999px",
    "javascript:alert(4)",
];

/// What the browser and axe-core find wrong with these pages. `None` if this machine lacks the browser or its tools.
pub fn wrong(files: &[PathBuf]) -> Option<Vec<Value>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let axe = root.join("target/pages/node_modules/axe-core/axe.min.js");
    if !axe.exists() {
        skip("axe-core is not installed: `make test` does it");
        return None;
    }
    let mut node = Command::new("node");
    node.arg(root.join("tests/pages/look.mjs")).arg(axe).args(files);
    let Ok(output) = node.output() else {
        skip("node is not installed");
        return None;
    };
    if output.status.code() == Some(77) {
        skip("there is no Chromium to look at pages with");
        return None;
    }
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    Some(out.lines().map(|line| serde_json::from_str(line).expect("a finding")).collect())
}

/// Checks that nothing is wrong with these pages.
pub fn all_is_well(files: &[PathBuf]) {
    if let Some(wrong) = wrong(files) {
        let lines: Vec<String> = wrong.iter().take(20).map(Value::to_string).collect();
        assert!(wrong.is_empty(), "{} findings, such as\n{}", wrong.len(), lines.join("\n"));
    }
}

/// Runs arms from a script and stores the run.
fn played(place: &Place, arms: &[(&str, Arm)], words: &[&str]) {
    let answer = place.play(arms, words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
}

/// Writes the page of the newest run.
pub fn page(place: &Place, name: &str, words: &[&str]) -> PathBuf {
    let answer = place.run(["report", "--export", name].iter().chain(words));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    place.file(name)
}

/// Adds a few outliers of wall time to an arm.
fn with_outliers(arm: Arm) -> Arm {
    arm.each("timing", |launch, entry| {
        if launch % 13 == 5 {
            entry["readings"]["time.wall"] = serde_json::json!(60e6);
        }
    })
}

#[test]
fn pages_of_runs_have_no_findings_at_any_width_in_light_and_dark() {
    let place = Place::new();
    let arms = [
        ("old", with_outliers(noisy_arm(1.0, 1, 0.01))),
        ("new", noisy_arm(1.04, 2, 0.02)),
        ("other", arm(1.0, 3)),
    ];
    let words = [
        "-n",
        "old",
        "-n",
        "new",
        "-n",
        "other",
        "-r",
        "30",
        "true",
        "true 2",
        "true 3",
        "--limit",
        "time.wall<1s",
    ];
    played(&place, &arms, &words);
    let commands = page(&place, "commands.html", &[]);
    played(&place, &[("true", arm(1.0, 1))], &["-r", "1", "--seed", "2", "true"]);
    let one = page(&place, "one.html", &[]);
    let sizes: Vec<String> = (1..=9).map(|n| format!("true {}", n * 10)).collect();
    let arms: Vec<(&str, Arm)> = sizes
        .iter()
        .zip(1..)
        .map(|(name, n)| (name.as_str(), noisy_arm(f64::from(n), n as u64, 0.01)))
        .collect();
    let scan = ["--seed", "3", "-P", "n", "10", "90", "-D", "10", "-r", "18", "true {n}"];
    played(&place, &arms, &scan);
    let growth = page(&place, "growth.html", &[]);
    let arms: Vec<(&str, Arm)> = sizes[..8]
        .iter()
        .zip(1..)
        .map(|(name, n)| (name.as_str(), noisy_arm(1.0 / f64::from(n), n as u64, 0.01)))
        .collect();
    played(
        &place,
        &arms,
        &["--seed", "4", "-L", "threads", "10,20,30,40,50,60,70,80", "-r", "18", "true {threads}"],
    );
    let threads = page(&place, "threads.html", &[]);
    all_is_well(&[commands, one, growth, threads]);
}

#[test]
fn pages_of_cases_have_no_findings() {
    let place = Place::new();
    let cases: Vec<String> = (0..12)
        .map(|i| format!(r#"{{"name": "group/case {i}", "cost": {}, "bytes": {i}}}"#, 50 + i))
        .collect();
    let words: Vec<&str> = cases.iter().map(String::as_str).collect();
    let answer = bench(&place, &[], &words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    all_is_well(&[page(&place, "cases.html", &[])]);
}

#[test]
fn pages_of_loads_have_no_findings() {
    let place = Place::new();
    load::script(&place, &[("new", load::windows(200)), ("o<d", load::windows(300))]);
    let answer = place.run(load::load(&["--label", "both", "--against", "o<d=:10"]));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    all_is_well(&[page(&place, "load.html", &[])]);
}

#[test]
fn pages_of_gates_have_no_findings() {
    let place = Place::new();
    let worse = arm(1.0, 2).with("counting", "malloc.bytes", |_| 5000.0);
    place.script(&[("old", noisy_arm(1.0, 1, 0.01)), (HOSTILE[0], worse)]);
    let words = ["check", "run", "--scripted", "script.json", "-n", "old", "-n", HOSTILE[0], "-r", "20"];
    let more = ["--limit", "time.wall<1s", "--export", "gate.html", "true", "true 2"];
    let answer = place.run(words.iter().chain(&more));
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    let text = place.read("gate.html");
    for part in ["Gate exceeded: 1 regression", "<h2>What decides</h2>", "<h2>Limits</h2>", "Every reading"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    all_is_well(&[place.file("gate.html")]);
}

#[test]
fn pages_of_histories_have_no_findings() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000, 1000, 2000]);
    repository.commit_program("this does not build", 10, 1000, "no C");
    repository.commit_program(HOSTILE[0], 10, 3000, "");
    let answer = place.history(&["--rounds", "2", "--all"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let file = page(&place, "history.html", &["--metrics", "malloc.bytes,malloc.count"]);
    let text = place.read("history.html");
    assert!(text.contains("class=\"sign worse\""), "the change is marked in the chart");
    assert!(text.contains("1.00 kB → 3.00 kB") && text.contains("build failed"), "{text}");
    let picture = place.run(["report", "--svg", "app-malloc-bytes"]);
    assert!(picture.stdout.starts_with("<svg"), "{}", picture.exchange());
    all_is_well(&[file]);
}

#[test]
fn several_runs_are_compared_with_the_first() {
    let place = Place::new();
    for (label, factor, seed) in [("one", 1.0, "1"), ("two", 1.2, "2"), ("three", 0.8, "3")] {
        let words = ["--label", label, "--seed", seed, "-r", "18", "-n", "app", "true"];
        played(&place, &[("app", noisy_arm(factor, 1, 0.01))], &words);
    }
    let answer = place.run(["report", "one", "two", "three", "--export", "several.html"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let text = place.read("several.html");
    assert!(text.contains("Comparison of 3 runs, each with ‘one’"), "{text}");
    assert!(text.contains("<h2>‘two’ against ‘one’</h2>") && text.contains("<h2>‘three’ against ‘one’</h2>"));
    let listed = place.run(["report", "one", "two", "three", "--svg", "list"]);
    let mut names: Vec<&str> = listed.stdout.lines().filter_map(|line| line.split('\t').next()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{}", listed.exchange());
    all_is_well(&[place.file("several.html")]);
}

#[test]
fn pages_of_searches_for_leaks_have_no_findings() {
    let place = Place::new();
    let of = |n: u32| {
        let readings = serde_json::json!({"heap.live": 50_000 + 40 * n, "gc.count": 40, "gc.major": 6});
        (format!("./prog {n}"), serde_json::json!({"counting": [{ "readings": readings }]}))
    };
    let arms: serde_json::Map<String, Value> = [1000, 2000, 4000, 8000, 16_000].map(of).into_iter().collect();
    place.write("leak.json", serde_json::json!({ "arms": arms }).to_string());
    let words =
        ["inspect", "leak", "--scripted", "leak.json", "--sizes", "1k,2k,4k,8k,16k", "--", "./prog", "{n}"];
    let answer = place.run(words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let file = page(&place, "leak.html", &[]);
    let text = place.read("leak.html");
    assert!(text.contains("Search for leaks over 5 sizes of the work"), "{text}");
    assert!(text.contains("grows with the work</span>: 40\u{a0}B are kept for each unit of work"), "{text}");
    let listed = place.run(["report", "--svg", "list"]);
    assert!(listed.stdout.contains("growth-size"), "{}", listed.exchange());
    all_is_well(&[file]);
}

#[test]
fn hostile_names_do_nothing_to_a_page() {
    let place = Place::new();
    let long = "A".repeat(10_000);
    // Scruple replaces control characters in a name as soon as it reads it, so that pages never get them.
    let names: Vec<String> = HOSTILE.iter().copied().chain([long.as_str()]).map(plain).collect();
    let arms: Vec<(&str, Arm)> = names
        .iter()
        .zip(1..)
        .map(|(name, i)| (name.as_str(), noisy_arm(1.0 + f64::from(i) / 20.0, i as u64, 0.02)))
        .collect();
    let mut words = vec!["-r", "18"];
    names.iter().for_each(|name| words.extend(["-n", name]));
    words.extend(["true", "true 2", "true 3", "true 4", "true 5"]);
    played(&place, &arms, &words);
    let file = page(&place, "hostile.html", &[]);
    let text = place.read("hostile.html");
    for harmful in ["<script>", "<img", "\u{202e}", "\u{1b}", "onload=\"a", &"A".repeat(200)] {
        let body = text.split("Do it again").next().unwrap_or_default();
        assert!(!body.contains(harmful), "{harmful}");
    }
    all_is_well(&[file]);
}

#[test]
fn the_browser_finds_what_is_wrong() {
    let place = Place::new();
    let bad = "<!doctype html><html><title>x</title><body onclick='0'><script>console.error('loud')</script>\
        <img src='http://127.0.0.1:9/x.png'><div style='width:9000px'>wide</div>\
        <svg class=chart width=20 height=5><text class=tick style='font-size:8px'>a</text><text class=tick>b</text></svg>\
        <svg class=chart width=200 height=20><text class=tick y=12 textLength=20 lengthAdjust=spacingAndGlyphs>c</text>\
        <text class=tick x=22 y=12 textLength=20 lengthAdjust=spacingAndGlyphs>d</text></svg>\
        <p style='color:#ddd;background:#fff'>pale</p></body></html>";
    let Some(wrong) = wrong(&[place.write("bad.html", bad)]) else { return };
    let lines: Vec<String> = wrong.iter().map(Value::to_string).collect();
    let lines = lines.join("\n");
    for what in [
        "console: loud",
        "request: http://127.0.0.1:9/x.png",
        "wider than the window",
        "too near each other: a and b",
        "too near each other: c and d",
        "small: a",
        "a chart of",
        "onclick",
        "active elements",
        "color-contrast",
        "image-alt",
        "a chart without words",
    ] {
        assert!(lines.contains(what), "{what} is not among\n{lines}");
    }
}
