//! Digests of texts and files, which can be used as names.

use sha2::{Digest, Sha256};
use std::path::{Component, Path, PathBuf};

/// Returns the digest of a text.
pub fn digest(text: &str) -> String {
    shown(Sha256::digest(text.as_bytes()).as_slice())
}

/// Writes the first half of a digest in hexadecimal digits, for names of folders and programs.
pub fn shown(bytes: &[u8]) -> String {
    bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the path of the entry of a folder with this name. Names also come from stores and from the folders of farms. One
/// that would lead elsewhere, such as `../other` or `/other`, is replaced by its digest.
pub fn entry(folder: &Path, name: &str) -> PathBuf {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name => folder.join(name),
        _ => folder.join(digest(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_published_function() {
        // The expected values are the first halves of the SHA-256 of the empty text and of "abc", from the examples of
        // FIPS 180-4.
        assert_eq!(digest(""), "e3b0c44298fc1c149afbf4c8996fb924");
        assert_eq!(digest("abc"), "ba7816bf8f01cfea414140de5dae2223");
    }
    #[test]
    fn no_name_of_an_entry_leads_out_of_the_folder() {
        let folder = Path::new("/folder");
        assert_eq!(entry(folder, "ab12"), Path::new("/folder/ab12"));
        for name in ["", ".", "..", "/", "/other", "../other", "ab12/", "ab12/..", "./ab12"] {
            let path = entry(folder, name);
            let last = path.file_name().and_then(|last| last.to_str());
            assert_eq!((path.parent(), last), (Some(folder), Some(&*digest(name))), "{name}");
        }
    }
}
