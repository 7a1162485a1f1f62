//! Compiles the preload libraries with the system's C compiler: the allocation counter of `src/heap/preload`, once per
//! mode, the agent of `src/runtimes/agent`, and the counters of `src/calltree/interpreted`. Compresses these and the
//! sources of the call tree's tool, because the binary contains them.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The folder of what all preload libraries share.
const SHARED: &str = "src/preload";
const SHARED_SOURCES: [&str; 2] = ["environment.c", "programs.c"];

/// The folder of the allocation counter.
const COUNTER: &str = "src/heap/preload";
const COUNTER_SOURCES: [&str; 7] =
    ["hooks.c", "operators.c", "slots.c", "tree.c", "pool.c", "follow.c", "limits.c"];
/// What only the library that records sites consists of.
const SITES: [&str; 2] = ["sites.c", "mappings.c"];

/// The allocation counter's libraries: the name of each file, its `MODE_…` of layout.h, and its further sources.
const LIBRARIES: [(&str, &str, &[&str]); 4] = [
    ("heap-counts.so", "0", &[]),
    ("heap-usable.so", "1", &[]),
    ("heap-requested.so", "2", &[]),
    ("heap-sites.so", "2", &SITES),
];

/// The size of the blocks of these libraries that alternate, so that what they share is within the 32 kB in which the
/// compressor finds repetitions.
const BLOCK: usize = 2048;

/// The folder of the call tree's tool, which is compiled where Scruple runs.
const CALL_TREE: &str = "../../instruments/calltree";

/// The folder of the library that recognises language runtimes.
const AGENT: &str = "src/runtimes/agent";
const AGENT_SOURCES: [&str; 9] =
    ["agent.c", "ghc.c", "java.c", "java_live.c", "libgc.c", "node.c", "php.c", "python.c", "text.c"];

/// The folder of the counters that interpreters load, each a library of `contexts.c` and its own source.
const INTERPRETED: &str = "src/calltree/interpreted/counter";
const INTERPRETERS: [&str; 3] = ["guile", "python", "ruby"];

/// Compiler flags. No C library is linked, because the library uses the program's. Symbols that the library defines
/// are bound to itself, so that it can tell another `malloc` from its own. Vectorisation is off because two counters
/// are added faster apart, and functions are aligned because a hook whose first instructions share a cache line is
/// half a nanosecond faster. Code and constants share pages, because pages of their own take 8 KB in each library.
const FLAGS: [&str; 21] = [
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-shared",
    "-nostdlib",
    "-fno-builtin",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-fasynchronous-unwind-tables",
    "-fno-stack-protector",
    "-fno-tree-loop-distribute-patterns",
    "-fno-tree-slp-vectorize",
    "-falign-functions=64",
    "-Wall",
    "-Wextra",
    "-Wl,-Bsymbolic-functions",
    "-Wl,-z,now",
    "-Wl,-z,noexecstack",
    "-Wl,-z,noseparate-code",
    "-Wl,--build-id=none",
    "-s",
];

fn main() {
    for folder in [SHARED, COUNTER, AGENT, CALL_TREE, INTERPRETED] {
        println!("cargo::rerun-if-changed={folder}");
    }
    println!("cargo::rerun-if-env-changed=CC");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let embedded = out.join("embedded");
    fs::create_dir_all(&embedded).expect("OUT_DIR can be written");
    let mut tool: Vec<(String, Vec<u8>)> = fs::read_dir(CALL_TREE)
        .expect("the tool's sources are there")
        .flatten()
        .map(|entry| {
            let content = fs::read(entry.path()).expect("the tool's sources can be read");
            (entry.file_name().to_string_lossy().into_owned(), content)
        })
        .collect();
    tool.sort_unstable();
    // One after the other: what a file shares with others is in the one before as well.
    pack_together(&tool, usize::MAX, &embedded.join("calltree-sources"));
    let os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let machine = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let supported = os == "linux" && matches!(machine.as_str(), "x86_64" | "aarch64");
    if !supported {
        let none = LIBRARIES.map(|(name, _, _)| (name.to_owned(), Vec::new()));
        pack_together(&none, BLOCK, &embedded.join("heap-libraries"));
        pack(&[], &embedded.join("runtimes.so"));
        for interpreter in INTERPRETERS {
            pack(&[], &embedded.join(format!("{interpreter}-counter.so")));
        }
        return;
    }
    let counters = LIBRARIES.map(|(name, mode, more)| {
        let (mode, sites) = (format!("-DMODE={mode}"), format!("-DSITES={}", u8::from(!more.is_empty())));
        let sources: Vec<&str> = COUNTER_SOURCES.iter().chain(more).copied().collect();
        compile(&with_shared(COUNTER, &sources), &[&mode, &sites], &out.join(name), &machine);
        (name.to_owned(), fs::read(out.join(name)).expect("the compiler has written it"))
    });
    pack_together(&counters, BLOCK, &embedded.join("heap-libraries"));
    // It runs a few times in a process, so that size counts.
    let flags = ["-D_GNU_SOURCE", "-U_FORTIFY_SOURCE", "-Os", "-falign-functions=1"];
    compile(&with_shared(AGENT, &AGENT_SOURCES), &flags, &out.join("runtimes.so"), &machine);
    let agent = fs::read(out.join("runtimes.so")).expect("the compiler has written it");
    pack(&agent, &embedded.join("runtimes.so"));
    for interpreter in INTERPRETERS {
        let name = format!("{interpreter}-counter.so");
        let sources = ["contexts", interpreter].map(|name| Path::new(INTERPRETED).join(format!("{name}.c")));
        compile(&sources, &["-D_GNU_SOURCE"], &out.join(&name), &machine);
        pack(&fs::read(out.join(&name)).expect("the compiler has written it"), &embedded.join(&name));
    }
}

/// The sources of a preload library.
fn with_shared(folder: &str, sources: &[&str]) -> Vec<PathBuf> {
    let own = sources.iter().map(|name| Path::new(folder).join(name));
    own.chain(SHARED_SOURCES.iter().map(|name| Path::new(SHARED).join(name))).collect()
}

/// Packs files with much in common: a block of each in turn. Before them stand the size of a block, the name and the size of
/// each file, each in a line, and an empty line.
fn pack_together(files: &[(String, Vec<u8>)], block: usize, packed: &Path) {
    let longest = files.iter().map(|(_, file)| file.len()).max().unwrap_or_default();
    let block = block.min(longest).max(1);
    let sizes: String = files.iter().map(|(name, file)| format!("{name} {}\n", file.len())).collect();
    let mut all = format!("{block}\n{sizes}\n").into_bytes();
    for start in (0..longest).step_by(block) {
        for (_, file) in files {
            all.extend(file.iter().skip(start).take(block));
        }
    }
    pack(&all, packed);
}

fn pack(content: &[u8], packed: &Path) {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    let all = encoder.write_all(content).and_then(|()| encoder.finish());
    fs::write(packed, all.expect("memory can be written")).expect("OUT_DIR can be written");
}

fn compile(sources: &[PathBuf], flags: &[&str], library: &Path, machine: &str) {
    let compiler = compiler(machine);
    let mut command = Command::new(&compiler);
    command.args(FLAGS).args(flags).arg("-o").arg(library);
    if machine == "aarch64" {
        // Atomic operations must be inline: their out-of-line forms are in a library.
        command.arg("-mno-outline-atomics");
    }
    command.args(sources);
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{compiler} could not compile {library:?} ({status}): {command:?}"),
        Err(error) => panic!("a C compiler is needed ({compiler}: {error}): install gcc or clang, or set CC"),
    }
}

/// The C compiler: `CC` if set, else the system's compiler, or the usual cross compiler if host and target differ.
fn compiler(machine: &str) -> String {
    let host = env::var("HOST").unwrap_or_default();
    env::var("CC").unwrap_or_else(|_| {
        if host.starts_with(machine) { "cc".into() } else { format!("{machine}-linux-gnu-gcc") }
    })
}
