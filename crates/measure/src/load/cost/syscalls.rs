//! System calls per request, counted by `strace` in a separate window. It slows the server down many times, so
//! nothing else may be measured in that window.

use super::attached_tool::AttachedTool;
use super::process_tree::ProcessTree;
use crate::process_stat::status_field;
use crate::user_folder::TemporaryFolder;
use scruple_stats::sorting::SortedMap;
use std::process::Command;

const MISSING: &str = "strace is not installed";
const FORBIDDEN: &str =
    "strace may not trace that process: run as its user, and see kernel.yama.ptrace_scope";

/// Whether system calls can be counted here; tried on a program that does nothing.
///
/// # Errors
/// Says why they cannot be counted, as a clause.
pub fn available() -> Result<(), String> {
    let mut tried = Command::new("strace");
    tried.args(["-f", "-c", "-o", "/dev/null", "true"]);
    super::works(tried, MISSING, FORBIDDEN)
}

/// Counts the system calls of a tree while `load` runs, which returns how many requests it sent. The result is the
/// number of calls per request by name.
///
/// # Errors
/// Says why they cannot be counted, as a clause.
pub fn count(
    tree: &ProcessTree,
    load: &mut dyn FnMut() -> Result<u64, String>,
) -> Result<SortedMap<String, f64>, String> {
    let folder = TemporaryFolder::new("strace")?;
    let file = folder.path().join("calls");
    let mut command = Command::new("strace");
    command.args(["-f", "-c", "-U", "calls,name", "-o"]).arg(&file);
    let processes = tree.processes();
    for pid in &processes {
        command.args(["-p", &pid.to_string()]);
    }
    // A process that has ended in the meantime is not traced.
    let attached = |tracer: u32| {
        let tracers = processes.iter().filter_map(|pid| status_field(pid, "TracerPid:"));
        tracers.into_iter().all(|found| found == u64::from(tracer))
    };
    let tracer = AttachedTool::start(&mut command, attached, [MISSING, FORBIDDEN])?;
    let requests = load();
    tracer.end();
    let table = std::fs::read_to_string(&file);
    let requests = requests?.max(1) as f64;
    let calls = parse(&table.map_err(|error| format!("strace wrote no table: {error}"))?);
    Ok(calls.into_iter().map(|(name, count)| (name, count as f64 / requests)).collect())
}

/// Parses the table of `strace -c -U calls,name`.
fn parse(table: &str) -> SortedMap<String, u64> {
    table
        .lines()
        .filter_map(|line| {
            let (count, name) = line.trim().split_once(char::is_whitespace)?;
            Some((name.trim().to_owned(), count.parse().ok()?))
        })
        .filter(|(name, _)| name != "total")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    #[test]
    fn a_damaged_table_is_survived() {
        Corpus::named("strace").is_survived_by_text(|text| drop(parse(text)));
    }

    #[test]
    fn a_table_is_read() {
        let table = "\
    calls syscall
--------- ----------------
     1000 epoll_wait
     2001 recvfrom
--------- ----------------
     3001 total
";
        let calls = parse(table);
        assert_eq!((calls.len(), calls["recvfrom"]), (2, 2001));
    }
}
