//! Scripts of readings: arms whose every cost is made up, and the same on every machine.

use crate::support::{Answer, Place};
use serde_json::{Map, Value, json};

/// How many timing launches an arm has before the last one repeats.
const LAUNCHES: u64 = 100;

/// The readings of one arm, launch by launch.
#[derive(Clone)]
pub struct Arm {
    passes: Map<String, Value>,
}

/// An arm that costs `factor` times what the usual arm costs, with noise of about one in a thousand of its own, drawn
/// from `seed`, on top of noise of some per cent that all arms of a block share.
pub fn arm(factor: f64, seed: u64) -> Arm {
    noisy_arm(factor, seed, 0.001)
}

/// The same with a spread of its own.
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
    /// Sets a reading of every launch of a pass.
    pub fn with(self, pass: &str, key: &str, value: impl Fn(usize) -> f64) -> Arm {
        self.each(pass, |launch, entry| entry["readings"][key] = json!(value(launch)))
    }

    /// Drops a reading and gives the reason why it could not be had.
    pub fn absent(self, pass: &str, key: &str, why: &str) -> Arm {
        self.each(pass, |_, entry| {
            if let Some(readings) = entry["readings"].as_object_mut() {
                readings.remove(key);
            }
            entry["absent"][key] = json!(why);
        })
    }

    /// Changes every launch of a pass.
    pub fn each(mut self, pass: &str, change: impl Fn(usize, &mut Value)) -> Arm {
        let entries = self.passes[pass].as_array_mut().expect("launches");
        for (launch, entry) in entries.iter_mut().enumerate() {
            change(launch, entry);
        }
        self
    }

    /// Gives a pass this many launches, all like its first.
    pub fn launches(mut self, pass: &str, count: usize) -> Arm {
        let first = self.passes[pass][0].clone();
        self.passes[pass] = Value::Array(vec![first; count]);
        self
    }
}

/// A number between 0 and 1 that depends on nothing but its arguments (the finalizer of SplitMix64).
fn chance(stream: u64, index: u64) -> f64 {
    let mut x = (stream << 32 | index).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ x >> 31) >> 11) as f64 / (1_u64 << 53) as f64
}

impl Place {
    /// Writes a script of these arms.
    pub fn script(&self, arms: &[(&str, Arm)]) {
        let arms: Map<String, Value> =
            arms.iter().map(|(name, arm)| ((*name).to_owned(), Value::Object(arm.passes.clone()))).collect();
        self.write("script.json", json!({"arms": arms}).to_string());
    }

    /// Plays a script: the words that follow `scruple run --scripted FILE`.
    pub fn play(&self, arms: &[(&str, Arm)], words: &[&str]) -> Answer {
        self.script(arms);
        self.run(["run", "--scripted", "script.json"].iter().chain(words))
    }
}

/// Plays a script of two arms named old and new without storing it, over twenty blocks unless the words say otherwise.
pub fn old_and_new(old: Arm, new: Arm, words: &[&str]) -> Answer {
    let place = Place::new();
    let all = ["--no-store", "-n", "old", "-n", "new", "true", "true new"].iter().chain(words);
    let words: Vec<&str> = all.copied().collect();
    place.play(&[("old", old), ("new", new)], &words)
}
