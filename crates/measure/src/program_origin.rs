//! Reads a program's file to find its origin: its compilers, and the shared libraries that it loads at its start.
//!
//! The program is not run: its file is read, and libraries are searched where the dynamic loader searches for them.

use object::{Object, ObjectSection, ReadCache};
use scruple_code::file_digest;
use scruple_stats::sorting::{self, SortedMap};
use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

/// The largest number of libraries that are looked up.
const LIBRARIES: usize = 100;

/// The number of characters to which the texts of compilers are truncated.
const TEXT: usize = 200;

/// Tags of the dynamic section, by the ELF specification: a needed library, and the folders to search for libraries.
const NEEDED: u64 = 1;
const RPATH: u64 = 15;
const RUNPATH: u64 = 29;

/// What is known about a program's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramOrigin {
    /// The compilers that the file names; `None` if it names none.
    pub toolchain: Option<String>,
    /// The digests of the shared libraries, by name: the build id if there is one, else a digest of the file.
    pub libraries: SortedMap<String, String>,
}

/// The information in the file of one program or library.
#[derive(Default)]
struct FileOrigin {
    toolchain: Option<String>,
    build_id: Option<String>,
    needed: Vec<String>,
    folders: Vec<PathBuf>,
}

/// Reads a program's file. The result is empty unless it is an ELF file.
pub fn origin_of(program: &Path) -> ProgramOrigin {
    let Some(read) = read(program) else { return ProgramOrigin::default() };
    let places = places();
    let mut found = ProgramOrigin { toolchain: read.toolchain, libraries: SortedMap::new() };
    let mut open: VecDeque<(String, Vec<PathBuf>)> =
        read.needed.into_iter().map(|name| (name, read.folders.clone())).collect();
    let mut seen = BTreeSet::new();
    while let Some((name, folders)) = open.pop_front() {
        if seen.len() >= LIBRARIES || !seen.insert(name.clone()) {
            continue;
        }
        let at = match name.contains('/') {
            true => Some(PathBuf::from(&name)),
            false => {
                folders.iter().chain(&places).map(|folder| folder.join(&name)).find(|path| path.is_file())
            }
        };
        let Some((path, library)) = at.and_then(|path| Some((path.clone(), self::read(&path)?))) else {
            continue;
        };
        if let Some(digest) = library.build_id.or_else(|| file_digest(&path)) {
            found.libraries.insert(name, digest);
        }
        let own: Vec<PathBuf> = library.folders.into_iter().chain(folders).collect();
        open.extend(library.needed.into_iter().map(|name| (name, own.clone())));
    }
    found
}

/// What distinguishes the content of a file: the build id of a program or library, else a digest.
pub(crate) fn content_of(file: &Path) -> Option<String> {
    read(file).and_then(|read| read.build_id).or_else(|| file_digest(file))
}

fn read(path: &Path) -> Option<FileOrigin> {
    // Libraries may have hundreds of megabytes, of which only the headers and a few small sections are read.
    let data = ReadCache::new(fs::File::open(path).ok()?);
    let file = object::File::parse(&data).ok()?;
    let section = |name: &str| file.section_by_name(name).and_then(|section| section.data().ok());
    let build_id = file.build_id().ok().flatten();
    let mut read = FileOrigin {
        toolchain: section(".comment").and_then(compilers),
        build_id: build_id.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect()),
        ..FileOrigin::default()
    };
    // Files with other word sizes or byte orders are rare, so their libraries are not read.
    if !(file.is_64() && file.is_little_endian()) {
        return Some(read);
    }
    let (dynamic, names) = (section(".dynamic").unwrap_or_default(), section(".dynstr").unwrap_or_default());
    let origin = path.canonicalize().ok()?.parent()?.display().to_string();
    for entry in dynamic.chunks_exact(16) {
        let word = |at: usize| entry[at..at + 8].try_into().map(u64::from_le_bytes).unwrap_or(0);
        let text = || {
            let rest = names.get(usize::try_from(word(8)).ok()?..)?;
            let end = rest.iter().position(|byte| *byte == 0)?;
            Some(String::from_utf8_lossy(&rest[..end]).into_owned())
        };
        match word(0) {
            NEEDED => read.needed.extend(text()),
            RPATH | RUNPATH => {
                let text =
                    text().unwrap_or_default().replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
                read.folders.extend(text.split(':').filter(|part| part.starts_with('/')).map(PathBuf::from));
            }
            _ => {}
        }
    }
    Some(read)
}

/// The texts in a `.comment` section, to which each compiler and linker adds its own.
fn compilers(data: &[u8]) -> Option<String> {
    let texts = data.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).trim().to_owned());
    let all: Vec<String> = sorting::distinct(texts.filter(|text| !text.is_empty()));
    let text: String = all.join("; ").chars().take(TEXT).collect();
    (!text.is_empty()).then_some(text)
}

/// The folders that the dynamic loader searches besides those named in the file.
fn places() -> Vec<PathBuf> {
    let variable = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> =
        std::env::split_paths(&variable).filter(|path| path.is_absolute()).collect();
    let mut files: Vec<PathBuf> = fs::read_dir("/etc/ld.so.conf.d")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "conf"))
        .collect();
    sorting::ascending(&mut files);
    for file in files {
        let text = fs::read_to_string(file).unwrap_or_default();
        found.extend(text.lines().map(str::trim).filter(|line| line.starts_with('/')).map(PathBuf::from));
    }
    let family = format!("{}-linux-gnu", std::env::consts::ARCH);
    let standard = [format!("/lib/{family}"), format!("/usr/lib/{family}")];
    found.extend(standard.iter().map(PathBuf::from));
    found.extend(["/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(PathBuf::from));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_names_its_compiler_and_its_libraries_by_content() {
        let own = std::env::current_exe().expect("this test");
        let found = origin_of(&own);
        assert!(found.toolchain.as_deref().is_some_and(|text| text.contains("rustc")), "{found:?}");
        let libc = found.libraries.iter().find(|(name, _)| name.starts_with("libc."));
        assert!(libc.is_some_and(|(_, digest)| digest.len() >= 16), "{found:?}");
    }

    #[test]
    fn of_a_script_nothing_is_known() {
        assert_eq!(origin_of(Path::new("/etc/passwd")), ProgramOrigin::default());
        assert_eq!(origin_of(Path::new("/nowhere")), ProgramOrigin::default());
    }
}
