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
    let mut out = OsString::from("--callgrind-out-file=");
    out.push(folder.0.join("out.%p"));
    wrapped.argv = ["valgrind", "-q", "--tool=callgrind", "--trace-children=yes"]
        .into_iter()
        .map(OsString::from)
        .chain([out])
        .chain(server.argv.iter().cloned())
        .collect();
    let mut running = wrapped.start(target, PATIENCE, interrupted).map_err(|error| error.to_string())?;
    let loaded = load(requests);
    running.stop(libc::SIGTERM);
    loaded?;
    let mut sum = Profile::default();
    let entries = std::fs::read_dir(&folder.0).map_err(|error| error.to_string())?;
    for entry in entries.flatten() {
        let text = std::fs::read(entry.path()).map_err(|error| error.to_string())?;
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
