//! How the caller's registers are found at an address of a file, from its unwinding entries (`.eh_frame`,
//! `.debug_frame`). DWARF 5, section 6.4; Linux Standard Base 5.0, section 10.6.
//!
//! A library that unwinds (framehop) would follow frame pointers where entries are missing, and not say so; such a
//! stack would be wrong and look right.

use super::registers::{LINK_REGISTER, RETURN_ADDRESS, Registers, STACK_POINTER};
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, Encoding, EndianArcSlice, Evaluation,
    EvaluationResult, Expression, Format, RegisterRule, RunTimeEndian, UnwindContext, UnwindExpression,
    UnwindSection, Value,
};
use object::{File, Object, ObjectSection};
use scruple_code::DwarfReader;
use scruple_stats::sorting;
use std::collections::HashMap;
use std::sync::Arc;

/// The unwinding entries of one file.
pub(super) struct FrameRules {
    bases: BaseAddresses,
    main: EhFrame<DwarfReader>,
    debug: DebugFrame<DwarfReader>,
    /// The entries of functions, sorted.
    entries: Vec<UnwindEntry>,
    context: UnwindContext<usize>,
    known: HashMap<u64, Option<RegisterRules>>,
}

#[derive(Clone, Copy)]
struct UnwindEntry {
    begin: u64,
    end: u64,
    offset: usize,
    debug: bool,
}

/// How the registers of the caller are found.
#[derive(Clone)]
struct RegisterRules {
    frame: Cfa,
    /// The registers whose rule changes them.
    registers: Vec<(u16, Rule)>,
    /// Whether the frame is the kernel's call of a signal handler, so that its caller did not call anything.
    signal: bool,
}

#[derive(Clone)]
enum Cfa {
    Register(u16, i64),
    Expression(Expression<DwarfReader>),
}

#[derive(Clone)]
enum Rule {
    Unknown,
    Saved(i64),
    Value(i64),
    Register(u16),
    SavedAt(Expression<DwarfReader>),
    Computed(Expression<DwarfReader>),
}

/// Where a step to the caller led.
pub(super) enum CallerStep {
    /// The caller's registers, and whether the caller was interrupted instead of having called.
    Caller(Box<Registers>, bool),
    /// The function has no caller.
    Outermost,
    /// The file says nothing about this address.
    NoEntry,
    /// Memory or a register that is needed is not known.
    NotRecorded,
}

impl FrameRules {
    /// Reads the entries of a file; those that cannot be understood are left out.
    pub(super) fn of(file: &File) -> FrameRules {
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let address = |name: &str| file.section_by_name(name).map_or(0, |section| section.address());
        let data = |name: &str| {
            let bytes = file.section_by_name(name).and_then(|section| section.uncompressed_data().ok());
            EndianArcSlice::new(Arc::from(bytes.unwrap_or_default().as_ref()), endian)
        };
        let bases = BaseAddresses::default()
            .set_eh_frame(address(".eh_frame"))
            .set_text(address(".text"))
            .set_got(address(".got"));
        let mut main = EhFrame::from(data(".eh_frame"));
        let mut debug = DebugFrame::from(data(".debug_frame"));
        main.set_address_size(8);
        debug.set_address_size(8);
        let mut entries = Vec::new();
        list(&main, &bases, false, &mut entries);
        list(&debug, &bases, true, &mut entries);
        sorting::by_key(&mut entries, |entry| (entry.begin, entry.debug));
        let context = UnwindContext::new();
        FrameRules { bases, main, debug, entries, context, known: HashMap::new() }
    }

    /// Finds the caller of the frame with these registers. `address` is the place in the frame's function as the file
    /// numbers addresses, `innermost` whether the frame has called nothing, and `memory` reads a word of the stack.
    pub(super) fn step(
        &mut self,
        registers: &Registers,
        address: u64,
        innermost: bool,
        memory: &dyn Fn(u64) -> Option<u64>,
    ) -> CallerStep {
        if !self.known.contains_key(&address) {
            let rules = self.find(address);
            self.known.insert(address, rules);
        }
        let Some(Some(rules)) = self.known.get(&address) else { return CallerStep::NoEntry };
        rules.apply(registers, innermost, memory)
    }

    fn find(&mut self, address: u64) -> Option<RegisterRules> {
        let after = self.entries.partition_point(|entry| entry.begin <= address);
        // A later entry may lie within an earlier one, but not many do.
        let within = |entry: &&UnwindEntry| address < entry.end;
        let entry = *self.entries[..after].iter().rev().take(8).find(within)?;
        match entry.debug {
            false => rules(&self.main, &self.bases, &mut self.context, entry, address),
            true => rules(&self.debug, &self.bases, &mut self.context, entry, address),
        }
    }
}

fn list<S: UnwindSection<DwarfReader>>(
    section: &S,
    bases: &BaseAddresses,
    debug: bool,
    entries: &mut Vec<UnwindEntry>,
) {
    let mut all = section.entries(bases);
    while let Ok(Some(entry)) = all.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(|section, bases, offset| section.cie_from_offset(bases, offset)) else {
            continue;
        };
        let (begin, offset) = (entry.initial_address(), entry.offset());
        // Linkers leave entries of functions that they removed at address 0.
        if begin != 0 && entry.len() != 0 {
            entries.push(UnwindEntry { begin, end: begin.saturating_add(entry.len()), offset, debug });
        }
    }
}

fn rules<S: UnwindSection<DwarfReader>>(
    section: &S,
    bases: &BaseAddresses,
    context: &mut UnwindContext<usize>,
    entry: UnwindEntry,
    address: u64,
) -> Option<RegisterRules>
where
    S::Offset: From<usize>,
{
    let parse = |section: &S, bases: &BaseAddresses, offset| section.cie_from_offset(bases, offset);
    let entry = section.fde_from_offset(bases, entry.offset.into(), parse).ok()?;
    let signal = entry.is_signal_trampoline();
    let column = entry.cie().return_address_register();
    let row = entry.unwind_info_for_address(section, bases, context, address).ok()?;
    let expression = |place: &UnwindExpression<usize>| place.get(section).ok();
    let frame = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => Cfa::Register(register.0, *offset),
        CfaRule::Expression(place) => Cfa::Expression(expression(place)?),
    };
    let mut registers = Vec::new();
    for (register, rule) in row.registers() {
        let rule = match rule {
            RegisterRule::SameValue => continue,
            RegisterRule::Offset(offset) => Rule::Saved(*offset),
            RegisterRule::ValOffset(offset) => Rule::Value(*offset),
            RegisterRule::Register(other) => Rule::Register(other.0),
            RegisterRule::Expression(place) => Rule::SavedAt(expression(place)?),
            RegisterRule::ValExpression(place) => Rule::Computed(expression(place)?),
            _ => Rule::Unknown,
        };
        let number = if *register == column { RETURN_ADDRESS } else { register.0 };
        registers.push((number, rule));
    }
    Some(RegisterRules { frame, registers, signal })
}

impl RegisterRules {
    fn apply(&self, before: &Registers, innermost: bool, memory: &dyn Fn(u64) -> Option<u64>) -> CallerStep {
        let frame = match &self.frame {
            Cfa::Register(number, offset) => {
                before.get(*number).map(|value| value.wrapping_add_signed(*offset))
            }
            Cfa::Expression(expression) => evaluate(expression, before, None, memory),
        };
        let Some(frame) = frame else { return CallerStep::NotRecorded };
        let value = |rule: &Rule| match rule {
            Rule::Unknown => None,
            Rule::Saved(offset) => memory(frame.wrapping_add_signed(*offset)),
            Rule::Value(offset) => Some(frame.wrapping_add_signed(*offset)),
            Rule::Register(other) => before.get(*other),
            Rule::SavedAt(expression) => memory(evaluate(expression, before, Some(frame), memory)?),
            Rule::Computed(expression) => evaluate(expression, before, Some(frame), memory),
        };
        let mut caller = before.clone();
        caller.set(STACK_POINTER, Some(frame));
        let mut code = None;
        for (number, rule) in &self.registers {
            let found = value(rule);
            if *number == RETURN_ADDRESS {
                code = Some(found);
            }
            caller.set(*number, found);
        }
        // Without a rule, the return address still is in its register, or there is none.
        let code = match code {
            Some(found) => found,
            None if LINK_REGISTER && innermost => before.get(RETURN_ADDRESS),
            None => return CallerStep::Outermost,
        };
        let Some(code) = code else { return CallerStep::NotRecorded };
        if code == 0 {
            return CallerStep::Outermost;
        }
        caller.code = code;
        CallerStep::Caller(Box::new(caller), self.signal)
    }
}

/// Evaluates an expression. Its stack begins with the frame's address if that is known.
fn evaluate(
    expression: &Expression<DwarfReader>,
    registers: &Registers,
    frame: Option<u64>,
    memory: &dyn Fn(u64) -> Option<u64>,
) -> Option<u64> {
    let encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 4 };
    let mut evaluation: Evaluation<DwarfReader> = expression.clone().evaluation(encoding);
    evaluation.set_max_iterations(1000);
    if let Some(frame) = frame {
        evaluation.set_initial_value(frame);
    }
    let mut result = evaluation.evaluate().ok()?;
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let mask = if size >= 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
                evaluation.resume_with_memory(Value::Generic(memory(address)? & mask)).ok()?
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = match register.0 {
                    RETURN_ADDRESS if !LINK_REGISTER => registers.code,
                    number => registers.get(number)?,
                };
                evaluation.resume_with_register(Value::Generic(value)).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.value_result() {
        Some(Value::Generic(value)) => Some(value),
        _ => match evaluation.as_result().first()?.location {
            gimli::Location::Address { address } => Some(address),
            _ => None,
        },
    }
}
