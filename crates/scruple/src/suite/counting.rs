//! The counting pass of a suite: allocations and collections of one iteration, the tare's taken off.

use super::{Stop, Suite, reason};
use scruple_core::metric::{Metric, Pass, Quality, metric};
use scruple_core::protocol::{BatchReply, Counter, Hello, Kind};
use scruple_core::sample::Reading;
use scruple_core::unit::Unit;
use scruple_measure::bench::{BenchError, BenchProgram};
use scruple_measure::heap;

/// Readings of each case, after one that does not count.
const REPEATS: u32 = 3;

/// Above this many cases they share processes, since starting one for each would take longer than measuring.
const FRESH_CASES: usize = 200;

impl Suite {
    pub(super) fn counting_pass(&mut self) -> Result<(), Stop> {
        let fresh = self.weighed.len() <= FRESH_CASES;
        let mut shared: Option<(usize, BenchProgram, Hello)> = None;
        let mut first = Vec::new();
        for index in 0..self.weighed.len() {
            let weighed = &self.weighed[index];
            // A queue's ledger has been read with its timing; its allocations depend on who overtakes whom.
            if weighed.failed || weighed.case.concurrency.is_some() {
                continue;
            }
            let (side, name) = (weighed.side, self.run.arms[weighed.arm].name.clone());
            self.progress.step("counting", 0, index, self.weighed.len(), &name);
            if fresh || shared.as_ref().is_none_or(|(of, _, _)| *of != side) {
                shared = match self.counting_process(side) {
                    Ok((program, hello)) => Some((side, program, hello)),
                    Err(error) => {
                        let why = reason(&error)?;
                        self.absent(index, &why);
                        None
                    }
                };
            }
            let Some((of, mut program, hello)) = shared.take() else { continue };
            match self.count(index, &mut program, &hello) {
                Ok(more) => {
                    first.extend(more.map(|bytes| (self.weighed[index].arm, bytes)));
                    shared = Some((of, program, hello));
                }
                Err(error) => {
                    let why = reason(&error)?;
                    self.absent(index, &why);
                }
            }
        }
        if let Some((_, program, _)) = shared {
            program.finish();
        }
        self.remark_on_first(&first);
        Ok(())
    }

    /// A fresh process with the allocation counter where that can be attached, and the counters it announces.
    fn counting_process(&self, side: usize) -> Result<(BenchProgram, Hello), BenchError> {
        let countable = heap::measurable(&self.sides[side].program.path).is_ok();
        let mut program = self.start(side, 0, countable)?;
        let request = scruple_core::protocol::Request::Hello;
        match program.ask(&request, super::FIRST_WORDS, &self.interrupted)? {
            scruple_core::protocol::Reply::Hello(hello) => Ok((program, hello)),
            other => Err(BenchError::Garbled { request: request.line(), line: format!("{other:?}") }),
        }
    }

    /// Counts, and tells how many bytes more the first iteration allocated, if it did.
    fn count(
        &mut self,
        index: usize,
        program: &mut BenchProgram,
        hello: &Hello,
    ) -> Result<Option<f64>, BenchError> {
        if hello.counters.is_empty() {
            return Ok(None);
        }
        let exact = hello.counters.iter().all(|counter| counter.quality <= Quality::Near);
        // Coarse counters need many iterations before a difference shows; exact ones are clearest over one.
        let iterations = if exact { 1 } else { self.weighed[index].iterations };
        let batches = || {
            vec![self.batch_of(index, Kind::Tare, iterations), self.batch_of(index, Kind::Case, iterations)]
        };
        let first = self.block(index, program, batches())?;
        let mut taken = Vec::new();
        for _ in 0..REPEATS {
            taken.push(self.block(index, program, batches())?);
        }
        let position = self.weighed[index].arm;
        for (repeat, replies) in taken.iter().enumerate() {
            let readings = net_readings(hello, replies);
            self.keep(position, Pass::Counting, repeat as u32, readings);
        }
        Ok(taken.first().and_then(|warm| more_at_first(hello, &first, warm)))
    }

    /// Says in one remark how much the first iterations of all cases allocate beyond the later ones: that is set up once,
    /// and is not in the figures.
    fn remark_on_first(&mut self, more: &[(usize, f64)]) {
        let text = |bytes: f64| scruple_core::unit::exact(bytes, &Unit::Bytes);
        let name = |position: usize| &self.run.arms[position].name;
        let least = more.iter().map(|(_, bytes)| *bytes).fold(f64::INFINITY, f64::min);
        let Some((position, most)) = more.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else { return };
        let message = match more.len() {
            1 => format!(
                "the first iteration of ‘{}’ allocates {} more than later ones, which the figures leave out",
                name(*position),
                text(*most)
            ),
            cases => format!(
                "the first iterations of {cases} cases allocate {} to {} (‘{}’) more than later ones, which the figures leave out",
                text(least),
                text(*most),
                name(*position)
            ),
        };
        self.run.warn("first-iteration", message);
    }

    fn absent(&mut self, index: usize, why: &str) {
        let position = self.weighed[index].arm;
        let readings = ["alloc.bytes", "malloc.bytes"]
            .iter()
            .filter_map(|key| metric(key))
            .map(|metric| Reading::absent(metric, why))
            .collect();
        self.keep(position, Pass::Counting, 0, readings);
    }
}

/// How much more the first iteration allocated than a later one, where that is worth a word.
fn more_at_first(hello: &Hello, first: &[BatchReply], warm: &[BatchReply]) -> Option<f64> {
    let counter =
        hello.counters.iter().find(|c| ["alloc.bytes", "malloc.bytes"].contains(&c.key.as_str()))?;
    let of = |replies: &[BatchReply]| {
        let readings = net_readings(hello, replies);
        readings.into_iter().find(|reading| reading.key == counter.key).and_then(|reading| reading.value.ok())
    };
    let (cold, warm) = (of(first)?, of(warm)?);
    // Counters that are not exact swing by a few kilobytes by themselves.
    let swing = if counter.quality <= Quality::Near { 64.0 } else { 8192.0 };
    (cold > warm + swing && cold > 1.05 * warm).then_some(cold - warm)
}

/// Each counter for one iteration: the case's minus the tare's, divided by the iterations; whole-batch readings as
/// they are.
fn net_readings(hello: &Hello, replies: &[BatchReply]) -> Vec<Reading> {
    let of = |kind: Kind| replies.iter().find(|reply| reply.kind == kind);
    let (Some(case), Some(tare)) = (of(Kind::Case), of(Kind::Tare)) else { return Vec::new() };
    hello
        .counters
        .iter()
        .filter_map(|counter| {
            let value = case.reading(&counter.key)?;
            let value = match counter.per_batch {
                true => value,
                false => {
                    let tare = tare.reading(&counter.key).unwrap_or(0.0) / tare.iterations as f64;
                    let net = value / case.iterations as f64 - tare;
                    // What a counter that samples finds less than nothing is nothing.
                    if counter.quality <= Quality::Near { net } else { net.max(0.0) }
                }
            };
            Some(
                Reading::of(&declaration(counter), value, "counters of the program")
                    .with_quality(counter.quality),
            )
        })
        .collect()
}

/// The metric that a counter feeds: the one of the same key, else one of the program's own.
pub(super) fn declaration(counter: &Counter) -> Metric {
    let key = match counter.key.as_str() {
        "alloc.count" => "alloc.objects",
        "malloc.freed_bytes" => "malloc.freed",
        key => key,
    };
    metric(key).cloned().unwrap_or_else(|| {
        Metric::custom(key, Unit::from(counter.unit.clone()), counter.quality, Pass::Counting)
    })
}
