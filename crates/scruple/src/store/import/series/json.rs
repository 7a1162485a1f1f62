//! Reads the user's own JSON: an array of objects, or one object in each line. The keys are those that tables have as
//! columns.

use super::Values;
use super::columns::{TextTable, values};
use crate::store::import::ImportError;
use serde_json::Value;

type Object = serde_json::Map<String, Value>;

/// Whether a text looks like such objects.
pub fn recognises(text: &str) -> bool {
    let begins = text.starts_with("[{")
        || text.starts_with('{')
        || text.trim_start_matches(['[', ' ', '\n', '\r', '\t']).starts_with('{');
    begins
        && text.contains("\"value\"")
        && ["\"commit\"", "\"time\"", "\"timestamp\"", "\"date\"", "\"version\"", "\"revision\""]
            .iter()
            .any(|key| text.contains(key))
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
    let cell = |value: Option<&Value>| match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
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
    }
}
