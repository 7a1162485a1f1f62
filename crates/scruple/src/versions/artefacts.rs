//! Build artefacts, identified by their content: a digest of names, modes and contents (SHA-256).

use crate::digest::shown;
use crate::fault::Fault;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The result of a successful build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Artefacts {
    /// The SHA-256 digest of the names, modes and contents of the files.
    pub digest: String,
    /// The size of all files together, in bytes.
    pub bytes: u64,
    /// The time that the build steps took, in nanoseconds.
    pub time: u64,
    /// When they were built, in milliseconds since 1970; 0: an earlier version of Scruple did not write it down.
    #[serde(default)]
    pub built_at: i64,
    /// Whether they were built for another history or run before, so that this one did not spend that time.
    #[serde(default)]
    pub reused: bool,
}

/// Lists the files and links below a path of a folder, except those of git itself.
pub fn files(folder: &Path, at: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(folder, at, &mut found)?;
    Ok(found)
}

fn collect(folder: &Path, at: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let full = folder.join(at);
    if full.is_symlink() || full.is_file() {
        found.push(at.to_owned());
    }
    // A pipe or a socket has no content, and opening one may block for ever.
    if full.is_symlink() || !full.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(&full)? {
        let name = entry?.file_name();
        if name != ".git" {
            collect(folder, &at.join(&name), found)?;
        }
    }
    Ok(())
}

/// Returns the digest of these files of a folder, and their total size in bytes.
pub fn digest_of(folder: &Path, files: &[PathBuf]) -> Result<(String, u64), Fault> {
    let (mut all, mut bytes) = (Sha256::new(), 0);
    for file in files {
        let failed = |error| Fault::usage(format!("cannot read the artefact ‘{}’: {error}", file.display()));
        let full = folder.join(file);
        let data = full.symlink_metadata().map_err(failed)?;
        let (kind, content) = match data.is_symlink() {
            true => (0, Sha256::digest(fs::read_link(&full).map_err(failed)?.as_os_str().as_bytes())),
            false => {
                bytes += data.len();
                (1 + (data.permissions().mode() & 0o111), content(&full).map_err(failed)?)
            }
        };
        let name = file.as_os_str().as_bytes();
        all.update((name.len() as u64).to_le_bytes());
        all.update(name);
        all.update(kind.to_le_bytes());
        all.update(content);
    }
    Ok((shown(all.finalize().as_slice()), bytes))
}

fn content(path: &Path) -> io::Result<sha2::digest::Output<Sha256>> {
    let (mut file, mut hash) = (File::open(path)?, Sha256::new());
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hash.finalize()),
            Ok(count) => hash.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Copies files of one folder into another, which is created. The copies are read-only, and are synchronized to the
/// disk before the function returns.
pub fn copy(from: &Path, files: &[PathBuf], to: &Path) -> io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for file in files {
        let (source, copy) = (from.join(file), to.join(file));
        if let Some(parent) = copy.parent() {
            fs::create_dir_all(parent)?;
        }
        if source.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&source)?, &copy)?;
            continue;
        }
        fs::copy(&source, &copy)?;
        let mode = copy.metadata()?.permissions().mode() & 0o777 & !0o222;
        fs::set_permissions(&copy, PermissionsExt::from_mode(mode | 0o444))?;
        File::open(&copy)?.sync_all()?;
    }
    File::open(to)?.sync_all()
}

/// Renames a completely written file or folder, so that the final name never refers to an incomplete one, even after a
/// power failure.
pub fn publish(partial: &Path, path: &Path) -> Result<(), Fault> {
    let rename = || -> io::Result<()> {
        File::open(partial)?.sync_all()?;
        fs::rename(partial, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    rename().map_err(|error| Fault::unwritable(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_a_mode_a_link_and_a_byte_each_make_other_artefacts() {
        let place = tempfile::tempdir().expect("a folder");
        let of = |made: &dyn Fn(&Path)| {
            let folder = place.path().join("one");
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).expect("a folder");
            made(&folder);
            let mut found = files(&folder, Path::new("")).expect("files");
            found.sort();
            digest_of(&folder, &found).expect("readable").0
        };
        let write = |name: &'static str, text: &'static str, mode: u32| {
            move |folder: &Path| {
                fs::write(folder.join(name), text).expect("a file");
                fs::set_permissions(folder.join(name), PermissionsExt::from_mode(mode)).expect("a mode");
            }
        };
        let all = [
            of(&write("a", "text", 0o644)),
            of(&write("a", "texT", 0o644)),
            of(&write("b", "text", 0o644)),
            of(&write("a", "text", 0o755)),
            of(&|folder: &Path| std::os::unix::fs::symlink("text", folder.join("a")).expect("a link")),
        ];
        assert!((1..all.len()).all(|i| !all[..i].contains(&all[i])), "{all:?}");
        // Write permission is not part of the content: copies are read-only.
        assert_eq!(of(&write("a", "text", 0o444)), all[0]);
    }
}
