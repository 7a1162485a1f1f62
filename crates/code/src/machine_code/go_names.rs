//! Names of Go's functions in stripped programs: Go keeps its own table of functions, for stack traces.

use object::{Object, ObjectSection};
use std::collections::HashMap;

/// The sections that may contain the table.
const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];

/// The first words of a table since Go 1.18, and since Go 1.20.
const KINDS: [u64; 2] = [0xffff_fff0, 0xffff_fff1];

/// The functions of a Go program by their start address; `None` if the file has no table that can be read.
pub fn go_functions(file: &object::File<'_>) -> Option<HashMap<u64, String>> {
    let section = SECTIONS.iter().find_map(|name| file.section_by_name(name))?;
    let table = FunctionTable(section.data().ok()?);
    if !KINDS.contains(&table.number(0, 4)?) {
        return None;
    }
    let (count, names, entries) = (table.number(8, 8)?, table.number(32, 8)?, table.number(64, 8)?);
    // Since Go 1.26 the table does not say where the code begins.
    let text = match table.number(24, 8)? {
        0 => file.section_by_name(".text")?.address(),
        text => text,
    };
    let mut found = HashMap::new();
    for at in 0..count.min(table.0.len() as u64 / 8) {
        let entry = entries.checked_add(at * 8)?;
        let begin = text.checked_add(table.number(entry, 4)?)?;
        let record = entries.checked_add(table.number(entry + 4, 4)?)?;
        let name = table.text(names.checked_add(table.number(record.checked_add(4)?, 4)?)?)?;
        found.insert(begin, name);
    }
    Some(found)
}

struct FunctionTable<'a>(&'a [u8]);

impl FunctionTable<'_> {
    /// A little-endian number of this many bytes.
    fn number(&self, at: u64, size: usize) -> Option<u64> {
        let at = usize::try_from(at).ok()?;
        let bytes = self.0.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// The text that ends with a zero.
    fn text(&self, at: u64) -> Option<String> {
        let bytes = self.0.get(usize::try_from(at).ok()?..)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned()).filter(|name| !name.is_empty())
    }
}
