//! Files that build.rs puts into the binary, compressed: the preload libraries and the sources of the call tree's tool.

use std::io::Read;

/// A file in the binary.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Embedded(pub(crate) &'static [u8]);

impl Embedded {
    /// The file's content.
    pub(crate) fn content(self) -> Vec<u8> {
        let mut content = Vec::new();
        flate2::read::DeflateDecoder::new(self.0).read_to_end(&mut content).expect("build.rs compressed it");
        content
    }
}

/// A file of this name, from build.rs.
macro_rules! embedded {
    ($($name:tt)+) => {
        $crate::embedded::Embedded(include_bytes!(concat!(env!("OUT_DIR"), "/embedded/", $($name)+)))
    };
}

pub(crate) use embedded;
