//! One counting session: the library file, the data file, and the environment that passes both to a program.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::format::{self, SiteSampling};
use super::{HeapError, LiveBytes, Totals, measurable, sites, system};
use crate::embedded::EmbeddedGroup;
use scruple_code::allocation_sites::HeapSites;

/// The variable with which the library finds the data file.
pub const DATA_VARIABLE: &str = "SCRUPLE_HEAP";

const PRELOAD_VARIABLE: &str = "LD_PRELOAD";

/// The longest path of a data file that the library can store, in bytes.
const LONGEST_PATH: usize = 1023;

fn library(peak: LiveBytes, sites: bool) -> &'static [u8] {
    static LIBRARIES: EmbeddedGroup =
        EmbeddedGroup::new(include_bytes!(concat!(env!("OUT_DIR"), "/embedded/heap-libraries")));
    LIBRARIES.content(match peak {
        _ if sites => "heap-sites.so",
        LiveBytes::Off => "heap-counts.so",
        LiveBytes::Usable => "heap-usable.so",
        LiveBytes::Requested => "heap-requested.so",
    })
}

/// One counting session, for one launch.
///
/// Dropping it removes its files, so keep it until the whole tree of processes has ended: a program started later with
/// the same environment would print on its stderr that the library cannot be preloaded.
#[derive(Debug)]
pub struct HeapSession {
    peak: LiveBytes,
    unit: u32,
    library: Library,
    data: File,
    data_path: PathBuf,
    records: Option<(File, PathBuf)>,
}

/// The file from which the library is loaded. A file on disk is removed when dropped.
#[derive(Debug)]
enum Library {
    File(PathBuf),
    Memory(File),
}

impl HeapSession {
    /// Writes library and data file to `dir`, which the program must be able to reach. Where `dir` does not allow
    /// running code from it, the library is kept in memory instead; then processes of another user or process namespace
    /// cannot load it.
    pub fn start(dir: &Path, peak: LiveBytes) -> Result<HeapSession, HeapError> {
        HeapSession::start_with(dir, peak, None)
    }

    /// Like [`HeapSession::start`], and records where memory is allocated. Live and peak bytes are as requested.
    pub fn start_with_sites(dir: &Path, sampling: SiteSampling) -> Result<HeapSession, HeapError> {
        HeapSession::start_with(dir, LiveBytes::Requested, Some(sampling))
    }

    fn start_with(
        dir: &Path,
        peak: LiveBytes,
        sampling: Option<SiteSampling>,
    ) -> Result<HeapSession, HeapError> {
        let code = library(peak, sampling.is_some());
        if code.is_empty() {
            return Err(HeapError::Platform);
        }
        let dir =
            std::path::absolute(dir).map_err(|source| HeapError::Folder { path: dir.into(), source })?;
        let unit = system::page_size();
        let (data, data_path) = create(&dir, "data", 0o600)?;
        let mut session =
            HeapSession { peak, unit, library: place_library(&dir, code)?, data, data_path, records: None };
        if sampling.is_some() {
            let path = session.data_path.with_extension(format::RECORDS);
            let file = create_new(&path, 0o600);
            let file = file.map_err(|source| HeapError::Folder { path: path.clone(), source })?;
            session.records = Some((file, path));
        }
        let too_long = session.data_path.as_os_str().len() > LONGEST_PATH;
        let written = match too_long {
            true => Err(io::Error::other("the path is too long")),
            false => session.data.write_all_at(&format::header(peak, unit, sampling), 0),
        };
        written.map_err(|source| HeapError::Folder { path: session.data_path.clone(), source })?;
        Ok(session)
    }

    /// The variables to set for a launch whose `LD_PRELOAD` is `existing_ld_preload`. Our library comes first.
    pub fn environment(&self, existing_ld_preload: Option<&OsStr>) -> Vec<(OsString, OsString)> {
        let mut preload = self.library.path().into_os_string();
        if let Some(existing) = existing_ld_preload.filter(|existing| !existing.is_empty()) {
            preload.push(":");
            preload.push(existing);
        }
        vec![(PRELOAD_VARIABLE.into(), preload), (DATA_VARIABLE.into(), self.data_path.clone().into())]
    }

    /// The counts so far: all counts after the run, a snapshot during it. Fails with [`HeapError::NotLoaded`] if no
    /// process loaded the library, so that uncounted allocations are never reported as 0.
    pub fn read(&self) -> Result<Totals, HeapError> {
        let damaged = |source| HeapError::Read { path: self.data_path.clone(), source };
        let length = self.data.metadata().map_err(damaged)?.len();
        let header = self.header()?;
        let claimed = format::claimed_bytes(&header, self.unit)?;
        let file = self.bytes(claimed.min(length)).map_err(damaged)?;
        let mut totals = format::parse(&file, self.peak, self.unit)?;
        let mut known: HashMap<String, bool> = HashMap::new();
        for process in &mut totals.processes {
            let noticed = process.foreign_malloc;
            let look = || foreign_malloc(&process.exe, noticed);
            process.foreign_malloc = *known.entry(process.exe.clone()).or_insert_with(look);
        }
        if totals.processes.is_empty() && totals.refused == 0 {
            return Err(HeapError::NotLoaded);
        }
        Ok(totals)
    }

    /// The first bytes of the data file.
    fn header(&self) -> Result<Vec<u8>, HeapError> {
        let damaged = |source| HeapError::Read { path: self.data_path.clone(), source };
        let length = self.data.metadata().map_err(damaged)?.len();
        self.bytes(length.min(format::HEADER as u64)).map_err(damaged)
    }

    /// The allocation sites of each process, in the order of [`Totals::processes`], which [`HeapSession::read`] of the
    /// same moment gave. Fails if the session records none. Files must still be those that the program loaded.
    pub fn read_sites(&self, totals: &Totals) -> Result<Vec<HeapSites>, HeapError> {
        let Some((records, path)) = &self.records else {
            return Err(HeapError::Damaged("no allocation sites were recorded"));
        };
        let header = self.header()?;
        sites::read(records, &header, totals, library(self.peak, true))
            .map_err(|source| HeapError::Read { path: path.to_owned(), source })
    }

    fn bytes(&self, length: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.data.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

impl Drop for HeapSession {
    fn drop(&mut self) {
        // It is no error if the file is already gone or cannot be removed.
        let _ = fs::remove_file(&self.data_path);
        if let Some((_, path)) = &self.records {
            let _ = fs::remove_file(path);
        }
    }
}

impl Library {
    fn path(&self) -> PathBuf {
        match self {
            Library::File(path) => path.clone(),
            Library::Memory(file) => format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into(),
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        if let Library::File(path) = self {
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether a program uses an allocator other than our `malloc`. `noticed` is what the library saw from inside. The
/// file decides, because the view from inside can be wrong in both directions: a program that is not
/// position-independent and takes the address of `malloc` seems to have an allocator of its own, and one whose
/// allocator has other names seems to have none.
fn foreign_malloc(exe: &str, noticed: bool) -> bool {
    match measurable(Path::new(exe)) {
        Ok(()) => false,
        Err(reason) => noticed || reason.hides_allocations(),
    }
}

/// Writes the library to a file in `dir` if code may be loaded from there and the loader can parse the file's name,
/// which ends at a colon or blank; else to memory.
fn place_library(dir: &Path, code: &[u8]) -> Result<Library, HeapError> {
    let nameable = !dir.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b':' | b' ' | b'\t' | b'\n'));
    if nameable {
        let (mut file, path) = create(dir, "so", 0o644)?;
        let placed = Library::File(path.clone());
        file.write_all(code).map_err(|source| HeapError::Folder { path, source })?;
        if system::can_map_code(&file) {
            return Ok(placed);
        }
    }
    let in_memory = system::memory_file(c"scruple-heap").and_then(|mut file| {
        file.write_all(code)?;
        if system::can_map_code(&file) { Ok(file) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    });
    in_memory
        .map(Library::Memory)
        .map_err(|source| HeapError::NoExecutableMemory { path: dir.into(), source })
}

fn create(dir: &Path, extension: &str, mode: u32) -> Result<(File, PathBuf), HeapError> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        // Names always have the same length, because programs that copy their environment allocate memory for them.
        let path = dir.join(format!("scruple-heap-{:07}-{number:06}.{extension}", std::process::id()));
        match create_new(&path, mode) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(HeapError::Folder { path, source }),
        }
    }
}

fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used)]

    use super::*;
    use std::process::Command;

    /// Runs a small tree of processes with a data file that has room for `limit` units only.
    fn run(limit: u32) -> Totals {
        let folder = tempfile::tempdir().unwrap();
        let session = HeapSession::start(folder.path(), LiveBytes::Usable).unwrap();
        session.data.write_all_at(&limit.to_ne_bytes(), 20).unwrap();
        let script = "for i in 1 2 3; do (true); /bin/ls / >/dev/null; done";
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", script]).env_clear().env("LC_ALL", "C").envs(session.environment(None));
        assert!(shell.status().unwrap().success());
        session.read().unwrap()
    }

    #[test]
    fn without_room_for_records_the_sums_stay_exact() {
        let plain = run(format::LIMIT);
        assert_eq!((plain.refused, plain.unattributed.allocations), (0, 0));
        for limit in [1, 2, 4] {
            let crowded = run(limit);
            assert_eq!(crowded.processes.len(), limit as usize - 1);
            assert!(crowded.refused > 0 && crowded.unattributed.allocations > 0);
            let (a, b) = (plain.counts(), crowded.counts());
            assert_eq!((a.allocations, a.bytes, a.frees), (b.allocations, b.bytes, b.frees));
        }
    }

    #[test]
    fn records_for_which_there_is_no_room_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let session = HeapSession::start_with_sites(folder.path(), SiteSampling::EVERY).unwrap();
        session.data.write_all_at(&1u32.to_ne_bytes(), 72).unwrap();
        // The first blocks are recorded, and freed when there is no room left.
        let source = folder.path().join("program.c");
        let text = "#include <stdlib.h>\nstatic void *all[50000];\nint main(void) {\n\
                    for (int i = 0; i < 50000; i++) all[i] = malloc(16);\n\
                    for (int i = 0; i < 50000; i++) free(all[i]);\n}\n";
        std::fs::write(&source, text).unwrap();
        let program = folder.path().join("program");
        let compiled = Command::new("cc").arg("-O0").arg(&source).arg("-o").arg(&program).status();
        assert!(compiled.unwrap().success());
        assert!(Command::new(&program).envs(session.environment(None)).status().unwrap().success());
        let totals = session.read().unwrap();
        let sites = session.read_sites(&totals).unwrap().remove(0);
        let lost = sites.unseen.iter().find_map(|phrase| phrase.split_once(" chosen allocations could not"));
        let lost: u64 = lost.unwrap().0.parse().unwrap();
        assert_eq!(lost + sites.sum().allocated.blocks, totals.counts().allocations);
        assert!(sites.unseen.iter().any(|phrase| phrase.contains("frees of recorded blocks")), "{sites:?}");
    }

    #[test]
    fn a_data_file_that_the_program_cut_short_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let session = HeapSession::start(folder.path(), LiveBytes::Usable).unwrap();
        session.data.set_len(100).unwrap();
        assert!(matches!(session.read(), Err(HeapError::Damaged(_))));
        session.data.set_len(0).unwrap();
        assert!(matches!(session.read(), Err(HeapError::Damaged(_))));
    }
}
