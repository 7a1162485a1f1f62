//! Machine code of functions, without what linking changes: addresses of other functions and of data.

use super::merged_profiles::Side;
use super::profile::Function;
use super::symbols::demangle;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use object::{Architecture, Object, ObjectKind, ObjectSegment, ObjectSymbol, RelocationTarget, SymbolKind};
use scruple_core::explain::normal;
use std::cell::RefCell;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::rc::Rc;

/// The programs and libraries of two profiles. Each is read when the first of its functions is needed.
#[derive(Default)]
pub struct Binaries {
    files: RefCell<HashMap<String, Option<Rc<Binary>>>>,
}

/// A program or library.
struct Binary {
    /// The digest of the whole file.
    digest: u64,
    /// Whether its code can be disassembled.
    decodes: bool,
    /// The loaded segments: address and bytes.
    segments: Vec<(u64, Vec<u8>)>,
    /// Names by address.
    symbols: BTreeMap<u64, String>,
    /// Relocations: a name by the place of its address.
    slots: HashMap<u64, String>,
    /// Addresses of code and data, where they are fixed when the program is linked.
    fixed: Option<(u64, u64)>,
}

impl Binaries {
    /// None read yet.
    pub fn new() -> Binaries {
        Binaries::default()
    }

    /// Whether these functions of one program and those of the other have the same code, as far as it was executed in
    /// either; none where that cannot be determined.
    pub fn same(&self, a: (&Side, &[usize]), b: (&Side, &[usize])) -> Option<bool> {
        // Processes and interruptions that are shown as functions have no code.
        if a.1.iter().all(|one| a.0.tree.functions[*one].module.is_empty()) {
            return Some(true);
        }
        if a.1.len() != b.1.len() {
            let one_file = || {
                let of =
                    |side: &Side, one: &[usize]| self.file(side.functions[*one.first()?].object.as_deref()?);
                Some(of(a.0, a.1)?.digest == of(b.0, b.1)?.digest)
            };
            return Some(one_file() == Some(true));
        }
        let sorted = |side: &Side, functions: &[usize]| {
            let mut functions = functions.to_vec();
            functions.sort_by_key(|one| (side.functions[*one].name.clone(), side.functions[*one].offset));
            functions
        };
        let mut all = Some(true);
        for (one, other) in sorted(a.0, a.1).into_iter().zip(sorted(b.0, b.1)) {
            match self.same_function((a.0, one), (b.0, other)) {
                Some(false) => return Some(false),
                None => all = None,
                Some(true) => {}
            }
        }
        all
    }

    fn same_function(&self, a: (&Side, usize), b: (&Side, usize)) -> Option<bool> {
        let (one, other) = (&a.0.functions[a.1], &b.0.functions[b.1]);
        let files = (self.file(one.object.as_deref()?)?, self.file(other.object.as_deref()?)?);
        if files.0.digest == files.1.digest {
            return Some(true);
        }
        one.name.as_ref().or(other.name.as_ref())?;
        if !files.0.decodes || !files.1.decodes {
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
            let of = |file: &Binary, function: &Function| {
                file.instruction(function.offset, function.offset + place)
            };
            of(&files.0, one).is_some_and(|code| Some(code) == of(&files.1, other))
        };
        Some(places.iter().all(same))
    }

    /// The similarity of the executed code of two functions, from 0 to 1 (Dice, over instructions).
    pub fn likeness(&self, a: (&Side, usize), b: (&Side, usize)) -> f64 {
        let code = |(side, function): (&Side, usize)| {
            let one = &side.functions[function];
            let file = self.file(one.object.as_deref()?)?;
            let mut counts: HashMap<u64, u32> = HashMap::new();
            for place in side.executed[function].keys() {
                *counts.entry(file.instruction(one.offset, one.offset + place)?).or_default() += 1;
            }
            Some(counts)
        };
        let (Some(a), Some(b)) = (code(a), code(b)) else { return 0.0 };
        let shared: u32 = a.iter().map(|(code, n)| b.get(code).copied().unwrap_or(0).min(*n)).sum();
        let all: u32 = a.values().chain(b.values()).sum();
        2.0 * f64::from(shared) / f64::from(all.max(1))
    }

    fn file(&self, path: &str) -> Option<Rc<Binary>> {
        let mut files = self.files.borrow_mut();
        files.entry(path.to_owned()).or_insert_with(|| read(Path::new(path)).map(Rc::new)).clone()
    }
}

fn read(path: &Path) -> Option<Binary> {
    let data = std::fs::read(path).ok()?;
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    let file = object::File::parse(data.as_slice()).ok()?;
    let segments: Vec<(u64, Vec<u8>)> = file
        .segments()
        .filter_map(|segment| Some((segment.address(), segment.data().ok()?.to_vec())))
        .collect();
    let mut symbols = BTreeMap::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let is_place = matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data) && symbol.address() != 0;
        if let Ok(name) = symbol.name()
            && is_place
            && !name.is_empty()
        {
            symbols.entry(symbol.address()).or_insert_with(|| name.to_owned());
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
        digest: hasher.finish(),
        decodes: file.architecture() == Architecture::X86_64,
        segments,
        symbols,
        slots,
        fixed: (file.kind() == ObjectKind::Executable && begin > 0).then_some((begin, end)),
    })
}

impl Binary {
    fn bytes(&self, address: u64) -> Option<&[u8]> {
        let holds =
            |(begin, bytes): &&(u64, Vec<u8>)| address >= *begin && address - begin < bytes.len() as u64;
        let (begin, bytes) = self.segments.iter().find(holds)?;
        bytes.get((address - begin) as usize..)
    }

    fn decoded(&self, address: u64) -> Option<(Instruction, iced_x86::ConstantOffsets, &[u8])> {
        let bytes = self.bytes(address)?;
        let bytes = &bytes[..bytes.len().min(15)];
        let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let offsets = decoder.get_constant_offsets(&instruction);
        (!instruction.is_invalid()).then(|| (instruction, offsets, &bytes[..instruction.len()]))
    }

    /// The operation of the instruction at an address, as a number; the function that contains it starts at `function`.
    fn instruction(&self, function: u64, address: u64) -> Option<u64> {
        let (instruction, offsets, bytes) = self.decoded(address)?;
        let mut bytes = bytes.to_vec();
        let mut hasher = DefaultHasher::new();
        let mut hide = |at: usize, size: usize| bytes[at..at + size].fill(0);
        let target = instruction.near_branch_target();
        if target != 0 {
            hide(offsets.immediate_offset(), offsets.immediate_size());
            match self.target(target) {
                // A jump within the function is identified by its offset there; so is a target without a name.
                None if target >= function => {
                    (target - function, instruction.code() as u32).hash(&mut hasher)
                }
                name => name.hash(&mut hasher),
            }
            // Short and long jumps are equivalent.
            let kind = instruction.mnemonic() as u32;
            kind.hash(&mut hasher);
            return Some(hasher.finish());
        }
        if instruction.is_ip_rel_memory_operand() && offsets.has_displacement() {
            hide(offsets.displacement_offset(), offsets.displacement_size());
            let target = instruction.ip_rel_memory_address();
            self.slots.get(&target).or(self.symbols.get(&target)).map(|name| normal(name)).hash(&mut hasher);
        } else if let Some((begin, end)) = self.fixed {
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
        Some(hasher.finish())
    }

    /// The name of the function that a call leads to, through a stub if need be.
    fn target(&self, address: u64) -> Option<String> {
        if let Some(name) = self.symbols.get(&address) {
            return Some(normal(&demangle(name)));
        }
        let mut at = address;
        for _ in 0..3 {
            let (instruction, _, _) = self.decoded(at)?;
            let jumps = instruction.mnemonic() == Mnemonic::Jmp && instruction.op0_kind() == OpKind::Memory;
            if jumps && instruction.is_ip_rel_memory_operand() {
                let name = self.slots.get(&instruction.ip_rel_memory_address())?;
                return Some(normal(&demangle(name)));
            }
            at = instruction.next_ip();
        }
        None
    }
}
