//! Reads the files that the agent and the hooks left in the folder: a record of each process, its text, and hooks'
//! answers.

use super::Runtime;
use scruple_stats::sorting;
use std::fs;
use std::path::Path;

/// The file in which the agent counts the programs that it could not follow: a number of 8 bytes.
pub(super) const NOT_FOLLOWED_FILE: &str = "not-followed";

/// The size of a record in bytes, as in agent.h.
const SIZE: usize = 8192;
const TEXT: usize = 512;
const SPILLED: u64 = u64::MAX;

/// The last state of a process that the agent saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessState {
    /// The process was still running at its last report: it was killed, or ended in a way that the agent does not
    /// see.
    Running,
    /// The process exited.
    Exited,
    /// The process executed another program.
    Executed,
}

/// The agent's record of one process.
#[derive(Clone, Debug)]
pub(super) struct AgentRecord {
    pub(super) runtime: Runtime,
    pub(super) pid: i32,
    pub(super) state: ProcessState,
    flags: u32,
    pub(super) values: Vec<u64>,
    pub(super) text: Vec<u8>,
    /// The start and end of each pause for a collection, in nanoseconds on the monotonic clock, if they were
    /// requested.
    pub(super) pauses: Vec<(u64, u64)>,
}

impl AgentRecord {
    /// A record for a forked process that has only a hook's answer.
    pub(super) fn of_fork(runtime: Runtime, pid: i32) -> AgentRecord {
        AgentRecord {
            runtime,
            pid,
            state: ProcessState::Exited,
            flags: 1,
            values: vec![0; 60],
            text: Vec::new(),
            pauses: Vec::new(),
        }
    }

    pub(super) fn forked(&self) -> bool {
        self.flags & 1 != 0
    }
    /// Whether this is a forked process that only executed another program, so that its runtime did nothing in it.
    pub(super) fn only_executed(&self) -> bool {
        self.forked() && self.state == ProcessState::Executed
    }
    pub(super) fn asked(&self) -> bool {
        self.flags & 2 != 0
    }
    pub(super) fn reported(&self) -> bool {
        self.flags & 4 != 0
    }
    pub(super) fn refused(&self) -> bool {
        self.flags & 16 != 0
    }
    /// Whether the allocators of CPython, which had counted in the parent, began this record in a forked process.
    pub(super) fn begun_by_child(&self) -> bool {
        self.flags & 64 != 0
    }
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }

    /// Why a process that should have reported its figures has not.
    pub(super) fn silence(&self) -> String {
        match self.state {
            ProcessState::Running => format!(
                "a {} process ended without reporting its figures: it was killed, or exited without ending its runtime",
                self.runtime.word()
            ),
            ProcessState::Executed => {
                format!(
                    "a {} process executed another program before it reported its figures",
                    self.runtime.word()
                )
            }
            ProcessState::Exited => {
                format!("a {} process exited without reporting its figures", self.runtime.word())
            }
        }
    }
}

/// The content of a file that a hook wrote: `<runtime>-<pid>-….txt` or `.json`.
#[derive(Clone, Debug)]
pub(super) struct HookFile {
    pub(super) runtime: Runtime,
    pub(super) pid: i32,
    pub(super) text: String,
}

/// All records and answers of a launch.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentOutput {
    pub(super) records: Vec<AgentRecord>,
    pub(super) answers: Vec<HookFile>,
    /// The number of programs that were started where the agent's library could not be read.
    pub(super) not_followed: u64,
}

/// The processes that have left a record so far.
pub(super) fn processes(folder: &Path) -> Vec<i32> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().ok();
    let names = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(name);
    let number = |name: String| name.strip_suffix(".record")?.split_once('-')?.0.parse().ok();
    names.filter_map(number).collect()
}

/// Reads the folder and removes the files that it read, so that the next launch starts with an empty folder.
pub(super) fn take(folder: &Path) -> AgentOutput {
    let mut left = AgentOutput::default();
    let Ok(entries) = fs::read_dir(folder) else { return left };
    for entry in entries.flatten() {
        let path = entry.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        match name.rsplit_once('.') {
            Some((_, "record")) => {
                let spilled = path.with_extension("text");
                let noted = path.with_extension("pauses");
                if let Some(mut record) = fs::read(&path).ok().and_then(|data| parse(&data, &spilled)) {
                    record.pauses = pauses(&fs::read(&noted).unwrap_or_default());
                    left.records.push(record);
                }
                let _ = fs::remove_file(&spilled);
                let _ = fs::remove_file(&noted);
            }
            Some((stem, "txt" | "json")) => {
                let mut words = stem.split('-');
                let runtime = words.next().and_then(Runtime::from_word);
                let text = fs::read_to_string(&path).ok();
                if let (Some(runtime), Some(text)) = (runtime, text) {
                    let pid = words.next().and_then(|pid| pid.parse().ok()).unwrap_or(0);
                    let pid = field(&text, "pid").map_or(pid, |pid| pid as i32);
                    left.answers.push(HookFile { runtime, pid, text });
                }
            }
            _ => continue,
        }
        let _ = fs::remove_file(&path);
    }
    let path = folder.join(NOT_FOLLOWED_FILE);
    let count = fs::read(&path).ok().and_then(|data| data.try_into().ok());
    left.not_followed = count.map_or(0, u64::from_ne_bytes);
    if left.not_followed > 0 {
        let _ = fs::write(&path, [0; 8]);
    }
    sorting::by_key(&mut left.records, |record| record.pid);
    left
}

fn parse(data: &[u8], spilled: &Path) -> Option<AgentRecord> {
    if data.len() < SIZE || !data.starts_with(b"SCRRT01") {
        return None;
    }
    let word = |at: usize| data[at..at + 4].try_into().map(u32::from_le_bytes).unwrap_or(0);
    let long = |at: usize| data[at..at + 8].try_into().map(u64::from_le_bytes).unwrap_or(0);
    let text = match long(TEXT - 8) {
        SPILLED => fs::read(spilled).unwrap_or_default(),
        size => data[TEXT..SIZE].get(..size as usize).unwrap_or_default().to_vec(),
    };
    Some(AgentRecord {
        runtime: Runtime::from_number(word(8))?,
        pid: word(12) as i32,
        state: match word(16) {
            0 => ProcessState::Running,
            1 => ProcessState::Exited,
            _ => ProcessState::Executed,
        },
        flags: word(20),
        values: (0..60).map(|i| long(24 + 8 * i)).collect(),
        text,
        pauses: Vec::new(),
    })
}

/// The pairs of start and end times, as the agent wrote them.
fn pauses(data: &[u8]) -> Vec<(u64, u64)> {
    let long = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    data.chunks_exact(16).map(|both| (long(&both[..8]), long(&both[8..]))).collect()
}

/// The number in a `name=number` line.
pub(super) fn field(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    fn record(runtime: u32, state: u32, flags: u32, text: &str) -> Vec<u8> {
        let mut data = vec![0; SIZE];
        data[..7].copy_from_slice(b"SCRRT01");
        data[8..12].copy_from_slice(&runtime.to_le_bytes());
        data[12..16].copy_from_slice(&42_u32.to_le_bytes());
        data[16..20].copy_from_slice(&state.to_le_bytes());
        data[20..24].copy_from_slice(&flags.to_le_bytes());
        data[24..32].copy_from_slice(&7_u64.to_le_bytes());
        data[TEXT - 8..TEXT].copy_from_slice(&(text.len() as u64).to_le_bytes());
        data[TEXT..TEXT + text.len()].copy_from_slice(text.as_bytes());
        data
    }

    #[test]
    fn a_folder_is_read_once() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("42-0.record"), record(4, 1, 6, "words: 3\n")).expect("written");
        let both: Vec<u8> = [5_u64, 8].iter().flat_map(|moment| moment.to_le_bytes()).collect();
        fs::write(folder.path().join("42-0.pauses"), both).expect("written");
        fs::write(folder.path().join("node-7-0.json"), "{}").expect("written");
        fs::write(folder.path().join("hook.cjs"), "").expect("written");
        let left = take(folder.path());
        assert_eq!((left.records.len(), left.answers.len()), (1, 1));
        let record = &left.records[0];
        assert_eq!((record.runtime, record.pid, record.values[0]), (Runtime::Ocaml, 42, 7));
        assert_eq!((record.text().as_str(), record.pauses.as_slice()), ("words: 3\n", &[(5, 8)][..]));
        assert!(record.reported() && record.asked() && !record.forked() && !record.refused());
        assert!(take(folder.path()).records.is_empty());
        assert!(folder.path().join("hook.cjs").exists() && !folder.path().join("42-0.pauses").exists());
    }

    #[test]
    fn a_torn_record_is_none() {
        assert!(parse(&record(1, 0, 0, "")[..100], Path::new("/nowhere")).is_none());
        assert!(parse(&record(99, 0, 0, ""), Path::new("/nowhere")).is_none());
        assert!(parse(&[0; SIZE], Path::new("/nowhere")).is_none());
    }

    #[test]
    fn damaged_records_are_survived() {
        let corpus = Corpus::default().with("a record", record(1, 1, 0, "some text"));
        corpus.is_survived_by(|bytes| {
            drop(parse(bytes, Path::new("/nonexistent")));
            drop(pauses(bytes));
        });
    }
}
