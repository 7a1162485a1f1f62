//! A load under way: windows of one server after the other, and their results.

pub mod accounts;
mod division;
mod load_plan;
pub mod passes;
pub mod pool;
pub mod readings;
pub mod scripted_loader;
pub mod server_loader;
mod servers;

pub use accounts::ServerAccounts;
pub use division::Division;
pub use load_plan::{plan, rates};
pub use pool::{ExcludedPart, Pool, Slice};
pub use scripted_loader::{LoadScript, ScriptedLoader};
pub use server_loader::{ObservedServer, ServerLoader, reached_at};
pub use servers::{TargetServer, add_yardstick, part_name, sides};

use super::watchers::Watchers;
use crate::address::StoreAddress;
use crate::fault::Fault;
use crate::new_run;
use crate::progress::Progress;
use crate::render::page::Section;
use crate::store::{RunWriter, Store, add_readings};
use scruple_core::metric::Pass;
use scruple_core::run::{Run, RunState};
use scruple_core::sample::{BLOCKS_OF_A_TURN, Reading};
use scruple_core::subject::{Arm, Role};
use scruple_core::visit_order::VisitOrder;
use scruple_measure::load::cost::collections::{Collections, NoRuntimeFigures};
use scruple_measure::load::cost::instructions::RequestInstructions;
use scruple_measure::load::cost::sampled::SampledTime;
use scruple_measure::load::cost::server_process::StartedServer;
use scruple_measure::load::cost::sheet::Sheet;
use scruple_measure::load::{self, Capacity, Ended, LoadResult, Plan, PlannedRow, RunPart};
use scruple_stats::sorting::SortedMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A loader of servers: the engine of this machine, or a script.
pub trait Loader {
    /// Loads one server for one turn. `progress` receives the progress of the turn.
    ///
    /// # Errors
    /// The server cannot be loaded at all, or not any more.
    fn turn(
        &mut self,
        arm: usize,
        plan: &Plan,
        progress: &mut dyn FnMut(&load::LoadProgress),
    ) -> Result<Turn, Fault>;

    /// Returns the cost sheet of each server whose processes are known, or a clause that says why it is lost.
    fn sheets(&mut self) -> Vec<Option<Result<Sheet, String>>>;
}

/// The result of a turn. A turn has one schedule, from its first request to its last.
pub struct Turn {
    /// The latencies and failures of the turn.
    pub load: LoadResult,
    /// The cost of a request to the server in each window, by the key of the counter's metric; empty if the server's
    /// processes are not known.
    pub costs: Vec<Vec<(String, f64)>>,
    /// How the server's process ended in the turn, if Scruple started it and it did.
    pub ended: Option<String>,
}

/// The results of a load, for reports.
pub struct Loads {
    /// The plan with which all servers were loaded.
    pub plan: Plan,
    /// How the load was divided into turns and windows.
    pub division: Division,
    /// The results of each server, in the order of the arms.
    pub servers: Vec<ServerResults>,
    /// The search for the highest rate, if there was one.
    pub capacity: Option<RateSearch>,
    /// Whether the terminal shows the memory map before and after the load.
    pub show_map: bool,
}

/// The results of one server.
pub struct ServerResults {
    /// The name of the server's arm.
    pub name: String,
    /// The results of all windows together, without those of the warm-up.
    pub pool: Pool,
    /// The number of windows that are void because of the generator. Their latencies do not count, unless all windows
    /// are void.
    pub void: usize,
    /// How the server's process ended under the load, if Scruple started it and it did.
    pub ended: Option<String>,
    /// The cost sheet of the server, if its processes are known.
    pub sheet: Option<Sheet>,
    /// The allocations of a request from a separate pass, or why they are absent.
    pub heap: Option<Result<Sheet, String>>,
    /// The figures of the language runtime for a request, or why they are absent.
    pub runtime: Option<Result<Collections, NoRuntimeFigures>>,
    /// The instructions by function, or why they are absent.
    pub instructions: Option<Result<RequestInstructions, String>>,
    /// The sampled time by function, or why it is absent.
    pub sampled: Option<Result<SampledTime, String>>,
    /// The system calls by name, or why they are absent.
    pub syscalls: Option<Result<SortedMap<String, f64>, String>>,
}

/// A search for the highest rate, with its limits.
pub struct RateSearch {
    /// The limits as the user wrote them.
    pub limits: String,
    /// The result of the search.
    pub found: Capacity,
}

impl ServerResults {
    /// Creates the results of a server with only its latencies.
    pub fn of(name: &str, pool: Pool) -> ServerResults {
        ServerResults {
            name: name.to_owned(),
            pool,
            void: 0,
            ended: None,
            sheet: None,
            heap: None,
            runtime: None,
            instructions: None,
            sampled: None,
            syscalls: None,
        }
    }

    /// Says that the costs of a request include those of void windows, if they do.
    pub fn costs_of_void_windows(&self) -> Option<String> {
        let counted = self.void > 0 && self.sheet.as_ref().is_some_and(|sheet| !sheet.rows.is_empty());
        counted.then(|| {
            format!(
                "the costs of a request include {} void windows of {}: the server’s accounts are right, but requests came \
                 later, or more of them together, than was asked for",
                self.void, self.pool.windows
            )
        })
    }
}

/// A load under way.
pub struct Loading {
    /// The loader; `None` once its servers have ended.
    loader: Option<Box<dyn Loader>>,
    /// The run, with the readings so far.
    pub run: Run,
    /// The writer to which readings are written.
    pub writer: RunWriter,
    progress: Progress,
    division: Division,
    taken: Vec<Vec<(u32, Turn)>>,
}

impl Loading {
    /// Creates a load of these arms; `run` must have none.
    pub fn new(
        loader: Box<dyn Loader>,
        arms: Vec<Arm>,
        mut run: Run,
        store: Option<Store>,
        progress: Progress,
    ) -> Result<Loading, Fault> {
        let servers = arms.iter().filter(|arm| arm.role != Role::Part);
        let taken = servers.map(|_| Vec::new()).collect();
        run.arms = arms;
        let writer = RunWriter::begin(store, &run)?;
        let division = Division { windows: 1, turns: 1, weighed: false };
        Ok(Loading { loader: Some(loader), run, writer, progress, division, taken })
    }

    /// Creates a load of arms that already have their readings, which are to be stored.
    pub fn taken(arms: Vec<Arm>, mut run: Run, store: Option<Store>) -> Result<Loading, Fault> {
        run.arms = arms;
        let writer = RunWriter::begin(store, &run)?;
        let (progress, taken) = (Progress::hidden(), Vec::new());
        let division = Division { windows: 1, turns: 1, weighed: false };
        Ok(Loading { loader: None, run, writer, progress, division, taken })
    }

    /// Whether there was no turn at all.
    pub fn empty(&self) -> bool {
        self.taken.iter().all(Vec::is_empty)
    }

    /// Runs every turn. Readings that were taken before an early end are kept. Returns true if the user interrupted.
    ///
    /// # Errors
    /// A server cannot be loaded, or not any more.
    pub fn take(&mut self, plan: &Plan, division: Division, watchers: &Watchers) -> Result<bool, Fault> {
        self.division = division;
        let result = self.take_turns(plan, watchers);
        self.progress.clear();
        self.run.state = match result {
            Ok(false) => RunState::Complete,
            Ok(true) => RunState::Interrupted,
            Err(_) => RunState::Failed,
        };
        result
    }

    fn take_turns(&mut self, plan: &Plan, watchers: &Watchers) -> Result<bool, Fault> {
        let Some(loader) = &mut self.loader else { return Ok(false) };
        let division = self.division;
        let visits = VisitOrder::new(self.taken.len(), self.run.seed);
        for number in 0..division.turns {
            for arm in visits.order(number) {
                let plan = watchers.watch(division.plan(plan, number), arm, number);
                let (progress, name) = (&self.progress, &self.run.arms[arm].name);
                let whole = plan.duration.as_secs_f64();
                let mut on_progress = |seen: &load::LoadProgress| {
                    watchers.update(name, seen);
                    progress.load(name, (number, division.turns), (seen.elapsed, whole), &live(seen));
                };
                let turn = loader.turn(arm, &plan, &mut on_progress)?;
                let (ended, answered) = (turn.load.ended, turn.load.counts.answered);
                let first = number * BLOCKS_OF_A_TURN;
                for (window, readings) in readings_of(division, &turn, plan.has_even_gaps()) {
                    self.writer.journal(&self.run, arm, Pass::Timing, first + window, &readings);
                }
                self.taken[arm].push((first, turn));
                match ended {
                    // A server that does not answer would make every turn last until the time-out.
                    Ended::Planned if answered == 0 => return Ok(false),
                    Ended::Planned => {}
                    Ended::Interrupted => return Ok(true),
                    // A rate that failed once is not tried again.
                    Ended::Aborted => return Ok(false),
                    // A server that is gone stays gone; the figures show when that happened.
                    Ended::ServerGone => return Ok(false),
                }
            }
        }
        Ok(false)
    }

    /// Returns the results of each server. The readings of the windows that count become samples of the arms. Servers
    /// that were started are ended.
    pub fn outcome(&mut self, plan: &Plan) -> Loads {
        let in_step = plan.has_even_gaps();
        let sheets = self.loader.take().map(|mut loader| loader.sheets());
        let mut sheets = sheets.unwrap_or_default().into_iter();
        let division = self.division;
        let (mut servers, mut lost) = (Vec::new(), Vec::new());
        for (arm, turns) in self.run.arms.iter_mut().zip(&self.taken) {
            for (first, turn) in turns {
                for (window, readings) in readings_of(division, turn, in_step) {
                    add_readings(arm, readings, Pass::Timing, first + window);
                }
            }
            // The accounts of windows that were cut as warm-up do not count.
            let accounts = turns.iter().flat_map(|(_, turn)| {
                let counted = division.windows_of(&turn.load).into_iter();
                counted.filter_map(|(window, _)| turn.costs.get(window as usize))
            });
            add_readings(arm, readings::of_empty_accounts(accounts), Pass::Timing, 0);
            let counted: Vec<&LoadResult> =
                turns.iter().map(|(_, turn)| &turn.load).filter(|load| !load.is_void()).collect();
            if !counted.is_empty() && counted.iter().all(|load| load.is_late()) {
                add_readings(arm, readings::of_no_service(), Pass::Timing, 0);
            }
            let parts = |timely: bool| {
                let loads = counted.iter().filter(move |load| !timely || !load.is_late());
                loads.flat_map(|load| load.counted()).collect::<Vec<_>>()
            };
            for (_, readings) in readings::pooled(&parts(false), &parts(true), self.run.terms.level) {
                for (block, reading) in (0..).zip(readings) {
                    add_readings(arm, [reading], Pass::Timing, block);
                }
            }
            let windows = |load| division.windows_of(load).len();
            let count = |void: bool| -> usize {
                let some = turns.iter().filter(|(_, turn)| !void || turn.load.is_void());
                some.map(|(_, turn)| windows(&turn.load)).sum()
            };
            let (all, void) = (count(false), count(true));
            if void > 0 && void == all {
                add_readings(arm, readings::of_void_turns(), Pass::Timing, 0);
            }
            // If every turn is void, the latencies are shown and marked as void.
            let counts = |load: &LoadResult| void == all || !load.is_void();
            let mut pool = Pool::of(turns.iter().map(|(_, turn)| (&turn.load, counts(&turn.load))));
            pool.windows = all;
            let sheet = sheets.next().flatten().and_then(|sheet| match sheet {
                Ok(sheet) => Some(if in_step { sheet.without_division() } else { sheet }),
                Err(why) => {
                    lost.push(format!("the cost of a request to ‘{}’ is not known: {why}", arm.name));
                    None
                }
            });
            let ended = turns.iter().find_map(|(_, turn)| turn.ended.clone());
            servers.push(ServerResults { void, ended, sheet, ..ServerResults::of(&arm.name, pool) });
        }
        lost.into_iter().for_each(|text| self.run.warn("cost-lost", text));
        self.add_parts(plan);
        Loads { plan: plan.clone(), division, servers, capacity: None, show_map: false }
    }

    /// Adds the readings of the arms that are parts of a server: its kinds of requests, groups and sessions.
    fn add_parts(&mut self, plan: &Plan) {
        let (division, level, several) = (self.division, self.run.terms.level, self.taken.len() > 1);
        for (server, turns) in self.taken.iter().enumerate() {
            for (row, PlannedRow { name, .. }) in plan.rows().iter().enumerate() {
                let name = part_name(&self.run.arms[server].name, name, several);
                let part = |arm: &&mut Arm| arm.role == Role::Part && arm.name == name;
                let Some(arm) = self.run.arms.iter_mut().find(part) else { continue };
                let counted = turns.iter().filter(|(_, turn)| !turn.load.is_void());
                if !turns.is_empty() && counted.clone().next().is_none() {
                    add_readings(arm, readings::of_void_turns(), Pass::Timing, 0);
                }
                for (first, turn) in counted.clone() {
                    for (window, parts) in division.windows_of(&turn.load) {
                        let window_of_row = RunPart::join_parts(parts).row(row);
                        add_readings(arm, readings::of_a_row(&window_of_row), Pass::Timing, first + window);
                    }
                }
                let parts: Vec<RunPart> =
                    counted.flat_map(|(_, turn)| turn.load.counted()).map(|part| part.row(row)).collect();
                for (_, readings) in readings::pooled(&parts.iter().collect::<Vec<_>>(), &[], level) {
                    for (block, reading) in (0..).zip(readings) {
                        add_readings(arm, [reading], Pass::Timing, block);
                    }
                }
            }
        }
    }

    /// Adds the readings of a separate pass to an arm.
    pub fn add(&mut self, arm: usize, block: u32, readings: impl IntoIterator<Item = Reading>) {
        add_readings(&mut self.run.arms[arm], readings, Pass::Counting, block);
    }

    /// Stores the run with these sections of its page, if the user requested that.
    pub fn keep_with(&mut self, sections: &[Section]) {
        if !sections.is_empty() {
            self.writer.keep_sections(&self.run, sections);
        }
        self.keep();
    }

    /// Stores the run, if the user requested that.
    pub fn keep(&mut self) {
        new_run::warn_of_changed_programs(&mut self.run, &[]);
        self.writer.finish(&self.run);
    }

    /// Returns the address of the stored run, if it is stored.
    pub fn stored_at(&self) -> Option<StoreAddress> {
        self.writer.address(&self.run)
    }
}

/// Starts a server outside of windows. Returns `None` if the server already runs.
///
/// # Errors
/// The server does not accept requests, or the user interrupts the wait for it.
pub fn started(
    side: &TargetServer,
    patience: Duration,
    interrupted: &AtomicBool,
) -> Result<Option<StartedServer>, Fault> {
    server_loader::start(side, patience, interrupted)
}

/// Returns the readings of each window of a turn, with its number. If the turn is void, its latencies do not count, but
/// the server's accounts are valid. `in_step` says whether requests were due at even intervals.
fn readings_of(division: Division, turn: &Turn, in_step: bool) -> Vec<(u32, Vec<Reading>)> {
    let accounts = |window: u32| turn.costs.get(window as usize).map_or(&[][..], Vec::as_slice);
    let of = |(window, parts): (u32, &[RunPart])| {
        let mut readings = latencies_of(&turn.load, parts);
        readings.extend(readings::of_the_server(accounts(window), in_step));
        (window, readings)
    };
    division.windows_of(&turn.load).into_iter().map(of).collect()
}

/// Returns the latency readings of a window of a load. A late generator sends requests in groups. How much longer the
/// server took for each is then not known, so there are no readings of the service time.
fn latencies_of(load: &LoadResult, parts: &[RunPart]) -> Vec<Reading> {
    if load.is_void() {
        return Vec::new();
    }
    let mut readings = readings::of(&RunPart::join_parts(parts), readings::due_per_second(load));
    readings.retain(|reading| !load.is_late() || !readings::is_of_service(&reading.key));
    readings
}

/// Adds the readings of one measurement to an arm, unless the measurement is void.
pub fn add_window(arm: &mut Arm, load: &LoadResult, block: u32) {
    add_readings(arm, latencies_of(load, load.counted()), Pass::Timing, block);
}

/// Describes the progress of a turn in a few words.
fn live(seen: &load::LoadProgress) -> String {
    use scruple_core::unit::{Unit, grouped, quantity};
    let ns = |value: u64| quantity(value as f64, &Unit::Nanoseconds);
    let failed =
        if seen.failed > 0 { format!(" · {} failed", grouped(seen.failed as f64)) } else { String::new() };
    let latencies = match seen.p50 {
        0 => String::new(),
        _ => format!(" · p50 {} p99 {}", ns(seen.p50), ns(seen.p99)),
    };
    format!("{}/s{failed}{latencies}", grouped(seen.rate.round()))
}
