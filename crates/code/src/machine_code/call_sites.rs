//! The calls in the executed machine code of a function.

use super::binary::{Binaries, Binary};
use super::demangle::demangle;
use crate::merged_profiles::Side;
use iced_x86::{Mnemonic, OpKind};
use scruple_core::explain::normal;

/// An executed instruction that passes control to another function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The address of the instruction, as its file numbers addresses.
    pub address: u64,
    /// How often it was executed.
    pub count: u64,
    /// The address of the called function in the same file; `None` if the instruction does not contain it.
    pub target: Option<u64>,
    /// The name of the called function without additions of compilers; `None` if the call is indirect, or nothing
    /// names its target.
    pub callee: Option<String>,
}

impl Binaries {
    /// Finds the executed calls of a function in the order of addresses, and its jumps to other functions. There are none
    /// if its file no longer exists, or holds code that cannot be disassembled.
    pub fn call_sites(&self, side: &Side, function: usize) -> Vec<CallSite> {
        let known = &side.functions[function];
        let Some(object) = known.object.as_deref().filter(|_| side.code.is_none()) else { return Vec::new() };
        let Some(file) = self.file(object, side).filter(|file| file.decodes) else { return Vec::new() };
        let executed = &side.executed[function];
        let end = executed.last_key_value().map_or(0, |(last, _)| known.offset.saturating_add(*last));
        let site = |distance: &u64| {
            let address = known.offset.checked_add(*distance)?;
            let (instruction, _, _) = file.decoded(address)?;
            let target = Some(instruction.near_branch_target()).filter(|target| *target != 0);
            let slot = instruction.is_ip_rel_memory_operand().then(|| instruction.ip_rel_memory_address());
            let slot_name = slot.and_then(|slot| file.slot_name(slot));
            let is_call = match (instruction.mnemonic(), target) {
                (Mnemonic::Call, _) => true,
                (_, Some(target)) => !(known.offset..=end).contains(&target),
                (Mnemonic::Jmp, None) => slot_name.is_some(),
                _ => false,
            };
            let callee = || target.and_then(|target| file.target(target, false)).or(slot_name);
            let count = side.executions(object, address);
            is_call.then(|| CallSite { address, count, target, callee: callee() })
        };
        executed.keys().filter_map(site).collect()
    }
}

impl Binary {
    /// The name of the function whose address the loader writes to a place.
    fn slot_name(&self, place: u64) -> Option<String> {
        self.slots.get(&place).map(|name| normal(&demangle(name)))
    }

    /// The name of the function that a call reaches, directly or through a PLT stub; bare only through a stub.
    pub(crate) fn target(&self, address: u64, is_bare: bool) -> Option<String> {
        if let Some(name) = self.symbols.get(&address).filter(|_| !is_bare) {
            return Some(self.compared_name(name).to_string());
        }
        let mut at = address;
        for _ in 0..3 {
            let (instruction, _, _) = self.decoded(at)?;
            let jumps = instruction.mnemonic() == Mnemonic::Jmp && instruction.op0_kind() == OpKind::Memory;
            if jumps && instruction.is_ip_rel_memory_operand() {
                return self.slot_name(instruction.ip_rel_memory_address());
            }
            at = instruction.next_ip();
        }
        None
    }
}
