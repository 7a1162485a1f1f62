//! Runs one fresh process at a time, for callers that weigh a bench program in turn with other subjects. Each
//! process gives one reading of each case.

use super::Suite;
use super::cases::Weighed;
use super::instructions::INTERCEPT;
use crate::fault::Stop;
use scruple_core::judge::{RESOLUTION, bench_cases};
use scruple_core::metric::{Pass, metric};
use scruple_core::sample::{Figure, Reading, Sample};
use scruple_core::subject::{Arm, Role};
use scruple_stats::quantile::median;
use scruple_stats::sorting::SortedMap;

/// The readings of a case in fresh processes.
pub struct OfCase {
    /// The arm of the case, without figures.
    pub arm: Arm,
    /// The readings for one iteration, by block.
    pub readings: SortedMap<u32, Vec<Reading>>,
    /// Why the case failed or was skipped.
    pub failed: Option<String>,
}

/// The level of an interval that the caller discards.
const LEVEL: f64 = 0.95;

/// Times every case in one fresh process. Each case gets one reading: the median of its blocks, net of the tare.
pub fn time_once(suite: &mut Suite, seed: u64) -> Result<Vec<OfCase>, Stop> {
    suite.record.run.seed = seed;
    suite.timing_pass().one_process(0)?;
    Ok(hand_over(suite, |arm, tare, key, sample| match sample.pass {
        // The number of iterations is not a figure of the case, since Scruple has chosen it.
        Pass::Timing if key != "batch.iterations" => {
            let (value, source) = time_of(arm, tare, key, sample);
            vec![(0, value, source)]
        }
        _ => Vec::new(),
    }))
}

/// Counts every case in fresh processes of its own, net of the tare.
pub fn count_once(suite: &mut Suite) -> Result<Vec<OfCase>, Stop> {
    suite.count()?;
    Ok(hand_over(suite, |_, _, key, sample| match sample.pass {
        // Two metrics are left out: the error of a coarse counter is not a cost, and the cost of starting belongs
        // to no case.
        Pass::Counting if !key.ends_with(RESOLUTION) && key != INTERCEPT => {
            let each = sample.blocks.iter().zip(&sample.readings);
            each.map(|(block, value)| (*block, *value, sample.source.clone())).collect()
        }
        _ => Vec::new(),
    }))
}

/// Moves the readings of all cases out of the suite.
fn hand_over(
    suite: &mut Suite,
    values: impl Fn(&Arm, &Arm, &str, &Sample) -> Vec<(u32, f64, String)>,
) -> Vec<OfCase> {
    let of = |weighed: &Weighed| {
        let (arm, tare) = (&suite.record.run.arms[weighed.arm], &suite.record.run.arms[weighed.tare]);
        let failed = weighed.ended.map(|_| arm.absent("time.wall").unwrap_or("it failed").to_owned());
        let mut readings: SortedMap<u32, Vec<Reading>> = SortedMap::new();
        for (key, figure) in &arm.figures {
            match figure {
                Figure::Sample(sample) => {
                    for (block, value, source) in values(arm, tare, key, sample) {
                        let (unit, quality) = (sample.unit.clone(), sample.quality);
                        let reading = Reading { key: key.clone(), unit, quality, source, value: Ok(value) };
                        readings.entry(block).or_default().push(reading);
                    }
                }
                Figure::Absent { absent } => readings
                    .entry(0)
                    .or_default()
                    .extend(metric(key).map(|metric| Reading::absent(metric, absent.clone()))),
            }
        }
        let mut bare = Arm::new(&arm.name, arm.subject.clone(), Role::Subject);
        bare.params.clone_from(&arm.params);
        OfCase { arm: bare, readings, failed }
    };
    let all = suite.cases.weighed.iter().map(of).collect();
    // An absent `time.wall` stays, because it records that the case failed.
    let stays = |key: &str, figure: &Figure| key == "time.wall" && matches!(figure, Figure::Absent { .. });
    suite.record.run.arms.iter_mut().for_each(|arm| arm.figures.retain(|key, figure| stays(key, figure)));
    suite.record.run.warnings.clear();
    all
}

/// Returns one figure of one process. Times are net of the tare and come from undisturbed blocks; other figures are
/// medians.
fn time_of(arm: &Arm, tare: &Arm, key: &str, sample: &Sample) -> (f64, String) {
    if !matches!(key, "time.wall" | "time.cpu") {
        return (median(&sample.readings), sample.source.clone());
    }
    let source = format!("{}, less the tare", sample.source);
    match (bench_cases::net(arm, tare, key, LEVEL), tare.sample(key)) {
        (Some(net), _) => (net.estimate, source),
        // If there are too few blocks for an interval, the difference of the medians is used.
        (None, Some(tare)) => (median(&sample.readings) - median(&tare.readings), source),
        (None, None) => (median(&sample.readings), sample.source.clone()),
    }
}
