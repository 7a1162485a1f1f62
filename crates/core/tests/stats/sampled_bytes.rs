//! Sums of sampled blocks: estimates without bias, and intervals that hold the truth as often as they say.

use scruple_stats::Pcg;
use scruple_stats::sampled_bytes::{SampledBytes, probability, share};

const MEAN: u64 = 512 * 1024;

/// Blocks of one size.
type Blocks = (u64, usize);

/// Samples blocks as the library does: distances between chosen bytes are exponential.
fn sample(blocks: &[Blocks], mean: u64, random: &mut Pcg) -> SampledBytes {
    let mut next = || (-(1.0 - random.unit()).ln() * mean as f64) as u64 + 1;
    let (mut sum, mut until) = (SampledBytes::default(), next());
    for (size, count) in blocks {
        for _ in 0..*count {
            if *size >= until {
                sum.add(*size, probability(*size, mean));
                until = next();
            } else {
                until -= size;
            }
        }
    }
    sum
}

fn bytes(blocks: &[Blocks]) -> f64 {
    blocks.iter().map(|(size, count)| (size * *count as u64) as f64).sum()
}

/// The parts of which programs are made: few or many samples, small, large and mixed blocks, and a rest of each kind.
const CASES: [(&[Blocks], &[Blocks]); 10] = [
    (&[(4096, 500)], &[(4096, 5000)]),
    (&[(4096, 5000)], &[(4096, 5000)]),
    (&[(16_384, 50)], &[(4096, 20_000)]),
    (&[(4096, 20_000)], &[(16_384, 50)]),
    (&[(300_000, 20)], &[(16_384, 2000)]),
    (&[(3_000_000, 10)], &[(16_384, 2000)]),
    (&[(3_000_000, 10)], &[(1_000_000, 20)]),
    (&[(3_000_000, 2), (8192, 1000)], &[(600_000, 10), (8192, 3000)]),
    (&[(600_000, 3)], &[(8192, 3000), (50_000_000, 1)]),
    (&[(8192, 10)], &[(8192, 3000)]),
];

#[test]
fn intervals_of_shares_hold_the_truth_at_their_level() {
    let mut random = Pcg::new(20);
    const TRIES: u32 = 2000;
    for (part, rest) in CASES {
        let truth = bytes(part) / (bytes(part) + bytes(rest));
        let mut held = 0;
        for _ in 0..TRIES {
            let interval =
                share(sample(part, MEAN, &mut random), sample(rest, MEAN, &mut random), MEAN, 0.95);
            held += u32::from(interval.contains(truth));
        }
        // Four standard errors below 95 %.
        assert!(f64::from(held) >= f64::from(TRIES) * 0.93, "{part:?} {rest:?}: {held} of {TRIES}");
    }
}

#[test]
fn estimates_of_sums_have_no_bias_and_the_stated_variance() {
    let mut random = Pcg::new(21);
    const TRIES: u32 = 4000;
    for (blocks, _) in CASES {
        let all: Vec<SampledBytes> = (0..TRIES).map(|_| sample(blocks, MEAN, &mut random)).collect();
        let mean = |of: &dyn Fn(&SampledBytes) -> f64| all.iter().map(of).sum::<f64>() / f64::from(TRIES);
        let (truth, found) = (bytes(blocks), mean(&|one| one.sum));
        let variance = mean(&|one| (one.sum - truth).powi(2));
        let error = (variance / f64::from(TRIES)).sqrt();
        assert!((found - truth).abs() <= 4.5 * error + 1e-6 * truth, "{blocks:?}: {found}, truth {truth}");
        let stated = mean(&|one| one.variance);
        assert!((stated - variance).abs() <= 0.15 * variance + 1e-6, "{blocks:?}: {stated}, {variance}");
    }
}

#[test]
fn of_small_blocks_the_interval_is_that_of_clopper_and_pearson() {
    // 7 of 20 samples: 15.39 % to 59.22 %, from binom.test(7, 20) of R.
    let small = |samples: u64| {
        let unit = MEAN as f64;
        SampledBytes { samples, sum: samples as f64 * unit, variance: samples as f64 * unit * unit }
    };
    let interval = share(small(7), small(13), MEAN, 0.95);
    assert!((interval.low - 0.1539092).abs() < 1e-5, "{interval:?}");
    assert!((interval.high - 0.5921885).abs() < 1e-5, "{interval:?}");
}

#[test]
fn the_share_of_nothing_is_unknown_and_that_of_all_blocks_is_known() {
    let nothing = SampledBytes::default();
    let unknown = share(nothing, nothing, MEAN, 0.95);
    assert_eq!((unknown.low, unknown.high), (0.0, 1.0));
    let (mut part, mut rest) = (nothing, nothing);
    part.add(100, probability(100, 1));
    rest.add(300, probability(300, 1));
    let known = share(part, rest, 1, 0.95);
    assert_eq!((known.low, known.high, part.sum), (0.25, 0.25, 100.0));
}

#[test]
fn a_block_is_as_likely_in_the_sample_as_one_of_its_bytes_is_chosen() {
    assert!((probability(MEAN, MEAN) - 0.6321205588).abs() < 1e-9);
    assert!((probability(1, MEAN) * MEAN as f64 - 1.0).abs() < 1e-5);
    assert_eq!((probability(1 << 40, MEAN), probability(0, 1)), (1.0, 1.0));
}
