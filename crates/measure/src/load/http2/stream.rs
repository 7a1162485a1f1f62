//! One stream of HTTP/2: a request in flight and its answer.

use super::super::exchange::Exchange;
use super::super::failure::Failure;
use super::{Encoded, Fields, FinishedRequest, KEPT, frame};
use std::sync::Arc;

/// Content of a request that is being sent.
pub(super) struct Upload {
    pub(super) body: Arc<[u8]>,
    pub(super) at: usize,
}

pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) exchange: Exchange,
    /// The status of the answer; 0 until the answer has begun.
    pub(super) status: u16,
    pub(super) fields: Fields,
    /// The number of bytes of content that have arrived.
    pub(super) length: u64,
    pub(super) kept: Vec<u8>,
    /// The number of bytes of content that the server accepts now on this stream.
    pub(super) room: i64,
    /// The number of received bytes of content that no WINDOW_UPDATE has acknowledged yet.
    pub(super) taken: u32,
    named_length: Option<u64>,
    upload: Option<Upload>,
    keep: bool,
    bodiless: bool,
}

impl Stream {
    pub(super) fn new(
        id: u32,
        exchange: Exchange,
        request: &Encoded,
        room: i64,
        upload: Option<Upload>,
    ) -> Stream {
        Stream {
            id,
            exchange,
            status: 0,
            fields: Fields::new(),
            length: 0,
            kept: Vec::new(),
            room,
            taken: 0,
            named_length: None,
            upload,
            keep: request.keep,
            bodiless: request.bodiless,
        }
    }

    /// Appends as much of the request's content to `out` as the server accepts now.
    pub(super) fn upload(&mut self, room: &mut i64, longest: usize, out: &mut Vec<u8>) {
        while let Some(upload) = &mut self.upload {
            let now = self.room.min(*room).min(longest as i64).max(0) as usize;
            let piece = &upload.body[upload.at..];
            let piece = &piece[..piece.len().min(now)];
            if piece.is_empty() {
                return;
            }
            let last = upload.at + piece.len() == upload.body.len();
            frame::write(frame::DATA, if last { frame::END_STREAM } else { 0 }, self.id, piece, out);
            upload.at += piece.len();
            self.room -= piece.len() as i64;
            *room -= piece.len() as i64;
            if last {
                self.upload = None;
            }
        }
    }

    /// Whether content of the request remains to be sent.
    pub(super) fn uploads(&self) -> bool {
        self.upload.is_some()
    }

    /// Handles a field of the answer's head.
    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        let digits = || std::str::from_utf8(value).ok();
        match name {
            b":status" => self.status = digits().and_then(|text| text.parse().ok()).unwrap_or(0),
            b"content-length" => self.named_length = digits().and_then(|text| text.parse().ok()),
            _ => {}
        }
        if self.keep && !name.starts_with(b":") {
            self.fields.push((name.to_vec(), value.to_vec()));
        }
    }

    /// Discards an interim answer.
    pub(super) fn begin_anew(&mut self) {
        self.status = 0;
        self.named_length = None;
        self.fields.clear();
    }

    /// Handles content of the answer; `None` if no head has arrived before it.
    pub(super) fn content(&mut self, bytes: &[u8]) -> Option<()> {
        if self.status == 0 {
            return None;
        }
        self.length += bytes.len() as u64;
        if self.keep {
            let room = KEPT.saturating_sub(self.kept.len()).min(bytes.len());
            self.kept.extend_from_slice(&bytes[..room]);
        }
        Some(())
    }

    /// How the request fails if nothing more arrives.
    pub(super) fn at_end(&self) -> Failure {
        if self.status > 0 { Failure::HalfResponse } else { Failure::ClosedEarly }
    }

    pub(super) fn failed(self, class: Failure) -> FinishedRequest {
        self.done(Err(class))
    }

    /// The exchange after the server has reset the stream with this code.
    pub(super) fn reset(self, code: u32) -> FinishedRequest {
        let cause = frame::ERRORS.get(code as usize).copied();
        let unread = code == frame::REFUSED_STREAM && self.status == 0;
        FinishedRequest { cause, unread, repeatable: unread, ..self.failed(Failure::Reset) }
    }

    /// The exchange after the server has said that it goes away for this reason, and does not process this stream.
    pub(super) fn refused(self, code: u32) -> FinishedRequest {
        let (class, unread) = (self.at_end(), self.status == 0);
        let regular = code == frame::NO_ERROR;
        let cause = match regular {
            true => Some("the server goes away (GOAWAY) and did not process them"),
            false => frame::ERRORS.get(code as usize).copied(),
        };
        FinishedRequest { cause, unread, repeatable: unread && regular, ..self.failed(class) }
    }

    /// The finished exchange. An answer that is shorter or longer than the length that it states counts as garbage.
    pub(super) fn answered(self) -> FinishedRequest {
        let contents = !self.bodiless && self.status != 304;
        let length = self.length;
        match contents && self.named_length.is_some_and(|stated| stated != length) {
            true => FinishedRequest {
                cause: Some("its length is not the one that it states"),
                ..self.failed(Failure::Garbage)
            },
            false => self.done(Ok(length)),
        }
    }

    fn done(self, outcome: Result<u64, Failure>) -> FinishedRequest {
        FinishedRequest {
            exchange: self.exchange,
            status: self.status,
            outcome,
            cause: None,
            unread: false,
            repeatable: false,
            kept: (self.fields, self.kept),
        }
    }
}
