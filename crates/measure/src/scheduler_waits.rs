//! What the kernel's scheduler says of a process: on which core it was last, and how long it waited for one.

use std::fs;

/// The core on which the first thread of a process was last.
pub(crate) fn last_core(process: u32) -> Option<usize> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, which may hold anything, ends at the last parenthesis; the core is field 39, and the name field 2.
    stat.rsplit_once(')')?.1.split_whitespace().nth(36)?.parse().ok()
}

/// How long the threads of a process that live were ready to run and waited for a core, in nanoseconds; none where the
/// kernel does not keep it.
pub(crate) fn waited(process: u32) -> Option<u64> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let of_thread = |path: std::path::PathBuf| -> Option<u64> {
        fs::read_to_string(path.join("schedstat")).ok()?.split_whitespace().nth(1)?.parse().ok()
    };
    let known: Vec<u64> = threads.flatten().filter_map(|thread| of_thread(thread.path())).collect();
    (!known.is_empty()).then(|| known.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_on_a_core_that_there_is() {
        let core = last_core(std::process::id()).expect("this process is there");
        let present = fs::read_to_string("/sys/devices/system/cpu/present").expect("the kernel lists cores");
        let most = present.trim().rsplit(['-', ',']).next().and_then(|last| last.parse().ok());
        assert!(core <= most.expect("a number"), "core {core} of {present}");
        assert_eq!(last_core(u32::MAX), None);
    }

    #[test]
    fn a_process_that_is_gone_has_not_waited() {
        assert_eq!(waited(u32::MAX), None);
    }
}
