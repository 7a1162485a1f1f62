//! The text of a file to import, and why it is refused.

use super::Format;
use super::error::ImportError;
use crate::fault::Fault;
use std::io::Read;
use std::path::Path;

/// The largest file that is read, in bytes. Results of benchmarks are far smaller.
const LARGEST: u64 = 256 * 1024 * 1024;

/// Reads a file, or the standard input for `-`.
///
/// # Errors
/// Refuses a file that cannot be read, is too large or is no text.
pub(super) fn text_of(path: &Path) -> Result<String, Fault> {
    let cannot = |why: String| Fault::usage(format!("cannot import ‘{}’: {why}", path.display()));
    let mut bytes = Vec::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes),
        false => std::fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|error| cannot(error.to_string()))?;
    if bytes.len() as u64 > LARGEST {
        return Err(cannot(format!("it is larger than {} MiB", LARGEST >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        cannot(format!(
            "byte {} is not UTF-8 text; name the file that the tool wrote",
            error.utf8_error().valid_up_to()
        ))
    })
}

/// The refusal of a file in a known format.
pub(super) fn refusal(path: impl AsRef<Path>, format: Format, error: &ImportError) -> Fault {
    Fault::usage(format!(
        "cannot import ‘{}’ as results of {}: {error}; {}. Nothing was imported",
        path.as_ref().display(),
        format.tool(),
        format.advice()
    ))
}
