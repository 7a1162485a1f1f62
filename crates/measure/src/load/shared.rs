//! What the threads of a run share.

use super::http1::Expect;
use super::http2;
use super::plan::Plan;
use super::target::Address;
use super::tls::TlsSetup;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// As planned.
    Planned,
    /// The user interrupted; what was under way is not counted.
    Interrupted,
    /// For two seconds no connection could be made.
    ServerGone,
}

pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) address: Address,
    pub(crate) tls: Option<TlsSetup>,
    /// The requests as bytes, in the order of the plan.
    pub(crate) encoded: Vec<Vec<u8>>,
    /// The same for HTTP/2; empty where that is not spoken.
    pub(crate) frames: Vec<http2::Encoded>,
    pub(crate) expected: Vec<Expect>,
    /// The sums of weights up to and with each request.
    pub(crate) cumulated: Vec<f64>,
    pub(crate) cores: usize,
    pub(crate) live: Vec<Live>,
    pub(crate) interrupted: &'a AtomicBool,
    /// Called before the connections are closed.
    pub(crate) at_end: &'a (dyn Fn() + Sync),
    pub(crate) failed: AtomicBool,
}

impl Shared<'_> {
    /// Whether HTTP/2 is spoken.
    pub(crate) fn http2(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Whether all threads are to stop: the user wants it, or one of them could not start or has given up.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }
}

/// What a thread tells while it runs.
#[derive(Default)]
pub(crate) struct Live {
    pub(crate) answered: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) backlog: AtomicU64,
    pub(crate) p50: AtomicU64,
    pub(crate) p99: AtomicU64,
}

/// How a run is going, for a line on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Seconds since requests began to be sent.
    pub elapsed: f64,
    /// Good answers.
    pub answered: u64,
    /// Failed requests.
    pub failed: u64,
    /// Good answers per second since the last progress.
    pub rate: f64,
    /// Requests that wait for a free connection.
    pub backlog: u64,
    /// The median response of late, in nanoseconds; with several threads the largest of theirs.
    pub p50: u64,
    /// The 99th percentile of late, likewise.
    pub p99: u64,
}

impl Progress {
    pub(crate) fn of(live: &[Live], elapsed: f64, before: &Progress) -> Progress {
        let sum = |pick: fn(&Live) -> &AtomicU64| live.iter().map(|l| pick(l).load(Ordering::Relaxed)).sum();
        let most = |pick: fn(&Live) -> &AtomicU64| {
            live.iter().map(|l| pick(l).load(Ordering::Relaxed)).max().unwrap_or(0)
        };
        let answered: u64 = sum(|l| &l.answered);
        let gap = elapsed - before.elapsed;
        Progress {
            elapsed,
            answered,
            failed: sum(|l| &l.failed),
            rate: if gap > 0.0 { answered.saturating_sub(before.answered) as f64 / gap } else { 0.0 },
            backlog: sum(|l| &l.backlog),
            p50: most(|l| &l.p50),
            p99: most(|l| &l.p99),
        }
    }
}
