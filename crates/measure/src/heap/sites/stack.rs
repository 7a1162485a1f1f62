//! Finds the callers in a recorded stack.

use super::code_map::{CodeMap, FileAddress, Files};
use super::frame_rules::CallerStep;
use super::registers::{ADDRESS, Registers};

/// The most frames of a stack that are followed.
const MOST: usize = 20_000;

/// The recorded part of a thread's stack.
pub(super) struct RecordedStack<'a> {
    /// The address of the first byte.
    pub(super) begin: u64,
    pub(super) bytes: &'a [u8],
    /// Why the rest is missing; `None` if the end of the stack is there.
    pub(super) cut: Option<&'static str>,
}

/// The functions that were active, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ActiveFunctions {
    pub(super) places: Vec<FileAddress>,
    /// Why the outer functions are missing; `None` if the outermost one is there.
    pub(super) missing: Option<&'static str>,
}

impl RecordedStack<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.begin)?).ok()?;
        let bytes = self.bytes.get(offset..offset.checked_add(8)?)?;
        bytes.try_into().ok().map(u64::from_ne_bytes)
    }

    /// Finds the functions that were active. Functions of the library that records are left out.
    pub(super) fn callers(
        &self,
        mut registers: Registers,
        map: &CodeMap,
        files: &mut Files,
    ) -> ActiveFunctions {
        let mut callers = ActiveFunctions::default();
        // The place of a call is the instruction before the return address; an interrupted instruction is itself.
        let mut interrupted = true;
        for depth in 0..MOST {
            let code = registers.code & ADDRESS;
            let at = if interrupted { code } else { code.wrapping_sub(1) };
            let (place, content) = match files.place(map, at) {
                Ok(found) => found,
                Err(why) => return callers.end_with_reason(why),
            };
            let step = content.rules.step(&registers, place.address, depth == 0, &|at| self.word(at));
            let is_entry = content.is_entry(place.address);
            if !files.file(place.file).is_library {
                callers.places.push(place);
            }
            registers = match step {
                CallerStep::NoEntry if is_entry => return callers,
                CallerStep::Outermost => return callers,
                CallerStep::NoEntry => return callers.end_with_reason("code without unwinding entries"),
                CallerStep::NotRecorded => {
                    return callers.end_with_reason(self.cut.unwrap_or("another stack"));
                }
                CallerStep::Caller(caller, signal) => {
                    let (before, after) = (registers.stack_pointer(), caller.stack_pointer());
                    // A signal handler may have a stack of its own.
                    if after <= before && !(signal || depth == 0) {
                        return callers.end_with_reason("unwinding entries that form a cycle");
                    }
                    interrupted = signal;
                    *caller
                }
            };
        }
        callers.end_with_reason("too many functions")
    }
}

impl ActiveFunctions {
    fn end_with_reason(mut self, why: &'static str) -> ActiveFunctions {
        self.missing = Some(why);
        self
    }
}
