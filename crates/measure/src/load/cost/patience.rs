//! How long to wait for a server. On a busy machine an instrument that starts, or that writes its result at the end,
//! may wait for a core most of the time, so such waits do not count.

use crate::process_stat::{ProcessStat, processes};
use crate::scheduler_waits::{self, Threads};
use scruple_stats::sorting::SortedMap;
use std::time::{Duration, Instant};

/// The threads of the processes of a group, by process id.
type Group = SortedMap<u32, Threads>;

/// A wait for a process group that has begun.
pub(super) struct Patience {
    group: i32,
    limit: Duration,
    began: Instant,
    before: Group,
}

impl Patience {
    /// Begins to wait for a process group, at most as long as the limit without the group's waits for a core.
    pub(super) fn begin(group: i32, limit: Duration) -> Patience {
        Patience { group, limit, began: Instant::now(), before: threads_of(group) }
    }

    /// Whether the processes have had the whole time.
    pub(super) fn is_over(&self) -> bool {
        let elapsed = self.began.elapsed();
        elapsed >= self.limit
            && elapsed.saturating_sub(waited(&self.before, &threads_of(self.group))) >= self.limit
    }
}

/// The ids of the living processes of a group.
pub(super) fn members(group: i32) -> impl Iterator<Item = u32> {
    let is_member = move |stat: ProcessStat| stat.is_alive() && stat.field(5) == Some(group);
    processes().filter(move |id| ProcessStat::of(*id).is_some_and(is_member)).map(|id| id as u32)
}

fn threads_of(group: i32) -> Group {
    members(group).filter_map(|id| Some((id, scheduler_waits::threads(id)?))).collect()
}

/// The longest time that a process has waited for a core since an earlier reading. Each process counts by the thread
/// that ran most.
fn waited(before: &Group, now: &Group) -> Duration {
    let none = Threads::default();
    let waits = now.iter().map(|(id, now)| now.since(before.get(id).unwrap_or(&none)).busiest_waited);
    Duration::from_nanos(waits.max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_of_the_process_that_waited_most_is_taken_off() {
        let group = |processes: &[(u32, u64, u64)]| -> Group {
            processes.iter().map(|(id, ran, waited)| (*id, Threads::of([(*id, *ran, *waited)]))).collect()
        };
        let before = group(&[(1, 500, 900), (2, 100, 10)]);
        let after = group(&[(1, 501, 905), (2, 400, 310), (3, 7, 250)]);
        assert_eq!(waited(&before, &after), Duration::from_nanos(300));
        assert_eq!(waited(&before, &before), Duration::ZERO);
        assert_eq!(waited(&before, &Group::default()), Duration::ZERO, "all have ended");
    }

    #[test]
    fn a_group_without_processes_has_had_its_time_when_it_has_passed() {
        let mut patience = Patience::begin(i32::MAX, Duration::from_secs(1000));
        assert!(!patience.is_over());
        patience.began -= Duration::from_secs(1000);
        assert!(patience.is_over());
    }
}
