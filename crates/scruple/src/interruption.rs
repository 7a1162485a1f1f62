//! What an interruption by the user or the system does.

use crate::fault::Fault;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns a flag that the first SIGINT, SIGTERM or SIGHUP sets. A second signal ends Scruple at once.
pub fn flag() -> Result<Arc<AtomicBool>, Fault> {
    let flag = Arc::new(AtomicBool::new(false));
    // A process that nohup has started must continue when the terminal is closed.
    let hangup = (!ignores_hangup()).then_some(SIGHUP);
    for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
        signal_hook::flag::register_conditional_default(signal, flag.clone())
            .and_then(|_| signal_hook::flag::register(signal, flag.clone()))
            .map_err(|error| Fault::internal(format!("cannot watch for interruptions: {error}")))?;
    }
    Ok(flag)
}

/// Whether this process was started with SIGHUP ignored. SIGHUP is the lowest bit of the mask.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
