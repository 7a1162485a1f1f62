//! Java virtual machines (HotSpot): the agent joins as a JVMTI agent, counts collections and their pauses, and asks
//! for the bytes that all threads allocated as the machine ends; the machine's own counter file tells the rest.

pub mod perf_data;

use super::elf::Elf;
use super::figures::Figure;
use super::records::{Answer, Record};
use super::table::{Adapter, Found};
use perf_data::PerfData;

pub(super) const ADAPTER: Adapter = Adapter {
    word: "jvm",
    lacks: &[("alloc.objects", "the machine counts bytes, not objects; its flight recorder samples them")],
    find,
    tell,
};

fn find(elf: &Elf) -> Option<Found> {
    let asked = "the agent as a JVMTI agent, through JAVA_TOOL_OPTIONS, and the machine's counter file";
    let by = "the launcher's library, which it needs";
    let java = elf.needs("libjli.so").or(elf.needs("libjvm.so")).is_some() || elf.exports("JLI_Launch");
    java.then(|| Found::new(None, by, asked)).flatten()
}

fn tell(record: &Record, _answers: &[&Answer]) -> Result<Vec<Figure>, String> {
    if !record.reported() {
        return Err(record.silence());
    }
    let value = |at: usize| record.values[at] as f64;
    let mut figures = Vec::new();
    if record.values[4] == 1 {
        figures.push(Figure::exact("alloc.bytes", value(0)));
    }
    if record.values[5] == 1 {
        figures.extend([
            Figure::exact("gc.count", value(1)),
            Figure::noisy("gc.time", value(2)),
            Figure::noisy("gc.pause_max", value(3)),
        ]);
    }
    if let Ok(data) = PerfData::parse(&record.text) {
        figures.extend(of_counters(&data));
    }
    if figures.is_empty() {
        return Err("this virtual machine told nothing: it has no JVMTI, or not the module java.management"
            .to_owned());
    }
    Ok(figures)
}

/// Collectors in their order: the young one is the first, and what stops everything the last.
fn of_counters(data: &PerfData) -> Vec<Figure> {
    let mut figures = Vec::new();
    let invocations = |i: usize| data.number(&format!("sun.gc.collector.{i}.invocations"));
    if let (Some(young), Some(old)) = (invocations(0), invocations(1)) {
        figures.push(Figure::exact("gc.minor", young));
        // A third collector, if there is one, marks concurrently with short stops.
        figures.push(Figure::exact("gc.major", old));
    }
    // The capacities at exit; the machine may have given memory back before.
    let capacity: f64 = (0..3).filter_map(|i| data.number(&format!("sun.gc.generation.{i}.capacity"))).sum();
    if capacity > 0.0 {
        figures.push(Figure::estimated("heap.peak", capacity));
    }
    let survivors = (0..3).flat_map(|generation| {
        // After a collection eden is empty; what the other spaces hold is what was alive then.
        let first = usize::from(generation == 0);
        (first..3).filter_map(move |space| {
            data.number(&format!("sun.gc.generation.{generation}.space.{space}.used"))
        })
    });
    let live: f64 = survivors.sum();
    if live > 0.0 {
        figures.push(Figure::estimated("heap.live_max", live));
    }
    if let Some(time) = data.nanoseconds("sun.rt.safepointTime") {
        figures.push(Figure::noisy("jvm.safepoint_time", time));
    }
    figures.extend(data.number("sun.rt.safepoints").map(|count| Figure::noisy("jvm.safepoints", count)));
    figures.extend(
        data.number("java.cls.loadedClasses")
            .zip(data.number("java.cls.sharedLoadedClasses"))
            .map(|(own, shared)| Figure::near("jvm.classes", own + shared)),
    );
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_become_figures() {
        let bytes = include_bytes!("../../../tests/data/runtimes/jvm/hsperfdata.bin");
        let figures = of_counters(&PerfData::parse(bytes).expect("counters"));
        let value = |key: &str| figures.iter().find(|figure| figure.key == key).map(|figure| figure.value);
        assert_eq!((value("gc.minor"), value("gc.major")), (Some(3.0), Some(0.0)));
        assert_eq!(value("jvm.safepoint_time"), Some(19_034_109.0));
        assert_eq!(value("jvm.classes"), Some(407.0));
    }
}
