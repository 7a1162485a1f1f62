//! Publishes a thread's figures while the load runs.

use super::super::shared::LiveFigures;
use super::super::thread_record::Recorder;
use std::sync::atomic::Ordering;

impl LiveFigures {
    /// Publishes the numbers of answered, failed and unread requests.
    pub(super) fn publish_counts(&self, recorder: &Recorder) {
        let (answered, failed) = recorder.totals();
        self.answered.store(answered, Ordering::Relaxed);
        self.failed.store(failed, Ordering::Relaxed);
        self.unread.store(recorder.unread, Ordering::Relaxed);
    }

    /// Publishes what observers see. The generator does not wait while they read it, unless this is the `last` time.
    pub(super) fn publish_record(&self, recorder: &Recorder, last: bool) {
        let Some(own) = &recorder.live else { return };
        let shared = if last { Ok(self.record()) } else { self.record.try_lock() };
        if let Ok(mut shared) = shared {
            shared.clone_from(own);
        }
    }

    /// Publishes the number of waiting requests, and the figures of the current part, or of the one before it while the
    /// current one has no answers.
    pub(super) fn publish(&self, recorder: &Recorder, part: u16, backlog: usize) {
        self.backlog.store(backlog as u64, Ordering::Relaxed);
        let mut latest_first =
            recorder.parts[..=usize::from(part)].iter().rev().map(|part| part.response.latencies());
        if let Some(latest) = latest_first.find(|responses| !responses.each().is_empty()) {
            self.p50.store(latest.quantile(0.5).unwrap_or(0), Ordering::Relaxed);
            self.p99.store(latest.quantile(0.99).unwrap_or(0), Ordering::Relaxed);
        }
    }
}
