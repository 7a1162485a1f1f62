//! How close a queue was to first-in first-out. Every operation is assumed to happen at the instant of its start.

/// The times of one element: start of its put, start and end of the get that returned it.
#[derive(Clone, Copy)]
pub struct Passage {
    pub put: u64,
    pub get: u64,
    pub end: u64,
}

/// Lateness, age and time in the queue of each element, each sorted.
pub struct Fairness {
    pub late: Vec<u64>,
    pub age: Vec<u64>,
    pub sojourn: Vec<u64>,
}

/// A Fenwick tree: counts by rank from 1, with sums over prefixes in O(log n).
struct FenwickTree(Vec<u64>);

impl FenwickTree {
    fn add(&mut self, mut rank: usize) {
        while rank < self.0.len() {
            self.0[rank] += 1;
            rank += rank & rank.wrapping_neg();
        }
    }

    fn up_to(&self, mut rank: usize) -> u64 {
        let mut sum = 0;
        while rank > 0 {
            sum += self.0[rank];
            rank -= rank & rank.wrapping_neg();
        }
        sum
    }
}

/// For each element, the number of those that come strictly before it in the given order and satisfy `count`. Elements
/// put at the same instant are all queried before one of them is added.
fn walk<'a>(
    elements: impl Iterator<Item = &'a (Passage, usize)> + Clone,
    n: usize,
    count: impl Fn(&FenwickTree, u64, usize) -> u64,
) -> Vec<u64> {
    let (mut counts, mut added) = (FenwickTree(vec![0; n + 1]), 0);
    let (mut figures, mut waiting): (Vec<u64>, Vec<usize>) = (Vec::with_capacity(n), Vec::new());
    let mut instant = None;
    for (passage, rank) in elements {
        if instant != Some(passage.put) {
            instant = Some(passage.put);
            added += waiting.len() as u64;
            waiting.drain(..).for_each(|rank| counts.add(rank));
        }
        figures.push(count(&counts, added, *rank));
        waiting.push(*rank);
    }
    figures.sort_unstable();
    figures
}

impl Fairness {
    /// Computes the figures in O(n log n).
    pub fn of(mut passages: Vec<Passage>) -> Fairness {
        let n = passages.len();
        passages.sort_unstable_by_key(|p| p.put);
        let mut gets: Vec<u64> = passages.iter().map(|p| p.get).collect();
        gets.sort_unstable();
        // Equal instants get the rank of the first of them.
        let ranked: Vec<(Passage, usize)> =
            passages.iter().map(|p| (*p, gets.partition_point(|get| *get < p.get) + 1)).collect();
        // From the last put backwards: how many elements put later were got earlier.
        let late = walk(ranked.iter().rev(), n, |counts, _, rank| counts.up_to(rank - 1));
        // From the first put on: how many elements put earlier were got later.
        let age = walk(ranked.iter(), n, |counts, added, rank| added - counts.up_to(rank));
        let mut sojourn: Vec<u64> = passages.iter().map(|p| p.end.saturating_sub(p.put)).collect();
        sojourn.sort_unstable();
        Fairness { late, age, sojourn }
    }
}

/// The nearest-rank percentile of sorted figures.
pub fn percentile(sorted: &[u64], percent: usize) -> u64 {
    sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lateness and age by their definitions, in O(n²).
    fn by_definition(passages: &[Passage]) -> (Vec<u64>, Vec<u64>) {
        let count = |x: &Passage, f: fn(&Passage, &Passage) -> bool| {
            passages.iter().filter(|y| f(x, y)).count() as u64
        };
        let mut late: Vec<u64> =
            passages.iter().map(|x| count(x, |x, y| y.put > x.put && y.get < x.get)).collect();
        let mut age: Vec<u64> =
            passages.iter().map(|x| count(x, |x, y| y.put < x.put && y.get > x.get)).collect();
        late.sort_unstable();
        age.sort_unstable();
        (late, age)
    }

    #[test]
    fn agrees_with_the_definition_also_on_ties() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for n in [0, 1, 2, 3, 10, 200] {
            for below in [2, 20, 1_000_000] {
                let passages: Vec<Passage> = (0..n)
                    .map(|_| Passage { put: random(below), get: random(below), end: 2 * below })
                    .collect();
                let (late, age) = by_definition(&passages);
                let fairness = Fairness::of(passages);
                assert_eq!(fairness.late, late);
                assert_eq!(fairness.age, age);
                assert_eq!(late.iter().sum::<u64>(), age.iter().sum::<u64>());
            }
        }
    }

    #[test]
    fn a_fifo_is_never_late_and_a_stack_always() {
        let fifo = Fairness::of((0..10).map(|i| Passage { put: i, get: 100 + i, end: 200 + i }).collect());
        assert_eq!(fifo.late, [0; 10]);
        let stack = Fairness::of((0..10).map(|i| Passage { put: i, get: 100 - i, end: 200 }).collect());
        assert_eq!(stack.late, (0..10).collect::<Vec<u64>>());
        assert_eq!((percentile(&stack.age, 50), percentile(&stack.age, 99)), (4, 9));
    }
}
