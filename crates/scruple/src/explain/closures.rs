//! Which types of closures two Haskell programs allocate more or less of.

use scruple_code::Side;
use scruple_stats::sorting;
use scruple_stats::summary::mean;
use serde::Serialize;

/// The closures of a type that two programs allocate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClosureDifference {
    /// The type: a constructor, a function, or the thunks of a function.
    #[serde(rename = "type")]
    pub name: String,
    /// The number of closures of each program.
    pub closures: (f64, f64),
    /// Their bytes; 0 where closures of one type have different sizes.
    pub bytes: (f64, f64),
}

/// The smallest number of times the variation between launches of a program that a difference must be.
const ABOVE: f64 = 3.0;

/// Returns the types whose numbers differ by more than they vary between launches of either program, as means of the
/// launches; the largest difference in bytes first.
pub fn differing(sides: [&[Side]; 2]) -> Vec<ClosureDifference> {
    let names: Vec<&String> =
        sorting::distinct(sides.iter().flat_map(|runs| runs.iter().flat_map(|run| run.closures.keys())));
    let mut all: Vec<ClosureDifference> = Vec::new();
    for name in names {
        let known = |run: &Side| run.closures.get(name).copied().unwrap_or_default();
        let counts = sides.map(|runs| runs.iter().map(|run| known(run).count as f64).collect::<Vec<f64>>());
        let bytes = sides.map(|runs| runs.iter().map(|run| known(run).bytes as f64).collect::<Vec<f64>>());
        let closures = (mean(&counts[0]), mean(&counts[1]));
        let spread = counts.iter().map(|values| range(values)).fold(0.0, f64::max);
        if (closures.1 - closures.0).abs() > ABOVE * spread {
            let bytes = (mean(&bytes[0]), mean(&bytes[1]));
            all.push(ClosureDifference { name: name.clone(), closures, bytes });
        }
    }
    let size = |one: &ClosureDifference| (one.bytes.1 - one.bytes.0).abs();
    let number = |one: &ClosureDifference| (one.closures.1 - one.closures.0).abs();
    sorting::by(&mut all, |a, b| size(b).total_cmp(&size(a)).then(number(b).total_cmp(&number(a))));
    all
}

fn range(values: &[f64]) -> f64 {
    let (least, most) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| (a.min(*value), b.max(*value)));
    (most - least).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_code::Closures;

    fn run(count: u64) -> Side {
        let mut side = Side::default();
        side.closures.insert("Cell".to_owned(), Closures { count, bytes: 16 * count });
        side
    }

    #[test]
    fn types_whose_numbers_vary_as_much_as_they_differ_are_left_out() {
        let known = |numbers: [&[u64]; 2]| {
            let runs = numbers.map(|counts| counts.iter().map(|count| run(*count)).collect::<Vec<Side>>());
            differing([&runs[0], &runs[1]]).into_iter().map(|one| (one.closures, one.bytes)).next()
        };
        assert_eq!(known([&[10], &[10]]), None);
        assert_eq!(known([&[10], &[11]]), Some(((10.0, 11.0), (160.0, 176.0))));
        assert_eq!(known([&[10, 12], &[16, 16]]), None);
        assert_eq!(known([&[10, 12], &[18, 18]]), Some(((11.0, 18.0), (176.0, 288.0))));
    }
}
