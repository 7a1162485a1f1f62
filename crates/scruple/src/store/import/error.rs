//! The error of an import.

/// Why a text could not be imported: the place of the error, and a description.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct ImportError {
    /// The line, the benchmark or the field with the error.
    pub place: String,
    /// The description of the error.
    pub what: String,
}

impl ImportError {
    /// Creates an error at a place.
    pub fn at(place: impl Into<String>, what: impl Into<String>) -> ImportError {
        ImportError { place: place.into(), what: what.into() }
    }

    /// Creates an error in a benchmark, whose name is quoted.
    pub fn of(benchmark: &str, what: impl Into<String>) -> ImportError {
        ImportError::at(format!("‘{}’", super::clean(benchmark)), what)
    }
}

impl From<serde_json::Error> for ImportError {
    fn from(error: serde_json::Error) -> ImportError {
        let place = format!("line {}, column {}", error.line(), error.column());
        if error.is_eof() {
            return ImportError::at(
                place,
                "the text ends in the middle, as if the tool was interrupted or the file cut short",
            );
        }
        let message = error.to_string();
        let what = message.split(" at line ").next().unwrap_or(&message);
        ImportError::at(place, super::clean(what))
    }
}
