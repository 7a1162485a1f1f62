//! Exports for programs: JSON, CSV.

use crate::scripted_readings::{Arm, arm};
use crate::support::{Answer, Place};
use insta::assert_snapshot;

/// An old and a new arm whose readings have few digits, so that whole documents stay readable.
fn two() -> [(&'static str, Arm); 2] {
    let plain = |wall: f64, bytes: f64, seed| {
        arm(1.0, seed)
            .launches("timing", 1)
            .with("timing", "time.wall", move |_| wall)
            .with("timing", "time.cpu", move |_| wall / 2.0)
            .with("counting", "malloc.bytes", move |_| bytes)
            .absent("counting", "malloc.peak", "the script says so")
    };
    [("old | 1", plain(4e6, 4096.0, 1)), ("new, \"2\"", plain(5e6, 4100.0, 2))]
}

/// Runs the arms of [`two`] from a script with 7 rounds.
pub fn play(place: &Place, words: &[&str]) -> Answer {
    let names = ["--no-store", "-n", "old | 1", "-n", "new, \"2\"", "-r", "13", "true", "true 2"];
    place.play(&two(), &names.iter().chain(words).copied().collect::<Vec<_>>())
}

#[test]
fn documents_say_whether_limits_were_kept_and_what_else_was_remarked() {
    for ending in ["md", "adoc", "org"] {
        let place = Place::new();
        place.write("scruple.toml", "[limits]\n\"*.time.wall\" = { max = \"1 s\" }\n");
        let file = format!("run.{ending}");
        play(&place, &["--limit", "malloc.bytes<4kB", "--export", &file]);
        let text = place.read(&file);
        for said in ["4kB: EXCEEDED by ‘", "limits of scruple.toml"] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
}

#[test]
fn json_holds_the_whole_run() {
    let answer = play(&Place::new(), &["--json", "--limit", "malloc.bytes<4kB"]);
    assert_snapshot!(answer.exchange(), @r#"
    exit 1
    --- stdout
    {
      "scruple": {
        "version": "0.1.0",
        "schema": 1
      },
      "run": {
        "id": "scripted-1",
        "label": null,
        "started": "1970-01-01T00:00:00Z",
        "state": "complete",
        "seed": 1,
        "argv": [],
        "margin": 0.02,
        "level": 0.95,
        "looks": 1,
        "limits": [
          {
            "arm": "*",
            "metric": "malloc.bytes",
            "limit": {
              "at_most": 4000.0
            },
            "text": "malloc.bytes<4kB"
          }
        ]
      },
      "provenance": {
        "machine_class": "scripted",
        "cpu": "",
        "cores": 0,
        "memory": 0,
        "kernel": "",
        "os": "",
        "load": 0.0,
        "virtualized": null,
        "governor": null,
        "commit": null,
        "dirty": null,
        "folder": "",
        "environment": {},
        "programs": {}
      },
      "arms": [
        {
          "name": "old | 1",
          "role": "subject",
          "subject": {
            "kind": "command",
            "argv": [
              "true"
            ]
          },
          "version": null,
          "params": {},
          "metrics": {
            "malloc.bytes": {
              "unit": "bytes",
              "pass": "counting",
              "quality": "exact",
              "source": "script",
              "n": 3,
              "estimate": 4096.0,
              "method": "counted",
              "readings": [4096.0, 4096.0, 4096.0]
            },
            "malloc.count": {
              "unit": "count",
              "pass": "counting",
              "quality": "exact",
              "source": "script",
              "n": 3,
              "estimate": 100.0,
              "method": "counted",
              "readings": [100.0, 100.0, 100.0]
            },
            "malloc.peak": {
              "absent": "the script says so"
            },
            "memory.peak": {
              "unit": "bytes",
              "pass": "memory",
              "quality": "noisy",
              "source": "script",
              "n": 3,
              "estimate": 1500000.0,
              "method": "median of too few for an interval",
              "readings": [1500000.0, 1500000.0, 1500000.0]
            },
            "time.cpu": {
              "unit": "ns",
              "pass": "timing",
              "quality": "noisy",
              "source": "script",
              "n": 7,
              "estimate": 2000000.0,
              "interval": [2000000.0, 2000000.0],
              "level": 0.9843750000000004,
              "method": "median, order statistics",
              "readings": [2000000.0, 2000000.0, 2000000.0, 2000000.0, 2000000.0, 2000000.0, 2000000.0]
            },
            "time.wall": {
              "unit": "ns",
              "pass": "timing",
              "quality": "noisy",
              "source": "script",
              "n": 7,
              "estimate": 4000000.0,
              "interval": [4000000.0, 4000000.0],
              "level": 0.9843750000000004,
              "method": "median, order statistics",
              "readings": [4000000.0, 4000000.0, 4000000.0, 4000000.0, 4000000.0, 4000000.0, 4000000.0]
            }
          }
        },
        {
          "name": "new, \"2\"",
          "role": "subject",
          "subject": {
            "kind": "command",
            "argv": [
              "true",
              "2"
            ]
          },
          "version": null,
          "params": {},
          "metrics": {
            "malloc.bytes": {
              "unit": "bytes",
              "pass": "counting",
              "quality": "exact",
              "source": "script",
              "n": 3,
              "estimate": 4100.0,
              "method": "counted",
              "readings": [4100.0, 4100.0, 4100.0]
            },
            "malloc.count": {
              "unit": "count",
              "pass": "counting",
              "quality": "exact",
              "source": "script",
              "n": 3,
              "estimate": 100.0,
              "method": "counted",
              "readings": [100.0, 100.0, 100.0]
            },
            "malloc.peak": {
              "absent": "the script says so"
            },
            "memory.peak": {
              "unit": "bytes",
              "pass": "memory",
              "quality": "noisy",
              "source": "script",
              "n": 3,
              "estimate": 1500000.0,
              "method": "median of too few for an interval",
              "readings": [1500000.0, 1500000.0, 1500000.0]
            },
            "time.cpu": {
              "unit": "ns",
              "pass": "timing",
              "quality": "noisy",
              "source": "script",
              "n": 7,
              "estimate": 2500000.0,
              "interval": [2500000.0, 2500000.0],
              "level": 0.9843750000000004,
              "method": "median, order statistics",
              "readings": [2500000.0, 2500000.0, 2500000.0, 2500000.0, 2500000.0, 2500000.0, 2500000.0]
            },
            "time.wall": {
              "unit": "ns",
              "pass": "timing",
              "quality": "noisy",
              "source": "script",
              "n": 7,
              "estimate": 5000000.0,
              "interval": [5000000.0, 5000000.0],
              "level": 0.9843750000000004,
              "method": "median, order statistics",
              "readings": [5000000.0, 5000000.0, 5000000.0, 5000000.0, 5000000.0, 5000000.0, 5000000.0]
            }
          }
        }
      ],
      "comparisons": [
        {
          "metric": "malloc.bytes",
          "reference": "old | 1",
          "arm": "new, \"2\"",
          "evidence": "exact",
          "effect": 1.0009765625,
          "interval": null,
          "level": null,
          "difference": 4.0,
          "margin": 0.02,
          "verdict": "different",
          "direction": "worse",
          "blocks": 3,
          "more_blocks": 0,
          "method": "exact"
        },
        {
          "metric": "malloc.count",
          "reference": "old | 1",
          "arm": "new, \"2\"",
          "evidence": "exact",
          "effect": 1.0,
          "interval": null,
          "level": null,
          "difference": 0.0,
          "margin": 0.02,
          "verdict": "same",
          "direction": null,
          "blocks": 3,
          "more_blocks": 0,
          "method": "exact"
        },
        {
          "metric": "memory.peak",
          "reference": "old | 1",
          "arm": "new, \"2\"",
          "evidence": "ranges",
          "effect": 1.0,
          "interval": null,
          "level": null,
          "ranges": [
            [1500000.0, 1500000.0],
            [1500000.0, 1500000.0]
          ],
          "difference": 0.0,
          "margin": 0.2,
          "verdict": "same",
          "direction": null,
          "blocks": 3,
          "more_blocks": 0,
          "method": "ranges"
        },
        {
          "metric": "time.cpu",
          "reference": "old | 1",
          "arm": "new, \"2\"",
          "evidence": "interval",
          "effect": 1.250000000000001,
          "interval": [1.250000000000001, 1.250000000000001],
          "level": 0.9843750000000004,
          "difference": null,
          "margin": 0.02,
          "verdict": "different",
          "direction": "worse",
          "blocks": 7,
          "more_blocks": 0,
          "method": "median of paired log ratios, order statistics"
        },
        {
          "metric": "time.wall",
          "reference": "old | 1",
          "arm": "new, \"2\"",
          "evidence": "interval",
          "effect": 1.250000000000001,
          "interval": [1.250000000000001, 1.250000000000001],
          "level": 0.9843750000000004,
          "difference": null,
          "margin": 0.02,
          "verdict": "different",
          "direction": "worse",
          "blocks": 7,
          "more_blocks": 0,
          "method": "median of paired log ratios, order statistics",
          "headline": true
        }
      ],
      "limits": [
        {
          "limit": "malloc.bytes<4kB",
          "arm": "old | 1",
          "result": "exceeded",
          "found": "4,096 B"
        },
        {
          "limit": "malloc.bytes<4kB",
          "arm": "new, \"2\"",
          "result": "exceeded",
          "found": "4,100 B"
        }
      ],
      "warnings": []
    }
    "#);
}

#[test]
fn csv_has_a_row_for_each_metric_of_each_arm() {
    let place = Place::new();
    play(&place, &["--export-csv", "out.csv"]);
    assert_snapshot!(place.read("out.csv"), @r#"
    run,arm,role,version,metric,unit,pass,quality,n,estimate,low,high,min,max,reference,effect,effect_low,effect_high,verdict,absent
    scripted-1,old | 1,subject,,time.wall,ns,timing,noisy,7,4000000,4000000,4000000,4000000,4000000,,,,,,
    scripted-1,old | 1,subject,,time.cpu,ns,timing,noisy,7,2000000,2000000,2000000,2000000,2000000,,,,,,
    scripted-1,old | 1,subject,,memory.peak,bytes,memory,noisy,3,1500000,,,1500000,1500000,,,,,,
    scripted-1,old | 1,subject,,malloc.count,count,counting,exact,3,100,,,100,100,,,,,,
    scripted-1,old | 1,subject,,malloc.bytes,bytes,counting,exact,3,4096,,,4096,4096,,,,,,
    scripted-1,old | 1,subject,,malloc.peak,,,,,,,,,,,,,,,the script says so
    scripted-1,"new, ""2""",subject,,time.wall,ns,timing,noisy,7,5000000,5000000,5000000,5000000,5000000,old | 1,1.250000000000001,1.250000000000001,1.250000000000001,different,
    scripted-1,"new, ""2""",subject,,time.cpu,ns,timing,noisy,7,2500000,2500000,2500000,2500000,2500000,old | 1,1.250000000000001,1.250000000000001,1.250000000000001,different,
    scripted-1,"new, ""2""",subject,,memory.peak,bytes,memory,noisy,3,1500000,,,1500000,1500000,old | 1,1,,,same,
    scripted-1,"new, ""2""",subject,,malloc.count,count,counting,exact,3,100,,,100,100,old | 1,1,,,same,
    scripted-1,"new, ""2""",subject,,malloc.bytes,bytes,counting,exact,3,4100,,,4100,4100,old | 1,1.0009765625,,,different,
    scripted-1,"new, ""2""",subject,,malloc.peak,,,,,,,,,,,,,,,the script says so
    "#);
}

#[test]
fn several_exports_are_all_written() {
    let place = Place::new();
    let words = ["--export-json", "a.json", "--export-csv", "a.csv", "--export-markdown", "a.md", "--json"];
    let answer = play(&place, &words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_eq!(place.read("a.json"), answer.stdout);
    assert!(place.read("a.csv").lines().count() > 5 && place.read("a.md").starts_with("| Command"));
}
