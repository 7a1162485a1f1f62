//! An answer as checks and captures read it, from either version of the protocol.

use super::super::http1::{self, KEPT};
use super::super::http2::Fields;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use std::io::Read;

/// The head of an answer.
#[derive(Clone, Copy)]
pub(crate) enum AnswerHead<'a> {
    Http1(&'a [u8]),
    Http2(&'a Fields),
}

impl<'a> AnswerHead<'a> {
    /// The first value of a header.
    pub(crate) fn header(self, name: &str) -> Option<&'a [u8]> {
        match self {
            AnswerHead::Http1(head) => http1::header(head, name),
            AnswerHead::Http2(fields) => of(fields, name).next(),
        }
    }

    /// All values of a header.
    pub(crate) fn each(self, name: &str) -> Vec<&'a [u8]> {
        match self {
            AnswerHead::Http1(head) => http1::headers(head, name).collect(),
            AnswerHead::Http2(fields) => of(fields, name).collect(),
        }
    }
}

/// The values of the fields with this name.
fn of<'a>(fields: &'a Fields, name: &str) -> impl Iterator<Item = &'a [u8]> {
    let named = move |field: &&(Vec<u8>, Vec<u8>)| field.0.eq_ignore_ascii_case(name.as_bytes());
    fields.iter().filter(named).map(|(_, value)| value.as_slice())
}

/// A complete answer. Head and content are empty unless the request keeps them.
#[derive(Clone, Copy)]
pub(crate) struct KeptAnswer<'a> {
    pub(crate) status: u16,
    /// The number of bytes of content.
    pub(crate) length: u64,
    pub(crate) head: AnswerHead<'a>,
    pub(crate) body: &'a [u8],
}

impl KeptAnswer<'_> {
    /// The coding of the content (RFC 9110, section 8.4), if it has one, and whether this code can decode it.
    pub(crate) fn coding(&self) -> Option<(&[u8], bool)> {
        let coding = self.head.header("content-encoding")?;
        let is = |name: &str| coding.eq_ignore_ascii_case(name.as_bytes());
        (!is("identity")).then(|| (coding, ["gzip", "x-gzip", "deflate"].into_iter().any(is)))
    }

    /// The kept content without its coding; `None` if it has none, or one that is not known.
    pub(crate) fn decoded(&self) -> Option<Vec<u8>> {
        let (coding, _) = self.coding().filter(|(_, known)| *known)?;
        let mut plain = Vec::new();
        // Several servers send `deflate` without the header of zlib, which a checksum of two bytes makes certain.
        let zlib = matches!(*self.body, [a, b, ..] if a & 15 == 8 && u16::from_be_bytes([a, b]) % 31 == 0);
        let end = match coding.eq_ignore_ascii_case(b"deflate") {
            true if zlib => ZlibDecoder::new(self.body).take(KEPT as u64).read_to_end(&mut plain),
            true => DeflateDecoder::new(self.body).take(KEPT as u64).read_to_end(&mut plain),
            false => MultiGzDecoder::new(self.body).take(KEPT as u64).read_to_end(&mut plain),
        };
        // The end is missing if the content was not kept whole.
        (end.is_ok() || !plain.is_empty()).then_some(plain)
    }
}
