//! Functions with several names: the source gives a function an alias, or the linker folds functions whose code is the
//! same into one.

use super::code_hashes::content;
use super::demangle::demangle;
use crate::calltree::profile::ProfileFunction;
use object::{Object, ObjectSymbol, SymbolKind};
use scruple_core::explain::normal;
use scruple_core::sorting;
use std::collections::HashMap;

/// The names of symbols by address, where several are of the same code.
pub(crate) type NamesOfFile = HashMap<u64, Vec<String>>;

/// The functions with several names of the files of profiles. A file is read when one of its functions is first needed.
#[derive(Default)]
pub(crate) struct Aliases(HashMap<String, NamesOfFile>);

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
pub(crate) fn names(file: &object::File) -> NamesOfFile {
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
