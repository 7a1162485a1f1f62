//! Reads and writes frames of HTTP/2 (RFC 9113, section 4).

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

/// The flag of the last frame of a stream; in SETTINGS and PING the same bit marks an acknowledgement.
pub(super) const END_STREAM: u8 = 1;
pub(super) const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;

pub(super) const ENABLE_PUSH: u16 = 2;
pub(super) const HEADER_TABLE_SIZE: u16 = 1;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(super) const MAX_FRAME_SIZE: u16 = 5;

/// The error code that is sent for requests that are given up.
pub(super) const CANCEL: u32 = 8;
pub(super) const REFUSED_STREAM: u32 = 7;
pub(super) const NO_ERROR: u32 = 0;

/// The names of the error codes (RFC 9113, section 7).
pub(super) const ERRORS: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

/// The longest content of a frame, in bytes, that an end may send unless the other end allows more.
pub(super) const LONGEST: usize = 16_384;

/// The initial flow-control window of both ends, in bytes.
pub(super) const WINDOW: u32 = 65_535;

/// The bytes that a client sends first.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const HEAD: usize = 9;

/// A frame that has arrived completely.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) content: &'a [u8],
}

/// The error that a frame is longer than allowed.
#[derive(Debug)]
pub(super) struct TooLong;

impl<'a> Frame<'a> {
    /// The first frame of the bytes and its length; `None` if it is incomplete.
    pub(super) fn first(bytes: &'a [u8]) -> Result<Option<(Frame<'a>, usize)>, TooLong> {
        let Some((head, rest)) = bytes.split_at_checked(HEAD) else { return Ok(None) };
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        if length > LONGEST {
            return Err(TooLong);
        }
        let Some(content) = rest.get(..length) else { return Ok(None) };
        let stream = number(&head[5..]) & 0x7fff_ffff;
        Ok(Some((Frame { kind: head[3], flags: head[4], stream, content }, HEAD + length)))
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The content of DATA or HEADERS without padding and priority; `None` if it is malformed.
    pub(super) fn inner(&self) -> Option<&'a [u8]> {
        let mut content = self.content;
        if self.has(PADDED) {
            let (padding, rest) = content.split_first()?;
            content = rest.get(..rest.len().checked_sub(usize::from(*padding))?)?;
        }
        if self.kind == HEADERS && self.has(PRIORITY) {
            content = content.get(5..)?;
        }
        Some(content)
    }

    /// The number in RST_STREAM or WINDOW_UPDATE; `None` if the length is wrong.
    pub(super) fn number(&self) -> Option<u32> {
        (self.content.len() == 4).then(|| number(self.content))
    }

    /// The pairs of SETTINGS; `None` if the length is wrong.
    pub(super) fn settings(&self) -> Option<impl Iterator<Item = (u16, u32)> + use<'a>> {
        let pairs = self.content.chunks_exact(6);
        let whole = pairs.remainder().is_empty();
        whole.then(|| pairs.map(|pair| (u16::from_be_bytes([pair[0], pair[1]]), number(&pair[2..]))))
    }
}

/// The first four bytes as a big-endian number.
pub(super) fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn head(length: usize, kind: u8, flags: u8, stream: u32) -> [u8; HEAD] {
    let ([_, a, b, c], [d, e, f, g]) = ((length as u32).to_be_bytes(), stream.to_be_bytes());
    [a, b, c, kind, flags, d, e, f, g]
}

/// Appends a frame to `out`.
pub(super) fn write(kind: u8, flags: u8, stream: u32, content: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&head(content.len(), kind, flags, stream));
    out.extend_from_slice(content);
}

/// Appends a frame that carries one number.
pub(super) fn of_number(kind: u8, stream: u32, value: u32, out: &mut Vec<u8>) {
    write(kind, 0, stream, &value.to_be_bytes(), out);
}

/// Turns the block of fields from `from` on into a HEADERS frame, and CONTINUATION frames if it is too long for one.
pub(super) fn headers(from: usize, end: bool, stream: u32, out: &mut Vec<u8>) {
    let length = out.len() - from;
    let flags = if end { END_STREAM } else { 0 };
    if length <= LONGEST {
        return out[from - HEAD..from].copy_from_slice(&head(length, HEADERS, flags | END_HEADERS, stream));
    }
    let block = out.split_off(from);
    out.truncate(from - HEAD);
    let last = block.len().div_ceil(LONGEST) - 1;
    for (place, piece) in block.chunks(LONGEST).enumerate() {
        let (kind, first) = if place == 0 { (HEADERS, flags) } else { (CONTINUATION, 0) };
        write(kind, first | if place == last { END_HEADERS } else { 0 }, stream, piece, out);
    }
}

/// Reserves room for the frame head that [`headers`] writes. Returns the start of the block.
pub(super) fn room(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; HEAD]);
    out.len()
}
