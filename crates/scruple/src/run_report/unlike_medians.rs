//! Explains an effect that the medians beside it seem to contradict.

use super::Report;
use crate::render::metric_words::measure;
use scruple_core::evidence::{Evidence, Replicate};
use scruple_core::judge::Judged;
use scruple_core::unit::{change, change_between};
use scruple_stats::paired::{Effect, UNPAIRED};

/// Where one side of an interval is this many times as long as the other, the readings are not spread alike.
const UNEVEN: f64 = 5.0;

/// Writes a line for each shown comparison within blocks whose interval misses the ratio of the medians in the table by
/// more than the margin. It also writes one for each other comparison whose readings have several levels.
pub(crate) fn lines(report: &Report<'_>) -> Vec<String> {
    // The figures of cases in Scruple's own runs are not medians of the readings, and only some of them contain the
    // tare.
    if report.of_cases() && report.run.provenance.tool.is_none() {
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
    if effect.method == UNPAIRED {
        return of_levels(judged, effect, medians);
    }
    if !report.side_by_side || report.of_cases() {
        return None;
    }
    let interval = effect.interval.map(f64::ln);
    let outside = (medians.ln() - interval.high).max(interval.low - medians.ln());
    if !medians.is_finite() || medians <= 0.0 || outside <= judged.comparison.margin.ln_1p() {
        return None;
    }
    Some(format!(
        "In {}, ‘{}’ against ‘{}’ is {} within blocks, although the medians differ by {}: the blocks differ from each \
         other, as on a machine whose load changes, which affects the medians but hardly the comparison within blocks.",
        measure(&judged.metric),
        judged.arm,
        judged.reference,
        change_between(effect.ratio, effect.interval.low, effect.interval.high),
        change(medians),
    ))
}

/// Explains the effect between two samples that were not taken in pairs, where it is far from the ratio of the medians.
fn of_levels(judged: &Judged, effect: &Effect, medians: f64) -> Option<String> {
    let interval = effect.interval.map(f64::ln);
    let (centre, between) = (effect.ratio.ln(), medians.ln());
    let sides = [centre - interval.low, interval.high - centre];
    let uneven = sides[0].max(sides[1]) > UNEVEN * sides[0].min(sides[1]);
    if !between.is_finite() || !uneven || (between - centre).abs() <= judged.comparison.margin.ln_1p() {
        return None;
    }
    Some(format!(
        "In {}, most pairs of readings of ‘{}’ and ‘{}’ differ by about {}, although the medians differ by {}: the \
         readings have several levels or a long tail, so that no single figure describes the difference.",
        measure(&judged.metric),
        judged.arm,
        judged.reference,
        change(effect.ratio),
        change(medians),
    ))
}
