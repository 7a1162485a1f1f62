//! Where GHC's code compares with the limit of the heap, and notes how many bytes it wants.

use iced_x86::{Instruction, Mnemonic, Register};

/// The register of the next free byte in the heap, and that of the runtime's variables, on x86-64.
pub(super) const HP: Register = Register::R12;
pub(super) const BASE: Register = Register::R13;

/// The field of the runtime's variables that takes the number of bytes is at most this many bytes after the limit of
/// the heap.
const NEAR: u64 = 0x80;

/// The distances from the runtime's variables at which code may note how many bytes it wants: `limit` is that of the
/// heap's limit.
pub(super) fn requests(limit: u64) -> std::ops::Range<u64> {
    limit + 8..limit + NEAR
}

/// The distance of the heap's limit from the runtime's variables, if the instruction compares it with Hp.
pub(super) fn limit(one: &Instruction) -> Option<u64> {
    let compares = one.mnemonic() == Mnemonic::Cmp && one.op0_register() == HP && one.memory_base() == BASE;
    compares.then(|| one.memory_displacement64())
}
