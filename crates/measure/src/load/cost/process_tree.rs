//! Reads what a process tree has consumed so far, from the kernel's accounts.

use super::threads::LivingThreads;
use crate::descendants::descendants;
use crate::memory_map::MemoryMap;
use crate::process_stat::{ProcessStat, number_of_line};
use crate::program::Program;
use crate::runtimes::recognise;
use crate::thread_activity::is_at_work;
use scruple_core::metric::metric;
use scruple_core::sample::Reading;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// A process and all its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessTree {
    root: i32,
}

/// The accounts of a tree at one moment. All but the memory only grow while the processes live.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// The process ids.
    pub processes: Vec<i32>,
    /// Processor time in nanoseconds, including ended threads and reaped children.
    pub cpu: u64,
    /// Processor time in user mode in nanoseconds. The kernel divides by ticks, so over a short time it is an
    /// estimate.
    pub user: u64,
    /// The time in which living threads were ready but waited for a core, in nanoseconds.
    pub waited: u64,
    /// Page faults without and with reading from a disk: minor and major.
    pub faults: (u64, u64),
    /// Voluntary and involuntary context switches of living threads.
    pub switches: (u64, u64),
    /// Bytes read from and written to block devices.
    pub blocks: (u64, u64),
    /// Memory, if it was read: this takes the kernel longer than all other accounts together.
    pub memory: TreeMemory,
    /// The counts of living threads.
    pub living: LivingThreads,
}

/// The memory of a tree in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TreeMemory {
    /// Resident memory; a page that several processes share counts for each of them.
    pub resident: u64,
    /// Memory of no file, resident or swapped, with shared pages divided among the processes that share them. Unlike the
    /// private and the proportional size, it does not jump when another process that runs the same program ends: pages
    /// of the program are not part of it.
    pub anonymous: u64,
}

impl ProcessTree {
    /// Creates the tree below a process.
    ///
    /// # Errors
    /// Fails if there is no such process.
    pub fn of(root: i32) -> Result<ProcessTree, String> {
        if Path::new(&format!("/proc/{root}/stat")).exists() {
            Ok(ProcessTree { root })
        } else {
            Err(format!("there is no process {root}"))
        }
    }

    /// The id of the process at the root.
    pub fn root(&self) -> i32 {
        self.root
    }

    /// The name of a language runtime in the tree that frees memory only when it collects.
    pub fn collected_by(&self) -> Option<String> {
        let of = |pid: i32| {
            let program = Program { path: format!("/proc/{pid}/exe").into() };
            let found = recognise(&program).into_iter().map(|found| found.runtime);
            found.into_iter().find(|runtime| runtime.collects_its_heap())
        };
        self.processes().into_iter().find_map(of).map(|runtime| runtime.word().to_owned())
    }

    /// The ids of the living processes, the root first.
    pub fn processes(&self) -> Vec<i32> {
        let mut found = vec![self.root];
        found.extend(descendants(self.root));
        found
    }

    /// The memory maps of all processes, concatenated; maps that may not be read are left out.
    pub fn memory_map(&self) -> MemoryMap {
        let maps = self.processes().into_iter().filter_map(|pid| MemoryMap::of(pid).ok());
        MemoryMap { mappings: maps.flat_map(|map| map.mappings).collect() }
    }

    /// The current memory of all processes.
    pub fn memory(&self) -> TreeMemory {
        let mut sum = TreeMemory::default();
        for pid in self.processes() {
            let memory = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            sum.resident += field(&memory, "Rss") * 1024;
            // Kernels before 5.4 do not divide anonymous pages.
            let own = if memory.contains("Pss_Anon:") { "Pss_Anon" } else { "Anonymous" };
            sum.anonymous += (field(&memory, own) + field(&memory, "SwapPss")) * 1024;
        }
        sum
    }

    /// Reads all accounts but the memory.
    ///
    /// # Errors
    /// Fails if all processes have ended, even if the root has not been reaped, or if the root cannot be read.
    pub fn read(&self) -> Result<Accounts, String> {
        let mut sum = Accounts { processes: self.processes(), ..Accounts::default() };
        for pid in sum.processes.clone() {
            if read_process(pid, &mut sum).is_none() && pid == self.root {
                return Err(format!("process {pid} is gone, or its accounts cannot be read"));
            }
        }
        let is_alive = |pid: &i32| ProcessStat::of(*pid).is_some_and(|stat| stat.is_alive());
        if !sum.processes.iter().any(is_alive) {
            return Err(format!("process {} has ended", self.root));
        }
        let living = sum.living.sum();
        (sum.waited, sum.switches, sum.living.cpu) = (living.waited, living.switches, sum.cpu);
        Ok(sum)
    }

    /// Waits until no thread is at work, such as those that end with their connections. The wait
    /// lasts at most `patience`, because some servers are never idle.
    pub fn wait_for_rest(&self, patience: Duration) {
        let began = Instant::now();
        while began.elapsed() < patience && self.is_at_work() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether a thread runs, is ready to run, or waits for a disk.
    pub fn is_at_work(&self) -> bool {
        self.processes().into_iter().any(|pid| is_at_work(pid as u32))
    }

    /// Reads only the counts of living threads.
    pub fn living(&self) -> LivingThreads {
        let (mut living, processes) = (LivingThreads::default(), self.processes());
        processes.iter().for_each(|pid| living.add(*pid));
        living.cpu = processes.iter().filter_map(|pid| Some(StatTimes::of(*pid)?.all())).sum();
        living
    }
}

impl Accounts {
    /// Makes the counts that are lost when threads end comparable with `before`: they are recomputed thread by
    /// thread, so that the difference is right although threads started or ended in between. `at_end` was read while
    /// those threads lived. Returns the processor time in nanoseconds of threads that were never seen.
    pub fn go_on_from(&mut self, before: &Accounts, at_end: Option<&LivingThreads>) -> u64 {
        let counted = self.living.since(&before.living, at_end.unwrap_or(&self.living));
        self.waited = before.waited + counted.seen.waited;
        self.switches.0 = before.switches.0 + counted.seen.switches.0;
        self.switches.1 = before.switches.1 + counted.seen.switches.1;
        counted.unseen
    }

    /// The accounts as readings. Each counts from the start of the processes.
    pub fn readings(&self) -> Vec<Reading> {
        [
            ("time.cpu", self.cpu),
            ("time.user", self.user),
            ("time.sys", self.cpu.saturating_sub(self.user)),
            ("time.wait", self.waited),
            ("faults.minor", self.faults.0),
            ("faults.major", self.faults.1),
            ("switches.voluntary", self.switches.0),
            ("switches.involuntary", self.switches.1),
            ("io.read", self.blocks.0),
            ("io.write", self.blocks.1),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some(Reading::of(metric(key)?, value as f64, "proc")))
        .collect()
    }
}

fn read_process(pid: i32, sum: &mut Accounts) -> Option<()> {
    sum.living.add(pid);
    let times = StatTimes::of(pid)?;
    sum.cpu += times.all();
    sum.user += (times.own as f64 * times.user_share) as u64 + times.children.0;
    sum.faults.0 += times.faults.0;
    sum.faults.1 += times.faults.1;
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    sum.blocks.0 += field(&io, "read_bytes");
    sum.blocks.1 += field(&io, "write_bytes");
    Some(())
}

/// The figures in the stat file of a process, including its reaped children.
struct StatTimes {
    /// The processor time of the process in nanoseconds, including ended threads.
    own: u64,
    /// The share of the process's own time that it spent in user mode.
    user_share: f64,
    /// The processor time of reaped children in user mode and in the kernel, in nanoseconds.
    children: (u64, u64),
    faults: (u64, u64),
}

impl StatTimes {
    fn of(pid: i32) -> Option<StatTimes> {
        let stat = ProcessStat::of(pid)?;
        let number = |field| stat.field::<u64>(field).unwrap_or(0);
        let tick = 1_000_000_000 / ticks_per_second();
        let (user, system) = (number(14) * tick, number(15) * tick);
        Some(StatTimes {
            own: cpu_clock(pid).unwrap_or(user + system),
            user_share: if user + system > 0 { user as f64 / (user + system) as f64 } else { 0.5 },
            children: (number(16) * tick, number(17) * tick),
            faults: (number(10) + number(11), number(12) + number(13)),
        })
    }

    fn all(&self) -> u64 {
        self.own + self.children.0 + self.children.1
    }
}

/// The number after `name:` in a text that consists of lines `name: number`; 0 if the name is missing.
fn field(text: &str, name: &str) -> u64 {
    number_of_line(text, name).unwrap_or(0)
}

fn ticks_per_second() -> u64 {
    // SAFETY: plain call without arguments that matter.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|ticks| *ticks > 0).unwrap_or(100)
}

/// The processor time of another process in nanoseconds, including ended threads. Its resolution is about a hundred
/// thousand times that of the ticks in the stat file.
pub(super) fn cpu_clock(pid: i32) -> Option<u64> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the call fills in plain data.
    let known = unsafe { libc::clock_getcpuclockid(pid, &mut clock) } == 0;
    known.then(|| crate::clock::read(clock)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn our_own_accounts_grow_as_we_work() {
        let tree = ProcessTree::of(std::process::id() as i32).expect("we are here");
        let before = tree.read().expect("accounts");
        let mut sum = 0_u64;
        let began = std::time::Instant::now();
        while began.elapsed().as_millis() < 50 {
            sum = (0..10_000).fold(sum, |sum: u64, i| sum.wrapping_mul(31).wrapping_add(i));
        }
        std::hint::black_box(sum);
        let after = tree.read().expect("accounts");
        let memory = tree.memory();
        assert!(after.cpu > before.cpu && memory.resident > 0 && memory.anonymous > 0);
        assert!(after.readings().iter().any(|reading| reading.key == "time.cpu"));
        assert!(ProcessTree::of(i32::MAX).is_err());
    }

    #[test]
    fn memory_does_not_grow_when_another_process_of_the_same_program_ends() {
        let place = tempfile::tempdir().expect("a folder");
        let program = place.path().join("sleep");
        // Pages of a file that was just written are dirty, so they would become private dirty memory of the process that
        // remains.
        fs::copy("/bin/sleep", &program).expect("a copy");
        let mut both = [(); 2].map(|()| Command::new(&program).arg("60").spawn().expect("it starts"));
        let tree = ProcessTree::of(both[0].id() as i32).expect("it lives");
        for child in &both {
            let state = || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
            while !state().contains(") S ") {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
        let before = tree.memory();
        both[1].kill().and_then(|()| both[1].wait()).expect("it ends");
        let after = tree.memory();
        both[0].kill().and_then(|()| both[0].wait()).expect("it ends");
        assert_eq!(before, after);
    }

    #[test]
    fn a_process_that_ended_has_no_accounts_before_it_is_reaped() {
        let mut child = Command::new("true").spawn().expect("it starts");
        let tree = ProcessTree::of(child.id() as i32).expect("it has not been reaped");
        let began = std::time::Instant::now();
        while tree.read().is_ok() && began.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(tree.read().map(|_| ()), Err(format!("process {} has ended", child.id())));
        child.wait().expect("reaped");
    }

    #[test]
    fn children_belong_to_the_tree() {
        let mut child = Command::new("sh").args(["-c", "sleep 5 & wait"]).spawn().expect("a shell");
        let tree = ProcessTree::of(child.id() as i32).expect("it lives");
        let began = std::time::Instant::now();
        while tree.processes().len() < 2 && began.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let processes = tree.processes();
        for pid in processes.iter().rev() {
            // SAFETY: plain call about processes that this test started.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
        }
        child.wait().expect("reaped");
        assert_eq!(processes.len(), 2);
        assert!(tree.read().is_err());
    }
}
