//! Reads results of asv, one file for each commit, in versions 1 and 2 of the format.

use super::{SeriesValue, Values, in_base_unit};
use crate::store::import::{ImportError, clean};
use scruple_stats::sorting::SortedMap;
use serde::Deserialize;
use serde_json::Value as Json;

/// The name of the tool in the provenance of its series.
pub(super) const TOOL: &str = "asv";

#[derive(Deserialize)]
struct Results {
    commit_hash: String,
    date: Option<i64>,
    env_name: Option<String>,
    #[serde(default)]
    result_columns: Vec<String>,
    results: SortedMap<String, Json>,
}

/// Whether a text is a result file of asv.
pub fn recognises(text: &str) -> bool {
    ["\"commit_hash\"", "\"results\"", "\"requirements\""].iter().all(|key| text.contains(key))
}

/// Reads the results of one commit. A failed benchmark is null in the file, and has no value.
pub fn read(text: &str) -> Result<Values, ImportError> {
    let results: Results = serde_json::from_str(&without_nan(text))?;
    let mut found = Values::default();
    let column = |name: &str| results.result_columns.iter().position(|column| column == name);
    for (name, result) in &results.results {
        // Version 2 has rows with named columns. Version 1 has a value or an object.
        let (value, params) = match (result, column("result")) {
            (Json::Array(row), Some(place)) => {
                (row.get(place).cloned(), column("params").and_then(|place| row.get(place)).cloned())
            }
            (Json::Object(object), _) => (object.get("result").cloned(), object.get("params").cloned()),
            (other, _) => (Some(other.clone()), None),
        };
        let numbers: Vec<Option<f64>> = match &value {
            Some(Json::Array(all)) => all.iter().map(Json::as_f64).collect(),
            Some(one) => vec![one.as_f64()],
            None => Vec::new(),
        };
        let names = combinations(params.as_ref());
        for (place, number) in numbers.iter().enumerate() {
            let Some(number) = number else { continue };
            let (metric, unit) = kind(name);
            let (number, unit) = in_base_unit(*number, unit);
            let params = names.get(place).filter(|params| !params.is_empty());
            let mut subject = params.map_or(name.clone(), |params| format!("{name} ({params})"));
            if let Some(environment) = results.env_name.as_ref().filter(|name| !name.is_empty()) {
                subject = format!("{subject} [{environment}]");
            }
            found.values.push(SeriesValue {
                version: results.commit_hash.clone(),
                time: results.date,
                subject,
                metric: metric.to_owned(),
                unit,
                number,
            });
        }
        if !numbers.is_empty() && numbers.iter().all(Option::is_none) {
            let short = results.commit_hash.get(..8).unwrap_or(&results.commit_hash).to_owned();
            let text = format!("asv has no result of ‘{}’", clean(name));
            found.left_out.entry(text).or_default().insert(short);
        }
    }
    Ok(found)
}

/// Returns the metric and the unit of a benchmark, which its name implies.
fn kind(name: &str) -> (&'static str, &'static str) {
    let function = name.rsplit('.').next().unwrap_or(name);
    match function.split('_').next() {
        Some("time" | "timeraw") => ("time.wall", "s"),
        Some("mem") => ("size", "B"),
        Some("peakmem") => ("memory.peak", "B"),
        _ => ("value", ""),
    }
}

/// Returns the combinations of parameters as texts. The last parameter varies fastest.
fn combinations(params: Option<&Json>) -> Vec<String> {
    let mut all = vec![String::new()];
    for values in params.and_then(Json::as_array).into_iter().flatten() {
        let values: Vec<String> = values.as_array().into_iter().flatten().map(text).collect();
        let longer = |first: &String, value: &String| match first.is_empty() {
            true => value.clone(),
            false => format!("{first}, {value}"),
        };
        all = all.iter().flat_map(|first| values.iter().map(move |value| longer(first, value))).collect();
    }
    all
}

fn text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Replaces the numbers that Python writes but JSON does not have by null.
fn without_nan(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut quoted, mut escaped) = (false, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word =
            ["-Infinity", "Infinity", "NaN"].into_iter().find(|word| !quoted && rest.starts_with(word));
        if let Some(word) = word {
            out.push_str("null");
            rest = &rest[word.len()..];
            continue;
        }
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> Vec<(String, String, f64)> {
        assert!(recognises(text));
        let values = read(text).expect("values").values;
        values.into_iter().map(|one| (one.subject, one.metric, one.number)).collect()
    }

    #[test]
    fn both_versions_of_the_format_are_read() {
        let old = r#"{"commit_hash": "fcf8c079", "date": 1367127519000, "params": {}, "requirements": {}, "results":
            {"time_a": 0.5, "time_skip": NaN, "x.mem_b": 344, "time_p": {"params": [["1", "2"]], "result": [1, null]}}}"#;
        let one = |subject: &str, metric: &str, number: f64| (subject.to_owned(), metric.to_owned(), number);
        assert_eq!(
            read_all(old),
            [
                one("time_a", "time.wall", 5e8),
                one("time_p (1)", "time.wall", 1e9),
                one("x.mem_b", "size", 344.0)
            ]
        );
        assert_eq!(read(old).expect("values").left_out.len(), 1);
        let new = r#"{"commit_hash": "fcf8c079", "date": 1, "env_name": "e", "requirements": {}, "version": 2,
            "result_columns": ["result", "params", "version"],
            "results": {"b.track_n": [[3.0, 4.0, 5.0, 6.0], [["a", "b"], ["1", "2"]], "v"], "peakmem_c": [[10], [], "v"]}}"#;
        let names: Vec<String> = read_all(new).into_iter().map(|one| one.0).collect();
        assert_eq!(
            names,
            [
                "b.track_n (a, 1) [e]",
                "b.track_n (a, 2) [e]",
                "b.track_n (b, 1) [e]",
                "b.track_n (b, 2) [e]",
                "peakmem_c [e]"
            ]
        );
    }

    #[test]
    fn only_bare_words_of_python_become_null() {
        assert_eq!(without_nan(r#"["NaN", NaN, "a\"NaN", -Infinity]"#), r#"["NaN", null, "a\"NaN", null]"#);
    }
}
