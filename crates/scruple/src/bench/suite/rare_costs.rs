//! Says which cases cost more on average than in a median batch.
//!
//! Events that come once in many iterations, such as a collection or the refilling of a pool, fall into few batches, so
//! the median of batches does not show them. On a busy machine the mean of wall times follows the other programs, so
//! this compares processor times, in undisturbed blocks, and relative to those of the tare.

use super::cases::{Cases, Weighed};
use super::record::SuiteRecord;
use scruple_core::harmless_text::list_names;
use scruple_core::judge::undisturbed_blocks;
use scruple_core::run::Run;
use scruple_core::sample::Sample;
use scruple_core::subject::Arm;
use scruple_core::unit::{Unit, quantity};
use scruple_stats::pooled;
use scruple_stats::quantile::median;
use scruple_stats::summary::mean;

/// The excess of the mean over the median, as a share of the median, from which it is notable.
const NOTABLE: f64 = 0.05;

/// Adds one remark about the cases whose mean is larger than their median.
pub(super) fn add_remark(cases: &Cases, record: &mut SuiteRecord) {
    let open = cases.weighed.iter().filter(|weighed| weighed.is_open() && !weighed.has_threads());
    let mut found: Vec<(f64, f64, &str)> = open
        .filter_map(|weighed| {
            let (mean, median) = notable_mean(&record.run, weighed)?;
            Some((mean, median, record.name(weighed)))
        })
        .collect();
    found.sort_by(|one, other| (other.0 / other.1).total_cmp(&(one.0 / one.1)));
    let Some((mean, median, name)) = found.first() else { return };
    let time = |value: &f64| quantity(*value, &Unit::Nanoseconds);
    let others = match found.len() {
        1 => String::new(),
        _ => format!(" (and less so of {})", list_names(found[1..].iter().map(|one| one.2))),
    };
    let text = format!(
        "an iteration of ‘{name}’{others} takes {} of processor time on average, but {} in the median batch: what comes once \
         in many iterations, such as a collection, is not in the figure; --detail shows the mean",
        time(mean),
        time(median)
    );
    record.run.warn("rare-costs", text);
}

/// The mean and the median of the processor time of an iteration, if the mean is larger than that of the tare explains.
/// The mean is that of readings relative to the median of their process: if processes differ, the mean of all readings
/// may be less than their median.
fn notable_mean(run: &Run, weighed: &Weighed) -> Option<(f64, f64)> {
    let (arm, tare) = (&run.arms[weighed.arm], &run.arms[weighed.tare]);
    let of = |arm: &Arm| Some(undisturbed_blocks::counted(arm.sample("time.cpu")?, tare));
    let (case, tare) = (of(arm)?, of(tare)?);
    let (own, of_tare) = by_median(case.clone()).paired(&by_median(tare));
    let excess: Vec<(f64, u64)> = own.iter().zip(&of_tare).map(|(own, tare)| (own - tare, 1)).collect();
    let excess = pooled::mean(&excess, run.terms.level)?;
    let median = median(&case.readings);
    (excess.low > NOTABLE).then(|| (median * mean(&own), median))
}

/// The readings relative to the median of their process: processes differ for other reasons as well.
fn by_median(sample: Sample) -> Sample {
    let relative = |process: Vec<f64>| {
        let median = median(&process);
        process.into_iter().map(move |reading| reading / median)
    };
    Sample { readings: sample.by_process().into_iter().flat_map(relative).collect(), ..sample }
}
