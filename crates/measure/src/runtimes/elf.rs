//! Reads those facts of an executable file by which runtimes are recognised.

use super::ALL;
use object::read::elf::{Dyn, FileHeader};
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

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
    exported: HashSet<&'static str>,
    local: HashSet<&'static str>,
    texts: HashSet<&'static str>,
    note: Option<String>,
}

/// What is looked for in a program's file to recognise a runtime. A large program has a hundred thousand symbols, of
/// which only these are kept.
#[derive(Clone, Copy)]
pub(super) struct FileMarks {
    /// Symbols of the loader's table.
    pub(super) exported: &'static [&'static str],
    /// Symbols of the other table.
    pub(super) local: &'static [&'static str],
    /// Texts among the constants.
    pub(super) texts: &'static [&'static str],
}

impl FileMarks {
    /// The marks of a runtime that is recognised by sections or needed libraries alone.
    pub(super) const NONE: FileMarks = FileMarks { exported: &[], local: &[], texts: &[] };
}

/// The marks of all runtimes.
struct AllMarks {
    exported: Vec<&'static str>,
    local: Vec<&'static str>,
    texts: Vec<&'static str>,
}

static SOUGHT: LazyLock<AllMarks> = LazyLock::new(|| {
    let all = |of: fn(FileMarks) -> &'static [&'static str]| {
        ALL.into_iter().flat_map(|runtime| of(runtime.adapter().marks)).copied().collect()
    };
    AllMarks {
        exported: all(|marks| marks.exported),
        local: all(|marks| marks.local),
        texts: all(|marks| marks.texts),
    }
});

/// What distinguishes the content of a file from that of all others, as long as the file system keeps times.
#[derive(PartialEq, Eq, Hash)]
struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl FileIdentity {
    fn of(data: &Metadata) -> FileIdentity {
        FileIdentity {
            device: data.dev(),
            inode: data.ino(),
            size: data.size(),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }
}

/// The files that were read. Every launch asks about its program, and some programs have a hundred megabytes.
static KNOWN: LazyLock<Mutex<HashMap<FileIdentity, Option<Arc<Elf>>>>> = LazyLock::new(Mutex::default);

impl Elf {
    /// Reads the file, unless it was read before; `None` if it is not a 64-bit ELF file.
    pub(super) fn read(path: &Path) -> Option<Arc<Elf>> {
        let identity = FileIdentity::of(&fs::metadata(path).ok()?);
        if let Some(known) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&identity) {
            return known.clone();
        }
        let elf = Elf::parse(&fs::read(path).ok()?).map(Arc::new);
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(identity, elf.clone());
        elf
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
                ".rodata" => elf.texts = texts(section.data().unwrap_or_default()),
                _ => {}
            }
            elf.sections.insert(name.to_owned());
        }
        let defined = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
        elf.exported =
            defined.filter_map(|symbol| one_of(&SOUGHT.exported, symbol.name_bytes().ok()?)).collect();
        elf.symbols = file.symbols().next().is_some();
        elf.local =
            file.symbols().filter_map(|symbol| one_of(&SOUGHT.local, symbol.name_bytes().ok()?)).collect();
        Some(elf)
    }

    pub(super) fn section(&self, name: &str) -> bool {
        self.sections.contains(name)
    }

    /// Whether the loader sees this symbol, which the marks of a runtime name, as defined by the file.
    pub(super) fn exports(&self, name: &str) -> bool {
        debug_assert!(SOUGHT.exported.contains(&name), "{name} is not looked for");
        self.exported.contains(name)
    }

    /// Whether the symbol table, if there is one, contains this symbol, which the marks of a runtime name.
    pub(super) fn has(&self, name: &str) -> bool {
        debug_assert!(SOUGHT.local.contains(&name), "{name} is not looked for");
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

    /// Whether the file's constants contain this text, which the marks of a runtime name. A program in Rust, such
    /// as Scruple, has the texts for other reasons.
    pub(super) fn holds(&self, text: &str) -> bool {
        debug_assert!(SOUGHT.texts.contains(&text), "{text} is not looked for");
        self.texts.contains(text) && !self.comment.contains("rustc version")
    }
}

fn one_of(names: &[&'static str], name: &[u8]) -> Option<&'static str> {
    names.iter().find(|other| other.as_bytes() == name).copied()
}

/// The texts of all marks that the constants contain.
fn texts(constants: &[u8]) -> HashSet<&'static str> {
    let is_there = |text: &&&str| {
        // SAFETY: both pointers are of slices, with the lengths of these slices.
        let at = unsafe {
            libc::memmem(constants.as_ptr().cast(), constants.len(), text.as_ptr().cast(), text.len())
        };
        !at.is_null()
    };
    SOUGHT.texts.iter().filter(is_there).copied().collect()
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

    /// This test is itself such a program.
    #[test]
    fn texts_in_a_program_in_rust_are_those_of_no_runtime() {
        let elf = Elf::read(&std::env::current_exe().expect("a path")).expect("an ELF file");
        assert!(elf.texts.contains("GHCRTS") && !elf.holds("GHCRTS"), "{}", elf.comment);
    }

    #[test]
    fn damaged_program_files_are_survived() {
        let whole = include_bytes!("../../../fuzz/corpus/elf/small");
        assert!(Elf::parse(whole).is_some_and(|elf| elf.symbols && elf.section(".text")));
        Corpus::named("elf").is_survived_by(|data| {
            if let Some(elf) = Elf::parse(data) {
                let _ = (elf.link_note(), SOUGHT.texts.iter().filter(|text| elf.holds(text)).count());
            }
        });
    }
}
