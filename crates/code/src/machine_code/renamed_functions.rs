//! Functions that have another name in the other program: which pairs cannot be one function, and instructions that
//! refer to renamed functions.

use super::binary::{Binaries, Binary, hash_of_name};
use super::demangle::demangle;
use crate::merged_profiles::Side;
use scruple_core::explain::normal;
use scruple_stats::sorting::SortedMap;

impl Binaries {
    /// Whether a function of the first program and one of the second are certainly two functions: both are at different
    /// places of one file, or the file of one also has a function with the name of the other.
    pub fn are_two(&self, a: (&Side, usize), b: (&Side, usize)) -> bool {
        let [one, other] = [a, b].map(|(side, function)| side.functions[function].offset);
        let has_name_of = |file: (&Side, usize), of: (&Side, usize)| {
            let name = hash_of_name(&of.0.tree.functions[of.1].name);
            let path = file.0.functions[file.1].object.as_deref();
            path.is_some_and(|path| match &file.0.code {
                Some(code) => code.names.get(path).is_some_and(|names| names.contains(&name)),
                None => self.file(path, file.0).is_some_and(|file| file.names().contains_key(&name)),
            })
        };
        match self.same_file(a, b) {
            Some(true) => one != other,
            _ => has_name_of(a, b) || has_name_of(b, a),
        }
    }

    /// Notes that functions of the first program have other names in the second one. Instructions that call them then
    /// count as the same code.
    pub fn note_renamed(&self, a: (&Side, &[usize]), b: (&Side, &[usize])) {
        let names = |(side, all): (&Side, &[usize])| -> Vec<u32> {
            all.iter().map(|one| hash_of_name(&side.tree.functions[*one].name)).collect()
        };
        let later = names(b);
        let pairs = names(a).into_iter().flat_map(|name| later.iter().map(move |later| name ^ later));
        self.renamed.borrow_mut().extend(pairs);
    }
}

impl Binary {
    /// The places of all symbols, by the hashes of their names as they are compared.
    pub(crate) fn names(&self) -> &SortedMap<u32, Vec<u64>> {
        self.names.get_or_init(|| {
            let mut places: SortedMap<u32, Vec<u64>> = SortedMap::new();
            let aliases =
                self.aliases.iter().flat_map(|(at, names)| names.iter().map(move |name| (at, name)));
            for (at, name) in self.symbols.iter().chain(aliases) {
                places.entry(hash_of_name(&normal(&demangle(name)))).or_default().push(*at);
            }
            places
        })
    }
}
