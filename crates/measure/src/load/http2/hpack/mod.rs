//! Encodes and decodes header fields of HTTP/2 (HPACK, RFC 7541).

mod huffman;
mod table;

use table::{DynamicTable, SIZE};

/// A header field of a request. All that does not depend on the connection is already encoded.
pub(crate) struct PreparedField {
    name: Vec<u8>,
    value: Vec<u8>,
    /// The index of the same field in the static table.
    whole: Option<usize>,
    /// The index of a field with this name in the static table, or 0.
    of_name: usize,
    indexing: Indexing,
    /// The encoded strings: the name if it has no index, and the value.
    strings: Vec<u8>,
}

/// Whether the other end shall store a field in its table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Indexing {
    Incremental,
    Without,
    /// No intermediary may store the field either.
    Never,
}

/// Fields that are not worth storing, because they differ from request to request. Other clients (nghttp2) treat them
/// alike.
const ONCE: [&str; 8] = [
    ":path",
    "age",
    "content-length",
    "etag",
    "if-modified-since",
    "if-none-match",
    "location",
    "set-cookie",
];

/// The length below which cookies are never stored, because they could be guessed from the lengths of messages.
const SECRET: usize = 20;

impl PreparedField {
    /// Prepares a field. Its name must be in lower case.
    pub(crate) fn new(name: &str, value: &str) -> PreparedField {
        let indexing = match name {
            "authorization" => Indexing::Never,
            "cookie" if value.len() < SECRET => Indexing::Never,
            _ if ONCE.contains(&name) => Indexing::Without,
            _ => Indexing::Incremental,
        };
        let of_name = table::fixed_name(name).unwrap_or(0);
        let mut strings = Vec::new();
        if of_name == 0 {
            string(name.as_bytes(), &mut strings);
        }
        string(value.as_bytes(), &mut strings);
        let whole = table::fixed(name, value);
        PreparedField { name: name.into(), value: value.into(), whole, of_name, indexing, strings }
    }
}

/// Encodes the fields of requests on one connection.
pub(crate) struct Encoder {
    table: DynamicTable,
    /// The new size of the table, if the other end has not been informed of it yet.
    resized: Option<usize>,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder { table: DynamicTable::new(), resized: None }
    }

    /// Limits the table to the number of bytes that the other end stores.
    pub(crate) fn limit(&mut self, most: usize) {
        let most = most.min(SIZE);
        self.table.resize(most);
        self.resized = Some(most);
    }

    /// Appends the encoded fields to `out`.
    pub(crate) fn encode<'a>(&mut self, fields: impl Iterator<Item = &'a PreparedField>, out: &mut Vec<u8>) {
        if let Some(most) = self.resized.take() {
            integer(most, 5, 0x20, out);
        }
        for field in fields {
            let known = field.whole.or_else(|| match field.indexing {
                Indexing::Incremental => self.table.find(&field.name, &field.value),
                Indexing::Without | Indexing::Never => None,
            });
            if let Some(number) = known {
                integer(number, 7, 0x80, out);
                continue;
            }
            match field.indexing {
                Indexing::Incremental => {
                    integer(field.of_name, 6, 0x40, out);
                    self.table.insert(&field.name, &field.value);
                }
                Indexing::Without => integer(field.of_name, 4, 0, out),
                Indexing::Never => integer(field.of_name, 4, 0x10, out),
            }
            out.extend_from_slice(&field.strings);
        }
    }
}

/// Decodes the fields of answers on one connection.
pub(crate) struct Decoder {
    table: DynamicTable,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    pub(crate) fn new() -> Decoder {
        Decoder { table: DynamicTable::new(), name: Vec::new(), value: Vec::new() }
    }

    /// Calls `on_field` for each field of a block, in order; `None` if the block is malformed.
    pub(crate) fn decode(&mut self, block: &[u8], mut on_field: impl FnMut(&[u8], &[u8])) -> Option<()> {
        let mut rest = block;
        while let Some(first) = rest.first().copied() {
            if first & 0x80 != 0 {
                let (name, value) = self.table.field(read_integer(&mut rest, 7)?)?;
                on_field(name, value);
                continue;
            }
            if first & 0xe0 == 0x20 {
                let most = read_integer(&mut rest, 5)?;
                if most > SIZE {
                    return None;
                }
                self.table.resize(most);
                continue;
            }
            let remembered = first & 0x40 != 0;
            let number = read_integer(&mut rest, if remembered { 6 } else { 4 })?;
            self.name.clear();
            match number {
                0 => read_string(&mut rest, &mut self.name)?,
                number => self.name.extend_from_slice(self.table.field(number)?.0),
            }
            self.value.clear();
            read_string(&mut rest, &mut self.value)?;
            if remembered {
                self.table.insert(&self.name, &self.value);
            }
            on_field(&self.name, &self.value);
        }
        Some(())
    }
}

/// Encodes an integer whose first bits share a byte with `upper` (RFC 7541, section 5.1).
fn integer(value: usize, bits: u32, upper: u8, out: &mut Vec<u8>) {
    let most = (1_usize << bits) - 1;
    if value < most {
        return out.push(upper | value as u8);
    }
    out.push(upper | most as u8);
    let mut left = value - most;
    while left >= 128 {
        out.push((left % 128) as u8 | 0x80);
        left /= 128;
    }
    out.push(left as u8);
}

fn read_integer(rest: &mut &[u8], bits: u32) -> Option<usize> {
    let mut next = || {
        let (first, behind) = rest.split_first()?;
        *rest = behind;
        Some(*first)
    };
    let most = (1_usize << bits) - 1;
    let mut value = usize::from(next()?) & most;
    if value < most {
        return Some(value);
    }
    // No integer in a header needs more than 28 bits after the first byte.
    for shift in [0, 7, 14, 21] {
        let byte = next()?;
        value += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Encodes a string in the shorter of its two forms (RFC 7541, section 5.2).
fn string(text: &[u8], out: &mut Vec<u8>) {
    let coded = huffman::length(text);
    if coded < text.len() {
        integer(coded, 7, 0x80, out);
        huffman::encode(text, out);
    } else {
        integer(text.len(), 7, 0, out);
        out.extend_from_slice(text);
    }
}

fn read_string(rest: &mut &[u8], out: &mut Vec<u8>) -> Option<()> {
    let coded = rest.first()? & 0x80 != 0;
    let length = read_integer(rest, 7)?;
    let (text, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    if coded {
        return huffman::decode(text, out);
    }
    out.extend_from_slice(text);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
        let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("hex");
        digits.chunks(2).map(byte).collect()
    }

    fn decoded(decoder: &mut Decoder, block: &str) -> Option<String> {
        let mut text = Vec::new();
        decoder.decode(&hex(block), |name, value| {
            text.push(format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
        })?;
        Some(text.join(" "))
    }

    #[test]
    fn the_requests_of_the_standard_are_written() {
        let mut encoder = Encoder::new();
        let common =
            [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
        let mut send = |more: &[(&str, &str)]| {
            let fields: Vec<PreparedField> =
                common.iter().chain(more).map(|(name, value)| PreparedField::new(name, value)).collect();
            let mut block = Vec::new();
            encoder.encode(fields.iter(), &mut block);
            block
        };
        // RFC 7541, C.4.1 and C.4.2.
        assert_eq!(send(&[]), hex("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff"));
        assert_eq!(send(&[("cache-control", "no-cache")]), hex("8286 84be 5886 a8eb 1064 9cbf"));
        encoder.limit(0);
        let mut block = Vec::new();
        encoder.encode([PreparedField::new("a", "b")].iter(), &mut block);
        assert_eq!(block, hex("20 40 01 61 01 62"));
    }

    #[test]
    fn the_answers_of_the_standard_are_read() {
        let mut decoder = Decoder::new();
        decoder.table.resize(256);
        // RFC 7541, C.6: older fields are evicted to make room.
        let first = "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad \
                     1718 63c7 8f0b 97c8 e9ae 82ae 43d3";
        let fields = decoded(&mut decoder, first).expect("a block");
        assert_eq!(
            fields,
            ":status=302 cache-control=private date=Mon, 21 Oct 2013 20:13:21 GMT location=https://www.example.com"
        );
        let fields = decoded(&mut decoder, "4883 640e ffc1 c0bf").expect("a block");
        assert!(fields.starts_with(":status=307 cache-control=private date="), "{fields}");
        let third = "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 \
                     b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07";
        let fields = decoded(&mut decoder, third).expect("a block");
        assert!(
            fields.ends_with("set-cookie=foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"),
            "{fields}"
        );
    }

    #[test]
    fn malformed_blocks_are_refused() {
        for block in ["80", "ff ff ff ff ff 0f", "be", "40", "40 05 61", "3f e2 1f", "82 7f ff ff ff ff 7f"] {
            assert_eq!(decoded(&mut Decoder::new(), block), None, "{block}");
        }
        assert_eq!(decoded(&mut Decoder::new(), "82"), Some(":method=GET".to_owned()));
    }
}
