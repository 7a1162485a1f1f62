//! Runtimes that are recognised but not queried, so that the missing figures have a reason: Perl, Erlang and Elixir,
//! Chez Scheme, Mono, .NET.

use super::adapter::{Adapter, Recognition};
use super::elf::{Elf, FileMarks};
use super::figures::{COMMON, NO_COLLECTOR};

const PERL_MEMORY: &str = "it counts references and keeps no figures; malloc.bytes has what it takes from malloc, \
                           without the heads of scalars, which come from arenas";
const ERLANG: &str = "the virtual machine runs no hook of ours when it halts, and a sampler’s last figures are old; \
                      print erlang:statistics(garbage_collection) at the program's end";
const CHEZ: &str = "no variable and no option makes it report; let the program print (sstats-print (statistics)) at its \
                    end";
const MONO: &str = "it reports on standard output only; run it with MONO_ENV_OPTIONS=--stats, or with MONO_LOG_LEVEL=debug \
                    MONO_LOG_MASK=gc";
const DOTNET: &str = "it gives its figures only to code inside it and to its own diagnostics; print \
                      GC.GetTotalAllocatedBytes(true) and GC.CollectionCount at the program's end, or use dotnet-counters";

/// All common metrics, each with this reason.
const fn all(why: &'static str) -> [(&'static str, &'static str); COMMON.len()] {
    let mut lacks = [("", why); COMMON.len()];
    let mut at = 0;
    while at < COMMON.len() {
        lacks[at] = (COMMON[at], why);
        at += 1;
    }
    lacks
}

const fn adapter(
    word: &'static str,
    lacks: &'static [(&'static str, &'static str)],
    marks: FileMarks,
    find: fn(&Elf) -> Option<Recognition>,
) -> Adapter {
    Adapter { word, lacks, marks, find, ..Adapter::SILENT }
}

pub(super) const PERL: Adapter = adapter(
    "perl",
    &[
        ("alloc.bytes", PERL_MEMORY),
        ("alloc.objects", PERL_MEMORY),
        ("gc.count", NO_COLLECTOR),
        ("gc.minor", NO_COLLECTOR),
        ("gc.major", NO_COLLECTOR),
        ("gc.time", NO_COLLECTOR),
        ("gc.pause_max", NO_COLLECTOR),
        ("heap.live_max", PERL_MEMORY),
        ("heap.peak", PERL_MEMORY),
    ],
    FileMarks { exported: &["perl_alloc"], ..FileMarks::NONE },
    |elf| found(elf.exports("perl_alloc") || elf.needs("libperl.so").is_some(), BY_SYMBOLS),
);

pub(super) const ERLANG_VM: Adapter = adapter(
    "erlang",
    &all(ERLANG),
    FileMarks { exported: &["erts_alloc_init"], local: &["erts_alloc_init"], ..FileMarks::NONE },
    |elf| found(elf.exports("erts_alloc_init") || elf.has("erts_alloc_init"), BY_SYMBOLS),
);

pub(super) const CHEZ_SCHEME: Adapter =
    adapter("chez", &all(CHEZ), FileMarks { exported: &["Sscheme_start"], ..FileMarks::NONE }, |elf| {
        found(elf.exports("Sscheme_start"), BY_SYMBOLS)
    });

pub(super) const MONO_VM: Adapter =
    adapter("mono", &all(MONO), FileMarks { exported: &["mono_jit_init"], ..FileMarks::NONE }, |elf| {
        found(elf.exports("mono_jit_init") || elf.needs("libmonosgen").is_some(), BY_SYMBOLS)
    });

const DOTNET_MARKS: FileMarks = FileMarks {
    exported: &["coreclr_initialize", "DotNetRuntimeInfo", "DotNetRuntimeDebugHeader"],
    texts: &["hostfxr_main_startupinfo"],
    ..FileMarks::NONE
};

/// Recognises the host of .NET, programs that were published with a host of their own, single files that contain the
/// runtime, and programs that were compiled ahead of time.
pub(super) const DOTNET_VM: Adapter = adapter("dotnet", &all(DOTNET), DOTNET_MARKS, |elf| {
    found(elf.holds("hostfxr_main_startupinfo"), "the name of its host library in the file")
        .or_else(|| found(DOTNET_MARKS.exported.iter().any(|symbol| elf.exports(symbol)), BY_SYMBOLS))
});

const BY_SYMBOLS: &str = "the symbols it exports";

fn found(is: bool, by: &'static str) -> Option<Recognition> {
    is.then(|| Recognition::new(None, by, "not at all")).flatten()
}
