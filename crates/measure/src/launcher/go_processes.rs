//! Recognises the Go processes of a tree when they execute their program, and reads their counters when they exit.

use crate::process_stat::status_field;
use crate::runtimes::go::{self, EmptyProgram, Exit, Layouts, counters};
use std::collections::HashMap;

/// The running Go processes, and the counters of those that have ended.
#[derive(Default)]
pub(super) struct GoProcesses {
    layouts: Layouts,
    running: HashMap<libc::pid_t, Option<Exit>>,
    ended: Vec<Exit>,
}

impl GoProcesses {
    /// Learns the layouts of stripped programs from these empty programs; those of others are read from their files.
    pub(super) fn with(empty_programs: &[EmptyProgram]) -> GoProcesses {
        GoProcesses { layouts: Layouts::learnt_from(empty_programs), ..GoProcesses::default() }
    }

    /// Handles that the process executes a program. A fork of a Go process that has not called exec (Go makes one to
    /// probe the kernel) holds its parent's counters, and is not read.
    pub(super) fn executes(&mut self, pid: libc::pid_t) {
        if self.running.remove(&pid).is_some() {
            self.fails(pid, go::EXECUTED);
        }
        if self.layouts.has(pid) {
            self.running.insert(pid, None);
        }
    }

    /// Stops following the process, because its program traces others itself.
    pub(super) fn is_let_go(&mut self, pid: libc::pid_t) {
        self.executes(pid);
        if self.running.remove(&pid).is_some() {
            self.fails(pid, go::TRACES);
        }
    }

    /// Handles that a thread is about to exit. Each thread stops there, and the last one sees the final counters.
    pub(super) fn leaves(&mut self, thread: libc::pid_t) {
        let pid = status_field(thread, "Tgid:").map_or(thread, |pid| pid as libc::pid_t);
        let Some(latest) = self.running.get_mut(&pid) else { return };
        if let Some(exit) = counters::at_exit(thread, &mut self.layouts)
            && (latest.is_none() || exit.counters.is_ok())
        {
            *latest = Some(Exit { pid, ..exit });
        }
    }

    /// Handles that the process has ended.
    pub(super) fn ends(&mut self, pid: libc::pid_t) {
        match self.running.remove(&pid) {
            Some(Some(exit)) => self.ended.push(exit),
            Some(None) => self.fails(pid, go::KILLED),
            None => {}
        }
    }

    /// Takes the counters of all processes, once the tree has ended.
    pub(super) fn exits(mut self) -> Vec<Exit> {
        let left: Vec<libc::pid_t> = self.running.keys().copied().collect();
        left.into_iter().for_each(|pid| self.ends(pid));
        self.ended
    }

    fn fails(&mut self, pid: libc::pid_t, why: &str) {
        self.ended.push(Exit { pid, counters: Err(why.to_owned()) });
    }
}
