//! Allocations of Haskell code. GHC's code allocates by adding to the register Hp, and then writes the address of each
//! closure's info table relative to it. So executed instructions show exactly what was allocated: the bytes by the
//! additions, and the closures by type from the addresses written. If the heap has no room left, the code notes the
//! number of bytes, calls the runtime and begins anew; what is noted is subtracted.

use super::super::profile::InstructionRun;
use super::heap_limit::{BASE, HP};
use super::names;
use super::procedures::Procedures;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use scruple_stats::sorting::SortedMap;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Closures of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closures {
    /// The number of closures.
    pub count: u64,
    /// Their size, with headers.
    pub bytes: u64,
}

impl std::ops::AddAssign for Closures {
    fn add_assign(&mut self, other: Closures) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// What a run of instructions allocates each time it is executed.
#[derive(Debug, Default)]
pub(super) struct Allocated {
    /// Bytes; less than 0 where the run gives some back.
    pub bytes: i64,
    /// Where the info tables are whose closures it allocates.
    pub tables: Vec<TablePlace>,
}

/// Where something is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum TablePlace {
    /// At an address of the same file.
    Address(u64),
    /// At a symbol, which may be of another file.
    Symbol(String),
}

/// The type of closures.
pub(super) struct Type {
    /// The name that users know.
    pub name: String,
    /// The size of one, in bytes; `None` if it is not the same for all.
    pub size: Option<u64>,
}

/// Decodes a run of a file.
pub(super) fn allocated(run: &InstructionRun, procedures: &Procedures) -> Allocated {
    let mut known: HashMap<u32, TablePlace> = HashMap::new();
    let mut all = Allocated::default();
    let length = run.lengths.iter().map(|length| usize::from(*length)).sum();
    let Some(bytes) = procedures.code(run.offset, length) else { return all };
    for one in Decoder::with_ip(64, bytes, run.offset, DecoderOptions::NONE).iter() {
        let immediate = is_immediate(&one).then(|| one.immediate(1));
        let to = one.op0_register();
        match (one.mnemonic(), immediate) {
            (Mnemonic::Add, Some(value)) if to == HP => all.bytes += value as i64,
            (Mnemonic::Sub, Some(value)) if to == HP => all.bytes -= value as i64,
            (Mnemonic::Mov, Some(value)) if is_at(&one, BASE) => {
                if procedures.is_heap_request(one.memory_displacement64()) {
                    all.bytes -= value as i64;
                }
            }
            (Mnemonic::Mov, _) if is_at(&one, HP) => {
                let written = match immediate {
                    Some(value) => Some(TablePlace::Address(value)),
                    None => number(one.op1_register()).and_then(|number| known.get(&number)).cloned(),
                };
                all.tables.extend(written);
            }
            _ => {
                let Some(number) = number(to) else { continue };
                known.remove(&number);
                let place = match (one.mnemonic(), immediate) {
                    (Mnemonic::Mov, Some(value)) => Some(TablePlace::Address(value)),
                    (Mnemonic::Lea, _) if one.is_ip_rel_memory_operand() => {
                        Some(TablePlace::Address(one.ip_rel_memory_address()))
                    }
                    (Mnemonic::Mov, _) if one.is_ip_rel_memory_operand() => {
                        procedures.slot(one.ip_rel_memory_address()).map(TablePlace::Symbol)
                    }
                    _ => None,
                };
                known.extend(place.map(|place| (number, place)));
            }
        }
    }
    all
}

/// The number of a register of 8 bytes, or of its lower half of 4 bytes.
fn number(register: Register) -> Option<u32> {
    let of = |first: Register| (register as u32).checked_sub(first as u32).filter(|number| *number < 16);
    of(Register::RAX).or_else(|| of(Register::EAX))
}

fn is_immediate(one: &Instruction) -> bool {
    one.op_count() == 2
        && matches!(
            one.op1_kind(),
            OpKind::Immediate8
                | OpKind::Immediate8to64
                | OpKind::Immediate32
                | OpKind::Immediate32to64
                | OpKind::Immediate64
        )
}

/// Whether an instruction writes 8 bytes to a fixed distance from a register.
fn is_at(one: &Instruction, register: Register) -> bool {
    one.op0_kind() == OpKind::Memory
        && one.memory_base() == register
        && one.memory_index() == Register::None
        && matches!(one.code(), Code::Mov_rm64_r64 | Code::Mov_rm64_imm32)
}

/// The words that the header of each closure has besides its info table in programs built with `-prof`: its cost centre,
/// and one for the heap profiler.
pub(super) const OF_PROFILER: u64 = 2;

/// A function of the profiling runtime that the other one lacks.
pub(super) const PROFILER: &str = "pushCostCentre";

/// The type of closures whose info table is at an address of a file, in a program whose closures have this many words for
/// the profiler; `None` if there is none.
pub(super) fn type_at(address: u64, procedures: &Procedures, of_profiler: u64) -> Option<Type> {
    const WORD: u64 = 8;
    // The table ends where the code begins: the layout in 8 bytes, the type in 4, and 4 more.
    let table = procedures.code(address.checked_sub(2 * WORD)?, 2 * WORD as usize)?;
    let half =
        |at: usize| table.get(at..at + 4).map(|four| u32::from_le_bytes(four.try_into().unwrap_or([0; 4])));
    let (pointers, others, kind) = (u64::from(half(0)?), u64::from(half(4)?), half(8)?);
    // The numbers are those of `ClosureTypes.h`, which have been the same since GHC 7.10.
    let (word, header) = match kind {
        1..=7 => ("", 1),
        8..=13 => ("function ", 1),
        15..=20 => ("thunk of ", 2),
        22 => ("thunk of ", 3),
        24..=26 | 30..=62 => ("", 0),
        _ => return None,
    };
    let size = match kind {
        22 => Some(header),
        24..=26 | 30..=62 => None,
        _ if pointers + others < 1 << 16 => Some(header + (pointers + others).max(1)),
        _ => return None,
    };
    let name = match procedures.symbol(address) {
        Some(symbol) if names::module(symbol).is_some() => names::shown(symbol),
        Some(symbol) if symbol.starts_with("stg_") => symbol.trim_end_matches("_info").to_owned(),
        _ => procedures.at(address)?.1,
    };
    Some(Type { name: format!("{word}{name}"), size: size.map(|words| (words + of_profiler) * WORD) })
}

/// The type of closures whose info table is at a symbol of a file that is not known.
pub(super) fn type_of(symbol: &str) -> Option<Type> {
    symbol.ends_with("_con_info").then(|| Type { name: names::shown(symbol), size: None })
}

/// All closures that a launch allocated, by the name of their type.
pub type ClosureTypes = SortedMap<String, Closures>;
