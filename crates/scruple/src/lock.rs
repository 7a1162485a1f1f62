//! Locks on files. The kernel releases the locks of a process when it ends, in whatever way.

use crate::fault::Fault;
use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The interval between two attempts to lock a file that another process holds.
const POLL: Duration = Duration::from_millis(200);

/// A locked file. It is unlocked when the value is dropped.
pub struct Lock {
    path: PathBuf,
    /// The field is needed because closing the file releases the lock.
    _file: File,
}

impl Lock {
    /// Locks the file, which is created with its folder if it does not exist. Returns `None` if another process holds
    /// the lock.
    pub fn take(path: &Path) -> Result<Option<Lock>, Fault> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| Fault::unwritable(folder, error))?;
        }
        let failed = |error| Fault::unwritable(path, error);
        loop {
            let file = File::options().write(true).create(true).truncate(false).open(path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // The file may have been removed since it was opened, and another process may hold the lock of a new one.
            let locked = file.metadata().map_err(failed)?.ino();
            if path.metadata().is_ok_and(|there| there.ino() == locked) {
                return Ok(Some(Lock { path: path.to_owned(), _file: file }));
            }
        }
    }

    /// Removes the file, and unlocks it.
    pub fn remove(self) {
        // A failure is ignored, because a remaining file does no harm.
        let _ = std::fs::remove_file(&self.path);
    }

    /// Waits until no other process holds the lock. Returns `None` as soon as `needless` says that the lock is not
    /// needed any more.
    pub fn wait(path: &Path, needless: impl Fn() -> Result<bool, Fault>) -> Result<Option<Lock>, Fault> {
        loop {
            if needless()? {
                return Ok(None);
            }
            if let Some(lock) = Lock::take(path)? {
                return Ok(Some(lock));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Whether another process holds the lock. A file that cannot be opened is not locked.
    pub fn is_held(path: &Path) -> bool {
        let file = File::options().write(true).open(path);
        file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_one_holder_until_it_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("below/lock");
        assert!(!Lock::is_held(&path));
        let lock = Lock::take(&path).expect("writable").expect("free");
        assert!(Lock::is_held(&path) && Lock::take(&path).expect("writable").is_none());
        assert!(Lock::wait(&path, || Ok(true)).expect("writable").is_none());
        drop(lock);
        let lock = Lock::wait(&path, || Ok(false)).expect("writable").expect("free");
        lock.remove();
        assert!(!path.exists());
    }
}
