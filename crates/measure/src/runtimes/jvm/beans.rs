//! Reads what the management beans report at the end of the virtual machine: lines about collectors and pools of the
//! heap, which the agent kept.

use super::perf_data::PerfData;
use crate::runtimes::figures::RuntimeFigure;

/// The heap according to the management beans.
#[derive(Debug, Default, PartialEq)]
pub(super) struct HeapBeans {
    /// The current size of the heap in bytes.
    committed: f64,
    /// The name and the number of collections of each collector.
    collectors: Vec<(String, f64)>,
    /// The peak of each pool in bytes.
    pools: Vec<f64>,
}

/// The number of collections by kind.
#[derive(Debug, Default, PartialEq)]
struct CollectionCounts {
    minor: f64,
    major: f64,
}

impl HeapBeans {
    /// Parses the lines `heap COMMITTED`, `collector COUNT NAME` and `pool PEAK AFTER NAME`.
    pub(super) fn parse(text: &str) -> HeapBeans {
        let mut beans = HeapBeans::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok());
            match (words[0], number(1)) {
                ("heap", Some(committed)) => beans.committed = committed,
                ("collector", Some(count)) => beans.collectors.push((words[2..].join(" "), count)),
                ("pool", Some(peak)) => beans.pools.push(peak),
                _ => {}
            }
        }
        beans
    }

    /// Subtracts the collections that the queries of the agent caused. Allocations cause young collections. If a
    /// collector has no generations, its cycles are not the stops that the agent counts, and nothing is subtracted.
    pub(super) fn subtract_caused_collections(mut self, stops: f64) -> HeapBeans {
        if let Some((_, count)) = self.collectors.iter_mut().find(|(name, _)| is_young(name)) {
            *count = (*count - stops).max(0.0);
        }
        self
    }

    /// The figures of the beans. There is a live size only after a collection.
    pub(super) fn figures(&self, counters: Option<&PerfData>) -> Vec<RuntimeFigure> {
        let mut figures = Vec::new();
        if let Some(counts) = self.counts(counters) {
            // Only the simplest collectors are triggered by allocation alone; others also depend on time and the
            // number of cores.
            let simple = self.collectors.iter().any(|(name, _)| name == "Copy");
            let figure = if simple { RuntimeFigure::exact } else { RuntimeFigure::noisy };
            figures.extend([
                figure("gc.count", counts.minor + counts.major),
                figure("gc.minor", counts.minor),
                figure("gc.major", counts.major),
            ]);
            if counts.minor + counts.major > 0.0 {
                figures
                    .extend(self.live(counters).map(|live| RuntimeFigure::estimated("heap.live_max", live)));
            }
        }
        match self.pools.as_slice() {
            // A single pool is the whole heap, so its peak is the heap's.
            [peak] if *peak > 0.0 => figures.push(RuntimeFigure::near("heap.peak", *peak)),
            // Several pools peak at different times: the heap reached at least the largest peak, and at least its
            // current size.
            pools if self.committed > 0.0 => {
                let largest = pools.iter().copied().fold(self.committed, f64::max);
                figures.push(RuntimeFigure::estimated("heap.peak", largest));
            }
            _ => {}
        }
        figures
    }

    /// The number of collections by kind. A concurrent collector of the whole heap has one bean for its cycles, which
    /// are collections, and one for its pauses, which do not count.
    fn counts(&self, counters: Option<&PerfData>) -> Option<CollectionCounts> {
        let mut counts = CollectionCounts::default();
        for (name, count) in &self.collectors {
            let concurrent_part = name.ends_with(" Pauses") || name == "G1 Concurrent GC";
            match (concurrent_part, is_young(name)) {
                (true, _) => {}
                (false, true) => counts.minor += count,
                (false, false) => counts.major += count,
            }
        }
        // G1 marks the whole heap concurrently, with two pauses for each marking; an aborted marking has fewer. The
        // pauses are in the counter file, because older versions of G1 have no bean for them.
        let marking = counters.filter(|data| data.text(&name_of(2)) == Some("G1 concurrent cycle pauses"));
        let stops = marking.and_then(|data| data.number("sun.gc.collector.2.invocations")).unwrap_or(0.0);
        counts.major += (stops / 2.0).ceil();
        (!self.collectors.is_empty()).then_some(counts)
    }

    /// Whether the program runs during whole collections. The heap after such a collection contains objects that were
    /// allocated meanwhile, and whole regions of garbage, so its size says nothing about live data.
    pub(super) fn is_concurrent(&self) -> bool {
        self.collectors.iter().any(|(name, _)| name.ends_with(" Pauses"))
    }

    /// The live size in bytes after the last collection. If that was a young collection, all old objects count as
    /// live.
    fn live(&self, counters: Option<&PerfData>) -> Option<f64> {
        let in_spaces = || {
            let data = counters?;
            // Eden is empty after a collection, and the content of the other spaces was live at that time.
            let spaces = [(0, 1), (0, 2), (1, 0), (1, 1), (1, 2)];
            let used = spaces.iter().filter_map(|(generation, space)| {
                data.number(&format!("sun.gc.generation.{generation}.space.{space}.used"))
            });
            Some(used.sum::<f64>())
        };
        in_spaces().filter(|live| *live > 0.0 && !self.is_concurrent())
    }
}

fn is_young(collector: &str) -> bool {
    ["Young", "Minor", "Scavenge", "ParNew"].iter().any(|word| collector.contains(word))
        || collector == "Copy"
}

fn name_of(collector: u32) -> String {
    format!("sun.gc.collector.{collector}.name")
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    fn value(figures: &[RuntimeFigure], key: &str) -> Option<f64> {
        figures.iter().find(|figure| figure.key == key).map(|figure| figure.value)
    }

    #[test]
    fn damaged_answers_of_the_agent_are_survived() {
        let text = "heap 1\ncollector 8 G1 Young Generation\ncollector 1 G1 Old Generation\npool 5 3 G1 Eden Space\n";
        Corpus::default()
            .with("of G1", text)
            .is_survived_by_text(|text| drop(HeapBeans::parse(text).figures(None)));
    }

    #[test]
    fn collections_that_the_questions_caused_are_not_the_programs() {
        let text = "heap 1\ncollector 8 G1 Young Generation\ncollector 1 G1 Old Generation\n";
        let figures = HeapBeans::parse(text).subtract_caused_collections(1.0).figures(None);
        assert_eq!((value(&figures, "gc.minor"), value(&figures, "gc.major")), (Some(7.0), Some(1.0)));
        let figures = HeapBeans::parse("heap 1\ncollector 9 ZGC Cycles\n")
            .subtract_caused_collections(3.0)
            .figures(None);
        assert_eq!(value(&figures, "gc.count"), Some(9.0));
    }

    #[test]
    fn cycles_are_collections_and_their_stops_are_not() {
        let text = "heap 530579456\ncollector 9 ZGC Cycles\ncollector 30 ZGC Pauses\npool 530579456 81788928 ZHeap\n";
        let figures = HeapBeans::parse(text).figures(None);
        assert_eq!((value(&figures, "gc.count"), value(&figures, "gc.minor")), (Some(9.0), Some(0.0)));
        assert_eq!(value(&figures, "heap.peak"), Some(530_579_456.0));
        assert_eq!(value(&figures, "heap.live_max"), None, "what was allocated meanwhile is in it");
    }

    #[test]
    fn generations_of_a_concurrent_collector_are_distinguished() {
        let text = "heap 396361728\ncollector 21 ZGC Minor Cycles\ncollector 66 ZGC Minor Pauses\n\
                    collector 5 ZGC Major Cycles\ncollector 23 ZGC Major Pauses\n\
                    pool 100663296 77594624 ZGC Old Generation\npool 396361728 18874368 ZGC Young Generation\n";
        let figures = HeapBeans::parse(text).figures(None);
        let counts = ["gc.count", "gc.minor", "gc.major"].map(|key| value(&figures, key));
        assert_eq!(counts, [Some(26.0), Some(21.0), Some(5.0)]);
        assert_eq!(value(&figures, "heap.live_max"), None);
        assert_eq!(value(&figures, "heap.peak"), Some(396_361_728.0));
    }

    #[test]
    fn without_a_collection_nothing_is_known_to_be_alive() {
        let text = "heap 395051008\ncollector 0 Shenandoah Pauses\ncollector 0 Shenandoah Cycles\n\
                    pool 492568576 0 Shenandoah\n";
        let figures = HeapBeans::parse(text).figures(None);
        assert_eq!((value(&figures, "gc.count"), value(&figures, "heap.live_max")), (Some(0.0), None));
    }

    #[test]
    fn young_and_old_collectors_are_distinguished() {
        let counters = include_bytes!("../../../tests/data/runtimes/jvm/hsperfdata.bin");
        let counters = PerfData::parse(counters).expect("counters");
        let text = "heap 480247808\ncollector 3 G1 Young Generation\ncollector 0 G1 Old Generation\n\
                    pool 281018368 0 G1 Eden Space\npool 378535936 0 G1 Old Gen\n";
        let figures = HeapBeans::parse(text).figures(Some(&counters));
        let counts = ["gc.count", "gc.minor", "gc.major"].map(|key| value(&figures, key));
        assert_eq!(counts, [Some(3.0), Some(3.0), Some(0.0)]);
        assert!(value(&figures, "heap.live_max").is_some_and(|live| live > 0.0));
    }
}
