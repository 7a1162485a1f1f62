//! Judges a search for leaks by its readings. The report of the search and its page both show this judgement.

use super::args::SMALLEST;
use super::leak_points::{COLLECTIONS, LeakPoint, MALLOC, OtherMemory, PEAK, RESIDENT, SIZE};
use scruple_core::run::Run;
use scruple_core::sample::Reading;
use scruple_core::subject::{Arm, Parameter, Role};
use scruple_core::unit::{Unit, parse_quantity};
use scruple_measure::runtimes::{LIVE, LIVE_AT_MOST};
use scruple_stats::leak::{
    GrowthDoubt, Retained, judge_bounded_growth, judge_collected, judge_growth, judge_outside_malloc,
    judge_outside_the_heap, judge_processes, resident_growth_beyond, unseen_resident_growth,
};

/// What a search for leaks has read.
pub struct LeakReadings {
    /// The key of the metric of the search.
    metric: String,
    /// Whether the user asked for this metric, instead of the first one that is available.
    named: bool,
    /// The key of a metric, a size of the work and the bytes.
    bytes: Vec<(String, f64, f64)>,
    /// The number of collections, if it was to be read; `None` inside if it is not known.
    collections: Option<Option<f64>>,
}

/// The judgement of a search for leaks.
pub struct LeakJudgement {
    /// The verdict about the growth of memory with the work.
    pub verdict: Retained,
    /// The verdict about the growth of malloc's peak, if the metric is the memory that remains allocated.
    pub peak: Option<Retained>,
    /// The resident bytes per unit of work, if the growth of the live heap does not explain them.
    pub resident_growth: Option<f64>,
    /// The resident bytes per unit of work that may be kept beside the figure without being noticed, if the verdict is
    /// that there is no leak.
    pub unseen_growth: Option<f64>,
    /// The metrics of other memory that are not known and could change the verdict, in the order in which to read them.
    pub unread: Vec<&'static str>,
}

impl LeakReadings {
    /// The readings of launches: those of the metric of the search, and those of other memory.
    pub fn of_launches(
        (metric, named): (&str, bool),
        points: &[LeakPoint],
        other: &OtherMemory,
        collections: Option<&Reading>,
    ) -> LeakReadings {
        let readings = points
            .iter()
            .chain(&other.points)
            .flat_map(|point| point.deciding_readings().map(|reading| (point.size, reading)));
        let bytes = readings.filter_map(|(size, one)| Some((one.key.clone(), size, one.value.clone().ok()?)));
        LeakReadings {
            metric: metric.to_owned(),
            named,
            bytes: bytes.collect(),
            collections: collections.map(|count| count.value.clone().ok()),
        }
    }

    /// The stored readings of a run, whose metric was `metric`.
    pub fn of_run(run: &Run, metric: &str) -> LeakReadings {
        let arms: Vec<&Arm> = run.arms_of(Role::Subject).collect();
        let mut bytes = Vec::new();
        for arm in &arms {
            let Some(Parameter::Number(size)) = arm.params.get(SIZE) else { continue };
            let others = [LIVE_AT_MOST, MALLOC.0, PEAK, RESIDENT.0];
            for key in others.into_iter().filter(|key| *key != metric).chain([metric]) {
                let Some(sample) = arm.sample(key) else { continue };
                bytes.extend(sample.readings.iter().map(|reading| (key.to_owned(), *size, *reading)));
            }
        }
        let counted = arms.iter().find(|arm| arm.figures.contains_key(COLLECTIONS));
        LeakReadings {
            metric: metric.to_owned(),
            named: option(run, "--metric").is_some(),
            bytes,
            collections: counted.map(|arm| Some(*arm.sample(COLLECTIONS)?.readings.first()?)),
        }
    }

    fn of(&self, key: &str) -> Vec<(f64, f64)> {
        let of_key = self.bytes.iter().filter(|(other, ..)| other == key);
        of_key.map(|(_, size, bytes)| (*size, *bytes)).collect()
    }

    /// Judges the growth. Growth of less than `smallest` bytes per unit of work does not matter.
    pub fn judge(&self, smallest: f64) -> LeakJudgement {
        let (bytes, at_most) = (self.of(&self.metric), self.of(LIVE_AT_MOST));
        let (malloc, peak, resident) = (self.of(MALLOC.0), self.of(PEAK), self.of(RESIDENT.0));
        let is = |key: &str| self.metric == key;
        let verdict = match is(LIVE) && at_most.len() == bytes.len() {
            true => judge_bounded_growth(&bytes, &at_most, smallest),
            false => judge_growth(&bytes, smallest),
        };
        let mut judged = LeakJudgement {
            verdict,
            peak: (is(MALLOC.0) && !peak.is_empty()).then(|| judge_growth(&peak, smallest)),
            resident_growth: None,
            unseen_growth: None,
            unread: Vec::new(),
        };
        if is(LIVE) {
            judged.verdict = judge_outside_the_heap(judged.verdict, &malloc, smallest);
        }
        if is(MALLOC.0) {
            judged.verdict = judge_processes(judged.verdict, &bytes, &peak, smallest);
        }
        // A user who asked for malloc.live gets its answer. If malloc.live was chosen by default, it does not show by
        // itself that there is no leak.
        if is(LIVE) || is(MALLOC.0) && !self.named {
            judged.verdict = judge_outside_malloc(judged.verdict, &resident, &peak, smallest);
        }
        if is(LIVE) {
            judged.resident_growth = resident_growth_beyond(&judged.verdict, &resident, smallest);
        }
        if let Some(count) = self.collections.filter(|_| is(RESIDENT.0)) {
            judged.verdict = judge_collected(judged.verdict, count);
        }
        let grows = matches!(judged.verdict, Retained::Grows { .. });
        let unknown = matches!(judged.verdict, Retained::Unknown(_));
        // Growth outside the heap that is already known is the answer.
        let doubtful =
            matches!(judged.verdict, Retained::Unknown(GrowthDoubt::Form { .. } | GrowthDoubt::Noise { .. }));
        let no_leak = !grows && !unknown;
        if no_leak && !is(RESIDENT.0) {
            judged.unseen_growth = unseen_resident_growth(&resident, smallest);
        }
        let wanted = [
            (MALLOC.0, is(LIVE) && no_leak && malloc.is_empty()),
            (RESIDENT.0, is(LIVE) && (no_leak || grows || doubtful) && resident.is_empty()),
            (RESIDENT.0, is(MALLOC.0) && !self.named && no_leak && resident.is_empty()),
            (COLLECTIONS, is(RESIDENT.0) && grows && self.collections.is_none()),
        ];
        judged.unread = wanted.iter().filter(|(_, unread)| *unread).map(|(key, _)| *key).collect();
        judged
    }
}

/// Judges a stored search for leaks, whose metric was `metric`.
pub fn judge_run(run: &Run, metric: &str) -> LeakJudgement {
    let smallest = option(run, "--smallest").unwrap_or_else(|| SMALLEST.to_owned());
    LeakReadings::of_run(run, metric).judge(parse_quantity(&smallest, &Unit::Bytes).unwrap_or(1.0))
}

/// The value of an option of the search, as the user wrote it.
fn option(run: &Run, name: &str) -> Option<String> {
    let mut words = run.argv.iter().take_while(|word| *word != "--");
    words
        .find_map(|word| match word.strip_prefix(name)? {
            "" => Some(None),
            rest => Some(Some(rest.strip_prefix('=')?.to_owned())),
        })?
        .or_else(|| words.next().cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_search_are_read_as_they_were_written() {
        let asked = |words: &[&str]| {
            let mut run = crate::new_run::scripted_run(None, None, Default::default());
            run.argv =
                ["scruple", "inspect", "leak"].iter().chain(words).map(|word| (*word).to_owned()).collect();
            option(&run, "--smallest")
        };
        assert_eq!(asked(&["--smallest", "8B", "--", "./app"]).as_deref(), Some("8B"));
        assert_eq!(asked(&["--smallest=2kB", "--", "./app"]).as_deref(), Some("2kB"));
        assert_eq!(asked(&["--", "./app", "--smallest", "8B"]), None);
    }
}
