//! Compares functions that cannot be paired by name alone: several static functions may have one name, and the linker
//! may fold several functions with the same code into one.

use super::binary::{Binaries, Binary, hash_of_name};
use crate::merged_profiles::Side;
use scruple_stats::sorting;
use std::collections::BTreeSet;

impl Binaries {
    /// Whether the functions of one name are the same in both programs, in whatever order they are in their files. Each
    /// must have the same code as one in the other program, even if that program did not execute it.
    pub(crate) fn same_in_some_order(&self, a: (&Side, &[usize]), b: (&Side, &[usize])) -> Option<bool> {
        let (mut alone, mut left, mut is_known) = (Vec::new(), b.1.to_vec(), true);
        for one in a.1 {
            let compared = left.iter().map(|other| self.same_function((a.0, *one), (b.0, *other)));
            let mut is_unknown = false;
            match compared.inspect(|same| is_unknown |= same.is_none()).position(|same| same == Some(true)) {
                Some(at) => drop(left.remove(at)),
                None if is_unknown => is_known = false,
                None => alone.push(*one),
            }
        }
        // Code that a kept program did not execute is not known.
        if (a.0.code.is_some() || b.0.code.is_some()) && alone.is_empty() != left.is_empty() {
            return None;
        }
        let [first, second] = [(a.0, a.1[0]), (b.0, b.1[0])];
        let is_changed = !alone.iter().all(|one| self.is_in_file_of((a.0, *one), second))
            || is_known && !left.iter().all(|other| self.is_in_file_of((b.0, *other), first));
        (is_changed || is_known).then_some(!is_changed)
    }

    /// Whether the file of `other` has a function with the name of `of` and with the code of it that was executed. Both
    /// functions must have one name.
    fn is_in_file_of(&self, of: (&Side, usize), other: (&Side, usize)) -> bool {
        let places = &of.0.executed[of.1];
        let has_name = of.0.tree.functions[of.1].name == other.0.tree.functions[other.1].name;
        let file = other.0.functions[other.1].object.as_deref().and_then(|path| self.file(path, other.0));
        let is_read = has_name && other.0.code.is_none() && !places.is_empty();
        let Some(file) = file.filter(|_| is_read) else { return false };
        let is_same = |begin: u64, place: u64| {
            let code = self.instruction(of.0, of.1, place, false);
            code.is_some() && code == file.instruction(begin, begin + place, false)
        };
        let begins = file.names().get(&hash_of_name(&of.0.tree.functions[of.1].name));
        begins.into_iter().flatten().any(|begin| places.keys().all(|place| is_same(*begin, *place)))
    }

    /// Whether functions are the same if the linker may have folded several of them into one on one side. Each function
    /// must have a counterpart with its name, and all counterparts must have the same code.
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

    /// Whether an instruction refers to the same function on both sides: the functions to which it refers share a name,
    /// or one of their names was noted as a later name of the other.
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
