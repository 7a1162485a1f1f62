//! Where a Go program keeps its counters: addresses come from its symbols, offsets from its debugging information.

use gimli::{AttributeValue, Dwarf, EndianSlice, Reader, RunTimeEndian, UnitOffset};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache};
use scruple_stats::sorting::SortedMap;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::{self, File};
use std::path::Path;

/// The reason for absence in a stripped program.
pub(in crate::runtimes) const STRIPPED: &str = "the Go program has no symbols or debugging information, which say where its \
                                   counters are: build it without -ldflags=-s or -w";

/// The symbols of the variables whose addresses are needed.
pub(super) const VARIABLES: [&str; 3] = ["runtime.memstats", "runtime.gcController", "runtime.allp"];

/// The structures whose members' offsets are needed.
const STRUCTURES: [&str; 7] = [
    "runtime.mstats",
    "runtime.gcControllerState",
    "runtime.p",
    "runtime.mcache",
    "runtime.mspan",
    "runtime.consistentHeapStats",
    "runtime.heapStatsDelta",
];

/// The addresses and offsets in one program file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The addresses of variables by symbol, before relocation.
    pub(super) variables: SortedMap<String, u64>,
    /// The offsets of members, by structure.
    members: SortedMap<String, SortedMap<String, u64>>,
    sizes: SortedMap<String, u64>,
    /// The address of the first segment if the program is relocatable, else `None`.
    pub(super) movable_from: Option<u64>,
}

impl Layout {
    /// The offset of a member within its structure, in bytes.
    pub(super) fn member(&self, structure: &'static str, name: &str) -> Result<u64, String> {
        self.members
            .get(structure)
            .and_then(|members| members.get(name).copied())
            .ok_or_else(|| format!("this version of Go keeps no ‘{name}’ in {structure}"))
    }

    /// The size of a structure in bytes.
    pub(super) fn size(&self, structure: &'static str) -> Result<u64, String> {
        self.sizes.get(structure).copied().ok_or_else(|| format!("this version of Go has no {structure}"))
    }

    /// Reads the program's symbols and debugging information; `None` if it is not a Go program.
    pub(super) fn read(path: &Path) -> Result<Option<Layout>, String> {
        if !is_go(path) {
            return Ok(None);
        }
        let data = fs::read(path).map_err(|error| format!("the program file cannot be read: {error}"))?;
        let Ok(file) = object::File::parse(&*data) else { return Ok(None) };
        let mut layout = Layout { movable_from: Layout::movable_from(&file), ..Layout::default() };
        for symbol in file.symbols() {
            if let Some(known) =
                symbol.name().ok().and_then(|name| VARIABLES.into_iter().find(|known| *known == name))
            {
                layout.variables.insert(known.to_owned(), symbol.address());
            }
        }
        if layout.variables.len() < VARIABLES.len() || file.section_by_name(".debug_info").is_none() {
            return Err(STRIPPED.to_owned());
        }
        layout
            .read_structures(&file)
            .map_err(|error| format!("its debugging information cannot be read: {error}"))?;
        Ok(Some(layout))
    }

    /// The address of the first segment if the program is relocatable, else `None`.
    pub(super) fn movable_from(file: &object::File<'_>) -> Option<u64> {
        let first = file.segments().map(|segment| segment.address()).min();
        first.filter(|_| file.kind() == object::ObjectKind::Dynamic)
    }

    fn read_structures(&mut self, file: &object::File<'_>) -> Result<(), gimli::Error> {
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let load = |id: gimli::SectionId| -> Result<Cow<'_, [u8]>, gimli::Error> {
            let section = file.section_by_name(id.name());
            Ok(section.and_then(|section| section.uncompressed_data().ok()).unwrap_or_default())
        };
        let sections = gimli::DwarfSections::load(load)?;
        let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            let unit = dwarf.unit(header)?;
            self.read_unit(&dwarf, &unit)?;
            if self.sizes.len() == STRUCTURES.len() {
                break;
            }
        }
        Ok(())
    }

    fn read_unit<R: Reader<Offset = usize>>(
        &mut self,
        dwarf: &Dwarf<R>,
        unit: &gimli::Unit<R>,
    ) -> Result<(), gimli::Error> {
        let mut found: Vec<(&'static str, UnitOffset)> = Vec::new();
        let mut entries = unit.entries();
        while let Some((_, entry)) = entries.next_dfs()? {
            if entry.tag() != gimli::DW_TAG_structure_type {
                continue;
            }
            let name = name_of(dwarf, unit, entry)?;
            let Some(known) = STRUCTURES.into_iter().find(|known| Some(*known) == name.as_deref()) else {
                continue;
            };
            if let Some(AttributeValue::Udata(size)) = entry.attr_value(gimli::DW_AT_byte_size)? {
                self.sizes.insert(known.to_owned(), size);
                found.push((known, entry.offset()));
            }
        }
        for (known, offset) in found {
            let mut tree = unit.entries_tree(Some(offset))?;
            let mut children = tree.root()?.children();
            while let Some(child) = children.next()? {
                let entry = child.entry();
                let at = entry
                    .attr(gimli::DW_AT_data_member_location)?
                    .and_then(|attribute| attribute.udata_value());
                if let (Some(name), Some(at)) = (name_of(dwarf, unit, entry)?, at) {
                    self.members.entry(known.to_owned()).or_default().insert(name, at);
                }
            }
        }
        Ok(())
    }
}

/// Whether the file is a Go program: the linker has left its build information. Only the headers are read.
fn is_go(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let cache = ReadCache::new(file);
    object::File::parse(&cache).is_ok_and(|file| file.section_by_name(".go.buildinfo").is_some())
}

fn name_of<R: Reader<Offset = usize>>(
    dwarf: &Dwarf<R>,
    unit: &gimli::Unit<R>,
    entry: &gimli::DebuggingInformationEntry<'_, '_, R>,
) -> Result<Option<String>, gimli::Error> {
    match entry.attr_value(gimli::DW_AT_name)? {
        Some(value) => Ok(Some(dwarf.attr_string(unit, value)?.to_string()?.into_owned())),
        None => Ok(None),
    }
}
