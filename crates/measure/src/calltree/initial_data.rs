//! The initial data of a program or library: constants and variables. Identical code behaves differently with
//! different data.

use super::machine_code::Fnv;
use super::symbols::demangle;
use object::{File, Object, ObjectSection, ObjectSymbol, SectionKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::Hasher;

/// Hashes of a file's initial data, without the addresses that linking puts into it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// The hash of all data sections.
    digest: u64,
    /// The hash of each named variable.
    variables: BTreeMap<String, u64>,
}

/// Sections that describe the code to linkers, unwinders and debuggers.
const DESCRIPTIONS: [&str; 9] = [
    ".interp",
    ".eh_frame",
    ".gcc_except_table",
    ".got",
    ".dynamic",
    ".note",
    ".comment",
    ".gopclntab",
    ".go.buildinfo",
];

/// The size of an address.
const WORD: usize = 8;

impl Data {
    /// Hashes the data of a file. Addresses are zeroed: relocated words, and words with values between `begin` and
    /// `end`, the file's own address range.
    pub(super) fn of(file: &File, (begin, end): (u64, u64)) -> Data {
        let mut sections: Vec<(u64, Vec<u8>)> = file
            .sections()
            .filter(|section| is_data(section.kind(), section.name().unwrap_or_default()))
            .filter_map(|section| Some((section.address(), section.data().ok()?.to_vec())))
            .collect();
        sections.sort_unstable();
        for (address, bytes) in &mut sections {
            let before = (WORD as u64 - *address % WORD as u64) % WORD as u64;
            for word in bytes.get_mut(before as usize..).unwrap_or_default().chunks_exact_mut(WORD) {
                let value = word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
                if begin > 0 && (begin..end).contains(&value) {
                    word.fill(0);
                }
            }
        }
        for (place, _) in file.dynamic_relocations().into_iter().flatten() {
            let holds = |(address, bytes): &&mut (u64, Vec<u8>)| {
                place >= *address && place - *address + WORD as u64 <= bytes.len() as u64
            };
            if let Some((address, bytes)) = sections.iter_mut().find(holds) {
                let at = (place - *address) as usize;
                bytes[at..at + WORD].fill(0);
            }
        }
        let mut hasher = Fnv::default();
        sections.iter().for_each(|(_, bytes)| hasher.write(bytes));
        Data { digest: hasher.finish(), variables: variables(file, &sections) }
    }

    /// Whether all data are the same.
    pub fn is(&self, other: &Data) -> bool {
        self.digest == other.digest
    }

    /// A copy without the hashes of variables, which suffices to see whether other data are the same.
    pub fn without_variables(&self) -> Data {
        Data { digest: self.digest, ..Data::default() }
    }

    /// The names of the variables that both files have, with different data.
    pub fn differing<'a>(&'a self, other: &'a Data) -> impl Iterator<Item = &'a str> {
        let differs =
            |(name, value): &(&String, &u64)| other.variables.get(*name).is_some_and(|one| one != *value);
        self.variables.iter().filter(differs).map(|(name, _)| name.as_str())
    }
}

fn is_data(kind: SectionKind, name: &str) -> bool {
    let holds = matches!(
        kind,
        SectionKind::Data
            | SectionKind::ReadOnlyData
            | SectionKind::ReadOnlyDataWithRel
            | SectionKind::ReadOnlyString
            | SectionKind::Tls
    );
    holds && !DESCRIPTIONS.iter().any(|beginning| name.starts_with(beginning))
}

/// The hash of each variable by name. A variable ends at its size; one without a size ends where the next begins.
fn variables(file: &File, sections: &[(u64, Vec<u8>)]) -> BTreeMap<String, u64> {
    let mut places: BTreeMap<u64, (u64, &str)> = BTreeMap::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        if let Ok(name) = symbol.name()
            && !name.is_empty()
            && symbol.is_definition()
        {
            places.entry(symbol.address()).or_insert((symbol.size(), name));
        }
    }
    let mut variables = BTreeMap::new();
    for (address, bytes) in sections {
        let end = address + bytes.len() as u64;
        for (place, (size, name)) in places.range(address..&end) {
            let next = places.range(place + 1..).next().map_or(end, |(next, _)| *next);
            let to = if *size > 0 { place.saturating_add(*size) } else { next }.min(end);
            let mut hasher = Fnv::default();
            hasher.write(&bytes[(place - address) as usize..(to - address) as usize]);
            variables.insert(demangle(name), hasher.finish());
        }
    }
    variables
}
