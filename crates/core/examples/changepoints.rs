//! Reads series as lines of JSON (an array of numbers each) and prints for each what was found and how long it took:
//! `{"changes": [places], "first": [...], "last": [...], "ms": milliseconds}`. An argument is the error to allow. `bench/changepoints/run.py` runs it.
#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::io::BufRead;
use std::time::Instant;

use scruple_core::changepoint::{Options, noisy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::default();
    if let Some(error) = std::env::args().nth(1) {
        options.error = error.parse()?;
    }
    for line in std::io::stdin().lock().lines() {
        let values: Vec<f64> = serde_json::from_str(&line?)?;
        let start = Instant::now();
        let found = noisy(&values, &options);
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let changes = found.map(|series| series.changes).unwrap_or_default();
        let places = |of: fn(&scruple_core::changepoint::ChangePoint) -> usize| -> Vec<usize> {
            changes.iter().map(of).collect()
        };
        let (at, first, last) = (places(|c| c.at), places(|c| c.first), places(|c| c.last));
        println!("{}", serde_json::json!({"changes": at, "first": first, "last": last, "ms": ms}));
    }
    Ok(())
}
