//! The table of metrics: each metric is declared once, and its name, unit, help and gates derive from the table
//! everywhere.
//!
//! The table is open: a bench program or a language runtime may declare its own metric, with its unit, through
//! [`Metric::custom`].

mod declaration;
mod defaults;
mod kinds;
mod served;
mod suggestion;

pub use declaration::Metric;
pub(crate) use declaration::key_matches;
pub use defaults::DEFAULT_METRICS;
pub use kinds::{Better, Pass, Quality};
pub use suggestion::suggestion;

use crate::unit::Unit;
use std::borrow::Cow;

use Pass::{Build, Counting, Memory, Timing};
use Quality::{Estimated, Exact, Near, Noisy, Sampled};

/// The unit of a rate of requests.
const RATE: Unit = Unit::Other(Cow::Borrowed("requests/s"));

/// The built-in metrics, in the order of reports.
pub static METRICS: &[Metric] = &[
    Metric::built_in(
        "time.wall",
        Unit::Nanoseconds,
        Noisy,
        Timing,
        "wall",
        "elapsed time, from before the start to after the end",
    ),
    Metric::built_in(
        "time.cpu",
        Unit::Nanoseconds,
        Noisy,
        Timing,
        "cpu",
        "processor time, user and system, of the process and the children it waited for",
    ),
    Metric::built_in(
        "time.user",
        Unit::Nanoseconds,
        Estimated,
        Timing,
        "user",
        "processor time in the program's own code: most kernels divide the total by clock ticks",
    ),
    Metric::built_in(
        "time.sys",
        Unit::Nanoseconds,
        Estimated,
        Timing,
        "sys",
        "processor time in the kernel for the program: most kernels divide the total by clock ticks",
    ),
    Metric::built_in(
        "time.oncpu",
        Unit::Nanoseconds,
        Noisy,
        Timing,
        "on-cpu",
        "time on a core, of all threads and processes, by the scheduler's own clock",
    ),
    Metric::built_in(
        "time.wait",
        Unit::Nanoseconds,
        Noisy,
        Timing,
        "wait",
        "time that a program with one thread was ready but waited for a core",
    ),
    Metric::built_in(
        "time.contended",
        Unit::Nanoseconds,
        Estimated,
        Timing,
        "contended",
        "an upper bound of the time that a thread of the program waited for a core, from the kernel's account of the whole machine",
    ),
    Metric::built_in(
        "faults.minor",
        Unit::Count,
        Noisy,
        Timing,
        "minor faults",
        "page faults served without reading from a disk",
    ),
    Metric::built_in(
        "faults.major",
        Unit::Count,
        Noisy,
        Timing,
        "major faults",
        "page faults that read from a disk",
    ),
    Metric::built_in(
        "switches.voluntary",
        Unit::Count,
        Noisy,
        Timing,
        "vol. switches",
        "times the program gave up its core to wait for something",
    ),
    Metric::built_in(
        "switches.involuntary",
        Unit::Count,
        Noisy,
        Timing,
        "invol. switches",
        "times the kernel took the core away from the program",
    ),
    Metric::built_in("io.read", Unit::Bytes, Noisy, Timing, "disk read", "bytes read from block devices"),
    Metric::built_in(
        "io.write",
        Unit::Bytes,
        Noisy,
        Timing,
        "disk write",
        "bytes written towards block devices",
    ),
    Metric::built_in(
        "memory.peak",
        Unit::Bytes,
        Noisy,
        Memory,
        "peak memory",
        "the largest resident size that any one process of the tree ever had",
    ),
    Metric::built_in(
        "memory.faults",
        Unit::Count,
        Noisy,
        Memory,
        "memory faults",
        "minor page faults in the memory pass: steadier than the resident size",
    ),
    Metric::built_in(
        "memory.private_dirty",
        Unit::Bytes,
        Sampled,
        Memory,
        "private dirty",
        "private pages that the largest process changed, when the tree was near its largest size (--memory-map)",
    ),
    Metric::built_in(
        "memory.pss",
        Unit::Bytes,
        Sampled,
        Memory,
        "proportional",
        "the largest sum of proportional set sizes in the process tree: shared pages are divided among processes (--memory-map)",
    ),
    Metric::built_in(
        "memory.uss",
        Unit::Bytes,
        Sampled,
        Memory,
        "unique",
        "the largest sum of unique set sizes in the process tree: pages that only one process maps, clean or dirty (--memory-map)",
    ),
    Metric::counts(
        "malloc.count",
        Unit::Count,
        "mallocs",
        "allocations through malloc and its relatives, over the process tree",
    ),
    Metric::counts(
        "malloc.bytes",
        Unit::Bytes,
        "malloc bytes",
        "bytes requested through malloc and its relatives",
    ),
    Metric::counts("malloc.frees", Unit::Count, "frees", "blocks given back through free and realloc"),
    Metric::counts(
        "malloc.freed",
        Unit::Bytes,
        "freed",
        "usable bytes given back, of a case of a bench program",
    ),
    Metric::counts(
        "malloc.live",
        Unit::Bytes,
        "malloc live",
        "usable bytes still allocated when the program ended",
    ),
    Metric::counts(
        "malloc.peak",
        Unit::Bytes,
        "malloc peak",
        "the most usable bytes allocated at one time in one process",
    ),
    Metric::counts(
        "malloc.tree_peak",
        Unit::Bytes,
        "malloc tree peak",
        "the most usable bytes allocated at one time in all processes of the tree together",
    ),
    Metric::counts(
        "malloc.requested_live",
        Unit::Bytes,
        "requested live",
        "requested bytes still allocated when the program ended; only with --requested-peak",
    ),
    Metric::counts(
        "malloc.requested_peak",
        Unit::Bytes,
        "requested peak",
        "the most requested bytes allocated at one time in one process, as DHAT has it (--requested-peak)",
    ),
    Metric::counts(
        "instructions",
        Unit::Count,
        "instructions",
        "instructions in user space over the process tree; only where asked for (docs/instructions.md)",
    ),
    Metric::built_in(
        "instructions.intercept",
        Unit::Count,
        Exact,
        Counting,
        "fixed instructions",
        "instructions of a bench program that do not grow with the iterations: its start and its communication with Scruple",
    ),
    Metric::built_in(
        "cycles",
        Unit::Count,
        Noisy,
        Counting,
        "cycles",
        "cycles of the core in user space, by the processor's counter; only where asked for",
    ),
    Metric::built_in(
        "branch.misses",
        Unit::Count,
        Noisy,
        Counting,
        "branch misses",
        "branches that the processor predicted wrongly; only where asked for",
    ),
    Metric::built_in(
        "cache.misses",
        Unit::Count,
        Noisy,
        Counting,
        "cache misses",
        "accesses that the last level of cache did not serve; only where asked for",
    ),
    Metric::counts(
        "alloc.bytes",
        Unit::Bytes,
        "allocated",
        "bytes allocated, by the language runtime's own count; never added to malloc.bytes, which may hold some too",
    ),
    Metric::counts(
        "alloc.objects",
        Unit::Count,
        "objects",
        "objects allocated, by the language runtime's own count",
    ),
    Metric::counts(
        "gc.count",
        Unit::Count,
        "GCs",
        "garbage collections of the language runtime, young and old",
    )
    .rare(),
    Metric::counts("gc.minor", Unit::Count, "minor GCs", "collections of the young generation only").rare(),
    Metric::counts("gc.major", Unit::Count, "major GCs", "collections of the whole heap").rare(),
    Metric::built_in(
        "gc.time",
        Unit::Nanoseconds,
        Noisy,
        Counting,
        "GC time",
        "time the language runtime spent in garbage collection",
    )
    .rare(),
    Metric::built_in(
        "gc.pause_max",
        Unit::Nanoseconds,
        Noisy,
        Counting,
        "longest pause",
        "the longest stop for garbage collection",
    ),
    Metric::built_in(
        "heap.live_max",
        Unit::Bytes,
        Near,
        Counting,
        "live heap",
        "the most live data that the language runtime saw at a collection; not what malloc.peak counts",
    ),
    Metric::built_in(
        "heap.peak",
        Unit::Bytes,
        Near,
        Counting,
        "heap peak",
        "the most memory that the language runtime held for its heap, garbage included",
    ),
    Metric::built_in(
        "yardstick.wall",
        Unit::Ratio,
        Noisy,
        Timing,
        "wall / yardstick",
        "wall time divided by that of the yardstick of a history in the same block",
    ),
    Metric::built_in(
        "yardstick.cpu",
        Unit::Ratio,
        Noisy,
        Timing,
        "cpu / yardstick",
        "processor time divided by that of the yardstick of a history in the same block",
    ),
    Metric::built_in(
        "build.time",
        Unit::Nanoseconds,
        Noisy,
        Build,
        "build",
        "elapsed time of the build steps of a version; a build uses what earlier builds left, unless it is clean",
    ),
    Metric::built_in(
        "build.bytes",
        Unit::Bytes,
        Exact,
        Build,
        "built bytes",
        "the size of a version's artefacts, all files together",
    ),
    Metric::load(
        "load.p50",
        Unit::Nanoseconds,
        "response p50",
        "the median response time, from when each request was due to its answer",
    ),
    Metric::load("load.p90", Unit::Nanoseconds, "response p90", "the 90th percentile of response times"),
    Metric::load("load.p99", Unit::Nanoseconds, "response p99", "the 99th percentile of response times"),
    Metric::load("load.p999", Unit::Nanoseconds, "response p99.9", "the 99.9th percentile of response times"),
    Metric::load("load.max", Unit::Nanoseconds, "longest response", "the longest response"),
    Metric::load("load.mean", Unit::Nanoseconds, "mean response", "the arithmetic mean of response times"),
    Metric::load(
        "load.service.p50",
        Unit::Nanoseconds,
        "service p50",
        "the median time from the sending of a request to its answer",
    ),
    Metric::load(
        "load.service.p99",
        Unit::Nanoseconds,
        "service p99",
        "the 99th percentile of the time from the sending to the answer",
    ),
    Metric::load(
        "load.lag.p99",
        Unit::Nanoseconds,
        "lag p99",
        "the 99th percentile of the time from when a request was due to its sending",
    ),
    Metric::load(
        "load.rate",
        RATE,
        "rate",
        "good answers per second, with the time of their backlog included",
    )
    .more_is_better(),
    Metric::load("load.errors", Unit::Ratio, "errors", "the share of requests that failed, from 0 to 1"),
    Metric::load(
        "request.cpu",
        Unit::Nanoseconds,
        "cpu / request",
        "processor time per request of the server's processes, user and system",
    ),
    Metric::estimated(
        "request.user",
        Unit::Nanoseconds,
        "user / request",
        "processor time per request in the server's own code, divided by ticks",
    ),
    Metric::estimated(
        "request.sys",
        Unit::Nanoseconds,
        "sys / request",
        "processor time per request in the kernel, divided by ticks",
    ),
    Metric::load(
        "request.wait",
        Unit::Nanoseconds,
        "wait / request",
        "time per request that the server was ready but waited for a core",
    ),
    Metric::load(
        "request.faults.minor",
        Unit::Count,
        "minor faults / request",
        "page faults per request that read from no disk",
    ),
    Metric::load(
        "request.faults.major",
        Unit::Count,
        "major faults / request",
        "page faults per request that read from a disk",
    ),
    Metric::load(
        "request.switches.voluntary",
        Unit::Count,
        "vol. switches / request",
        "times per request that the server waited for something",
    ),
    Metric::load(
        "request.switches.involuntary",
        Unit::Count,
        "invol. switches / request",
        "times per request that the kernel took the core away from it",
    ),
    Metric::load(
        "request.io.read",
        Unit::Bytes,
        "disk read / request",
        "bytes per request read from block devices",
    ),
    Metric::load(
        "request.io.write",
        Unit::Bytes,
        "disk write / request",
        "bytes per request written towards block devices",
    ),
    Metric::counted(
        "request.malloc.count",
        Unit::Count,
        "mallocs / request",
        "allocations per request through malloc and its relatives",
    ),
    Metric::counted(
        "request.malloc.bytes",
        Unit::Bytes,
        "malloc bytes / request",
        "bytes per request requested through malloc and its relatives",
    ),
    Metric::counted("request.malloc.frees", Unit::Count, "frees / request", "blocks per request given back"),
    Metric::counted(
        "request.alloc.bytes",
        Unit::Bytes,
        "allocated / request",
        "bytes per request by the runtime's own count",
    ),
    Metric::counted(
        "request.gc.count",
        Unit::Count,
        "GCs / request",
        "garbage collections per request of the language runtime",
    ),
    Metric::counted(
        "request.gc.time",
        Unit::Nanoseconds,
        "GC time / request",
        "time per request in garbage collection",
    ),
    Metric::counted(
        "request.instructions",
        Unit::Count,
        "instructions / request",
        "instructions per request in user space, counted by callgrind",
    ),
    Metric::counted(
        "request.syscalls",
        Unit::Count,
        "system calls / request",
        "system calls per request, counted by strace",
    ),
];

/// The declared metric with this key.
///
/// ```
/// use scruple_core::{metric::metric, unit::Unit};
/// assert_eq!(metric("malloc.bytes").expect("declared").unit, Unit::Bytes);
/// assert!(metric("malloc.byte").is_none());
/// ```
pub fn metric(key: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.key == key)
}

#[cfg(test)]
mod tests;
