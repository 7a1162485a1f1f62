//! The code that a running program has loaded from files other than its own: scripts, modules, classes, libraries.

use crate::program_origin;
use std::collections::BTreeSet;
use std::fs;
use std::hash::Hasher;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use twox_hash::XxHash64;

/// Why the code that a program ran is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownCode {
    /// A file changed after the program had loaded code.
    #[error("‘{}’ changed", .0.display())]
    Changed(PathBuf),
    /// A file cannot be read here.
    #[error("‘{}’ cannot be read", .0.display())]
    Unreadable(PathBuf),
}

/// A digest of the contents of these files and of these texts, whatever their order: XXH64 in hexadecimal. `loaded_by`
/// is the time by which the program had loaded its code.
pub fn digest(
    files: &BTreeSet<PathBuf>,
    texts: &BTreeSet<String>,
    loaded_by: SystemTime,
) -> Result<String, UnknownCode> {
    let mut parts: BTreeSet<String> = BTreeSet::new();
    for file in files.iter().filter(|file| is_stored(file)) {
        if has_changed_since(file, loaded_by) {
            return Err(UnknownCode::Changed(file.clone()));
        }
        let digest = program_origin::content_of(file);
        parts.insert(digest.ok_or_else(|| UnknownCode::Unreadable(file.clone()))?);
    }
    let mut hash = XxHash64::with_seed(0);
    for part in parts.iter().chain(texts) {
        hash.write(&(part.len() as u64).to_le_bytes());
        hash.write(part.as_bytes());
    }
    Ok(format!("{:016x}", hash.finish()))
}

/// Whether the content or the owner of a file changed after this time, by the clock of its file system.
pub fn has_changed_since(file: &Path, time: SystemTime) -> bool {
    let Ok(found) = fs::metadata(file) else { return false };
    let (seconds, nanoseconds) = (found.ctime().max(0) as u64, found.ctime_nsec().max(0) as u32);
    SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds) > time
}

/// Whether a mapped file is one that can be read later. Devices and memory without a name cannot.
fn is_stored(file: &Path) -> bool {
    let is_device = file.starts_with("/dev") && !file.starts_with("/dev/shm");
    !is_device && !file.as_os_str().as_encoded_bytes().starts_with(b"/memfd:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set<T: Ord + Clone>(all: &[T]) -> BTreeSet<T> {
        all.iter().cloned().collect()
    }

    #[test]
    fn another_content_has_another_digest_and_a_changed_or_missing_file_has_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        fs::write(&one, "1").expect("a file");
        fs::write(&two, "2").expect("a file");
        let later = SystemTime::now() + Duration::from_secs(60);
        let none = set::<String>(&[]);
        let of = |files: &[&PathBuf], texts: &BTreeSet<String>| {
            digest(&files.iter().map(|file| (*file).clone()).collect(), texts, later)
        };
        let both = of(&[&one, &two], &none).expect("a digest");
        assert_ne!(Ok(both.clone()), of(&[&one], &none));
        assert_ne!(Ok(both.clone()), of(&[&one, &two], &set(&["made".to_owned()])));
        fs::write(&one, "3").expect("a file");
        assert_ne!(Ok(both.clone()), of(&[&one, &two], &none));
        fs::write(&one, "1").expect("a file");
        assert_eq!(Ok(both), of(&[&one, &two, &PathBuf::from("/memfd:jit (deleted)")], &none));
        assert!(is_stored(Path::new("/dev/shm/module.so")) && !is_stored(Path::new("/dev/dri/card0")));
        let earlier = SystemTime::now() - Duration::from_secs(60);
        assert_eq!(digest(&BTreeSet::from([one.clone()]), &none, earlier), Err(UnknownCode::Changed(one)));
        let absent = folder.path().join("absent");
        assert_eq!(of(&[&absent], &none), Err(UnknownCode::Unreadable(absent)));
    }
}
