//! The Go processes of a tree: recognised as they execute their program, read as they leave.

use super::trace::field;
use crate::runtimes::go::{self, Exit, Layouts, counters};
use std::collections::HashMap;

/// Those that run, and what those have told that run no longer.
#[derive(Default)]
pub(super) struct GoProcesses {
    layouts: Layouts,
    running: HashMap<libc::pid_t, Option<Exit>>,
    ended: Vec<Exit>,
}

impl GoProcesses {
    /// The process has executed a program. A copy of a Go process that has executed none of its own (Go makes one to
    /// try the kernel out) holds its parent's counts, and is not looked at.
    pub(super) fn executes(&mut self, pid: libc::pid_t) {
        if self.running.remove(&pid).is_some() {
            self.fails(pid, go::EXECUTED);
        }
        if self.layouts.has(pid) {
            self.running.insert(pid, None);
        }
    }

    /// The process is let go, since it traces others itself.
    pub(super) fn is_let_go(&mut self, pid: libc::pid_t) {
        self.executes(pid);
        if self.running.remove(&pid).is_some() {
            self.fails(pid, go::TRACES);
        }
    }

    /// A thread is on its way out. Each one stops, and the last to stop sees the final counters.
    pub(super) fn leaves(&mut self, thread: libc::pid_t) {
        let pid = field(&format!("/proc/{thread}/status"), "Tgid:").map_or(thread, |pid| pid as libc::pid_t);
        let Some(told) = self.running.get_mut(&pid) else { return };
        if let Some(exit) = counters::at_exit(thread, &mut self.layouts)
            && (told.is_none() || exit.counters.is_ok())
        {
            *told = Some(Exit { pid, ..exit });
        }
    }

    /// The process has ended.
    pub(super) fn ends(&mut self, pid: libc::pid_t) {
        match self.running.remove(&pid) {
            Some(Some(exit)) => self.ended.push(exit),
            Some(None) => self.fails(pid, go::KILLED),
            None => {}
        }
    }

    /// What all of them have told, once the tree has ended.
    pub(super) fn exits(mut self) -> Vec<Exit> {
        let left: Vec<libc::pid_t> = self.running.keys().copied().collect();
        left.into_iter().for_each(|pid| self.ends(pid));
        self.ended
    }

    fn fails(&mut self, pid: libc::pid_t, why: &str) {
        self.ended.push(Exit { pid, counters: Err(why.to_owned()) });
    }
}
