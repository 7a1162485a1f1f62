//! Finds the warm-up of a load test: the parts at the beginning that are left out.

use super::latencies::Latencies;
use super::plan::{Plan, WarmUp};
use super::result::RunPart;
use super::stalls::Stall;
use scruple_core::warm_up::cut;

/// The smallest number of requests for a median that may show warm-up.
const MEDIAN_OF: u64 = 10;

/// The number of parts at the beginning that are warm-up: a decay of the service time without a stall of the
/// server and without failures, which would otherwise be left out.
pub(super) fn of(plan: &Plan, parts: &[RunPart], stalls: &[Stall]) -> usize {
    match plan.warm_up {
        WarmUp::Off => 0,
        WarmUp::For(_) => parts.iter().take_while(|part| part.to <= 0).count(),
        WarmUp::Auto => {
            let answers: u64 = parts.iter().map(|part| part.times.service.count()).sum();
            // Medians of few requests differ by chance, so several parts may be joined.
            let each = (MEDIAN_OF * parts.len() as u64).div_ceil(answers.max(1)) as usize;
            let median = |parts: &[RunPart]| {
                let service = Latencies::merge_all(parts.iter().map(|part| &part.times.service));
                Some((service.quantile(0.5)? as f64).max(1.0).ln())
            };
            let medians: Option<Vec<f64>> = parts.chunks(each.max(1)).map(median).collect();
            let cut = medians.map_or(0, |medians| cut(&medians)) * each;
            let end = cut.checked_sub(1).map_or(0, |last| parts[last].to);
            let stalled = stalls.iter().any(|stall| stall.from < end);
            let failed = parts[..cut].iter().any(|part| part.counts.failures.total() > 0);
            if stalled || failed { 0 } else { cut }
        }
    }
}
