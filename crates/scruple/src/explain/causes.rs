//! Other possible causes of a function's higher cost than its code: data, other code, unknown callers.

use scruple_code::{Binaries, Side};
use scruple_core::explain::{CodeComparison, Key, Matched, PROGRAM};
use scruple_stats::sorting::SortedMap;

/// The functions that the compiler adds to every program and library for its start and its end. They do the same in all
/// of them, but mention where the data end, so their code seems to differ where another variable begins there.
const START_AND_END: [&str; 6] =
    ["_init", "_fini", "frame_dummy", "register_tm_clones", "deregister_tm_clones", "__do_global_dtors_aux"];

/// What differs between two programs apart from the functions that show a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherCauses {
    /// The functions with different code, and those that only one program executes, each with its file unless that is the
    /// program.
    pub functions: Vec<String>,
    /// Whether the initial data of the programs and their libraries are the same; `None` if that is not known.
    pub same_data: Option<bool>,
    /// The variables with different initial data.
    pub variables: Vec<String>,
    /// The files with functions whose code cannot be compared.
    pub incomparable: Vec<String>,
    /// Whether the callers of some functions are unknown, because a trampoline hides them.
    pub unknown_callers: bool,
}

impl OtherCauses {
    /// Finds the other causes in the files that differ between the two sides.
    pub fn between(
        first: &Side,
        second: &Side,
        matched: &Matched,
        binaries: &Binaries,
        code: &CodeComparison<'_>,
    ) -> OtherCauses {
        let mut files: SortedMap<&str, (Option<usize>, Option<usize>)> = SortedMap::new();
        for key in matched.keys.iter().filter(|key| !key.module.is_empty()) {
            let file = files.entry(&key.module).or_default();
            file.0 = file.0.or(key.first.first().copied());
            file.1 = file.1.or(key.second.first().copied());
        }
        let is_same = |file: &(Option<usize>, Option<usize>)| match file {
            (Some(one), Some(other)) => binaries.same_file((first, *one), (second, *other)) == Some(true),
            // Libraries that a program loads at run time are ignored if only one side has them, because they depend on
            // its input, unless a function replaces another.
            _ => true,
        };
        let is_added = |key: &Key| {
            let file = files.get(key.module.as_str());
            key.module.contains(".so")
                && !key.name.is_empty()
                && !START_AND_END.contains(&key.name.as_str())
                && file.is_some_and(|(one, other)| one.is_some() != other.is_some())
        };
        let takes_place = |key: &&Key| {
            is_added(key)
                && matched.keys.iter().any(|other| {
                    let of_other = if key.first.is_empty() { &other.first } else { &other.second };
                    other.name == key.name && other.module != key.module && !of_other.is_empty()
                })
        };
        let named = |key: &Key| with_file(&key.module, &key.name);
        let functions = matched.keys.iter().filter(takes_place).map(named).collect();
        let mut causes = OtherCauses { functions, same_data: Some(true), ..OtherCauses::default() };
        files.retain(|_, file| !is_same(file));
        // The new name of a renamed function does not stand for another function.
        let is_other = |key: &&Key| {
            files.contains_key(key.module.as_str())
                && !START_AND_END.contains(&key.name.as_str())
                && !(key.first.is_empty() && key.second.is_empty())
        };
        for key in matched.keys.iter().filter(is_other) {
            causes.unknown_callers |= key.trampoline;
            let same = match key.first.is_empty() || key.second.is_empty() {
                true => Some(false),
                false => (code.same)(&key.first, &key.second),
            };
            match same {
                Some(true) => {}
                Some(false) if !key.name.is_empty() => causes.functions.push(named(key)),
                _ => causes.incomparable.push(key.module.clone()),
            }
        }
        // Processes have no file. Programs that only one side starts may be versions of each other.
        let is_process = |key: &&Key| key.module.is_empty() && !key.name.starts_with('(');
        let in_one = matched.keys.iter().filter(|key| key.first.is_empty() != key.second.is_empty());
        let (gone, come): (Vec<&Key>, Vec<&Key>) =
            in_one.filter(is_process).partition(|key| key.second.is_empty());
        if !gone.is_empty() && !come.is_empty() {
            causes.incomparable.extend(gone.into_iter().chain(come).map(|key| key.name.clone()));
        }
        causes.functions.sort_unstable();
        causes.functions.dedup();
        causes.incomparable.sort_unstable();
        causes.incomparable.dedup();
        for (one, other) in files.into_values() {
            let (Some(one), Some(other)) = (one, other) else { continue };
            match (binaries.data(first, one), binaries.data(second, other)) {
                (Some(old), Some(new)) if old.is(&new) => {}
                (Some(old), Some(new)) => {
                    causes.same_data = Some(false);
                    causes.variables.extend(old.differing(&new));
                }
                _ => causes.same_data = causes.same_data.filter(|same| !same),
            }
        }
        causes
    }

    /// Adds the changed code and data of another comparison of the same two programs. What it cannot compare does not count.
    pub fn add(&mut self, other: &OtherCauses) {
        self.functions.extend(other.functions.iter().cloned());
        self.variables.extend(other.variables.iter().cloned());
        self.same_data = self.same_data.filter(|_| other.same_data != Some(false)).or(other.same_data);
    }

    /// Whether there is no other cause, so that only the input, or whatever else the programs read, can explain a
    /// difference of equal code.
    pub fn none(&self) -> bool {
        self.same_data == Some(true)
            && self.functions.is_empty()
            && self.incomparable.is_empty()
            && !self.unknown_callers
    }
}

/// Writes the name of a function, with its file unless that is the program.
pub fn with_file(module: &str, name: &str) -> String {
    if module == PROGRAM { name.to_owned() } else { format!("{name} [{module}]") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_whose_library_changed_may_differ_because_of_that() {
        let script = OtherCauses { same_data: Some(true), ..OtherCauses::default() };
        let of_interpreter = |same_data, functions: &[&str]| {
            let mut all = script.clone();
            let functions = functions.iter().map(|name| with_file("lib.so", name)).collect();
            all.add(&OtherCauses { same_data, functions, ..OtherCauses::default() });
            all
        };
        assert!(of_interpreter(Some(true), &[]).none());
        // What an interpreter generates cannot be compared.
        assert!(of_interpreter(None, &[]).none());
        assert!(!of_interpreter(Some(false), &[]).none());
        assert_eq!(of_interpreter(Some(true), &["parse"]).functions, ["parse [lib.so]"]);
    }
}
