//! An answer as checks and captures see it, from any version of the protocol.

use super::super::http1;
use http::HeaderMap;

/// The head of an answer.
#[derive(Clone, Copy)]
pub(crate) enum Head<'a> {
    Http1(&'a [u8]),
    Http2(&'a HeaderMap),
}

impl<'a> Head<'a> {
    /// The value of a header.
    pub(crate) fn header(self, name: &str) -> Option<&'a [u8]> {
        match self {
            Head::Http1(head) => http1::header(head, name),
            Head::Http2(headers) => headers.get(name).map(http::HeaderValue::as_bytes),
        }
    }

    /// Every value of a header that may occur several times.
    pub(crate) fn each(self, name: &str) -> Vec<&'a [u8]> {
        match self {
            Head::Http1(head) => http1::headers(head, name).collect(),
            Head::Http2(headers) => headers.get_all(name).iter().map(http::HeaderValue::as_bytes).collect(),
        }
    }
}

/// An answer that was kept.
#[derive(Clone, Copy)]
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) head: Head<'a>,
    pub(crate) body: &'a [u8],
}
