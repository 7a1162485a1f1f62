//! Whether functions are the same where the linker folds functions whose code is the same into one.

use super::binary::{Binaries, Binary};
use crate::calltree::merged_profiles::Side;
use scruple_core::sorting;
use std::collections::BTreeSet;

impl Binaries {
    /// Whether functions are the same, of which the linker may have folded several into one on one side: each function
    /// has a counterpart that has its name, and all counterparts have the same code. If one has none, they are not the
    /// same.
    pub(crate) fn same_if_folded(&self, a: (&Side, &[usize]), b: (&Side, &[usize])) -> Option<bool> {
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
    /// side is a name of that on the other, or a later name of it.
    pub(crate) fn share_a_name(&self, a: (&Side, usize), b: (&Side, usize), place: u64) -> bool {
        let [one, other] = [a, b].map(|(side, function)| self.operations(side, function, place));
        let renamed = self.renamed.borrow();
        let is_one = |hash: &u32, later: &u32| hash == later || renamed.contains(&(hash ^ later));
        one.iter().any(|hash| other.iter().any(|later| is_one(hash, later)))
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
    pub(crate) fn by_aliases(&self, function: u64, address: u64) -> Vec<u32> {
        let target = self.mentioned(address);
        let names = target.and_then(|target| self.aliases.get(&target)).into_iter().flatten();
        names.filter_map(|name| self.operation(function, address, false, Some(name))).collect()
    }
}
