//! A verdict on leaks: does the live heap grow with the work, or does it stay?
//!
//! A program that forgets to let go keeps a share of everything it has ever handled, so the most live data of a run
//! grows in proportion to the run's workload. One run cannot tell that from a program that needs much memory; runs of
//! several sizes can.

/// What the runs show.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The live heap grows in proportion to the workload.
    Grows {
        /// Bytes kept for each unit of work.
        bytes_per_unit: f64,
        /// How much of the variation the straight line explains, from 0 to 1.
        fit: f64,
    },
    /// It grows, but less and less for each unit of work: a structure whose size is bounded, a root, a logarithm.
    Slows {
        /// The power of the workload by which it grows.
        power: f64,
    },
    /// It stays the same.
    Steady {
        /// The largest residency divided by the smallest.
        ratio: f64,
    },
    /// The runs cannot tell.
    Unknown {
        /// Why, and what would tell.
        why: String,
    },
}

/// Judges runs of different workloads, each a size and the most live data of that run.
///
/// In proportion means one of two things. Either a straight line explains the residencies, and the last step costs as
/// much for each unit of work as the first; what a program holds anyway is the line's intercept, and hides nothing. Or
/// they grow as the workload's power of 0.8 or more: a residency is only seen at major collections, which come at
/// doublings of the heap, so even a perfect leak looks like a staircase.
pub fn judge(runs: &[(f64, f64)]) -> Verdict {
    let mut runs: Vec<(f64, f64)> =
        runs.iter().copied().filter(|(size, live)| *size > 0.0 && *live > 0.0).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sizes: Vec<f64> = runs.iter().map(|(size, _)| *size).collect();
    sizes.dedup();
    if sizes.len() < 3 {
        return Verdict::Unknown { why: "at least three workloads of different sizes are needed".to_owned() };
    }
    if sizes[sizes.len() - 1] < 4.0 * sizes[0] {
        let why = "the largest workload must be at least four times the smallest".to_owned();
        return Verdict::Unknown { why };
    }
    let most = runs.iter().map(|(_, live)| *live).fold(0.0, f64::max);
    let least = runs.iter().map(|(_, live)| *live).fold(f64::INFINITY, f64::min);
    if most < 1.2 * least {
        return Verdict::Steady { ratio: most / least };
    }
    let (slope, fit) = line(&runs);
    let mean = |size: f64| {
        let of_size: Vec<f64> = runs.iter().filter(|run| run.0 == size).map(|run| run.1).collect();
        of_size.iter().sum::<f64>() / of_size.len() as f64
    };
    let step = |from: f64, to: f64| (mean(to) - mean(from)) / (to - from);
    let (first, last) = (step(sizes[0], sizes[1]), step(sizes[sizes.len() - 2], sizes[sizes.len() - 1]));
    let logs: Vec<(f64, f64)> = runs.iter().map(|(size, live)| (size.ln(), live.ln())).collect();
    let (power, power_fit) = line(&logs);
    let rises = sizes.windows(2).all(|pair| step(pair[0], pair[1]) > 0.0);
    let straight = slope > 0.0 && fit > 0.98 && last > 0.7 * first;
    let staircase = slope > 0.0 && power >= 0.8 && power_fit > 0.9;
    if straight || staircase {
        Verdict::Grows { bytes_per_unit: slope, fit: fit.max(power_fit) }
    } else if rises && power < 0.8 {
        Verdict::Slows { power }
    } else {
        Verdict::Unknown {
            why: "the residency goes up and down with the workload; weigh more sizes".to_owned(),
        }
    }
}

/// Least squares: the slope, and the share of variation explained.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum =
        |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|point| f(point.0 - x, point.1 - y)).sum::<f64>();
    let (xx, xy, yy) = (sum(&|dx, _| dx * dx), sum(&|dx, dy| dx * dy), sum(&|_, dy| dy * dy));
    let slope = if xx > 0.0 { xy / xx } else { 0.0 };
    let fit = if xx > 0.0 && yy > 0.0 { xy * xy / (xx * yy) } else { 0.0 };
    (slope, fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_kept_is_a_leak() {
        let runs: Vec<(f64, f64)> = [1e4, 2e4, 4e4, 8e4].iter().map(|n| (*n, 50_000.0 + 40.0 * n)).collect();
        match judge(&runs) {
            Verdict::Grows { bytes_per_unit, fit } => {
                assert!((bytes_per_unit - 40.0).abs() < 1e-6 && fit > 0.999);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_staircase_is_a_leak_too() {
        let runs = [(2e5, 6_248_496.0), (4e5, 11_470_896.0), (8e5, 20_871_216.0), (16e5, 63_694_656.0)];
        assert!(
            matches!(judge(&runs), Verdict::Grows { bytes_per_unit, .. } if (30.0..50.0).contains(&bytes_per_unit))
        );
    }

    #[test]
    fn a_large_base_does_not_hide_a_leak() {
        let runs: Vec<(f64, f64)> = [1e4, 2e4, 4e4, 8e4].iter().map(|n| (*n, 1e6 + 40.0 * n)).collect();
        assert!(matches!(judge(&runs), Verdict::Grows { .. }));
    }

    #[test]
    fn a_constant_heap_is_steady() {
        let runs = [(1e4, 45_000.0), (4e4, 45_800.0), (16e4, 44_900.0)];
        assert!(matches!(judge(&runs), Verdict::Steady { ratio } if ratio < 1.03));
    }

    #[test]
    fn a_logarithm_is_not_a_leak() {
        let runs: Vec<(f64, f64)> = [1e3, 1e4, 1e5, 1e6].iter().map(|n: &f64| (*n, 1e4 * n.ln())).collect();
        assert!(matches!(judge(&runs), Verdict::Slows { .. }));
        let roots: Vec<(f64, f64)> =
            [1e4, 2e4, 4e4, 8e4].iter().map(|n: &f64| (*n, 1e4 * n.sqrt())).collect();
        assert!(matches!(judge(&roots), Verdict::Slows { .. }));
    }

    #[test]
    fn a_wandering_residency_is_not_judged() {
        let runs = [(1e4, 45_000.0), (2e4, 145_000.0), (4e4, 44_900.0), (8e4, 150_000.0)];
        assert!(matches!(judge(&runs), Verdict::Unknown { .. }));
    }

    #[test]
    fn too_little_is_said_to_be_too_little() {
        assert!(matches!(judge(&[(1.0, 2.0), (2.0, 4.0)]), Verdict::Unknown { .. }));
        assert!(matches!(judge(&[(1.0, 2.0), (1.5, 4.0), (2.0, 5.0)]), Verdict::Unknown { .. }));
    }
}
