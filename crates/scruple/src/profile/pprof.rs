//! Writes the format of pprof: a packed message of protocol buffers, as `profile.proto` in pprof's sources describes
//! it. The field numbers are those of that file. Two sides become their difference, as `pprof -diff_base` makes it.

use super::ProfileFrame;
use super::stacks::Stacks;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::HashMap;
use std::io::Write as _;

pub(super) fn bytes(sides: &[Stacks<'_>]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = packer.write_all(&message(sides));
    packer.finish().unwrap_or_default()
}

fn message(sides: &[Stacks<'_>]) -> Vec<u8> {
    let mut texts = Texts::default();
    let mut out = MessageWriter::default();
    for column in sides.first().map_or(&[][..], |side| &side.columns) {
        let mut value = MessageWriter::default();
        value.number(1, texts.place(&column.word)).number(2, texts.place(column.unit));
        out.message(1, &value);
    }
    let mut base = MessageWriter::default();
    base.number(1, texts.place("pprof::base")).number(2, texts.place("true"));
    let mut before = 0;
    for (which, profile) in sides.iter().enumerate() {
        let is_base = which + 1 < sides.len();
        for place in 0..profile.nodes.len() {
            let values: Vec<u64> = profile.columns.iter().map(|column| column.own[place]).collect();
            if values.iter().all(|value| *value == 0) {
                continue;
            }
            // The amounts of the base are negative, in two's complement.
            let values: Vec<u64> =
                values.into_iter().map(|value| if is_base { value.wrapping_neg() } else { value }).collect();
            let mut sample = MessageWriter::default();
            // The innermost function is first. Ids start at 1.
            let stack: Vec<u64> =
                profile.path(place).iter().rev().map(|frame| before + *frame as u64 + 1).collect();
            sample.packed(1, &stack).packed(2, &values);
            if is_base {
                sample.message(3, &base);
            }
            out.message(2, &sample);
        }
        before += profile.frames.len() as u64;
    }
    let frames = || sides.iter().flat_map(|side| side.frames.iter());
    let mut mappings: HashMap<&str, u64> = HashMap::new();
    let (own, others): (Vec<&ProfileFrame>, Vec<&ProfileFrame>) = frames().partition(|frame| frame.is_own);
    for frame in own.into_iter().chain(others) {
        let next = mappings.len() as u64 + 1;
        if !frame.object.is_empty() && !mappings.contains_key(frame.object.as_str()) {
            mappings.insert(&frame.object, next);
            let mut mapping = MessageWriter::default();
            // The flag says that functions have names, so that no reader looks for the file.
            mapping.number(1, next).number(5, texts.place(&frame.object)).number(7, 1);
            out.message(3, &mapping);
        }
    }
    for (identity, ProfileFrame { name, object, line: place, .. }) in (1..).zip(frames()) {
        let (mut line, mut location, mut function) =
            (MessageWriter::default(), MessageWriter::default(), MessageWriter::default());
        line.number(1, identity);
        if let Some((_, number)) = place {
            line.number(2, u64::from(*number));
        }
        location.number(1, identity);
        if let Some(mapping) = mappings.get(object.as_str()) {
            location.number(2, *mapping);
        }
        location.message(4, &line);
        out.message(4, &location);
        let name = texts.place(name);
        function.number(1, identity).number(2, name).number(3, name);
        if let Some((file, _)) = place {
            function.number(4, texts.place(file));
        }
        out.message(5, &function);
    }
    let titles: Vec<&str> = sides.iter().map(|side| &*side.title).collect();
    let comment = texts.place(&format!("counted by scruple: {}", titles.join("; ")));
    let shown = sides.first().and_then(|side| side.columns.get(side.main));
    let shown = shown.map(|column| texts.place(&column.word));
    let between = sides.first().and_then(|side| side.bytes_between_samples);
    let period = between.map(|between| (texts.place("space"), texts.place("bytes"), between));
    for text in &texts.list {
        out.text(6, text);
    }
    if let Some((name, unit, between)) = period {
        let mut period = MessageWriter::default();
        period.number(1, name).number(2, unit);
        out.message(11, &period).number(12, between);
    }
    out.number(13, comment);
    if let Some(shown) = shown {
        out.number(14, shown);
    }
    out.bytes
}

/// The table of strings. Its first entry is empty.
struct Texts {
    list: Vec<String>,
    places: HashMap<String, u64>,
}

impl Default for Texts {
    fn default() -> Texts {
        Texts { list: vec![String::new()], places: HashMap::from([(String::new(), 0)]) }
    }
}

impl Texts {
    fn place(&mut self, text: &str) -> u64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.list.len() as u64;
        self.list.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }
}

/// A message that is being written in the wire format of protocol buffers.
#[derive(Default)]
struct MessageWriter {
    bytes: Vec<u8>,
}

impl MessageWriter {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) -> &mut MessageWriter {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn delimited(&mut self, field: u64, bytes: &[u8]) -> &mut MessageWriter {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn text(&mut self, field: u64, text: &str) -> &mut MessageWriter {
        self.delimited(field, text.as_bytes())
    }

    fn message(&mut self, field: u64, message: &MessageWriter) -> &mut MessageWriter {
        self.delimited(field, &message.bytes)
    }

    fn packed(&mut self, field: u64, values: &[u64]) -> &mut MessageWriter {
        let mut inner = MessageWriter::default();
        values.iter().for_each(|value| inner.varint(*value));
        self.delimited(field, &inner.bytes)
    }
}
