//! CPython: its allocators are wrapped before it starts, and a function is added to `gc.callbacks`; no Python code
//! runs.

use super::adapter::{Adapter, Recognition, Setting};
use super::agent_records::{AgentRecord, HookFile, ProcessState};
use super::elf::{Elf, FileMarks};
use super::figures::{LIVE, RuntimeFigure};

pub(super) const ADAPTER: Adapter = Adapter {
    word: "python",
    lacks: &[
        (
            "heap.live_max",
            "collections only look for cycles, so no moment shows all that is alive; see memory.peak",
        ),
        ("heap.peak", "blocks come from arenas and from malloc; see memory.peak"),
    ],
    marks: FileMarks { exported: &["PyMem_SetAllocator"], ..FileMarks::NONE },
    find,
    figures_of,
    tells_when: true,
    // All objects then come from malloc, whose peak explains their share of the resident size.
    for_resident_size: &[("PYTHONMALLOC", Setting::Is("malloc"))],
    ..Adapter::SILENT
};

const CALLS: usize = 0;
const BYTES: usize = 3;
const COLLECTIONS: usize = 6;
const TIME: usize = 9;
const LONGEST: usize = 10;
const HAVE_COLLECTIONS: usize = 11;
const AT_LOOKS: usize = 12;
const HAVE_LOOKED: usize = 13;

fn find(elf: &Elf) -> Option<Recognition> {
    let asked = "its allocators are wrapped, and gc.callbacks joined, from inside the process";
    if let Some(library) = elf.needs("libpython") {
        let version = library.strip_prefix("libpython").and_then(|rest| rest.split(".so").next());
        return Recognition::new(version.map(str::to_owned), "the library it needs", asked);
    }
    elf.exports("PyMem_SetAllocator")
        .then(|| Recognition::new(None, "the symbols it exports", asked))
        .flatten()
}

fn figures_of(record: &AgentRecord, _answers: &[&HookFile]) -> Result<Vec<RuntimeFigure>, String> {
    let value = |at: usize| record.values[at] as f64;
    // The raw domain belongs to the interpreter and differs by one call between runs, so it is kept separate.
    let calls = value(CALLS + 1) + value(CALLS + 2);
    // A forked process whose parent was counted may allocate hardly anything.
    let never_counted = calls < 64.0 && !record.begun_by_child();
    if never_counted && record.state == ProcessState::Running {
        return Err(record.silence());
    }
    if never_counted {
        // The program only links the library, or its settings replaced our allocators.
        return Err(
            "python's allocators were replaced by its own settings (PYTHONMALLOC, development mode): \
                    run it without them"
                .to_owned(),
        );
    }
    let mut figures = vec![
        RuntimeFigure::exact("alloc.bytes", value(BYTES + 1) + value(BYTES + 2)),
        RuntimeFigure::exact("alloc.objects", calls),
        RuntimeFigure::near("python.raw_calls", value(CALLS)),
        RuntimeFigure::near("python.raw_bytes", value(BYTES)),
    ];
    if record.values[HAVE_COLLECTIONS] == 1 {
        let by_generation = [0, 1, 2].map(|i| value(COLLECTIONS + i));
        figures.extend([
            RuntimeFigure::exact("gc.count", by_generation.iter().sum()),
            RuntimeFigure::exact("gc.minor", by_generation[0] + by_generation[1]),
            RuntimeFigure::exact("gc.major", by_generation[2]),
            RuntimeFigure::noisy("gc.time", value(TIME)),
            RuntimeFigure::noisy("gc.pause_max", value(LONGEST)),
        ]);
    }
    if record.values[HAVE_LOOKED] == 1 {
        figures.push(RuntimeFigure::near(LIVE, value(AT_LOOKS)));
    }
    Ok(figures)
}
