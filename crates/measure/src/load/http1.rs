//! Finds where one HTTP/1.1 response ends and the next begins (RFC 9112, section 6), in bytes that come in any
//! portions.

use std::mem::MaybeUninit;

/// The facts of a complete response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The status code.
    pub(crate) status: u16,
    /// The number of bytes of content, without the framing.
    pub(crate) body: u64,
    /// Whether the connection may carry another request.
    pub(crate) keep_alive: bool,
}

/// The error that bytes are not an HTTP response, with the reason as a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Garbage(pub(crate) &'static str);

/// What bytes of another protocol are refused for.
pub(crate) const FOREIGN: [&str; 2] = ["it does not begin with HTTP/1", "its status line is malformed"];

/// What the end of the stream means for the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// No byte of the response has arrived.
    Nothing,
    /// The response is incomplete.
    Half,
    /// The end of the stream completes the response.
    Complete(Head),
}

/// The cause of failure of a request that is given up in the middle of its answer.
pub(crate) const BEGUN: &str = "the answer had begun";

/// The longest head that is accepted, in bytes.
const LONGEST_HEAD: usize = 256 * 1024;

/// The number of bytes of content that are kept for a check. Further content is only counted.
pub(crate) const KEPT: usize = 1 << 20;

/// The reader of one connection. Between responses it holds no data.
#[derive(Debug, Default)]
pub(crate) struct ResponseReader {
    state: ResponseState,
    head: Head,
    /// The bytes of an incomplete head, or of an incomplete line between chunks.
    pending: Vec<u8>,
    /// The last head that arrived in one portion, parsed. The next head is often the same.
    last: Option<(Vec<u8>, Parsed)>,
    /// The head and the content of the response, if they are kept.
    kept_head: Vec<u8>,
    kept_body: Vec<u8>,
}

/// What is expected of the response to a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expect {
    /// Whether the response has no content, whatever its head says, because the request was HEAD.
    pub(crate) no_body: bool,
    /// Whether head and content are kept, because a check needs them.
    pub(crate) keep: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ResponseState {
    #[default]
    Head,
    Counted(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
    UntilEnd,
}

#[derive(Clone, Copy, Debug)]
enum Framing {
    None,
    Counted(u64),
    Chunked,
    UntilEnd,
}

impl ResponseReader {
    /// Processes `bytes`. Returns how many of them belong to the response, and the response if it is complete.
    pub(crate) fn feed(&mut self, bytes: &[u8], expect: Expect) -> Result<(usize, Option<Head>), Garbage> {
        let mut at = 0;
        loop {
            match self.state {
                ResponseState::Head => match self.feed_head(&bytes[at..], expect)? {
                    (used, false) => return Ok((at + used, None)),
                    (used, true) => {
                        at += used;
                        if self.state == ResponseState::Head {
                            return Ok((at, Some(self.finish())));
                        }
                    }
                },
                ResponseState::Counted(left) => {
                    at += self.content(&bytes[at..], left, expect);
                    match self.state {
                        ResponseState::Counted(0) => return Ok((at, Some(self.finish()))),
                        _ => return Ok((at, None)),
                    }
                }
                ResponseState::UntilEnd => {
                    self.content(&bytes[at..], u64::MAX, expect);
                    self.state = ResponseState::UntilEnd;
                    return Ok((bytes.len(), None));
                }
                ResponseState::Chunk(left) => {
                    at += self.content(&bytes[at..], left, expect);
                    match self.state {
                        ResponseState::Counted(0) => self.state = ResponseState::ChunkEnd,
                        ResponseState::Counted(left) => {
                            self.state = ResponseState::Chunk(left);
                            return Ok((at, None));
                        }
                        _ => {}
                    }
                }
                ResponseState::ChunkSize | ResponseState::ChunkEnd | ResponseState::Trailer => {
                    let (used, line) = self.line(&bytes[at..])?;
                    at += used;
                    let Some(line) = line else { return Ok((at, None)) };
                    if self.between_chunks(&line)? {
                        return Ok((at, Some(self.finish())));
                    }
                }
            }
        }
    }

    /// What the end of the stream means at this point.
    pub(crate) fn end(&mut self) -> AtEnd {
        match self.state {
            ResponseState::Head if !self.has_begun() => AtEnd::Nothing,
            ResponseState::UntilEnd => AtEnd::Complete(self.finish()),
            _ => AtEnd::Half,
        }
    }

    /// The missing part of an answer that has begun, as a clause.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        match self.state {
            ResponseState::Head if !self.has_begun() => None,
            ResponseState::UntilEnd => Some(
                "the answer has no length and no chunks, so it ends with the connection, which stayed open",
            ),
            _ => Some(BEGUN),
        }
    }

    /// Whether a part of the response, or an interim response, has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        self.state != ResponseState::Head || !self.pending.is_empty() || self.head.status > 0
    }

    /// Discards a partial response.
    pub(crate) fn reset(&mut self) {
        self.state = ResponseState::Head;
        self.head = Head::default();
        self.pending.clear();
        self.kept_head.clear();
        self.kept_body.clear();
    }

    /// Takes the kept head and content while the answer is examined; [`ResponseReader::give_back`] returns the memory.
    pub(crate) fn take_kept(&mut self) -> (Vec<u8>, Vec<u8>) {
        (std::mem::take(&mut self.kept_head), std::mem::take(&mut self.kept_body))
    }

    /// Returns the memory of head and content, so that the next answer needs no new memory.
    pub(crate) fn give_back(&mut self, head: Vec<u8>, body: Vec<u8>) {
        (self.kept_head, self.kept_body) = (head, body);
    }

    fn finish(&mut self) -> Head {
        self.state = ResponseState::Head;
        self.pending.clear();
        std::mem::take(&mut self.head)
    }

    /// Reads the head. It nearly always arrives in one portion, and is then parsed in place.
    fn feed_head(&mut self, bytes: &[u8], expect: Expect) -> Result<(usize, bool), Garbage> {
        if bytes.is_empty() {
            return Ok((0, false));
        }
        let before = self.pending.len();
        let parsed = if before == 0 {
            self.parse_or_recall(bytes)?
        } else {
            self.pending.extend_from_slice(bytes);
            parse_head(&self.pending)?
        };
        let Some(parsed) = parsed else {
            if before == 0 {
                self.pending.extend_from_slice(bytes);
            }
            if self.pending.len() > LONGEST_HEAD {
                return Err(Garbage("its head does not end"));
            }
            return Ok((bytes.len(), false));
        };
        if expect.keep {
            let whole = if before == 0 { bytes } else { &self.pending };
            self.kept_head.clear();
            self.kept_head.extend_from_slice(&whole[..parsed.length]);
            unfold(&mut self.kept_head);
            self.kept_body.clear();
        }
        let used = parsed.length - before;
        self.pending.clear();
        if (100..200).contains(&parsed.status) {
            if parsed.status == 101 {
                return Err(Garbage("it switches to another protocol"));
            }
            // This was an interim response; the final one follows.
            self.head.status = parsed.status;
            return self.feed_head(&bytes[used..], expect).map(|(more, done)| (used + more, done));
        }
        self.head = Head { status: parsed.status, body: 0, keep_alive: parsed.keep_alive };
        let bodiless = expect.no_body || matches!(parsed.status, 204 | 304);
        self.state = match parsed.framing {
            _ if bodiless => ResponseState::Head,
            Framing::None | Framing::Counted(0) => ResponseState::Head,
            Framing::Counted(length) => ResponseState::Counted(length),
            Framing::Chunked => ResponseState::ChunkSize,
            Framing::UntilEnd => {
                self.head.keep_alive = false;
                ResponseState::UntilEnd
            }
        };
        Ok((used, true))
    }

    /// Parses the head at the beginning of `bytes`. A head does not depend on what follows it, so if the bytes start
    /// with the last head, its meaning is reused.
    fn parse_or_recall(&mut self, bytes: &[u8]) -> Result<Option<Parsed>, Garbage> {
        if let Some((head, parsed)) = &self.last
            && bytes.starts_with(head)
        {
            return Ok(Some(*parsed));
        }
        let parsed = parse_head(bytes)?;
        if let Some(parsed) = parsed {
            let (head, says) = self.last.get_or_insert_with(|| (Vec::new(), parsed));
            head.clear();
            head.extend_from_slice(&bytes[..parsed.length]);
            *says = parsed;
        }
        Ok(parsed)
    }

    /// Takes up to `left` bytes of content, and stores in `state` how many bytes remain.
    fn content(&mut self, bytes: &[u8], left: u64, expect: Expect) -> usize {
        let used = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        if expect.keep {
            let room = KEPT.saturating_sub(self.kept_body.len()).min(used);
            self.kept_body.extend_from_slice(&bytes[..room]);
        }
        self.head.body += used as u64;
        self.state = ResponseState::Counted(left - used as u64);
        used
    }

    /// Returns a line without its end, once it is complete.
    fn line(&mut self, bytes: &[u8]) -> Result<(usize, Option<Vec<u8>>), Garbage> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            self.pending.extend_from_slice(bytes);
            if self.pending.len() > LONGEST_HEAD {
                return Err(Garbage("a line between its chunks does not end"));
            }
            return Ok((bytes.len(), None));
        };
        let mut line = std::mem::take(&mut self.pending);
        line.extend_from_slice(&bytes[..end]);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok((end + 1, Some(line)))
    }

    /// Processes a line between chunks; true if it was the last line of the response.
    fn between_chunks(&mut self, line: &[u8]) -> Result<bool, Garbage> {
        match self.state {
            ResponseState::ChunkSize => {
                let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
                let text = std::str::from_utf8(digits)
                    .map_err(|_| Garbage("the size of a chunk is not a number"))?;
                if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    return Err(Garbage("the size of a chunk is not a number"));
                }
                let size = u64::from_str_radix(text, 16).map_err(|_| Garbage("a chunk is too large"))?;
                self.state = if size == 0 { ResponseState::Trailer } else { ResponseState::Chunk(size) };
                Ok(false)
            }
            ResponseState::ChunkEnd if line.is_empty() => {
                self.state = ResponseState::ChunkSize;
                Ok(false)
            }
            ResponseState::ChunkEnd => Err(Garbage("a chunk is longer than it says")),
            _ => Ok(line.is_empty()),
        }
    }
}

/// The parts of a parsed head that matter.
#[derive(Clone, Copy, Debug)]
struct Parsed {
    length: usize,
    status: u16,
    keep_alive: bool,
    framing: Framing,
}

fn parse_head(bytes: &[u8]) -> Result<Option<Parsed>, Garbage> {
    let mut headers = [const { MaybeUninit::uninit() }; 128];
    let mut response = httparse::Response::new(&mut []);
    let status = httparse::ParserConfig::default()
        .allow_obsolete_multiline_headers_in_responses(true)
        .parse_response_with_uninit_headers(&mut response, bytes, &mut headers)
        .map_err(|error| {
            Garbage(match error {
                httparse::Error::TooManyHeaders => "it has more than 128 header lines",
                httparse::Error::Version => FOREIGN[0],
                httparse::Error::Status => FOREIGN[1],
                _ => "a header line is malformed",
            })
        })?;
    let httparse::Status::Complete(length) = status else { return Ok(None) };
    let mut keep_alive = response.version == Some(1);
    let mut content_length = None;
    let mut transfer_encoding: Option<bool> = None;
    for header in response.headers.iter() {
        match header.name.len() {
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                // Equal values may be repeated, in several lines or in one (RFC 9110, section 8.6).
                for value in header.value.split(|byte| *byte == b',') {
                    let stated = length_of(value)?;
                    if content_length.is_some_and(|earlier| earlier != stated) {
                        return Err(Garbage("it states two lengths"));
                    }
                    content_length = Some(stated);
                }
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                let last = header.value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
                transfer_encoding = Some(last.trim_ascii().eq_ignore_ascii_case(b"chunked"));
            }
            10 if header.name.eq_ignore_ascii_case("connection") => {
                for option in header.value.split(|byte| *byte == b',') {
                    let option = option.trim_ascii();
                    if option.eq_ignore_ascii_case(b"close") {
                        keep_alive = false;
                    } else if option.eq_ignore_ascii_case(b"keep-alive") {
                        keep_alive = true;
                    }
                }
            }
            _ => {}
        }
    }
    let framing = match (transfer_encoding, content_length) {
        (Some(true), _) => Framing::Chunked,
        (Some(false), _) | (None, None) => Framing::UntilEnd,
        (None, Some(0)) => Framing::None,
        (None, Some(length)) => Framing::Counted(length),
    };
    Ok(Some(Parsed { length, status: response.code.unwrap_or(0), keep_alive, framing }))
}

fn length_of(value: &[u8]) -> Result<u64, Garbage> {
    let value = value.trim_ascii();
    if value.is_empty() || value.len() > 18 || !value.iter().all(u8::is_ascii_digit) {
        return Err(Garbage("the length that it states is not a number"));
    }
    Ok(value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// Replaces the end of each line that the next one continues by spaces (obs-fold; RFC 9112, section 5.2).
fn unfold(head: &mut [u8]) {
    for next in 1..head.len() {
        if head[next - 1] == b'\n' && matches!(head[next], b' ' | b'\t') {
            head[next - 1] = b' ';
            if next > 1 && head[next - 2] == b'\r' {
                head[next - 2] = b' ';
            }
        }
    }
}

/// The value of a header in a kept head.
pub(crate) fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    headers(head, name).next()
}

/// Every value of a header in a kept head.
pub(crate) fn headers<'a>(head: &'a [u8], name: &str) -> impl Iterator<Item = &'a [u8]> {
    head.split(|byte| *byte == b'\n').skip(1).filter_map(move |line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        line[..colon].eq_ignore_ascii_case(name.as_bytes()).then(|| line[colon + 1..].trim_ascii())
    })
}

#[cfg(test)]
mod damaged;

#[cfg(test)]
mod tests;
