//! The cost that remains after the harness's own cost, weighed in the same blocks, is subtracted.
//!
//! Raw, tare and net are kept separate: the net is computed when it is shown, and never replaces the raw readings.

use serde::Serialize;

use super::Interval;
use super::median_interval::median_interval;
use super::paired::{Why, blocks_needed};
use super::processes;
use super::quantile::median;

/// A cost without that of the harness, in the unit of the metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Net {
    /// The median over blocks of raw − tare; a negative one must not be printed as a cost.
    pub estimate: f64,
    /// The interval of the median; a pair in JSON.
    #[serde(serialize_with = "super::interval::as_pair")]
    pub interval: Interval,
    /// An upper bound of a cost that is too small to be distinguished from the harness: the interval includes 0 or lies
    /// below it, or the estimate is less than [`RESOLUTION`] of the tare, and the cost is at most the tare. The bound
    /// never exceeds the upper end of the raw cost. Absent where each process by itself shows a cost and processes only
    /// disagree about its size.
    pub below_resolution: Option<f64>,
    /// Whether the readings vary so much that only the interval can be reported: it reaches beyond the tare, and includes
    /// 0 or has ends that are more than [`VAGUE`]-fold apart.
    pub unknown: bool,
    /// The method of the interval, in words.
    pub method: &'static str,
}

/// Two copies of one loop differ by up to about this share, depending on their addresses. More readings do not average
/// this out, and another build or invocation may differ, so intervals are widened by this share of the tare.
pub const RESOLUTION: f64 = 0.01;

/// A net whose interval has ends further apart than by this factor, an order of magnitude to either side, is not known,
/// even where each process shows a cost.
pub const VAGUE: f64 = 100.0;

/// The net of readings taken in blocks: the i-th readings of `raw` and of `tare` belong to block i.
///
/// The interval is that of exact order statistics.
///
/// # Errors
///
/// Fails for fewer than six blocks at 95 %, when the samples differ in length, or when readings are not finite.
pub fn net(raw: &[f64], tare: &[f64], level: f64) -> Result<Net, Why> {
    let differences = differences(raw, tare)?;
    let n = differences.len();
    let interval = median_interval(&differences, level)
        .ok_or(Why::TooFew { have: n, need: blocks_needed(level).max(n + 1) })?;
    let raw = || median_interval(raw, level);
    let found = (median(&differences), interval);
    Ok(of(found, false, raw, tare, "median of differences, order statistics"))
}

/// The net of readings taken in several processes, each given as a pair of slices (raw, tare).
///
/// Where processes differ more than their own noise explains, the interval is wide enough to cover that; see
/// [`processes::median_of_groups`].
///
/// # Errors
///
/// Fails as [`net`] does.
pub fn net_by_process(processes: &[(&[f64], &[f64])], level: f64) -> Result<Net, Why> {
    let groups = processes.iter().map(|(raw, tare)| differences(raw, tare)).collect::<Result<Vec<_>, _>>()?;
    let n = groups.iter().map(Vec::len).sum();
    let tares: Vec<f64> = processes.iter().flat_map(|(_, tare)| tare.iter().copied()).collect();
    // A cost that each process shows is positive, even where processes disagree about its size. A net within the spread
    // of copies of one loop does not count as a cost.
    let least = RESOLUTION * median(&tares);
    // A process with too few blocks for an interval of its own shows a cost if each block does; without a cost, each
    // would with a probability of one half, and there are enough blocks of all processes together.
    let shows_a_cost = |group: &Vec<f64>| match median_interval(group, level) {
        Some(own) => own.low > least,
        None => group.iter().all(|difference| *difference > least),
    };
    let certain = n >= blocks_needed(level) && groups.iter().all(shows_a_cost);
    let found = match certain {
        true => processes::median_of_amounts(&groups, level),
        false => processes::median_of_groups(&groups, level),
    };
    let net = found.ok_or(Why::TooFew { have: n, need: blocks_needed(level).max(n + 1) })?;
    let raw = || {
        let raw: Vec<Vec<f64>> = processes.iter().map(|(raw, _)| raw.to_vec()).collect();
        processes::median_of_amounts(&raw, level).map(|raw| raw.interval)
    };
    Ok(of((net.estimate, net.interval), certain, raw, &tares, net.method))
}

/// Makes the net from the median difference and its interval. `raw` computes the interval of the raw cost, and is
/// called only where the difference does not decide. `certain` says whether each process by itself shows a cost.
fn of(
    (estimate, interval): (f64, Interval),
    certain: bool,
    raw: impl FnOnce() -> Option<Interval>,
    tares: &[f64],
    method: &'static str,
) -> Net {
    let tare = median(tares);
    let resolution = RESOLUTION * tare;
    let known = |interval: Interval| {
        let unknown = interval.high > tare && interval.high > VAGUE * interval.low;
        Net { estimate, interval, below_resolution: None, unknown, method }
    };
    if (certain || interval.low > 0.0) && estimate > resolution {
        let low = (interval.low - resolution).max(0.0);
        return known(Interval { low, high: interval.high + resolution, ..interval });
    }
    let raw = raw();
    // Where the tare is negligible compared with the raw cost, the net is as certain as the raw cost, which is never
    // below 0.
    let nothing = |raw: &Interval| {
        median_interval(tares, interval.level).is_some_and(|tare| tare.high <= RESOLUTION * raw.low)
    };
    if let Some(raw) = raw.filter(nothing) {
        let low = interval.low.max((1.0 - RESOLUTION) * raw.low);
        return known(Interval { low, high: interval.high.min(raw.high), ..interval });
    }
    // An interval that lies wholly below 0 shows that the two arms differ by more than noise in the impossible
    // direction, so the resolution is at least as coarse as its lower end.
    let limit = if interval.high > 0.0 { interval.high } else { interval.low.abs() };
    let limit = limit.max(resolution).min(raw.map_or(f64::INFINITY, |raw| raw.high));
    if limit <= tare {
        return Net { below_resolution: Some(limit), unknown: false, ..known(interval) };
    }
    known(Interval { high: limit, ..interval })
}

fn differences(raw: &[f64], tare: &[f64]) -> Result<Vec<f64>, Why> {
    if raw.len() != tare.len() {
        return Err(Why::Unpaired { reference: tare.len(), arm: raw.len() });
    }
    if raw.iter().chain(tare).any(|r| !r.is_finite()) {
        return Err(Why::NotFinite);
    }
    Ok(raw.iter().zip(tare).map(|(raw, tare)| raw - tare).collect())
}
