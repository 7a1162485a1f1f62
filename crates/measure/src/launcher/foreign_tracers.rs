//! Programs that trace others themselves, such as debuggers and strace. A process can have only one tracer, so the
//! launcher does not trace them.

use object::{Object, ObjectSection, ObjectSymbol, ReadCache};
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

/// Whether program files call `ptrace`, by device and inode; each file is read once.
#[derive(Default)]
pub(super) struct Tracers {
    known: HashMap<(u64, u64), bool>,
}

impl Tracers {
    /// Whether the program that this process has executed calls ptrace.
    pub(super) fn has(&mut self, pid: libc::pid_t) -> bool {
        let path = format!("/proc/{pid}/exe");
        let Ok(data) = fs::metadata(&path) else { return false };
        *self.known.entry((data.dev(), data.ino())).or_insert_with(|| traces(&path))
    }
}

fn traces(path: &str) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let cache = ReadCache::new(file);
    let Ok(file) = object::File::parse(&cache) else { return false };
    // All names are read at once, because each symbol's takes a system call of its own.
    let has_name = |table: &str| {
        let names = file.section_by_name(table).and_then(|section| section.data().ok());
        names.is_some_and(|names| memchr::memmem::find(names, b"ptrace").is_some())
    };
    // Go programs have no C library. The call is in a Go package, whose code is linked only where it is used.
    has_name(".dynstr")
        && file.dynamic_symbols().any(|symbol| symbol.is_undefined() && symbol.name() == Ok("ptrace"))
        || has_name(".strtab")
            && file.symbols().any(|symbol| {
                matches!(
                    symbol.name(),
                    Ok("syscall.ptrace" | "syscall.ptracePtr" | "golang.org/x/sys/unix.ptrace")
                )
            })
}
