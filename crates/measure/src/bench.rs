//! A running bench program: Scruple starts it with two pipes, sends requests line by line, and kills it when it does
//! not answer.

use crate::error_output::ErrorOutput;
use crate::heap::{self, HeapError};
use crate::launcher::Ending;
use crate::own_environment::withhold;
use crate::scheduler_waits::Threads;
use crate::terminal::separate;
use crate::thread_activity::{Activity, ThreadActivity};
use crate::{core_speed, process_stat, scheduler_waits, thread_activity};
use scruple_core::protocol::{BenchRequest, Case, ProgramError, Reply, Stalled};
use scruple_stats::sorting::SortedMap;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest reply line that is read, in bytes. A longer line violates the protocol.
const LONGEST_LINE: usize = 64 << 20;

/// Scruple waits up to this many times the limit for a program that had no core.
const HELD_UP: u32 = 10;

/// The largest number of times that the threads of a program without an answer are examined.
const LOOK: Duration = Duration::from_millis(1);

/// The time within which a program must end after it was asked to.
pub const END: Duration = Duration::from_secs(2);

/// A running bench program.
#[derive(Debug)]
pub struct BenchProgram {
    child: Child,
    requests: File,
    replies: OwnedFd,
    buffer: VecDeque<u8>,
    stderr: Arc<Mutex<ErrorOutput>>,
    reader: Option<std::thread::JoinHandle<()>>,
    heap: Option<heap::HeapSession>,
    /// The thread that stands for the program, and what all threads had done when it was chosen.
    worker: (u32, Option<Threads>),
    /// The last case that a request was about.
    case: Option<u32>,
}

/// A queue that makes no progress: the elements that it had moved, and what its threads have done since.
struct StandingQueue {
    moved: (u64, u64),
    activity: ThreadActivity,
}

/// Why a bench program gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The program could not be started.
    #[error("cannot start ‘{program}’: {error}")]
    NotStarted {
        /// The path of the program.
        program: String,
        /// The system's error.
        error: io::Error,
    },
    /// The program has ended.
    #[error("the program {how}{said}")]
    Ended {
        /// How the program ended, in words.
        how: String,
        /// What to show of the program's standard error, indented.
        said: String,
    },
    /// The program did not answer within the time limit.
    #[error("no answer within {} s{}", .limit.as_secs_f64(), what_it_did(*.activity))]
    Hangs {
        /// The time limit.
        limit: Duration,
        /// What the program did in its last part; `None` if the kernel does not report it.
        activity: Option<Activity>,
    },
    /// The answer does not follow the protocol.
    #[error("the answer to ‘{request}’ is not in the protocol: {line}")]
    Garbled {
        /// The request, shortened.
        request: String,
        /// The line of the answer, shortened.
        line: String,
    },
    /// The program reported an error.
    #[error("{}", .0.message())]
    Complained(ProgramError),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// Reading from or writing to the pipes failed.
    #[error("cannot communicate with the program: {0}")]
    Pipe(#[from] io::Error),
    /// The allocation counter could not be attached.
    #[error(transparent)]
    Heap(#[from] HeapError),
    /// The program's instructions could not be counted.
    #[error("{0}")]
    NotCounted(String),
}

/// The error for an answer that does not follow the protocol.
pub fn garbled(request: &str, why: impl Into<String>) -> BenchError {
    BenchError::Garbled { request: request.chars().take(60).collect(), line: why.into() }
}

fn what_it_did(activity: Option<Activity>) -> &'static str {
    match activity {
        Some(Activity::Blocked) => ": it was idle (a deadlock, or waiting for something)",
        Some(Activity::Busy) => ": it was busy all the time (a livelock, or just slow)",
        Some(Activity::HeldUp) => {
            ": a thread was stopped, or waited for a disk, or was ready to run but had no core"
        }
        None => "",
    }
}

/// How to start a bench program.
#[derive(Clone, Debug)]
pub struct BenchStart<'a> {
    /// The file to execute.
    pub path: &'a Path,
    /// The argument vector; its first element is the program's own name.
    pub argv: &'a [OsString],
    /// The number of bytes by which the environment is padded.
    pub padding: usize,
    /// If set, the allocation counter is attached and keeps its files in this folder.
    pub count_in: Option<&'a Path>,
    /// The variables that are added while allocations are counted.
    pub counting_env: Option<&'a SortedMap<String, String>>,
    /// The working folder; `None` means Scruple's own.
    pub folder: Option<&'a Path>,
    /// Variables that are added to Scruple's own environment.
    pub env: &'a [(OsString, OsString)],
    /// Whether `env` replaces Scruple's environment instead of being added to it.
    pub whole_env: bool,
}

impl BenchProgram {
    /// Starts the program and connects its pipes.
    pub fn start(start: &BenchStart<'_>) -> Result<BenchProgram, BenchError> {
        let (their_in, requests) = io::pipe()?;
        let (replies, their_out) = io::pipe()?;
        let mut command = Command::new(start.path);
        if let Some(name) = start.argv.first() {
            command.arg0(name);
        }
        command.args(start.argv.iter().skip(1));
        if let Some(folder) = start.folder {
            command.current_dir(folder);
        }
        if start.whole_env {
            command.env_clear();
        }
        withhold(&mut command);
        command.envs(start.env.iter().map(|(name, value)| (name, value)));
        command.env("SCRUPLE_BENCH_IN", format!("/dev/fd/{}", their_in.as_raw_fd()));
        command.env("SCRUPLE_BENCH_OUT", format!("/dev/fd/{}", their_out.as_raw_fd()));
        command.env_remove("SCRUPLE_BENCH_HAND");
        command.env("SCRUPLE_PADDING", "x".repeat(start.padding));
        let heap = match start.count_in {
            Some(folder) => {
                let session = heap::HeapSession::start(folder, heap::LiveBytes::Usable)?;
                command.envs(session.environment(std::env::var_os("LD_PRELOAD").as_deref()));
                command.envs(start.counting_env.into_iter().flatten());
                Some(session)
            }
            None => None,
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        separate(&mut command);
        let inherited = [their_in.as_raw_fd(), their_out.as_raw_fd()];
        // SAFETY: only async-signal-safe calls are made between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                for fd in inherited {
                    if libc::fcntl(fd, libc::F_SETFD, 0) < 0 {
                        return Err(io::Error::last_os_error());
                    }
                }
                Ok(())
            });
        }
        let program = start.path.display().to_string();
        let mut child = command.spawn().map_err(|error| BenchError::NotStarted { program, error })?;
        let stderr = Arc::new(Mutex::new(ErrorOutput::default()));
        let reader = child.stderr.take().map(|stream| {
            let kept = stderr.clone();
            std::thread::spawn(move || ErrorOutput::keep(stream, &kept))
        });
        let requests = File::from(OwnedFd::from(requests));
        let worker = (child.id(), None);
        Ok(BenchProgram {
            child,
            worker,
            case: None,
            requests,
            replies: replies.into(),
            buffer: VecDeque::new(),
            stderr,
            reader,
            heap,
        })
    }

    /// Sends a request and reads one reply. An error that the program reports is returned as an error.
    pub fn ask(
        &mut self,
        request: &BenchRequest,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Reply, BenchError> {
        self.send(request)?;
        let reply = self.next_reply(&request.line(), limit, interrupted);
        match reply {
            // A child process that another case has forked may answer late.
            Err(BenchError::Complained(complaint)) if request.is_not_about(complaint.id) => Err(garbled(
                &request.line(),
                format!("it is an error of another case: {}", complaint.message()),
            )),
            reply => reply,
        }
    }

    /// Sends a request without waiting for the reply. Error output for another case is discarded, so that it is not
    /// shown if this one fails.
    pub fn send(&mut self, request: &BenchRequest) -> Result<(), BenchError> {
        if request.is_not_about(self.case) {
            *self.stderr.lock().unwrap_or_else(PoisonError::into_inner) = ErrorOutput::default();
        }
        self.case = request.case().or(self.case);
        let line = format!("{}\n", request.line());
        self.requests.write_all(line.as_bytes()).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => self.ended(),
            _ => error.into(),
        })
    }

    /// Reads a further reply to a request that has several.
    pub fn next_reply(
        &mut self,
        request: &str,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Reply, BenchError> {
        if interrupted.load(Ordering::Relaxed) {
            return Err(BenchError::Interrupted);
        }
        let (began, mut stall) = (Instant::now(), None);
        loop {
            let line = self.line(began, limit, interrupted)?;
            match parse(&line) {
                Ok(Reply::Error(complaint)) => return Err(BenchError::Complained(complaint)),
                Ok(Reply::Stalled(stalled)) => self.judge_stall(&stalled, &mut stall)?,
                Ok(reply) => return Ok(reply),
                Err(_) => {
                    let text: String = String::from_utf8_lossy(&line).chars().take(160).collect();
                    return Err(garbled(request, format!("‘{}’", text.trim_end())));
                }
            }
        }
    }

    /// Ends a program whose threads make no progress although nothing keeps them from running. `stall` is what was
    /// known when the program last reported the stall.
    fn judge_stall(
        &mut self,
        stalled: &Stalled,
        stall: &mut Option<StandingQueue>,
    ) -> Result<(), BenchError> {
        let moved = (stalled.put, stalled.got);
        let Some(stall) = stall.as_mut().filter(|stall| stall.moved == moved) else {
            *stall = ThreadActivity::begin(self.child.id()).map(|activity| StandingQueue { moved, activity });
            return Ok(());
        };
        let Some(seen) = stall.activity.observe() else { return Ok(()) };
        // On a busy machine, the program may have gone on before it was observed, and then rests after its reply.
        self.fill(Duration::ZERO)?;
        if !self.buffer.is_empty() {
            return Ok(());
        }
        let kind = match seen.activity {
            Activity::HeldUp => return Ok(()),
            Activity::Blocked => "deadlock",
            Activity::Busy => "livelock",
        };
        self.kill();
        let error = format!(
            "no progress for {:.1} s: {} put, {} got, {:.2} s of CPU used in the last {:.1} s",
            stalled.seconds,
            stalled.put,
            stalled.got,
            seen.ran.as_secs_f64(),
            seen.of.as_secs_f64()
        );
        let complaint = ProgramError { error, kind: kind.to_owned(), id: Some(stalled.stalled), fatal: true };
        Err(BenchError::Complained(complaint))
    }

    /// Asks the program to end, and kills it if it does not end soon.
    pub fn finish(self) {
        self.finish_within(END);
    }

    /// Asks the program to end, waits, and returns how it ended; a program that does not end in time is killed.
    pub fn finish_within(mut self, limit: Duration) -> Option<ExitStatus> {
        self.send(&BenchRequest::Bye).ok()?;
        self.wait_for_end(limit)
    }

    /// Waits for a program that was asked to end, and returns how it ended; a program that does not end in time is
    /// killed.
    pub fn wait_for_end(mut self, limit: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        let mut pause = Duration::from_micros(100);
        while began.elapsed() < limit {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(Duration::from_millis(1));
        }
        None
    }

    /// Whether the program has loaded the allocation counter; `None` if the counter was not requested.
    pub fn counted(&self) -> Option<Result<(), HeapError>> {
        self.heap.as_ref().map(|session| session.read().map(|_| ()))
    }

    /// The length in nanoseconds of one cycle of the core on which the program last ran; see [`core_speed`]. The thread
    /// that ran most since the previous call stands for the program.
    pub fn cycle(&mut self) -> Option<f64> {
        if let Some(now) = self.threads() {
            let busiest = self.worker.1.as_ref().and_then(|before| now.busiest_since(before));
            self.worker = (busiest.unwrap_or(self.worker.0), Some(now));
        }
        core_speed::cycle_beside(self.child.id(), self.worker.0)
    }

    /// The time of a fixed piece of work on the core on which the program last ran, which shows whether the core is
    /// shared with a neighbour; see [`core_speed`].
    pub fn witness(&self) -> Option<f64> {
        core_speed::witness_beside(self.child.id(), self.worker.0)
    }

    /// Whether a thread of the program runs, although it has answered: a collector or a compiler.
    pub fn is_running(&self) -> bool {
        thread_activity::ready_threads(self.child.id()).is_some_and(|ready| !ready.is_empty())
    }

    /// The scheduler's record of the program's threads; `None` where the kernel keeps none.
    pub fn threads(&self) -> Option<Threads> {
        scheduler_waits::threads(self.child.id())
    }

    /// The number of the program's page faults so far that read nothing from a disk.
    pub fn page_faults(&self) -> Option<u64> {
        process_stat::page_faults(self.child.id() as i32)
    }

    /// Reads a line of the reply to a request that was sent when `began` says.
    fn line(
        &mut self,
        began: Instant,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Vec<u8>, BenchError> {
        let (mut activity, mut look): (Option<ThreadActivity>, _) = (None, limit / 2);
        let mut searched = 0;
        loop {
            if let Some(end) = self.buffer.iter().skip(searched).position(|byte| *byte == b'\n') {
                return Ok(self.buffer.drain(..=searched + end).collect());
            }
            searched = self.buffer.len();
            if searched > LONGEST_LINE {
                let line = "a line of over 64 MiB".to_owned();
                return Err(BenchError::Garbled { request: "…".to_owned(), line });
            }
            if interrupted.load(Ordering::Relaxed) {
                return Err(BenchError::Interrupted);
            }
            let elapsed = began.elapsed();
            if elapsed >= look {
                let seen = activity.as_mut().and_then(ThreadActivity::observe).map(|seen| seen.activity);
                let longest =
                    if seen == Some(Activity::HeldUp) { limit.saturating_mul(HELD_UP) } else { limit };
                if look >= limit && elapsed >= longest {
                    self.fill(Duration::ZERO)?;
                    if self.buffer.len() > searched {
                        continue;
                    }
                    self.kill();
                    return Err(BenchError::Hangs { limit: longest, activity: seen });
                }
                activity = activity.or_else(|| ThreadActivity::begin(self.child.id()));
                // A program that was held up gets the whole limit again, from when it may run again.
                look = if look < limit { limit } else { look + limit.max(LOOK) };
            }
            let next = look.saturating_sub(elapsed);
            self.fill(next.min(Duration::from_millis(200)))?;
        }
    }

    /// Waits for bytes and reads what is available.
    fn fill(&mut self, wait: Duration) -> Result<(), BenchError> {
        let mut poll = libc::pollfd { fd: self.replies.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd is passed with the count 1.
        let ready = unsafe { libc::poll(&mut poll, 1, wait.as_millis().max(1) as i32) };
        if ready <= 0 {
            return Ok(());
        }
        let mut chunk = [0_u8; 65536];
        // SAFETY: the pointer and length describe `chunk`.
        let count = unsafe { libc::read(self.replies.as_raw_fd(), chunk.as_mut_ptr().cast(), chunk.len()) };
        match count {
            0 => Err(self.ended()),
            count if count > 0 => {
                self.buffer.extend(&chunk[..count as usize]);
                Ok(())
            }
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Ok(()),
            _ => Err(io::Error::last_os_error().into()),
        }
    }

    fn ended(&mut self) -> BenchError {
        let began = Instant::now();
        let mut status = None;
        while status.is_none() && began.elapsed() < Duration::from_secs(2) {
            status = self.child.try_wait().ok().flatten();
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut how = status.map_or_else(
            || "closed its end of the pipe".to_owned(),
            |status| Ending::from(status).to_string(),
        );
        if !self.buffer.is_empty() {
            how.push_str(", in the middle of a line");
        }
        // The program's last output may not have arrived yet. The wait is limited, because a process that the program
        // left behind may keep the pipe open.
        let is_reading = || self.reader.as_ref().is_some_and(|reader| !reader.is_finished());
        while is_reading() && began.elapsed() < Duration::from_secs(3) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let shown = self.stderr.lock().map(|kept| kept.shown()).unwrap_or_default();
        let said = if shown.is_empty() { shown } else { format!("; its error output:{shown}") };
        BenchError::Ended { how, said }
    }

    fn kill(&mut self) {
        // SAFETY: the process group is the child's own, made at its start.
        unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
        let _ = self.child.wait();
    }
}

impl Drop for BenchProgram {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Parses a reply. A case is recognised by its first bytes, which is fast: a program may list a million cases.
fn parse(line: &[u8]) -> Result<Reply, serde_json::Error> {
    #[derive(serde::Deserialize)]
    struct ListedCase {
        case: Box<Case>,
    }
    let line = std::str::from_utf8(line).map_err(serde::de::Error::custom)?;
    match line.starts_with(r#"{"case":"#) {
        true => serde_json::from_str::<ListedCase>(line).map(|listed| Reply::Case { case: listed.case }),
        false => serde_json::from_str(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    #[test]
    fn damaged_replies_are_survived() {
        Corpus::named("protocol").is_survived_by(|text| {
            text.split(|byte| *byte == b'\n').for_each(|line| drop(parse(line)));
        });
    }
}
