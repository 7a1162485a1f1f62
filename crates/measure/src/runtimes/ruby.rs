//! Ruby: a hook of a few lines runs at the process's exit and reads `GC.stat`.

use super::adapter::{Adapter, Recognition};
use super::agent_records::{AgentRecord, HookFile, field};
use super::elf::{Elf, FileMarks};
use super::figures::{LIVE, RuntimeFigure};

pub(super) const ADAPTER: Adapter = Adapter {
    word: "ruby",
    lacks: &[("heap.live_max", "the collector keeps no maximum; see heap.peak")],
    marks: FileMarks { exported: &["ruby_init"], ..FileMarks::NONE },
    find,
    figures_of,
    hook: Some(("hook.rb", include_str!("hooks/hook.rb"))),
    ..Adapter::SILENT
};

fn find(elf: &Elf) -> Option<Recognition> {
    let asked = "GC.stat at exit, by a hook through RUBYOPT";
    if let Some(library) = elf.needs("libruby") {
        let version = library.strip_prefix("libruby-").and_then(|rest| rest.split(".so").next());
        return Recognition::new(version.map(str::to_owned), "the library it needs", asked);
    }
    elf.exports("ruby_init").then(|| Recognition::new(None, "the symbols it exports", asked)).flatten()
}

fn figures_of(record: &AgentRecord, answers: &[&HookFile]) -> Result<Vec<RuntimeFigure>, String> {
    match answers.first() {
        Some(answer) => answered(&answer.text),
        None if record.asked() => Err(format!("{}; ‘exit!’ runs nothing at exit", record.silence())),
        None => Err("ruby was not asked: it could not read the hook".to_owned()),
    }
}

fn answered(text: &str) -> Result<Vec<RuntimeFigure>, String> {
    if field(text, "unknown_start").is_some() {
        return Err(
            "a forked ruby process older than 3.1: its figures cannot be separated from its parent's"
                .to_owned(),
        );
    }
    let value = |name: &str| field(text, name);
    let (Some(objects), Some(count)) = (value("total_allocated_objects"), value("count")) else {
        return Err("cannot parse the answer of ruby".to_owned());
    };
    // Only slots count. Contents of strings and arrays outside of slots come from malloc, and malloc.bytes counts
    // them.
    let slots = value("slot_bytes").unwrap_or_else(|| objects * value("slot_size").unwrap_or(40.0));
    let mut figures = vec![
        RuntimeFigure::near("alloc.bytes", slots),
        RuntimeFigure::near("alloc.objects", objects),
        RuntimeFigure::exact("gc.count", count),
    ];
    figures.extend(value("minor_gc_count").map(|count| RuntimeFigure::exact("gc.minor", count)));
    figures.extend(value("major_gc_count").map(|count| RuntimeFigure::exact("gc.major", count)));
    figures.extend(value("live").map(|live| RuntimeFigure::near(LIVE, live)));
    figures.extend(value("gc_ns").map(|time| RuntimeFigure::noisy("gc.time", time)));
    figures.extend(value("longest").map(|seconds| RuntimeFigure::noisy("gc.pause_max", seconds * 1e9)));
    if let (Some(pages), Some(size)) = (value("heap_allocated_pages"), value("page_size")) {
        // The number of pages at exit approximates the peak, because Ruby rarely returns pages.
        figures.push(RuntimeFigure::estimated("heap.peak", pages * size));
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_counted_with_their_sizes_where_ruby_knows_them() {
        let old = "pid=1\ncount=31\nminor_gc_count=24\nmajor_gc_count=7\ntotal_allocated_objects=3056861\nslot_size=40\n\
                   gc_ns=83000000\nlongest=0.004304205999999977\nheap_allocated_pages=1092\npage_size=16384\n";
        let figures = answered(old).expect("figures");
        let value = |key: &str| figures.iter().find(|figure| figure.key == key).map(|figure| figure.value);
        assert_eq!((value("alloc.objects"), value("alloc.bytes")), (Some(3_056_861.0), Some(122_274_440.0)));
        assert_eq!(
            (value("gc.minor"), value("gc.major"), value("gc.count")),
            (Some(24.0), Some(7.0), Some(31.0))
        );
        assert_eq!(value("heap.peak"), Some(17_891_328.0));
        let new = answered("count=1\ntotal_allocated_objects=10\nslot_bytes=640\n").expect("figures");
        assert_eq!(new[0].value, 640.0);
    }

    #[test]
    fn a_torn_answer_is_no_figure() {
        assert!(answered("pid=3\ncount=").is_err());
    }
}
