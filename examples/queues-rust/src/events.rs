//! The schedulers at work: events are added, a tenth of them cancelled, the others fired, and some of those add another that
//! is due at once, which is where schedulers lose events.

use crate::schedulers::{Event, Heap, Scheduler, SortedList, Wheel};
use scruple_bench::Bench;

/// The result for all events.
#[derive(Debug, Default, PartialEq)]
pub struct Tally {
    added: u64,
    cancelled: u64,
    fired: u64,
    /// Events that fired before one with an earlier deadline that was there already.
    out_of_order: u64,
    /// A sum over the events fired, whatever their order among equals.
    digest: u64,
}

impl Tally {
    /// Every event must have been fired or cancelled, once, in order.
    fn verdict(&self) -> Result<Option<String>, String> {
        if self.fired + self.cancelled != self.added || self.out_of_order > 0 {
            return Err(format!("not exactly once and in order: {self:?}"));
        }
        Ok(Some(format!("{:016x}", self.digest)))
    }
}

/// When the events are due.
#[derive(Clone, Copy)]
enum Deadlines {
    Uniform,
    /// Each is earlier than all before it, so that the alarm has to be set anew every time.
    Descending,
    /// Many at once.
    Bursts,
}

impl Deadlines {
    const ALL: [(&'static str, Deadlines); 3] = [
        ("uniform", Deadlines::Uniform),
        ("descending", Deadlines::Descending),
        ("bursts", Deadlines::Bursts),
    ];

    fn of(self, n: u32) -> Vec<u64> {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        let span = 10 * u64::from(n);
        match self {
            Deadlines::Uniform => (0..n).map(|_| random() % span).collect(),
            Deadlines::Descending => (0..n).map(|i| span - u64::from(i)).collect(),
            Deadlines::Bursts => (0..n).map(|_| random() % 16 * span / 16).collect(),
        }
    }
}

fn run<S: Scheduler>(deadlines: &[u64]) -> Tally {
    let (mut scheduler, mut tally) = (S::new(), Tally::default());
    for (number, deadline) in deadlines.iter().enumerate() {
        scheduler.add((*deadline, number as u32));
        tally.added += 1;
    }
    for (number, deadline) in deadlines.iter().enumerate().skip(5).step_by(10) {
        tally.cancelled += u64::from(scheduler.cancel((*deadline, number as u32)));
    }
    let (mut last, mut number) = (0, deadlines.len() as u32);
    while let Some((deadline, fired)) = scheduler.next() {
        tally.fired += 1;
        tally.out_of_order += u64::from(deadline < last);
        tally.digest = tally.digest.wrapping_add(mix((deadline, fired)));
        last = deadline;
        if fired % 100 == 1 && (fired as usize) < deadlines.len() {
            scheduler.add((deadline, number));
            tally.added += 1;
            number += 1;
        }
    }
    tally
}

/// Numbers that are given while firing depend on the order among equals; those count by their deadline only.
fn mix((deadline, _): Event) -> u64 {
    (deadline + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn declare_one<S: Scheduler + 'static>(bench: &mut Bench, name: &str, sizes: &[u32]) {
    for (word, deadlines) in Deadlines::ALL {
        for n in sizes.iter().copied() {
            bench
                .case_setup(
                    &format!("events/{word}/{name}"),
                    move || deadlines.of(n),
                    |deadlines| run::<S>(deadlines),
                )
                .param("n", n)
                .throughput_items(u64::from(n))
                .tag("scheduler")
                .check(Tally::verdict);
        }
    }
}

pub fn declare(bench: &mut Bench) {
    declare_one::<SortedList>(bench, "sorted list", &[100, 1000, 10_000]);
    declare_one::<Heap>(bench, "binary heap", &[100, 1000, 10_000, 100_000]);
    declare_one::<Wheel>(bench, "timer wheel", &[100, 1000, 10_000, 100_000]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_schedulers_fire_the_same_events() {
        for (word, deadlines) in Deadlines::ALL {
            for n in [0, 1, 7, 100, 5000] {
                let deadlines = deadlines.of(n);
                let list = run::<SortedList>(&deadlines);
                assert!(list.verdict().is_ok(), "{word} {n}: {list:?}");
                assert_eq!(list, run::<Heap>(&deadlines), "{word} {n}");
                assert_eq!(list, run::<Wheel>(&deadlines), "{word} {n}");
            }
        }
    }
}
