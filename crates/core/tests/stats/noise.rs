//! Simulated readings from a seed, on a machine that is quiet, skewed, or busy with the work of others.

use scruple_stats::rng::Pcg;

/// What disturbs the readings of a simulated machine.
#[derive(Clone, Copy, Debug)]
pub enum Noise {
    /// Log-normal noise of 1 %.
    Quiet,
    /// Noise that only adds: 1 % of an exponential distribution.
    Skewed,
    /// Log-normal noise of 1 %, and this share of readings inflated by a factor between 1 and 10.
    Busy(f64),
    /// Disturbances of this share that last for several readings of both arms, and a drifting clock.
    Bursts(f64),
}

pub const NOISES: [Noise; 7] = [
    Noise::Quiet,
    Noise::Skewed,
    Noise::Busy(0.05),
    Noise::Busy(0.2),
    Noise::Busy(0.4),
    Noise::Bursts(0.1),
    Noise::Bursts(0.4),
];

pub fn normal(pcg: &mut Pcg) -> f64 {
    (-2.0 * (1.0 - pcg.unit()).ln()).sqrt() * (std::f64::consts::TAU * pcg.unit()).cos()
}

/// Blocks of a reference and of an arm that truly costs `ratio` times as much, visited in random order.
pub fn blocks(pcg: &mut Pcg, noise: Noise, n: usize, ratio: f64) -> (Vec<f64>, Vec<f64>) {
    let (mut disturbed, mut drift) = (1.0, 1.0);
    let (mut reference, mut arm) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for _ in 0..n {
        let mut draw = || match noise {
            Noise::Quiet => (0.01 * normal(pcg)).exp(),
            Noise::Skewed => 1.0 - 0.01 * (1.0 - pcg.unit()).ln(),
            Noise::Busy(share) => {
                let inflated = if pcg.unit() < share { 1.0 + 9.0 * pcg.unit() } else { 1.0 };
                inflated * (0.01 * normal(pcg)).exp()
            }
            Noise::Bursts(share) => {
                // Every fourth reading on average draws a new state, which is a disturbed one with the probability
                // `share`.
                if pcg.unit() < 0.25 {
                    disturbed = if pcg.unit() < share { 1.0 + 9.0 * pcg.unit() } else { 1.0 };
                }
                drift *= (0.003 * normal(pcg)).exp();
                disturbed * drift * (0.01 * normal(pcg)).exp()
            }
        };
        let (first, second) = (draw(), draw());
        let swap = pcg.below(2) == 1;
        let (r, a) = if swap { (second, first) } else { (first, second) };
        reference.push(100.0 * r);
        arm.push(100.0 * ratio * a);
    }
    (reference, arm)
}

/// The readings of several processes. `between` is the standard deviation of their medians, and `within` that of the
/// readings of one process (of logarithms).
pub fn processes(pcg: &mut Pcg, processes: usize, each: usize, between: f64, within: f64) -> Vec<Vec<f64>> {
    let mut one = || {
        let level = 100.0 * (between * normal(pcg)).exp();
        (0..each).map(|_| level * (within * normal(pcg)).exp()).collect()
    };
    (0..processes).map(|_| one()).collect()
}
