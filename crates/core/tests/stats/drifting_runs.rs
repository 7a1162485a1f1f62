//! Runs that were not taken side by side, and whose neighbouring readings are correlated.

use scruple_stats::paired;
use scruple_stats::rng::Pcg;

use crate::coverage::share;
use crate::noise::normal;

/// Draws `n` readings whose neighbours are correlated by `correlation`, about `level`.
fn drifting(pcg: &mut Pcg, n: usize, correlation: f64, level: f64) -> Vec<f64> {
    let mut state = normal(pcg);
    let mut next = || {
        state = correlation * state + (1.0 - correlation * correlation).sqrt() * normal(pcg);
        level * (0.02 * state).exp()
    };
    (0..n).map(|_| next()).collect()
}

#[test]
fn runs_that_drift_are_compared_by_their_ranges() {
    for correlation in [0.0, 0.6, 0.9, 0.95] {
        let (mut given, mut twice) = (0.0, 0.0);
        let held = share(400, 31, |pcg| {
            let [reference, arm, other] = [1.0, 1.0, 2.0].map(|level| drifting(pcg, 10, correlation, level));
            let found = |arm: &[f64]| paired::unpaired_effect(&reference, arm, 0.95);
            given += f64::from(u8::from(found(&arm).is_ok())) / 400.0;
            twice += f64::from(u8::from(found(&other).is_ok_and(|it| it.interval.low > 1.02))) / 400.0;
            found(&arm).map_or(true, |effect| effect.interval.contains(1.0))
        });
        assert!(given >= 0.99 && held >= 0.93, "{correlation}: {given} given, {held} held");
        assert!(twice >= 0.99, "{correlation}: twice as much was noticed in {twice}");
    }
    let few = [1.0, 1.01, 1.02, 1.03, 1.04];
    let why = paired::unpaired_effect(&few, &few, 0.95).expect_err("five readings do not show a drift");
    assert_eq!(why, paired::Why::Drifting { have: 5, need: 10 });
    assert!(why.to_string().ends_with("at least 10 are needed"), "{why}");
}
