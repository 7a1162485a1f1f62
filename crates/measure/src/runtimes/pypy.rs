//! PyPy: reads its log of collections, which every build writes if `PYPYLOG` requests it.

use super::adapter::{Adapter, Recognition};
use super::agent_records::{AgentRecord, HookFile};
use super::elf::Elf;
use super::figures::RuntimeFigure;

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
    figures_of,
    counts_from_its_parent: true,
    ..Adapter::SILENT
};

fn find(elf: &Elf) -> Option<Recognition> {
    let asked = "its log of collections, through PYPYLOG";
    elf.needs("libpypy").and_then(|_| Recognition::new(None, "the library it needs", asked))
}

fn figures_of(record: &AgentRecord, answers: &[&HookFile]) -> Result<Vec<RuntimeFigure>, String> {
    if record.refused() {
        return Err("the program's own PYPYLOG is kept: run it without".to_owned());
    }
    let Some(answer) = answers.first() else { return Err(record.silence()) };
    let ended = |section: &str| {
        let end = format!("] {section}}}");
        answer.text.lines().filter(|line| line.ends_with(&end)).count() as f64
    };
    let (minor, major) = (ended("gc-minor"), ended("gc-collect-done"));
    let mut figures = vec![
        RuntimeFigure::exact("gc.count", minor + major),
        RuntimeFigure::exact("gc.minor", minor),
        RuntimeFigure::exact("gc.major", major),
    ];
    figures.extend(peak(&answer.text).map(|peak| RuntimeFigure::near("heap.peak", peak)));
    Ok(figures)
}

/// The most memory that the heap held: at a collection of the young objects the nursery is full, and the log calls the
/// rest of the heap the memory in use.
///
/// PyPy collects once at its start, when nothing is in use yet. Where the nursery is as large as the processor's cache,
/// no other collection may follow, and then the log does not say what was in use.
fn peak(log: &str) -> Option<f64> {
    let (mut nursery, mut peak): (f64, Option<f64>) = (0.0, None);
    let number = |line: &str, before: &str| line.strip_prefix(before)?.trim().parse::<f64>().ok();
    for line in log.lines() {
        if let Some(size) = number(line, "nursery size: ") {
            nursery = size;
        }
        let used = number(line, "minor collect, total memory used: ").filter(|used| *used > 0.0);
        peak = used.map(|used| used + nursery).into_iter().chain(peak).reduce(f64::max);
    }
    peak
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nursery_is_part_of_the_heap() {
        let began = "[1] {gc-set-nursery-size\nnursery size: 270336\n[2] gc-set-nursery-size}\n\
                     [3] {gc-minor\nminor collect, total memory used: 0\n[4] gc-minor}\n\
                     [5] {gc-set-nursery-size\nnursery size: 4194304\n[6] gc-set-nursery-size}\n";
        assert_eq!(peak(began), None);
        let full = "[7] {gc-minor\nminor collect, total memory used: 1500000\n[8] gc-minor}\n";
        assert_eq!(peak(&format!("{began}{full}")), Some(4_194_304.0 + 1_500_000.0));
    }
}
