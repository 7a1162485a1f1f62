//! PHP: handlers in its memory manager count and call the original functions. No setting of PHP is changed.

use super::adapter::{Adapter, Recognition};
use super::agent_records::{AgentRecord, HookFile};
use super::elf::{Elf, FileMarks};
use super::figures::RuntimeFigure;

pub(super) const ADAPTER: Adapter = Adapter {
    word: "php",
    lacks: &[
        ("gc.minor", "the cycle collector has no generations; see gc.count"),
        ("gc.major", "the cycle collector has no generations; see gc.count"),
        ("gc.time", "PHP keeps the time of its cycle collector from version 8.3 on, for gc_status() only"),
        ("gc.pause_max", "PHP keeps no pauses"),
        ("heap.live_max", "memory is counted by reference, so all that is held is alive; see heap.peak"),
    ],
    marks: FileMarks { exported: &["sapi_module", "zend_mm_set_custom_handlers"], ..FileMarks::NONE },
    find,
    figures_of,
    ..Adapter::SILENT
};

fn find(elf: &Elf) -> Option<Recognition> {
    let php = elf.exports("zend_mm_set_custom_handlers") && elf.exports("sapi_module");
    let asked = "its memory manager's own handlers, from inside the process";
    php.then(|| Recognition::new(None, "the symbols it exports", asked)).flatten()
}

fn figures_of(record: &AgentRecord, _answers: &[&HookFile]) -> Result<Vec<RuntimeFigure>, String> {
    if !record.reported() {
        return Err(record.silence());
    }
    let value = |at: usize| record.values[at] as f64;
    let mut figures = vec![
        RuntimeFigure::exact("alloc.bytes", value(1)),
        RuntimeFigure::exact("alloc.objects", value(0)),
        RuntimeFigure::exact("heap.peak", value(2)),
    ];
    // Up to PHP 8.2 the status starts with the numbers of runs and of collected values, and a threshold of at least
    // 10001 follows. Later versions start with booleans, and no such threshold follows.
    if record.values[5] >= 10_001 {
        figures.push(RuntimeFigure::exact("gc.count", value(3)));
    }
    Ok(figures)
}
