//! Reads counters of events that come once in many iterations, such as collections and their time, over long batches.
//!
//! Over one iteration, such a figure is by chance 0 or that of a whole collection, and the median over a few processes
//! is mostly 0. The mean over a long batch is what an iteration costs.
//!
//! If events come at equal distances, as collections do, a batch may contain one more or one less than its length
//! implies, depending on where it begins. Batches do not average this out: in a program that always allocates the same,
//! they begin at the same place between two events in every process. The possible error of such a figure is therefore
//! one event in a batch, and its interval is wider by this on both sides.

use super::cases::Weighed;
use super::counting_plan::CountingVisit;
use super::programs::Programs;
use super::readings::{declaration, net_readings};
use super::record::SuiteRecord;
use scruple_core::harmless_text::list_names;
use scruple_core::judge::resolution_key;
use scruple_core::metric::{Metric, Pass, Quality, metric};
use scruple_core::protocol::{BatchReply, Counter, LoopKind};
use scruple_core::sample::{BLOCKS_OF_A_PROCESS, Reading};
use scruple_core::unit::Unit;
use scruple_measure::bench::{BenchError, BenchProgram};
use scruple_stats::paired::blocks_needed;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The length of a batch; of the batch that shows how often the events come; and of a batch in which they are seldom.
const LENGTH: Duration = Duration::from_millis(5);
const TRIAL: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_millis(80);

/// The number of events that a batch should have. With fewer, whether one more falls into it decides its mean.
const EVENTS: f64 = 10.0;

/// The number of batches in each process: of a case by itself in three processes, and of one that shares two with other
/// cases. Both give six readings, which suffice for an interval.
const BATCHES: u32 = 2;
const BATCHES_IN_SHARED: u32 = 3;

/// All batches of a case together take at most this part of its share of the budget.
const PART: u32 = 2;

/// Whether a counter counts events that come once in many iterations, and whose cost all these iterations share. All
/// times that runtimes count are of this kind.
pub(super) fn is_rare(counter: &Counter) -> bool {
    let metric = declaration(counter);
    !counter.per_batch && (metric.is_rare || metric.unit == Unit::Nanoseconds)
}

/// The rare events of all cases, until the pass ends.
#[derive(Default)]
pub(super) struct RareEvents {
    /// The iterations of a batch of each arm.
    iterations: BTreeMap<usize, u64>,
    taken: Vec<Taken>,
}

#[derive(Clone)]
struct Taken {
    arm: usize,
    block: u32,
    iterations: u64,
    /// The quality of the counter. Its counts of 0 are as good as any others.
    quality: Quality,
    reading: Reading,
}

impl RareEvents {
    /// Reads these counters of a case, whose share of the budget is `share`, in one process.
    pub(super) fn read(
        &mut self,
        programs: &Programs,
        (weighed, visit, share): (&Weighed, CountingVisit, Duration),
        program: &mut BenchProgram,
        counters: &[Counter],
    ) -> Result<(), BenchError> {
        let rare: Vec<&Counter> = counters.iter().filter(|counter| is_rare(counter)).collect();
        if rare.is_empty() || !has_long_batches(weighed) {
            return Ok(());
        }
        let batches = if visit.alone { BATCHES } else { BATCHES_IN_SHARED };
        let iterations = match self.iterations.get(&weighed.arm) {
            Some(known) => *known,
            None => find_iterations(programs, (weighed, share), program, &rare)?,
        };
        self.iterations.insert(weighed.arm, iterations);
        for batch in 0..batches {
            let replies = programs.block(weighed, program, weighed.pair(iterations).to_vec())?;
            let block = visit.process * BLOCKS_OF_A_PROCESS + batch;
            for counter in &rare {
                let noisy = Counter { quality: Quality::Noisy, ..(*counter).clone() };
                let readings = net_readings(std::slice::from_ref(&noisy), &replies).into_iter();
                let (arm, quality) = (weighed.arm, counter.quality);
                self.taken.extend(readings.map(|reading| Taken { arm, block, iterations, quality, reading }));
            }
        }
        Ok(())
    }

    /// Keeps the readings. A count that is 0 in all batches stays 0, as it was counted. A time that is 0 in all batches
    /// becomes absent, because too few iterations ran to show it.
    pub(super) fn keep(self, record: &mut SuiteRecord) {
        let mut totals: BTreeMap<(usize, String), f64> = BTreeMap::new();
        for one in &self.taken {
            *totals.entry((one.arm, one.reading.key.clone())).or_default() +=
                one.reading.value.as_ref().copied().unwrap_or(0.0);
        }
        let counts: BTreeSet<&str> =
            self.taken.iter().filter(is_count).map(|one| one.reading.key.as_str()).collect();
        for Taken { arm, block, iterations, quality, mut reading } in self.taken.clone() {
            let total = |key: &str| totals.get(&(arm, key.to_owned())).copied().unwrap_or(0.0);
            let (own, events) =
                (total(&reading.key), counts.iter().map(|key| total(key)).fold(0.0, f64::max));
            let is_time = reading.unit == Unit::Nanoseconds;
            let mut kept = Vec::new();
            if own > 0.0 {
                let event = if is_time { own / events } else { 1.0 };
                kept.extend(resolution(&reading, event / iterations as f64));
            } else if is_time {
                reading.value = Err(format!("there was none in batches of {iterations} iterations"));
            } else {
                reading.quality = quality;
            }
            kept.push(reading);
            record.keep(arm, Pass::Counting, block, kept);
        }
        remark_on_few(record, &totals);
    }
}

/// Adds one remark about the cases with too few batches for an interval, because fewer processes than usual counted
/// them.
fn remark_on_few(record: &mut SuiteRecord, totals: &BTreeMap<(usize, String), f64>) {
    let needed = blocks_needed(record.run.terms.level);
    let arms = &record.run.arms;
    let is_few =
        |arm: usize, key: &str| arms[arm].sample(key).is_some_and(|sample| sample.readings.len() < needed);
    let found = totals.iter().filter(|((arm, key), total)| **total > 0.0 && is_few(*arm, key));
    let (few, keys): (BTreeSet<usize>, BTreeSet<&str>) =
        found.map(|((arm, key), _)| (*arm, key.as_str())).unzip();
    if few.is_empty() {
        return;
    }
    let text = format!(
        "{} of {} have fewer than {needed} readings, which give no interval; raise --budget, or select fewer cases with \
         --filter",
        keys.into_iter().collect::<Vec<_>>().join(", "),
        list_names(few.into_iter().map(|arm| arms[arm].name.as_str()))
    );
    record.run.warn("few-readings", text);
}

fn is_count(one: &&Taken) -> bool {
    one.reading.unit != Unit::Nanoseconds
}

/// Adds the possible error of counts of such events over so few iterations: one event more or less comes into them by
/// where they begin, which is the same in each process of a program that always allocates the same.
pub(super) fn add_possible_errors(readings: &mut Vec<Reading>, iterations: u64) {
    let is_rare = |reading: &&mut Reading| metric(&reading.key).is_some_and(|metric| metric.is_rare);
    let mut errors = Vec::new();
    for reading in readings.iter_mut().filter(is_rare).filter(|reading| reading.unit == Unit::Count) {
        reading.quality = reading.quality.max(Quality::Near);
        errors.extend(resolution(reading, 1.0 / iterations as f64));
    }
    readings.append(&mut errors);
}

/// The possible error of a reading, as a reading; `None` where a time comes without the number of its events.
fn resolution(reading: &Reading, error: f64) -> Option<Reading> {
    let metric =
        Metric::custom(&resolution_key(&reading.key), reading.unit.clone(), Quality::Exact, Pass::Counting);
    error.is_finite().then(|| Reading::of(&metric, error, "one event, divided by the iterations"))
}

/// Whether the rare events of a case are read over long batches. An iteration that takes as long by itself is counted
/// once, as for all other counters; so is the first iteration in a process, if that is what the case asks for.
pub(super) fn has_long_batches(weighed: &Weighed) -> bool {
    !weighed.case.first && iterations_for(weighed, LENGTH) > 1
}

/// Finds the number of iterations in which several events come, within the time that the case may take. Where none come
/// in a trial, batches have the usual length.
fn find_iterations(
    programs: &Programs,
    (weighed, share): (&Weighed, Duration),
    program: &mut BenchProgram,
    rare: &[&Counter],
) -> Result<u64, BenchError> {
    let longest = (share / PART / (BATCHES * 3 + 1)).clamp(LENGTH, LONGEST);
    let iterations = iterations_for(weighed, TRIAL.min(longest));
    let reply = programs.batch(weighed, program, LoopKind::Case, iterations)?;
    let wanted = EVENTS / most_events(rare, &reply);
    let usual = iterations_for(weighed, LENGTH);
    match wanted.is_finite() {
        true => Ok(((iterations as f64 * wanted) as u64).clamp(usual, iterations_for(weighed, longest))),
        false => Ok(usual),
    }
}

/// The number of events in a batch by the counter that counts most of them; times count none.
fn most_events(rare: &[&Counter], reply: &BatchReply) -> f64 {
    let counts = rare.iter().filter(|counter| declaration(counter).unit != Unit::Nanoseconds);
    counts.filter_map(|counter| reply.reading(&counter.key)).fold(0.0, f64::max)
}

/// The number of iterations that take about this time, but at least those of a timed batch.
fn iterations_for(weighed: &Weighed, time: Duration) -> u64 {
    let times = time.as_secs_f64() / weighed.batch_time.max(Duration::from_micros(1)).as_secs_f64();
    let most = weighed.case.max_iterations.unwrap_or(u64::MAX);
    ((weighed.iterations as f64 * times.max(1.0)) as u64).min(most)
}
