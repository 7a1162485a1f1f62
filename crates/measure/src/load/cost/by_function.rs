//! Instructions and calls by function, from the profiles of either tool.

use crate::callgrind::{self, ObjectFunction};
use scruple_code::{Profile, ProfileFunction, Symbols, demangle};
use scruple_core::explain::below_themselves;
use scruple_stats::sorting::SortedMap;
use std::collections::HashMap;

/// The counts of one function in one stretch of load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionSums {
    /// Instructions of the function itself.
    pub own: u64,
    /// Instructions including callees; those of a recursive function count once.
    pub inclusive: u64,
    /// The number of calls.
    pub calls: u64,
}

/// The counts of one stretch of load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StretchCounts {
    /// The number of all instructions.
    pub total: u64,
    /// The counts by function; code outside of any function is under an empty name.
    pub functions: SortedMap<ObjectFunction, FunctionSums>,
}

impl StretchCounts {
    /// Adds a process's counts by callgrind.
    pub fn add_callgrind(&mut self, profile: &callgrind::CallgrindProfile) {
        self.total += profile.total;
        for (function, costs) in &profile.functions {
            let named = ObjectFunction { name: demangle(&function.name), ..function.clone() };
            let sums = self.functions.entry(named).or_default();
            sums.own += costs.own;
            sums.inclusive += costs.inclusive;
            sums.calls += costs.calls;
        }
    }

    /// Adds a process's counts by the call tree.
    pub fn add_calltree(&mut self, profile: &Profile, names: &mut FunctionNames) {
        self.total += profile.total;
        let places = ContextFunctions::of(profile, names);
        let inclusive = profile.inclusive();
        let functions: Vec<Option<usize>> =
            places.of_context.iter().map(|function| Some(*function)).collect();
        let below = below_themselves(&profile.parents(), &functions);
        for (index, context) in profile.contexts.iter().enumerate() {
            let sums = self.functions.entry(places.name(index)).or_default();
            sums.own += context.own;
            sums.calls += context.calls;
            // If a function calls itself at any depth, only the outermost context counts, which includes the others.
            if !below[index] {
                sums.inclusive += inclusive[index];
            }
        }
        for call in &profile.recursive {
            self.functions.entry(places.name(call.to)).or_default().calls += call.calls;
        }
    }
}

/// The function of each context, as an index into the names.
struct ContextFunctions {
    of_context: Vec<usize>,
    named: Vec<ObjectFunction>,
}

impl ContextFunctions {
    fn of(profile: &Profile, names: &mut FunctionNames) -> ContextFunctions {
        let (mut named, mut known) = (vec![ObjectFunction::default()], HashMap::new());
        let mut place = |function: ObjectFunction| {
            *known.entry(function.clone()).or_insert_with(|| {
                named.push(function);
                named.len() - 1
            })
        };
        let of_function: Vec<usize> = profile.functions.iter().map(|one| place(names.of(one))).collect();
        let of_context =
            profile.contexts.iter().map(|context| context.function.map_or(0, |one| of_function[one]));
        ContextFunctions { of_context: of_context.collect(), named }
    }

    fn name(&self, context: usize) -> ObjectFunction {
        self.named[self.of_context[context]].clone()
    }
}

/// Names of functions: the symbol, else the name in exports or debugging information, else the place in the file.
#[derive(Default)]
pub struct FunctionNames {
    symbols: Symbols,
    known: HashMap<scruple_code::ProfileFunction, ObjectFunction>,
}

impl FunctionNames {
    fn of(&mut self, function: &ProfileFunction) -> ObjectFunction {
        if let Some(known) = self.known.get(function) {
            return known.clone();
        }
        let name = match &function.name {
            Some(name) => demangle(name),
            None => self.symbols.locate(function.object.as_deref(), function.offset).name().to_owned(),
        };
        let named = ObjectFunction { name, object: function.object.clone().unwrap_or_default() };
        self.known.insert(function.clone(), named.clone());
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_code::{ProfileContext, RecursiveCalls};

    #[test]
    fn callees_of_a_recursive_function_count_once_and_own_costs_add_up() {
        let function = |name: &str| ProfileFunction { name: Some(name.into()), object: None, offset: 0 };
        let context = |parent: Option<usize>, function: Option<usize>, own: u64| ProfileContext {
            parent,
            function,
            calls: 1,
            own,
            ..ProfileContext::default()
        };
        // main calls walk, which calls leaf, which calls walk again; and leaf calls itself.
        let profile = Profile {
            total: 1 + 10 + 100 + 1000 + 10_000,
            functions: ["main", "walk", "leaf"].map(function).to_vec(),
            contexts: vec![
                context(None, None, 1),
                context(Some(0), Some(0), 10),
                context(Some(1), Some(1), 100),
                context(Some(2), Some(2), 1000),
                context(Some(3), Some(1), 10_000),
            ],
            recursive: vec![RecursiveCalls { from: 3, to: 3, calls: 4 }],
            ..Profile::default()
        };
        let mut stretch = StretchCounts::default();
        stretch.add_calltree(&profile, &mut FunctionNames::default());
        let of = |name: &str| {
            let found = stretch.functions.iter().find(|(function, _)| function.name == name);
            *found.expect("counted").1
        };
        assert_eq!(of("walk"), FunctionSums { own: 10_100, inclusive: 11_100, calls: 2 });
        assert_eq!(of("leaf"), FunctionSums { own: 1000, inclusive: 11_000, calls: 5 });
        assert_eq!(of("main").inclusive, 11_110);
        assert_eq!(stretch.functions.values().map(|sums| sums.own).sum::<u64>(), stretch.total);
    }
}
