//! Instructions and calls per request, by function. The server runs under Valgrind and serves batches of requests of
//! several lengths. The regression of the counts on the requests gives the cost of one request, with an interval for
//! what differs between batches, such as a collection. One-time costs and the cost of a batch itself cancel.
//!
//! The call tree receives a command at the start and end of each batch. If it is not available, callgrind counts two
//! runs of the server. Neither counts instructions of the kernel; `sampled` does.

use super::by_function::{FunctionNames, StretchCounts};
use super::process_tree::ProcessTree;
use super::server_process::ServerCommand;
use super::window::{self, LEVEL};
use crate::callgrind::ObjectFunction;
use crate::calltree::{CalltreeSession, ChosenTool, LaunchCounts, Settings, ValgrindTool};
use crate::load::{LoadResult, Target};
use crate::user_folder::TemporaryFolder;
use scruple_code::{End, Profile, Profiles};
use scruple_core::per_request::{self, Bounds};
use scruple_stats::sorting::{self, SortedMap};
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Instructions per request in user space.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestInstructions {
    /// Instructions of all functions.
    pub total: Bounds,
    /// Instructions by function, the one with most own instructions first.
    pub functions: Vec<FunctionCost>,
    /// The number of requests of each batch.
    pub batches: Vec<u64>,
    /// The tool that counted, and why no better one was used.
    pub by: String,
}

/// The cost of one function per request.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCost {
    /// The function; its name is empty for code outside of any function.
    pub function: ObjectFunction,
    /// Instructions of the function itself.
    pub own: Bounds,
    /// Instructions including callees.
    pub inclusive: Bounds,
    /// The number of calls.
    pub calls: f64,
}

/// How long a server may take to start under Valgrind, which is about fifty times slower.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a server may take to become idle after a batch.
const REST: Duration = Duration::from_secs(5);

/// How often each of the three lengths of batches is run.
const ROUNDS: u32 = 2;

/// Sends the given number of requests to the server, and fails unless all are answered.
pub type Load<'a> = dyn FnMut(u64) -> Result<LoadResult, String> + 'a;

/// Whether Valgrind is installed, so that instructions can be counted.
///
/// # Errors
/// Says why they cannot be counted, as a clause.
pub fn available() -> Result<(), String> {
    let found = crate::program::Program::find("valgrind".as_ref(), Path::new("/"));
    found.map(drop).map_err(|_| "valgrind is not installed".to_owned())
}

/// Counts the instructions of a server over `requests` requests in batches. The compiled call tree is kept in
/// `cache`.
///
/// # Errors
/// Says why they cannot be counted, as a clause.
pub fn weigh(
    server: &ServerCommand,
    target: &Target,
    requests: u64,
    cache: &Path,
    interrupted: &AtomicBool,
    load: &mut Load<'_>,
) -> Result<RequestInstructions, String> {
    let counter = ChosenTool::find(cache).map_err(|why| why.to_string())?;
    let life = CountedServer { server, target, interrupted, counter: &counter };
    let few = (requests / 6).max(1);
    let lives = [few, requests.max(few + 1)];
    if counter.kind == ValgrindTool::Calltree {
        let batches = window::lengths(requests.max(6), ROUNDS);
        match life.batches(&batches, load) {
            Ok(Some(stretches)) => return positive(of(&stretches, &batches, counter.describe())),
            Ok(None) => {}
            Err(why) => return Err(why),
        }
    }
    let stretches =
        lives.iter().map(|count| life.count_whole_run(*count, load)).collect::<Result<Vec<_>, _>>()?;
    positive(of(&stretches, &lives, counter.describe()))
}

/// Passes on a positive cost. A cost of 0 or less is an error: batches differed too much, as when one had a
/// collection.
fn positive(found: RequestInstructions) -> Result<RequestInstructions, String> {
    match found.total.value > 0.0 {
        true => Ok(found),
        false => Err(format!(
            "batches of {} requests in all differ by more than the requests cost, for example if one of them contains \
             a garbage collection: count more requests, such as instructions=5000",
            found.batches.iter().sum::<u64>()
        )),
    }
}

/// The call trees of a server, each over `requests` requests, for `runs` batches in one run of the server.
///
/// # Errors
/// Says why there are none, as a clause.
pub fn trees(
    server: &ServerCommand,
    target: &Target,
    (requests, runs): (u64, usize),
    counter: &ChosenTool,
    interrupted: &AtomicBool,
    load: &mut Load<'_>,
) -> Result<Vec<Profiles>, String> {
    let life = CountedServer { server, target, interrupted, counter };
    let batches = vec![requests; runs];
    let counted = life.phases(&batches, load)?;
    let counted = counted.ok_or(
        "its processes did not accept the command to begin a new count, or they started or ended at that \
            time",
    )?;
    let of = |number: usize| Profiles {
        processes: asked(&counted)
            .filter(|(label, _)| *label == number)
            .map(|(_, one)| one.clone())
            .collect(),
        ..Profiles::default()
    };
    Ok((0..runs).map(of).collect())
}

/// The cost per request, from the counts and numbers of requests of several stretches. The cost of a function is at
/// least 0: if a collection fell into a small batch, the slope for the collector is negative, which means that its
/// cost does not depend on the requests.
pub fn of(stretches: &[StretchCounts], requests: &[u64], by: String) -> RequestInstructions {
    let counts: Vec<f64> = requests.iter().map(|count| *count as f64).collect();
    let each = |values: &dyn Fn(&StretchCounts) -> u64| {
        let values: Vec<f64> = stretches.iter().map(|stretch| values(stretch) as f64).collect();
        let found = per_request::fit(&counts, &values, LEVEL);
        found.map_or(Bounds { value: 0.0, interval: None }, |found| found.each)
    };
    let all: Vec<&ObjectFunction> =
        sorting::distinct(stretches.iter().flat_map(|stretch| stretch.functions.keys()));
    let mut functions: Vec<FunctionCost> = all
        .into_iter()
        .map(|function| {
            let sums = |stretch: &StretchCounts| stretch.functions.get(function).copied().unwrap_or_default();
            FunctionCost {
                function: function.clone(),
                own: each(&|stretch| sums(stretch).own).at_least(0.0),
                inclusive: each(&|stretch| sums(stretch).inclusive).at_least(0.0),
                calls: each(&|stretch| sums(stretch).calls).value.max(0.0),
            }
        })
        .filter(|cost| {
            let reach = |bounds: &Bounds| bounds.interval.map_or(bounds.value, |interval| interval.high);
            reach(&cost.own) > 0.0 || reach(&cost.inclusive) > 0.0 || cost.calls > 0.0
        })
        .collect();
    sorting::by(&mut functions, |left, right| right.own.value.total_cmp(&left.own.value));
    RequestInstructions { total: each(&|stretch| stretch.total), functions, batches: requests.to_vec(), by }
}

/// The parameters with which a server is run under a counter.
struct CountedServer<'a> {
    server: &'a ServerCommand,
    target: &'a Target,
    interrupted: &'a AtomicBool,
    counter: &'a ChosenTool,
}

/// The counts of batches, by the number in their label.
type Labelled = SortedMap<usize, StretchCounts>;

impl CountedServer<'_> {
    /// One run with several batches; `None` if processes do not accept commands, or started or ended between batches.
    fn batches(&self, batches: &[u64], load: &mut Load<'_>) -> Result<Option<Vec<StretchCounts>>, String> {
        let Some(profiles) = self.phases(batches, load)? else { return Ok(None) };
        let mut labelled = labelled(&profiles);
        Ok((0..batches.len()).map(|number| labelled.remove(&number)).collect())
    }

    /// Like [`CountedServer::batches`], but returns the profiles that processes wrote between batches.
    fn phases(&self, batches: &[u64], load: &mut Load<'_>) -> Result<Option<Profiles>, String> {
        let (folder, session) = self.session(true)?;
        let first = batches.iter().copied().min().unwrap_or(1);
        let ordered = self.serve(&session, &mut |tree| {
            load(first)?;
            let mut ordered = Vec::new();
            for (number, count) in batches.iter().chain([&0]).enumerate() {
                tree.wait_for_rest(REST);
                let processes: Vec<i32> = sorting::distinct(tree.processes());
                let order = format!("phase {number}");
                if processes.iter().any(|process| session.order(*process, &order).is_err()) {
                    return Ok(Vec::new());
                }
                ordered.push(processes);
                if *count > 0 {
                    load(*count)?;
                }
            }
            Ok(ordered)
        })?;
        let counted = session.read().map_err(|error| error.to_string())?;
        drop(folder);
        let took_orders = ordered.len() > batches.len();
        if !took_orders
            || ordered.windows(2).any(|pair| pair[0] != pair[1])
            || !counted.profiles.lost.is_empty()
        {
            return Ok(None);
        }
        Ok(Some(counted.profiles))
    }

    /// The counts of one whole run of the server.
    fn count_whole_run(&self, requests: u64, load: &mut Load<'_>) -> Result<StretchCounts, String> {
        let (folder, session) = self.session(false)?;
        self.serve(&session, &mut |_| load(requests).map(drop))?;
        let counted = session.read().map_err(|error| error.to_string())?;
        drop(folder);
        let stretch = totals_of_launch(&counted);
        match stretch.total {
            0 => Err("nothing was counted: the server did not end when asked to".to_owned()),
            _ => Ok(stretch),
        }
    }

    fn session(&self, control: bool) -> Result<(TemporaryFolder, CalltreeSession), String> {
        let folder = TemporaryFolder::new("instructions")?;
        let settings = Settings { control, ..Settings::default() };
        let session = CalltreeSession::start(self.counter, settings, folder.path())
            .map_err(|error| error.to_string())?;
        Ok((folder, session))
    }

    /// Starts the server under the counter, calls `using`, and ends the server.
    fn serve<T>(
        &self,
        session: &CalltreeSession,
        using: &mut dyn FnMut(&ProcessTree) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut wrapped = self.server.clone();
        wrapped.argv = session.words();
        wrapped.argv.extend(self.server.argv.iter().cloned());
        wrapped.env.retain(|(name, _)| name != "VALGRIND_OPTS" && name != "VALGRIND_LIB");
        wrapped.env.extend(session.environment());
        wrapped.env.extend(without_preemption(self.server));
        let served =
            wrapped.start(self.target, PATIENCE, self.interrupted).map_err(|error| error.to_string());
        let served = served.and_then(|mut running| {
            let used = ProcessTree::of(running.pid()).and_then(|tree| using(&tree));
            running.stop(libc::SIGTERM);
            used
        });
        match session.failure() {
            Some(failure) => {
                Err(format!("{} itself failed on this server ({failure})", self.counter.kind.name()))
            }
            None => served,
        }
    }
}

/// All that was counted in one launch. Callgrind's counts are in its profile as well as in the trees made of it.
fn totals_of_launch(counted: &LaunchCounts) -> StretchCounts {
    let mut stretch = StretchCounts::default();
    let mut names = FunctionNames::default();
    match &counted.callgrind {
        Some(profile) => stretch.add_callgrind(profile),
        None => {
            let processes = counted.profiles.processes.iter();
            processes.for_each(|profile| stretch.add_calltree(profile, &mut names));
        }
    }
    stretch
}

/// The counts of each batch, by its number.
fn labelled(profiles: &Profiles) -> Labelled {
    let (mut found, mut names) = (Labelled::new(), FunctionNames::default());
    for (number, profile) in asked(profiles) {
        let stretch: &mut StretchCounts = found.entry(number).or_default();
        stretch.add_calltree(profile, &mut names);
    }
    found
}

/// The profiles that were requested by commands, each with the number of its batch.
fn asked(profiles: &Profiles) -> impl Iterator<Item = (usize, &Profile)> {
    let asked = profiles.processes.iter().filter(|profile| profile.end == End::Request);
    asked.filter_map(|profile| Some((profile.label.as_deref()?.parse().ok()?, profile)))
}

/// The setting that stops Go's runtime from interrupting its own threads by signals, which callgrind does not
/// survive; `None` if the user has set it. Programs without that runtime ignore the variable.
fn without_preemption(server: &ServerCommand) -> Option<(OsString, OsString)> {
    const NAME: &str = "GODEBUG";
    let own = server.env.iter().rev().find(|(name, _)| name == NAME).map(|(_, value)| value.clone());
    let mut value = own.or_else(|| std::env::var_os(NAME)).unwrap_or_default();
    if value.to_string_lossy().contains("asyncpreemptoff") {
        return None;
    }
    if !value.is_empty() {
        value.push(",");
    }
    value.push("asyncpreemptoff=1");
    Some((NAME.into(), value))
}

#[cfg(test)]
mod tests {
    use super::super::by_function::FunctionSums;
    use super::*;
    use crate::callgrind;

    #[test]
    fn the_users_own_settings_of_go_are_kept() {
        let mut server = ServerCommand::of(Vec::new());
        server.env.push(("GODEBUG".into(), "gctrace=1".into()));
        assert_eq!(without_preemption(&server).expect("set").1, "gctrace=1,asyncpreemptoff=1");
        server.env.push(("GODEBUG".into(), "asyncpreemptoff=0".into()));
        assert_eq!(without_preemption(&server), None);
    }

    fn stretch(own: u64, once: u64, collection: u64) -> StretchCounts {
        let function = |name: &str| ObjectFunction { name: name.into(), object: String::new() };
        let sums = |own: u64, calls: u64| FunctionSums { own, inclusive: own, calls };
        let mut functions =
            SortedMap::from([(function("serve"), sums(own, own / 10)), (function("start"), sums(once, 1))]);
        if collection > 0 {
            functions.insert(function("collect"), sums(collection, 1));
        }
        StretchCounts { total: own + once + collection, functions }
    }

    #[test]
    fn each_instruction_of_callgrind_counts_once() {
        let text = "# callgrind format\nversion: 1\ncmd: ./server\npositions: line\nevents: Ir\n\nfn=main\n1 30\n\
                    fn=serve\n1 70\n\nsummary: 100\n";
        let profile = callgrind::parse(text).expect("a profile");
        let processes = vec![crate::calltree::flat(&profile, text)];
        let mut counted = LaunchCounts {
            by: ValgrindTool::Callgrind,
            total: 100,
            profiles: Profiles { processes, ..Profiles::default() },
            callgrind: Some(profile),
        };
        let own = |stretch: &StretchCounts| stretch.functions.values().map(|sums| sums.own).sum::<u64>();
        let stretch = totals_of_launch(&counted);
        assert_eq!((stretch.total, own(&stretch)), (100, 100));
        // The trees alone say the same.
        counted.callgrind = None;
        let stretch = totals_of_launch(&counted);
        assert_eq!((stretch.total, own(&stretch)), (100, 100));
    }

    #[test]
    fn one_time_costs_cancel_out() {
        let each = of(&[stretch(1_000, 5_000, 0), stretch(3_000, 5_000, 0)], &[10, 30], String::new());
        assert_eq!((each.total.value, each.functions.len()), (100.0, 1));
        assert_eq!((each.functions[0].own.value, each.functions[0].calls), (100.0, 10.0));
    }

    #[test]
    fn costs_that_differ_between_batches_have_wide_intervals_and_constant_ones_narrow() {
        let batches = [10, 30, 20, 20, 10, 30];
        let with = |collected: usize| -> Vec<StretchCounts> {
            let of = |(index, count): (usize, &u64)| {
                stretch(count * 100, 5_000, if index == collected { 900 } else { 0 })
            };
            batches.iter().enumerate().map(of).collect()
        };
        let even = of(&with(9), &batches, String::new());
        let width = |bounds: Bounds| bounds.interval.map_or(0.0, |interval| interval.high - interval.low);
        assert!((even.total.value - 100.0).abs() < 1e-9 && width(even.total) < 1e-6, "{:?}", even.total);
        let collecting = of(&with(1), &batches, String::new());
        let collect =
            collecting.functions.iter().find(|cost| cost.function.name == "collect").expect("there");
        assert!(width(collect.own) > 1.0 && width(collecting.total) > 1.0, "{collect:?}");
        let own: f64 = collecting.functions.iter().map(|cost| cost.own.value).sum();
        assert!((own - collecting.total.value).abs() < 1e-6, "{own}");
    }

    #[test]
    fn a_cost_of_zero_or_less_is_not_reported() {
        let batch = |total: u64| StretchCounts { total, functions: SortedMap::new() };
        // A collection falls into the smallest batch.
        let counted = [batch(9_000_000), batch(200_000), batch(400_000)];
        let why = positive(of(&counted, &[10, 20, 40], String::new())).expect_err("less than nothing");
        assert!(why.contains("batches of 70 requests"), "{why}");
        let counted = [batch(100_000), batch(200_000), batch(400_000)];
        let each = positive(of(&counted, &[10, 20, 40], String::new())).expect("a cost").total.value;
        assert!((each - 10_000.0).abs() < 1e-6, "{each}");
    }

    #[test]
    fn no_function_costs_less_than_nothing_where_a_collection_fell_into_a_small_batch() {
        let batches = [10, 30, 20, 20, 10, 30];
        let collected = |index: usize| if index == 0 { 900 } else { 0 };
        let of_batch = |(index, count): (usize, &u64)| stretch(count * 100, 5_000, collected(index));
        let stretches: Vec<StretchCounts> = batches.iter().enumerate().map(of_batch).collect();
        let found = of(&stretches, &batches, String::new());
        let collect = found.functions.iter().find(|cost| cost.function.name == "collect").expect("there");
        let interval = collect.own.interval.expect("six batches");
        assert_eq!((collect.own.value, interval.low, collect.calls), (0.0, 0.0, 0.0));
        assert!(interval.high > 0.0 && found.functions.iter().all(|cost| cost.inclusive.value >= 0.0));
    }
}
