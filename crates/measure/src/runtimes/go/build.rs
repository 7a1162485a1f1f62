//! How a Go program was built, by the information that the linker leaves in every program.

use object::{Object, ObjectSection, ReadRef};
use scruple_stats::sorting::SortedMap;
use serde::{Deserialize, Serialize};

/// What decides the code of a program's runtime.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Build {
    /// The version, such as `go1.26.0`.
    pub(super) version: String,
    /// The settings among [`VARIABLES`] and [`OPTIONS`] that the linker has noted.
    pub(super) settings: SortedMap<String, String>,
}

/// The environment variables that decide how the runtime is compiled.
pub(super) const VARIABLES: [&str; 3] = ["GOAMD64", "GOEXPERIMENT", "CGO_ENABLED"];

/// The options of `go build` that decide it.
const OPTIONS: [&str; 2] = ["-buildmode", "-race"];

impl Build {
    /// Reads the build information that the linker has left; `None` if it is of another form.
    pub(in crate::runtimes) fn of<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Option<Build> {
        Build::parse(file.section_by_name(".go.buildinfo")?.data().ok()?)
    }

    /// Reads the form of Go 1.18 and later: 32 bytes of head, then two texts, each after its length.
    fn parse(data: &[u8]) -> Option<Build> {
        const INLINE: u8 = 2;
        if !data.starts_with(b"\xff Go buildinf:") || data.get(15)? & INLINE == 0 {
            return None;
        }
        let (version, rest) = text(data.get(32..)?)?;
        let (lines, _) = text(rest)?;
        // The text stands between two marks of 16 bytes each.
        let lines = lines.get(16..lines.len().checked_sub(16)?)?;
        let settings = String::from_utf8_lossy(lines)
            .lines()
            .filter_map(|line| line.strip_prefix("build\t")?.split_once('='))
            .filter(|(key, _)| VARIABLES.contains(key) || OPTIONS.contains(key))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        // A version may be followed by experiments, after a blank.
        let version = String::from_utf8_lossy(version).split_whitespace().next()?.to_owned();
        Some(Build { version, settings })
    }
}

/// Splits a text from what follows it. Its length comes first, seven bits to a byte, the lowest first.
fn text(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = data.iter().take(5).position(|byte| *byte < 0x80)? + 1;
    let length = data[..size].iter().rev().fold(0_usize, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
    data.get(size..)?.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(flags: u8, version: &str, lines: &str) -> Vec<u8> {
        let mut data = b"\xff Go buildinf:".to_vec();
        data.extend([8, flags]);
        data.resize(32, 0);
        let marked = format!("{0}{lines}{0}", "m".repeat(16));
        for text in [version, &marked] {
            assert!(text.len() < 1 << 14);
            data.extend([text.len() as u8 | 0x80, (text.len() >> 7) as u8]);
            data.extend(text.bytes());
        }
        data
    }

    #[test]
    fn build_information_tells_version_and_settings() {
        let lines = "path\tcmd/gofmt\nbuild\t-buildmode=pie\nbuild\tGOAMD64=v3\n";
        let build = Build::parse(&info(2, "go1.26.8 X:nodwarf5", lines)).expect("it is of the known form");
        assert_eq!(build.version, "go1.26.8");
        assert_eq!(build.settings["GOAMD64"], "v3");
        assert_eq!(build.settings["-buildmode"], "pie");
        assert_eq!(Build::parse(&info(0, "go1.17", "")), None);
    }

    #[test]
    fn damaged_build_information_is_survived() {
        let whole = info(2, "go1.26.8", "build\tGOAMD64=v1\n");
        for cut in 0..whole.len() {
            drop(Build::parse(&whole[..cut]));
            let mut wrong = whole.clone();
            wrong[cut] = 0xff;
            drop(Build::parse(&wrong));
        }
    }
}
