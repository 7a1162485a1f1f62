//! Files that build.rs puts into the binary, compressed: the preload libraries and the sources of the call tree's tool.

use std::io::Read;
use std::sync::OnceLock;

/// A file in the binary.
#[derive(Debug)]
pub(crate) struct Embedded {
    packed: &'static [u8],
    content: OnceLock<Vec<u8>>,
}

impl Embedded {
    /// A file that build.rs has compressed.
    pub(crate) const fn new(packed: &'static [u8]) -> Embedded {
        Embedded { packed, content: OnceLock::new() }
    }

    /// The file's content, which is decompressed when it is first needed.
    pub(crate) fn content(&self) -> &[u8] {
        self.content.get_or_init(|| unpacked(self.packed))
    }
}

/// Files with much in common, which build.rs has compressed together.
#[derive(Debug)]
pub(crate) struct EmbeddedGroup {
    packed: &'static [u8],
    files: OnceLock<Vec<(String, Vec<u8>)>>,
}

impl EmbeddedGroup {
    /// Files that build.rs has compressed together.
    pub(crate) const fn new(packed: &'static [u8]) -> EmbeddedGroup {
        EmbeddedGroup { packed, files: OnceLock::new() }
    }

    /// The names and contents in the order of build.rs. They are decompressed when they are first needed.
    pub(crate) fn files(&self) -> &[(String, Vec<u8>)] {
        self.files.get_or_init(|| separate(&unpacked(self.packed)).expect("build.rs compressed it"))
    }

    /// The content of a file that build.rs has put into the group.
    pub(crate) fn content(&self, name: &str) -> &[u8] {
        let file = self.files().iter().find(|file| file.0 == name);
        file.map(|(_, content)| content).expect("build.rs has put it there")
    }
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    flate2::read::DeflateDecoder::new(packed).read_to_end(&mut content).expect("build.rs compressed it");
    content
}

/// Separates files whose blocks alternate: after the size of a block, and the name and the size of each file, a block of
/// each file in turn.
fn separate(all: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let end = all.windows(2).position(|two| two == b"\n\n")?;
    let (head, mut blocks) = (std::str::from_utf8(&all[..end]).ok()?, &all[end + 2..]);
    let mut lines = head.lines();
    let block: usize = lines.next()?.parse().ok()?;
    let sizes =
        lines.map(|line| line.rsplit_once(' ').and_then(|(name, size)| Some((name, size.parse().ok()?))));
    let sizes: Vec<(&str, usize)> = sizes.collect::<Option<_>>()?;
    let mut files: Vec<(String, Vec<u8>)> =
        sizes.iter().map(|(name, _)| ((*name).to_owned(), Vec::new())).collect();
    while files.iter().zip(&sizes).any(|((_, file), (_, size))| file.len() < *size) {
        for ((_, file), (_, size)) in files.iter_mut().zip(&sizes) {
            let (next, rest) = blocks.split_at_checked(block.min(size - file.len()))?;
            file.extend_from_slice(next);
            blocks = rest;
        }
    }
    Some(files)
}

/// A file of this name, from build.rs.
macro_rules! embedded {
    ($($name:tt)+) => {
        $crate::embedded::Embedded::new(include_bytes!(concat!(env!("OUT_DIR"), "/embedded/", $($name)+)))
    };
}

pub(crate) use embedded;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_packed_together_are_whole() {
        let all = b"2\na.c 3\nnone 0\nb c 5\n\nababccde";
        let files = separate(all).expect("well-formed");
        let expected = [("a.c", "abc"), ("none", ""), ("b c", "abcde")];
        assert_eq!(files, expected.map(|(name, text)| (name.to_owned(), text.into())));
        assert_eq!(separate(&all[..all.len() - 1]), None);
    }
}
