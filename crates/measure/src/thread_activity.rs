//! Tells whether a program that makes no progress is blocked, busy, or kept from running.

use crate::process_stat::ProcessStat;
use crate::scheduler_waits::{self, Threads};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What the threads of a program did while it made no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// All threads are blocked, and used hardly any processor time.
    Blocked,
    /// Threads ran, and every thread that is ready to run had its turn.
    Busy,
    /// A thread is ready to run but had no turn, or waits for a disk, or is stopped. So the lack of progress says
    /// nothing about the program.
    HeldUp,
}

/// A thread that ran for this share of the observed time had its turn. Less than this share of one core counts as idle.
const SHARE: u32 = 50;

/// How often, and how far apart, the states of the threads are read. A thread that polls is ready for a moment now and
/// then.
const ROUNDS: (usize, Duration) = (10, Duration::from_millis(2));

/// Observes the threads of a program from one moment on.
#[derive(Debug)]
pub(crate) struct ThreadActivity {
    process: u32,
    first: Threads,
    last: (Instant, Threads),
}

/// What was observed since the previous observation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    pub activity: Activity,
    /// The processor time of all threads.
    pub ran: Duration,
    /// The length of time in which they ran.
    pub of: Duration,
}

impl ThreadActivity {
    /// Begins to observe; `None` if the kernel does not report when threads run.
    pub fn begin(process: u32) -> Option<ThreadActivity> {
        let threads = scheduler_waits::threads(process)?;
        Some(ThreadActivity { process, first: threads.clone(), last: (Instant::now(), threads) })
    }

    /// What the threads have done since this was last asked, or else since the beginning. Takes up to 20 ms.
    pub fn observe(&mut self) -> Option<Observed> {
        let threads = scheduler_waits::threads(self.process)?;
        let of = self.last.0.elapsed();
        let ran = Duration::from_nanos(threads.since(&self.last.1).ran);
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS.0 {
            rounds.push(ready_threads(self.process)?);
            if rounds.last().is_some_and(Vec::is_empty) {
                break;
            }
            std::thread::sleep(ROUNDS.1);
        }
        let turn = of / SHARE;
        let had_turn = |thread| threads.ran_since(&self.first, thread) >= turn;
        let activity = judge(&rounds, ran < turn, had_turn);
        self.last = (Instant::now(), threads);
        Some(Observed { activity, ran, of })
    }
}

/// Judges from the threads that were not blocked in each round. A round without such threads shows that the whole
/// program is blocked, if it is idle. A thread that is ready in all rounds waits for a core, and is not one that polls.
fn judge(rounds: &[Vec<u32>], idle: bool, had_turn: impl Fn(u32) -> bool) -> Activity {
    let Some((first, rest)) = rounds.split_first() else { return Activity::HeldUp };
    if idle {
        return if rounds.iter().any(Vec::is_empty) { Activity::Blocked } else { Activity::HeldUp };
    }
    let mut always_ready = first.iter().filter(|thread| rest.iter().all(|round| round.contains(thread)));
    if always_ready.all(|thread| had_turn(*thread)) { Activity::Busy } else { Activity::HeldUp }
}

/// The living threads of a process that are not blocked: they run, are ready to run, wait for a disk or are stopped.
pub(crate) fn ready_threads(process: u32) -> Option<Vec<u32>> {
    threads_where(process, |state| !is_blocked(state))
}

/// Whether the kernel's abbreviation of a state means that the thread waits for an event, or has ended. A thread that
/// waits for a disk or is stopped is not blocked: it continues without any action of the program.
fn is_blocked(state: char) -> bool {
    matches!(state, 'S' | 'I' | 'Z' | 'X')
}

/// Whether a thread of a process runs, is ready to run, or waits for a disk.
pub(crate) fn is_at_work(process: u32) -> bool {
    threads_where(process, |state| matches!(state, 'R' | 'D')).is_some_and(|found| !found.is_empty())
}

/// The living threads of a process whose state, as the kernel abbreviates it, fits.
fn threads_where(process: u32, fits: impl Fn(char) -> bool) -> Option<Vec<u32>> {
    let listed = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let of_thread = |path: PathBuf| -> Option<u32> {
        let state = ProcessStat::at(&path)?.field(3)?;
        path.file_name()?.to_str()?.parse().ok().filter(|_| fits(state))
    };
    Some(listed.flatten().filter_map(|thread| of_thread(thread.path())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    const FAIR: fn(u32) -> bool = |_| true;

    #[test]
    fn only_threads_that_are_all_blocked_at_one_time_are_a_deadlock() {
        assert_eq!(judge(&[vec![]], true, FAIR), Activity::Blocked);
        assert_eq!(judge(&[vec![1], vec![]], true, FAIR), Activity::Blocked);
        // Each thread is blocked at some time, but never all of them: one waits for a core while the other polls.
        assert_eq!(judge(&[vec![1], vec![2]], true, FAIR), Activity::HeldUp);
        assert_eq!(judge(&[], true, FAIR), Activity::HeldUp);
    }

    #[test]
    fn threads_are_busy_only_if_each_that_is_ready_had_its_turn() {
        let spins_beside_a_waiting_one = |thread| thread == 1;
        assert_eq!(judge(&[vec![1, 2], vec![1, 2]], false, FAIR), Activity::Busy);
        assert_eq!(judge(&[vec![1, 2], vec![1, 2]], false, spins_beside_a_waiting_one), Activity::HeldUp);
        assert_eq!(judge(&[vec![1, 2], vec![1]], false, spins_beside_a_waiting_one), Activity::Busy);
    }

    /// The states are those of proc(5).
    #[test]
    fn a_thread_that_waits_for_a_disk_or_is_stopped_is_not_blocked() {
        assert!("SIZX".chars().all(is_blocked));
        assert!(!"RDTt".chars().any(is_blocked));
    }

    fn started(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell")
    }

    /// What a program does after it has written its first byte.
    fn observed(script: &str) -> Activity {
        let mut child = started(script);
        let mut byte = [0];
        std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut byte).expect("it begins");
        let mut activity = ThreadActivity::begin(child.id()).expect("the kernel reports it");
        let mut seen = Activity::HeldUp;
        // On a busy machine the program may have had no core yet.
        while seen == Activity::HeldUp {
            std::thread::sleep(Duration::from_millis(100));
            seen = activity.observe().expect("it is still there").activity;
        }
        child.kill().expect("it is ours");
        child.wait().expect("it has ended");
        seen
    }

    #[test]
    fn a_program_that_waits_is_blocked_and_one_that_loops_is_busy() {
        assert_eq!(observed("echo; read line"), Activity::Blocked);
        assert_eq!(observed("echo; while :; do :; done"), Activity::Busy);
    }

    #[test]
    fn a_stopped_program_is_held_up() {
        let mut child = started("kill -STOP $$");
        while !ready_threads(child.id()).is_some_and(|ready| {
            ready == [child.id()]
                && ProcessStat::of(child.id() as i32).and_then(|stat| stat.field(3)) == Some('T')
        }) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!is_at_work(child.id()) && is_at_work(std::process::id()));
        let mut activity = ThreadActivity::begin(child.id()).expect("the kernel reports it");
        assert_eq!(activity.observe().map(|seen| seen.activity), Some(Activity::HeldUp));
        child.kill().expect("it is ours");
        child.wait().expect("it has ended");
    }

    #[test]
    fn a_process_that_is_gone_has_no_activity() {
        assert!(ThreadActivity::begin(u32::MAX).is_none());
    }
}
