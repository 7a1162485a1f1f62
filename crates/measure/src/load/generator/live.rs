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
        let latest = self.recorder.parts[..=part].iter().rev().find(|part| !part.response.is_empty());
        if let Some(part) = latest {
            live.p50.store(part.response.value_at_quantile(0.5), Ordering::Relaxed);
            live.p99.store(part.response.value_at_quantile(0.99), Ordering::Relaxed);
        }
    }
}
