//! Reads series as lines of JSON (an array of numbers each) and prints for each the places of its changes, the first
//! and last place that each may be instead, and whether there is a slow background: `{"changes": [...], "first": [...],
//! "last": [...], "background": false}`. An argument is the least step to name, as a share of the level.
//! `bench/changepoints/` runs it.
#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::io::BufRead;

use scruple_stats::changepoint::{ChangePoint, SeriesOptions, noisy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = SeriesOptions::default();
    if let Some(least) = std::env::args().nth(1) {
        options.least = least.parse::<f64>()?.ln_1p();
    }
    for line in std::io::stdin().lock().lines() {
        let values: Vec<f64> = serde_json::from_str(&line?)?;
        let found = noisy(&values, &options)?;
        let places = |of: fn(&ChangePoint) -> usize| -> Vec<usize> { found.changes.iter().map(of).collect() };
        let (at, first, last) = (places(|c| c.at), places(|c| c.first), places(|c| c.last));
        let background = found.background.is_some();
        println!(
            "{}",
            serde_json::json!({"changes": at, "first": first, "last": last, "background": background})
        );
    }
    Ok(())
}
