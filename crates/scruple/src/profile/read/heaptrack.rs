//! Reads unpacked files of heaptrack 1.2 and later: a line for each string, address, stack and allocation. Numbers are
//! hexadecimal, indices begin at 1, and 0 means none. The format is described by heaptrack's source
//! `accumulatedtracedata.cpp`. The file ends with the numbers of its strings and addresses (`heaptrack_interpret.cpp`),
//! so a file that is cut off can be recognised.

use super::{ImportedProfile, Kind, TreeBuilder};
use scruple_core::explain::OwnCost;

#[derive(Default)]
struct HeaptrackParser {
    title: Option<String>,
    version: u64,
    strings: Vec<String>,
    /// The functions at each address, with the innermost first, and the file.
    addresses: Vec<(Vec<usize>, usize)>,
    /// The address and the index of the caller's stack, for each stack.
    stacks: Vec<(usize, usize)>,
    /// The number of requested bytes and the index of the stack, for each kind of allocation.
    kinds: Vec<(u64, usize)>,
    /// The number of allocations of each kind.
    counts: Vec<u64>,
    /// How many of these were freed.
    freed: Vec<u64>,
    /// The numbers of strings and of addresses that the end of the file gives.
    strings_at_end: Option<usize>,
    addresses_at_end: Option<usize>,
}

pub(super) fn parse(text: &str) -> Result<ImportedProfile, String> {
    let mut reader = HeaptrackParser::default();
    for (number, line) in text.lines().enumerate() {
        reader.line(line).map_err(|why| format!("line {}: {why}", number + 1))?;
    }
    reader.finish()
}

fn number(word: Option<&str>) -> Result<u64, String> {
    let word = word.ok_or("a number is missing")?;
    u64::from_str_radix(word, 16)
        .map_err(|_| format!("‘{}’ is not a hexadecimal number", word.escape_debug()))
}

fn place(word: Option<&str>, known: usize, what: &str) -> Result<usize, String> {
    let place = number(word)? as usize;
    if place > known { Err(format!("there is no {what} {place:x}")) } else { Ok(place) }
}

/// Returns the text behind its length.
fn sized(rest: &str) -> Result<&str, String> {
    let (length, text) = rest.split_once(' ').unwrap_or((rest, ""));
    match number(Some(length))? == text.len() as u64 {
        true => Ok(text),
        false => Err(format!("a text does not have the {length} bytes that it should have")),
    }
}

impl HeaptrackParser {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = rest.split(' ').filter(|word| !word.is_empty());
        match kind {
            "v" => {
                number(words.next())?;
                self.version = number(words.next())?;
                let version = self.version;
                if !(2..=3).contains(&version) {
                    return Err(format!("it is of version {version} of the format; 2 and 3 can be read"));
                }
            }
            "X" => self.title = Some(rest.to_owned()),
            "s" => {
                // From version 3 of the format on, the length precedes the text.
                let text = match self.version {
                    ..3 => rest,
                    _ => sized(rest)?,
                };
                self.strings.push(text.to_owned());
            }
            "i" => {
                number(words.next())?;
                let object = place(words.next(), self.strings.len(), "string")?;
                let mut functions = Vec::new();
                while let Some(word) = words.next() {
                    functions.push(place(Some(word), self.strings.len(), "string")?);
                    if let Some(file) = words.next() {
                        place(Some(file), self.strings.len(), "string")?;
                        number(words.next())?;
                    }
                }
                self.addresses.push((functions, object));
            }
            "t" => {
                let address = place(words.next(), self.addresses.len(), "address")?;
                let parent = place(words.next(), self.stacks.len(), "stack")?;
                self.stacks.push((address, parent));
            }
            "a" => {
                let size = number(words.next())?;
                let stack = place(words.next(), self.stacks.len(), "stack")?;
                self.kinds.push((size, stack));
                self.counts.push(0);
                self.freed.push(0);
            }
            "+" => {
                let kind = number(words.next())? as usize;
                let count =
                    self.counts.get_mut(kind).ok_or_else(|| format!("there is no allocation {kind:x}"))?;
                *count += 1;
            }
            "#" => match (words.next(), words.next().map(str::parse)) {
                (Some("strings:"), Some(Ok(count))) => self.strings_at_end = Some(count),
                (Some("ips:"), Some(Ok(count))) => self.addresses_at_end = Some(count),
                _ => {}
            },
            "-" => {
                let kind = number(words.next())? as usize;
                let freed =
                    self.freed.get_mut(kind).ok_or_else(|| format!("there is no allocation {kind:x}"))?;
                *freed += 1;
                if *freed > self.counts[kind] {
                    return Err(format!("more blocks of allocation {kind:x} were freed than allocated"));
                }
            }
            // These lines hold times, sizes of the program, and suppressions.
            "c" | "R" | "I" | "A" | "S" | "" => {}
            other => return Err(format!("‘{}’ is not a kind of line", other.escape_debug())),
        }
        Ok(())
    }

    fn finish(self) -> Result<ImportedProfile, String> {
        let ends = [
            (self.strings_at_end, self.strings.len(), "strings"),
            (self.addresses_at_end, self.addresses.len(), "addresses"),
        ];
        for (at_end, count, what) in ends {
            match at_end {
                None => return Err(format!("the number of {what} at its end is missing: it is cut off")),
                Some(stated) if stated != count => {
                    return Err(format!(
                        "it has {count} {what}, and says {stated}: it is cut off or damaged"
                    ));
                }
                Some(_) => {}
            }
        }
        if self.kinds.is_empty() {
            return Err("it has no allocations".to_owned());
        }
        let mut builder = TreeBuilder::new();
        let program = self.strings.first().map_or("", String::as_str).to_owned();
        let text = |place: usize| place.checked_sub(1).map_or("", |place| self.strings[place].as_str());
        for ((size, stack), count) in self.kinds.iter().zip(&self.counts).filter(|(_, count)| **count > 0) {
            let mut functions = Vec::new();
            let mut at = *stack;
            while let Some((address, parent)) = at.checked_sub(1).map(|place| self.stacks[place]) {
                if let Some((names, object)) = address.checked_sub(1).map(|place| &self.addresses[place]) {
                    let object = text(*object);
                    let unnamed = names.is_empty().then_some(&0);
                    for name in names.iter().chain(unnamed) {
                        functions.push(builder.function(text(*name), object, object == program));
                    }
                }
                at = parent;
            }
            functions.reverse();
            let cost = OwnCost {
                allocations: *count,
                bytes: size.checked_mul(*count).ok_or("too many bytes")?,
                ..OwnCost::default()
            };
            builder.stack(&functions, cost)?;
        }
        Ok(ImportedProfile {
            title: self.title,
            kind: Kind::heap("heaptrack"),
            side: builder.done(),
            has_checksum: false,
        })
    }
}
