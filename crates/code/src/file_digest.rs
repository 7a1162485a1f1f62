//! Digests of files.

use std::fs;
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::Path;
use twox_hash::XxHash64;

/// A digest of a file's contents, to distinguish builds: XXH64 with seed 0, in hexadecimal. Interpreters have a hundred
/// megabytes, which a digest by bytes takes longer to read than a first answer may take.
pub fn file_digest(path: &Path) -> Option<String> {
    let mut file = fs::File::open(path).ok()?;
    let mut hash = XxHash64::with_seed(0);
    let mut chunk = vec![0; 1 << 18];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Some(format!("{:016x}", hash.finish())),
            Ok(count) => hash.write(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_reference_implementation() {
        // By the Python package xxhash, of the bytes 0 to 255 over and over.
        let bytes: Vec<u8> = (0..=255).cycle().take(600_000).collect();
        let known = [
            (0, "ef46db3751d8e999"),
            (1, "e934a84adb052768"),
            (3, "e5c7bb4533bc65dd"),
            (4, "ffced8604453cc1e"),
            (15, "a948f5f0f6abac2d"),
            (31, "c346d2b59b4d8ee1"),
            (32, "cbf59c5116ff32b4"),
            (63, "e26aa9e2a95f8e4f"),
            (1000, "6ef436b00eba4078"),
            (600_000, "c4f55ee5f406a6ee"),
        ];
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        for (length, expected) in known {
            fs::write(&path, &bytes[..length]).expect("written");
            assert_eq!(file_digest(&path).as_deref(), Some(expected), "{length} bytes");
        }
        assert_eq!(file_digest(&folder.path().join("missing")), None);
    }
}
