//! The machine code of functions, normalised so that addresses which linking assigns do not count as differences.

use super::aliases::{self, NamesOfFile};
use super::code_hashes::{content, decodes, digest, folded};
use super::demangle::demangle;
use super::fnv::Fnv;
use super::initial_data::Data;
use super::stripped_function::{StrippedFunction, ends};
use crate::merged_profiles::Side;
use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter, Instruction};
use object::{Object, ObjectKind, ObjectSegment, ObjectSymbol, RelocationTarget, SymbolKind};
use scruple_core::explain::normal;
use scruple_stats::sorting::{self, SortedMap};
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// The programs and libraries of two profiles. Only files whose digests differ are disassembled, when needed.
#[derive(Default)]
pub struct Binaries {
    digests: RefCell<HashMap<String, Option<(u64, bool)>>>,
    files: RefCell<HashMap<String, Option<Rc<Binary>>>>,
    /// For each function that has another name in the second program: the exclusive or of the hashes of both names. The
    /// hashes of two instructions that refer to it differ by this value.
    pub(super) renamed: RefCell<HashSet<u32>>,
}

/// One executed instruction of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutedInstruction {
    /// The distance from the beginning of its function, in bytes.
    pub distance: u64,
    /// The instruction in assembler syntax.
    pub text: String,
    /// A hash of the operation, without the addresses that linking assigns.
    pub code: u32,
    /// How often the instruction was executed.
    pub count: u64,
}

/// The largest number of bytes of one function whose code is kept.
pub(crate) const LONGEST: u64 = 1 << 13;

/// A program or library that was read from disk.
pub(crate) struct Binary {
    /// The initial content of its data sections.
    pub(crate) data: Data,
    /// Whether its code can be disassembled.
    pub(crate) decodes: bool,
    /// The loaded segments: the address and the bytes of each.
    segments: Vec<(u64, Vec<u8>)>,
    /// Symbol names by address.
    pub(crate) symbols: SortedMap<u64, String>,
    /// All names of functions that have several.
    pub(crate) aliases: NamesOfFile,
    /// The places of symbols by the hashes of their names as they are compared.
    pub(super) names: OnceCell<SortedMap<u32, Vec<u64>>>,
    /// Names of functions as they are compared, by symbol: those that were needed.
    compared_names: RefCell<HashMap<String, Rc<str>>>,
    /// The ends of functions by their start, from the unwinding table.
    pub(crate) ends: SortedMap<u64, u64>,
    /// Dynamic relocations: the symbol's name by the address of the slot.
    pub(crate) slots: HashMap<u64, String>,
    /// The address range of code and data if it is fixed at link time, as in an executable that is not
    /// position-independent.
    fixed: Option<(u64, u64)>,
}

/// The digest of a function whose code the language's runtime could not give, such as text that was passed to `eval`.
pub const UNKNOWN: u64 = 0;

impl Binaries {
    /// Creates an empty collection.
    pub fn new() -> Binaries {
        Binaries::default()
    }

    /// Whether functions of one program and functions of the other have the same machine code, as far as either program
    /// executed it; `None` if that cannot be determined. Functions that only one program executed are the same if the
    /// other has their file, too.
    pub fn same(&self, a: (&Side, &[usize]), b: (&Side, &[usize])) -> Option<bool> {
        match (a.1, b.1) {
            ([one, ..], []) => return Some(self.has_file_of((a.0, *one), b.0)),
            ([], [other, ..]) => return Some(self.has_file_of((b.0, *other), a.0)),
            _ => {}
        }
        // Processes and signal interruptions are shown as functions, but have no code.
        if a.1.iter().all(|one| a.0.tree.functions[*one].module.is_empty()) {
            return Some(true);
        }
        if let (Some(one), Some(other)) = (&a.0.digests, &b.0.digests) {
            let all = |digests: &[u64], functions: &[usize]| {
                sorting::distinct(functions.iter().map(|function| digests[*function]))
            };
            let (one, other) = (all(one, a.1), all(other, b.1));
            let known = !one.contains(&UNKNOWN) && !other.contains(&UNKNOWN);
            return known.then_some(one == other);
        }
        let all = |is: &dyn Fn(&Side, usize) -> bool| {
            a.1.iter().all(|one| is(a.0, *one)) && b.1.iter().all(|other| is(b.0, *other))
        };
        if a.1.len() != b.1.len() {
            let of = |side: &Side, one: &[usize]| self.known(side, *one.first()?);
            if of(a.0, a.1).is_some_and(|file| Some(file.0) == of(b.0, b.1).map(|other| other.0)) {
                return Some(true);
            }
            // Functions without symbols cannot be distinguished, and which of them run depends on the input.
            if !all(&|side, one| side.functions[one].name.is_some()) {
                return None;
            }
        }
        let has_one_name = all(&|side, one| side.tree.functions[one].aliases.is_empty());
        let is_one = a.1.len() == 1 && b.1.len() == 1;
        if is_one || has_one_name { self.same_in_some_order(a, b) } else { self.same_if_folded(a, b) }
    }

    /// Whether the code of another program contains the file of a function.
    fn has_file_of(&self, of: (&Side, usize), other: &Side) -> bool {
        let Some((digest, _)) = self.known(of.0, of.1) else { return false };
        let mut seen = HashSet::new();
        (0..other.functions.len()).any(|function| {
            let is_new = seen.insert(other.functions[function].object.as_deref());
            is_new && self.known(other, function).is_some_and(|(file, _)| file == digest)
        })
    }

    pub(crate) fn same_function(&self, a: (&Side, usize), b: (&Side, usize)) -> Option<bool> {
        let (one, other) = (&a.0.functions[a.1], &b.0.functions[b.1]);
        let files = (self.known(a.0, a.1)?, self.known(b.0, b.1)?);
        if files.0.0 == files.1.0 {
            return Some(true);
        }
        // If only one of them has symbols, the names of called functions are left out of the code.
        let is_bare = one.name.is_some() != other.name.is_some();
        if is_bare && (a.0.code.is_some() || b.0.code.is_some()) {
            return None;
        }
        // Without the function's start address its code cannot be aligned with other code.
        if one.offset == 0 || other.offset == 0 {
            return None;
        }
        if !files.0.1 || !files.1.1 {
            return None;
        }
        let executed = (&a.0.executed[a.1], &b.0.executed[b.1]);
        let mut places: Vec<u64> = executed.0.keys().chain(executed.1.keys()).copied().collect();
        places.sort_unstable();
        places.dedup();
        if places.is_empty() {
            return None;
        }
        let same = |place: &u64| {
            let [code, other] =
                [a, b].map(|(side, function)| self.instruction(side, function, *place, is_bare));
            code.is_some() && (code == other || !is_bare && self.share_a_name(a, b, *place))
        };
        Some(places.iter().all(|place| same(place) && self.same_target(a, b, *place)))
    }

    /// Whether an instruction of both refers to the same function, if only the matching of stripped functions knows
    /// what that is.
    fn same_target(&self, a: (&Side, usize), b: (&Side, usize), place: u64) -> bool {
        let is_named = [a, b].iter().all(|(side, function)| side.functions[*function].name.is_some());
        if is_named || a.0.code.is_some() || b.0.code.is_some() {
            return true;
        }
        let name = |side: &Side, function: usize| {
            let known = &side.functions[function];
            let path = known.object.as_deref()?;
            let target = self.file(path, side)?.mentioned(known.offset.checked_add(place)?)?;
            side.names.get(path)?.get(&target).cloned()
        };
        name(a.0, a.1) == name(b.0, b.1)
    }

    /// The functions of a file in the order of addresses: all in its unwinding table, or those whose code was stored.
    pub(crate) fn shapes(&self, side: &Side, path: &str) -> Vec<StrippedFunction> {
        let mut shapes = Vec::new();
        if let Some(code) = &side.code {
            for (function, code) in side.functions.iter().zip(&code.functions) {
                if function.object.as_deref() == Some(path) && !code.is_empty() {
                    let name = function.name.as_deref().map(|name| normal(&demangle(name)));
                    let code = code.values().copied().collect();
                    shapes.push(StrippedFunction { begin: function.offset, name, code, targets: Vec::new() });
                }
            }
            sorting::by_key(&mut shapes, |shape| shape.begin);
            return shapes;
        }
        let Some(file) = self.file(path, side).filter(|file| file.decodes) else { return shapes };
        for (begin, end) in &file.ends {
            let name = file.symbols.get(begin).map(|name| normal(&demangle(name)));
            let mut shape = StrippedFunction { begin: *begin, name, ..StrippedFunction::default() };
            let mut at = *begin;
            while at < (*end).min(begin + LONGEST) {
                let Some((decoded, _, _)) = file.decoded(at) else { break };
                if let Some(target) = file.mentioned(at).filter(|target| !(begin..end).contains(&target)) {
                    shape.targets.push((shape.code.len(), target));
                }
                shape.code.extend(file.instruction(*begin, at, true));
                at = decoded.next_ip();
            }
            shapes.push(shape);
        }
        shapes
    }

    /// The similarity of the executed code of two functions, from 0 to 1: the Dice coefficient over multisets of
    /// instructions. Of functions of scripts it is only known whether their code is equal; of those that have one name it
    /// may be half the same.
    pub fn likeness(&self, a: (&Side, usize), b: (&Side, usize)) -> f64 {
        if let (Some(one), Some(other)) = (&a.0.digests, &b.0.digests) {
            let [name, name_of_other] = [a, b].map(|(side, function)| &side.tree.functions[function].name);
            // Each file has a `(top level)` or a `<module>`.
            let has_own_name = !name.starts_with(['(', '<']);
            return match one[a.1] == other[b.1] && one[a.1] != UNKNOWN {
                true => 1.0,
                false if name == name_of_other && has_own_name => 0.5,
                false => 0.0,
            };
        }
        let code = |(side, function): (&Side, usize)| {
            let mut counts: HashMap<u32, u32> = HashMap::new();
            for place in side.executed[function].keys() {
                *counts.entry(self.instruction(side, function, *place, false)?).or_default() += 1;
            }
            Some(counts)
        };
        let (Some(a), Some(b)) = (code(a), code(b)) else { return 0.0 };
        let shared: u32 = a.iter().map(|(code, n)| b.get(code).copied().unwrap_or(0).min(*n)).sum();
        let all: u32 = a.values().chain(b.values()).sum();
        2.0 * f64::from(shared) / f64::from(all.max(1))
    }

    /// The executed instructions of a function, in order of address; `None` if its file no longer exists, or holds
    /// code that cannot be disassembled.
    pub fn listing(&self, side: &Side, function: usize) -> Option<Vec<ExecutedInstruction>> {
        let known = &side.functions[function];
        let object = known.object.as_deref().filter(|_| side.code.is_none())?;
        let file = self.file(object, side).filter(|file| file.decodes)?;
        let mut formatter = GasFormatter::new();
        let listed = side.executed[function].keys().map(|distance| {
            let address = known.offset.checked_add(*distance)?;
            let (instruction, _, _) = file.decoded(address)?;
            let mut text = String::new();
            let target = Some(instruction.near_branch_target()).filter(|target| *target != 0);
            match target.and_then(|target| file.target(target, false)) {
                Some(name) => {
                    formatter.format_mnemonic(&instruction, &mut text);
                    text.push(' ');
                    text.push_str(&name);
                }
                None => formatter.format(&instruction, &mut text),
            }
            let count = side.executions(object, address);
            Some(ExecutedInstruction {
                distance: *distance,
                text,
                code: file.instruction(known.offset, address, false)?,
                count,
            })
        });
        listed.collect()
    }

    /// Whether two functions, one of each program, are in files with the same content; `None` if a file is not known.
    pub fn same_file(&self, a: (&Side, usize), b: (&Side, usize)) -> Option<bool> {
        Some(self.known(a.0, a.1)?.0 == self.known(b.0, b.1)?.0)
    }

    /// The initial data of the file that contains a function; `None` if the file is not known.
    pub fn data(&self, side: &Side, function: usize) -> Option<Data> {
        // A script has none: its code makes all of its data.
        if side.digests.is_some() {
            return Some(Data::default());
        }
        let path = side.functions[function].object.as_deref()?;
        match &side.code {
            Some(code) => code.data.get(path).cloned(),
            None => self.file(path, side).map(|file| file.data.clone()),
        }
    }

    /// The length of the instruction at an address of a file, in bytes; `None` if it cannot be decoded.
    pub fn length(&self, path: &str, address: u64) -> Option<u8> {
        let file = self.file(path, &Side::default())?;
        u8::try_from(file.decoded(address)?.0.len()).ok()
    }

    /// The digest of the file that contains a function, and whether the file's code can be disassembled.
    fn known(&self, side: &Side, function: usize) -> Option<(u64, bool)> {
        let path = side.functions[function].object.as_deref()?;
        match &side.code {
            Some(code) => code.files.get(path).copied(),
            None => self.digest(path),
        }
    }

    /// The hash of the operation of the instruction at the distance `place` from the beginning of a function; see
    /// [`Binary::instruction`].
    pub(crate) fn instruction(&self, side: &Side, function: usize, place: u64, is_bare: bool) -> Option<u32> {
        if let Some(code) = &side.code {
            return code.functions.get(function)?.get(&place).copied();
        }
        let known = &side.functions[function];
        let file = self.file(known.object.as_deref()?, side)?;
        file.instruction(known.offset, known.offset.checked_add(place)?, is_bare)
    }

    pub(crate) fn digest(&self, path: &str) -> Option<(u64, bool)> {
        *self.digests.borrow_mut().entry(path.to_owned()).or_insert_with(|| digest(path))
    }

    pub(crate) fn file(&self, path: &str, side: &Side) -> Option<Rc<Binary>> {
        let mut files = self.files.borrow_mut();
        files.entry(path.to_owned()).or_insert_with(|| read(path, side).map(Rc::new)).clone()
    }
}

fn read(path: &str, side: &Side) -> Option<Binary> {
    let data = content(path)?;
    let file = object::File::parse(data.as_slice()).ok()?;
    let segments: Vec<(u64, Vec<u8>)> = file
        .segments()
        .filter_map(|segment| Some((segment.address(), segment.data().ok()?.to_vec())))
        .collect();
    let mut symbols = SortedMap::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let is_place = matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data) && symbol.address() != 0;
        if let Ok(name) = symbol.name()
            && is_place
            && !name.is_empty()
        {
            symbols.entry(symbol.address()).or_insert_with(|| name.to_owned());
        }
    }
    // Functions may have a name in the profile but no symbol in the file.
    for function in side.functions.iter().filter(|function| function.object.as_deref() == Some(path)) {
        if let Some(name) = function.name.as_ref().filter(|_| function.offset > 0) {
            symbols.entry(function.offset).or_insert_with(|| name.clone());
        }
    }
    let names: HashMap<_, _> = file
        .dynamic_symbols()
        .filter_map(|symbol| Some((symbol.index(), symbol.name().ok()?.to_owned())))
        .collect();
    let mut slots = HashMap::new();
    for (place, relocation) in file.dynamic_relocations().into_iter().flatten() {
        if let RelocationTarget::Symbol(index) = relocation.target()
            && let Some(name) = names.get(&index)
        {
            slots.insert(place, name.clone());
        }
    }
    let begin = segments.iter().map(|(begin, _)| *begin).min().unwrap_or(0);
    let end = file.segments().map(|segment| segment.address() + segment.size()).max().unwrap_or(0);
    Some(Binary {
        data: Data::of(&file, (begin, end)),
        decodes: decodes(&file),
        segments,
        symbols,
        aliases: aliases::names(&file),
        names: OnceCell::default(),
        compared_names: RefCell::default(),
        ends: ends(&file),
        slots,
        fixed: (file.kind() == ObjectKind::Executable && begin > 0).then_some((begin, end)),
    })
}

impl Binary {
    /// The address of code or data that an instruction contains.
    pub(crate) fn mentioned(&self, address: u64) -> Option<u64> {
        let (instruction, offsets, _) = self.decoded(address)?;
        match instruction.near_branch_target() {
            0 if instruction.is_ip_rel_memory_operand() => Some(instruction.ip_rel_memory_address()),
            0 if offsets.has_immediate() && offsets.immediate_size() >= 4 => {
                let value = u64::from(instruction.immediate32());
                self.fixed.is_some_and(|(begin, end)| (begin..end).contains(&value)).then_some(value)
            }
            0 => None,
            target => Some(target),
        }
    }

    fn bytes(&self, address: u64) -> Option<&[u8]> {
        let holds =
            |(begin, bytes): &&(u64, Vec<u8>)| address >= *begin && address - begin < bytes.len() as u64;
        let (begin, bytes) = self.segments.iter().find(holds)?;
        bytes.get((address - begin) as usize..)
    }

    pub(crate) fn decoded(&self, address: u64) -> Option<(Instruction, iced_x86::ConstantOffsets, &[u8])> {
        let bytes = self.bytes(address)?;
        let bytes = &bytes[..bytes.len().min(15)];
        let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let offsets = decoder.get_constant_offsets(&instruction);
        (!instruction.is_invalid()).then(|| (instruction, offsets, &bytes[..instruction.len()]))
    }

    /// A name of a function as it is compared with others.
    pub(crate) fn compared_name(&self, alias: &str) -> Rc<str> {
        if let Some(name) = self.compared_names.borrow().get(alias) {
            return name.clone();
        }
        let name: Rc<str> = normal(&demangle(alias)).into();
        self.compared_names.borrow_mut().insert(alias.to_owned(), name.clone());
        name
    }

    /// A hash of the operation of the instruction at an address, without the addresses that linking assigns.
    /// `function` is the start address of the function that contains it. The hash of the name to which the instruction
    /// refers is the last part, so that it can be exchanged. A bare hash has no names of the file's own symbols.
    pub(crate) fn instruction(&self, function: u64, address: u64, is_bare: bool) -> Option<u32> {
        self.operation(function, address, is_bare, None)
    }

    /// Like [`Binary::instruction`], with `alias` in place of the name of the symbol to which the instruction refers.
    pub(crate) fn operation(
        &self,
        function: u64,
        address: u64,
        is_bare: bool,
        alias: Option<&String>,
    ) -> Option<u32> {
        let (instruction, offsets, bytes) = self.decoded(address)?;
        let mut bytes = bytes.to_vec();
        let mut hasher = Fnv::default();
        let mut hide = |at: usize, size: usize| bytes[at..at + size].fill(0);
        let target = instruction.near_branch_target();
        if target != 0 {
            hide(offsets.immediate_offset(), offsets.immediate_size());
            let known = || self.target(target, is_bare).map(Rc::from);
            let name = alias.map(|alias| self.compared_name(alias)).or_else(known);
            // A jump within the function is identified by its offset there; so is a target without a name.
            let is_within = target >= function && self.ends.get(&function).is_none_or(|end| target < *end);
            if name.is_none() && is_within {
                (target - function, instruction.code() as u32).hash(&mut hasher);
            }
            // Short and long jumps are equivalent.
            (instruction.mnemonic() as u32).hash(&mut hasher);
            return Some(folded(hasher.finish()) ^ name.map_or(0, |name| hash_of_name(&name)));
        }
        let mut of_name = 0;
        if instruction.is_ip_rel_memory_operand() && offsets.has_displacement() {
            hide(offsets.displacement_offset(), offsets.displacement_size());
            let target = instruction.ip_rel_memory_address();
            let own = alias.or(self.symbols.get(&target)).filter(|_| !is_bare);
            let name = self.slots.get(&target).or(own);
            of_name = name.map_or(0, |name| hash_of_name(&self.compared_name(name)));
        }
        if let Some((begin, end)) = self.fixed {
            let within = |value: u64| (begin..end).contains(&value);
            if offsets.has_displacement() && within(instruction.memory_displacement64()) {
                hide(offsets.displacement_offset(), offsets.displacement_size());
            }
            if offsets.has_immediate()
                && offsets.immediate_size() >= 4
                && within(instruction.immediate32().into())
            {
                hide(offsets.immediate_offset(), offsets.immediate_size());
            }
        }
        bytes.hash(&mut hasher);
        Some(folded(hasher.finish()) ^ of_name)
    }
}

/// The part of an instruction's hash that is the name of a function or of data, as it is compared.
pub(super) fn hash_of_name(name: &str) -> u32 {
    let mut hasher = Fnv::default();
    name.hash(&mut hasher);
    folded(hasher.finish())
}
