//! Java virtual machines (HotSpot). The agent is loaded as a JVMTI agent and records how long collections stop the
//! program. At the end it reads bytes, collections and memory pools from the management beans. Other figures come
//! from the virtual machine's counter file.

mod beans;
pub mod perf_data;

use super::adapter::{Adapter, Recognition, Setting};
use super::agent_records::{AgentRecord, HookFile};
use super::elf::{Elf, FileMarks};
use super::figures::{LIVE, LIVE_AT_MOST, RuntimeFigure};
use beans::HeapBeans;
use perf_data::PerfData;

pub(super) const ADAPTER: Adapter = Adapter {
    word: "jvm",
    lacks: &[(
        "alloc.objects",
        "the virtual machine counts bytes, not objects; its flight recorder samples them",
    )],
    marks: FileMarks { exported: &["JLI_Launch"], ..FileMarks::NONE },
    find,
    figures_of,
    tells_when: true,
    for_resident_size: &[("_JAVA_OPTIONS", Setting::Ends { separator: " ", text: LITTLE_GARBAGE })],
    ..Adapter::SILENT
};

/// A small space for young objects, and a collector that reuses all memory that it frees, whichever collector the
/// command line selects. The second compiler is off, because it takes more and more from malloc while the program runs.
const LITTLE_GARBAGE: &str = "-XX:+IgnoreUnrecognizedVMOptions -XX:-UseG1GC -XX:-UseZGC -XX:-UseShenandoahGC \
                              -XX:-UseParallelGC -XX:-UseConcMarkSweepGC -XX:+UseSerialGC -XX:NewSize=1m \
                              -XX:MaxNewSize=1m -XX:InitialRAMPercentage=0.05 -XX:TieredStopAtLevel=1";

/// The indices of the agent's values for this runtime.
mod value {
    pub(super) const ALLOCATED: usize = 0;
    pub(super) const STOPS: usize = 1;
    pub(super) const TIME: usize = 2;
    pub(super) const LONGEST: usize = 3;
    pub(super) const HAVE_BYTES: usize = 4;
    pub(super) const HAVE_STOPS: usize = 5;
    pub(super) const LIVE: usize = 6;
    pub(super) const HAVE_LIVE: usize = 7;
    pub(super) const OWN_STOPS: usize = 8;
    pub(super) const LIVE_AT_MOST: usize = 9;
}

fn find(elf: &Elf) -> Option<Recognition> {
    let asked =
        "the agent as a JVMTI agent, through JAVA_TOOL_OPTIONS, and the counter file of the virtual machine";
    let by = "the launcher's library, which it needs";
    let java = elf.needs("libjli.so").or(elf.needs("libjvm.so")).is_some() || elf.exports("JLI_Launch");
    java.then(|| Recognition::new(None, by, asked)).flatten()
}

/// Why a virtual machine that collected does not report live data, if its collector never knows them.
pub(super) fn why_no_live(record: &AgentRecord, figures: &[RuntimeFigure]) -> Option<String> {
    let has = |key: &str| figures.iter().find(|figure| figure.key == key).map(|figure| figure.value);
    let collected = has("gc.count").is_some_and(|count| count > 0.0);
    let concurrent = beans_of(record).0.is_concurrent();
    (collected && concurrent && has("heap.live_max").is_none()).then(|| {
        "its collector works while the program runs, so what it leaves contains garbage; `scruple inspect leak` reads \
         live data after forced collections"
            .to_owned()
    })
}

/// The output of the management beans, and the counter file.
fn beans_of(record: &AgentRecord) -> (HeapBeans, Option<PerfData>) {
    const COUNTERS: &[u8] = b"counters\n";
    let text = &record.text;
    let at = text.windows(COUNTERS.len()).position(|window| window == COUNTERS);
    let counters = at.and_then(|at| PerfData::parse(&text[at + COUNTERS.len()..]).ok());
    (HeapBeans::parse(&String::from_utf8_lossy(&text[..at.unwrap_or(text.len())])), counters)
}

fn figures_of(record: &AgentRecord, _answers: &[&HookFile]) -> Result<Vec<RuntimeFigure>, String> {
    if !record.reported() {
        return Err(record.silence());
    }
    let value = |at: usize| record.values[at] as f64;
    let has = |at: usize| record.values[at] == 1;
    let mut figures = Vec::new();
    if has(value::HAVE_BYTES) {
        figures.push(RuntimeFigure::exact("alloc.bytes", value(value::ALLOCATED)));
    }
    if has(value::HAVE_STOPS) {
        figures.extend([
            RuntimeFigure::noisy("jvm.gc_stops", value(value::STOPS)),
            RuntimeFigure::noisy("gc.time", value(value::TIME)),
            RuntimeFigure::noisy("gc.pause_max", value(value::LONGEST)),
        ]);
    }
    if has(value::HAVE_LIVE) {
        figures.push(RuntimeFigure::near(LIVE, value(value::LIVE)));
        figures.push(RuntimeFigure::near(LIVE_AT_MOST, value(value::LIVE_AT_MOST)));
    }
    let (beans, counters) = beans_of(record);
    figures.extend(beans.subtract_caused_collections(value(value::OWN_STOPS)).figures(counters.as_ref()));
    figures.extend(counters.iter().flat_map(of_counters));
    if figures.is_empty() {
        return Err(
            "this virtual machine reported nothing: it has no JVMTI, or not the module java.management"
                .to_owned(),
        );
    }
    Ok(figures)
}

/// The figures that only the counter file contains.
fn of_counters(data: &PerfData) -> Vec<RuntimeFigure> {
    let mut figures = Vec::new();
    if let Some(time) = data.nanoseconds("sun.rt.safepointTime") {
        figures.push(RuntimeFigure::noisy("jvm.safepoint_time", time));
    }
    figures
        .extend(data.number("sun.rt.safepoints").map(|count| RuntimeFigure::noisy("jvm.safepoints", count)));
    figures.extend(
        data.number("java.cls.loadedClasses")
            .zip(data.number("java.cls.sharedLoadedClasses"))
            .map(|(own, shared)| RuntimeFigure::near("jvm.classes", own + shared)),
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
        assert_eq!(value("jvm.safepoint_time"), Some(19_034_109.0));
        assert_eq!(value("jvm.classes"), Some(407.0));
    }
}
