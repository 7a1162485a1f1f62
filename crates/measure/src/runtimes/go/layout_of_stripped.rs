//! Where a Go program without debugging information keeps its counters: learnt from a program that the same version of
//! Go builds.
//!
//! Both programs contain the same code of the runtime, except for addresses. So the offsets within structures are those
//! of the other program, and where an instruction of the other program refers to a variable, the same instruction of
//! the stripped one has the variable's address.

use super::build::Build;
use super::empty_program::EmptyProgram;
use super::layout::{Layout, STRIPPED, VARIABLES};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use object::{Architecture, Object, ObjectSection, ObjectSymbol};
use scruple_code::go_functions;
use scruple_stats::sorting::{self, SortedMap};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

/// The smallest number of functions that must agree on the address of a variable.
const LEAST: usize = 3;

/// Finds the empty program that matches a stripped one, and makes sure that the latter's layout can be learnt from it.
/// Does that once for each file.
///
/// # Errors
/// Says why the layout cannot be known.
pub(in crate::runtimes) fn empty_program_of(path: &Path) -> Result<EmptyProgram, String> {
    /// What was found, by device and inode.
    type EmptyProgramCache = HashMap<(u64, u64), Result<EmptyProgram, String>>;
    static KNOWN: LazyLock<Mutex<EmptyProgramCache>> = LazyLock::new(Mutex::default);
    let file = fs::metadata(path).map_err(|error| format!("the program file cannot be read: {error}"))?;
    let mut known = KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let find = || {
        let data = fs::read(path).map_err(|error| error.to_string())?;
        let file = object::File::parse(&*data).map_err(|error| error.to_string())?;
        let build = Build::of(&file).ok_or(OTHER_FORM)?;
        let empty = EmptyProgram::of(&build);
        learn(&file, &empty).map(|_| empty)
    };
    known.entry((file.dev(), file.ino())).or_insert_with(|| find().map_err(explained)).clone()
}

/// The layout of a stripped program, learnt from one of these empty programs.
///
/// # Errors
/// Says why it cannot be known.
pub(super) fn layout(path: &Path, empty_programs: &[EmptyProgram]) -> Result<Layout, String> {
    let data = fs::read(path).map_err(|error| format!("the program file cannot be read: {error}"))?;
    let file = object::File::parse(&*data).map_err(|error| error.to_string())?;
    let build = Build::of(&file).ok_or_else(|| explained(OTHER_FORM.to_owned()))?;
    let empty = empty_programs.iter().find(|program| program.build == build).ok_or(STRIPPED)?;
    learn(&file, empty).map_err(explained)
}

const OTHER_FORM: &str = "its build information has an unknown format";

fn explained(why: String) -> String {
    format!("{STRIPPED} ({why})")
}

fn learn(file: &object::File<'_>, empty: &EmptyProgram) -> Result<Layout, String> {
    if file.architecture() != Architecture::X86_64 {
        return Err("only code for x86-64 can be compared with that of another program".to_owned());
    }
    let program = empty.program.as_ref().map_err(Clone::clone)?;
    let data = fs::read(program).map_err(|error| error.to_string())?;
    let other = object::File::parse(&*data).map_err(|error| error.to_string())?;
    let layout = Layout::read(program)?.ok_or("the other program is not a Go program")?;
    relocated(layout, &other, file)
}

/// The layout of `own`, given that of `other`, a program with the same runtime.
fn relocated(mut layout: Layout, other: &object::File<'_>, own: &object::File<'_>) -> Result<Layout, String> {
    let ranges = ranges(other);
    let mut found: SortedMap<&str, SortedMap<u64, usize>> = SortedMap::new();
    let (ours, theirs) = (ProgramCode::of(own)?, ProgramCode::of(other)?);
    for (name, there) in &theirs.functions {
        let Some(here) = ours.functions.get(name) else { continue };
        let references = theirs.references(*there, &ours, *here).unwrap_or_default();
        let of_function = references.into_iter().filter_map(|(theirs, ours)| {
            let (variable, begin, _) =
                ranges.iter().find(|(_, begin, end)| (*begin..*end).contains(&theirs))?;
            Some((*variable, ours.wrapping_sub(theirs - begin)))
        });
        for (variable, address) in sorting::distinct(of_function) {
            *found.entry(variable).or_default().entry(address).or_default() += 1;
        }
    }
    layout.movable_from = Layout::movable_from(own);
    for variable in VARIABLES {
        let places = found.remove(variable).unwrap_or_default();
        let agreed =
            places.first_key_value().filter(|(_, functions)| places.len() == 1 && **functions >= LEAST);
        let (address, _) =
            agreed.ok_or("its runtime’s code is not that of another program of its version")?;
        layout.variables.insert(variable.to_owned(), *address);
    }
    Ok(layout)
}

/// The variables of a program with symbols, each with its first address and the one after its last.
fn ranges(file: &object::File<'_>) -> Vec<(&'static str, u64, u64)> {
    let known = file.symbols().filter_map(|symbol| {
        let name = symbol.name().ok()?;
        let variable = VARIABLES.into_iter().find(|known| *known == name)?;
        Some((variable, symbol.address(), symbol.address() + symbol.size().max(1)))
    });
    known.collect()
}

/// The code of a program, and where its functions begin and end.
struct ProgramCode<'a> {
    bytes: &'a [u8],
    begin: u64,
    /// Begin and end by name. A name that two functions have is left out.
    functions: SortedMap<String, (u64, u64)>,
}

impl<'a> ProgramCode<'a> {
    fn of(file: &object::File<'a>) -> Result<ProgramCode<'a>, String> {
        let text = file.section_by_name(".text").ok_or("it has no section .text")?;
        let bytes = text.data().map_err(|error| error.to_string())?;
        let end = text.address() + bytes.len() as u64;
        let names = go_functions(file).ok_or("its table of functions has an unknown format")?;
        let begins: Vec<u64> = sorting::distinct(names.keys().copied());
        let mut functions = SortedMap::new();
        let mut twice = BTreeSet::new();
        for (begin, name) in names {
            let behind = begins.partition_point(|other| *other <= begin);
            let next = begins.get(behind).copied().unwrap_or(end);
            if name.starts_with("runtime.") && functions.insert(name.clone(), (begin, next)).is_some() {
                twice.insert(name);
            }
        }
        functions.retain(|name, _| !twice.contains(name));
        Ok(ProgramCode { bytes, begin: text.address(), functions })
    }

    fn instructions(&self, (begin, end): (u64, u64)) -> Option<Vec<Instruction>> {
        let place = |address: u64| usize::try_from(address.checked_sub(self.begin)?).ok();
        let code = self.bytes.get(place(begin)?..place(end)?)?;
        let mut all: Vec<Instruction> =
            Decoder::with_ip(64, code, begin, DecoderOptions::NONE).iter().collect();
        let padding = |one: &Instruction| one.mnemonic() == Mnemonic::Int3;
        all.truncate(all.iter().rposition(|one| !padding(one)).map_or(0, |last| last + 1));
        Some(all)
    }

    /// The addresses to which the same instructions of a function refer, here and in another program; `None` if the
    /// function has other code there.
    fn references(
        &self,
        here: (u64, u64),
        other: &ProgramCode<'_>,
        there: (u64, u64),
    ) -> Option<Vec<(u64, u64)>> {
        let (ours, theirs) = (self.instructions(here)?, other.instructions(there)?);
        if ours.len() != theirs.len() {
            return None;
        }
        let mut all = Vec::new();
        for (one, other) in ours.iter().zip(&theirs) {
            all.extend(same(one, other)?);
        }
        Some(all)
    }
}

/// Whether two instructions differ only by addresses of code and data; then the addresses of data that they
/// refer to.
fn same(one: &Instruction, other: &Instruction) -> Option<Option<(u64, u64)>> {
    if one.code() != other.code() || one.segment_prefix() != other.segment_prefix() {
        return None;
    }
    let mut referred = None;
    for operand in 0..one.op_count() {
        let kind = one.op_kind(operand);
        let alike = kind == other.op_kind(operand)
            && match kind {
                OpKind::Register => one.op_register(operand) == other.op_register(operand),
                OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => true,
                OpKind::Memory if one.is_ip_rel_memory_operand() && other.is_ip_rel_memory_operand() => {
                    referred = Some((one.ip_rel_memory_address(), other.ip_rel_memory_address()));
                    true
                }
                OpKind::Memory => {
                    let place = |it: &Instruction| {
                        (
                            it.memory_base(),
                            it.memory_index(),
                            it.memory_index_scale(),
                            it.memory_displacement64(),
                        )
                    };
                    place(one) == place(other)
                }
                kind if is_immediate(kind) => one.immediate(operand) == other.immediate(operand),
                _ => true,
            };
        if !alike {
            return None;
        }
    }
    Some(referred)
}

fn is_immediate(kind: OpKind) -> bool {
    use OpKind::*;
    matches!(
        kind,
        Immediate8
            | Immediate8_2nd
            | Immediate16
            | Immediate32
            | Immediate64
            | Immediate8to16
            | Immediate8to32
            | Immediate8to64
            | Immediate32to64
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_differ_by_more_than_addresses_or_not() {
        let decode = |bytes: &[u8], at| {
            Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).iter().next().expect("an instruction")
        };
        let loads = |displacement: u8, at| decode(&[0x48, 0x8b, 0x05, displacement, 0, 0, 0], at);
        assert_eq!(same(&loads(0x10, 0x1000), &loads(0x30, 0x2000)), Some(Some((0x1017, 0x2037))));
        let adds = |immediate| decode(&[0x48, 0x83, 0xc0, immediate], 0);
        assert_eq!(same(&adds(1), &adds(1)), Some(None));
        assert_eq!(same(&adds(1), &adds(2)), None);
        let member = |offset| decode(&[0x48, 0x8b, 0x40, offset], 0);
        assert_eq!(same(&member(8), &member(16)), None, "another offset in a structure");
        assert_eq!(same(&adds(1), &member(8)), None);
    }
}
