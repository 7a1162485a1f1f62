//! Explains an effect that the medians beside it seem to contradict.

use super::{Report, sentence};
use scruple_core::evidence::{Evidence, Replicate};
use scruple_core::judge::Judged;
use scruple_core::unit::{change, change_between};

/// Writes a line for each shown comparison within blocks whose interval does not contain the ratio of the medians in the
/// table, by more than the margin.
pub(crate) fn lines(report: &Report<'_>) -> Vec<String> {
    if report.of_cases() || !report.side_by_side {
        return Vec::new();
    }
    let shown = |judged: &&Judged| report.shown.contains(&judged.metric);
    report.judged.iter().filter(shown).filter_map(|judged| line(report, judged)).collect()
}

fn line(report: &Report<'_>, judged: &Judged) -> Option<String> {
    let Evidence::Interval { effect, of: Replicate::Block, .. } = &judged.comparison.evidence else {
        return None;
    };
    let median = |name: &str| {
        let arm = report.run.arms.iter().find(|arm| arm.name == name)?;
        Some(report.estimate(arm, &judged.metric)?.value)
    };
    let medians = median(&judged.arm)? / median(&judged.reference)?;
    let interval = effect.interval.map(f64::ln);
    let outside = (medians.ln() - interval.high).max(interval.low - medians.ln());
    if !medians.is_finite() || medians <= 0.0 || outside <= judged.comparison.margin.ln_1p() {
        return None;
    }
    Some(format!(
        "In {}, ‘{}’ against ‘{}’ is {} within blocks, although the medians differ by {}: the blocks differ from each \
         other, as on a machine whose load changes, which affects the medians but hardly the comparison within blocks.",
        sentence::measure(&judged.metric),
        judged.arm,
        judged.reference,
        change_between(effect.ratio, effect.interval.low, effect.interval.high),
        change(medians),
    ))
}
