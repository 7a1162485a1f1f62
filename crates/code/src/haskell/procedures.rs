//! Finds where the procedures of a Haskell program begin, from symbols and from debugging information.

use super::super::machine_code::debug_file::{self, DwarfReader};
use super::super::profile::InstructionRun;
use super::heap_limit;
use super::names;
use super::source::{self, SourceText};
use gimli::{AttributeValue, Dwarf, Unit};
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use object::{Architecture, File, Object, ObjectSection, ObjectSymbol, RelocationTarget};
use scruple_stats::sorting::SortedMap;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// GHC's name in `DW_AT_producer`.
const COMPILER: &str = "Glorious Glasgow Haskell";

/// The procedures of a file.
pub(super) struct Procedures {
    /// The names of procedures by start address, for modules with debugging information.
    begins: SortedMap<u64, String>,
    /// The end address of each module with debugging information, by its start address.
    described: SortedMap<u64, u64>,
    /// The module of each code symbol, by address; `None` for symbols of C code.
    modules: SortedMap<u64, Option<String>>,
    /// The optimised Core of modules, by the module's name.
    pub cores: SortedMap<String, String>,
    /// The address ranges of PLT stubs, which jump to other files.
    stubs: Vec<(u64, u64)>,
    /// The sections with code: the address and the bytes of each.
    code: Vec<(u64, Vec<u8>)>,
    decodes: bool,
    /// The symbols of code, by address.
    symbols: SortedMap<u64, String>,
    /// The addresses of these symbols.
    addresses: HashMap<String, u64>,
    /// The symbols whose addresses the dynamic linker writes somewhere, by that place.
    slots: HashMap<u64, String>,
    /// Where code notes how many bytes of the heap it wants, as distances from the runtime's variables.
    requests: Range<u64>,
}

impl Procedures {
    /// Reads the procedures of a file; `None` if it cannot be read.
    pub fn of(path: &str, sources: &SourceText<'_>) -> Option<Procedures> {
        let data = std::fs::read(path).ok()?;
        let file = File::parse(data.as_slice()).ok()?;
        let mut stubs = Vec::new();
        let mut code = Vec::new();
        for section in file.sections().filter(|section| section.kind() == object::SectionKind::Text) {
            let begin = section.address();
            match section.name() {
                Ok(name) if name.starts_with(".plt") => stubs.push((begin, begin + section.size())),
                _ => code.push((begin, section.data().ok()?.to_vec())),
            }
        }
        let is_inside = |address: u64| {
            code.iter().any(|(begin, bytes): &(u64, Vec<u8>)| {
                (*begin..*begin + bytes.len() as u64).contains(&address)
            })
        };
        // Info tables of constructors are symbols of data, but lie between the code.
        let of_code =
            file.symbols().chain(file.dynamic_symbols()).filter(|symbol| is_inside(symbol.address()));
        let mut modules: SortedMap<u64, Option<String>> = SortedMap::new();
        let mut symbols = SortedMap::new();
        for symbol in of_code {
            let name = symbol.name().ok().filter(|name| !name.is_empty());
            symbols.extend(name.map(|name| (symbol.address(), name.to_owned())));
            let module = name.and_then(names::module);
            let known = modules.entry(symbol.address()).or_default();
            *known = known.take().or(module);
        }
        let decodes = file.architecture() == Architecture::X86_64;
        let (begins, described, cores) = (SortedMap::new(), SortedMap::new(), SortedMap::new());
        let mut procedures = Procedures {
            begins,
            described,
            modules,
            cores,
            stubs,
            code,
            decodes,
            addresses: symbols
                .iter()
                .map(|(address, name): (&u64, &String)| (name.clone(), *address))
                .collect(),
            symbols,
            slots: slots(&file),
            requests: 0..0,
        };
        if let Some(dwarf) = debug_file::dwarf(Path::new(path), &file) {
            let mut headers = dwarf.units();
            while let Ok(Some(header)) = headers.next() {
                if let Ok(unit) = dwarf.unit(header) {
                    // A damaged unit is ignored.
                    let _ = procedures.describe(&dwarf, &unit, Path::new(path), sources);
                }
            }
        }
        Some(procedures)
    }

    /// The procedure that contains an address without a symbol: its start address and its name. The start address is
    /// `None` for the functions of a module that cannot be distinguished.
    pub fn at(&self, address: u64) -> Option<(Option<u64>, String)> {
        if let Some((_, end)) = self.described.range(..=address).next_back()
            && address < *end
        {
            let (begin, name) = self.begins.range(..=address).next_back()?;
            return Some((Some(*begin), name.clone()));
        }
        // The code of a module is contiguous, and all C functions have symbols.
        let (_, before) = self.modules.range(..=address).next_back()?;
        let (_, after) = self.modules.range(address..).next()?;
        let module = match (before, after) {
            (Some(before), Some(after)) => (before == after).then_some(before),
            (one, other) => one.as_ref().or(other.as_ref()),
        };
        Some((None, names::local_functions(module?)))
    }

    /// The symbol of an address.
    pub fn symbol(&self, address: u64) -> Option<&str> {
        self.symbols.get(&address).map(String::as_str)
    }

    /// The address of a symbol.
    pub fn address_of(&self, symbol: &str) -> Option<u64> {
        self.addresses.get(symbol).copied()
    }

    /// The symbol whose address the dynamic linker writes at an address.
    pub fn slot(&self, address: u64) -> Option<String> {
        self.slots.get(&address).cloned()
    }

    /// The code at an address; `None` if there are fewer bytes, or the code is not for x86-64.
    pub fn code(&self, address: u64, length: usize) -> Option<&[u8]> {
        let holds =
            |(begin, bytes): &&(u64, Vec<u8>)| address >= *begin && address - begin < bytes.len() as u64;
        let (begin, bytes) = self.code.iter().find(holds).filter(|_| self.decodes)?;
        let from = (address - begin) as usize;
        bytes.get(from..from.checked_add(length)?)
    }

    /// Whether code notes at this distance from the runtime's variables how many bytes of the heap it wants.
    pub fn is_heap_request(&self, distance: u64) -> bool {
        self.requests.contains(&distance)
    }

    /// Learns from code that compares with the heap's limit where that is.
    pub fn learn(&mut self, run: &InstructionRun) {
        let length = run.lengths.iter().map(|length| usize::from(*length)).sum();
        let Some(code) = self.code(run.offset, length).filter(|_| self.requests.is_empty()) else { return };
        let limit =
            Decoder::new(64, code, DecoderOptions::NONE).iter().find_map(|one| heap_limit::limit(&one));
        self.requests = limit.map_or(0..0, heap_limit::requests);
    }

    /// Whether an address is in a stub.
    pub fn is_stub(&self, address: u64) -> bool {
        self.stubs.iter().any(|(begin, end)| (begin..end).contains(&&address))
    }

    /// The target of the unconditional jump or call at an address, if the instruction contains it.
    pub fn jump(&self, address: u64, length: u8) -> Option<u64> {
        let bytes = self.code(address, usize::from(length))?;
        let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
        let target = instruction.near_branch_target();
        (target != 0 && matches!(instruction.mnemonic(), Mnemonic::Jmp | Mnemonic::Call)).then_some(target)
    }

    /// Adds the procedures of one compilation unit, if GHC compiled it.
    fn describe(
        &mut self,
        dwarf: &Dwarf<DwarfReader>,
        unit: &Unit<DwarfReader>,
        program: &Path,
        sources: &SourceText<'_>,
    ) -> gimli::Result<()> {
        let mut entries = unit.entries();
        let mut module: Option<Module> = None;
        let mut found = SortedMap::new();
        while let Some((_, entry)) = entries.next_dfs()? {
            let low = address(entry.attr_value(gimli::DW_AT_low_pc)?);
            match entry.tag() {
                gimli::DW_TAG_compile_unit => {
                    let producer = text(dwarf, unit, entry.attr_value(gimli::DW_AT_producer)?);
                    let high = address(entry.attr_value(gimli::DW_AT_high_pc)?);
                    let (Some(low), Some(high)) = (low, high) else { return Ok(()) };
                    if !producer.is_some_and(|name| name.contains(COMPILER)) {
                        return Ok(());
                    }
                    self.described.insert(low, high);
                    let name = text(dwarf, unit, entry.attr_value(gimli::DW_AT_name)?).unwrap_or_default();
                    let folder =
                        text(dwarf, unit, entry.attr_value(gimli::DW_AT_comp_dir)?).unwrap_or_default();
                    let path = Path::new(&folder).join(&name);
                    // The module's name comes from its symbols; a file's path may have folders before it.
                    let of_symbols = self.modules.range(low..high).filter_map(|(_, name)| name.as_ref());
                    let known = of_symbols.into_iter().find(|name| *name != ":Main").cloned();
                    let known = known.or_else(|| Some(path.file_stem()?.to_string_lossy().into_owned()));
                    module = Some(Module {
                        name: known.unwrap_or_default(),
                        lines: first_lines(dwarf, unit, &name)?,
                        text: sources(program, &path),
                        core: source::core(program, &path),
                    });
                }
                gimli::DW_TAG_subprogram => {
                    let Some(low) = low else { continue };
                    let noted = text(dwarf, unit, entry.attr_value(gimli::DW_AT_name)?);
                    let symbol = text(dwarf, unit, entry.attr_value(gimli::DW_AT_MIPS_linkage_name)?);
                    found.insert(low, (noted, symbol));
                }
                _ => {}
            }
        }
        let Some(module) = module else { return Ok(()) };
        for (begin, (noted, symbol)) in &found {
            let end = found.range(begin + 1..).next().map_or(u64::MAX, |(next, _)| *next);
            self.begins.insert(*begin, module.named(*begin..end, noted.as_deref(), symbol.as_deref()));
        }
        self.cores.extend(module.core.map(|core| (module.name, core)));
        Ok(())
    }
}

/// The optimised Core of a module of a program.
pub fn core_of(program: &Path, module: &str) -> Option<String> {
    let described = Procedures::of(program.to_str()?, &|_, _| None)?.cores.remove(module);
    // Without debugging information the path of the source is not known.
    let (_, module) = module.rsplit_once(':').unwrap_or(("", module));
    let beside = |path: &str| source::core(program, &program.with_file_name(path));
    described.or_else(|| beside(&(module.replace('.', "/") + ".hs")))
}

/// The symbols whose addresses the dynamic linker writes into a file, by place.
fn slots(file: &File<'_>) -> HashMap<u64, String> {
    let names: HashMap<_, _> = file
        .dynamic_symbols()
        .filter_map(|symbol| Some((symbol.index(), symbol.name().ok()?.to_owned())))
        .collect();
    let relocations = file.dynamic_relocations().into_iter().flatten();
    let slot = |(place, relocation): (u64, object::Relocation)| match relocation.target() {
        RelocationTarget::Symbol(index) => Some((place, names.get(&index)?.clone())),
        _ => None,
    };
    relocations.filter_map(slot).collect()
}

/// What is known about a module.
struct Module {
    name: String,
    /// Line numbers in the module's own file, by the address where the code of each line begins.
    lines: SortedMap<u64, u32>,
    text: Option<String>,
    core: Option<String>,
}

impl Module {
    /// The name of a procedure. The sources of the name are, in this order: the symbol, the Core, the source note at
    /// the beginning of the code, and the declaration at its first line. Without any of them it is one of the
    /// module's local functions.
    fn named(&self, code: Range<u64>, noted: Option<&str>, symbol: Option<&str>) -> String {
        let symbol = symbol.unwrap_or_default();
        if names::module(symbol).is_some() {
            return names::shown(symbol);
        }
        let number = symbol.strip_suffix("_info").unwrap_or(symbol);
        let in_core = || source::named_in_core(self.core.as_ref()?, number).map(str::to_owned);
        let noted = || noted.filter(|name| !names::is_numbered(name)).map(str::to_owned);
        let declared = || {
            let (_, line) = self.lines.range(code.clone()).next()?;
            source::declaration(self.text.as_ref()?, *line)
        };
        match in_core().or_else(noted).or_else(declared) {
            Some(name) => format!("{}.{name}", self.name),
            None => names::local_functions(&self.name),
        }
    }
}

fn text(
    dwarf: &Dwarf<DwarfReader>,
    unit: &Unit<DwarfReader>,
    value: Option<AttributeValue<DwarfReader>>,
) -> Option<String> {
    use gimli::Reader as _;
    let text = dwarf.attr_string(unit, value?).ok()?;
    Some(text.to_string_lossy().ok()?.into_owned())
}

fn address(value: Option<AttributeValue<DwarfReader>>) -> Option<u64> {
    match value? {
        AttributeValue::Addr(address) => Some(address),
        _ => None,
    }
}

/// The first line number of each address with code of the given file.
fn first_lines(
    dwarf: &Dwarf<DwarfReader>,
    unit: &Unit<DwarfReader>,
    file: &str,
) -> gimli::Result<SortedMap<u64, u32>> {
    let mut lines = SortedMap::new();
    let Some(program) = unit.line_program.clone() else { return Ok(lines) };
    let mut rows = program.rows();
    while let Some((header, row)) = rows.next_row()? {
        let path = row.file(header).map(|entry| entry.path_name());
        let name = path.and_then(|name| text(dwarf, unit, Some(name)));
        if let (Some(line), true) = (row.line(), name.as_deref().map(base) == Some(base(file))) {
            lines.entry(row.address()).or_insert(line.get() as u32);
        }
    }
    Ok(lines)
}

fn base(path: &str) -> PathBuf {
    Path::new(path).file_name().map(PathBuf::from).unwrap_or_default()
}
