//! The memory of a tree of processes over time.

use super::{MemoryMap, kilobytes};
use crate::clock;
use crate::descendants::descendants;
use scruple_core::memory_map::{Divided, Largest, MapRow, MemoryCourse, Moment};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The largest number of moments that are kept: a page or a terminal cannot show more.
const MOST: usize = 800;

/// The pause after an expensive reading is the reading's processor time multiplied by this number. Scruple may delay a
/// launch that it made only for the reading, but must hardly delay a process that does real work.
#[derive(Clone, Copy)]
enum PauseFactor {
    OwnLaunch = 10,
    OtherProcess = 100,
}

/// Watches the descendants of a process, such as the launcher, until `stop` is true.
///
/// The cheap figures are read at every interval, which grows with the time watched. The proportional sizes and the
/// map are read so rarely that they take at most about a tenth of the time.
pub fn watch(root: i32, interval: Duration, stop: &AtomicBool) -> MemoryCourse {
    // Between fork and exec a child is a copy of the launcher, and is not watched yet.
    let words = |pid: i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let roots = words(root);
    let tree = || {
        let mut tree = descendants(root);
        tree.retain(|pid| {
            let own = words(*pid);
            !own.is_empty() && own != roots
        });
        tree
    };
    follow(tree, interval, PauseFactor::OwnLaunch, stop)
}

/// Whether the descendants of a process are watched too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchedProcesses {
    /// Only the process.
    Alone,
    /// The process and its descendants, except the watching process.
    Tree,
}

impl WatchedProcesses {
    fn of(self, pid: i32) -> Vec<i32> {
        let mut tree = vec![pid];
        if self == WatchedProcesses::Tree {
            let own = std::process::id() as i32;
            tree.extend(descendants(pid).into_iter().filter(|other| *other != own));
        }
        tree
    }
}

/// Watches a process until it ends or `stop` is true. The process is delayed for at most about a hundredth of the
/// time.
pub fn watch_process(
    pid: i32,
    watched: WatchedProcesses,
    interval: Duration,
    stop: &AtomicBool,
) -> MemoryCourse {
    let tree = || match fs::exists(format!("/proc/{pid}/status")) {
        Ok(true) => watched.of(pid),
        _ => Vec::new(),
    };
    follow(tree, interval, PauseFactor::OtherProcess, stop)
}

/// Reads the memory of a process once.
pub fn read_once(pid: i32, watched: WatchedProcesses) -> MemoryCourse {
    let mut follower = MemoryWatcher::new(PauseFactor::OtherProcess);
    follower.record_current(&watched.of(pid));
    follower.course
}

fn follow(
    tree: impl Fn() -> Vec<i32>,
    interval: Duration,
    pause_factor: PauseFactor,
    stop: &AtomicBool,
) -> MemoryCourse {
    let mut follower = MemoryWatcher::new(pause_factor);
    let mut interval = interval;
    let mut begun = false;
    while !stop.load(Ordering::Relaxed) {
        let there = follower.record_current(&tree());
        if matches!(pause_factor, PauseFactor::OtherProcess) && begun && !there {
            break;
        }
        begun |= there;
        if follower.course.moments.len() >= MOST {
            follower.thin_out();
            interval *= 2;
        }
        std::thread::sleep(interval);
    }
    follower.course
}

struct MemoryWatcher {
    pause_factor: PauseFactor,
    began: Instant,
    next_look: Instant,
    course: MemoryCourse,
}

impl MemoryWatcher {
    fn new(pause_factor: PauseFactor) -> MemoryWatcher {
        let now = Instant::now();
        MemoryWatcher { pause_factor, began: now, next_look: now, course: MemoryCourse::default() }
    }

    /// Records the current memory of these processes; false if none of them exists.
    fn record_current(&mut self, tree: &[i32]) -> bool {
        let (mut moment, high_water) = moment(tree, self.began.elapsed());
        // A process that has ended but was not reaped has no memory.
        if moment.processes == 0 {
            return false;
        }
        self.course.high_water = self.course.high_water.max(high_water);
        if Instant::now() >= self.next_look {
            let before = own_time();
            moment.divided = divided(tree);
            let mapped = self.course.largest.as_ref().map_or(0, |largest| largest.resident);
            if moment.resident > mapped
                && let Some((largest, map)) = largest(tree, &moment)
            {
                (self.course.largest, self.course.map) = (Some(largest), map);
            }
            self.next_look = Instant::now() + own_time().saturating_sub(before) * self.pause_factor as u32;
        }
        self.course.moments.push(moment);
        true
    }

    fn thin_out(&mut self) {
        let larger = |pair: &[Moment]| {
            let mut kept = pair.iter().copied().max_by_key(|moment| moment.resident).unwrap_or_default();
            kept.divided = pair.iter().filter_map(|moment| moment.divided).max();
            kept
        };
        self.course.moments = self.course.moments.chunks(2).map(larger).collect();
    }
}

/// The processor time of the calling thread. Time waiting for a core is excluded, because it does not delay the
/// program.
fn own_time() -> Duration {
    Duration::from_nanos(clock::read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default())
}

fn largest(tree: &[i32], moment: &Moment) -> Option<(Largest, Vec<MapRow>)> {
    let pid = *tree.iter().max_by_key(|pid| resident(**pid))?;
    let map = MemoryMap::of(pid).ok().filter(|map| !map.mappings.is_empty())?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned();
    let Moment { at, processes, resident, .. } = *moment;
    Some((Largest { pid, name, at, processes, resident }, map.rows()))
}

/// The current memory of these processes, and the largest resident size in bytes that any of them has reached.
fn moment(tree: &[i32], at: Duration) -> (Moment, u64) {
    let (mut moment, mut high_water) = (Moment { at, ..Moment::default() }, 0);
    for pid in tree {
        let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
        let field = |name: &str| status.lines().find(|line| line.starts_with(name)).and_then(kilobytes);
        let Some(resident) = field("VmRSS:") else { continue };
        moment.processes += 1;
        moment.resident += resident;
        moment.anonymous += field("RssAnon:").unwrap_or(0);
        high_water = high_water.max(field("VmHWM:").unwrap_or(0));
    }
    (moment, high_water)
}

fn resident(pid: i32) -> u64 {
    moment(&[pid], Duration::ZERO).0.resident
}

/// The proportional and unique sizes of these processes; `None` if the kernel permits reading none of them.
fn divided(tree: &[i32]) -> Option<Divided> {
    let mut sum: Option<Divided> = None;
    for pid in tree {
        let Ok(text) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else { continue };
        let field =
            |name: &str| text.lines().find(|line| line.starts_with(name)).and_then(kilobytes).unwrap_or(0);
        let sum = sum.get_or_insert_default();
        sum.proportional += field("Pss:");
        sum.unique += field("Private_Clean:") + field("Private_Dirty:");
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_watched_from_its_beginning_to_its_end() {
        // A shell replaces the launcher, because children of this process may belong to other tests.
        let script = ["-c", "sleep 0.1; sleep 0.2; :"];
        let mut launcher = std::process::Command::new("sh").args(script).spawn().expect("a launcher");
        let (pid, stop) = (launcher.id() as i32, AtomicBool::new(false));
        let course = std::thread::scope(|scope| {
            let watching = scope.spawn(|| watch(pid, Duration::from_millis(5), &stop));
            launcher.wait().expect("it ends");
            stop.store(true, Ordering::Relaxed);
            watching.join().expect("watched")
        });
        assert!(course.peak().is_some_and(|peak| peak.resident > 0 && course.high_water >= peak.resident));
        assert!(course.moments.iter().any(|moment| moment.divided.is_some()));
        assert_eq!(course.largest.map(|largest| largest.name), Some("sleep".to_owned()));
    }

    #[test]
    fn a_process_can_be_looked_at_once_and_watched_until_its_end() {
        let once = read_once(std::process::id() as i32, WatchedProcesses::Alone);
        let unique = once.total().unique();
        assert!(once.moments.len() == 1 && unique > 0, "{unique}");
        let mut child = std::process::Command::new("sleep").arg("0.2").spawn().expect("a child");
        let pid = child.id() as i32;
        let waiter = std::thread::spawn(move || child.wait());
        let course =
            watch_process(pid, WatchedProcesses::Tree, Duration::from_millis(1), &AtomicBool::new(false));
        assert!(course.peak().is_some_and(|peak| peak.resident > 0) && course.high_water > 0);
        waiter.join().expect("waited").expect("ended");
    }

    #[test]
    fn a_long_course_keeps_its_peaks() {
        let mut follower = MemoryWatcher::new(PauseFactor::OwnLaunch);
        let at = |resident: u64| Moment {
            resident,
            divided: Some(Divided { proportional: resident, unique: 1 }),
            ..Moment::default()
        };
        follower.course.moments = [1, 9, 3, 2, 5].map(at).to_vec();
        follower.thin_out();
        let kept: Vec<u64> = follower.course.moments.iter().map(|moment| moment.resident).collect();
        assert_eq!(kept, [9, 3, 5]);
        assert_eq!(follower.course.divided_peaks(), Some(Divided { proportional: 9, unique: 1 }));
    }
}
