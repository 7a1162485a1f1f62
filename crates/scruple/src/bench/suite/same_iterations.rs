//! Makes batches comparable: a case runs with the same number of iterations in several programs, and as in a stored
//! run.

use super::cases::{Weighed, arm_name};
use scruple_core::judge;
use scruple_core::run::Run;
use scruple_core::subject::{Arm, Role};
use scruple_stats::quantile::median;
use std::collections::HashMap;

/// How many times longer than required a batch may become, so that it has as many iterations as in another program. If
/// programs differ by more, the effect of the number of iterations is negligible compared with that difference.
const STRETCH: u64 = 4;

/// How one case is run in the first program that has it.
#[derive(Clone, Copy, Debug)]
struct CaseIterations {
    iterations: u64,
    tare_iterations: u64,
    place: usize,
}

/// How cases are run in the first program that has them, by name.
#[derive(Clone, Debug, Default)]
pub struct KnownIterations(HashMap<String, CaseIterations>);

impl KnownIterations {
    /// Returns the batch sizes of the cases of a stored run, if the run records them.
    pub fn those_of(run: &Run) -> KnownIterations {
        let iterations =
            |arm: &Arm| Some(median(&arm.sample("batch.iterations")?.readings).round().max(1.0) as u64);
        let known = |(place, arm): (usize, &Arm)| {
            let tare_iterations = judge::bench_cases::tare_at(run, place).and_then(iterations)?;
            // Each case has two arms, so half the index of its arm is the index of the case.
            Some((
                arm.name.clone(),
                CaseIterations { iterations: iterations(arm)?, tare_iterations, place: place / 2 },
            ))
        };
        KnownIterations(
            run.arms
                .iter()
                .enumerate()
                .filter(|(_, arm)| arm.role == Role::Subject)
                .filter_map(known)
                .collect(),
        )
    }
}

impl KnownIterations {
    /// Gives the cases of later programs the iterations of the first program. The cost of an iteration depends slightly
    /// on the number of iterations, since a short batch may or may not contain a collection, and branch predictors
    /// learn in long ones. Two copies of a program that are calibrated separately on a busy machine would differ by
    /// some per cent.
    pub(super) fn apply(&mut self, cases: &mut [Weighed]) {
        for (index, weighed) in cases.iter_mut().enumerate().filter(|(_, weighed)| weighed.is_open()) {
            let own = CaseIterations {
                iterations: weighed.iterations,
                tare_iterations: weighed.tare_iterations,
                place: index,
            };
            let known = *self.0.entry(arm_name(&weighed.case, weighed.threads, None)).or_insert(own);
            weighed.kin = known.place;
            let near = known.iterations.max(own.iterations) <= STRETCH * known.iterations.min(own.iterations);
            let allowed = weighed.case.max_iterations.unwrap_or(u64::MAX).max(1);
            if near && known.iterations.max(known.tare_iterations) <= allowed {
                weighed.batch_time =
                    weighed.batch_time.mul_f64(known.iterations as f64 / own.iterations.max(1) as f64);
                weighed.iterations = known.iterations;
                weighed.tare_iterations = known.tare_iterations;
            }
        }
    }
}
