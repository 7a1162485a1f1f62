//! How long the kernel held up this process and its children because their control group had used up its processor time.
//!
//! Containers and batch systems set such quotas. A program that is held up waits as on a busy machine, but no other
//! program is to blame. Documentation of the kernel: `cgroup-v2.rst` (`cpu.max`, `cpu.stat`) and `sched-bwc.rst` for
//! version 1.

use scruple_stats::sorting;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The control groups of this process that have a quota of processor time, as they were at one time.
#[derive(Clone, Debug)]
pub struct ProcessorQuotas {
    read: Instant,
    groups: Vec<(PathBuf, Quota)>,
}

/// A quota and how long it has held up its group.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Quota {
    cores: f64,
    held_up: Duration,
}

/// A group that was held up for a smaller share of the time was hardly disturbed.
const LEAST: f64 = 0.02;

impl ProcessorQuotas {
    /// Reads the quotas of the groups of this process. Without control groups there are none.
    pub fn read() -> ProcessorQuotas {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let groups = below(Path::new("/sys/fs/cgroup"), &groups);
        ProcessorQuotas { read: Instant::now(), groups }
    }

    /// The number of cores that a group of this process may use on average, if that quota has held it up noticeably
    /// since these were read. The length of that time is known only roughly: kernels differ in what they count.
    pub fn held_up_since(&self) -> Option<f64> {
        let now = ProcessorQuotas::read();
        let (cores, time) = longest(&self.groups, &now.groups)?;
        (time > (now.read - self.read).mul_f64(LEAST)).then_some(cores)
    }
}

/// The cores and the time of the quota that has held up its group longest between two times.
fn longest(before: &[(PathBuf, Quota)], now: &[(PathBuf, Quota)]) -> Option<(f64, Duration)> {
    let since = now.iter().filter_map(|(group, quota)| {
        let (_, before) = before.iter().find(|(other, _)| other == group)?;
        let time = quota.held_up.saturating_sub(before.held_up);
        (!time.is_zero()).then_some((quota.cores, time))
    });
    since.max_by_key(|(_, time)| *time)
}

/// Reads the quotas of the groups that `/proc/self/cgroup` names, from control groups mounted in `root`.
fn below(root: &Path, groups: &str) -> Vec<(PathBuf, Quota)> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let mounts: Vec<PathBuf> = match controllers {
            "" => vec![root.to_owned(), root.join("unified")],
            _ if controllers.split(',').any(|one| one == "cpu") => {
                vec![root.join(controllers), root.join("cpu")]
            }
            _ => continue,
        };
        for mount in mounts {
            // Inside a container, the path may be that outside of it, and the mount is the group itself.
            let own = mount.join(path.trim_start_matches('/'));
            let own = if own.is_dir() { own } else { mount.clone() };
            let groups = own.ancestors().take_while(|group| group.starts_with(&mount));
            found.extend(groups.filter_map(|group| Some((group.to_owned(), quota(group)?))));
        }
    }
    sorting::by(&mut found, |one, other| one.0.cmp(&other.0));
    found.dedup_by(|one, other| one.0 == other.0);
    found
}

/// The quota of a group, in either version of the interface; `None` if it has none.
fn quota(group: &Path) -> Option<Quota> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<f64>().ok();
    let cores = match fs::read_to_string(group.join("cpu.max")) {
        Ok(text) => {
            let (most, period) = text.trim().split_once(' ')?;
            most.parse::<f64>().ok()? / period.parse::<f64>().ok()?
        }
        Err(_) => number("cpu.cfs_quota_us").filter(|most| *most > 0.0)? / number("cpu.cfs_period_us")?,
    };
    let text = fs::read_to_string(group.join("cpu.stat")).ok()?;
    let of = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse::<u64>().ok())
    };
    let held_up = of("throttled_usec").map(Duration::from_micros);
    let held_up = held_up.or_else(|| of("throttled_time").map(Duration::from_nanos))?;
    Some(Quota { cores, held_up })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(folder: PathBuf, files: &[(&str, &str)]) {
        fs::create_dir_all(&folder).expect("a folder");
        files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).expect("written"));
    }

    #[test]
    fn a_quota_of_any_group_above_counts_in_both_versions() {
        let root = tempfile::tempdir().expect("a folder");
        let at = |path: &str| root.path().join(path);
        group(at("job"), &[("cpu.max", "150000 100000\n"), ("cpu.stat", "usage_usec 5\nthrottled_usec 7\n")]);
        group(at("job/step"), &[("cpu.max", "max 100000\n"), ("cpu.stat", "throttled_usec 0\n")]);
        let before = below(root.path(), "0::/job/step\n");
        let of_job = Quota { cores: 1.5, held_up: Duration::from_micros(7) };
        assert_eq!(before, [(at("job"), of_job)]);
        assert_eq!(longest(&before, &before), None);
        fs::write(at("job/cpu.stat"), "usage_usec 5\nthrottled_usec 1007\n").expect("written");
        let now = below(root.path(), "0::/job/step\n");
        assert_eq!(longest(&before, &now), Some((1.5, Duration::from_millis(1))));

        let limited = [("cpu.cfs_quota_us", "20000\n"), ("cpu.cfs_period_us", "100000\n")];
        group(
            at("cpu,cpuacct/a"),
            &[limited[0], limited[1], ("cpu.stat", "nr_throttled 3\nthrottled_time 9\n")],
        );
        let of_group = Quota { cores: 0.2, held_up: Duration::from_nanos(9) };
        let found = below(root.path(), "3:memory:/x\n2:cpu,cpuacct:/a\n");
        assert_eq!(found, [(at("cpu,cpuacct/a"), of_group)]);

        let inside = tempfile::tempdir().expect("a folder");
        group(inside.path().join("cpu"), &[limited[0], limited[1], ("cpu.stat", "throttled_time 9\n")]);
        let found = below(inside.path(), "2:cpu:/docker/0123\n");
        assert_eq!(found, [(inside.path().join("cpu"), of_group)]);
        assert!(below(inside.path(), "").is_empty());
    }
}
