//! The folder that holds the agent, the hooks and the files they write, and the environment that makes a program use
//! them.

use super::ALL;
use super::agent_records::NOT_FOLLOWED_FILE;
use crate::embedded::{Embedded, embedded};
use crate::user_folder::temporary_files;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The agent's library. It is empty on platforms for which there is none.
static LIBRARY: Embedded = embedded!("runtimes.so");

/// The file name by which the agent finds its folder inside `LD_PRELOAD`.
const NAME: &str = "libscruple-runtimes.so";

/// A folder with the agent in it. The folder is removed when dropped.
#[derive(Debug)]
pub(super) struct AgentFolder {
    folder: PathBuf,
    /// A lock that is held while the folder is in use. The kernel releases it when the process ends in any way.
    _lock: File,
}

/// What runtimes can be asked to report beyond their totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// The start and end of each collection.
    EveryCollection,
    /// Live data after full collections, which the runtime is made to perform.
    FullCollections,
}

impl Mark {
    fn name(self) -> &'static str {
        match self {
            Mark::EveryCollection => "every-gc",
            Mark::FullCollections => "full-gc",
        }
    }
}

const PREFIX: &str = "scruple-runtimes-";
const LOCK: &str = "in-use";

impl AgentFolder {
    /// Creates the folder in the first place where code may be loaded from and whose name the loader can parse.
    pub(super) fn make() -> Result<AgentFolder, String> {
        if LIBRARY.content().is_empty() {
            return Err("the runtimes' agent exists for Linux on x86-64 and aarch64 only".to_owned());
        }
        let mut last = "no folder for temporary files was found".to_owned();
        let runtime_folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let cache = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let candidates = [Some("/dev/shm".into()), runtime_folder, Some(temporary_files()), cache];
        for parent in candidates.into_iter().flatten() {
            match AgentFolder::make_in(&parent) {
                Ok(place) => return Ok(place),
                Err(error) => {
                    last = format!("the runtimes' agent cannot be placed in ‘{}’: {error}", parent.display());
                }
            }
        }
        Err(format!("{last}; set TMPDIR to a folder from which programs may be run"))
    }

    fn make_in(parent: &Path) -> io::Result<AgentFolder> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        remove_abandoned(parent);
        let unreadable =
            |byte: &u8| matches!(byte, b':' | b' ' | b'\t' | b'\n' | b'"' | b'\\' | b'\'' | b']');
        if parent.as_os_str().as_bytes().iter().any(unreadable) || parent.as_os_str().len() > 180 {
            return Err(io::Error::other("the loader cannot read its name"));
        }
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::DirBuilder::new().mode(0o755).create(&folder)?;
        let lock = File::create(folder.join(LOCK))?;
        lock.try_lock()?;
        let place = AgentFolder { folder, _lock: lock };
        fs::write(place.library(), LIBRARY.content())?;
        fs::write(place.folder.join(NOT_FOLLOWED_FILE), [0; 8])?;
        for (name, text) in ALL.into_iter().filter_map(|runtime| runtime.adapter().hook) {
            // R does not say in which file its profile is. The folder's name has no quotes, see above.
            fs::write(place.folder.join(name), text.replace("@FOLDER@", &place.folder.to_string_lossy()))?;
        }
        if !can_map_code(&File::open(place.library())?) {
            return Err(io::Error::other("its file system does not allow programs"));
        }
        Ok(place)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn library(&self) -> PathBuf {
        self.folder.join(NAME)
    }

    /// Creates or removes the mark file that tells the agent and the hooks what to report.
    pub(super) fn mark(&self, mark: Mark, wanted: bool) -> io::Result<()> {
        let path = self.folder.join(mark.name());
        if wanted {
            fs::write(path, "")
        } else {
            fs::remove_file(path).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })
        }
    }

    /// Puts the agent before all other preloaded libraries.
    pub(super) fn preload(&self, env: &mut Vec<(OsString, OsString)>) {
        let mut value = self.library().into_os_string();
        let existing = env.iter().position(|(name, _)| name == "LD_PRELOAD").map(|at| env.remove(at).1);
        if let Some(existing) = existing.filter(|existing| !existing.is_empty()) {
            value.push(":");
            value.push(existing);
        }
        env.push(("LD_PRELOAD".into(), value));
        crate::instrument::let_sanitizers_be_second(env);
    }
}

impl Drop for AgentFolder {
    fn drop(&mut self) {
        // It is no error if the folder is already gone or cannot be removed.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Removes the folders of Scruple processes that were killed: no process holds the lock of such a folder.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // Another user may have made a pipe with the name of the lock, and opening one may block for ever.
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        let lock = File::options().read(true).custom_flags(flags).open(entry.path().join(LOCK));
        if let Ok(lock) = lock
            && lock.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether the file may be mapped as code, which is not possible if its file system is mounted noexec.
fn can_map_code(file: &File) -> bool {
    let protection = libc::PROT_READ | libc::PROT_EXEC;
    // SAFETY: a fresh mapping at an address of the kernel's choice, which nobody reads.
    let at =
        unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_PRIVATE, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: exactly the mapping made above.
    unsafe { libc::munmap(at, 4096) };
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// libgc counts writable data of libraries among what it must scan, and collects more rarely the more there is.
    #[test]
    fn the_agent_adds_little_to_a_programs_data() {
        use object::{Object, ObjectSection, SectionKind};
        let agent = object::File::parse(LIBRARY.content()).expect("a library");
        let is_data = |kind| matches!(kind, SectionKind::Data | SectionKind::UninitializedData);
        let sizes = agent.sections().filter(|section| is_data(section.kind())).map(|section| section.size());
        let bytes: u64 = sizes.sum();
        assert!((1..65_536).contains(&bytes), "{bytes} bytes");
    }

    #[test]
    fn abandoned_folders_go_and_those_in_use_stay() {
        let parent = tempfile::tempdir().expect("a folder");
        let used = AgentFolder::make_in(parent.path()).expect("a place");
        let abandoned = parent.path().join(format!("{PREFIX}1-0"));
        fs::create_dir(&abandoned).expect("made");
        File::create(abandoned.join(LOCK)).expect("made");
        let other = AgentFolder::make_in(parent.path()).expect("another place");
        assert!(!abandoned.exists() && used.folder().exists() && other.folder().exists());
        drop(used);
        drop(other);
        assert_eq!(fs::read_dir(parent.path()).expect("readable").count(), 0);
    }

    #[test]
    fn a_pipe_in_the_place_of_a_lock_is_not_waited_for() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join(format!("{PREFIX}1-0"));
        fs::create_dir(&folder).expect("made");
        let made = std::process::Command::new("mkfifo").arg(folder.join(LOCK)).status();
        assert!(made.expect("mkfifo runs").success());
        remove_abandoned(parent.path());
        assert!(!folder.exists());
    }

    #[test]
    fn the_users_own_preloads_come_after() {
        let parent = tempfile::tempdir().expect("a folder");
        let place = AgentFolder::make_in(parent.path()).expect("a place");
        let mut env = vec![("LD_PRELOAD".into(), "/a.so".into()), ("ASAN_OPTIONS".into(), "x=1".into())];
        place.preload(&mut env);
        let shown: Vec<String> = env.iter().map(|(name, value)| format!("{name:?}={value:?}")).collect();
        assert!(shown[0].ends_with("/libscruple-runtimes.so:/a.so\""), "{shown:?}");
        assert_eq!(shown[1], "\"ASAN_OPTIONS\"=\"x=1:verify_asan_link_order=0:\"");
    }
}
