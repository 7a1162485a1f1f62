//! Builds a tree of calling contexts from stacks.

use scruple_code::{MachineCode, ProfileFunction, Side, demangle, without_version};
use scruple_core::explain::{
    Context, Edge, Function, OwnCost, PROGRAM, is_allocator, is_library, normal, restore_names_of_packages,
};
use scruple_core::harmless_text::plain;
use scruple_core::number_map::NumberMap;
use std::collections::HashMap;
use std::path::Path;

/// The largest number of calling contexts in a profile.
const MOST: usize = 8_000_000;

/// A tree of calling contexts that is being built.
pub struct TreeBuilder {
    side: Side,
    functions: HashMap<(String, String), usize>,
    children: NumberMap<(u32, u32), u32>,
    /// For each function, the number of the stack that last had it, and its context there.
    last: Vec<(u64, u32)>,
    /// The number of stacks.
    stacks: u64,
}

impl TreeBuilder {
    /// Creates a tree that contains only its root.
    pub fn new() -> TreeBuilder {
        // The files on the disk may be newer than the profile, so the code of its functions is not known.
        let mut side = Side { code: Some(MachineCode::default()), ..Side::default() };
        side.add_function(ProfileFunction::default(), Function::default());
        side.tree.contexts.push(Context { function: 0, calls: 1, ..Context::default() });
        TreeBuilder {
            side,
            functions: HashMap::new(),
            children: NumberMap::default(),
            last: Vec::new(),
            stacks: 0,
        }
    }

    /// Returns the index of a function with this name and file. Either may be empty if it is not known.
    pub fn function(&mut self, name: &str, object: &str, is_own: bool) -> usize {
        let key = (name.to_owned(), object.to_owned());
        if let Some(known) = self.functions.get(&key) {
            return *known;
        }
        let shown = plain(&demangle(name));
        let module = match object.is_empty() || is_own {
            true => PROGRAM.to_owned(),
            false => without_version(
                Path::new(object).file_name().and_then(|name| name.to_str()).unwrap_or(object),
            ),
        };
        let named = Function {
            module: plain(&module),
            name: normal(&shown),
            library: is_library(&shown) || is_allocator(&shown),
            shown,
            ..Function::default()
        };
        let object = Some(object.to_owned()).filter(|object| !object.is_empty());
        let found = ProfileFunction { name: Some(name.to_owned()), object, offset: 0 };
        let place = self.side.add_function(found, named);
        self.functions.insert(key, place);
        place
    }

    /// Adds a stack, with the outermost function first. If a function is on the stack twice, the second occurrence
    /// leads back to the context of the first.
    pub fn stack(&mut self, functions: &[usize], cost: OwnCost) -> Result<(), String> {
        let mut at = 0;
        self.stacks += 1;
        self.last.resize(self.side.functions.len(), (0, 0));
        for function in functions {
            at = match self.last[*function] {
                (stack, above) if stack == self.stacks => above as usize,
                _ => self.below(at, *function)?,
            };
            self.last[*function] = (self.stacks, at as u32);
        }
        self.add(at, cost);
        Ok(())
    }

    /// Returns the context of a function below another context. Creates it if necessary.
    pub fn below(&mut self, parent: usize, function: usize) -> Result<usize, String> {
        let next = self.side.tree.contexts.len();
        // There are at most `MOST` contexts and no more functions than contexts, so 32 bits hold their indices.
        let place = *self.children.entry((parent as u32, function as u32)).or_insert(next as u32) as usize;
        if place == next {
            if next >= MOST {
                return Err(format!("it has more than {MOST} calling contexts"));
            }
            self.side.tree.contexts.push(Context { parent: Some(parent), function, ..Context::default() });
        }
        Ok(place)
    }

    /// Adds a cost to the own cost of a context.
    pub fn add(&mut self, context: usize, cost: OwnCost) {
        self.side.tree.contexts[context].cost.add(cost);
    }

    /// Adds calls to a context.
    pub fn calls(&mut self, context: usize, calls: u64, recursive: u64) {
        let context = &mut self.side.tree.contexts[context];
        context.calls = context.calls.saturating_add(calls);
        context.recursive = context.recursive.saturating_add(recursive);
    }

    /// Adds calls of one function by another, where contexts do not give the callers.
    pub fn edge(&mut self, caller: usize, callee: usize, calls: u64) {
        self.side.tree.edges.push(Edge { caller, callee, calls });
    }

    /// Returns the complete tree.
    pub fn done(mut self) -> Side {
        restore_names_of_packages(&mut self.side.tree.functions);
        for context in &self.side.tree.contexts {
            let is_named =
                !self.side.tree.functions[context.function].name.is_empty() || context.parent.is_none();
            let sum = if is_named { &mut self.side.named.0 } else { &mut self.side.named.1 };
            *sum = sum.saturating_add(context.cost.instructions);
        }
        self.side
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_packages_keep_their_names() {
        let mut builder = TreeBuilder::new();
        for name in ["main.main", "main.cold", "runtime.main"] {
            builder.function(name, "", true);
        }
        let names: Vec<String> = builder.done().tree.functions.into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["", "main.main", "main.cold", "runtime.main"]);
    }
}
