//! Resolves addresses to names and lines, with symbols, debugging information and inlined calls. A file is read when
//! one of its addresses is first needed.

use super::debug_file::{self, DwarfReader};
use super::demangle::demangle;
use crate::merged_profiles::Side;
use addr2line::Context;
use object::{Object, ObjectSymbol, SymbolKind};
use scruple_core::explain::GENERATED;
use std::collections::HashMap;
use std::path::Path;

/// One source function that contains an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceFrame {
    /// The function's demangled name; `None` if neither a symbol nor debugging information names it.
    pub name: Option<String>,
    /// The source file, if it is known.
    pub file: Option<String>,
    /// The line in the source file, if it is known.
    pub line: Option<u32>,
}

/// What is known about an address in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The functions that contain the address, innermost first: each is inlined into the next. Empty if nothing is
    /// known.
    pub frames: Vec<SourceFrame>,
    /// The file and the address as text, which is shown if nothing else is known.
    pub place: String,
}

/// The files of a profile.
#[derive(Default)]
pub struct Symbols {
    files: HashMap<String, Option<FileSymbols>>,
}

struct FileSymbols {
    /// Symbols, sorted by address: start, end, and the linker's name.
    symbols: Vec<(u64, u64, String)>,
    lines: Option<Context<DwarfReader>>,
}

impl Symbols {
    /// Creates a collection without files.
    pub fn new() -> Symbols {
        Symbols::default()
    }

    /// Resolves an address, as the file numbers addresses; `object` is `None` for code outside of any file.
    pub fn locate(&mut self, object: Option<&str>, offset: u64) -> Location {
        let Some(path) = object else {
            return Location { frames: Vec::new(), place: GENERATED.to_owned() };
        };
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
        let place = format!("{name}+{offset:#x}");
        let known = self.files.entry(path.to_owned()).or_insert_with(|| read(Path::new(path)));
        let frames = known.as_ref().map(|known| known.frames(offset)).unwrap_or_default();
        Location { frames, place }
    }

    /// Resolves each executed instruction of a function: its address, the functions that contain it, innermost first, and
    /// how often it was executed. There are none for code outside of any file.
    pub fn executed(
        &mut self,
        side: &Side,
        function: usize,
    ) -> impl Iterator<Item = (u64, Vec<SourceFrame>, u64)> {
        let known = &side.functions[function];
        known
            .object
            .as_deref()
            .into_iter()
            .flat_map(move |object| {
                side.executed[function]
                    .keys()
                    .map(move |distance| (object, known.offset.saturating_add(*distance)))
            })
            .map(move |(object, address)| {
                (address, self.locate(Some(object), address).frames, side.executions(object, address))
            })
    }

    /// Whether the file has line tables.
    pub fn has_lines(&mut self, object: &str) -> bool {
        let known = self.files.entry(object.to_owned()).or_insert_with(|| read(Path::new(object)));
        known.as_ref().is_some_and(|known| known.lines.is_some())
    }
}

impl Location {
    /// The name of the innermost function, or the text to show if there is none.
    pub fn name(&self) -> &str {
        self.frames.first().and_then(|frame| frame.name.as_deref()).unwrap_or(&self.place)
    }
}

fn read(path: &Path) -> Option<FileSymbols> {
    of(path, &std::fs::read(path).ok()?)
}

fn of(path: &Path, data: &[u8]) -> Option<FileSymbols> {
    let file = object::File::parse(data).ok()?;
    let mut symbols: Vec<(u64, u64, String)> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() != 0)
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            Some((symbol.address(), symbol.address().saturating_add(symbol.size()), name.to_owned()))
        })
        .collect();
    symbols.sort_unstable();
    symbols.dedup_by_key(|(begin, end, _)| (*begin, *end));
    let lines = debug_file::dwarf(path, &file).and_then(|dwarf| Context::from_dwarf(dwarf).ok());
    Some(FileSymbols { symbols, lines })
}

impl FileSymbols {
    fn frames(&self, offset: u64) -> Vec<SourceFrame> {
        let mut frames = self.lines.as_ref().map(|lines| inlined(lines, offset)).unwrap_or_default();
        let symbol = self.symbol(offset).map(demangle);
        match frames.last_mut() {
            Some(outermost) if outermost.name.is_none() => outermost.name = symbol,
            Some(_) => {}
            None => {
                frames.extend(symbol.map(|name| SourceFrame { name: Some(name), file: None, line: None }))
            }
        }
        frames
    }

    /// The symbol whose code contains the address. A symbol without a length ends where the next one starts.
    fn symbol(&self, offset: u64) -> Option<&str> {
        let after = self.symbols.partition_point(|(begin, _, _)| *begin <= offset);
        let (begin, end, name) = self.symbols[..after].last()?;
        (offset < *end || begin == end).then_some(name.as_str())
    }
}

fn inlined(lines: &Context<DwarfReader>, offset: u64) -> Vec<SourceFrame> {
    let mut frames = Vec::new();
    let Ok(mut found) = lines.find_frames(offset).skip_all_loads() else { return frames };
    while let Ok(Some(frame)) = found.next() {
        let raw = frame.function.as_ref().and_then(|name| name.raw_name().ok());
        let name = raw.map(|name| demangle(name.as_ref()));
        let file = frame.location.as_ref().and_then(|place| place.file.map(str::to_owned));
        let line = frame.location.and_then(|place| place.line);
        frames.push(SourceFrame { name, file, line });
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    #[test]
    fn damaged_symbols_and_line_tables_are_survived() {
        let whole = include_bytes!("../../../fuzz/corpus/elf/small");
        let known = of(Path::new("small"), whole).expect("an ELF file");
        assert!(known.lines.is_some() && known.symbol(known.symbols[0].0).is_some());
        Corpus::named("elf").is_survived_by(|data| {
            let Some(known) = of(Path::new("small"), data) else { return };
            for (begin, end, _) in &known.symbols {
                drop((known.frames(*begin), known.frames(*end)));
            }
        });
    }
}
