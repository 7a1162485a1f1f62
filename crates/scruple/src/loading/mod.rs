//! A load under way: windows of one server after the other, and what is kept of each.

mod engine;
pub mod passes;
mod pool;
mod readings;
mod script;
mod setup;

pub use engine::{Engine, Looking};
pub use pool::Pool;
pub use script::{Played, Script};
pub use setup::{Side, add_yardstick, plan, rate, sides};

use crate::fault::Fault;
use crate::progress::Progress;
use crate::store::{Ledger, Store, add_readings};
use scruple_core::metric::Pass;
use scruple_core::plan::Plan as Visits;
use scruple_core::run::{Run, State};
use scruple_core::sample::Reading;
use scruple_core::subject::Arm;
use scruple_core::warm_up;
use scruple_measure::load::cost::collections::{Collections, Untold};
use scruple_measure::load::cost::instructions::Instructions;
use scruple_measure::load::cost::sampled::Sampled;
use scruple_measure::load::cost::sheet::Sheet;
use scruple_measure::load::cost::start::Server;
use scruple_measure::load::{self, Capacity, Ended, LoadResult, Plan, WarmUp};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What loads servers: this machine, or a script.
pub trait Loader {
    /// Loads one server for one window; `progress` is told how it goes.
    ///
    /// # Errors
    /// When the server cannot be loaded at all, or no longer.
    fn window(
        &mut self,
        arm: usize,
        plan: &Plan,
        progress: &mut dyn FnMut(&load::Progress),
    ) -> Result<Window, Fault>;

    /// The cost sheet of each server whose processes are known.
    fn sheets(&mut self) -> Vec<Option<Sheet>>;
}

/// What came of a window.
pub struct Window {
    /// The latencies and failures.
    pub load: LoadResult,
    /// What a request cost the server, by the key of the counter's metric; empty where the server is not known.
    pub costs: Vec<(String, f64)>,
}

/// What came of everything, for reports.
pub struct Loads {
    /// The plan that all servers were loaded with.
    pub plan: Plan,
    /// One for each arm, in their order.
    pub servers: Vec<Loaded>,
    /// The search for the highest rate, where there was one.
    pub capacity: Option<Sought>,
    /// Whether tables on a terminal have the memory map before and after.
    pub show_map: bool,
}

/// What came of one server.
pub struct Loaded {
    /// The arm's name.
    pub name: String,
    /// All windows together, without those of the warm-up.
    pub pool: Pool,
    /// Windows that were taken off as warm-up.
    pub warm_up: usize,
    /// Windows that the generator spoilt; their latencies do not count, unless all are void.
    pub void: usize,
    /// What a request costs.
    pub sheet: Option<Sheet>,
    /// What a request allocates, from a pass of its own; or why that cannot be told.
    pub heap: Option<Result<Sheet, String>>,
    /// What the language runtime tells of a request, or why it tells nothing.
    pub runtime: Option<Result<Collections, Untold>>,
    /// Instructions by function, or why they could not be counted.
    pub instructions: Option<Result<Instructions, String>>,
    /// Sampled time by function, likewise.
    pub sampled: Option<Result<Sampled, String>>,
    /// System calls by name, likewise.
    pub syscalls: Option<Result<BTreeMap<String, f64>, String>>,
}

/// A search for the highest rate, and what was asked of the server.
pub struct Sought {
    /// The limits, as they were written.
    pub limits: String,
    /// What was found.
    pub found: Capacity,
}

impl Loaded {
    /// A server of which nothing but the latencies is known.
    pub fn of(name: &str, pool: Pool) -> Loaded {
        Loaded {
            name: name.to_owned(),
            pool,
            warm_up: 0,
            void: 0,
            sheet: None,
            heap: None,
            runtime: None,
            instructions: None,
            sampled: None,
            syscalls: None,
        }
    }
}

/// How the load is divided.
#[derive(Clone, Copy, Debug)]
pub struct Division {
    /// How many windows each server gets.
    pub windows: u32,
    /// Whether they are of different lengths, so that what a window costs as such can be told from the requests.
    pub uneven: bool,
}

impl Division {
    /// The share of a window in the whole: equal, or one, three and two parts in turn, so that a drift of the server
    /// is not taken for the cost of requests.
    fn share(self, block: u32) -> f64 {
        let parts = |block: u32| match (self.uneven, block % 6) {
            (false, _) => 1.0,
            (true, 0 | 4) => 1.0,
            (true, 1 | 5) => 3.0,
            (true, _) => 2.0,
        };
        parts(block) / (0..self.windows).map(parts).sum::<f64>()
    }

    /// The plan of one window.
    fn plan(self, whole: &Plan, block: u32) -> Plan {
        let share = self.share(block);
        // The parts add up to the whole: each ends where the next begins.
        let until = |block: u32| (0..block).map(|block| self.share(block)).sum::<f64>();
        let requests = whole.max_requests.map(|all| {
            let at = |block: u32| (until(block) * all as f64).round() as u64;
            at(block + 1).saturating_sub(at(block)).max(1)
        });
        Plan {
            duration: whole.duration.mul_f64(share),
            max_requests: requests,
            warm_up: if block == 0 { whole.warm_up } else { WarmUp::Off },
            seed: whole.seed.wrapping_add(u64::from(block)),
            ..whole.clone()
        }
    }
}

/// A load under way.
pub struct Loading {
    /// None once its servers have ended.
    loader: Option<Box<dyn Loader>>,
    /// The run, with what has been read so far.
    pub run: Run,
    /// Where it is written down.
    pub ledger: Ledger,
    progress: Progress,
    taken: Vec<Vec<(u32, Window)>>,
}

impl Loading {
    /// A load of these arms; `run` has none yet.
    pub fn new(
        loader: Box<dyn Loader>,
        arms: Vec<Arm>,
        mut run: Run,
        store: Option<Store>,
        progress: Progress,
    ) -> Result<Loading, Fault> {
        let taken = arms.iter().map(|_| Vec::new()).collect();
        run.arms = arms;
        let ledger = Ledger::begin(store, &run)?;
        Ok(Loading { loader: Some(loader), run, ledger, progress, taken })
    }

    /// What was loaded already, to be stored.
    pub fn taken(arms: Vec<Arm>, mut run: Run, store: Option<Store>) -> Result<Loading, Fault> {
        run.arms = arms;
        let ledger = Ledger::begin(store, &run)?;
        let (progress, taken) = (Progress::hidden(), Vec::new());
        Ok(Loading { loader: None, run, ledger, progress, taken })
    }

    /// Whether not one window was taken.
    pub fn empty(&self) -> bool {
        self.taken.iter().all(Vec::is_empty)
    }

    /// Takes every window. What was read before an end is kept; true when the user interrupted.
    ///
    /// # Errors
    /// When a server cannot be loaded, or no longer.
    pub fn take(&mut self, plan: &Plan, division: Division) -> Result<bool, Fault> {
        let result = self.take_windows(plan, division);
        self.progress.clear();
        self.run.state = match result {
            Ok(false) => State::Complete,
            Ok(true) => State::Interrupted,
            Err(_) => State::Failed,
        };
        result
    }

    fn take_windows(&mut self, plan: &Plan, division: Division) -> Result<bool, Fault> {
        let Some(loader) = &mut self.loader else { return Ok(false) };
        let visits = Visits::new(self.taken.len(), self.run.seed);
        for block in 0..division.windows {
            for arm in visits.order(block) {
                let plan = division.plan(plan, block);
                let (progress, name) = (&self.progress, &self.run.arms[arm].name);
                let mut tell =
                    |seen: &load::Progress| progress.load(name, block, division.windows, &live(seen));
                let window = loader.window(arm, &plan, &mut tell)?;
                let ended = window.load.ended;
                let readings = readings::of(&window);
                self.ledger.journal(&self.run, arm, Pass::Timing, block, &readings);
                self.taken[arm].push((block, window));
                match ended {
                    Ended::Planned => {}
                    Ended::Interrupted => return Ok(true),
                    // What is gone stays gone; the figures say when.
                    Ended::ServerGone => return Ok(false),
                }
            }
        }
        Ok(false)
    }

    /// What came of each server; the readings of windows that count become the samples of the arms. Servers that were
    /// started end here.
    pub fn outcome(&mut self, plan: &Plan) -> Loads {
        let cut = match plan.warm_up {
            WarmUp::Auto => self.taken.iter().map(|windows| warm_up_of(windows)).max().unwrap_or(0),
            WarmUp::Off | WarmUp::For(_) => 0,
        };
        let sheets = self.loader.take().map(|mut loader| loader.sheets());
        let mut sheets = sheets.into_iter().flatten();
        let mut servers = Vec::new();
        for (arm, windows) in self.run.arms.iter_mut().zip(&self.taken) {
            let all = &windows[cut.min(windows.len())..];
            let void = all.iter().filter(|(_, window)| spoilt(&window.load)).count();
            for (block, window) in all {
                // A generator that was late says nothing of latencies, but the server's accounts stand.
                let readings = match spoilt(&window.load) {
                    false => readings::of(window),
                    true => readings::of_the_server(window),
                };
                add_readings(arm, readings, Pass::Timing, *block);
            }
            // Where every window is void the latencies are shown all the same, and called void.
            let timely = |load: &LoadResult| !spoilt(load) || void == all.len();
            servers.push(Loaded {
                warm_up: windows.len() - all.len(),
                void,
                sheet: sheets.next().flatten(),
                ..Loaded::of(&arm.name, Pool::of(all.iter().map(|(_, w)| (&w.load, timely(&w.load)))))
            });
        }
        Loads { plan: plan.clone(), servers, capacity: None, show_map: false }
    }

    /// Adds what was read in another pass to an arm.
    pub fn add(&mut self, arm: usize, block: u32, readings: impl IntoIterator<Item = Reading>) {
        add_readings(&mut self.run.arms[arm], readings, Pass::Counting, block);
    }

    /// Stores the run, if it is to be stored.
    pub fn keep(&mut self) {
        self.ledger.finish(&self.run);
    }

    /// Where the run is stored, if it is.
    pub fn stored_at(&self) -> Option<&std::path::Path> {
        self.ledger.path()
    }
}

/// A server that is started outside of windows; none where it runs already.
///
/// # Errors
/// When it does not serve, or the user interrupts the wait for it.
pub fn started(side: &Side, patience: Duration, interrupted: &AtomicBool) -> Result<Option<Server>, Fault> {
    engine::start(side, patience, interrupted)
}

/// Adds the readings of one measurement to an arm, unless the generator spoilt it.
pub fn add_window(arm: &mut Arm, load: &LoadResult, block: u32) {
    if !spoilt(load) {
        let window = Window { load: load.clone(), costs: Vec::new() };
        add_readings(arm, readings::of(&window), Pass::Timing, block);
    }
}

/// Whether the generator itself made a window void.
pub fn spoilt(load: &LoadResult) -> bool {
    load.doubts.iter().any(|doubt| doubt.voids && doubt.code.starts_with("generator-"))
}

/// How many of the first windows differ from the rest.
fn warm_up_of(windows: &[(u32, Window)]) -> usize {
    let medians: Option<Vec<f64>> = windows
        .iter()
        .map(|(_, window)| window.load.service.quantile(0.5).map(|p50| (p50 as f64).max(1.0).ln()))
        .collect();
    medians.map_or(0, |medians| warm_up::cut(&medians))
}

/// How a window is going, as a line.
fn live(seen: &load::Progress) -> String {
    use scruple_core::unit::{Unit, grouped, quantity};
    let ns = |value: u64| quantity(value as f64, &Unit::Nanoseconds);
    format!(
        "{}/s · p50 {} · p99 {} · {} failed",
        grouped(seen.rate),
        ns(seen.p50),
        ns(seen.p99),
        grouped(seen.failed as f64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_measure::load::Request;

    #[test]
    fn windows_add_up_to_the_whole() {
        let whole = Plan { max_requests: Some(1003), ..Plan::of(Request::get("/")) };
        for uneven in [false, true] {
            let division = Division { windows: 10, uneven };
            let plans: Vec<Plan> = (0..10).map(|block| division.plan(&whole, block)).collect();
            let requests: u64 = plans.iter().filter_map(|plan| plan.max_requests).sum();
            let time: Duration = plans.iter().map(|plan| plan.duration).sum();
            assert_eq!(requests, 1003);
            assert!(time.abs_diff(whole.duration) < Duration::from_micros(1), "{time:?}");
            assert_eq!(plans[0].warm_up, whole.warm_up);
            assert!(plans[1..].iter().all(|plan| plan.warm_up == WarmUp::Off));
        }
        let uneven = Division { windows: 6, uneven: true };
        let lengths: Vec<u64> = (0..6).filter_map(|b| uneven.plan(&whole, b).max_requests).collect();
        assert!(lengths[0] < lengths[2] && lengths[2] < lengths[1], "{lengths:?}");
    }
}
