//! `scruple inspect memory`: shows the memory map of a running process, or the allocation sites of a program.

use super::args::MemoryArgs;
use super::report::memory;
use super::sites;
use crate::cli::values;
use crate::fault::{Code, Fault};
use crate::interruption;
use crate::render::{json, output};
use scruple_core::memory_map::MemoryCourse;
use scruple_measure::memory_map::{self, WatchedProcesses};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The initial interval between readings of a process. Expensive figures are read less often.
const INTERVAL: Duration = Duration::from_millis(10);

#[derive(Serialize)]
struct MemoryMapJson<'a> {
    pid: i32,
    memory_map: memory::MemoryReport<'a>,
}

/// Shows the allocation sites of the command, or the memory map of the process.
pub fn memory(args: &MemoryArgs) -> Result<Code, Fault> {
    match args.pid {
        Some(pid) => map(args, pid),
        None if args.command.is_empty() => Err(Fault::usage(
            "name what to look at: give a command, as in `scruple inspect memory -- ./app`, or a process with --pid",
        )),
        None => sites::sites(args),
    }
}

/// Reads the memory map of the process once or watches it, and prints the result.
fn map(args: &MemoryArgs, pid: i32) -> Result<Code, Fault> {
    let watched = if args.tree { WatchedProcesses::Tree } else { WatchedProcesses::Alone };
    let course = match &args.watching {
        None => memory_map::read_once(pid, watched),
        Some(time) => watch(pid, watched, values::duration(time)?)?,
    };
    if course.moments.is_empty() {
        return Err(Fault::usage(format!(
            "there is no process {} that has memory: `ps` lists those that there are",
            pid
        )));
    }
    let text = match args.json {
        true => json::document(&MemoryMapJson { pid, memory_map: memory::report(&course) }),
        false => {
            let name = course.largest.as_ref().map(|largest| largest.name.clone());
            memory::text(&name.unwrap_or_else(|| pid.to_string()), &course, output::width())
        }
    };
    output::print(&text)?;
    Ok(Code::Fine)
}

/// Watches the process until the time is over, the process ends, or the user interrupts.
fn watch(pid: i32, watched: WatchedProcesses, time: Duration) -> Result<MemoryCourse, Fault> {
    let interrupted = interruption::flag()?;
    let (over, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let until = Instant::now() + time;
    Ok(std::thread::scope(|scope| {
        scope.spawn(|| {
            while Instant::now() < until
                && !interrupted.load(Ordering::Relaxed)
                && !ended.load(Ordering::Relaxed)
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            over.store(true, Ordering::Relaxed);
        });
        let course = memory_map::watch_process(pid, watched, INTERVAL, &over);
        ended.store(true, Ordering::Relaxed);
        course
    }))
}
