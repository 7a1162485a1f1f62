//! Reads the user's own JSON: an array of objects, or one object in each line. The keys are those that tables have as
//! columns.

use super::Values;
use super::columns::{self, TextTable, values};
use crate::store::import::ImportError;
use serde_json::Value;

type Object = serde_json::Map<String, Value>;

/// Whether a text looks like such objects: the first one names a commit or a time, and holds a number.
pub fn recognises(text: &str) -> bool {
    let objects = text.trim_start_matches(['[', ' ', '\n', '\r', '\t']);
    match serde_json::Deserializer::from_str(objects).into_iter::<Object>().next() {
        Some(Ok(first)) => {
            let (versions, others): (Vec<_>, Vec<_>) =
                first.iter().partition(|(key, _)| columns::names_version(key));
            !versions.is_empty() && others.iter().any(|(_, value)| columns::is_number(&cell(Some(value))))
        }
        // A truncated text must be reported as truncated.
        Some(Err(error)) if error.is_eof() => {
            ["\"commit\"", "\"time\""].iter().any(|key| text.contains(key)) && text.contains("\"value\"")
        }
        _ => false,
    }
}

/// The text of a value, as a cell of a table.
fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Reads the objects.
pub fn read(text: &str, name: &str) -> Result<Values, ImportError> {
    let objects: Vec<Object> = match text.trim_start().starts_with('[') {
        true => serde_json::from_str(text)?,
        false => serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>()?,
    };
    let mut head: Vec<String> = Vec::new();
    for key in objects.iter().flat_map(Object::keys) {
        if !head.contains(key) {
            head.push(key.clone());
        }
    }
    let row = |(place, object): (usize, &Object)| {
        (format!("object {}", place + 1), head.iter().map(|key| cell(object.get(key))).collect())
    };
    let rows = objects.iter().enumerate().map(row).collect();
    values(&TextTable { head: head.clone(), rows }, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_and_lines_are_read_alike() {
        let array = "[{\"commit\": \"a\", \"value\": 1, \"unit\": \"ms\"}, {\"commit\": \"b\", \"value\": -2.5e0, \"unit\": \"ms\"}]";
        let lines = "{\"commit\": \"a\", \"value\": 1, \"unit\": \"ms\"}\n{\"commit\": \"b\", \"value\": -2.5, \"unit\": \"ms\"}\n";
        let read = |text| read(text, "own").expect("values").values;
        assert!(recognises(array) && recognises(lines));
        assert_eq!(read(array), read(lines));
        assert_eq!(read(array)[1].number, -2.5e6);
        let metrics = "[{\"commit\": \"a\", \"latency (ms)\": \"1.5\", \"branch\": \"main\"}]";
        assert!(recognises(metrics));
        assert_eq!(read(metrics)[0].number, 1.5e6);
        assert!(recognises(&array[..30]), "cut");
        assert!(!recognises("{\"name\": \"a package\", \"version\": 2}"), "the version is no value");
    }
}
