//! Merges turns: the distribution of all requests that count, and separately the parts that do not.

use scruple_core::knee::BEHIND;
use scruple_measure::load::{
    Doubt, Ended, Failures, GeneratorCost, Latencies, LoadResult, RequestCounts, RequestKind, RequestTimes,
    RowOf, RunPart, SlowRequest, Stall,
};
use scruple_stats::sorting;
use serde::Serialize;

/// The results of several turns, merged as if they had been one.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// The number of windows.
    pub windows: usize,
    /// Whether the server was gone at the end of a turn.
    pub gone: bool,
    /// Whether a turn was aborted because a limit of the scenario was exceeded.
    pub aborted: bool,
    /// The time in which requests were due, without the pauses between turns, in nanoseconds.
    pub span: u64,
    /// The sum of the times by which the answers were behind at the ends of turns, in nanoseconds.
    pub behind: u64,
    /// The most that this sum can be, because of the delays of the generator.
    pub behind_most: u64,
    /// The number of good answers that count for the rate, in the turns that count, and the span of these turns in nanoseconds.
    counted: (u64, u64),
    /// The numbers of requests and their outcomes.
    pub counts: RequestCounts,
    /// How long the requests of the turns that count took.
    pub times: RequestTimes,
    /// The connection times: from the start of a connection until it can be used.
    pub connect: Latencies,
    /// The number of connections that were opened again.
    pub reconnects: u64,
    /// The number of times that a request was sent again.
    pub repeated: u64,
    /// The number of connections that the server handles at a time, where a turn showed it.
    pub connections_at_a_time: Option<u32>,
    /// The course of the load, in nanoseconds of measured time.
    pub timeline: Vec<Slice>,
    /// The figures of each kind of request, group and session.
    pub kinds: Vec<RequestKind>,
    /// The response times that count for each of these kinds, with the same names.
    pub rows: Vec<(String, RowOf, Latencies)>,
    /// The number of sessions in progress at the ends of turns.
    pub unfinished: u64,
    /// The stalls of the server, in nanoseconds of measured time.
    pub stalls: Vec<Stall>,
    /// The slowest requests, in nanoseconds of measured time, the slowest first.
    pub slowest: Vec<SlowRequest>,
    /// The processor time and other costs of the generator.
    pub generator: GeneratorCost,
    /// The doubts about turns, each kind once with the number of turns.
    pub doubts: Vec<(Doubt, usize)>,
    /// The parts that are set apart and do not count.
    pub aside: Vec<ExcludedPart>,
}

/// Parts of a load that are set apart, with everything that happened in them.
#[derive(Clone, Debug)]
pub struct ExcludedPart {
    /// The reason why the parts are set apart: `warm-up` or `void`.
    pub why: &'static str,
    /// The total length of the parts, in nanoseconds.
    pub span: u64,
    /// The number of good answers.
    pub answered: u64,
    /// The numbers of failed requests by class.
    pub failures: Failures,
    /// The response times: from due to answered.
    pub response: Latencies,
    /// The length of the longest stall in the parts, in nanoseconds.
    pub stall: Option<u64>,
}

/// A slice of the course of a load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slice {
    /// The start of the slice, in nanoseconds of measured time.
    pub from: i64,
    /// The end of the slice, in nanoseconds of measured time.
    pub to: i64,
    /// The number of good answers to requests that were due in the slice.
    pub answered: u64,
    /// The number of failed requests that were due in the slice.
    pub failed: u64,
    /// The largest backlog in the slice.
    pub backlog: u64,
    /// The median response time, in nanoseconds.
    pub p50: Option<u64>,
    /// The 99th percentile of the response time, in nanoseconds.
    pub p99: Option<u64>,
    /// The longest response time, in nanoseconds.
    pub max: Option<u64>,
    /// The start of the slice, in nanoseconds since 1970.
    #[serde(skip)]
    pub began: u64,
    /// The distribution of the response times.
    #[serde(skip)]
    pub response: Latencies,
    /// The numbers of failed requests by class.
    #[serde(skip)]
    pub failures: Failures,
}

/// The number of slowest requests that are kept.
const SLOWEST: usize = 256;

impl Pool {
    /// Merges these turns. The flag of each says whether its latencies count; its requests and failures always do.
    pub fn of<'a>(turns: impl IntoIterator<Item = (&'a LoadResult, bool)>) -> Pool {
        let mut pool = Pool::default();
        for (load, counts) in turns {
            pool.add(load, counts);
        }
        sorting::by(&mut pool.slowest, |left, right| right.cmp(left));
        pool.slowest.truncate(SLOWEST);
        pool
    }

    /// Returns the good answers per second. The time includes that by which the answers were behind at the ends of
    /// turns. If the generator was late, this is the most that the rate can have been.
    pub fn rate(&self) -> f64 {
        self.rate_with(self.behind)
    }

    /// Returns the least that the rate can have been, where it is noticeably less than `rate`.
    pub fn least_rate(&self) -> Option<f64> {
        let least = self.rate_with(self.behind_most);
        (least < self.rate() * (1.0 - BEHIND)).then_some(least)
    }

    fn rate_with(&self, behind: u64) -> f64 {
        let (answered, span) = self.counted;
        if span == 0 { 0.0 } else { answered as f64 * 1e9 / (span + behind) as f64 }
    }

    /// Whether the server did not keep up with the rate on the whole. Being behind at the end of a single turn is not
    /// enough.
    pub fn fell_behind(&self) -> bool {
        self.behind > 0 && self.behind as f64 >= self.counted.1 as f64 * BEHIND
    }

    fn add(&mut self, load: &LoadResult, counts: bool) {
        let begins = load.counted().first().map_or(0, |part| part.from);
        let (before, since): (Vec<Stall>, Vec<Stall>) =
            load.stalls.iter().partition(|stall| stall.to <= begins);
        if !load.cut().is_empty() {
            self.set_aside("warm-up", load.cut(), &before);
        }
        if counts {
            self.add_times(load, begins, &since);
            // These figures only count for valid turns, because a late generator also delays answers.
            self.behind += load.behind;
            self.behind_most += load.behind_most;
            self.counted.0 += load.answers_of_rate();
            self.counted.1 += load.span;
        } else {
            self.set_aside("void", load.counted(), &since);
        }
        self.windows += 1;
        self.gone |= load.ended == Ended::ServerGone;
        self.span += load.span;
        self.counts.add(&load.counts);
        self.reconnects += load.reconnects;
        self.repeated += load.repeated;
        self.unfinished += load.unfinished;
        self.connections_at_a_time =
            [self.connections_at_a_time, load.connections_at_a_time()].into_iter().flatten().min();
        self.aborted |= load.ended == Ended::Aborted;
        self.add_kinds(&load.kinds, counts);
        self.add_generator(&load.generator);
        for doubt in &load.doubts {
            match self.doubts.iter_mut().find(|(known, _)| known.code == doubt.code) {
                Some((_, turns)) => *turns += 1,
                None => self.doubts.push((doubt.clone(), 1)),
            }
        }
    }

    /// Adds the latencies and moments of a turn. The moments count from the end of the previous turns.
    fn add_times(&mut self, load: &LoadResult, begins: i64, stalls: &[Stall]) {
        let shift = self.span as i64 - begins;
        self.times.add(&load.times);
        self.connect += &load.connect;
        let whole = RunPart::join_parts(load.counted());
        for (kind, row) in load.kinds.iter().zip(whole.rows) {
            match self.rows.iter_mut().find(|(name, of, _)| *name == kind.name && *of == kind.of) {
                Some((.., response)) => *response += &row.response,
                None => self.rows.push((kind.name.clone(), kind.of, row.response)),
            }
        }
        self.timeline.extend(load.counted().iter().map(|part| slice(part, shift, load.started.1)));
        let stall =
            |stall: &Stall| Stall { from: stall.from.max(begins) + shift, to: stall.to + shift, ..*stall };
        self.stalls.extend(stalls.iter().map(stall));
        let at = |moment: u64| (moment as i64 + shift).max(0) as u64;
        let counted = load.slowest.iter().filter(|slow| slow.intended as i64 >= begins);
        self.slowest.extend(counted.map(|slow| SlowRequest {
            intended: at(slow.intended),
            sent: at(slow.sent),
            done: at(slow.done),
            ..*slow
        }));
    }

    fn set_aside(&mut self, why: &'static str, parts: &[RunPart], stalls: &[Stall]) {
        let whole = RunPart::join_parts(parts);
        let longest = stalls.iter().map(|stall| (stall.to - stall.from).max(0) as u64).max();
        match self.aside.iter_mut().find(|aside| aside.why == why) {
            Some(aside) => {
                aside.span += whole.span();
                aside.answered += whole.counts.answered;
                aside.failures.add(&whole.counts.failures);
                aside.response += &whole.times.response;
                aside.stall = aside.stall.max(longest);
            }
            None => self.aside.push(ExcludedPart {
                why,
                span: whole.span(),
                answered: whole.counts.answered,
                failures: whole.counts.failures,
                response: whole.times.response,
                stall: longest,
            }),
        }
    }

    fn add_generator(&mut self, more: &GeneratorCost) {
        let own = &mut self.generator;
        own.threads = own.threads.max(more.threads);
        own.elapsed += more.elapsed;
        own.user += more.user;
        own.system += more.system;
        own.waited += more.waited;
        own.preempted += more.preempted;
        own.requests += more.requests;
        own.reached += more.reached;
    }

    fn add_kinds(&mut self, kinds: &[RequestKind], timely: bool) {
        for kind in kinds {
            let service = kind.service.as_ref().filter(|_| timely);
            match self.kinds.iter_mut().find(|known| known.name == kind.name && known.of == kind.of) {
                None => self.kinds.push(RequestKind { service: service.cloned(), ..kind.clone() }),
                Some(known) => {
                    known.answered += kind.answered;
                    known.failures.add(&kind.failures);
                    if let Some(more) = service {
                        *known.service.get_or_insert_default() += more;
                    }
                }
            }
        }
    }
}

fn slice(part: &RunPart, shift: i64, started: u64) -> Slice {
    Slice {
        from: part.from + shift,
        to: part.to + shift,
        answered: part.counts.answered,
        failed: part.counts.failures.total(),
        backlog: part.counts.backlog,
        p50: part.times.response.quantile(0.5),
        p99: part.times.response.quantile(0.99),
        max: part.times.response.max(),
        began: started.saturating_add_signed(part.from),
        response: part.times.response.clone(),
        failures: part.counts.failures.clone(),
    }
}
