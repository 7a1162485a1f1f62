//! Reads the format of pprof: a message of protocol buffers, as `profile.proto` in pprof's sources describes it.

use super::{ImportedProfile, Kind, SampleWeights, TreeBuilder};
use scruple_core::explain::OwnCost;
use std::collections::HashMap;

/// Whether a profile may begin with this byte: the number and the kind of one of its fields, whose order is free.
pub fn begins_field(byte: u8) -> bool {
    const NUMBERS: std::ops::RangeInclusive<u8> = 1..=15;
    NUMBERS.contains(&(byte >> 3)) && [0, 2].contains(&(byte & 7))
}

/// The value of a field in a message.
enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// An iterator over the fields of a message.
struct WireFields<'a>(&'a [u8]);

impl<'a> WireFields<'a> {
    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or("it ends in the middle of a number")?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number is longer than 64 bits".to_owned())
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], String> {
        let length = usize::try_from(length).ok().filter(|length| *length <= self.0.len());
        let (taken, rest) = self.0.split_at(length.ok_or("it ends in the middle of a field")?);
        self.0 = rest;
        Ok(taken)
    }

    fn next(&mut self) -> Result<Option<(u64, WireValue<'a>)>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let field = match key & 7 {
            0 => WireValue::Number(self.varint()?),
            1 => WireValue::Bytes(self.take(8)?),
            2 => {
                let length = self.varint()?;
                WireValue::Bytes(self.take(length)?)
            }
            5 => WireValue::Bytes(self.take(4)?),
            other => return Err(format!("a field has the unknown kind {other}")),
        };
        Ok(Some((key >> 3, field)))
    }
}

/// Appends the numbers of a repeated field, which are packed or separate.
fn numbers(field: &WireValue<'_>, into: &mut Vec<u64>) -> Result<(), String> {
    match field {
        WireValue::Number(number) => into.push(*number),
        WireValue::Bytes(bytes) => {
            let mut rest = WireFields(bytes);
            while !rest.0.is_empty() {
                into.push(rest.varint()?);
            }
        }
    }
    Ok(())
}

/// Returns the numeric fields of a message by their field numbers, and the functions of its lines. Other nested
/// messages are ignored.
fn message(bytes: &[u8]) -> Result<(HashMap<u64, u64>, Vec<u64>), String> {
    let mut lines = Vec::new();
    let found = message_of_numbers(bytes, |key, nested| {
        if key == 4 {
            let line = message_of_numbers(nested, |_, _| Ok(()))?;
            lines.push(line.get(&1).copied().unwrap_or(0));
        }
        Ok(())
    })?;
    Ok((found, lines))
}

/// Returns the numeric fields of a message by their field numbers, and passes the other fields to `other` as they
/// occur.
fn message_of_numbers(
    bytes: &[u8],
    mut other: impl FnMut(u64, &[u8]) -> Result<(), String>,
) -> Result<HashMap<u64, u64>, String> {
    let mut found = HashMap::new();
    let mut fields = WireFields(bytes);
    while let Some((key, field)) = fields.next()? {
        match field {
            WireValue::Number(number) => drop(found.insert(key, number)),
            WireValue::Bytes(bytes) => other(key, bytes)?,
        }
    }
    Ok(found)
}

/// Returns the type and the unit of a value, as indices of strings.
fn value_type(bytes: &[u8]) -> Result<(u64, u64), String> {
    let one = message_of_numbers(bytes, |_, _| Ok(()))?;
    let get = |key| one.get(&key).copied().unwrap_or(0);
    Ok((get(1), get(2)))
}

#[derive(Default)]
struct ProfileMessage {
    /// The type and the unit of each value, as indices of strings.
    types: Vec<(u64, u64)>,
    /// The locations of each sample, with the innermost first, and its values.
    samples: Vec<(Vec<u64>, Vec<u64>)>,
    /// The name of the file of each mapping, as an index of a string.
    mappings: HashMap<u64, u64>,
    /// The name of the program's file, as an index of a string: that of the first mapping.
    program: Option<u64>,
    /// The mapping, the address, and the functions of each location, with the innermost function first.
    locations: HashMap<u64, (u64, u64, Vec<u64>)>,
    /// The name of each function, as an index of a string.
    functions: HashMap<u64, u64>,
    texts: Vec<String>,
    comments: Vec<u64>,
    /// The type and the unit of what passes between two samples, as indices of strings, and how much of it does; 0 if the
    /// file does not say.
    period: ((u64, u64), u64),
}

impl ProfileMessage {
    fn of(bytes: &[u8]) -> Result<ProfileMessage, String> {
        let mut all = ProfileMessage::default();
        let mut fields = WireFields(bytes);
        while let Some((key, field)) = fields.next()? {
            match (key, field) {
                (1, WireValue::Bytes(bytes)) => all.types.push(value_type(bytes)?),
                (11, WireValue::Bytes(bytes)) => all.period.0 = value_type(bytes)?,
                (12, WireValue::Number(number)) => all.period.1 = number,
                (2, WireValue::Bytes(bytes)) => {
                    let (mut stack, mut values) = (Vec::new(), Vec::new());
                    let mut parts = WireFields(bytes);
                    while let Some((key, field)) = parts.next()? {
                        match key {
                            1 => numbers(&field, &mut stack)?,
                            2 => numbers(&field, &mut values)?,
                            _ => {}
                        }
                    }
                    all.samples.push((stack, values));
                }
                (key @ 3..=5, WireValue::Bytes(bytes)) => {
                    let (one, lines) = message(bytes)?;
                    let get = |key| one.get(&key).copied().unwrap_or(0);
                    match key {
                        3 => {
                            all.mappings.insert(get(1), get(5));
                            all.program.get_or_insert(get(5));
                        }
                        4 => drop(all.locations.insert(get(1), (get(2), get(3), lines))),
                        _ => drop(all.functions.insert(get(1), get(2))),
                    }
                }
                (6, WireValue::Bytes(bytes)) => all.texts.push(String::from_utf8_lossy(bytes).into_owned()),
                (13, field) => numbers(&field, &mut all.comments)?,
                _ => {}
            }
        }
        if all.texts.first().is_none_or(|text| !text.is_empty()) || all.types.is_empty() {
            return Err("it lacks the table of texts or the types of its values".to_owned());
        }
        Ok(all)
    }

    fn text(&self, place: u64) -> Result<&str, String> {
        let text = usize::try_from(place).ok().and_then(|place| self.texts.get(place));
        text.map(String::as_str).ok_or_else(|| format!("there is no text {place}"))
    }
}

/// The mean number of bytes between two samples of a heap where the file does not say it: the default of Go, gperftools,
/// jemalloc and V8.
const BYTES_BETWEEN: u64 = 512 << 10;

/// The indices of the values that count work, allocations and bytes.
struct ValueColumns {
    main: Option<usize>,
    allocations: Option<usize>,
    bytes: Option<usize>,
}

impl ValueColumns {
    /// What one sample stands for. A block of *s* bytes is sampled with the probability *p* = 1 − exp(−*s* / mean), and
    /// the figures of a heap are those of the samples divided by *p*. So the variance of a number of blocks is that
    /// number times (1 − *p*) / *p*, which is largest for the smallest block, and the variance of bytes is at most the
    /// bytes times the mean.
    fn weights(&self, all: &ProfileMessage) -> Result<SampleWeights, String> {
        let ((period_type, period_unit), period) = all.period;
        let (period_type, period_unit) = (all.text(period_type)?, all.text(period_unit)?);
        let between = if period_unit == "bytes" && period > 0 { period } else { BYTES_BETWEEN };
        let figures =
            |column: usize| all.samples.iter().filter_map(move |(_, values)| values.get(column).copied());
        let main = match self.main {
            None => 1,
            Some(at) => {
                let (name, unit) = (all.text(all.types[at].0)?, all.text(all.types[at].1)?);
                let is_period = period > 0 && (name == period_type || unit == period_unit && unit != "count");
                match unit {
                    _ if is_period => period,
                    "bytes" => between,
                    "count" | "" => 1,
                    // Samples of one length have a common divisor: that length.
                    _ => figures(at).fold(0, greatest_common_divisor).max(1),
                }
            }
        };
        let sizes = self.allocations.zip(self.bytes).into_iter().flat_map(|(allocations, bytes)| {
            let pairs = figures(allocations).zip(figures(bytes));
            pairs.filter(|(blocks, _)| *blocks > 0).map(|(blocks, bytes)| bytes as f64 / blocks as f64)
        });
        // Without sizes, a block may have one byte.
        let smallest = sizes.reduce(f64::min).unwrap_or(1.0).max(1.0);
        let blocks = 1.0 / (smallest / between as f64).exp_m1();
        Ok(SampleWeights { main, allocations: blocks.ceil() as u64, bytes: between })
    }
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

pub(super) fn parse(bytes: &[u8]) -> Result<ImportedProfile, String> {
    let all = ProfileMessage::of(bytes)?;
    let mut types = Vec::new();
    for (name, _) in &all.types {
        types.push(all.text(*name)?);
    }
    let find = |names: &[&str]| names.iter().find_map(|name| types.iter().position(|known| known == name));
    let mut columns = ValueColumns {
        main: find(&["instructions", "samples", "sample", "cpu", "wall"]),
        allocations: find(&["allocations", "alloc_objects"]),
        bytes: find(&["bytes", "alloc_space"]),
    };
    if columns.main.is_none() && columns.allocations.is_none() && columns.bytes.is_none() {
        columns.main = find(&["inuse_space", "space"]).or(Some(0));
    }
    let word = columns.main.map(|at| match types[at] {
        // Blocks in use are not all blocks that were allocated.
        "inuse_space" | "space" => "bytes in use".to_owned(),
        name => name.to_owned(),
    });
    let comment = all.comments.first().and_then(|place| all.text(*place).ok());
    let title = comment.and_then(|text| text.strip_prefix("counted by scruple: ")).map(str::to_owned);
    let is_counted = match word.as_deref() {
        Some(word) => word == "instructions",
        None => title.is_some() && all.period.1 == 0,
    };
    let kind = Kind {
        sampled: if is_counted { None } else { Some(columns.weights(&all)?) },
        has_heap: columns.allocations.is_some() || columns.bytes.is_some(),
        word,
        ..Kind::counted("pprof")
    };
    let program = all.text(all.program.unwrap_or(0))?.to_owned();
    let mut builder = TreeBuilder::new();
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (id, (mapping, address, lines)) in &all.locations {
        let object = all.mappings.get(mapping).copied().unwrap_or(0);
        let object = all.text(object)?;
        let is_own = object == program;
        let mut functions = Vec::new();
        for line in lines {
            let name = all.functions.get(line).ok_or_else(|| format!("there is no function {line}"))?;
            functions.push(builder.function(all.text(*name)?, object, is_own));
        }
        if functions.is_empty() {
            // A location without functions is named by its address.
            functions.push(builder.function(&format!("{address:#x}"), object, is_own));
        }
        places.insert(*id, functions);
    }
    for (stack, values) in &all.samples {
        let value = |column: Option<usize>| -> Result<u64, String> {
            let Some(column) = column else { return Ok(0) };
            let value = values.get(column).copied().ok_or("a sample has too few values")?;
            i64::try_from(value).map(|_| value).map_err(|_| {
                "a value is negative: it is the difference of two profiles, not a profile".to_owned()
            })
        };
        let cost = OwnCost {
            instructions: value(columns.main)?,
            allocations: value(columns.allocations)?,
            bytes: value(columns.bytes)?,
            ..OwnCost::default()
        };
        let mut functions = Vec::new();
        for location in stack.iter().rev() {
            let known = places.get(location).ok_or_else(|| format!("there is no location {location}"))?;
            functions.extend(known.iter().rev());
        }
        builder.stack(&functions, cost)?;
    }
    if all.samples.is_empty() {
        return Err("it has no samples".to_owned());
    }
    Ok(ImportedProfile { title, kind, side: builder.done(), has_checksum: false })
}
