//! Names of functions that Valgrind does not give. A function has several names if the source gives it an alias, or if
//! the linker folds functions with the same code. Valgrind also ignores functions whose symbols have no size, such as
//! the compiler's own `_init` and `frame_dummy`.

use super::code_hashes::content;
use super::demangle::demangle;
use crate::profile::ProfileFunction;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use scruple_core::explain::normal;
use scruple_stats::sorting::{self, SortedMap};
use std::collections::HashMap;

/// The names of symbols by address, where several are of the same code.
pub(crate) type NamesOfFile = HashMap<u64, Vec<String>>;

/// Further names of functions in the files of profiles. A file is read when one of its functions is first needed.
#[derive(Default)]
pub(crate) struct Aliases(HashMap<String, FurtherNames>);

#[derive(Default)]
struct FurtherNames {
    /// All names of functions that have several.
    several: NamesOfFile,
    /// The functions whose symbols have no size, by address, each with its end.
    without_size: SortedMap<u64, (u64, String)>,
}

impl Aliases {
    /// Returns the function with the name of a symbol without a size at its address, if it has no other.
    pub fn with_name(&mut self, function: &ProfileFunction) -> ProfileFunction {
        let mut function = function.clone();
        if let (None, Some(path)) = (&function.name, &function.object) {
            function.name = self.file(path).without_size.get(&function.offset).map(|(_, name)| name.clone());
        }
        function
    }

    /// Returns the beginning of the function around an address of a file, if its symbol has no size.
    pub fn begin_without_size(&mut self, path: &str, address: u64) -> Option<u64> {
        let (begin, (end, _)) = self.file(path).without_size.range(..=address).next_back()?;
        (address < *end).then_some(*begin)
    }

    fn file(&mut self, path: &str) -> &FurtherNames {
        if !self.0.contains_key(path) {
            self.0.insert(path.to_owned(), read(path).unwrap_or_default());
        }
        &self.0[path]
    }

    /// Returns the names that a function has beside `name`, normalised like it, in order. There are none if the file no
    /// longer has that name at the function's address.
    pub fn of(&mut self, function: &ProfileFunction, name: &str) -> Vec<String> {
        let Some(path) = function.object.as_deref().filter(|_| !name.is_empty()) else { return Vec::new() };
        let symbols = self.file(path).several.get(&function.offset);
        let mut names = sorting::distinct(symbols.into_iter().flatten().map(|name| normal(&demangle(name))));
        match names.iter().position(|one| one == name) {
            Some(place) => drop(names.remove(place)),
            None => names.clear(),
        }
        names
    }
}

fn read(path: &str) -> Option<FurtherNames> {
    let data = content(path)?;
    let file = object::File::parse(data.as_slice()).ok()?;
    let begins = sorting::distinct(functions(&file).map(|(begin, ..)| begin));
    let end = |begin: u64| {
        let next = begins.get(begins.partition_point(|one| *one <= begin)).copied();
        let section =
            file.sections().find(|one| (one.address()..one.address() + one.size()).contains(&begin))?;
        let end = section.address() + section.size();
        Some(next.map_or(end, |next| next.min(end)))
    };
    let without_size = functions(&file)
        .filter(|(_, size, _)| *size == 0)
        .filter_map(|(begin, _, name)| Some((begin, (end(begin)?, name.to_owned()))))
        .collect();
    Some(FurtherNames { several: names(&file), without_size })
}

/// The address, the size and the name of each symbol of a function.
fn functions<'a>(file: &'a object::File<'_>) -> impl Iterator<Item = (u64, u64, &'a str)> {
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let functions = symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() != 0);
    let named = functions.filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?)));
    named.filter(|(.., name)| !name.is_empty())
}

/// Returns the names of functions that begin at one address and have one length.
pub(crate) fn names(file: &object::File) -> NamesOfFile {
    let mut places: Vec<(u64, u64, &str)> = functions(file).filter(|(_, size, _)| *size > 0).collect();
    places.sort_unstable();
    places.dedup();
    let of_one = places.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1));
    let several = of_one.filter(|names| names.len() > 1);
    several.map(|names| (names[0].0, names.iter().map(|(.., name)| (*name).to_owned()).collect())).collect()
}
