//! PyPy: reads its log of collections, which every build writes if `PYPYLOG` requests it.

use super::agent_records::{Answer, Record};
use super::elf::Elf;
use super::figures::Figure;
use super::table::{Adapter, Recognition};

const NO_BYTES: &str = "the log has collections, not allocations; see heap.peak and gc.count";
const NO_TIMES: &str = "the log's times are ticks of the processor, whose length it does not say";

pub(super) const ADAPTER: Adapter = Adapter {
    word: "pypy",
    lacks: &[
        ("alloc.bytes", NO_BYTES),
        ("alloc.objects", NO_BYTES),
        ("gc.time", NO_TIMES),
        ("gc.pause_max", NO_TIMES),
        ("heap.live_max", "the log says what is in use at collections of the young objects; see heap.peak"),
    ],
    find,
    tell,
    counts_from_its_parent: true,
    ..Adapter::SILENT
};

fn find(elf: &Elf) -> Option<Recognition> {
    let asked = "its log of collections, through PYPYLOG";
    elf.needs("libpypy").and_then(|_| Recognition::new(None, "the library it needs", asked))
}

fn tell(record: &Record, answers: &[&Answer]) -> Result<Vec<Figure>, String> {
    if record.refused() {
        return Err("the program's own PYPYLOG is kept: run it without".to_owned());
    }
    let Some(answer) = answers.first() else { return Err(record.silence()) };
    let ended = |section: &str| {
        let end = format!("] {section}}}");
        answer.text.lines().filter(|line| line.ends_with(&end)).count() as f64
    };
    let used = answer.text.lines().filter_map(|line| line.strip_prefix("minor collect, total memory used: "));
    let (minor, major) = (ended("gc-minor"), ended("gc-collect-done"));
    let mut figures = vec![
        Figure::exact("gc.count", minor + major),
        Figure::exact("gc.minor", minor),
        Figure::exact("gc.major", major),
    ];
    // PyPy collects once at its start, when nothing is in use yet. Where the nursery is as large as the processor's cache,
    // no other collection may follow, and then the log does not say what was in use.
    let peak = used.filter_map(|bytes| bytes.trim().parse().ok()).reduce(f64::max).filter(|peak| *peak > 0.0);
    figures.extend(peak.map(|peak| Figure::near("heap.peak", peak)));
    Ok(figures)
}
