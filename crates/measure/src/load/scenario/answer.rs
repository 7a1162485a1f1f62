//! An answer as checks and captures read it, from either version of the protocol.

use super::super::http1;
use super::super::http2::Fields;

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
