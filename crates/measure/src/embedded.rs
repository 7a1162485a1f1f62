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
        self.content.get_or_init(|| {
            let mut content = Vec::new();
            flate2::read::DeflateDecoder::new(self.packed)
                .read_to_end(&mut content)
                .expect("build.rs compressed it");
            content
        })
    }
}

/// A file of this name, from build.rs.
macro_rules! embedded {
    ($($name:tt)+) => {
        $crate::embedded::Embedded::new(include_bytes!(concat!(env!("OUT_DIR"), "/embedded/", $($name)+)))
    };
}

pub(crate) use embedded;
