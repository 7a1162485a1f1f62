//! Windows put together: the distribution of all their requests.

use scruple_core::knee::BEHIND;
use scruple_measure::load::{
    Doubt, Ended, Failures, GeneratorCost, Kind, Latencies, LoadResult, Slice, Slow, Stall,
};

/// What came of several windows, as if they had been one.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// Windows.
    pub windows: usize,
    /// Whether the server was gone at the end of one.
    pub gone: bool,
    /// The time in which requests were due, in nanoseconds, pauses between windows not counted.
    pub span: u64,
    /// By how much the answers were behind the requests at the ends of windows, all of them together; of the windows that
    /// count, because a generator that is late holds answers up as well.
    pub behind: u64,
    /// Good answers in the windows that count, and the span of these.
    counted: (u64, u64),
    /// Requests that were due.
    pub due: u64,
    /// Good answers.
    pub answered: u64,
    /// Failed requests by class.
    pub failures: Failures,
    /// Bytes of content received.
    pub bytes: u64,
    /// From due to answered.
    pub response: Latencies,
    /// From sent to answered.
    pub service: Latencies,
    /// From due to sent.
    pub lag: Latencies,
    /// From due to noticed: the generator's own lateness.
    pub lateness: Latencies,
    /// From the beginning of a connection until it could be used.
    pub connect: Latencies,
    /// The most requests that waited for a free connection at one time.
    pub backlog: u64,
    /// Connections that were made anew.
    pub reconnects: u64,
    /// The course, in nanoseconds of measured time.
    pub timeline: Vec<Slice>,
    /// The figures of each kind of request.
    pub kinds: Vec<Kind>,
    /// When the server stood still, in nanoseconds of measured time.
    pub stalls: Vec<Stall>,
    /// The slowest requests, in nanoseconds of measured time, the slowest first.
    pub slowest: Vec<Slow>,
    /// What the generator consumed.
    pub generator: GeneratorCost,
    /// What is to be said against any of the windows, each kind once, with the number of windows.
    pub doubts: Vec<(Doubt, usize)>,
}

/// The slowest requests that are kept.
const SLOWEST: usize = 256;

impl Pool {
    /// These windows together, each with whether its latencies count; its requests and failures do in any case.
    pub fn of<'a>(windows: impl IntoIterator<Item = (&'a LoadResult, bool)>) -> Pool {
        let mut pool = Pool::default();
        for (window, timely) in windows {
            pool.add(window, timely);
        }
        pool.slowest.sort_unstable_by(|left, right| right.cmp(left));
        pool.slowest.truncate(SLOWEST);
        pool
    }

    /// Good answers per second, over the span and whatever time the answers were behind at the ends of windows.
    pub fn rate(&self) -> f64 {
        let (answered, span) = self.counted;
        if span == 0 { 0.0 } else { answered as f64 * 1e9 / (span + self.behind) as f64 }
    }

    /// Whether the server did not keep up with the rate on the whole, rather than at the end of some window.
    pub fn fell_behind(&self) -> bool {
        self.behind > 0 && self.behind as f64 >= self.counted.1 as f64 * BEHIND
    }

    fn add(&mut self, load: &LoadResult, timely: bool) {
        if timely {
            self.add_times(load);
            self.behind += load.behind;
            self.counted.0 += load.answered;
            self.counted.1 += load.span;
        }
        self.windows += 1;
        self.gone |= load.ended == Ended::ServerGone;
        self.span += load.span;
        self.due += load.due;
        self.answered += load.answered;
        self.failures.add(&load.failures);
        self.bytes += load.bytes;
        self.backlog = self.backlog.max(load.backlog);
        self.reconnects += load.reconnects;
        self.add_kinds(&load.kinds, timely);
        let own = &mut self.generator;
        own.threads = own.threads.max(load.generator.threads);
        own.elapsed += load.generator.elapsed;
        own.user += load.generator.user;
        own.system += load.generator.system;
        own.waited += load.generator.waited;
        own.preempted += load.generator.preempted;
        own.requests += load.generator.requests;
        for doubt in &load.doubts {
            match self.doubts.iter_mut().find(|(known, _)| known.code == doubt.code) {
                Some((_, windows)) => *windows += 1,
                None => self.doubts.push((doubt.clone(), 1)),
            }
        }
    }

    /// Adds latencies and moments; these count from the end of the windows before.
    fn add_times(&mut self, load: &LoadResult) {
        let offset = self.span;
        for (own, more) in [
            (&mut self.response, &load.response),
            (&mut self.service, &load.service),
            (&mut self.lag, &load.lag),
            (&mut self.lateness, &load.lateness),
            (&mut self.connect, &load.connect),
        ] {
            own.add(more);
        }
        let cut = load.warm_up.min(load.timeline.len());
        let from = load.timeline.get(cut).map_or(0, |slice| slice.from);
        self.timeline.extend(load.timeline[cut..].iter().map(|slice| Slice {
            from: slice.from - from + offset as i64,
            to: slice.to - from + offset as i64,
            ..slice.clone()
        }));
        let shift = |moment: u64| (moment + offset).saturating_sub(from.max(0) as u64);
        self.stalls.extend(load.stalls().into_iter().map(|stall| Stall {
            from: shift(stall.from),
            to: shift(stall.to),
            ..stall
        }));
        self.slowest.extend(load.slowest.iter().map(|slow| Slow {
            intended: shift(slow.intended),
            sent: shift(slow.sent),
            done: shift(slow.done),
            ..*slow
        }));
    }

    fn add_kinds(&mut self, kinds: &[Kind], timely: bool) {
        for kind in kinds {
            let service = kind.service.as_ref().filter(|_| timely);
            match self.kinds.iter_mut().find(|known| known.name == kind.name) {
                None => self.kinds.push(Kind { service: service.cloned(), ..kind.clone() }),
                Some(known) => {
                    known.answered += kind.answered;
                    known.failures.add(&kind.failures);
                    if let Some(more) = service {
                        known.service.get_or_insert_default().add(more);
                    }
                }
            }
        }
    }
}
