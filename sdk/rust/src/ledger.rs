//! The ledger of the elements that passed through a queue: exactly-once delivery, order, balance and fairness.

use crate::fairness::{Fairness, Passage, percentile};
use crate::json::Object;
use crate::queue::{Passed, Passing, SEQUENCE_BITS};

/// Counts of the elements that were put, taken, lost, duplicated and invented.
#[derive(Debug, Default, PartialEq)]
pub struct Ledger {
    pub put: u64,
    pub got: u64,
    pub lost: u64,
    pub duplicated: u64,
    pub invented: u64,
    pub order_broken: u64,
}

impl Ledger {
    fn cast<'a>(put: &[u64], taken: impl Iterator<Item = (&'a [u64], u64)>) -> Ledger {
        let mut seen: Vec<Vec<bool>> = put.iter().map(|n| vec![false; *n as usize]).collect();
        let (mut ledger, mut distinct) = (Ledger { put: put.iter().sum(), ..Ledger::default() }, 0);
        for (elements, got) in taken {
            ledger.got += got;
            // The log has room for all elements that were put. Of further elements only the number is known.
            ledger.invented += got - elements.len() as u64;
            let mut next = vec![0; put.len()];
            for element in elements {
                let (who, number) =
                    ((element >> SEQUENCE_BITS) as usize, element & ((1 << SEQUENCE_BITS) - 1));
                let Some(seen) = seen.get_mut(who).and_then(|seen| seen.get_mut(number as usize)) else {
                    ledger.invented += 1;
                    continue;
                };
                if std::mem::replace(seen, true) {
                    ledger.duplicated += 1
                } else {
                    distinct += 1
                }
                if number + 1 < next[who] { ledger.order_broken += 1 } else { next[who] = number + 1 }
            }
        }
        ledger.lost = ledger.put - distinct;
        ledger
    }

    /// Returns the reason why the figures of this batch are invalid, if they are.
    pub fn fault(&self) -> Option<String> {
        let Ledger { put, lost, duplicated, invented, .. } = self;
        (lost + duplicated + invented > 0)
            .then(|| format!("{lost} lost, {duplicated} duplicated, {invented} invented of {put} elements"))
    }
}

/// Jain's index: 1 if all shares are equal, 1/n if one member has everything.
fn jain(shares: &[u64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(s, q), x| (s + *x as f64, q + (*x as f64).powi(2)));
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

impl Passed {
    pub fn ledger(&self) -> Ledger {
        let (put, got) = self.moved.split_at(self.producers);
        Ledger::cast(put, self.logs[self.producers..].iter().map(|l| &*l.elements).zip(got.iter().copied()))
    }

    /// Adds the readings of a batch to its entry.
    pub fn tell(&self, ledger: &Ledger, entry: Object, parallelism: Option<f64>) -> Object {
        let (producers, consumers) = self.moved.split_at(self.producers);
        let counts = [
            ("queue.put", ledger.put),
            ("queue.got", ledger.got),
            ("queue.lost", ledger.lost),
            ("queue.duplicated", ledger.duplicated),
            ("queue.invented", ledger.invented),
            ("queue.order_broken", ledger.order_broken),
        ];
        let entry = counts.iter().fold(entry, |entry, (key, count)| entry.integer(key, *count));
        entry
            .number("queue.balance.producers", jain(producers))
            .number("queue.balance.consumers", jain(consumers))
            .number("queue.parallelism", parallelism.unwrap_or(f64::NAN))
    }

    /// Adds the readings that need time stamps to the reply.
    pub fn tell_fairness(&self, reply: Object) -> Object {
        let (producers, consumers) = self.logs.split_at(self.producers);
        let passages = consumers.iter().flat_map(|log| {
            log.elements.iter().zip(&log.starts).zip(&log.ends).filter_map(|((element, get), end)| {
                let number = element & ((1 << SEQUENCE_BITS) - 1);
                let put = producers.get((element >> SEQUENCE_BITS) as usize)?.starts.get(number as usize)?;
                Some(Passage { put: *put, get: *get, end: *end })
            })
        });
        let fairness = Fairness::of(passages.collect());
        if fairness.late.is_empty() {
            return reply;
        }
        let n = fairness.late.len() as f64;
        let last = |figures: &[u64]| figures.last().copied().unwrap_or(0);
        let mean = |figures: &[u64]| figures.iter().sum::<u64>() as f64 / n;
        let overtaken = fairness.late.iter().filter(|late| **late > 0).count();
        let mut reply = reply.number("queue.late.share", overtaken as f64 / n);
        for (word, figures) in [("late", &fairness.late), ("age", &fairness.age)] {
            reply = reply
                .number(&format!("queue.{word}.mean"), mean(figures))
                .integer(&format!("queue.{word}.p99"), percentile(figures, 99))
                .integer(&format!("queue.{word}.max"), last(figures));
        }
        reply
            .integer("queue.sojourn.p50", percentile(&fairness.sojourn, 50))
            .integer("queue.sojourn.p99", percentile(&fairness.sojourn, 99))
            .integer("queue.sojourn.max", last(&fairness.sojourn))
    }

    /// Whether thread i is a producer or a consumer.
    pub fn role(&self, i: usize) -> &'static str {
        if i < self.producers { "producer" } else { "consumer" }
    }
}

/// Keys and units of all readings of concurrency cases.
const READINGS: [(&str, &str); 19] = [
    ("put", "count"),
    ("got", "count"),
    ("lost", "count"),
    ("duplicated", "count"),
    ("invented", "count"),
    ("order_broken", "count"),
    ("balance.producers", "ratio"),
    ("balance.consumers", "ratio"),
    ("parallelism", "ratio"),
    ("late.share", "ratio"),
    ("late.mean", "count"),
    ("late.p99", "count"),
    ("late.max", "count"),
    ("age.mean", "count"),
    ("age.p99", "count"),
    ("age.max", "count"),
    ("sojourn.p50", "ns"),
    ("sojourn.p99", "ns"),
    ("sojourn.max", "ns"),
];

impl Passing {
    /// Adds the fields that only concurrency cases have.
    pub fn tell(&self, case: Object) -> Object {
        let mut shape = Object::default()
            .integer("producers", self.producers as u64)
            .integer("consumers", self.consumers as u64);
        if let Some(capacity) = self.capacity {
            shape = shape.integer("capacity", capacity as u64);
        }
        let reading = |(key, unit): &(&str, &str)| {
            let reading = Object::default().text("key", &format!("queue.{key}")).text("unit", unit);
            reading.text("quality", "exact").text("per", "batch").done()
        };
        case.object("concurrency", shape).list("readings", READINGS.iter().map(reading))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ledger_tells_lost_duplicated_invented_and_broken_order() {
        let of = |who: u64, number: u64| who << SEQUENCE_BITS | number;
        let one = [of(0, 0), of(0, 2), of(1, 0), of(0, 1), of(7, 0)];
        let two = [of(1, 0), of(1, 9)];
        let ledger = Ledger::cast(&[4, 2], [(&one[..], 5), (&two[..], 3)].into_iter());
        let expected = Ledger { put: 6, got: 8, lost: 2, duplicated: 1, invented: 3, order_broken: 1 };
        assert_eq!(ledger, expected);
        assert!(ledger.fault().is_some_and(|fault| fault.starts_with("2 lost, 1 duplicated, 3 invented")));
    }

    #[test]
    fn balance_is_one_where_even_and_one_nth_where_one_does_it_all() {
        assert_eq!(jain(&[5, 5, 5]), 1.0);
        assert_eq!(jain(&[15, 0, 0]), 1.0 / 3.0);
        assert_eq!(jain(&[0, 0]), 1.0);
    }
}
