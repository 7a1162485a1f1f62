//! From readings to statements: estimates of each arm, comparisons between arms, and which of them to quote.

pub mod cases;
mod fits;

pub use fits::{Fit, fits, trailing_number};

use crate::compare::{self, Comparison, Direction, Entry, Verdict};
use crate::metric::{Better, Metric, Pass, Quality, metric};
use crate::run::{Run, Terms};
use crate::sample::{Figure, Sample};
use crate::stats::bootstrap;
use crate::stats::quantile::{Interval, median, median_interval};
use crate::subject::{Arm, Role, Subject};
use std::collections::HashMap;

/// The resident size moves by up to this many bytes between identical runs, because the kernel maps file pages around
/// a fault as it finds them in memory.
const RESIDENT_NOISE: f64 = 300_000.0;

/// Intervals that are resampled are resampled alike each time a run is judged.
const RESAMPLING_SEED: u64 = 0x5c12_0b1e;

/// What is known of one metric of one arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The median of the readings, in the metric's unit.
    pub value: f64,
    /// Its interval; absent for exact readings and where there are too few.
    pub interval: Option<Interval>,
    /// The least and the greatest reading.
    pub range: (f64, f64),
    /// How the estimate came about.
    pub method: &'static str,
}

/// One comparison of one metric between two arms.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The metric's key.
    pub metric: String,
    /// The name of the arm compared with.
    pub reference: String,
    /// The name of the arm compared.
    pub arm: String,
    /// The effect and the verdict.
    pub comparison: Comparison,
}

/// Two arms to be compared, and whether their readings were taken side by side.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The arm compared with.
    pub reference: &'a Arm,
    /// The arm compared.
    pub arm: &'a Arm,
    /// Whether readings of the same block belong together.
    pub paired: bool,
    /// The tares of both, where they are cases: only blocks that neither finds disturbed are compared.
    pub tares: Option<(&'a Arm, &'a Arm)>,
}

/// The declaration of a metric that a sample belongs to, whoever brought it.
pub fn declaration(key: &str, sample: &Sample) -> Metric {
    metric(key)
        .cloned()
        .unwrap_or_else(|| Metric::custom(key, sample.unit.clone(), sample.quality, sample.pass))
}

/// The estimate of a sample: the median, with an exact order-statistic interval where readings vary.
pub fn estimate(sample: &Sample, level: f64) -> Estimate {
    let range = sample
        .readings
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
    let value = median(&sample.readings);
    if sample.quality <= Quality::Near && sample.repeats() {
        return Estimate { value, interval: None, range, method: "counted" };
    }
    let processes = sample.by_process();
    if processes.len() > 1
        && let Some(found) = bootstrap::median_of_amounts(&processes, level, RESAMPLING_SEED)
    {
        return Estimate { value, interval: Some(found.interval), range, method: found.method };
    }
    let interval = median_interval(&sample.readings, level);
    let method =
        if interval.is_some() { "median, order statistics" } else { "median of too few for an interval" };
    Estimate { value, interval, range, method }
}

/// The end of the keys of figures that say how far another can be wrong: `alloc.bytes.resolution` is of `alloc.bytes`.
pub const RESOLUTION: &str = ".resolution";

/// The key of the figure that says how far this metric's readings can be wrong.
pub fn resolution_key(key: &str) -> String {
    format!("{key}{RESOLUTION}")
}

/// The estimate, widened by how far the arm's readings of the metric can be wrong, where that is known.
pub fn widened(estimate: Estimate, arm: &Arm, key: &str) -> Estimate {
    let Some(sample) = arm.sample(&resolution_key(key)) else { return estimate };
    let more = sample.readings.iter().copied().fold(0.0, f64::max);
    let interval = estimate.interval.map(|i| Interval { low: i.low - more, high: i.high + more, ..i });
    let (low, high) = estimate.range;
    Estimate { interval, range: ((low - more).max(0.0), high + more), ..estimate }
}

/// The pairs inside one run: every other subject, and the reference's twin, against the reference.
///
/// Cases of bench programs are compared with themselves in another program, or with a named reference case. Several
/// commands at several versions are compared with themselves at the first version.
pub fn pairs(run: &Run) -> Vec<Pair<'_>> {
    if matches!(run.arms.first().map(|arm| &arm.subject), Some(Subject::Case { .. })) {
        return cases::pairs(run);
    }
    let at_versions = cases::at_versions(run);
    if !at_versions.is_empty() {
        return at_versions;
    }
    let Some(reference) = run.reference() else { return Vec::new() };
    run.arms
        .iter()
        .filter(|arm| matches!(arm.role, Role::Subject | Role::Twin) && arm.name != reference.name)
        .map(|arm| Pair { reference, arm, paired: side_by_side(reference, arm), tares: None })
        .collect()
}

/// Whether two arms have any block in common. Readings of another tool, which ended one command before it began the
/// next, have none.
fn side_by_side(reference: &Arm, arm: &Arm) -> bool {
    let both = |(key, figure): (&String, &Figure)| match (figure, reference.sample(key)) {
        (Figure::Sample(sample), Some(other)) => Some((sample.blocks.clone(), other.blocks.clone())),
        _ => None,
    };
    let mut shared = arm.figures.iter().filter_map(both).peekable();
    shared.peek().is_none()
        || shared.any(|(left, right)| left.iter().any(|block| right.binary_search(block).is_ok()))
}

/// The comparisons of these pairs in every metric that both arms of a pair have.
///
/// Within one metric the verdicts of all pairs hold together at the level of the terms (Holm). The headline quotes
/// whichever of wall and processor time tells, which is two chances to err; but "different" and "same" each err on one
/// side of the margin only, with half the error of the interval, so that both chances together stay within it. Where the
/// run has a twin of the reference, no margin is narrower than what the twin showed.
pub fn compare_pairs(pairs: &[Pair<'_>], terms: &Terms) -> Vec<Judged> {
    let mut keys: Vec<&String> = pairs.iter().flat_map(|pair| pair.arm.figures.keys()).collect();
    keys.sort();
    keys.dedup();
    // How a batch was made is no figure of the case.
    keys.retain(|key| !key.starts_with("batch."));
    let level = 1.0 - (1.0 - terms.level) / f64::from(terms.looks.max(1));
    keys.into_iter().flat_map(|key| compare_metric(key, pairs, terms.margin, level)).collect()
}

/// The samples to compare: for cases, those of the blocks that count.
fn samples_of(pair: &Pair<'_>, key: &str) -> Option<(Sample, Sample)> {
    let (reference, arm) = (pair.reference.sample(key)?, pair.arm.sample(key)?);
    Some(match pair.tares {
        Some((left, right)) => (cases::counted(reference, left), cases::counted(arm, right)),
        None => (reference.clone(), arm.clone()),
    })
}

fn compare_metric(key: &str, pairs: &[Pair<'_>], margin: f64, level: f64) -> Vec<Judged> {
    let mut found: Vec<(usize, Comparison)> = Vec::new();
    let mut noisy: Vec<(usize, Readings)> = Vec::new();
    for (index, pair) in pairs.iter().enumerate() {
        let Some((reference, arm)) = samples_of(pair, key) else { continue };
        let (reference, arm) = (&reference, &arm);
        let lower = declaration(key, arm).better == Better::Lower;
        if arm.quality == Quality::Exact
            && reference.quality == Quality::Exact
            && arm.repeats()
            && reference.repeats()
        {
            let comparison = compare::compare_exact(&reference.readings, &arm.readings, lower, margin, level);
            found.push((index, comparison));
        } else if matches!(arm.pass, Pass::Timing | Pass::Build) {
            let (left, right) = if pair.paired {
                reference.paired(arm)
            } else {
                (reference.readings.clone(), arm.readings.clone())
            };
            let (left, right, processes) =
                cases::by_process_where_it_matters(left, right, reference, arm, pair.paired);
            noisy.push((index, Readings { left, right, lower, paired: pair.paired, processes }));
        } else {
            let floor = if key == "memory.peak" { RESIDENT_NOISE } else { 0.0 };
            found.push((index, compare_ranges(&reference.readings, &arm.readings, lower, margin, floor)));
        }
    }
    let twin = noisy.iter().find(|(index, _)| pairs[*index].arm.role == Role::Twin).map(|(_, readings)| {
        compare::compare_noisy(&readings.left, &readings.right, readings.lower, margin, level)
    });
    let honest = compare::honest_margin(margin, twin.as_ref());
    let entries: Vec<Entry<'_>> = noisy
        .iter()
        .map(|(index, readings)| Entry {
            reference: &readings.left,
            arm: &readings.right,
            lower_is_better: readings.lower,
            // The twin itself is judged by the asked margin: a wider one is its own finding.
            margin: if pairs[*index].arm.role == Role::Twin { margin } else { honest },
            paired: readings.paired,
            processes: readings.processes,
        })
        .collect();
    let compared = compare::compare_many(&entries, level);
    found.extend(noisy.iter().map(|(index, _)| *index).zip(compared));
    found.sort_by_key(|(index, _)| *index);
    found
        .into_iter()
        .map(|(index, comparison)| Judged {
            metric: key.to_owned(),
            reference: pairs[index].reference.name.clone(),
            arm: pairs[index].arm.name.clone(),
            comparison,
        })
        .collect()
}

struct Readings {
    left: Vec<f64>,
    right: Vec<f64>,
    lower: bool,
    paired: bool,
    processes: bool,
}

/// Compares two handfuls of nearly repeatable readings by their ranges: different when every reading of one is beyond
/// the margin of every reading of the other, same when none is, unknown in between. `floor` is the least difference
/// that means anything, in the metric's unit.
fn compare_ranges(reference: &[f64], arm: &[f64], lower: bool, margin: f64, floor: f64) -> Comparison {
    let span = |values: &[f64]| {
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)))
    };
    let (left, right) = (median(reference), median(arm));
    let ((a, b), (c, d)) = (span(reference), span(arm));
    let room = floor.max(left * margin);
    let verdict = if c - b > room || a - d > room {
        Verdict::Different
    } else if (d - a).abs() <= room && (c - b).abs() <= room {
        Verdict::Same
    } else {
        Verdict::DontKnow
    };
    let direction = (verdict == Verdict::Different).then_some(if (right < left) == lower {
        Direction::Better
    } else {
        Direction::Worse
    });
    Comparison {
        effect: right / left,
        interval: None,
        margin: if left > 0.0 { room / left } else { margin },
        verdict,
        direction,
        blocks: reference.len().min(arm.len()),
        more_blocks: 0,
        difference: Some(right - left),
        method: "ranges of a few readings",
        why: None,
    }
}

/// The comparison to quote for an arm, among the metrics shown: wall time where it tells, else processor time where
/// that tells, else wall time; where neither is shown, the first metric that differs, or else the first.
///
/// Wall time that is "small" tells little: a difference of processor time beyond the margin then says more. And where
/// processor time, known at least twice as well, says something else than wall time that seems the same or nearly so,
/// or says the same as wall time that differs, but within its interval, the machine's other work has blurred wall time.
pub fn headline<'a>(judged: &'a [Judged], shown: &[String], arm: &str) -> Option<&'a Judged> {
    let of_arm: Vec<&Judged> = judged.iter().filter(|judged| judged.arm == arm).collect();
    quoted(&of_arm, shown)
}

/// The comparisons to quote for all arms, by arm.
pub fn headlines<'a>(judged: &'a [Judged], shown: &[String]) -> HashMap<&'a str, &'a Judged> {
    let mut by_arm: HashMap<&str, Vec<&Judged>> = HashMap::new();
    for one in judged {
        by_arm.entry(&one.arm).or_default().push(one);
    }
    by_arm.into_iter().filter_map(|(arm, of_arm)| Some((arm, quoted(&of_arm, shown)?))).collect()
}

fn quoted<'a>(of_arm: &[&'a Judged], shown: &[String]) -> Option<&'a Judged> {
    let of = |key: &str| {
        let shown = shown.iter().any(|other| other == key);
        of_arm.iter().copied().find(|judged| shown && judged.metric == key)
    };
    let decided = |j: &&Judged| j.comparison.verdict != Verdict::DontKnow;
    let differs = |j: &&Judged| j.comparison.verdict == Verdict::Different;
    let (wall, cpu) = (of("time.wall"), of("time.cpu"));
    let blurred = |wall: &&Judged| cpu.is_some_and(|cpu| is_blurred(&wall.comparison, &cpu.comparison));
    wall.filter(|wall| (differs(wall) || wall.comparison.verdict == Verdict::Same) && !blurred(wall))
        .or(cpu.filter(differs))
        .or(wall.filter(|wall| decided(wall) && !blurred(wall)))
        .or(cpu.filter(decided))
        .or(wall)
        .or(cpu)
        .or_else(|| shown.iter().filter_map(|key| of(key)).find(differs))
        .or_else(|| shown.iter().find_map(|key| of(key)))
}

/// The least width of an interval, as a difference of logarithms, that a reader would wish narrower.
const BLUR: f64 = 0.05;

fn is_blurred(wall: &Comparison, cpu: &Comparison) -> bool {
    let width = |comparison: &Comparison| comparison.interval.map(|i| i.high.ln() - i.low.ln());
    let better_known = matches!((width(wall), width(cpu)), (Some(wall), Some(cpu)) if cpu <= wall / 2.0);
    let told = cpu.verdict != Verdict::DontKnow && cpu.verdict != wall.verdict;
    let sharper = width(wall).is_some_and(|wall| wall > BLUR)
        && cpu.verdict == wall.verdict
        && cpu.direction == wall.direction
        && matches!((wall.interval, cpu.interval), (Some(wall), Some(cpu)) if wall.low <= cpu.low && cpu.high <= wall.high);
    match wall.verdict {
        Verdict::Same | Verdict::Small => told && better_known,
        Verdict::Different => sharper && better_known,
        Verdict::DontKnow => false,
    }
}

/// The share of wall time that the arm spent ready but waiting for a core, over all its readings; none where it is not
/// known of each.
pub fn waiting_share(arm: &Arm) -> Option<f64> {
    let (wall, wait) = (arm.sample("time.wall")?, arm.sample("time.wait")?);
    if wait.blocks != wall.blocks {
        return None;
    }
    let total: f64 = wall.readings.iter().sum();
    (total > 0.0).then(|| wait.readings.iter().sum::<f64>() / total)
}

/// The keys of all figures of these arms, declared metrics first and in their order.
pub fn keys_of(arms: &[&Arm]) -> Vec<String> {
    let mut keys: Vec<String> = crate::metric::METRICS.iter().map(|metric| metric.key.to_string()).collect();
    keys.retain(|key| arms.iter().any(|arm| arm.figures.contains_key(key)));
    let mut custom: Vec<String> = arms
        .iter()
        .flat_map(|arm| arm.figures.iter())
        .filter(|(key, figure)| matches!(figure, Figure::Sample(_)) && metric(key).is_none())
        .map(|(key, _)| key.clone())
        .collect();
    custom.sort();
    custom.dedup();
    keys.extend(custom);
    keys
}
