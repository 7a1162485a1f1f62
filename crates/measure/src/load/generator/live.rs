//! Publishes a thread's figures while the load runs.

use super::super::shared::Live;
use super::Generator;
use std::sync::atomic::Ordering;

impl Generator {
    /// Publishes the numbers of answered and failed requests.
    pub(super) fn publish_counts(&self) {
        let live: &Live = &self.shared.live[self.thread as usize];
        let (answered, failed) = self.recorder.totals();
        live.answered.store(answered, Ordering::Relaxed);
        live.failed.store(failed, Ordering::Relaxed);
    }

    /// Publishes the figures of the current part, or of the one before it while the current one has no answers.
    pub(super) fn publish(&self, now: u64) {
        let live: &Live = &self.shared.live[self.thread as usize];
        live.backlog.store(self.queue.len() as u64, Ordering::Relaxed);
        if let Some(own) = &self.recorder.live {
            let stored = live.response.iter().zip(own.response);
            stored.for_each(|(shared, own)| shared.store(own, Ordering::Relaxed));
            live.sum.store(own.sum, Ordering::Relaxed);
            own.failures
                .each()
                .for_each(|(class, count)| live.failures[class as usize].store(count, Ordering::Relaxed));
        }
        let part = usize::from(self.time.part(now));
        let mut latest_first =
            self.recorder.parts[..=part].iter().rev().map(|part| part.response.latencies());
        if let Some(latest) = latest_first.find(|responses| !responses.each().is_empty()) {
            live.p50.store(latest.quantile(0.5).unwrap_or(0), Ordering::Relaxed);
            live.p99.store(latest.quantile(0.99).unwrap_or(0), Ordering::Relaxed);
        }
    }
}
