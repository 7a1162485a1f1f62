//! CSV in two forms: one line for each version, for plots; one line for each figure, for programs.

use super::HistoryReport;
use super::words::plain;
use crate::render::csv::quoted;
use scruple_core::judge::{estimate, keys_of};
use scruple_core::sample::Sample;
use scruple_core::subject::Arm;
use scruple_core::unit::Unit;

/// The metrics for the column of allocations, the preferred one first.
pub(crate) const ALLOCATIONS: [&str; 2] = ["alloc.bytes", "malloc.bytes"];
/// The metrics for the column of memory, the preferred one first.
pub(crate) const MEMORY: [&str; 2] = ["memory.peak", "heap.live_max"];
/// The metrics for the column of time.
pub(crate) const TIME: [&str; 1] = ["time.wall"];

/// Writes the short form, `commit;allocations;memory;time`, with a line for each version.
pub(crate) fn short(page: &HistoryReport<'_>, subject: Option<&str>) -> String {
    let subjects = page.subjects();
    let fills = |name: &&str| {
        let keys = ALLOCATIONS.iter().chain(&MEMORY).chain(&TIME);
        let sample = |arm: &Arm| arm.name == **name && keys.clone().any(|key| arm.sample(key).is_some());
        page.arms.iter().any(|arm| sample(arm))
    };
    let filling = subjects.iter().copied().find(fills).or(subjects.first().copied());
    let subject = subject.or(filling).unwrap_or_default();
    let arm_at = |index: usize| page.arms_at(index).find(|arm| arm.name == subject);
    let arms: Vec<Option<&Arm>> = (0..page.history.versions.len()).map(arm_at).collect();
    let has = |key: &str| arms.iter().flatten().any(|arm| arm.sample(key).is_some());
    let choose = |keys: &[&'static str]| keys.iter().copied().find(|key| has(key));
    let columns = [choose(&ALLOCATIONS), choose(&MEMORY), choose(&TIME)];
    let mut out = "commit;allocations;memory;time\n".to_owned();
    for (version, arm) in page.history.versions.iter().zip(&arms) {
        out.push_str(&plain(version.short()));
        for key in columns {
            out.push(';');
            let sample = key.and_then(|key| arm.as_ref()?.sample(key));
            out.push_str(&sample.and_then(least).map_or(String::new(), |value| value.to_string()));
        }
        out.push('\n');
    }
    out
}

/// Returns the smallest reading of a sample; times are in seconds.
fn least(sample: &Sample) -> Option<f64> {
    let least = sample.readings.iter().copied().filter(|reading| reading.is_finite()).reduce(f64::min)?;
    Some(if sample.unit == Unit::Nanoseconds { least / 1e9 } else { least })
}

const HEAD: &str =
    "position,commit,state,same_as,subject,metric,unit,quality,n,median,least,low,high,copied,absent\n";

/// Writes every figure of every version. A version without figures has a row of its own.
pub(crate) fn all(page: &HistoryReport<'_>) -> String {
    let mut out = HEAD.to_owned();
    for (index, version) in page.history.versions.iter().enumerate() {
        let arms: Vec<&Arm> = page.arms_at(index).collect();
        let copied = page.stands_for(index) != index;
        let head = [
            index.to_string(),
            version.commit.clone(),
            version.state.word().to_owned(),
            version.same_as.clone().unwrap_or_default(),
        ];
        let mut push = |cells: Vec<String>| {
            let cells: Vec<String> = head.iter().chain(&cells).map(|cell| quoted(cell)).collect();
            out.push_str(&cells.join(","));
            out.push('\n');
        };
        if arms.is_empty() {
            let mut cells = vec![String::new(); 10];
            cells.push(plain(version.why.as_deref().unwrap_or_default()));
            push(cells);
        }
        for arm in arms {
            for key in keys_of(&[arm]) {
                push(row(arm, &key, page.history.run.terms.level, copied));
            }
        }
    }
    out
}

fn row(arm: &Arm, key: &str, level: f64, copied: bool) -> Vec<String> {
    let mut cells = vec![arm.name.clone(), key.to_owned()];
    match arm.sample(key) {
        Some(sample) => {
            let estimate = estimate(sample, level);
            let number =
                |value: Option<f64>| value.filter(|v| v.is_finite()).map_or(String::new(), |v| v.to_string());
            cells.extend([
                sample.unit.name().to_owned(),
                sample.worth().word().to_owned(),
                sample.readings.len().to_string(),
                number(Some(estimate.value)),
                number(Some(estimate.range.0)),
                number(estimate.interval.map(|interval| interval.low)),
                number(estimate.interval.map(|interval| interval.high)),
                copied.to_string(),
                String::new(),
            ]);
        }
        None => {
            cells.extend(vec![String::new(); 7]);
            cells.extend([copied.to_string(), arm.absent(key).unwrap_or_default().to_owned()]);
        }
    }
    cells
}
