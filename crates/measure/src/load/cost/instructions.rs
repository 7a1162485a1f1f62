//! Instructions and calls per request, by function: the server runs twice under callgrind, serves a few and then many
//! requests, and the difference is divided by the difference of the counts. What happens once cancels out.
//!
//! Callgrind sees the program's own code and no instruction of the kernel; `sampled` sees both.

use super::callgrind::{self, Costs, Function, Profile};
use super::start::ServerCommand;
use crate::load::{LoadResult, Target};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Instructions per request in user space.
#[derive(Clone, Debug, PartialEq)]
pub struct Instructions {
    /// All of them.
    pub total: f64,
    /// By function, the one with most instructions of its own first.
    pub functions: Vec<FunctionCost>,
    /// The two counts of requests.
    pub requests: (u64, u64),
}

/// What one function costs per request.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCost {
    /// The function.
    pub function: Function,
    /// Instructions of its own.
    pub own: f64,
    /// Instructions of its own and of all it calls.
    pub inclusive: f64,
    /// How often it is called.
    pub calls: f64,
}

/// How long a server may take to start under simulation, which is some fifty times slower.
const PATIENCE: Duration = Duration::from_secs(120);

/// Whether instructions can be weighed here, and if not, why.
///
/// # Errors
/// The reason, as a clause.
pub fn available() -> Result<(), String> {
    let found = crate::program::Program::find("valgrind".as_ref(), Path::new("/"));
    found.map(drop).map_err(|_| "valgrind is not installed".to_owned())
}

/// Weighs a server. `load` sends that many requests to it, one after the other, and fails unless all are answered.
///
/// # Errors
/// Why it cannot be weighed, as a clause.
pub fn weigh(
    server: &ServerCommand,
    target: &Target,
    requests: (u64, u64),
    interrupted: &AtomicBool,
    load: &mut dyn FnMut(u64) -> Result<LoadResult, String>,
) -> Result<Instructions, String> {
    available()?;
    if requests.0 >= requests.1 {
        return Err("the second count of requests must be the larger one".to_owned());
    }
    let few = profile(server, target, requests.0, interrupted, load)?;
    let many = profile(server, target, requests.1, interrupted, load)?;
    Ok(difference(&few, &many, requests))
}

/// Divides the difference of two profiles by the difference of their requests.
pub fn difference(few: &Profile, many: &Profile, requests: (u64, u64)) -> Instructions {
    let divisor = requests.1.saturating_sub(requests.0).max(1) as f64;
    let each = |few: u64, many: u64| (many as f64 - few as f64) / divisor;
    let both: BTreeMap<&Function, (Costs, Costs)> = few
        .functions
        .keys()
        .chain(many.functions.keys())
        .map(|function| {
            let of = |profile: &Profile| profile.functions.get(function).copied().unwrap_or_default();
            (function, (of(few), of(many)))
        })
        .collect();
    let mut functions: Vec<FunctionCost> = both
        .into_iter()
        .map(|(function, (few, many))| FunctionCost {
            function: function.clone(),
            own: each(few.own, many.own),
            inclusive: each(few.inclusive, many.inclusive),
            calls: each(few.calls, many.calls),
        })
        .filter(|cost| cost.own != 0.0 || cost.inclusive != 0.0 || cost.calls != 0.0)
        .collect();
    functions.sort_by(|left, right| right.own.total_cmp(&left.own));
    Instructions { total: each(few.total, many.total), functions, requests }
}

/// One run under callgrind.
fn profile(
    server: &ServerCommand,
    target: &Target,
    requests: u64,
    interrupted: &AtomicBool,
    load: &mut dyn FnMut(u64) -> Result<LoadResult, String>,
) -> Result<Profile, String> {
    let folder = Folder::new()?;
    let mut wrapped = server.clone();
    let file = |option: &str, name: &str| {
        let mut word = OsString::from(option);
        word.push(folder.0.join(name));
        word
    };
    wrapped.argv = ["valgrind", "-q", "--tool=callgrind", "--trace-children=yes"]
        .into_iter()
        .map(OsString::from)
        .chain([file("--callgrind-out-file=", "out.%p"), file("--log-file=", "log.%p")])
        .chain(server.argv.iter().cloned())
        .collect();
    wrapped.env.extend(without_preemption(server));
    let served = wrapped.start(target, PATIENCE, interrupted).map_err(|error| error.to_string());
    let served = served.and_then(|mut running| {
        let loaded = load(requests);
        running.stop(libc::SIGTERM);
        loaded
    });
    if let Some(failure) = folder.failure() {
        return Err(format!("callgrind itself failed on this server ({failure})"));
    }
    served?;
    let mut sum = Profile::default();
    for path in folder.files("out.") {
        let text = std::fs::read(path).map_err(|error| error.to_string())?;
        // A process that was ended by force leaves an empty file.
        if !text.is_empty() {
            sum.add(&callgrind::parse(&String::from_utf8_lossy(&text))?);
        }
    }
    if sum.total == 0 {
        return Err("callgrind wrote no profile: the server did not end when asked to".to_owned());
    }
    Ok(sum)
}

/// Go's runtime interrupts its own threads by signals, which callgrind does not survive; it can be asked not to. Whoever
/// does not have that runtime does not look at the variable.
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

/// The line in which Valgrind says what went wrong inside of itself.
fn failure(log: &str) -> Option<&str> {
    let words = ["Assertion", "the 'impossible' happened", "Fatal error", "unhandled instruction"];
    log.lines().map(str::trim).find(|line| words.iter().any(|word| line.contains(word)))
}

/// A folder that goes away with its contents.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> Result<Folder, String> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("scruple-callgrind-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path)
            .map_err(|error| format!("cannot make the folder {}: {error}", path.display()))?;
        Ok(Folder(path))
    }

    fn files(&self, beginning: &str) -> Vec<std::path::PathBuf> {
        let files = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let named = files.filter(|file| file.file_name().to_string_lossy().starts_with(beginning));
        named.map(|file| file.path()).collect()
    }

    fn failure(&self) -> Option<String> {
        let logs = self.files("log.").into_iter().filter_map(|path| std::fs::read(path).ok());
        logs.into_iter().find_map(|log| failure(&String::from_utf8_lossy(&log)).map(str::to_owned))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valgrinds_own_failures_are_told_from_the_servers() {
        let log = "==7== Warning: noted\n\nCallgrind: threads.c:247 (post_signal): Assertion 'a == b' failed.\n\nhost\n";
        assert_eq!(failure(log), Some("Callgrind: threads.c:247 (post_signal): Assertion 'a == b' failed."));
        assert_eq!(failure("==7== Process terminating with default action of signal 15\n"), None);
    }

    #[test]
    fn the_users_own_settings_of_go_are_kept() {
        let mut server = ServerCommand::of(Vec::new());
        server.env.push(("GODEBUG".into(), "gctrace=1".into()));
        assert_eq!(without_preemption(&server).expect("set").1, "gctrace=1,asyncpreemptoff=1");
        server.env.push(("GODEBUG".into(), "asyncpreemptoff=0".into()));
        assert_eq!(without_preemption(&server), None);
    }

    #[test]
    fn what_happens_once_cancels_out() {
        let profile = |own: u64, once: u64| {
            let function = |name: &str| Function { name: name.into(), object: String::new() };
            Profile {
                total: own + once,
                functions: BTreeMap::from([
                    (function("serve"), Costs { own, inclusive: own, calls: own / 10 }),
                    (function("start"), Costs { own: once, inclusive: once, calls: 1 }),
                ]),
            }
        };
        let each = difference(&profile(1_000, 5_000), &profile(3_000, 5_000), (10, 30));
        assert_eq!((each.total, each.functions.len()), (100.0, 1));
        assert_eq!((each.functions[0].own, each.functions[0].calls), (100.0, 10.0));
    }
}
