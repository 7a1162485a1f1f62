//! Node.js: V8 reports the used heap before and after each collection; allocated bytes are the sum of its growth.

use super::adapter::{Adapter, Recognition};
use super::agent_records::{AgentRecord, HookFile};
use super::elf::{Elf, FileMarks};
use super::figures::{LIVE, LIVE_AT_MOST, RuntimeFigure};
use scruple_stats::sorting::SortedMap;
use serde::Deserialize;

pub(super) const ADAPTER: Adapter = Adapter {
    word: "node",
    lacks: &[("alloc.objects", "V8 counts bytes, not objects")],
    marks: FileMarks { exported: &["_ZN4node5StartEiPPc"], ..FileMarks::NONE },
    find,
    figures_of,
    tells_when: true,
    hook: Some(("hook.cjs", include_str!("hooks/hook.cjs"))),
    ..Adapter::SILENT
};

fn find(elf: &Elf) -> Option<Recognition> {
    let asked = "v8.GCProfiler, by a hook through NODE_OPTIONS";
    let node = elf.exports("_ZN4node5StartEiPPc") || elf.needs("libnode.so").is_some();
    node.then(|| Recognition::new(None, "the symbols it exports", asked)).flatten()
}

/// The hook's record of one thread that ran to its end. Sizes are in bytes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadHeap {
    start: f64,
    allocated: f64,
    peak: f64,
    live: f64,
    /// The live size after requested full collections.
    #[serde(default)]
    reachable: Option<f64>,
    /// The largest possible live size, if callbacks of a `FinalizationRegistry` were still to be called at the end.
    #[serde(default)]
    at_most: Option<f64>,
    kinds: SortedMap<String, CollectionKind>,
    #[serde(default)]
    pauses: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
struct CollectionKind {
    count: f64,
    micros: f64,
    longest: f64,
}

fn figures_of(record: &AgentRecord, answers: &[&HookFile]) -> Result<Vec<RuntimeFigure>, String> {
    if answers.is_empty() {
        return Err(match record.refused() {
            true => "node's permission model is on, and would stop the program at our hook: run it without"
                .to_owned(),
            false => format!("{}, or node is older than 18.15", record.silence()),
        });
    }
    let heaps: Vec<ThreadHeap> = answers
        .iter()
        .map(|answer| serde_json::from_str(&answer.text))
        .collect::<Result<_, _>>()
        .map_err(|error| format!("cannot parse the answer of node: {error}"))?;
    Ok(figures(&heaps))
}

/// The times at which collections stopped a thread: start and end in nanoseconds on the monotonic clock.
pub(super) fn pauses(answer: &HookFile) -> Vec<(u64, u64)> {
    serde_json::from_str::<ThreadHeap>(&answer.text).map(|heap| heap.pauses).unwrap_or_default()
}

fn figures(heaps: &[ThreadHeap]) -> Vec<RuntimeFigure> {
    let sum = |of: &dyn Fn(&ThreadHeap) -> f64| heaps.iter().map(of).fold(0.0, std::ops::Add::add);
    let most = |of: &dyn Fn(&ThreadHeap) -> f64| heaps.iter().map(of).fold(0.0, f64::max);
    let kinds = |heap: &ThreadHeap, minor: Option<bool>, of: &dyn Fn(&str, &CollectionKind) -> f64| {
        let chosen = heap.kinds.iter().filter(|(name, _)| minor.is_none_or(|minor| is_minor(name) == minor));
        chosen.map(|(name, kind)| of(name, kind)).fold(0.0, std::ops::Add::add)
    };
    let count = |name: &str, kind: &CollectionKind| if is_whole(name) { kind.count } else { 0.0 };
    let mut figures = vec![
        // Data that was on the heap before the hook ran was allocated by the program, too.
        RuntimeFigure::near("alloc.bytes", sum(&|heap| heap.start + heap.allocated)),
        RuntimeFigure::exact("gc.count", sum(&|heap| kinds(heap, None, &count))),
        RuntimeFigure::exact("gc.minor", sum(&|heap| kinds(heap, Some(true), &count))),
        RuntimeFigure::exact("gc.major", sum(&|heap| kinds(heap, Some(false), &count))),
        RuntimeFigure::noisy("gc.time", sum(&|heap| kinds(heap, None, &|_, kind| kind.micros)) * 1e3),
        RuntimeFigure::noisy(
            "gc.pause_max",
            most(&|heap| heap.kinds.values().map(|kind| kind.longest).fold(0.0, f64::max)) * 1e3,
        ),
        RuntimeFigure::near("heap.peak", most(&|heap| heap.peak)),
    ];
    let live = most(&|heap| heap.live);
    if live > 0.0 {
        figures.push(RuntimeFigure::near("heap.live_max", live));
    }
    if heaps.iter().all(|heap| heap.reachable.is_some()) {
        let live = |heap: &ThreadHeap| heap.reachable.unwrap_or(0.0);
        figures.push(RuntimeFigure::near(LIVE, sum(&live)));
        figures.push(RuntimeFigure::near(
            LIVE_AT_MOST,
            sum(&|heap| heap.at_most.map_or(live(heap), |most| most.max(live(heap)))),
        ));
    }
    figures
}

fn is_minor(kind: &str) -> bool {
    kind == "Scavenge" || kind.starts_with("Minor")
}

/// Whether a pause of this kind ends a collection. The others belong to a collection that another pause ends.
fn is_whole(kind: &str) -> bool {
    !matches!(kind, "IncrementalMarking" | "ProcessWeakCallbacks")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_added_up_and_kinds_distinguished() {
        let text = r#"{"pid":1,"thread":0,"version":"20.20.2","start":3610192,"allocated":401413880,"peak":27724216,
            "live":20440576,"kinds":{"Scavenge":{"count":40,"micros":412489.33,"longest":20275.2},
            "IncrementalMarking":{"count":1,"micros":14331.9,"longest":14331.9},
            "MarkSweepCompact":{"count":1,"micros":7950.83,"longest":7950.83}}}"#;
        let heap = || serde_json::from_str::<ThreadHeap>(text).expect("an answer");
        let one = figures(&[heap()]);
        let value =
            |figures: &[RuntimeFigure], key: &str| figures.iter().find(|f| f.key == key).map(|f| f.value);
        assert_eq!(value(&one, "alloc.bytes"), Some(405_024_072.0));
        assert_eq!((value(&one, "gc.minor"), value(&one, "gc.major")), (Some(40.0), Some(1.0)));
        assert_eq!(value(&one, "gc.time").map(f64::round), Some(434_772_060.0));
        assert_eq!(value(&one, "gc.pause_max"), Some(20_275_200.0));
        let two = figures(&[heap(), heap()]);
        assert_eq!((value(&two, "gc.count"), value(&two, "heap.peak")), (Some(82.0), Some(27_724_216.0)));
    }
}
