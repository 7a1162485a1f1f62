//! Collectors of garbage that run outside of the calls of the functions that allocate: their caller is the scheduler of
//! a runtime, or a thread of its own. Their cost follows from what the program allocates and keeps in use, so neither
//! they nor the scheduler are the origin of a difference. Collectors that run below an allocating function (OCaml,
//! Python, Ruby, Guile) need no such rule: their work is a part of what that function calls.

use super::PROGRAM;

/// The collectors, without what the compiler adds: those of GHC, then those of Go.
const COLLECTORS: [&str; 9] = [
    "scheduleDoGC",
    "GarbageCollect",
    "gcWorkerThread",
    "runtime.gcBgMarkWorker",
    "runtime.gcBgMarkStartWorkers",
    "runtime.bgsweep",
    "runtime.bgscavenge",
    "runtime.gcenable.gowrap1",
    "runtime.gcenable.gowrap2",
];

/// Whether a function of this file and name is a collector. The one that starts a goroutine is named after its caller.
pub fn is_collector(module: &str, name: &str) -> bool {
    let bare =
        name.strip_prefix("runtime.gcBgMarkStartWorkers.").map_or(name, |_| "runtime.gcBgMarkStartWorkers");
    module == PROGRAM && COLLECTORS.contains(&bare)
}

#[cfg(test)]
mod tests;
