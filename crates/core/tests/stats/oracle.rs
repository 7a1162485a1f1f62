//! Comparison with values computed by NumPy and SciPy or by plain enumeration (`tests/reference/make.py`).

use std::sync::LazyLock;

use scruple_stats::growth::{self, GrowthForm};
use scruple_stats::rng::Pcg;
use scruple_stats::summary::{Summary, mean, sd};
use scruple_stats::{bootstrap, holm, median_interval, ols, outlier, quantile, ranks};
use serde_json::Value;

static REFERENCE: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../stats/tests/reference/statistics.json"))
        .expect("the reference file is JSON")
});

fn cases(section: &str) -> &'static [Value] {
    REFERENCE[section].as_array().expect("the section is a list")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(number).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn count(value: &Value) -> usize {
    value.as_u64().expect("a count") as usize
}

#[track_caller]
fn close(found: f64, expected: f64, relative: f64) {
    let scale = found.abs().max(expected.abs()).max(1e-300);
    assert!((found - expected).abs() <= relative * scale, "found {found}, expected {expected}");
}

#[test]
fn the_generator_gives_the_published_output_of_pcg32_demo() {
    let mut pcg = Pcg::with_stream(42, 54);
    let words: Vec<u32> = (0..6).map(|_| pcg.next_u32()).collect();
    assert_eq!(words, [0xa15c_02b7, 0x7b47_f409, 0xba1d_3330, 0x83d2_f293, 0xbfa4_784b, 0xcbed_606e]);
    let coins: String = (0..65).map(|_| if pcg.below(2) == 1 { 'H' } else { 'T' }).collect();
    assert_eq!(coins, "HHTTTHTHHHTHTTTHHHHHTTTHHHTHTHTHTTHTTTHHHHHHTTTTHHTTTTTHTTTTTTTHT");
    let rolls: String = (0..33).map(|_| char::from(b'1' + pcg.below(6) as u8)).collect();
    assert_eq!(rolls, "341122324324335231315141564662633");
    let mut cards: Vec<usize> = (0..52).collect();
    pcg.shuffle(&mut cards);
    let name =
        |card: &usize| format!("{}{}", char::from(b"A23456789TJQK"[card / 4]), char::from(b"hcds"[card % 4]));
    let dealt: Vec<String> = cards.iter().map(name).collect();
    assert!(dealt.join(" ").starts_with("Qd Ks 6d 3s 3d 4c 3h Td Kc 5c Jh Kd Jd As 4s 4h Ad Th Ac Jc 7s Qs"));
    assert!(dealt.join(" ").ends_with("7d 8s 9d 5h 8h Qc 7c Tc"));
}

#[test]
fn quantiles_agree_with_numpy() {
    for case in cases("quantiles") {
        let sorted = quantile::sorted(&numbers(&case["data"]));
        for (p, q) in numbers(&case["p"]).into_iter().zip(numbers(&case["q"])) {
            close(quantile::quantile(&sorted, p), q, 1e-13);
        }
    }
}

#[test]
fn summaries_agree_with_numpy() {
    for case in cases("summaries") {
        let summary = Summary::of(&numbers(&case["data"])).expect("readings are finite");
        let found = serde_json::to_value(summary).expect("a summary has a JSON form");
        for (key, value) in case.as_object().expect("an object").iter().filter(|(key, _)| *key != "data") {
            close(number(&found[key]), number(value), 1e-13);
        }
    }
}

#[test]
fn quantile_intervals_take_the_ranks_that_exact_fractions_give() {
    for case in cases("quantile_intervals") {
        let readings: Vec<f64> = (1..=count(&case["n"])).map(|rank| rank as f64).collect();
        let found = median_interval::quantile_interval(&readings, number(&case["p"]), number(&case["level"]));
        match (found, case["low"].as_f64()) {
            (None, None) => {}
            (Some(found), Some(low)) => {
                assert_eq!((found.low, found.high), (low, number(&case["high"])), "{case}");
                close(found.level, number(&case["achieved"]), 1e-12);
            }
            (found, _) => panic!("{found:?} where {case}"),
        }
    }
}

#[test]
fn signed_rank_distributions_agree_with_writing_out_all_signs() {
    for case in cases("signed_rank_distributions") {
        let found = ranks::signed_rank_distribution(count(&case["n"]));
        assert_eq!(found, numbers(&case["chances"]));
    }
}

#[test]
fn signed_rank_intervals_are_the_shifts_that_scipy_does_not_reject() {
    for case in cases("signed_rank_intervals") {
        let data = numbers(&case["data"]);
        close(ranks::hodges_lehmann(&data), number(&case["estimate"]), 1e-13);
        let found = ranks::signed_rank_interval(&data, number(&case["level"]));
        assert_eq!(found.is_some(), case["low"].is_number(), "n {} at {}", data.len(), case["level"]);
        if let Some(found) = found {
            close(found.low, number(&case["low"]), 1e-12);
            close(found.high, number(&case["high"]), 1e-12);
            assert!(found.level >= number(&case["level"]) - 1e-12);
        }
    }
}

#[test]
fn tied_differences_keep_the_ranks_of_untied_ones() {
    for case in cases("signed_rank_ties") {
        let data = numbers(&case["data"]);
        let found = ranks::signed_rank_interval(&data, 0.95).expect("there are enough");
        close(found.low, number(&case["low"]), 1e-12);
        close(found.high, number(&case["high"]), 1e-12);
        close(found.level, number(&case["achieved"]), 1e-12);
        close(ranks::hodges_lehmann(&data), number(&case["estimate"]), 1e-12);
    }
}

#[test]
fn mann_whitney_agrees_with_scipy() {
    for case in cases("mann_whitney") {
        let (x, y) = (numbers(&case["x"]), numbers(&case["y"]));
        assert_eq!(ranks::mann_whitney_u(&x, &y), number(&case["u"]));
        if case["ties"].is_boolean() {
            continue;
        }
        let found = ranks::mann_whitney(&x, &y, number(&case["level"]));
        assert_eq!(
            found.is_some(),
            case["low"].is_number(),
            "{} and {} at {}",
            x.len(),
            y.len(),
            case["level"]
        );
        if let Some(found) = found {
            close(found.estimate, number(&case["estimate"]), 1e-12);
            close(found.interval.low, number(&case["low"]), 1e-12);
            close(found.interval.high, number(&case["high"]), 1e-12);
        }
    }
}

#[test]
fn bootstrap_intervals_agree_with_scipy_within_their_own_noise() {
    for case in cases("bootstraps") {
        let data = numbers(&case["data"]);
        let statistic = if case["statistic"] == "mean" { mean } else { |d: &[f64]| sd(d).unwrap_or(0.0) };
        let found = if case["method"] == "BCa" {
            bootstrap::bca(&data, statistic, 0.95, 10_000, 7)
        } else {
            bootstrap::percentile(&data, statistic, 0.95, 10_000, 7)
        };
        let found = found.expect("forty readings suffice").interval;
        let slack = 0.04 * number(&case["width"]);
        assert!((found.low - number(&case["low"])).abs() < slack, "{found:?} where {case}");
        assert!((found.high - number(&case["high"])).abs() < slack, "{found:?} where {case}");
    }
}

#[test]
fn lines_and_their_intervals_agree_with_scipy() {
    for case in cases("lines") {
        let (x, y) = (numbers(&case["x"]), numbers(&case["y"]));
        let line = ols::fit(&x, &y).expect("x varies");
        close(line.slope, number(&case["slope"]), 1e-12);
        close(line.intercept, number(&case["intercept"]), 1e-9);
        close(line.r_squared, number(&case["r_squared"]), 1e-10);
        if case["slope_interval"].is_null() {
            continue;
        }
        let panel = ols::panel(&x, &y, 0.95, 4000, 3).expect("x varies");
        for (name, found) in
            [("slope", panel.slope), ("intercept", panel.intercept), ("r_squared", panel.r_squared)]
        {
            let expected = numbers(&case[format!("{name}_interval").as_str()]);
            let slack = 0.08 * (expected[1] - expected[0]);
            assert!((found.interval.low - expected[0]).abs() < slack, "{name}: {found:?}, {expected:?}");
            assert!((found.interval.high - expected[1]).abs() < slack, "{name}: {found:?}, {expected:?}");
        }
    }
}

#[test]
fn outliers_and_their_variance_agree_with_the_formula_written_twice() {
    for case in cases("outliers") {
        let data = numbers(&case["data"]);
        let classes = outlier::classify(&data);
        let found =
            [classes.low_severe, classes.low_mild, classes.normal, classes.high_mild, classes.high_severe];
        let expected: Vec<usize> = numbers(&case["counts"]).into_iter().map(|c| c as usize).collect();
        assert_eq!(found.as_slice(), expected);
        let share = outlier::variance(&data).expect("the mean is positive").share;
        assert!(
            (share - number(&case["share"]).clamp(0.0, 1.0)).abs() < 1e-9,
            "{share} where {}",
            case["share"]
        );
    }
}

#[test]
fn holm_agrees_with_closed_testing() {
    for case in cases("holm") {
        let p = numbers(&case["p"]);
        let adjusted = numbers(&case["adjusted"]);
        // Tests at Holm's levels reject exactly those hypotheses that the adjusted p-values reject.
        for alpha in [0.01, 0.05, 0.2] {
            let levels = holm::holm(p.len(), 1.0 - alpha, |i, level| p[i] <= 1.0 - level);
            for i in 0..p.len() {
                assert_eq!(p[i] <= 1.0 - levels[i], adjusted[i] <= alpha, "{p:?} at {alpha}");
            }
        }
    }
}

#[test]
fn noisy_growth_agrees_with_least_squares_by_numpy() {
    for case in cases("growths") {
        let points: Vec<(f64, f64)> = numbers(&case["n"]).into_iter().zip(numbers(&case["cost"])).collect();
        let found = growth::noisy(&points, 0.95).expect("seven sizes");
        assert_eq!(found.form.to_string(), case["form"].as_str().expect("a name"));
        close(found.intercept, number(&case["intercept"]), 1e-8);
        close(found.slope, number(&case["slope"]), 1e-8);
        let interval = found.slope_interval.expect("noise has an interval");
        close(interval.low, number(&case["low"]), 1e-7);
        close(interval.high, number(&case["high"]), 1e-7);
        let mut possible: Vec<String> = found.also_possible.iter().map(GrowthForm::to_string).collect();
        possible.sort();
        let expected: Vec<&str> =
            case["possible"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        assert_eq!(possible, expected);
    }
}

#[test]
fn the_closest_line_is_the_one_of_linear_programming() {
    for case in cases("chebyshev") {
        let whole = |value: &Value| numbers(value).into_iter().map(|v| v as u64).collect::<Vec<_>>();
        let points: Vec<(u64, u64)> = whole(&case["n"]).into_iter().zip(whole(&case["cost"])).collect();
        let found = growth::within(&points, 1e9).expect("the tolerance is wide");
        let linear = growth::within(&points, number(&case["residual"]) + 1e-6).expect("the line is within");
        assert!(found.form == GrowthForm::Constant || found.residual <= linear.residual);
        let residual =
            if linear.form == GrowthForm::Linear { linear.residual } else { number(&case["residual"]) };
        close(residual, number(&case["residual"]), 1e-9);
    }
}
