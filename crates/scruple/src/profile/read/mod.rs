//! Profiles that were written before, by Scruple or by other tools. Each format is a function from bytes to a profile.

mod builder;
mod callgrind;
mod collapsed;
mod heaptrack;
mod kept;
mod memray;
mod pprof;

use crate::fault::Fault;
use builder::Builder;
use scruple_measure::calltree::Side;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

pub use kept::bytes as kept_bytes;

/// What the form of Scruple itself is called.
pub const OWN: &str = "Scruple";

/// A larger profile is not read, packed or not: it would not fit into memory many times over.
const LARGEST: u64 = 1 << 30;

/// What the first count of a profile is, and what may be said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// What the first count counts; none where the profile has allocations only.
    pub word: Option<String>,
    /// Whether the first count is of samples, so that it varies by chance.
    pub is_sampled: bool,
    /// Whether it holds calling contexts, and not only functions.
    pub has_contexts: bool,
    /// Whether allocations were counted.
    pub has_heap: bool,
    /// What wrote it.
    pub format: &'static str,
}

/// A profile that was written before.
#[derive(Clone, Debug)]
pub struct Imported {
    /// What it is of, where it says so.
    pub title: Option<String>,
    /// What it counts.
    pub kind: Kind,
    /// The tree.
    pub side: Side,
}

impl Kind {
    /// Instructions, calls and allocations by calling context, counted.
    pub fn counted(format: &'static str) -> Kind {
        Kind {
            word: Some("instructions".to_owned()),
            is_sampled: false,
            has_contexts: true,
            has_heap: true,
            format,
        }
    }

    fn heap(format: &'static str) -> Kind {
        Kind { word: None, ..Kind::counted(format) }
    }
}

/// Reads a profile in any of the formats.
pub fn read(path: &Path) -> Result<Imported, Fault> {
    let fault = |why: String| Fault::usage(format!("cannot read the profile ‘{}’: {why}", path.display()));
    let file = File::open(path).map_err(|error| {
        fault(match error.kind() {
            ErrorKind::PermissionDenied => format!("you may not read it ({error}); `ls -l` shows who may"),
            _ => error.to_string(),
        })
    })?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| fault(error.to_string()))?;
    parse(&bytes).map_err(fault)
}

/// Whether a word is the path of a file that may be a profile: one that is there, that nobody may execute, and that is no
/// program whose permission to be executed is missing.
pub fn is_profile(word: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let is_plain =
        std::fs::metadata(word).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 == 0);
    let mut begin = Vec::new();
    // What cannot be read is refused with the reason when it is read as a profile.
    let read = File::open(word).and_then(|file| file.take(8).read_to_end(&mut begin));
    is_plain && (read.is_err() || program(&begin).is_none())
}

/// What a file is that begins like this, if that is a program.
fn program(begin: &[u8]) -> Option<&'static str> {
    match begin {
        [0x7f, b'E', b'L', b'F', ..] => Some("a program or a library"),
        [b'#', b'!', ..] => Some("a script"),
        _ => None,
    }
}

/// Reads a profile.
///
/// # Errors
/// What is wrong with it, as a clause.
pub fn parse(bytes: &[u8]) -> Result<Imported, String> {
    if bytes.len() as u64 > LARGEST {
        return Err(too_large());
    }
    if let Some(what) = program(bytes) {
        return Err(format!("it is {what}, not a profile"));
    }
    match bytes {
        [] => Err("it is empty".to_owned()),
        [0x1f, 0x8b, ..] => parse_plain(&unpacked(flate2::read::MultiGzDecoder::new(bytes))?),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let frames = ruzstd::decoding::StreamingDecoder::new(bytes);
            parse_plain(&unpacked(frames.map_err(|error| format!("it cannot be unpacked: {error}"))?)?)
        }
        _ => parse_plain(bytes),
    }
}

fn too_large() -> String {
    "it is larger than 1 GiB, which is more than is read".to_owned()
}

fn unpacked(from: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = from.take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("it cannot be unpacked: {error}"))?;
    if bytes.len() as u64 > LARGEST { Err(too_large()) } else { Ok(bytes) }
}

fn parse_plain(bytes: &[u8]) -> Result<Imported, String> {
    if bytes.starts_with(memray::BINARY) {
        return Err(
            "it is memray’s own form; `memray transform csv FILE` writes one that can be read".to_owned()
        );
    }
    // Messages of protocol buffers are no text: pprof's begin with the field of sample types.
    let Ok(text) = std::str::from_utf8(bytes).map(|text| text.trim_start_matches('\u{feff}')) else {
        return pprof::parse(bytes).map_err(|why| format!("as pprof’s: {why}"));
    };
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let is_callgrind = || {
        first.starts_with("# callgrind")
            || text
                .lines()
                .take(60)
                .any(|line| line.starts_with("events:") || line.starts_with("creator: callgrind"))
    };
    let named = |format: &'static str| move |why: String| format!("as {format}’s: {why}");
    match () {
        () if first.starts_with(kept::HEAD) => kept::parse(text),
        () if first.starts_with("v ") && text.lines().nth(1).is_some_and(|line| line.starts_with("X ")) => {
            heaptrack::parse(text).map_err(named("heaptrack"))
        }
        () if first.starts_with(memray::HEAD) => memray::parse(text).map_err(named("memray")),
        () if is_callgrind() => callgrind::parse(text).map_err(named("callgrind")),
        () if bytes.first() == Some(&0x0a) && bytes.contains(&0) => {
            pprof::parse(bytes).map_err(named("pprof"))
        }
        () => collapsed::parse(text).map_err(|why| {
            format!(
                "it is none of callgrind’s, pprof’s, heaptrack’s, memray’s CSV or Scruple’s, and as collapsed stacks: {why}"
            )
        }),
    }
}

#[cfg(test)]
mod tests;
