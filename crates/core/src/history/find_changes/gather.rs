//! Gathers the readings of one metric of one subject, aligned over the versions.

use scruple_stats::sorting::{self, SortedMap};

use super::interleaved::Cells;
use super::version_groups::{JudgedReadings, VersionReadings};
use crate::history::{Graph, History, Point, SLOPE, VersionState, comparable};
use crate::judge::floor_of;
use crate::metric::{METRICS, Metric, Quality, metric};
use crate::sample::{BLOCKS_OF_A_PROCESS, Sample};
use crate::subject::Arm;
use scruple_stats::quantile::{median, sorted};

/// All readings of one series, and what is known about them.
pub(super) struct GatheredSeries {
    pub subject: String,
    pub metric: Metric,
    pub points: Vec<Point>,
    /// The readings of each point of `points`.
    pub reads: Vec<VersionReadings>,
    pub exact: bool,
    /// Whether counts repeat within each visit of a version, but not from one visit to the next.
    pub shifting: bool,
    /// Whether the user brought the values, so that Scruple took no readings.
    pub own_series: bool,
    /// Whether steps are differences, because the user brought the series and some value is not above zero.
    pub differences: bool,
    /// Whether the metric is counted, so that a step of any size matters.
    pub counted: bool,
    /// The smallest step between readings, in the unit of the metric; 0 where they are continuous.
    pub resolution: f64,
    /// The difference that identical programs may have, in the unit of the metric.
    pub floor: f64,
    /// Why the series cannot be judged as a noisy one; absent where it can.
    pub cannot: Option<String>,
}

/// The artefacts of each version: the index of the version that was built first with the same artefacts; `None` where
/// they are not known.
pub(super) struct SameArtefacts(Vec<Option<usize>>);

impl SameArtefacts {
    pub fn of(history: &History) -> SameArtefacts {
        let index: SortedMap<&str, usize> = SortedMap::from_iter(
            history.versions.iter().enumerate().map(|(i, version)| (version.commit.as_str(), i)),
        );
        let of = |(i, version): (usize, &crate::history::Version)| match version.state {
            VersionState::SameBinary => version.same_as.as_deref().and_then(|same| index.get(same).copied()),
            VersionState::Built => Some(i),
            _ => None,
        };
        SameArtefacts(history.versions.iter().enumerate().map(of).collect())
    }

    /// The version that was built first with the same artefacts; the version itself where nothing else is known.
    pub fn root(&self, version: usize) -> usize {
        self.0[version].unwrap_or(version)
    }

    /// Whether the version may have changed anything: false if its artefacts are known to be those of one of
    /// the nearest versions before it whose artefacts are known.
    pub fn may_change(&self, graph: &Graph, version: usize) -> bool {
        let (nearest, _) = graph.nearest(version, |other| self.0[other].is_some());
        self.0[version].is_none() || nearest.iter().all(|other| self.0[version] != self.0[*other])
    }
}

/// Gathers every series that has a reading: subject by subject in the order of arms, metrics in the order of the table.
pub(super) fn gather(history: &History, artefacts: &SameArtefacts) -> Vec<GatheredSeries> {
    let compared = comparable(&history.run);
    let arms: Vec<&Arm> = compared.iter().map(AsRef::as_ref).collect();
    let mut all = Vec::new();
    for subject in sorting::each_once(arms.iter().map(|arm| arm.name.as_str())) {
        let mut by_version: Vec<Option<&Arm>> = vec![None; history.versions.len()];
        for arm in arms.iter().filter(|arm| arm.name == subject) {
            // A failed version is never blamed for a change, not even for the cost of its build.
            let named = |version: &crate::history::Version| {
                Some(&version.commit) == arm.version.as_ref() && !version.state.failed()
            };
            if let Some(i) = history.versions.iter().position(named) {
                by_version[i] = Some(arm);
            }
        }
        for key in keys(&by_version) {
            let samples: Vec<Option<&Sample>> = by_version
                .iter()
                .map(|arm| arm.and_then(|arm| arm.sample(key)).filter(|sample| !sample.readings.is_empty()))
                .collect();
            let own_series = history.run.provenance.tool.is_some();
            all.extend(series(subject, key, &samples, artefacts, own_series));
        }
    }
    all
}

fn keys<'a>(arms: &[Option<&'a Arm>]) -> Vec<&'a str> {
    let mut keys =
        sorting::distinct(arms.iter().flatten().flat_map(|arm| arm.figures.keys().map(String::as_str)));
    let rank = |key: &str| METRICS.iter().position(|metric| metric.key == key).unwrap_or(METRICS.len());
    sorting::by_key(&mut keys, |key| rank(key));
    keys
}

fn series(
    subject: &str,
    key: &str,
    samples: &[Option<&Sample>],
    artefacts: &SameArtefacts,
    own_series: bool,
) -> Option<GatheredSeries> {
    let own: Vec<&Sample> = samples.iter().flatten().copied().collect();
    let first = *own.first()?;
    let metric = metric(key)
        .cloned()
        .unwrap_or_else(|| Metric::custom(key, first.unit.clone(), first.quality, first.pass));
    let counted = own.iter().all(|sample| sample.quality <= Quality::Near);
    let readings: Vec<f64> = own.iter().flat_map(|sample| sample.readings.iter().copied()).collect();
    let resolution = resolution(&readings);
    let finite = readings.iter().all(|reading| reading.is_finite());
    let differences = own_series && finite && readings.iter().any(|reading| *reading <= 0.0);
    let cannot = match differences {
        true => None,
        false => cannot(&readings, first.source.contains(SLOPE)),
    };
    // A zero among positive readings means less than one step of the resolution.
    let half = if resolution > 0.0 { resolution / 2.0 } else { f64::MIN_POSITIVE };
    let scaled = |reading: f64| match reading {
        reading if differences => reading,
        0.0 => half.ln(),
        reading => reading.ln(),
    };
    let mut points: Vec<Point> = Vec::new();
    let mut reads: Vec<VersionReadings> = Vec::new();
    let mut copies_agree = true;
    let steady = counted && own.iter().all(|sample| sample.visits().is_some());
    for (version, sample) in samples.iter().enumerate() {
        let root = artefacts.root(version);
        let Some(sample) = sample.or(samples[root]) else { continue };
        let copied = samples[version].is_none();
        let of_root = samples[root].unwrap_or(sample);
        copies_agree &= sample.readings[0] == of_root.readings[0];
        points.push(Point {
            version,
            value: if steady { sample.readings[0] } else { median(&sample.readings) },
            least: sample.readings.iter().copied().fold(f64::INFINITY, f64::min),
            interval: None,
            readings: sample.readings.clone(),
            copied,
        });
        let visits = sample.visits().unwrap_or_default();
        reads.push(VersionReadings {
            version,
            root,
            copied,
            seen: JudgedReadings { visits, cells: cells(sample, scaled) },
        });
    }
    let exact = counted && copies_agree && own.iter().all(|sample| sample.repeats());
    let shifting = steady && !exact && own.iter().any(|sample| !sample.repeats());
    let subject = subject.to_owned();
    Some(GatheredSeries {
        subject,
        metric,
        points,
        reads,
        exact,
        shifting,
        own_series,
        differences,
        counted,
        resolution,
        floor: floor_of(key),
        cannot,
    })
}

fn cannot(readings: &[f64], slope: bool) -> Option<String> {
    let zeros = readings.iter().filter(|&&reading| reading == 0.0).count();
    if readings.iter().any(|reading| !reading.is_finite()) {
        Some("a reading is not a finite number".to_owned())
    } else if slope && readings.iter().any(|&reading| reading < 0.0) {
        Some(
            "running a tenth of the work often took as long as running all of it; use a larger size so that the cost \
             per unit can be measured"
                .to_owned(),
        )
    } else if readings.iter().any(|&reading| reading < 0.0) {
        Some("a reading is negative, so there are no ratios".to_owned())
    } else if zeros == readings.len() {
        Some("every reading is zero".to_owned())
    } else if zeros * 4 > readings.len() {
        Some("many readings are zero, so there are no ratios".to_owned())
    } else {
        None
    }
}

/// The readings of a sample by block, on the scale on which they are judged. With several processes, each process
/// counts as one reading, since all its readings share the conditions of its start.
fn cells(sample: &Sample, scaled: impl Fn(f64) -> f64) -> Cells {
    let processes = sorting::distinct(sample.blocks.iter().map(|block| block / BLOCKS_OF_A_PROCESS));
    let mut groups: SortedMap<u32, Vec<f64>> = SortedMap::new();
    for (block, reading) in sample.blocks.iter().zip(&sample.readings) {
        let group = if processes.len() > 1 { block / BLOCKS_OF_A_PROCESS } else { *block };
        groups.entry(group).or_default().push(scaled(*reading));
    }
    groups.into_iter().map(|(group, values)| (group, median(&values))).collect()
}

/// The smallest step between readings; 0 unless at least a tenth of them are equal to others, which shows that readings
/// come in steps.
fn resolution(readings: &[f64]) -> f64 {
    let mut distinct = sorted(readings);
    distinct.dedup();
    if distinct.len() * 10 > readings.len() * 9 {
        return 0.0;
    }
    let step = distinct.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    if step.is_finite() { step } else { 0.0 }
}
