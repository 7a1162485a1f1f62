//! The registers that a sample holds, by their DWARF numbers.

/// The number of words that the library records (`REGISTERS` of layout.h).
#[cfg(not(target_arch = "aarch64"))]
pub(super) const RECORDED: usize = 8;
#[cfg(target_arch = "aarch64")]
pub(super) const RECORDED: usize = 14;

/// The DWARF numbers of the recorded words after the program counter. System V ABI, AMD64 supplement, figure 3.36;
/// DWARF for the Arm 64-bit architecture, table 1.
#[cfg(not(target_arch = "aarch64"))]
const NUMBERS: [u16; RECORDED - 1] = [7, 6, 3, 12, 13, 14, 15];
#[cfg(target_arch = "aarch64")]
const NUMBERS: [u16; RECORDED - 1] = [31, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30];

/// The stack pointer.
pub(super) const STACK_POINTER: u16 = NUMBERS[0];

/// The column of the return address.
#[cfg(not(target_arch = "aarch64"))]
pub(super) const RETURN_ADDRESS: u16 = 16;
#[cfg(target_arch = "aarch64")]
pub(super) const RETURN_ADDRESS: u16 = 30;

/// Whether the return address of a function that calls no other is in a register.
pub(super) const LINK_REGISTER: bool = cfg!(target_arch = "aarch64");

/// The bits of an address. The others of a return address on aarch64 may hold its signature.
pub(super) const ADDRESS: u64 = if LINK_REGISTER { (1 << 48) - 1 } else { u64::MAX };

/// The known registers of one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registers {
    /// The program counter.
    pub(super) code: u64,
    values: [Option<u64>; 32],
}

impl Registers {
    /// The registers as the library recorded them.
    pub(super) fn recorded(words: [u64; RECORDED]) -> Registers {
        let mut registers = Registers { code: words[0], values: [None; 32] };
        for (number, word) in NUMBERS.iter().zip(&words[1..]) {
            registers.values[usize::from(*number)] = Some(*word);
        }
        registers
    }

    /// The value of a register; `None` if it is not known in this frame.
    pub(super) fn get(&self, number: u16) -> Option<u64> {
        self.values.get(usize::from(number)).copied().flatten()
    }

    /// Sets a register, or forgets it.
    pub(super) fn set(&mut self, number: u16, value: Option<u64>) {
        if let Some(place) = self.values.get_mut(usize::from(number)) {
            *place = value;
        }
    }

    /// The stack pointer; 0 if it is not known.
    pub(super) fn stack_pointer(&self) -> u64 {
        self.get(STACK_POINTER).unwrap_or(0)
    }
}
