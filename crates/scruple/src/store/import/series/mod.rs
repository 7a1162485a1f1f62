//! Imports the user's own series. Values over commits or times become a history that is searched for change points.
//!
//! Each format converts a text into [`SeriesValue`]s. [`history`] converts these into a stored history whose versions
//! are the commits or times.

pub mod asv;
pub mod columns;
pub mod found_series;
mod git_order;
pub mod json;

use super::figures::nanoseconds;
use super::{ImportError, clean};
use crate::new_run;
use crate::store::{StoredHistory, StoredVersion};
use scruple_core::harmless_text::list_names;
use scruple_core::history::Version;
use scruple_core::metric::{Pass, Quality, metric};
use scruple_core::provenance::Provenance;
use scruple_core::run::{self, Terms};
use scruple_core::sample::{Figure, Sample};
use scruple_core::subject::{Arm, Role, Subject};
use scruple_core::unit::Unit;
use scruple_stats::sorting::{self, SortedMap};
use std::collections::BTreeSet;

/// A value of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesValue {
    /// The commit, or the time if there is no commit.
    pub version: String,
    /// The time of the version, in milliseconds since 1970.
    pub time: Option<i64>,
    /// The name of the measured subject.
    pub subject: String,
    /// The name of the metric.
    pub metric: String,
    /// The unit of `number`.
    pub unit: Unit,
    /// The value, in `unit`.
    pub number: f64,
}

/// The content of a text with series.
#[derive(Debug, Default)]
pub struct Values {
    /// The values, in the order of the text.
    pub values: Vec<SeriesValue>,
    /// Sentences that say what was left out, and why, each with the versions that it is about. A sentence without
    /// versions is about all.
    pub left_out: SortedMap<String, BTreeSet<String>>,
}

/// Converts a number to the base unit of its quantity: times to nanoseconds, sizes to bytes.
pub(super) fn in_base_unit(number: f64, unit: &str) -> (f64, Unit) {
    if let Some(factor) = nanoseconds(unit).or_else(|| (unit == "seconds").then_some(1e9)) {
        return (number * factor, Unit::Nanoseconds);
    }
    let bytes = match unit {
        "B" | "byte" | "bytes" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        "" | "count" => return (number, Unit::Count),
        _ => return (number, Unit::from(clean(unit))),
    };
    (number * bytes, Unit::Bytes)
}

/// Parses a time as tools write it: RFC 3339, a date, `2024.01.01 3:00:00 +0100`, or seconds or milliseconds since
/// 1970. Returns milliseconds since 1970.
pub(super) fn time(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        // Until the year 2286, seconds have ten digits and milliseconds have thirteen.
        let milliseconds = if number.abs() < 1e11 { number * 1000.0 } else { number };
        return number.is_finite().then_some(milliseconds as i64);
    }
    if let Some(moment) = super::moment(text) {
        return Some(moment);
    }
    let text = text.replace(['.', '/'], "-");
    let zoned = ["%Y-%m-%d %H:%M:%S %z", "%Y-%m-%d %H:%M %z", "%Y-%m-%dT%H:%M:%S%z"];
    if let Some(moment) = zoned.iter().find_map(|form| jiff::Timestamp::strptime(form, &text).ok()) {
        return Some(moment.as_millisecond());
    }
    let plain = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"];
    let moment = plain.iter().find_map(|form| jiff::civil::DateTime::strptime(form, &text).ok());
    let moment = moment.or_else(|| Some(text.parse::<jiff::civil::Date>().ok()?.at(0, 0, 0, 0)))?;
    Some(moment.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// Returns the key of a metric: a declared one, or the name in lower case with separators.
fn key(name: &str) -> String {
    if metric(name).is_some() {
        return name.to_owned();
    }
    let mut key = String::new();
    for c in name.chars() {
        match c {
            c if c.is_alphanumeric() || c == '.' => key.extend(c.to_lowercase()),
            _ if key.is_empty() || key.ends_with('_') => {}
            _ => key.push('_'),
        }
    }
    match key.trim_end_matches('_') {
        "" => "value".to_owned(),
        key => key.to_owned(),
    }
}

/// Creates a history from values. Versions are in the order of their times if all have one, and otherwise in the order
/// of the text.
pub fn history(
    name: &str,
    tool: &str,
    values: Values,
    label: Option<&str>,
) -> Result<StoredHistory, ImportError> {
    let Values { values, left_out } = values;
    if values.is_empty() {
        let why = left_out.into_keys().map(|why| format!(": {why}")).collect::<String>();
        return Err(ImportError::at("the whole text", format!("it has no values{why}")));
    }
    let mut versions: Vec<(String, Option<i64>)> = Vec::new();
    let mut places: SortedMap<&str, usize> = SortedMap::new();
    for value in &values {
        let place = *places.entry(&value.version).or_insert_with(|| {
            versions.push((clean(&value.version), value.time));
            versions.len() - 1
        });
        versions[place].1 = versions[place].1.or(value.time);
    }
    let mut run = new_run::run_from_elsewhere(Some(0), label, Terms::default());
    run.state = run::RunState::Complete;
    run.provenance = Provenance {
        tool: Some(tool.to_owned()),
        machine_class: format!("{tool}/unknown"),
        ..Provenance::default()
    };
    run.arms = arms(&values)?;
    run.warn(
        "own-series",
        "these values were taken one after another, outside of Scruple: they include what changed on the machine",
    );
    for (text, versions) in left_out {
        let of = if versions.is_empty() { String::new() } else { format!(" at {}", list_names(&versions)) };
        run.warn("left-out", format!("{text}{of}"));
    }
    let (untimed, count) = (versions.iter().filter(|(_, time)| time.is_none()).count(), versions.len());
    if untimed == 0 {
        // The files of asv have no order of their own.
        let late = if tool == asv::TOOL { 0 } else { listed_after_a_later_one(&values) };
        if late > 0 {
            run.warn(
                "not-in-order",
                format!(
                    "{late} of {count} versions are listed after a later one: the versions were sorted \
                    by their times"
                ),
            );
        }
        sorting::by_key(&mut versions, |(_, time)| *time);
        let unknown = git_order::order(&mut versions);
        if unknown > 0 && tool == asv::TOOL {
            let text = format!(
                "{unknown} of {count} versions have the time of another one, and are in the order of the files: imported \
                 within their repository, they are in git’s order"
            );
            run.warn("same-time", text);
        }
    } else if untimed < count {
        run.warn(
            "without-time",
            format!("{untimed} of {count} versions have no time: all versions are in the order of the text"),
        );
    }
    let ids: Vec<String> = versions.iter().map(|(id, _)| id.clone()).collect();
    let entry = |(place, (id, time)): (usize, &(String, Option<i64>))| {
        let before: Vec<String> =
            place.checked_sub(1).map(|before| ids[before].clone()).into_iter().collect();
        let version = Version { time: time.unwrap_or(0), ..Version::built(id.clone(), before) };
        StoredVersion::new(version)
    };
    let entries: Vec<StoredVersion> = versions.iter().enumerate().map(entry).collect();
    let range = format!("{}..{}", ids[0], ids[ids.len() - 1]);
    Ok(StoredHistory {
        identity: format!("series {}", run.id),
        source: format!("series:{}", clean(name)),
        repository: clean(name),
        remote: None,
        range,
        entries,
        unlisted: Vec::new(),
        request: None,
        run,
    })
}

/// Returns how many versions stand in the text after a version with a later time, in one series at least.
fn listed_after_a_later_one(values: &[SeriesValue]) -> usize {
    let mut latest: SortedMap<(&str, &str), i64> = SortedMap::new();
    let mut late: BTreeSet<&str> = BTreeSet::new();
    for value in values {
        let Some(time) = value.time else { continue };
        let latest = latest.entry((&value.subject, &value.metric)).or_insert(time);
        if time < *latest {
            late.insert(&value.version);
        }
        *latest = time.max(*latest);
    }
    late.len()
}

/// Creates an arm for each subject at each version. Every value has a block of its own, since no two were measured side
/// by side.
fn arms(values: &[SeriesValue]) -> Result<Vec<Arm>, ImportError> {
    let mut arms: Vec<Arm> = Vec::new();
    let mut places: SortedMap<(&str, &str), usize> = SortedMap::new();
    let mut units: SortedMap<(&str, String), &Unit> = SortedMap::new();
    for (block, value) in values.iter().enumerate() {
        let key = key(&value.metric);
        let known = *units.entry((&value.subject, key.clone())).or_insert(&value.unit);
        if *known != value.unit {
            let (one, other) = (known.name(), value.unit.name());
            let what = format!("{key} is in ‘{}’ and in ‘{}’", clean(one), clean(other));
            return Err(ImportError::of(&value.subject, what));
        }
        // The unit may have made a large number infinite.
        if !value.number.is_finite() {
            let what = format!("{} is not a possible reading of {}", value.number, clean(&key));
            return Err(ImportError::of(&value.subject, what));
        }
        let place = *places.entry((&value.subject, &value.version)).or_insert_with(|| {
            let subject = Subject::Command { argv: vec![clean(&value.subject)] };
            let arm = Arm::new(clean(&value.subject), subject, Role::Subject);
            arms.push(Arm { version: Some(clean(&value.version)), ..arm });
            arms.len() - 1
        });
        let block = u32::try_from(block)
            .map_err(|_| ImportError::at("the whole text", "there are too many values"))?;
        let figure = arms[place].figures.entry(key).or_insert_with(|| {
            Figure::Sample(Sample {
                unit: value.unit.clone(),
                pass: Pass::Timing,
                quality: Quality::Noisy,
                source: "a value of the series".to_owned(),
                readings: Vec::new(),
                blocks: Vec::new(),
            })
        });
        if let Figure::Sample(sample) = figure {
            sample.readings.push(value.number);
            sample.blocks.push(block);
        }
    }
    Ok(arms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_forms_that_tools_write() {
        for text in [
            "2024-01-01T02:00:00Z",
            "2024.01.01 3:00:00 +0100",
            "2024-01-01 02:00:00",
            "1704074400",
            "1704074400000",
        ] {
            assert_eq!(time(text), Some(1_704_074_400_000), "{text}");
        }
        assert_eq!(time("2024-01-01"), Some(1_704_067_200_000));
        assert_eq!((time("yesterday"), time("")), (None, None));
    }

    #[test]
    fn numbers_are_kept_in_base_units() {
        assert_eq!(in_base_unit(1.5, "ms"), (1.5e6, Unit::Nanoseconds));
        assert_eq!(in_base_unit(2.0, "MiB"), (2.0 * 1024.0 * 1024.0, Unit::Bytes));
        assert_eq!(in_base_unit(3.0, "ops/s"), (3.0, Unit::Other("ops/s".into())));
        assert_eq!(in_base_unit(3.0, ""), (3.0, Unit::Count));
    }

    #[test]
    fn where_nothing_is_a_number_the_columns_are_named() {
        let values = columns::read("commit;latency (ms)\na;1,5\n", "own").expect("a table");
        let error = history("own", "a series", values, None).map(|_| ()).expect_err("no values").to_string();
        assert!(error.contains("no values: the column ‘latency (ms)’ holds no numbers"), "{error}");
    }

    #[test]
    fn keys_are_words() {
        assert_eq!(key("p99 Latency (max)"), "p99_latency_max");
        assert_eq!((key("time.wall").as_str(), key("--").as_str()), ("time.wall", "value"));
    }
}
