//! Writes the format of pprof: an uncompressed message of protocol buffers, as `profile.proto` in pprof's sources
//! describes it. The field numbers are those of that file.

use super::{COUNTS, CallProfile};
use std::collections::HashMap;

pub(super) fn bytes(profile: &CallProfile) -> Vec<u8> {
    let mut texts = Texts::default();
    let mut out = Message::default();
    for (_, name, unit) in COUNTS {
        let mut value = Message::default();
        value.number(1, texts.place(name)).number(2, texts.place(unit));
        out.message(1, &value);
    }
    for (place, node) in profile.nodes.iter().enumerate() {
        let values = COUNTS.map(|(count, _, _)| node.own.of(count));
        if values.iter().all(|value| *value == 0) {
            continue;
        }
        let mut sample = Message::default();
        // The innermost function is first. Ids start at 1.
        let stack: Vec<u64> = profile.path(place).iter().rev().map(|frame| *frame as u64 + 1).collect();
        sample.packed(1, &stack).packed(2, &values);
        out.message(2, &sample);
    }
    let mut mappings: HashMap<&str, u64> = HashMap::new();
    for frame in &profile.frames {
        let next = mappings.len() as u64 + 1;
        if !mappings.contains_key(frame.object.as_str()) {
            mappings.insert(&frame.object, next);
            let mut mapping = Message::default();
            // The flag says that functions have names, so that no reader looks for the file.
            mapping.number(1, next).number(5, texts.place(&frame.object)).number(7, 1);
            out.message(3, &mapping);
        }
    }
    for (index, frame) in profile.frames.iter().enumerate() {
        let identity = index as u64 + 1;
        let (mut line, mut location, mut function) =
            (Message::default(), Message::default(), Message::default());
        line.number(1, identity);
        location.number(1, identity).number(2, mappings[frame.object.as_str()]).message(4, &line);
        out.message(4, &location);
        let name = texts.place(&frame.name);
        function.number(1, identity).number(2, name).number(3, name);
        out.message(5, &function);
    }
    let comment = texts.place(&format!("counted by scruple: {}", profile.title));
    for text in &texts.list {
        out.text(6, text);
    }
    out.number(13, comment);
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
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) -> &mut Message {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn delimited(&mut self, field: u64, bytes: &[u8]) -> &mut Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn text(&mut self, field: u64, text: &str) -> &mut Message {
        self.delimited(field, text.as_bytes())
    }

    fn message(&mut self, field: u64, message: &Message) -> &mut Message {
        self.delimited(field, &message.bytes)
    }

    fn packed(&mut self, field: u64, values: &[u64]) -> &mut Message {
        let mut inner = Message::default();
        values.iter().for_each(|value| inner.varint(*value));
        self.delimited(field, &inner.bytes)
    }
}
