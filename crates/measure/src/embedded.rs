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
pub(crate) struct EmbeddedGroup<const FILES: usize> {
    packed: &'static [u8],
    contents: OnceLock<[Vec<u8>; FILES]>,
}

impl<const FILES: usize> EmbeddedGroup<FILES> {
    /// Files that build.rs has compressed together.
    pub(crate) const fn new(packed: &'static [u8]) -> EmbeddedGroup<FILES> {
        EmbeddedGroup { packed, contents: OnceLock::new() }
    }

    /// The contents in the order of build.rs. They are decompressed when they are first needed.
    pub(crate) fn contents(&self) -> &[Vec<u8>; FILES] {
        self.contents.get_or_init(|| separate(&unpacked(self.packed)))
    }
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    flate2::read::DeflateDecoder::new(packed).read_to_end(&mut content).expect("build.rs compressed it");
    content
}

/// Separates files whose blocks alternate: after the size of a block and the size of each file, a block of each file in
/// turn.
fn separate<const FILES: usize>(all: &[u8]) -> [Vec<u8>; FILES] {
    let (sizes, mut blocks) = all.split_at(4 * (FILES + 1));
    let mut sizes = sizes
        .chunks_exact(4)
        .map(|size| size.iter().rev().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)));
    let block = sizes.next().unwrap_or_default();
    let sizes: Vec<usize> = sizes.collect();
    let mut files = [const { Vec::new() }; FILES];
    while !blocks.is_empty() {
        for (file, size) in files.iter_mut().zip(&sizes) {
            let (next, rest) = blocks.split_at(block.min(size - file.len()));
            file.extend_from_slice(next);
            blocks = rest;
        }
    }
    files
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
        let sizes = [2, 3, 0, 5].map(u32::to_le_bytes).concat();
        let all = [&sizes[..], b"ab", b"ab", b"c", b"cd", b"e"].concat();
        assert_eq!(separate::<3>(&all), [&b"abc"[..], b"", b"abcde"]);
    }
}
