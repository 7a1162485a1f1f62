//! The tables of header fields that both ends share (RFC 7541, section 2.3).

use std::collections::VecDeque;

/// The static table (RFC 7541, appendix A); its first index is 1.
#[rustfmt::skip]
const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"), (":scheme", "http"),
    (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""), ("accept-encoding", "gzip, deflate"), ("accept-language", ""),
    ("accept-ranges", ""), ("accept", ""), ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""),
    ("cache-control", ""), ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""), ("etag", ""), ("expect", ""),
    ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""), ("max-forwards", ""),
    ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""), ("referer", ""), ("refresh", ""), ("retry-after", ""),
    ("server", ""), ("set-cookie", ""), ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""),
    ("vary", ""), ("via", ""), ("www-authenticate", ""),
];

/// The initial size of the dynamic table in bytes. It is also the largest size that is used here.
pub(super) const SIZE: usize = 4096;

/// The number of bytes that a field takes in the table besides those of its name and value.
const ENTRY: usize = 32;

/// A field: the bytes of name and value, and the length of the name.
#[derive(Default)]
struct HeaderField {
    bytes: Vec<u8>,
    name: usize,
}

/// The dynamic table: the fields that were sent on a connection in one direction, the latest first.
pub(super) struct DynamicTable {
    entries: VecDeque<HeaderField>,
    size: usize,
    most: usize,
    /// Evicted entries, whose memory new ones use.
    spare: Vec<HeaderField>,
}

impl DynamicTable {
    pub(super) fn new() -> DynamicTable {
        DynamicTable { entries: VecDeque::new(), size: 0, most: SIZE, spare: Vec::new() }
    }

    /// The field with this index, in the static or the dynamic table.
    pub(super) fn field(&self, number: usize) -> Option<(&[u8], &[u8])> {
        if let Some((name, value)) = STATIC.get(number.checked_sub(1)?) {
            return Some((name.as_bytes(), value.as_bytes()));
        }
        let entry = self.entries.get(number - STATIC.len() - 1)?;
        Some(entry.bytes.split_at(entry.name))
    }

    /// The index of a field in the dynamic table.
    pub(super) fn find(&self, name: &[u8], value: &[u8]) -> Option<usize> {
        let same = |entry: &HeaderField| {
            entry.name == name.len() && entry.bytes.split_at(entry.name) == (name, value)
        };
        self.entries.iter().position(same).map(|place| STATIC.len() + 1 + place)
    }

    /// Adds a field, and evicts older ones to make room. A field that is larger than the table empties it.
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY;
        self.shrink(self.most.saturating_sub(size));
        if size > self.most {
            return;
        }
        let mut entry = self.spare.pop().unwrap_or_default();
        entry.bytes.clear();
        entry.bytes.extend_from_slice(name);
        entry.bytes.extend_from_slice(value);
        entry.name = name.len();
        self.entries.push_front(entry);
        self.size += size;
    }

    /// Sets the largest size of the table in bytes.
    pub(super) fn resize(&mut self, most: usize) {
        self.most = most;
        self.shrink(most);
    }

    fn shrink(&mut self, most: usize) {
        while self.size > most {
            let Some(entry) = self.entries.pop_back() else { return };
            self.size -= entry.bytes.len() + ENTRY;
            if self.spare.len() < 16 {
                self.spare.push(entry);
            }
        }
    }
}

/// The index of a field in the static table.
pub(super) fn fixed(name: &str, value: &str) -> Option<usize> {
    STATIC.iter().position(|field| *field == (name, value)).map(|place| place + 1)
}

/// The index of the first field with this name in the static table.
pub(super) fn fixed_name(name: &str) -> Option<usize> {
    STATIC.iter().position(|(known, _)| *known == name).map(|place| place + 1)
}
