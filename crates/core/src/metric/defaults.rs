//! The metrics that tables show by default.

/// The metrics that are shown by default.
pub const DEFAULT_METRICS: &[&str] = &[
    "time.wall",
    "time.cpu",
    "memory.peak",
    "malloc.count",
    "malloc.bytes",
    "malloc.peak",
    "alloc.bytes",
    "gc.count",
    "yardstick.wall",
    "yardstick.cpu",
    "build.time",
    "build.bytes",
    "load.p50",
    "load.p99",
    "load.rate",
    "load.errors",
    "request.cpu",
    "request.malloc.count",
    "request.malloc.bytes",
    "request.instructions",
];
