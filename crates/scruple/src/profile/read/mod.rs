//! Reads profiles that Scruple or other tools have written. Each format has a function from bytes to a profile.

mod builder;
mod callgrind;
mod collapsed;
mod heaptrack;
mod memray;
mod own_format;
mod perf_script;
mod pprof;

use crate::fault::Fault;
use builder::TreeBuilder;
use scruple_code::Side;
use scruple_core::explain::Count;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

pub use own_format::bytes as own_format_bytes;

/// The name of Scruple's own format.
pub const OWN: &str = "Scruple";

/// The largest size of a profile that is read, compressed or not, in bytes. A larger one would take several times its
/// size in memory.
const LARGEST: u64 = 1 << 30;

/// The meaning of a profile's first count, and the properties that limit what can be concluded from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The name of what the first count counts; `None` if the profile contains only allocations.
    pub word: Option<String>,
    /// What one sample stands for, if the counts come from samples, and vary by chance.
    pub sampled: Option<SampleWeights>,
    /// What the profile says about the callers of functions.
    pub callers: KnownCallers,
    /// Whether the profile contains allocations.
    pub has_heap: bool,
    /// The name of the format.
    pub format: &'static str,
}

/// How much of each count one sample stands for, or an upper bound of that: the variance of a function's count is the
/// count times this number. The figures of a sampled heap, for example, are already multiplied by what a sample stands
/// for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleWeights {
    /// Of the first count.
    pub main: u64,
    /// Of allocations.
    pub allocations: u64,
    /// Of their bytes.
    pub bytes: u64,
}

impl SampleWeights {
    /// Each sample counts as one.
    pub const ONE: SampleWeights = SampleWeights { main: 1, allocations: 1, bytes: 1 };

    /// Returns what a sample stands for at most in either profile.
    pub fn of_both(self, other: SampleWeights) -> SampleWeights {
        SampleWeights {
            main: self.main.max(other.main),
            allocations: self.allocations.max(other.allocations),
            bytes: self.bytes.max(other.bytes),
        }
    }

    /// Returns what a sample stands for in a count.
    pub fn of(self, count: Count) -> u64 {
        match count {
            Count::Allocations => self.allocations,
            Count::Bytes => self.bytes,
            _ => self.main,
        }
    }
}

/// What a profile says about the callers of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownCallers {
    /// The whole path of callers, and what each path costs.
    Contexts,
    /// How often a function calls another, but not what these calls cost.
    Calls,
    /// Nothing.
    Unknown,
}

/// A profile that was read from a file.
#[derive(Clone, Debug)]
pub struct ImportedProfile {
    /// The name of the profiled program, if the profile contains it.
    pub title: Option<String>,
    /// The meaning of the counts.
    pub kind: Kind,
    /// The tree of calling contexts.
    pub side: Side,
    /// Whether a checksum covers the whole file, so that damage would have been noticed.
    pub has_checksum: bool,
}

impl Kind {
    /// Returns the properties of a format with exact counts of instructions, calls and allocations by calling context.
    pub fn counted(format: &'static str) -> Kind {
        Kind {
            word: Some("instructions".to_owned()),
            sampled: None,
            callers: KnownCallers::Contexts,
            has_heap: true,
            format,
        }
    }

    fn heap(format: &'static str) -> Kind {
        Kind { word: None, ..Kind::counted(format) }
    }
}

/// Reads a profile in any of the formats.
pub fn read(path: &Path) -> Result<ImportedProfile, Fault> {
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

/// Whether a word is the path of a file that may be a profile: the file exists, is not executable, and does not begin
/// like a program.
pub fn is_profile(word: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let is_plain =
        std::fs::metadata(word).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 == 0);
    let mut begin = Vec::new();
    // A file that cannot be read counts as a profile, because reading it then reports the reason.
    let read = File::open(word).and_then(|file| file.take(8).read_to_end(&mut begin));
    is_plain && (read.is_err() || program(&begin).is_none())
}

/// Says what kind of program begins with these bytes, if any does.
fn program(begin: &[u8]) -> Option<&'static str> {
    match begin {
        [0x7f, b'E', b'L', b'F', ..] => Some("a program or a library"),
        [b'#', b'!', ..] => Some("a script"),
        _ => None,
    }
}

/// Parses a profile.
///
/// # Errors
/// A clause that says what is wrong with the profile.
pub fn parse(bytes: &[u8]) -> Result<ImportedProfile, String> {
    if bytes.len() as u64 > LARGEST {
        return Err(too_large());
    }
    if let Some(what) = program(bytes) {
        return Err(format!("it is {what}, not a profile"));
    }
    match bytes {
        [] => Err("it is empty".to_owned()),
        [0x1f, 0x8b, ..] => {
            let mut plain = Vec::new();
            unpack(flate2::read::MultiGzDecoder::new(bytes), &mut plain)?;
            parse_plain(&plain).map(|profile| ImportedProfile { has_checksum: true, ..profile })
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let (plain, has_checksum) = unpack_zstd(bytes)?;
            parse_plain(&plain).map(|profile| ImportedProfile { has_checksum, ..profile })
        }
        _ => parse_plain(bytes),
    }
}

/// The error for a packed file that cannot be unpacked.
const DAMAGED: &str = "it cannot be unpacked: it is cut off or damaged";

fn too_large() -> String {
    "it is larger than 1 GiB, which is more than is read".to_owned()
}

/// Appends what is packed to `plain`.
fn unpack(from: impl Read, plain: &mut Vec<u8>) -> Result<(), String> {
    let room = (LARGEST + 1).saturating_sub(plain.len() as u64);
    from.take(room).read_to_end(plain).map_err(|_| DAMAGED.to_owned())?;
    if plain.len() as u64 > LARGEST { Err(too_large()) } else { Ok(()) }
}

/// Unpacks all frames of zstd, and compares the checksums of those that have one. Returns whether all have one.
fn unpack_zstd(mut packed: &[u8]) -> Result<(Vec<u8>, bool), String> {
    use ruzstd::decoding::StreamingDecoder;
    use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
    let (mut plain, mut has_checksum) = (Vec::new(), true);
    while !packed.is_empty() {
        let mut frame = match StreamingDecoder::new(&mut packed) {
            Ok(frame) => frame,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                packed = packed.get(length as usize..).ok_or(DAMAGED)?;
                continue;
            }
            Err(_) => return Err(DAMAGED.to_owned()),
        };
        unpack(&mut frame, &mut plain)?;
        let decoder = frame.into_frame_decoder();
        match decoder.get_checksum_from_data() {
            None => has_checksum = false,
            stated if stated == decoder.get_calculated_checksum() => {}
            Some(_) => return Err(DAMAGED.to_owned()),
        }
    }
    Ok((plain, has_checksum))
}

/// Says which of these files have no checksum, if any.
pub fn remark_of_checksums(read: &[(&str, &ImportedProfile)]) -> Option<String> {
    let names = read.iter().filter(|(_, profile)| !profile.has_checksum).map(|(name, _)| format!("‘{name}’"));
    let names: Vec<String> = names.collect();
    let (all, has, them, one) = match names.as_slice() {
        [] => return None,
        [_] => (names.concat(), "has", "it", "it has"),
        _ => (names.join(" and "), "have", "them", "they have"),
    };
    Some(format!(
        "{all} {has} no checksum, so some damage to {them} would not be noticed; packed by gzip, {one} one"
    ))
}

/// Returns the text, or an error if its last line has no end: it is cut off.
fn require_last_line_end(text: &str) -> Result<&str, String> {
    if text.ends_with('\n') { Ok(text) } else { Err("its last line has no end: it is cut off".to_owned()) }
}

const OF_MEMRAY: &str = "it is memray’s own format; `memray transform csv FILE` writes one that can be read";
const OF_PERF: &str = "it is perf’s own format; `perf script -i FILE > FILE.txt` writes one that can be read";

/// The first bytes of other tools' files, and what to do with them.
const FOREIGN: &[(&[u8], &str)] = &[
    (b"memray\0", OF_MEMRAY),
    // memray packs its files by LZ4.
    (b"\x04\x22\x4d\x18", OF_MEMRAY),
    (b"PERFILE2", OF_PERF),
    (
        b"desc: --massif",
        "it is a file of massif, which Scruple cannot read; heaptrack records the same, and its files can be read",
    ),
];

fn parse_plain(bytes: &[u8]) -> Result<ImportedProfile, String> {
    for (begin, advice) in FOREIGN {
        if bytes.starts_with(begin) {
            return Err((*advice).to_owned());
        }
    }
    let named = |format: &'static str| move |why: String| format!("as {format}’s: {why}");
    // A text has no zeros. Names in it may be in another encoding.
    let is_text = !bytes.contains(&0);
    if !is_text
        || bytes.first().is_some_and(|first| pprof::begins_field(*first))
            && std::str::from_utf8(bytes).is_err()
    {
        return match bytes.first() {
            Some(first) if pprof::begins_field(*first) => pprof::parse(bytes).map_err(named("pprof")),
            _ => {
                Err("it is not text, and it does not begin like a file of pprof, the only binary format that is read"
                    .to_owned())
            }
        };
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let is_callgrind = || {
        first.starts_with("# callgrind")
            || text
                .lines()
                .take(60)
                .any(|line| line.starts_with("events:") || line.starts_with("creator: callgrind"))
    };
    match () {
        () if first.starts_with(own_format::HEAD) => own_format::parse(text),
        () if perf_script::is_written_by_perf(text) => perf_script::parse(text).map_err(named("perf script")),
        () if first.starts_with("v ") && text.lines().nth(1).is_some_and(|line| line.starts_with("X ")) => {
            require_last_line_end(text).and_then(heaptrack::parse).map_err(named("heaptrack"))
        }
        () if first.starts_with(memray::HEAD) => {
            require_last_line_end(text).and_then(memray::parse).map_err(named("memray"))
        }
        () if first.starts_with("{\"") || first.trim() == "{" => Err(
            "it is JSON, which is not read: neither that of speedscope and the Firefox profiler nor that of DHAT; what can \
             be read here are collapsed stacks and the files of pprof, callgrind, `perf script`, heaptrack and memray"
                .to_owned(),
        ),
        () if is_callgrind() => callgrind::parse(text).map_err(named("callgrind")),
        () => collapsed::parse(text).map_err(|why| {
            format!(
                "it is not a file of callgrind, pprof, `perf script`, heaptrack, memray (CSV) or Scruple; read as \
                 collapsed stacks: {why}"
            )
        }),
    }
}

#[cfg(test)]
mod tests;
