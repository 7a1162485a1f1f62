//! The thread that waits for the others watches marks, progress, and the limits that abort the load.

use super::super::abort::WatchedLimits;
use super::super::clock;
use super::super::plan::Plan;
use super::super::shared::{LoadProgress, LoadShared};
use super::turn_event::{Handled, TurnEvent};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time at which the threads start, in nanoseconds on both clocks; 0 until it is determined.
#[derive(Default)]
pub(super) struct TurnStart {
    pub(super) monotonic: AtomicU64,
    pub(super) since_1970: AtomicU64,
}

/// The state of the watching thread.
pub(super) struct WatchState {
    /// The marks, in nanoseconds from the start, or in numbers of requests if `by_count`.
    marks: Vec<u64>,
    by_count: bool,
    reached: usize,
    pub(super) abort: Option<WatchedLimits>,
    last: LoadProgress,
    told_at: u64,
}

/// The interval in nanoseconds at which progress is reported.
const PROGRESS_INTERVAL: u64 = 250_000_000;

impl WatchState {
    pub(super) fn of(plan: &Plan) -> WatchState {
        let by_count = plan.max_requests.is_some() && (plan.rate().is_none() || plan.scenario.is_some());
        let whole = match plan.max_requests.filter(|_| by_count) {
            Some(requests) => requests as f64,
            None => plan.span() as f64,
        };
        let inner = plan.marks.iter().map(|share| (share * whole) as u64);
        let marks = std::iter::once(0).chain(inner).collect();
        let abort = plan.scenario.as_ref().and_then(|scenario| scenario.abort.clone());
        let abort = abort.map(WatchedLimits::of);
        WatchState { marks, by_count, reached: 0, abort, last: LoadProgress::default(), told_at: 0 }
    }

    /// How long the watching thread may sleep.
    pub(super) fn pause(&self, start: &TurnStart) -> Duration {
        let (now, start) = (clock::now(), start.monotonic.load(Ordering::Relaxed));
        let waiting = self.marks.len() > 1;
        let pause = match self.marks.get(self.reached).filter(|_| waiting) {
            Some(_) if start == 0 => 1_000_000,
            Some(_) if self.by_count && self.reached > 0 => 2_000_000,
            Some(mark) => (start + mark).saturating_sub(now).min(50_000_000),
            None => 50_000_000,
        };
        Duration::from_nanos(pause)
    }

    /// Handles that all threads are ready: determines the time at which they start, unless one of them could not
    /// connect. Without a warm-up the first mark is reported before that time, so that no request has been handled by
    /// then.
    pub(super) fn begin(
        &mut self,
        shared: &LoadShared,
        plan: &Plan,
        start: &TurnStart,
        on_event: &mut dyn FnMut(TurnEvent<'_>),
    ) {
        if shared.stopped() {
            return;
        }
        // A short turn may end before the first report, and observers that add up turns have to know that one begins.
        on_event(TurnEvent::Progress(&LoadProgress::default()));
        if self.marks.len() > 1 && plan.warm_up_before() == 0 {
            on_event(TurnEvent::Mark(0, Handled { shared, whole: None }));
            self.reached = 1;
        }
        let ahead = 2_000_000 + plan.warm_up_before();
        start.monotonic.store(clock::now() + ahead, Ordering::Relaxed);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
        start.since_1970.store(wall + ahead, Ordering::Relaxed);
    }

    pub(super) fn check_progress(
        &mut self,
        shared: &LoadShared,
        start: &TurnStart,
        on_event: &mut dyn FnMut(TurnEvent<'_>),
    ) {
        let (now, start) = (clock::now(), start.monotonic.load(Ordering::Relaxed));
        if start == 0 || now < start {
            return;
        }
        let at = if self.by_count { shared.handled() } else { now - start };
        if self.marks.len() > 1 && self.marks.get(self.reached).is_some_and(|mark| *mark <= at) {
            on_event(TurnEvent::Mark(self.reached, Handled { shared, whole: None }));
            self.reached += 1;
        }
        if now - self.told_at >= PROGRESS_INTERVAL {
            self.told_at = now;
            let seen = LoadProgress::of(&shared.live, (now - start) as f64 / 1e9, &self.last);
            if self.abort.as_mut().is_some_and(|abort| abort.exceeded(&seen, &self.last)) {
                shared.stop();
            }
            self.last = seen;
            on_event(TurnEvent::Progress(&self.last));
        }
    }

    /// Reports the end of a turn: the last progress and the last mark. Marks that a short or interrupted turn did not
    /// reach are not reported.
    pub(super) fn finish(
        &self,
        shared: &LoadShared,
        start: &TurnStart,
        reached: u64,
        on_event: &mut dyn FnMut(TurnEvent<'_>),
    ) {
        let elapsed = clock::now().saturating_sub(start.monotonic.load(Ordering::Relaxed));
        on_event(TurnEvent::Progress(&LoadProgress::of(&shared.live, elapsed as f64 / 1e9, &self.last)));
        if self.marks.len() > 1 {
            on_event(TurnEvent::Mark(self.marks.len(), Handled { shared, whole: Some(reached) }));
        }
    }
}
