//! The initial data of a program or library: constants and variables. Identical code behaves differently with
//! different data.

use super::demangle::demangle;
use super::fnv::Fnv;
use object::{File, Object, ObjectSection, ObjectSymbol, SectionKind};
use scruple_stats::sorting::{self, SortedMap};
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

/// Hashes of a file's initial data, without the addresses that linking puts into it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// The hash of all data sections.
    digest: u64,
    /// The hash of each named variable, by its name in the file.
    variables: SortedMap<String, u64>,
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

/// Symbols without a size before all data, which would stand for the variables without a symbol that follow them.
const BEGINNINGS: [&str; 3] = ["__data_start", "data_start", "__dso_handle"];

/// The size of an address.
const WORD: usize = 8;

impl Data {
    /// Hashes the data of a file. Addresses are zeroed: relocated words, and words with values between `begin` and
    /// `end`, the file's own address range.
    pub(crate) fn of(file: &File, (begin, end): (u64, u64)) -> Data {
        let mut sections: Vec<(u64, Vec<u8>)> = file
            .sections()
            .filter(|section| is_data(section.kind(), section.name().unwrap_or_default()))
            .filter_map(|section| Some((section.address(), section.data().ok()?.to_vec())))
            .collect();
        sorting::ascending(&mut sections);
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

    /// The names, in the language of the program, of the variables that both files have with different data.
    pub fn differing(&self, other: &Data) -> Vec<String> {
        let mut names = Vec::new();
        for (name, value) in &self.variables {
            if other.variables.get(name).is_some_and(|one| one != value) {
                names.push(demangle(name));
            }
        }
        // A name in the file may contain a hash that differs between builds. Large programs have hundreds of thousands
        // of variables, so only names that the other file lacks are compared as the language writes them.
        let renamed = |one: &Data, than: &Data| -> SortedMap<String, u64> {
            let own = one.variables.iter().filter(|(name, _)| !than.variables.contains_key(*name));
            own.map(|(name, value)| (demangle(name), *value)).collect()
        };
        let others = renamed(other, self);
        let differs = |(name, value): &(String, u64)| others.get(name).is_some_and(|one| one != value);
        names.extend(renamed(self, other).into_iter().filter(differs).map(|(name, _)| name));
        sorting::ascending(&mut names);
        names
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
fn variables(file: &File, sections: &[(u64, Vec<u8>)]) -> SortedMap<String, u64> {
    let mut places: SortedMap<u64, (u64, &str)> = SortedMap::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        if let Ok(name) = symbol.name()
            && !name.is_empty()
            && !BEGINNINGS.contains(&name)
            && symbol.is_definition()
        {
            places.entry(symbol.address()).or_insert((symbol.size(), name));
        }
    }
    let mut variables = SortedMap::new();
    for (address, bytes) in sections {
        let end = address + bytes.len() as u64;
        for (place, (size, name)) in places.range(address..&end) {
            let next = places.range(place + 1..).next().map_or(end, |(next, _)| *next);
            let to = if *size > 0 { place.saturating_add(*size) } else { next }.min(end);
            let mut hasher = Fnv::default();
            hasher.write(&bytes[(place - address) as usize..(to - address) as usize]);
            variables.insert((*name).to_owned(), hasher.finish());
        }
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(variables: &[(&str, u64)]) -> Data {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Data { digest: 0, variables }
    }

    #[test]
    fn variables_are_the_same_whatever_hash_the_build_put_into_their_names() {
        let old = data(&[
            ("table", 1),
            ("_ZN3app5LIMIT17h0123456789abcdefE", 2),
            ("_ZN3app4NAME17h0123456789abcdefE", 3),
        ]);
        let new = data(&[
            ("table", 1),
            ("_ZN3app5LIMIT17hfedcba9876543210E", 9),
            ("_ZN3app4NAME17hfedcba9876543210E", 3),
        ]);
        assert_eq!(old.differing(&new), ["app::LIMIT"]);
        assert_eq!(old.differing(&data(&[("table", 4), ("_ZN1a1bE", 5)])), ["table"]);
        let names = ["_ZN1a1bE", "only_here"].map(|name| (name, 6));
        assert_eq!(data(&names).differing(&data(&[("_ZN1a1bE", 7)])), ["a::b"]);
    }
}
