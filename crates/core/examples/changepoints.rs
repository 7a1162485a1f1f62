//! Reads series as lines of JSON (an array of numbers each) and prints for each the places of its changes, and the first and
//! last place that each may be instead: `{"changes": [...], "first": [...], "last": [...]}`. An argument is the error to
//! allow. `bench/changepoints/run.py` runs it.
#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::io::BufRead;

use scruple_core::changepoint::{Options, noisy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::default();
    if let Some(error) = std::env::args().nth(1) {
        options.error = error.parse()?;
    }
    for line in std::io::stdin().lock().lines() {
        let values: Vec<f64> = serde_json::from_str(&line?)?;
        let found = noisy(&values, &options);
        let changes = found.map(|series| series.changes).unwrap_or_default();
        let places = |of: fn(&scruple_core::changepoint::ChangePoint) -> usize| -> Vec<usize> {
            changes.iter().map(of).collect()
        };
        let (at, first, last) = (places(|c| c.at), places(|c| c.first), places(|c| c.last));
        println!("{}", serde_json::json!({"changes": at, "first": first, "last": last}));
    }
    Ok(())
}
