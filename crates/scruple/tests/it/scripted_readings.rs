//! Scripts of readings: arms with invented costs, which are the same on every machine.

use crate::support::{Answer, Place};
use serde_json::{Map, Value, json};

/// The number of scripted timing launches of an arm. Further launches repeat the last one.
const LAUNCHES: u64 = 100;

/// The scripted readings of one arm: a list of launches for each pass.
#[derive(Clone)]
pub struct Arm {
    passes: Map<String, Value>,
}

/// An arm whose costs are `factor` times those of the usual arm. Its noise has two parts: about 0.1 % of its own, drawn
/// from `seed`, and up to 5 % that all arms of a block share.
pub fn arm(factor: f64, seed: u64) -> Arm {
    noisy_arm(factor, seed, 0.001)
}

/// Like [`arm`], with noise of its own of at most ± `spread`, relative to its costs.
pub fn noisy_arm(factor: f64, seed: u64, spread: f64) -> Arm {
    let timing: Vec<Value> = (0..LAUNCHES)
        .map(|launch| {
            let shared = 1.0 + 0.05 * chance(0, launch);
            let own = |stream: u64| factor * (1.0 + spread * (2.0 * chance(seed * 8 + stream, launch) - 1.0));
            let (wall, cpu) = (5e6 * shared * own(1), 4e6 * own(2));
            json!({"readings": {"time.wall": wall.round(), "time.cpu": cpu.round()}})
        })
        .collect();
    let memory = json!([{"readings": {"memory.peak": 1_500_000}, "stdout": "the same"}]);
    let counting = json!([{"readings": {"malloc.count": 100, "malloc.bytes": 4096, "malloc.peak": 2048}}]);
    let passes = json!({"timing": timing, "memory": memory, "counting": counting});
    Arm { passes: passes.as_object().expect("an object").clone() }
}

impl Arm {
    /// Sets the reading `key` in every launch of a pass.
    pub fn with(self, pass: &str, key: &str, value: impl Fn(usize) -> f64) -> Arm {
        self.each(pass, |launch, entry| entry["readings"][key] = json!(value(launch)))
    }

    /// Makes a metric absent in every launch of a pass, with the reason `why`.
    pub fn absent(self, pass: &str, key: &str, why: &str) -> Arm {
        self.each(pass, |_, entry| {
            if let Some(readings) = entry["readings"].as_object_mut() {
                readings.remove(key);
            }
            entry["absent"][key] = json!(why);
        })
    }

    /// Calls `change` on every launch of a pass.
    pub fn each(mut self, pass: &str, change: impl Fn(usize, &mut Value)) -> Arm {
        let entries = self.passes[pass].as_array_mut().expect("launches");
        for (launch, entry) in entries.iter_mut().enumerate() {
            change(launch, entry);
        }
        self
    }

    /// Replaces the launches of a pass by `count` copies of its first.
    pub fn launches(mut self, pass: &str, count: usize) -> Arm {
        let first = self.passes[pass][0].clone();
        self.passes[pass] = Value::Array(vec![first; count]);
        self
    }
}

/// A pseudorandom number in [0, 1) that depends on the arguments only (the finalizer of SplitMix64).
fn chance(stream: u64, index: u64) -> f64 {
    let mut x = (stream << 32 | index).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ x >> 31) >> 11) as f64 / (1_u64 << 53) as f64
}

impl Place {
    /// Writes a script with these arms to `script.json`.
    pub fn script(&self, arms: &[(&str, Arm)]) {
        let arms: Map<String, Value> =
            arms.iter().map(|(name, arm)| ((*name).to_owned(), Value::Object(arm.passes.clone()))).collect();
        self.write("script.json", json!({"arms": arms}).to_string());
    }

    /// Runs `scruple run --scripted` on these arms. `words` are the further arguments.
    pub fn play(&self, arms: &[(&str, Arm)], words: &[&str]) -> Answer {
        self.script(arms);
        self.run(["run", "--scripted", "script.json"].iter().chain(words))
    }
}

/// Runs two scripted arms, named `old` and `new`, without storing the run.
pub fn old_and_new(old: Arm, new: Arm, words: &[&str]) -> Answer {
    let place = Place::new();
    let all = ["--no-store", "-n", "old", "-n", "new", "true", "true new"].iter().chain(words);
    let words: Vec<&str> = all.copied().collect();
    place.play(&[("old", old), ("new", new)], &words)
}
