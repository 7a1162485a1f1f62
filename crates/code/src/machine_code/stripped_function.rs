//! A function without a symbol: its code, where it ends, and the names it gets.

use gimli::{BaseAddresses, CieOrFde, EhFrame, RunTimeEndian, UnwindSection};
use object::{Object, ObjectSection};
use scruple_stats::sorting::SortedMap;
use std::collections::HashMap;
use std::path::Path;

/// The names of functions by file and start address.
pub(crate) type NamesByAddress = HashMap<String, HashMap<u64, String>>;

/// A function of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StrippedFunction {
    /// The start address.
    pub begin: u64,
    /// The name, if a symbol has it.
    pub name: Option<String>,
    /// The hash of each instruction, without the addresses that linking assigns.
    pub code: Vec<u32>,
    /// The addresses that instructions contain, such as the targets of calls, each with the index of its instruction.
    pub targets: Vec<(usize, u64)>,
}

/// The name of a function without a symbol: its address in the first file, and in the second if that is different.
pub(crate) fn label(begin: u64, now: Option<u64>, path: &str) -> String {
    let file = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    match now.filter(|now| *now != begin) {
        Some(now) => format!("function at {begin:#x}, now {now:#x}, of {file} (stripped)"),
        None => format!("function at {begin:#x} of {file} (stripped)"),
    }
}

/// The label of a function that was not found in the first file. It must not be the label of another function.
pub(crate) fn label_of_second(begin: u64, path: &str) -> String {
    label(begin, None, path).replace(" (stripped)", " (stripped, in B)")
}

/// The ends of functions by their start, from the unwinding table.
pub(crate) fn ends(file: &object::File) -> SortedMap<u64, u64> {
    let mut ends = SortedMap::new();
    let Some(section) = file.section_by_name(".eh_frame") else { return ends };
    let data = section.data().unwrap_or_default();
    let table = EhFrame::new(data, RunTimeEndian::Little);
    let bases = BaseAddresses::default().set_eh_frame(section.address());
    let mut entries = table.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(entry) = partial.parse(EhFrame::cie_from_offset)
        {
            ends.insert(entry.initial_address(), entry.initial_address().saturating_add(entry.len()));
        }
    }
    ends
}
