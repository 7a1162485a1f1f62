//! Frames (RFC 9113, section 4).

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

/// The flag of the last frame of a stream, and of answers to SETTINGS and PING.
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

/// The error code of requests that are given up.
pub(super) const CANCEL: u32 = 8;

/// The longest content of a frame that either end may send without being allowed more.
pub(super) const LONGEST: usize = 16_384;

/// The windows that both ends begin with.
pub(super) const WINDOW: u32 = 65_535;

/// What a client sends first.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const HEAD: usize = 9;

/// A frame that has come as a whole.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) content: &'a [u8],
}

/// The content is longer than was allowed.
#[derive(Debug)]
pub(super) struct TooLong;

impl<'a> Frame<'a> {
    /// The frame that the bytes begin with, and how many bytes it takes; none where its end has not come yet.
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

    /// The content of DATA or HEADERS without padding and priority; none where it is malformed.
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

    /// The single number that RST_STREAM and WINDOW_UPDATE carry.
    pub(super) fn number(&self) -> Option<u32> {
        (self.content.len() == 4).then(|| number(self.content))
    }

    /// The pairs of SETTINGS.
    pub(super) fn settings(&self) -> Option<impl Iterator<Item = (u16, u32)> + use<'a>> {
        let pairs = self.content.chunks_exact(6);
        let whole = pairs.remainder().is_empty();
        whole.then(|| pairs.map(|pair| (u16::from_be_bytes([pair[0], pair[1]]), number(&pair[2..]))))
    }
}

/// The first four bytes as a number.
pub(super) fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn head(length: usize, kind: u8, flags: u8, stream: u32) -> [u8; HEAD] {
    let ([_, a, b, c], [d, e, f, g]) = ((length as u32).to_be_bytes(), stream.to_be_bytes());
    [a, b, c, kind, flags, d, e, f, g]
}

/// Adds a frame.
pub(super) fn write(kind: u8, flags: u8, stream: u32, content: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&head(content.len(), kind, flags, stream));
    out.extend_from_slice(content);
}

/// A frame that carries a single number.
pub(super) fn of_number(kind: u8, stream: u32, value: u32, out: &mut Vec<u8>) {
    write(kind, 0, stream, &value.to_be_bytes(), out);
}

/// The block of fields that begins at `from` becomes HEADERS, and CONTINUATION where it is too long for one frame.
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

/// Leaves room for the head of [`headers`]. Returns where the block begins.
pub(super) fn room(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; HEAD]);
    out.len()
}
