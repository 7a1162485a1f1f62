//! The folders of a user for data, caches and the like (XDG Base Directory Specification).

use std::ffi::CString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The folder that an environment variable names if it is an absolute path, else this folder in the user's home; `None`
/// if HOME is not set to an absolute path either. A path that is empty or relative would be another folder for each
/// working folder.
pub fn user_folder(variable: &str, in_home: &str) -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder(variable).or_else(|| folder("HOME").map(|home| home.join(in_home)))
}

/// The folder for files that Scruple can make again: `scruple` in the user's cache, or if that cannot be written, a
/// folder of this user in the folder for temporary files. Creates it if it does not exist.
///
/// # Errors
/// Names the last folder that was tried and says why it cannot be used.
pub fn cache_folder() -> Result<PathBuf, String> {
    let cache = user_folder("XDG_CACHE_HOME", ".cache").map(|cache| cache.join("scruple"));
    // SAFETY: takes no argument and cannot fail.
    let user = unsafe { libc::geteuid() };
    if let Some(cache) = cache
        && fs::create_dir_all(&cache).and_then(|()| may_write(&cache)).is_ok()
        && cache.metadata().is_ok_and(|found| may_prepare(found.uid(), user))
    {
        return Ok(cache);
    }
    let folder = temporary_files().join(format!("scruple-cache-{user}"));
    match private_folder(&folder, user) {
        Ok(()) => Ok(folder),
        Err(error) => Err(format!("‘{}’: {error}", folder.display())),
    }
}

/// The folder for temporary files: that of TMPDIR if it is an absolute path, else `/tmp`.
pub(crate) fn temporary_files() -> PathBuf {
    let folder = std::env::temp_dir();
    if folder.is_absolute() { folder } else { "/tmp".into() }
}

/// Whether files in a folder of this owner may be executed. If the cache is in a folder where every user may create any
/// name, another user may have made the folder. Root may have been asked to use the cache of a user.
fn may_prepare(owner: u32, user: u32) -> bool {
    owner == user || owner == 0 || user == 0
}

/// Creates a folder that only this user can enter, or accepts an existing one if no other user can have put anything
/// into it: every user may create any name in the folder for temporary files, and Scruple executes what is in here.
fn private_folder(folder: &Path, user: u32) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    // Links are not followed, because somebody else may have chosen their target.
    let found = fs::symlink_metadata(folder)?;
    let refused = match () {
        () if found.is_symlink() => "is a symbolic link",
        () if !found.is_dir() => "is not a folder",
        () if found.uid() != user => "belongs to another user",
        () if found.mode() & 0o022 != 0 => "can be written by other users",
        () => return may_write(folder),
    };
    Err(io::Error::other(refused))
}

/// Whether this process may create files in a folder.
fn may_write(folder: &Path) -> io::Result<()> {
    let path = CString::new(folder.as_os_str().as_bytes())?;
    let rights = libc::W_OK | libc::X_OK;
    // SAFETY: the path ends with a zero byte and outlives the call.
    match unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), rights, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A folder with a new name in the folder for temporary files that only this user can enter. It is removed with its
/// contents when dropped.
#[derive(Debug)]
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates the folder. `purpose` is a part of its name.
    ///
    /// # Errors
    /// Names the folder that cannot be created.
    pub(crate) fn new(purpose: &str) -> Result<TemporaryFolder, String> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = temporary_files().join(format!("scruple-{purpose}-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(TemporaryFolder(path)),
                // A killed process with the same id has left it behind, or another user has made it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("cannot make the folder ‘{}’: {error}", path.display())),
            }
        }
    }

    /// The path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // It is no error if the folder is already gone or cannot be removed.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn why(folder: &Path, user: u32) -> String {
        private_folder(folder, user).map_or_else(|error| error.to_string(), |()| "accepted".to_owned())
    }

    #[test]
    fn a_cache_of_another_user_is_not_used() {
        let accepted = [(1000, 1000), (0, 1000), (1000, 0)].map(|(owner, user)| may_prepare(owner, user));
        assert_eq!((accepted, may_prepare(1001, 1000)), ([true; 3], false));
    }

    #[test]
    fn a_temporary_folder_that_exists_is_not_used() {
        let left = |number| temporary_files().join(format!("scruple-left-{}-{number}", std::process::id()));
        let left: Vec<PathBuf> = (0..64).map(left).collect();
        left.iter().for_each(|path| fs::create_dir(path).expect("the name is free"));
        let made = TemporaryFolder::new("left").map(|folder| left.iter().any(|path| path == folder.path()));
        left.iter().for_each(|path| fs::remove_dir(path).expect("it is left alone"));
        assert_eq!(made, Ok(false));
    }

    #[test]
    fn a_folder_that_another_user_can_have_filled_is_refused() {
        let parent = tempfile::tempdir().expect("a folder");
        // SAFETY: takes no argument and cannot fail.
        let user = unsafe { libc::geteuid() };
        let own = parent.path().join("own");
        assert_eq!((why(&own, user), why(&own, user)), ("accepted".into(), "accepted".into()));
        assert_eq!(fs::metadata(&own).expect("a folder").mode() & 0o777, 0o700);
        assert_eq!(why(&own, user + 1), "belongs to another user");
        fs::set_permissions(&own, Permissions::from_mode(0o777)).expect("changed");
        assert_eq!(why(&own, user), "can be written by other users");
        fs::set_permissions(&own, Permissions::from_mode(0o700)).expect("changed");
        symlink(&own, parent.path().join("link")).expect("a link");
        assert_eq!(why(&parent.path().join("link"), user), "is a symbolic link");
        fs::write(parent.path().join("file"), "").expect("written");
        assert_eq!(why(&parent.path().join("file"), user), "is not a folder");
    }
}
