//! Reads the counters of a server around windows of load.

use super::process_tree::{Accounts, ProcessTree};
use super::sheet::Sheet;
use super::sheet_input::SheetInput;
use super::threads::LivingThreads;
use super::unseen_threads::{OF_THREADS, UnseenThreads};
use super::window::Window;
use crate::load::{LoadError, LoadResult, Plan};
use crate::memory_map::MemoryMap;
use scruple_core::sample::Reading;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A source of counters. Each may count from a start of its own, but must only grow. A counter that cannot be read is
/// a reading with the reason.
pub type ReadCounters<'a> = dyn FnMut() -> Vec<Reading> + 'a;

/// Runs one window of load, and calls the second argument before the connections are closed, as
/// [`crate::load::run_watched`] does.
pub type LoadWindow<'a> = dyn FnMut(&Plan, &(dyn Fn() + Sync)) -> Result<LoadResult, LoadError> + 'a;

/// How long to wait for a server to become idle before its counters are read.
const REST: Duration = Duration::from_millis(500);

/// Weighs a server: an idle window, a warm-up window, then a window of each of `lengths`, which is a run of `plan`
/// with that number of requests. `more` reads counters besides the kernel's, such as those of an allocation counter.
///
/// # Errors
/// Fails if the server cannot be loaded, or has ended.
pub fn weigh(
    tree: &ProcessTree,
    plan: &Plan,
    lengths: &[u64],
    drive: &mut LoadWindow<'_>,
    more: &mut ReadCounters<'_>,
) -> Result<Sheet, LoadError> {
    let mut watch = ServerWindows::of(tree, more)?;
    let first = lengths.iter().copied().min().unwrap_or(1);
    drive(&Plan { max_requests: Some(first), ..plan.clone() }, &|| {})?;
    for length in lengths {
        let load = watch.window(&Plan { max_requests: Some(*length), ..plan.clone() }, drive, more)?;
        if load.ended == crate::load::Ended::Interrupted {
            break;
        }
    }
    Ok(watch.finish())
}

/// The readings at one moment, such as the start of a window.
#[derive(Clone, Debug)]
struct WindowStart {
    accounts: Accounts,
    counters: Vec<Reading>,
    began: Instant,
    /// The number of handled requests before and after the accounts were read.
    handled: (u64, u64),
}

/// Requests that were handled while the accounts were read cannot be assigned to a window. A window is used if their
/// number is at most this share of its own requests.
const BLUR: f64 = 0.05;

/// The windows of one server. Windows of other servers may lie between them.
#[derive(Clone, Debug)]
pub struct ServerWindows {
    tree: ProcessTree,
    idle: Vec<(String, f64)>,
    map_before: Option<MemoryMap>,
    windows: Vec<Window>,
    before: Option<WindowStart>,
    known: Vec<Reading>,
    unseen: UnseenThreads,
    /// The language runtime that collected the heap before the first window. A server that has ended says nothing.
    collected_by: Option<String>,
}

impl ServerWindows {
    /// Reads the growth of the server's counters while it has no requests.
    ///
    /// # Errors
    /// Fails if the server has ended.
    pub fn of(tree: &ProcessTree, more: &mut ReadCounters<'_>) -> Result<ServerWindows, LoadError> {
        let idle = idle(tree, more).map_err(LoadError::Plan)?;
        Ok(ServerWindows {
            tree: tree.clone(),
            idle,
            map_before: None,
            windows: Vec::new(),
            before: None,
            known: Vec::new(),
            unseen: UnseenThreads::default(),
            collected_by: tree.collected_by(),
        })
    }

    /// Loads the server for one window.
    ///
    /// # Errors
    /// Fails if the server cannot be loaded, or has ended.
    pub fn window(
        &mut self,
        plan: &Plan,
        drive: &mut LoadWindow<'_>,
        more: &mut ReadCounters<'_>,
    ) -> Result<LoadResult, LoadError> {
        // What threads of earlier connections do while they end is not a cost of this window.
        self.tree.wait_for_rest(REST);
        self.begin(&|| 0, more)?;
        let at_end = Mutex::new(None);
        let tree = self.tree.clone();
        let load = drive(plan, &|| {
            tree.wait_for_rest(REST);
            *at_end.lock().unwrap_or_else(PoisonError::into_inner) = Some(tree.living());
        })?;
        let at_end = at_end.into_inner().unwrap_or_else(PoisonError::into_inner);
        let handled = load.generator.reached;
        self.end(&|| handled, at_end.as_ref(), more);
        Ok(load)
    }

    /// Starts a window. `handled` returns the number of requests of the load that have been handled so far.
    ///
    /// # Errors
    /// Fails if the server has ended.
    pub fn begin(&mut self, handled: &dyn Fn() -> u64, more: &mut ReadCounters<'_>) -> Result<(), LoadError> {
        if self.map_before.is_none() {
            self.map_before = Some(self.tree.memory_map());
        }
        self.before = Some(self.look(handled, more).map_err(LoadError::Plan)?);
        Ok(())
    }

    fn look(&self, handled: &dyn Fn() -> u64, more: &mut ReadCounters<'_>) -> Result<WindowStart, String> {
        let before = handled();
        let mut accounts = self.tree.read()?;
        let handled = (before, handled());
        accounts.memory = self.tree.memory();
        let counters = all(&accounts, more);
        Ok(WindowStart { accounts, counters, began: Instant::now(), handled })
    }

    /// Ends a window. `handled` returns the number of requests of the load that have been handled so far. `at_end`
    /// was read before connections were closed, if they were. A server that ended in the window gives no window.
    pub fn end(
        &mut self,
        handled: &dyn Fn() -> u64,
        at_end: Option<&LivingThreads>,
        more: &mut ReadCounters<'_>,
    ) {
        let Ok(after) = self.look(handled, more) else { return };
        self.close(after, at_end);
    }

    /// Ends the window with these readings, and returns whether it was long enough; if not, it is continued.
    fn close(&mut self, mut after: WindowStart, at_end: Option<&LivingThreads>) -> bool {
        let Some(before) = self.before.take() else { return false };
        let middle = |(from, to): (u64, u64)| (from + to) / 2;
        let blur = (before.handled.1 - before.handled.0 + after.handled.1 - after.handled.0) as f64 / 2.0;
        let requests = middle(after.handled).saturating_sub(middle(before.handled));
        let memory = after.accounts.memory;
        if blur > requests as f64 * BLUR || requests == 0 {
            self.windows.push(Window { requests: 0, elapsed: 0, grown: Vec::new(), memory });
            self.before = Some(before);
            return false;
        }
        let unseen = after.accounts.go_on_from(&before.accounts, at_end);
        self.unseen.add(requests, unseen, after.accounts.cpu.saturating_sub(before.accounts.cpu));
        let mut counters = after.accounts.readings();
        counters.extend(after.counters.split_off(counters.len()));
        if self.known.is_empty() {
            self.known = counters.clone();
        }
        let grown = grown(&before.counters, &counters);
        let elapsed = after.began.duration_since(before.began).as_nanos() as u64;
        self.windows.push(Window { requests, elapsed, grown, memory });
        true
    }

    /// Ends a window and starts the next, while connections stay open and the load continues. A window with too few
    /// handled requests is continued instead.
    ///
    /// # Errors
    /// Fails if the server has ended.
    pub fn mark(&mut self, handled: &dyn Fn() -> u64, more: &mut ReadCounters<'_>) -> Result<(), LoadError> {
        let now = self.look(handled, more).map_err(LoadError::Plan)?;
        if self.close(now.clone(), None) {
            self.before = Some(now);
        }
        Ok(())
    }

    /// The number of windows so far.
    pub fn windows(&self) -> usize {
        self.windows.len()
    }

    /// The costs per request of each window from the index `first` on, by the key of the metric, without the server's
    /// growth without requests.
    pub fn costs_from(&self, first: usize) -> Vec<Vec<(String, f64)>> {
        let idle =
            |key: &str| self.idle.iter().find(|(known, _)| known == key).map_or(0.0, |(_, rate)| *rate);
        let threads_unknown = self.unseen.too_much().is_some();
        let is_known = |(key, _): &&(String, f64)| !threads_unknown || !OF_THREADS.contains(&key.as_str());
        let of = |window: &Window| {
            let each = |(key, growth): &(String, f64)| {
                let background = idle(key) * window.elapsed as f64 / 1e9;
                // Counters only grow: if the server did less in a window than while idle, the cost is 0 and not
                // negative.
                (key.clone(), (growth - background).max(0.0) / window.requests as f64)
            };
            let counts = window.requests > 0;
            window.grown.iter().filter(|_| counts).filter(is_known).map(each).collect()
        };
        self.windows.iter().skip(first).map(of).collect()
    }

    /// What the counters showed in all windows.
    pub fn sheet_input(self) -> SheetInput {
        let threads_unknown = self.unseen.too_much();
        let map_after = self.tree.memory_map();
        let maps = (self.map_before.unwrap_or_else(|| map_after.clone()), map_after);
        let collected_by = self.tree.collected_by().or(self.collected_by);
        SheetInput {
            known: self.known,
            windows: self.windows,
            idle: self.idle,
            maps,
            threads_unknown,
            collected_by,
        }
    }

    /// The sheet of all windows.
    pub fn finish(self) -> Sheet {
        self.sheet_input().sheet()
    }
}

fn all(accounts: &Accounts, more: &mut ReadCounters<'_>) -> Vec<Reading> {
    let mut readings = accounts.readings();
    readings.extend(more());
    readings
}

/// The growth per second of each counter without load: the least of three short observations, since one-time events
/// such as a page fault or a timer are not a steady background.
fn idle(tree: &ProcessTree, more: &mut ReadCounters<'_>) -> Result<Vec<(String, f64)>, String> {
    let mut least: Vec<(String, f64)> = Vec::new();
    for _ in 0..3 {
        let accounts_before = tree.read()?;
        let before = all(&accounts_before, more);
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(200));
        let mut accounts_after = tree.read()?;
        accounts_after.go_on_from(&accounts_before, None);
        let after = all(&accounts_after, more);
        let seconds = began.elapsed().as_secs_f64();
        for (key, growth) in grown(&before, &after) {
            let rate = growth / seconds;
            match least.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => *known = known.min(rate),
                None => least.push((key, rate)),
            }
        }
    }
    Ok(least)
}

fn grown(before: &[Reading], after: &[Reading]) -> Vec<(String, f64)> {
    let value = |readings: &[Reading], key: &str| {
        readings.iter().find(|reading| reading.key == key).and_then(|reading| reading.value.clone().ok())
    };
    after
        .iter()
        .filter_map(|reading| {
            let growth = reading.value.clone().ok()? - value(before, &reading.key)?;
            Some((reading.key.clone(), growth))
        })
        .collect()
}

#[cfg(test)]
mod tests;
