//! Functions with several names: the source gives a function an alias, or the linker folds functions whose code is the
//! same into one.

use super::binary::{Binaries, Binary};
use super::demangle::demangle;
use super::machine_code::content;
use super::merged_profiles::Side;
use super::profile::ProfileFunction;
use object::{Object, ObjectSymbol, SymbolKind};
use scruple_core::explain::normal;
use scruple_core::sorting;
use std::collections::{BTreeSet, HashMap};

/// The names of symbols by address, where several are of the same code.
pub(super) type NamesOfFile = HashMap<u64, Vec<String>>;

/// The functions with several names of the files of profiles. A file is read when one of its functions is first needed.
#[derive(Default)]
pub(super) struct Aliases(HashMap<String, NamesOfFile>);

impl Aliases {
    /// Returns the names that a function has beside `name`, normalised like it, in order. There are none if the file no
    /// longer has that name at the function's address.
    pub fn of(&mut self, function: &ProfileFunction, name: &str) -> Vec<String> {
        let Some(path) = function.object.as_deref().filter(|_| !name.is_empty()) else { return Vec::new() };
        if !self.0.contains_key(path) {
            self.0.insert(path.to_owned(), read(path).unwrap_or_default());
        }
        let symbols = self.0.get(path).and_then(|names| names.get(&function.offset));
        let mut names = sorting::distinct(symbols.into_iter().flatten().map(|name| normal(&demangle(name))));
        match names.iter().position(|one| one == name) {
            Some(place) => drop(names.remove(place)),
            None => names.clear(),
        }
        names
    }
}

fn read(path: &str) -> Option<NamesOfFile> {
    let data = content(path)?;
    Some(names(&object::File::parse(data.as_slice()).ok()?))
}

/// Returns the names of functions that begin at one address and have one length.
pub(super) fn names(file: &object::File) -> NamesOfFile {
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let functions = symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() != 0);
    let mut places: Vec<(u64, u64, &str)> = functions
        .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?)))
        .filter(|(_, size, name)| *size > 0 && !name.is_empty())
        .collect();
    places.sort_unstable();
    places.dedup();
    let of_one = places.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1));
    let several = of_one.filter(|names| names.len() > 1);
    several.map(|names| (names[0].0, names.iter().map(|(.., name)| (*name).to_owned()).collect())).collect()
}

impl Binaries {
    /// Whether functions are the same, of which the linker may have folded several into one on one side: each function
    /// has a counterpart that has its name, and all counterparts have the same code. If one has none, they are not the
    /// same.
    pub(super) fn same_if_folded(&self, a: (&Side, &[usize]), b: (&Side, &[usize])) -> Option<bool> {
        let names = |side: &Side, functions: &[usize]| -> Vec<BTreeSet<String>> {
            functions.iter().map(|one| sorting::set(side.tree.functions[*one].names().cloned())).collect()
        };
        let names = [names(a.0, a.1), names(b.0, b.1)];
        let mut has_counterpart = [vec![false; a.1.len()], vec![false; b.1.len()]];
        let mut all = Some(true);
        for (at, one) in a.1.iter().enumerate() {
            for (place, other) in b.1.iter().enumerate() {
                if names[0][at].is_disjoint(&names[1][place]) {
                    continue;
                }
                (has_counterpart[0][at], has_counterpart[1][place]) = (true, true);
                match self.same_function((a.0, *one), (b.0, *other)) {
                    Some(true) => {}
                    Some(false) => return Some(false),
                    None => all = None,
                }
            }
        }
        if has_counterpart.iter().flatten().all(|has| *has) { all } else { Some(false) }
    }

    /// Whether an instruction of both sides refers to one function: some name of the function to which it refers on one
    /// side is a name of that on the other.
    pub(super) fn share_a_name(&self, a: (&Side, usize), b: (&Side, usize), place: u64) -> bool {
        let [one, other] = [a, b].map(|(side, function)| self.operations(side, function, place));
        one.iter().any(|hash| other.contains(hash))
    }

    /// The hashes of an instruction, one for each name of the function to which it refers.
    fn operations(&self, side: &Side, function: usize, place: u64) -> Vec<u32> {
        let mut all = Vec::from_iter(self.instruction(side, function, place, false));
        let known = &side.functions[function];
        match (&side.code, known.object.as_deref(), known.offset.checked_add(place)) {
            (Some(code), ..) => all.extend(
                code.aliases.get(&function).and_then(|of_one| of_one.get(&place)).into_iter().flatten(),
            ),
            (None, Some(path), Some(address)) => {
                let file = self.file(path, side);
                all.extend(file.iter().flat_map(|file| file.by_aliases(known.offset, address)));
            }
            _ => {}
        }
        all
    }
}

impl Binary {
    /// The hashes of the instruction at an address with the other names of the function to which it refers.
    pub(super) fn by_aliases(&self, function: u64, address: u64) -> Vec<u32> {
        let target = self.mentioned(address);
        let names = target.and_then(|target| self.aliases.get(&target)).into_iter().flatten();
        names.filter_map(|name| self.operation(function, address, false, Some(name))).collect()
    }
}
