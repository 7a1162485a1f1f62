//! The kernel's line of figures of a process, `/proc/PID/stat` (proc_pid_stat(5)).

use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::str::FromStr;

/// Whether a process runs. One that has ended counts as gone, although it may be reaped late.
pub fn is_alive(pid: i32) -> bool {
    ProcessStat::of(pid).is_some_and(|stat| stat.is_alive())
}

/// The number of page faults of all threads of a process so far that read nothing from a disk.
pub(crate) fn page_faults(pid: i32) -> Option<u64> {
    ProcessStat::of(pid)?.field(10)
}

/// The ids of all processes.
pub(crate) fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The parent of a process; `None` if there is no such process.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    ProcessStat::of(pid)?.field(4)
}

/// The number in the line of `/proc/PID/status` that begins with `name`, such as `Tgid:`. The process may be `self`.
pub(crate) fn status_field(process: impl Display, name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Whether `/proc` numbers processes as this process does. In a new namespace of process ids it numbers those of the
/// namespace in which it was mounted, until it is mounted again.
pub(crate) fn shows_own_namespace() -> bool {
    let own = fs::read_link("/proc/self").ok().and_then(|link| link.to_str()?.parse().ok());
    own == Some(std::process::id())
}

/// Why figures of processes are absent: because `/proc` shows those of another namespace, or else the given reason.
pub(crate) fn why_absent(otherwise: &str) -> &str {
    match shows_own_namespace() {
        true => otherwise,
        false => {
            "/proc shows the processes of another namespace; mount it for this one (unshare --mount-proc, or mount -t \
             proc proc /proc)"
        }
    }
}

/// The number after `name:` in a text that consists of lines `name: number`.
pub(crate) fn number_of_line(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The figures of a process at one moment.
pub(crate) struct ProcessStat(String);

impl ProcessStat {
    /// Reads the figures; `None` if there is no such process.
    pub(crate) fn of(pid: i32) -> Option<ProcessStat> {
        ProcessStat::at(Path::new(&format!("/proc/{pid}")))
    }

    /// Reads the figures of the process whose folder this is; `None` if it is no longer there.
    pub(crate) fn at(folder: &Path) -> Option<ProcessStat> {
        let line = fs::read(folder.join("stat")).ok()?;
        // The name is field 2, may contain any bytes, and ends at the last parenthesis.
        let name_end = line.iter().rposition(|byte| *byte == b')')?;
        Some(ProcessStat(String::from_utf8_lossy(&line[name_end + 1..]).into_owned()))
    }

    /// A field after the name, by its number in the manual, from 3 on; `None` if it is missing or of another type.
    pub(crate) fn field<T: FromStr>(&self, number: usize) -> Option<T> {
        self.0.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
    }

    /// Whether the process runs. One that has ended counts as gone, although it may be reaped late. If only its first
    /// thread has ended, the others still hold its files, such as the socket on which it listens.
    pub(crate) fn is_alive(&self) -> bool {
        let has_threads = self.field(20).is_some_and(|threads: u32| threads > 1);
        !matches!(self.field(3), None | Some('Z' | 'X')) || has_threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_may_contain_anything() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("stat"), b"12 (\xff) Z 5 (b) S 7 12 12\n").expect("written");
        let stat = ProcessStat::at(folder.path()).expect("figures");
        assert!(stat.is_alive());
        assert_eq!((stat.field(4), stat.field(5), stat.field::<u64>(40)), (Some(7), Some(12), None));
        fs::write(folder.path().join("stat"), "12 (a) Z 5 12\n").expect("written");
        assert!(!ProcessStat::at(folder.path()).expect("figures").is_alive());
        for (threads, is_alive) in [(1, false), (2, true)] {
            let text = format!("12 (a) Z 5 12 12 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0\n");
            fs::write(folder.path().join("stat"), text).expect("written");
            assert_eq!(ProcessStat::at(folder.path()).expect("figures").is_alive(), is_alive, "{threads}");
        }
        assert!(ProcessStat::at(&folder.path().join("missing")).is_none());
    }

    #[test]
    fn this_process_runs_and_has_a_parent() {
        let stat = ProcessStat::of(std::process::id() as i32).expect("figures");
        assert!(stat.is_alive());
        assert_eq!(stat.field(4), Some(std::os::unix::process::parent_id()));
    }
}
