//! Reads windows from a file, so that everything after the generator can be tested exactly.

use super::{Loader, Turn};
use crate::fault::Fault;
use scruple_core::metric::metric;
use scruple_core::sample::Reading;
use scruple_measure::load::cost::process_tree::TreeMemory;
use scruple_measure::load::cost::sheet::Sheet;
use scruple_measure::load::cost::window::Window;
use scruple_measure::load::{
    self, ConnectionOutcomes, Delayed, Doubt, Ended, Failure, Failures, GeneratorCost, Latencies, LoadResult,
    Plan, RequestCounts, RequestKind, RequestTimes, RunPart, Unanswered,
};
use scruple_measure::memory_map::MemoryMap;
use scruple_stats::sorting::SortedMap;
use serde::Deserialize;

/// The windows of each arm, by the name of the arm.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadScript {
    /// The windows in order. The last one repeats if more are requested.
    pub arms: SortedMap<String, Vec<ScriptedWindow>>,
}

/// A scripted window.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedWindow {
    /// The length of the window, in milliseconds.
    span: u64,
    /// How far the answers were behind at the end of the window, in milliseconds.
    behind: u64,
    /// The most that it can have been, because the generator was late, in milliseconds.
    behind_most: u64,
    /// The response times in microseconds, each with its count.
    response: Vec<(u64, u64)>,
    /// The service times in microseconds, each with its count. If empty, the response times are used.
    service: Vec<(u64, u64)>,
    /// The lag of requests in microseconds, each with its count.
    lag: Vec<(u64, u64)>,
    /// The lateness of the generator in microseconds, each with its count.
    lateness: Vec<(u64, u64)>,
    /// The response times that contain a delay of the generator, in microseconds, each with its count.
    delayed: Vec<(u64, u64)>,
    /// The same without the delay.
    least: Vec<(u64, u64)>,
    /// The numbers of failed requests by class.
    failures: SortedMap<String, u64>,
    /// The growth of the server's counters, by key.
    grown: SortedMap<String, f64>,
    /// The resident memory of the server after the window, in bytes.
    resident: u64,
    /// The language runtime that collects the server's heap.
    runtime: Option<String>,
    /// The memory map of the server after the window, as the kernel writes it.
    smaps: String,
    /// The doubts about the window.
    doubts: Vec<Doubt>,
    /// Whether the server was gone at the end of the window.
    gone: bool,
    /// How the server's process ended in the window.
    ended: Option<String>,
}

/// A loader that plays a script.
pub struct ScriptedLoader {
    script: LoadScript,
    names: Vec<String>,
    taken: Vec<Vec<Window>>,
    maps: Vec<Vec<MemoryMap>>,
}

impl ScriptedLoader {
    /// Creates the loader that plays this script for these arms.
    pub fn of(script: LoadScript, names: Vec<String>) -> ScriptedLoader {
        let taken = names.iter().map(|_| Vec::new()).collect();
        let maps = names.iter().map(|_| Vec::new()).collect();
        ScriptedLoader { script, names, taken, maps }
    }
}

impl Loader for ScriptedLoader {
    fn turn(
        &mut self,
        arm: usize,
        _plan: &Plan,
        _progress: &mut dyn FnMut(&load::LoadProgress),
    ) -> Result<Turn, Fault> {
        let (name, taken) = (&self.names[arm], &mut self.taken[arm]);
        let windows = self.script.arms.get(name).filter(|windows| !windows.is_empty());
        let windows = windows.ok_or_else(|| {
            Fault::usage(format!("the script has no windows of ‘{name}’: add an arm of that name"))
        })?;
        let entry = &windows[taken.len().min(windows.len() - 1)];
        let load = result(entry)?;
        let requests = load.generator.requests;
        let grown: Vec<(String, f64)> =
            entry.grown.iter().map(|(key, grown)| (key.clone(), *grown)).collect();
        let costs = grown.iter().map(|(key, grown)| (key.clone(), grown / requests.max(1) as f64)).collect();
        let memory = TreeMemory { resident: entry.resident, ..TreeMemory::default() };
        let map = MemoryMap::parse(&entry.smaps).map_err(Fault::usage)?;
        self.maps[arm].push(map);
        taken.push(Window { requests, elapsed: load.span, grown, memory });
        Ok(Turn { load, costs: vec![costs], ended: entry.ended.clone() })
    }

    fn sheets(&mut self) -> Vec<Option<Result<Sheet, String>>> {
        let runtime = |name: &String| self.script.arms.get(name)?.first()?.runtime.clone();
        let mut runtimes = self.names.iter().map(runtime).collect::<Vec<_>>().into_iter();
        let sheet = |(windows, maps): (Vec<Window>, Vec<MemoryMap>)| {
            let runtime = runtimes.next().flatten();
            let keys = windows.first().map(|window| &window.grown).filter(|grown| !grown.is_empty())?;
            let known: Vec<Reading> =
                keys.iter().filter_map(|(key, _)| Some(Reading::of(metric(key)?, 0.0, "script"))).collect();
            let maps = (maps.first().cloned().unwrap_or_default(), maps.last().cloned().unwrap_or_default());
            let mut sheet = Sheet::of(&known, windows, &[], maps);
            sheet.growth.iter_mut().for_each(|growth| growth.collected_by.clone_from(&runtime));
            Some(Ok(sheet))
        };
        std::mem::take(&mut self.taken).into_iter().zip(std::mem::take(&mut self.maps)).map(sheet).collect()
    }
}

fn result(entry: &ScriptedWindow) -> Result<LoadResult, Fault> {
    let of = |buckets: &[(u64, u64)]| Latencies::of(buckets.iter().map(|(us, count)| (us * 1000, *count)));
    let mut failures = Failures::default();
    for (name, count) in &entry.failures {
        let class = Failure::ALL.into_iter().find(|class| class.name() == name);
        let class = class.ok_or_else(|| {
            Fault::usage(format!("the script names ‘{name}’, which is not a class of failures"))
        })?;
        failures.record(class, *count);
    }
    let response = of(&entry.response);
    let answered = response.count();
    let span = entry.span * 1_000_000;
    let requests = answered + failures.total();
    let service = if entry.service.is_empty() { response.clone() } else { of(&entry.service) };
    let (lag, lateness) = (of(&entry.lag), of(&entry.lateness));
    let delayed = Delayed::of(of(&entry.delayed), of(&entry.least));
    let counts = RequestCounts { due: requests, answered, failures, bytes: answered * 13, backlog: 0 };
    let times = RequestTimes { response, service, lag, lateness, delayed: delayed.clone() };
    let part = RunPart {
        from: 0,
        to: span as i64,
        counts: counts.clone(),
        // If the answers were behind at the end of the window, only a part of them arrived within it.
        arrived: (answered as f64 * span as f64 / (span + entry.behind * 1_000_000).max(1) as f64).round()
            as u64,
        times: times.clone(),
        carried: delayed,
        rows: Vec::new(),
    };
    Ok(LoadResult {
        ended: if entry.gone { Ended::ServerGone } else { Ended::Planned },
        started: (0, 0),
        span,
        behind: entry.behind * 1_000_000,
        behind_most: entry.behind.max(entry.behind_most) * 1_000_000,
        counts,
        times,
        idle_failures: Failures::default(),
        connect: Latencies::default(),
        reconnects: 0,
        closings: 0,
        repeated: 0,
        connections: ConnectionOutcomes::default(),
        parts: vec![part],
        warm_up: 0,
        stalls: Vec::new(),
        kinds: Vec::<RequestKind>::new(),
        slowest: Vec::new(),
        unfinished: 0,
        unanswered: Unanswered::default(),
        generator: GeneratorCost {
            threads: 1,
            elapsed: span,
            user: requests * 500,
            system: requests * 1500,
            requests,
            reached: requests,
            ..GeneratorCost::default()
        },
        tick_lateness: Latencies::default(),
        doubts: entry.doubts.clone(),
    })
}
