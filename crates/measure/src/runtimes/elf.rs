//! Reads those facts of an executable file by which runtimes are recognised.

use object::read::elf::{Dyn, FileHeader};
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::HashSet;
use std::path::Path;

/// The facts of one file by which runtimes are recognised.
#[derive(Clone, Debug, Default)]
pub(super) struct Elf {
    /// The libraries that the file requests from the loader.
    pub(super) needed: Vec<String>,
    /// Whether a dynamic linker loads the file, so that the agent can be loaded too.
    pub(super) dynamic: bool,
    /// Whether the file has a symbol table besides the loader's.
    pub(super) symbols: bool,
    /// The text of the `.comment` section: the compilers' notes.
    pub(super) comment: String,
    sections: HashSet<String>,
    exported: HashSet<String>,
    local: HashSet<String>,
    note: Option<String>,
    constants: Vec<u8>,
}

/// The local symbols that are looked for; a large program has a million others.
const LOCAL: [&str; 8] = [
    "CCS_MAIN",
    "stats",
    "GC_coll_max_pause",
    "rtsConfig",
    "caml_startup__code_begin",
    "caml_startup_code",
    "runtime.memstats",
    "runtime.gcController",
];

impl Elf {
    /// Reads the file; `None` if it is not a 64-bit ELF file.
    pub(super) fn read(path: &Path) -> Option<Elf> {
        Elf::parse(&std::fs::read(path).ok()?)
    }

    fn parse(data: &[u8]) -> Option<Elf> {
        let file = object::read::elf::ElfFile64::<object::Endianness>::parse(data).ok()?;
        let mut elf = Elf { needed: needed(data).unwrap_or_default(), ..Elf::default() };
        for section in file.sections() {
            let Ok(name) = section.name() else { continue };
            let text = || section.data().map(|data| String::from_utf8_lossy(data).into_owned());
            match name {
                ".interp" => elf.dynamic = true,
                ".comment" => elf.comment = text().unwrap_or_default(),
                ".debug-ghc-link-info" => elf.note = text().ok(),
                ".rodata" => elf.constants = section.data().unwrap_or_default().to_vec(),
                _ => {}
            }
            elf.sections.insert(name.to_owned());
        }
        let names = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
        elf.exported = names.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect();
        for symbol in file.symbols() {
            elf.symbols = true;
            if let Ok(name) = symbol.name()
                && LOCAL.contains(&name)
            {
                elf.local.insert(name.to_owned());
            }
        }
        Some(elf)
    }

    pub(super) fn section(&self, name: &str) -> bool {
        self.sections.contains(name)
    }

    /// Whether the loader sees this symbol as defined by the file.
    pub(super) fn exports(&self, name: &str) -> bool {
        self.exported.contains(name)
    }

    /// Whether the symbol table, if there is one, contains this symbol, which must be one of `LOCAL`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.local.contains(name)
    }

    /// The needed library whose name has this prefix, if there is one.
    pub(super) fn needs(&self, library: &str) -> Option<&str> {
        self.needed.iter().map(String::as_str).find(|name| name.starts_with(library))
    }

    /// GHC's note of how the program was linked.
    pub(super) fn link_note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Whether the file's constants contain this text. The search is slow.
    pub(super) fn holds(&self, text: &str) -> bool {
        let first = text.as_bytes()[0];
        let mut rest = self.constants.as_slice();
        while let Some(at) = rest.iter().position(|byte| *byte == first) {
            if rest[at..].starts_with(text.as_bytes()) {
                return true;
            }
            rest = &rest[at + 1..];
        }
        false
    }
}

fn needed(data: &[u8]) -> Option<Vec<String>> {
    let header = object::elf::FileHeader64::<object::Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let (entries, strings) = sections.dynamic(endian, data).ok()??;
    let strings = sections.strings(endian, data, strings).ok()?;
    let mut names = Vec::new();
    for entry in entries {
        if entry.tag(endian) == object::elf::DT_NEEDED
            && let Ok(name) = entry.string(endian, strings)
        {
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Some(names)
}

/// The word that follows `before` in a text, up to a blank, a quote or a zero byte.
pub(super) fn word_after(text: &str, before: &str) -> Option<String> {
    let rest = &text[text.find(before)? + before.len()..];
    let end = rest.find(|c: char| c.is_whitespace() || c == '\0' || c == '"').unwrap_or(rest.len());
    (end > 0).then(|| rest[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    #[test]
    fn damaged_program_files_are_survived() {
        let whole = include_bytes!("../../../fuzz/corpus/elf/small");
        assert!(Elf::parse(whole).is_some_and(|elf| elf.symbols && elf.section(".text")));
        Corpus::named("elf").is_survived_by(|data| {
            if let Some(elf) = Elf::parse(data) {
                let _ = (elf.link_note(), elf.holds("GC_coll_max_pause"));
            }
        });
    }
}
