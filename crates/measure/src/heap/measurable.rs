//! Determines before a program is started whether its allocations can be counted.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::program::Program;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{Endianness, ReadCache, ReadCacheOps, ReadRef, StringTable, elf};

/// Why the allocations of a program cannot be counted from outside.
#[derive(Debug, thiserror::Error)]
pub enum Unmeasurable {
    /// The program cannot be read.
    #[error("‘{path}’ cannot be read: {source}")]
    Unreadable {
        /// The program.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is neither an ELF program nor a script with an interpreter line.
    #[error("‘{0}’ is neither an ELF program nor a script that names its interpreter")]
    NotElf(PathBuf),
    /// The program is for other machines, such as 32-bit ones.
    #[error("‘{0}’ is not a 64-bit program for this kind of processor")]
    OtherMachine(PathBuf),
    /// The program is linked statically, so that a preloaded library cannot replace its `malloc`.
    #[error("‘{0}’ is linked statically, so its malloc cannot be wrapped")]
    Static(PathBuf),
    /// The program is a Go program, whose runtime takes memory directly from the system.
    #[error("‘{0}’ is a Go program, which does not allocate through malloc: take the figures of its runtime")]
    Go(PathBuf),
    /// The program runs with privileges that its caller does not have, so the loader ignores preloaded libraries.
    #[error("‘{0}’ runs with other privileges than its caller's (setuid, setgid or capabilities)")]
    Privileged(PathBuf),
    /// The loader of the program is neither glibc's nor musl's.
    #[error("‘{path}’ is started by {loader}, which is neither glibc's nor musl's loader")]
    Loader {
        /// The program.
        path: PathBuf,
        /// The loader that the program names.
        loader: String,
    },
    /// An allocator is linked into the program.
    #[error("‘{path}’ is linked with its own allocator ({symbol}), whose calls cannot be seen from outside")]
    OwnAllocator {
        /// The program.
        path: PathBuf,
        /// The function, or the text of its messages, that identifies it.
        symbol: String,
    },
    /// The program calls an allocator's functions by names other than `malloc`.
    #[error("‘{path}’ calls {symbol} of its allocator directly, not malloc")]
    PastMalloc {
        /// The program.
        path: PathBuf,
        /// The function.
        symbol: String,
    },
}

impl Unmeasurable {
    /// Whether the program runs with the counter loaded although the counter does not see all allocations.
    pub(super) fn hides_allocations(&self) -> bool {
        matches!(self, Unmeasurable::OwnAllocator { .. } | Unmeasurable::PastMalloc { .. })
    }
}

/// Whether the allocations of `program`, a path to an executable file, can be counted. For a script the answer is
/// that of its interpreter. The answer concerns this file only: a program may start others that cannot be counted,
/// which [`super::Totals::unseen`] reports afterwards.
pub fn measurable(program: &Path) -> Result<(), Unmeasurable> {
    let mut program = program.to_path_buf();
    for _ in 0..5 {
        match interpreter(&program)? {
            Some(interpreter) => program = interpreter,
            None => return elf_measurable(&program),
        }
    }
    Err(Unmeasurable::NotElf(program))
}

/// The program that runs a script; `#!/usr/bin/env NAME` is resolved as `env` resolves it.
fn interpreter(program: &Path) -> Result<Option<PathBuf>, Unmeasurable> {
    let unreadable = |source| Unmeasurable::Unreadable { path: program.into(), source };
    let mut start = Vec::new();
    File::open(program).and_then(|file| file.take(256).read_to_end(&mut start)).map_err(unreadable)?;
    let Some(line) = start.strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return Err(Unmeasurable::NotElf(program.into())) };
    let first = Path::new(OsStr::from_bytes(first));
    if first.file_name() == Some(OsStr::new("env")) {
        let name = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='));
        return Ok(Some(name.and_then(on_path).unwrap_or_else(|| first.into())));
    }
    Ok(Some(first.into()))
}

fn on_path(name: &[u8]) -> Option<PathBuf> {
    let name = Path::new(OsStr::from_bytes(name));
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn elf_measurable(path: &Path) -> Result<(), Unmeasurable> {
    let unreadable = |source| Unmeasurable::Unreadable { path: path.into(), source };
    let file = File::open(path).map_err(unreadable)?;
    let data = &ReadCache::new(&file);
    let Ok(start) = data.read_bytes_at(0, 20) else { return Err(Unmeasurable::NotElf(path.into())) };
    if !start.starts_with(&elf::ELFMAG) {
        return Err(Unmeasurable::NotElf(path.into()));
    }
    if start[4] != CLASS_64 || u16::from_ne_bytes([start[18], start[19]]) != MACHINE {
        return Err(Unmeasurable::OtherMachine(path.into()));
    }
    if (Program { path: path.into() }).changes_user() {
        return Err(Unmeasurable::Privileged(path.into()));
    }
    look_inside(path, &file, data).unwrap_or_else(|_| Err(Unmeasurable::NotElf(path.into())))
}

const CLASS_64: u8 = elf::ELFCLASS64.0;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = elf::EM_AARCH64.0;
#[cfg(not(target_arch = "aarch64"))]
const MACHINE: u16 = elf::EM_X86_64.0;

fn look_inside<R: ReadCacheOps>(
    path: &Path,
    file: &File,
    data: &ReadCache<R>,
) -> object::Result<Result<(), Unmeasurable>> {
    let header = elf::FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    for section in sections.iter() {
        let name = sections.section_name(endian, section)?;
        if name == b".go.buildinfo" || name == b".note.go.buildid" {
            return Ok(Err(Unmeasurable::Go(path.into())));
        }
    }
    let mut loader = None;
    for segment in header.program_headers(endian, data)? {
        loader = loader.or(segment.interpreter(endian, data)?);
    }
    let Some(loader) = loader else { return Ok(Err(Unmeasurable::Static(path.into()))) };
    if !is_known_loader(loader) {
        let loader = String::from_utf8_lossy(loader).into_owned();
        return Ok(Err(Unmeasurable::Loader { path: path.into(), loader }));
    }
    let mut stripped = true;
    for kind in [elf::SHT_DYNSYM, elf::SHT_SYMTAB] {
        let symbols = sections.symbols(endian, data, kind)?;
        // Reading each name by itself would take two system calls, and large programs have a hundred thousand names.
        let strings = sections.section(symbols.string_section());
        let strings = strings.map(|strings| contents(file, strings.file_range(endian))).unwrap_or_default();
        let strings = StringTable::new(&*strings, 0, strings.len() as u64);
        for symbol in symbols.iter() {
            let name = strings.get(symbol.st_name(endian)).unwrap_or_default();
            let text = || String::from_utf8_lossy(name).into_owned();
            if symbol.is_undefined(endian) {
                if PAST_MALLOC.iter().any(|start| name.starts_with(start.as_bytes())) {
                    return Ok(Err(Unmeasurable::PastMalloc { path: path.into(), symbol: text() }));
                }
            } else if matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC) {
                stripped &= kind != elf::SHT_SYMTAB;
                if ALLOCATORS.iter().any(|own| own.as_bytes() == name) {
                    return Ok(Err(Unmeasurable::OwnAllocator { path: path.into(), symbol: text() }));
                }
            }
        }
    }
    if stripped && let Some((_, section)) = sections.section_by_name(endian, b".rodata") {
        let constants = contents(file, section.file_range(endian));
        if let Some(text) =
            MESSAGES.split('|').skip(1).find(|text| begins_a_string(&constants, text.as_bytes()))
        {
            let symbol = format!("it says ‘{}’", text.trim());
            return Ok(Err(Unmeasurable::OwnAllocator { path: path.into(), symbol }));
        }
    }
    Ok(Ok(()))
}

/// The bytes of the file from an offset on, in a size. Empty if the file ends before.
fn contents(file: &File, range: Option<(u64, u64)>) -> Vec<u8> {
    let (offset, size) = range.unwrap_or_default();
    let rest = file.metadata().map_or(0, |file| file.len().saturating_sub(offset));
    let mut bytes = vec![0; size.min(rest) as usize];
    file.read_exact_at(&mut bytes, offset).map(|()| bytes).unwrap_or_default()
}

/// Symbols that an allocator linked into a program defines: `malloc` itself, or its own names.
const ALLOCATORS: [&str; 7] =
    ["malloc", "_rjem_malloc", "je_malloc", "mi_malloc", "tc_malloc", "rpmalloc", "sn_malloc"];

/// Prefixes of the names by which programs call a library's allocator directly.
const PAST_MALLOC: [&str; 14] = [
    "mallocx",
    "rallocx",
    "dallocx",
    "sdallocx",
    "je_malloc",
    "mi_malloc",
    "mi_zalloc",
    "mi_calloc",
    "mi_realloc",
    "mi_new",
    "mi_heap_malloc",
    "tc_malloc",
    "tc_new",
    "scalable_malloc",
];

/// Prefixes of allocators' messages, which identify an allocator in a stripped program. In C programs a message
/// follows a zero byte. In this constant it follows a bar, so that a program that merely contains the list, as
/// Scruple does, is not taken for an allocator.
const MESSAGES: &str = "|<jemalloc>: |mimalloc: |tcmalloc: ";

/// Whether one of the zero-terminated strings begins with `message`.
fn begins_a_string(constants: &[u8], message: &[u8]) -> bool {
    memchr::memmem::find_iter(constants, message).any(|place| place == 0 || constants[place - 1] == 0)
}

fn is_known_loader(loader: &[u8]) -> bool {
    let name = loader.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name.starts_with(b"ld-linux") || name.starts_with(b"ld-musl")
}
