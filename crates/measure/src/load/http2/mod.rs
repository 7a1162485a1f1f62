//! HTTP/2 without sockets (RFC 9113): received bytes go in, bytes to be sent come out.
//!
//! It is our own code, so that a request takes as little processor time as in the fastest generators: a request whose
//! answer is not kept needs no allocation, and requests are encoded beforehand.

#[cfg(test)]
mod damaged;
mod frame;
mod hpack;
mod stream;

use super::exchange::Exchange;
use super::failure::Failure;
use super::http1::BEGUN;
use super::request::Request;
use super::target::Target;
use frame::Frame;
use hpack::{Decoder, Encoder, PreparedField};
use std::sync::Arc;
use stream::{Stream, Upload};

/// The fields of a head in order: names in lower case, and values.
pub(crate) type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// A request that is prepared for any connection.
pub(crate) struct Encoded {
    fields: Vec<PreparedField>,
    body: Arc<[u8]>,
    keep: bool,
    /// Whether the answer has no content, whatever length it states: the request was HEAD.
    bodiless: bool,
}

/// The state of one connection.
pub(crate) struct Http2 {
    encoder: Encoder,
    decoder: Decoder,
    streams: Vec<Stream>,
    next: u32,
    most: usize,
    /// The number of concurrent streams that the server allows; `None` until its SETTINGS have arrived.
    allowed: Option<usize>,
    /// Bytes that wait to be sent.
    outgoing: Vec<u8>,
    /// The beginning of an incomplete frame.
    partial: Vec<u8>,
    /// An incomplete head: its stream, whether the stream ends with it, and the block so far.
    head: Option<(u32, bool, Vec<u8>)>,
    /// The number of bytes of content that the server accepts now: on the connection, and on a new stream.
    room: i64,
    room_of_stream: i64,
    longest: usize,
    /// The number of received bytes of content that no WINDOW_UPDATE has acknowledged yet.
    taken: u32,
    greeted: bool,
    closing: bool,
    served: bool,
}

/// A request that has been answered or has failed.
pub(crate) struct FinishedRequest {
    pub(crate) exchange: Exchange,
    pub(crate) status: u16,
    /// The number of bytes of content, or how the request failed.
    pub(crate) outcome: Result<u64, Failure>,
    /// Why it failed, as a clause, if the server said so.
    pub(crate) cause: Option<&'static str>,
    /// Whether the server says that it did not process the request.
    pub(crate) unread: bool,
    /// Whether the request may be sent again: the server did not process it, and found no fault with it.
    pub(crate) repeatable: bool,
    /// The head and the content, if they are kept.
    pub(crate) kept: (Fields, Vec<u8>),
}

/// The number of bytes of content that are kept for a check. Further content is only counted.
const KEPT: usize = 1 << 20;

/// The receive window in bytes. It is so large that flow control never delays the server.
const WINDOW: u32 = 16 << 20;

/// The number of concurrent streams until the server says how many it allows.
const ALLOWED: usize = 100;

/// The longest encoded head of an answer, in bytes.
const LONGEST_HEAD: usize = 256 << 10;

/// The largest stream id.
const LAST: u32 = 0x7fff_ffff;

/// Encodes a request for any connection.
pub(crate) fn encode(request: &Request, target: &Target) -> Result<Encoded, String> {
    let given = |name: &str| request.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
    let host = given("host").map_or(target.host.as_str(), |(_, value)| value);
    let mut fields = vec![
        PreparedField::new(":method", &request.method),
        PreparedField::new(":scheme", if target.tls.is_some() { "https" } else { "http" }),
        PreparedField::new(":path", &request.path),
        PreparedField::new(":authority", host),
    ];
    for (name, value) in &request.headers {
        let name = name.to_ascii_lowercase();
        // Fields of HTTP/1.1 about the connection are forbidden in HTTP/2.
        let about_connection =
            ["host", "connection", "keep-alive", "transfer-encoding", "upgrade", "content-length"];
        if about_connection.contains(&name.as_str()) {
            continue;
        }
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if !name.bytes().all(letter) || value.contains(['\r', '\n', '\0']) {
            return Err(format!("the header ‘{name}’ of request ‘{}’ does not suit HTTP/2", request.name));
        }
        fields.push(PreparedField::new(&name, value.trim()));
    }
    if !request.body.is_empty() {
        fields.push(PreparedField::new("content-length", &request.body.len().to_string()));
    }
    let body = Arc::from(request.body.as_slice());
    Ok(Encoded { fields, body, keep: request.keeps(), bodiless: request.method == "HEAD" })
}

impl Http2 {
    /// A connection with at most `most` requests in flight. Its preface waits to be sent.
    pub(crate) fn new(most: usize) -> Http2 {
        let mut outgoing = frame::PREFACE.to_vec();
        let settings = [(frame::ENABLE_PUSH, 0), (frame::INITIAL_WINDOW_SIZE, WINDOW)];
        let pair = |(name, value): (u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()[..]].concat();
        frame::write(frame::SETTINGS, 0, 0, &settings.map(pair).concat(), &mut outgoing);
        frame::of_number(frame::WINDOW_UPDATE, 0, WINDOW - frame::WINDOW, &mut outgoing);
        Http2 {
            encoder: Encoder::new(),
            decoder: Decoder::new(),
            streams: Vec::new(),
            next: 1,
            most,
            allowed: None,
            outgoing,
            partial: Vec::new(),
            head: None,
            room: i64::from(frame::WINDOW),
            room_of_stream: i64::from(frame::WINDOW),
            longest: frame::LONGEST,
            taken: 0,
            greeted: false,
            closing: false,
            served: false,
        }
    }

    /// Whether another request can be sent now.
    pub(crate) fn is_free(&self) -> bool {
        !self.closing && self.streams.len() < self.most.min(self.allowed.unwrap_or(ALLOWED))
    }

    /// Whether nothing is in flight and no more requests can be sent, or, with `once`, a request has been answered.
    pub(crate) fn is_over(&self, once: bool) -> bool {
        self.streams.is_empty() && (self.closing || (once && self.served))
    }

    /// The requests in flight.
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = Exchange> + '_ {
        self.streams.iter().map(|stream| stream.exchange)
    }

    /// Starts a request.
    pub(crate) fn start(&mut self, request: &Encoded, exchange: Exchange) -> Result<(), Failure> {
        if self.closing {
            return Err(Failure::ClosedEarly);
        }
        let id = self.next;
        self.next += 2;
        // The stream ids are used up: the connection only serves the streams in flight, and a new connection follows.
        self.closing = id >= LAST - 2;
        let from = frame::room(&mut self.outgoing);
        self.encoder.encode(request.fields.iter(), &mut self.outgoing);
        frame::headers(from, request.body.is_empty(), id, &mut self.outgoing);
        let upload = (!request.body.is_empty()).then(|| Upload { body: Arc::clone(&request.body), at: 0 });
        let mut stream = Stream::new(id, exchange, request, self.room_of_stream, upload);
        stream.upload(&mut self.room, self.longest, &mut self.outgoing);
        self.streams.push(stream);
        Ok(())
    }

    /// Processes received bytes. Appends the exchanges that they complete to `done`.
    ///
    /// # Errors
    /// Fails if the connection is broken; the caller must then fail everything in flight on it.
    pub(crate) fn receive(&mut self, bytes: &[u8], done: &mut Vec<FinishedRequest>) -> Result<(), Failure> {
        if self.partial.is_empty() {
            let used = self.frames(bytes, done)?;
            self.partial.extend_from_slice(&bytes[used..]);
            return Ok(());
        }
        let mut joined = std::mem::take(&mut self.partial);
        joined.extend_from_slice(bytes);
        let used = self.frames(&joined, done)?;
        joined.drain(..used);
        self.partial = joined;
        Ok(())
    }

    /// Why these bytes broke the connection, as a clause; `None` if it is not known which protocol they belong to.
    pub(crate) fn fault(&self, bytes: &[u8]) -> Option<&'static str> {
        match self.greeted {
            true => Some("a frame breaks the rules of HTTP/2"),
            false => bytes.starts_with(b"HTTP/1").then_some("it is in HTTP/1, not in HTTP/2"),
        }
    }

    /// Handles all complete frames. Returns the number of bytes that they take.
    fn frames(&mut self, bytes: &[u8], done: &mut Vec<FinishedRequest>) -> Result<usize, Failure> {
        let mut used = 0;
        while let Some((frame, length)) = Frame::first(&bytes[used..]).map_err(|_| Failure::Garbage)? {
            used += length;
            self.act_on(frame, done).ok_or(Failure::Garbage)?;
        }
        Ok(used)
    }

    /// Handles one frame; `None` if it violates the protocol.
    fn act_on(&mut self, frame: Frame<'_>, done: &mut Vec<FinishedRequest>) -> Option<()> {
        if !self.greeted && frame.kind != frame::SETTINGS {
            return None;
        }
        self.greeted = true;
        if self.head.is_some() != (frame.kind == frame::CONTINUATION) {
            return None;
        }
        let of_connection = matches!(frame.kind, frame::SETTINGS | frame::PING | frame::GOAWAY);
        let of_stream = matches!(frame.kind, frame::DATA | frame::HEADERS | frame::RST_STREAM);
        if (of_connection && frame.stream != 0) || (of_stream && frame.stream == 0) {
            return None;
        }
        match frame.kind {
            frame::DATA => self.content(frame, done),
            frame::HEADERS if frame.has(frame::END_HEADERS) => {
                let end = frame.has(frame::END_STREAM);
                self.fields(frame.stream, end, frame.inner()?, done)
            }
            frame::HEADERS => {
                self.head = Some((frame.stream, frame.has(frame::END_STREAM), frame.inner()?.to_vec()));
                Some(())
            }
            frame::CONTINUATION => {
                let (stream, end, mut block) = self.head.take()?;
                block.extend_from_slice(frame.content);
                if stream != frame.stream || block.len() > LONGEST_HEAD {
                    return None;
                }
                if frame.has(frame::END_HEADERS) {
                    return self.fields(stream, end, &block, done);
                }
                self.head = Some((stream, end, block));
                Some(())
            }
            frame::RST_STREAM => {
                let code = frame.number()?;
                if let Some(place) = self.place(frame.stream) {
                    done.push(self.take(place).reset(code));
                }
                Some(())
            }
            frame::SETTINGS => self.settings(frame),
            // Server push is disabled, so this frame violates the protocol.
            frame::PUSH_PROMISE => None,
            frame::PING => {
                if frame.content.len() != 8 {
                    return None;
                }
                if !frame.has(frame::ACK) {
                    frame::write(frame::PING, frame::ACK, 0, frame.content, &mut self.outgoing);
                }
                Some(())
            }
            frame::GOAWAY => self.goes_away(frame, done),
            frame::WINDOW_UPDATE => self.more_room(frame),
            // Frames of unknown types must be ignored.
            _ => Some(()),
        }
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.streams.iter().position(|stream| stream.id == id)
    }

    /// Removes a stream.
    fn take(&mut self, place: usize) -> Stream {
        self.served = true;
        self.streams.swap_remove(place)
    }

    fn content(&mut self, frame: Frame<'_>, done: &mut Vec<FinishedRequest>) -> Option<()> {
        let content = frame.inner()?;
        let length = frame.content.len() as u32;
        self.taken += length;
        if self.taken >= WINDOW / 2 {
            frame::of_number(frame::WINDOW_UPDATE, 0, self.taken, &mut self.outgoing);
            self.taken = 0;
        }
        // Frames of requests that were given up may still arrive.
        let Some(place) = self.place(frame.stream) else { return Some(()) };
        let stream = &mut self.streams[place];
        stream.content(content)?;
        if frame.has(frame::END_STREAM) {
            self.end(place, done);
            return Some(());
        }
        stream.taken += length;
        if stream.taken >= WINDOW / 2 {
            frame::of_number(frame::WINDOW_UPDATE, stream.id, stream.taken, &mut self.outgoing);
            stream.taken = 0;
        }
        Some(())
    }

    fn fields(&mut self, id: u32, end: bool, block: &[u8], done: &mut Vec<FinishedRequest>) -> Option<()> {
        let Some(place) = self.place(id) else {
            // The request was given up, but the block still changes the decoder's table.
            return self.decoder.decode(block, |_, _| {});
        };
        let stream = &mut self.streams[place];
        let trailers = stream.status > 0;
        self.decoder.decode(block, |name, value| {
            if !trailers {
                stream.field(name, value);
            }
        })?;
        match stream.status {
            0 => return None,
            // A final answer must follow an interim one.
            100..200 if end => return None,
            100..200 => stream.begin_anew(),
            _ if end => self.end(place, done),
            _ if trailers => return None,
            _ => {}
        }
        Some(())
    }

    /// Handles the end of a stream: its answer is complete.
    fn end(&mut self, place: usize, done: &mut Vec<FinishedRequest>) {
        let stream = self.take(place);
        if stream.uploads() {
            frame::of_number(frame::RST_STREAM, stream.id, frame::CANCEL, &mut self.outgoing);
        }
        done.push(stream.answered());
    }

    fn settings(&mut self, frame: Frame<'_>) -> Option<()> {
        if frame.has(frame::ACK) {
            return frame.content.is_empty().then_some(());
        }
        // A server that states no limit allows any number of streams.
        self.allowed.get_or_insert(usize::MAX);
        for (name, value) in frame.settings()? {
            match name {
                frame::HEADER_TABLE_SIZE => self.encoder.limit(value as usize),
                frame::MAX_CONCURRENT_STREAMS => self.allowed = Some(value as usize),
                frame::INITIAL_WINDOW_SIZE if value > LAST => return None,
                frame::INITIAL_WINDOW_SIZE => {
                    let more = i64::from(value) - self.room_of_stream;
                    self.room_of_stream = i64::from(value);
                    self.streams.iter_mut().for_each(|stream| stream.room += more);
                }
                frame::MAX_FRAME_SIZE if (frame::LONGEST..1 << 24).contains(&(value as usize)) => {
                    self.longest = value as usize;
                }
                frame::MAX_FRAME_SIZE => return None,
                _ => {}
            }
        }
        frame::write(frame::SETTINGS, frame::ACK, 0, &[], &mut self.outgoing);
        self.upload();
        Some(())
    }

    fn more_room(&mut self, frame: Frame<'_>) -> Option<()> {
        let more = i64::from(frame.number()? & LAST);
        let room = match self.place(frame.stream) {
            _ if frame.stream == 0 => &mut self.room,
            Some(place) => &mut self.streams[place].room,
            // The stream was answered or given up.
            None => return Some(()),
        };
        *room += more;
        if more == 0 || *room > i64::from(LAST) {
            return None;
        }
        self.upload();
        Some(())
    }

    fn upload(&mut self) {
        for stream in &mut self.streams {
            stream.upload(&mut self.room, self.longest, &mut self.outgoing);
        }
    }

    /// Handles GOAWAY: the server serves no stream after the one that it names.
    fn goes_away(&mut self, frame: Frame<'_>, done: &mut Vec<FinishedRequest>) -> Option<()> {
        let (last, code) = frame.content.get(..8)?.split_at(4);
        let (last, code) = (frame::number(last) & LAST, frame::number(code));
        self.closing = true;
        let (served, refused) = std::mem::take(&mut self.streams).into_iter().partition(|s| s.id <= last);
        self.streams = served;
        let refused: Vec<Stream> = refused;
        done.extend(refused.into_iter().map(|stream| stream.refused(code)));
        Some(())
    }

    /// Gives up the requests that were sent at or before `sent_before`.
    pub(crate) fn give_up(&mut self, sent_before: u64, done: &mut Vec<FinishedRequest>) {
        let (late, rest): (Vec<Stream>, Vec<Stream>) = std::mem::take(&mut self.streams)
            .into_iter()
            .partition(|stream| stream.exchange.sent <= sent_before);
        self.streams = rest;
        for mut stream in late {
            frame::of_number(frame::RST_STREAM, stream.id, frame::CANCEL, &mut self.outgoing);
            // The request counts as unanswered, even if a part of the answer has arrived.
            let cause = (std::mem::take(&mut stream.status) > 0).then_some(BEGUN);
            done.push(FinishedRequest { cause, ..stream.failed(Failure::TimedOut) });
        }
    }

    /// The class of failure of a request in flight when the connection ends.
    pub(crate) fn at_end(&self, exchange: &Exchange) -> Failure {
        let stream = self.streams.iter().find(|stream| stream.exchange == *exchange);
        stream.map_or(Failure::ClosedEarly, Stream::at_end)
    }

    /// Takes the bytes that wait to be sent.
    pub(crate) fn take_outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// Returns the memory of sent bytes for reuse.
    pub(crate) fn give_back(&mut self, mut bytes: Vec<u8>) {
        if self.outgoing.is_empty() {
            bytes.clear();
            self.outgoing = bytes;
        }
    }
}
