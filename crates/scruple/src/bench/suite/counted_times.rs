//! Reads the times that a runtime counts, such as that of collections, over long batches.
//!
//! A collection comes once in many iterations. Over one iteration, its time is nothing or that of a whole collection, by
//! chance, and the median over a few processes is mostly nothing. The mean over a long batch is what an iteration costs.

use super::counting::declaration;
use super::counting_plan::CountingVisit;
use super::programs::Programs;
use super::readings::net_readings;
use super::{SuiteRecord, Weighed};
use scruple_core::metric::{Pass, Quality};
use scruple_core::protocol::{Counter, LoopKind};
use scruple_core::sample::{BLOCKS_OF_A_PROCESS, Reading};
use scruple_core::unit::Unit;
use scruple_measure::bench::{BenchError, BenchProgram};
use std::time::Duration;

/// The length of a batch.
const LENGTH: Duration = Duration::from_millis(5);

/// The number of batches in each process. Those of three processes suffice for an interval.
const BATCHES: u32 = 2;

/// Whether a counter counts time over a batch, which an iteration has its part of.
pub(super) fn is_time(counter: &Counter) -> bool {
    !counter.per_batch && declaration(counter).unit == Unit::Nanoseconds
}

/// The times of all cases, until the pass ends.
#[derive(Default)]
pub(super) struct CountedTimes {
    taken: Vec<Taken>,
}

struct Taken {
    arm: usize,
    block: u32,
    iterations: u64,
    reading: Reading,
}

impl CountedTimes {
    /// Reads these counters of a case in one process.
    pub(super) fn read(
        &mut self,
        programs: &Programs,
        (weighed, visit): (&Weighed, CountingVisit),
        program: &mut BenchProgram,
        counters: &[Counter],
    ) -> Result<(), BenchError> {
        let noisy = |counter: &Counter| Counter { quality: Quality::Noisy, ..counter.clone() };
        let times: Vec<Counter> = counters.iter().filter(|counter| is_time(counter)).map(noisy).collect();
        if times.is_empty() || !has_long_batches(weighed) {
            return Ok(());
        }
        let iterations = iterations(weighed);
        for batch in 0..BATCHES {
            let words = [LoopKind::Tare, LoopKind::Case].map(|kind| weighed.batch(kind, iterations));
            let replies = programs.block(weighed, program, words.to_vec())?;
            let block = visit.process * BLOCKS_OF_A_PROCESS + batch;
            let readings = net_readings(&times, &replies).into_iter();
            self.taken.extend(readings.map(|reading| Taken { arm: weighed.arm, block, iterations, reading }));
        }
        Ok(())
    }

    /// Keeps what was read. Where a time is nothing in all batches, too few iterations ran to show it.
    pub(super) fn keep(self, record: &mut SuiteRecord) {
        let is_known = |one: &Taken| {
            let same = |other: &&Taken| other.arm == one.arm && other.reading.key == one.reading.key;
            self.taken
                .iter()
                .filter(same)
                .any(|other| other.reading.value.as_ref().is_ok_and(|time| *time > 0.0))
        };
        let known: Vec<bool> = self.taken.iter().map(is_known).collect();
        for (Taken { arm, block, iterations, mut reading }, known) in self.taken.into_iter().zip(known) {
            if !known {
                reading.value = Err(format!("there was none in batches of {iterations} iterations"));
            }
            record.keep(arm, Pass::Counting, block, vec![reading]);
        }
    }
}

/// Whether the times of a case are read over long batches. An iteration that takes as long by itself is counted once, as
/// for all other counters; so is the first iteration in a process, if that is what the case asks for.
pub(super) fn has_long_batches(weighed: &Weighed) -> bool {
    !weighed.case.first && iterations(weighed) > 1
}

/// The number of iterations that take about [`LENGTH`], but at least those of a timed batch.
fn iterations(weighed: &Weighed) -> u64 {
    let times = LENGTH.as_secs_f64() / weighed.batch_time.max(Duration::from_micros(1)).as_secs_f64();
    let most = weighed.case.max_iterations.unwrap_or(u64::MAX);
    ((weighed.iterations as f64 * times.max(1.0)) as u64).min(most)
}
