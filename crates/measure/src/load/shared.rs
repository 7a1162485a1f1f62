//! State that the threads of a run share.

use super::http1::Expect;
use super::http2;
use super::plan::Plan;
use super::request::Request;
use super::target::{Address, Protocol, Target};
use super::thread_record::LiveRecord;
use super::tls::TlsSetup;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) struct LoadShared {
    pub(crate) address: Address,
    pub(crate) target: Target,
    pub(crate) tls: Option<TlsSetup>,
    /// The bytes of the requests in HTTP/1.1, in the order of the plan.
    pub(crate) encoded: Vec<Vec<u8>>,
    /// The requests prepared for HTTP/2; empty if it is not used.
    pub(crate) frames: Vec<http2::Encoded>,
    pub(crate) expected: Vec<Expect>,
    /// The cumulative weights of the requests.
    pub(crate) cumulated: Vec<f64>,
    pub(crate) cores: usize,
    pub(crate) live: Vec<LiveFigures>,
    stop: AtomicBool,
}

impl LoadShared {
    pub(crate) fn new(
        target: &Target,
        plan: &Plan,
        address: Address,
        tls: Option<TlsSetup>,
    ) -> Result<LoadShared, String> {
        let frames = match target.protocol {
            Protocol::Http1 => Vec::new(),
            Protocol::Http2 => {
                let encoded = plan.requests.iter().map(|request| http2::encode(request, target));
                encoded.collect::<Result<_, _>>()?
            }
        };
        let mut sum = 0.0;
        let cumulated = plan.requests.iter().map(|request| {
            sum += request.weight;
            sum
        });
        Ok(LoadShared {
            address,
            target: target.clone(),
            tls,
            encoded: plan.requests.iter().map(|r| r.http1(&target.host, plan.keep_alive)).collect(),
            frames,
            expected: plan.requests.iter().map(expected).collect(),
            cumulated: cumulated.collect(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            live: (0..plan.threads.count).map(|_| LiveFigures::default()).collect(),
            stop: AtomicBool::new(false),
        })
    }

    /// Whether HTTP/2 is used.
    pub(crate) fn http2(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Resets what the last turn published.
    pub(crate) fn begin(&self) {
        self.stop.store(false, Ordering::Relaxed);
        self.live.iter().for_each(LiveFigures::clear);
    }

    /// Makes all threads stop: the user interrupted, a limit was exceeded, or a thread could not start or gave up.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether all threads must stop.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The number of requests that have been answered or have failed in this turn.
    pub(crate) fn handled(&self) -> u64 {
        let of =
            |live: &LiveFigures| live.answered.load(Ordering::Relaxed) + live.failed.load(Ordering::Relaxed);
        self.live.iter().map(of).sum()
    }

    /// The number of these that may have reached the server.
    pub(crate) fn reached(&self) -> u64 {
        let unread: u64 = self.live.iter().map(|live| live.unread.load(Ordering::Relaxed)).sum();
        self.handled().saturating_sub(unread)
    }
}

/// What the reader of an answer needs to know about its request.
fn expected(request: &Request) -> Expect {
    Expect { no_body: request.method == "HEAD", keep: request.keeps() }
}

/// What a thread publishes while it runs.
#[derive(Default)]
pub(crate) struct LiveFigures {
    pub(crate) answered: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) unread: AtomicU64,
    pub(crate) backlog: AtomicU64,
    pub(crate) p50: AtomicU64,
    pub(crate) p99: AtomicU64,
    /// The figures for observers; they are written only if the plan requests them.
    pub(crate) record: Mutex<LiveRecord>,
}

impl LiveFigures {
    fn clear(&self) {
        for one in [&self.answered, &self.failed, &self.unread, &self.backlog, &self.p50, &self.p99] {
            one.store(0, Ordering::Relaxed);
        }
        *self.record() = LiveRecord::default();
    }

    /// What observers see.
    pub(crate) fn record(&self) -> MutexGuard<'_, LiveRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The progress of a load, for a line on the screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadProgress {
    /// The time since the start of the turn, in seconds.
    pub elapsed: f64,
    /// The number of good answers.
    pub answered: u64,
    /// The number of failed requests.
    pub failed: u64,
    /// Good answers per second since the previous progress.
    pub rate: f64,
    /// The number of requests that wait for a free connection.
    pub backlog: u64,
    /// The recent median response in nanoseconds, the largest of all threads; 0 before the first answer.
    pub p50: u64,
    /// The recent 99th percentile of the response in nanoseconds, the largest of all threads; 0 before the first
    /// answer.
    pub p99: u64,
    /// What became of the requests since the start of the turn; empty unless the plan requests it with `live`.
    pub record: LiveRecord,
}

impl LoadProgress {
    pub(crate) fn of(live: &[LiveFigures], elapsed: f64, before: &LoadProgress) -> LoadProgress {
        let sum =
            |pick: fn(&LiveFigures) -> &AtomicU64| live.iter().map(|l| pick(l).load(Ordering::Relaxed)).sum();
        let most = |pick: fn(&LiveFigures) -> &AtomicU64| {
            live.iter().map(|l| pick(l).load(Ordering::Relaxed)).max().unwrap_or(0)
        };
        let answered: u64 = sum(|l| &l.answered);
        let gap = elapsed - before.elapsed;
        LoadProgress {
            elapsed,
            answered,
            failed: sum(|l| &l.failed),
            rate: if gap > 0.0 { answered.saturating_sub(before.answered) as f64 / gap } else { 0.0 },
            backlog: sum(|l| &l.backlog),
            p50: most(|l| &l.p50),
            p99: most(|l| &l.p99),
            record: live.iter().fold(LiveRecord::default(), |mut sum, live| {
                sum.add(&live.record());
                sum
            }),
        }
    }
}
