//! The process tree of a measured program: its processor time, and how its remains are ended.

use super::follow_processes::Follower;
use super::kernel_accounts::{nanoseconds, scheduled};
use crate::descendants::descendants;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// How long processes that outlive the program may take to end by themselves, without the time in which they wait for a
/// core.
const LINGER: Duration = Duration::from_millis(100);

/// The most time of waiting for a core that is not counted.
const MOST_WAITING: Duration = Duration::from_secs(2);

/// The processes that outlived the program, and their processor time in nanoseconds.
pub(super) struct LeftBehind {
    pub(super) ended: u32,
    pub(super) user: u64,
    pub(super) system: u64,
}

/// Ends a tree of processes: asks each of them to end, and kills what is left after some time.
#[derive(Default)]
pub(super) struct TreeEnding {
    /// When the first process was asked.
    began: Option<Instant>,
    /// The processes that were asked. None is asked twice, because the second SIGTERM ends some programs at once.
    asked: HashSet<libc::pid_t>,
}

impl TreeEnding {
    /// Sends SIGTERM to every descendant of the launcher that has not had it, or after `grace` SIGKILL to all of them and
    /// to the program's process group.
    pub(super) fn proceed(&mut self, group: libc::pid_t, grace: Duration) {
        let kills = self.began.get_or_insert_with(Instant::now).elapsed() >= grace;
        let signal = if kills { libc::SIGKILL } else { libc::SIGTERM };
        // A kernel without lists of children shows no descendants, and then the group is asked.
        let tree = descendants(own_id());
        let group = Some(-group).filter(|_| kills || tree.is_empty());
        for target in tree.into_iter().chain(group) {
            if self.asked.insert(target) || kills {
                // SAFETY: plain system call; a process that is gone makes it fail harmlessly.
                unsafe { libc::kill(target, signal) };
            }
        }
    }
}

/// Gives every process of the tree its ordinary scheduling back.
pub(super) fn unshield(group: libc::pid_t) {
    let ordinary = libc::sched_param { sched_priority: 0 };
    for pid in std::iter::once(group).chain(descendants(own_id())) {
        for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            if let Some(tid) = thread.file_name().to_str().and_then(|name| name.parse().ok()) {
                // SAFETY: plain system call on a thread id.
                unsafe { libc::sched_setscheduler(tid, libc::SCHED_OTHER, &ordinary) };
            }
        }
    }
}

/// The process id of the launcher.
fn own_id() -> i32 {
    std::process::id() as i32
}

/// How long each process of the tree has waited for a core in its life, in nanoseconds.
fn waits() -> HashMap<i32, u64> {
    descendants(own_id()).into_iter().filter_map(|pid| Some((pid, scheduled(pid)?.1))).collect()
}

/// The longest time that a process of the tree has waited for a core since these earlier readings.
fn longest_wait(before: &HashMap<i32, u64>) -> Duration {
    let since = |(pid, now): (i32, u64)| now.saturating_sub(before.get(&pid).copied().unwrap_or(0));
    Duration::from_nanos(waits().into_iter().map(since).max().unwrap_or(0)).min(MOST_WAITING)
}

/// Waits a short time for processes that outlived the program, then asks them to end, kills them after `grace`, and adds
/// up their processor time. With `at_once` they are killed at once, because they were asked already. A traced tree is
/// traced to its end; the kernel then also reports threads and grandchildren, whose time is already in that of their
/// parents, so it is not added.
pub(super) fn end_what_is_left(
    group: libc::pid_t,
    at_once: bool,
    grace: Duration,
    mut follower: Option<&mut Follower>,
) -> LeftBehind {
    let mut left = LeftBehind { ended: 0, user: 0, system: 0 };
    let began = Instant::now();
    let mut ending = TreeEnding::default();
    let mut before = None;
    let grace = if at_once { Duration::ZERO } else { grace };
    loop {
        // SAFETY: status and usage are plain data that the kernel fills in.
        let (pid, status, usage) = unsafe {
            let mut status = 0;
            let mut usage: libc::rusage = std::mem::zeroed();
            let pid = libc::wait4(-1, &mut status, libc::WNOHANG | libc::__WALL, &mut usage);
            (pid, status, usage)
        };
        match pid {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return left,
            0 => {
                let before = before.get_or_insert_with(waits);
                let late = || began.elapsed() >= LINGER && began.elapsed() >= LINGER + longest_wait(before);
                if at_once || left.ended > 0 || late() {
                    if left.ended == 0 {
                        left.ended = descendants(own_id()).len() as u32;
                    }
                    ending.proceed(group, grace);
                }
                if began.elapsed() > grace + Duration::from_secs(10) {
                    return left;
                }
                thread::sleep(Duration::from_millis(1));
            }
            pid => match &mut follower {
                Some(follower) if libc::WIFSTOPPED(status) => follower.stopped(pid, status),
                Some(follower) => follower.reaped(pid, &usage),
                None => {
                    left.user += nanoseconds(usage.ru_utime);
                    left.system += nanoseconds(usage.ru_stime);
                }
            },
        }
    }
}
