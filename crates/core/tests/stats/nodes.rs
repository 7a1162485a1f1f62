//! How often the intervals over several machines hold, by simulation from fixed seeds.
//!
//! Each node has an effect of its own around that of the class. What is asked of an interval is the effect of the class;
//! of an interval on these nodes, the mean of their own effects.
#![expect(clippy::print_stdout, reason = "the figures are what one runs the long versions for")]

use crate::noise::normal;
use scruple_core::stats::nodes::joined;
use scruple_core::stats::paired;
use scruple_core::stats::rng::Pcg;

/// The effect of the class, as a logarithm, and the noise of a pair.
const EFFECT: f64 = 0.02;
const NOISE: f64 = 0.0141;

/// The log ratios of `k` nodes with so many pairs each, and the mean of the nodes' own effects.
fn farm(pcg: &mut Pcg, k: usize, pairs: usize, between: f64, disturbed: f64) -> (Vec<Vec<f64>>, f64) {
    let own: Vec<f64> = (0..k).map(|_| EFFECT + between * normal(pcg)).collect();
    let mut pair = |own: f64| {
        let blow = if pcg.unit() < disturbed { 0.125 * normal(pcg) } else { 0.0 };
        own + NOISE * normal(pcg) + blow
    };
    let nodes = own.iter().map(|own| (0..pairs).map(|_| pair(*own)).collect()).collect();
    (nodes, own.iter().sum::<f64>() / k as f64)
}

fn coverage(tries: u64, least: f64) {
    for (k, pairs) in [(4, 12), (8, 6), (16, 3)] {
        for between in [0.0, 0.01, 0.03] {
            for disturbed in [0.0, 0.1] {
                let mut held = [0_u64; 2];
                for number in 0..tries {
                    let mut pcg = Pcg::with_stream(k as u64, number);
                    let (nodes, _) = farm(&mut pcg, k, pairs, between, disturbed);
                    let class = joined(&nodes, 0.95).expect("nodes").effect.interval;
                    let pooled = paired::effect_of_log_ratios(&nodes.concat(), 0.95).expect("pairs").interval;
                    for (count, interval) in held.iter_mut().zip([class, pooled]) {
                        *count += u64::from(interval.contains(EFFECT.exp()));
                    }
                }
                let [class, pooled] = held.map(|count| count as f64 / tries as f64);
                println!(
                    "{k} nodes of {pairs} pairs that differ by {between}, {disturbed} disturbed: {:.1} % hold, pooled {:.1} %",
                    100.0 * class,
                    100.0 * pooled
                );
                assert!(class >= least, "{k} nodes of {pairs}, {between}, {disturbed}: {class}");
                // This is what pooling would do.
                assert!(between < 0.03 || pooled < 0.85, "{k} nodes of {pairs}: {pooled}");
            }
        }
    }
}

#[test]
fn intervals_of_a_class_hold_where_its_nodes_differ() {
    coverage(600, 0.92);
}

#[test]
#[ignore = "takes a minute; prints the table"]
fn intervals_of_a_class_hold_where_its_nodes_differ_at_length() {
    coverage(6000, 0.935);
}

#[test]
fn intervals_on_two_or_three_nodes_hold_what_these_nodes_do() {
    for (k, pairs) in [(2, 24), (3, 16), (3, 12)] {
        for between in [0.0, 0.01, 0.03] {
            let tries = 600;
            let held = (0..tries).filter(|number| {
                let (nodes, own) =
                    farm(&mut Pcg::with_stream(90 + k as u64, *number), k, pairs, between, 0.0);
                let found = joined(&nodes, 0.95).expect("nodes");
                assert!(!found.of_class);
                found.effect.interval.contains(own.exp())
            });
            let held = held.count() as f64 / tries as f64;
            println!("{k} nodes of {pairs} pairs that differ by {between}: {:.1} % hold", 100.0 * held);
            assert!(held >= 0.92, "{k} nodes of {pairs} pairs, {between}: {held}");
        }
    }
}
