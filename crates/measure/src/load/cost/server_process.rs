//! Starts and ends a server for a measurement.

use super::patience::{self, Patience};
use crate::descendants::descendants;
use crate::error_output::shown_lines;
use crate::launcher::Ending;
use crate::load::listener::listening_at;
use crate::load::{Address, Target, socket};
use crate::own_environment::withhold;
use crate::process_stat::{ProcessStat, is_alive, parent};
use crate::program::{NotFound, Program};
use crate::terminal::separate;
use std::ffi::OsString;
use std::io;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The command that starts a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCommand {
    /// The program and its arguments; the program must be there.
    pub argv: Vec<OsString>,
    /// Variables added to Scruple's own environment.
    pub env: Vec<(OsString, OsString)>,
    /// The working folder; `None` means Scruple's own.
    pub folder: Option<PathBuf>,
}

/// A running server. Dropping it ends the server and everything it started.
#[derive(Debug)]
pub struct StartedServer {
    child: Child,
    ended: Option<ExitStatus>,
    /// The processes that it had when it accepted connections. A server that goes into the background leaves its
    /// process group.
    known: Vec<i32>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The command line is empty.
    #[error("no server was named: write its command after --")]
    NoCommand,
    /// The program was not found.
    #[error("{0}")]
    NoProgram(#[from] NotFound),
    /// The program could not be started.
    #[error("cannot start ‘{program}’: {error}")]
    Start {
        /// The program.
        program: String,
        /// The system's error.
        error: io::Error,
    },
    /// Another program already accepts connections at the address.
    #[error("something already listens at {0}: end it, or load it as it is, without a command after ‘--’")]
    Occupied(String),
    /// The server ended before it accepted a connection.
    #[error("the server {how} before it accepted a connection at {address}{output}")]
    Ended {
        /// How the server ended, in words.
        how: Ending,
        /// The address at which a connection was expected.
        address: String,
        /// The end of the server's output, as the end of a sentence; empty if there was none.
        output: String,
    },
    /// The first process ended with success, as that of a server that goes into the background, but left none there.
    #[error(
        "the command ended without an error and left no process running, and nothing accepts connections at {address}"
    )]
    NothingLeft {
        /// The address at which a connection was expected.
        address: String,
    },
    /// The server runs, but accepts no connection.
    #[error("the server runs, but after {seconds} s accepts no connection at {address}")]
    NotAccepting {
        /// How long the server was given, in seconds.
        seconds: u64,
        /// The address at which a connection was expected.
        address: String,
    },
    /// The user interrupted.
    #[error("interrupted while the server was starting")]
    Interrupted,
}

/// How long a program other than the server's own processes, such as a service manager that the command asked to start
/// the server, may take to accept connections after the command has ended.
const ELSEWHERE: Duration = Duration::from_secs(1);

/// How long a server that has ended at its start may run when it is started again for its output.
const AGAIN: Duration = Duration::from_secs(5);

/// How long a server may take to end after a signal.
const GRACE: Duration = Duration::from_secs(5);

/// How long after its first connection a server may begin to go into the background: it listens before it forks.
const SETTLING: Duration = Duration::from_millis(50);

/// How long the command of a server that goes into the background may run after the server accepts connections.
const BACKGROUND: Duration = Duration::from_millis(500);

/// The largest part of a server's output that is read, in bytes.
const MOST_OUTPUT: u64 = 64 << 10;

impl ServerCommand {
    /// A command without variables, in Scruple's own folder.
    pub fn of(argv: Vec<OsString>) -> ServerCommand {
        ServerCommand { argv, env: Vec::new(), folder: None }
    }

    /// The program, as the command names it.
    ///
    /// # Errors
    /// The command is empty, or the program does not exist.
    pub fn program(&self) -> Result<&OsString, ServerError> {
        let program = self.argv.first().ok_or(ServerError::NoCommand)?;
        Program::find(program, self.folder.as_deref().unwrap_or(Path::new(".")))?;
        Ok(program)
    }

    /// Starts the server, and waits until it accepts connections at one of the target's addresses.
    ///
    /// # Errors
    /// Fails if the server does not start, ends early or accepts no connection within `patience`, which its waits for a
    /// core extend, or if `interrupted` becomes true.
    pub fn start(
        &self,
        target: &Target,
        patience: Duration,
        interrupted: &AtomicBool,
    ) -> Result<StartedServer, ServerError> {
        match self.start_with_stderr(target, patience, interrupted, Stdio::null()) {
            Err(ServerError::Ended { how, address, .. }) => {
                Err(ServerError::Ended { how, address, output: self.output_of_another_start() })
            }
            other => other,
        }
    }

    /// Starts a server that has failed once more, and returns what to show of its output. While servers are measured,
    /// their output is discarded, because reading it would take time from their core.
    fn output_of_another_start(&self) -> String {
        let again = || -> io::Result<Vec<u8>> {
            let (sender, receiver) = mpsc::channel();
            let (reader, writer) = io::pipe()?;
            let child = self.spawn(writer.try_clone()?.into(), writer.into())?;
            let mut server = StartedServer { child, ended: None, known: Vec::new() };
            std::thread::spawn(move || {
                let mut output = Vec::new();
                let read = reader.take(MOST_OUTPUT).read_to_end(&mut output);
                sender.send(read.map(|_| output))
            });
            let began = Instant::now();
            while server.status().is_none() && began.elapsed() < AGAIN {
                std::thread::sleep(Duration::from_millis(5));
            }
            // A process that the server left behind keeps the pipe open until it is ended.
            drop(server);
            receiver.recv_timeout(ELSEWHERE).map_err(io::Error::other)?
        };
        let output = again().unwrap_or_default();
        match shown_lines(&output) {
            shown if shown.is_empty() => shown,
            shown => format!("; its output:{shown}"),
        }
    }

    /// Starts the process, without waiting for connections.
    fn spawn(&self, stdout: Stdio, stderr: Stdio) -> io::Result<Child> {
        let (program, arguments) = self.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        withhold(&mut command);
        command.args(arguments).envs(self.env.iter().cloned()).stdin(Stdio::null()).stdout(stdout);
        command.stderr(stderr);
        separate(&mut command);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        // SAFETY: between fork and exec only this one system call is made.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        command.spawn()
    }

    /// Like [`ServerCommand::start`], with a destination for the server's standard error.
    ///
    /// # Errors
    /// Fails as [`ServerCommand::start`] does.
    pub fn start_with_stderr(
        &self,
        target: &Target,
        patience: Duration,
        interrupted: &AtomicBool,
        stderr: Stdio,
    ) -> Result<StartedServer, ServerError> {
        let program = self.program()?;
        let address = target.addresses.first().map(Address::to_string).unwrap_or_default();
        if target.addresses.iter().any(accepts) {
            return Err(ServerError::Occupied(address));
        }
        // Processes that a server leaves in the background become children of this process then, and are known.
        // SAFETY: plain system call.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
        let own = std::process::id() as i32;
        let others = descendants(own);
        let child = self
            .spawn(Stdio::null(), stderr)
            .map_err(|error| ServerError::Start { program: program.to_string_lossy().into_owned(), error })?;
        let mut server = StartedServer { child, ended: None, known: Vec::new() };
        let wait = Patience::begin(server.pid(), patience);
        let mut alone_since = None;
        while !wait.is_over() {
            if target.addresses.iter().any(accepts) {
                server.wait_for_background();
                server.known = server.found(target, &others);
                return Ok(server);
            }
            // The first process of a server that goes into the background ends with success.
            if let Some(status) = server.status() {
                if !status.success() {
                    return Err(ServerError::Ended { how: status.into(), address, output: String::new() });
                }
                let is_left = descendants(own).iter().any(|pid| !others.contains(pid) && is_alive(*pid));
                if !is_left && alone_since.get_or_insert_with(Instant::now).elapsed() >= ELSEWHERE {
                    return Err(ServerError::NothingLeft { address });
                }
            }
            if interrupted.load(Ordering::Relaxed) {
                return Err(ServerError::Interrupted);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        match server.status() {
            Some(status) => Err(ServerError::Ended { how: status.into(), address, output: String::new() }),
            None => Err(ServerError::NotAccepting { seconds: patience.as_secs(), address }),
        }
    }
}

impl StartedServer {
    /// The id of the server's first process, or, if that has ended, of the one that it left in the background.
    pub fn pid(&self) -> i32 {
        if is_alive(self.group()) {
            return self.group();
        }
        self.outside().first().copied().unwrap_or(self.group())
    }

    /// The id of the first process, which is that of its group.
    fn group(&self) -> i32 {
        self.child.id() as i32
    }

    /// The processes below the first one, and those of the listener that it left in the background: not one of `others`,
    /// which this process had before, nor of what it has started since for another purpose.
    fn found(&self, target: &Target, others: &[i32]) -> Vec<i32> {
        let own = std::process::id() as i32;
        let mut found = descendants(self.group());
        let all = descendants(own);
        let mut top = listening_at(target).filter(|pid| all.contains(pid) && !others.contains(pid));
        while let Some(above) = top.and_then(parent).filter(|above| all.contains(above)) {
            top = Some(above);
        }
        // A process that is listed twice would get each signal twice, and a server may take the second signal for an
        // order to end at once.
        if let Some(top) = top.filter(|top| *top != self.group()) {
            found.push(top);
            found.extend(descendants(top));
        }
        found
    }

    /// Waits until the first process has ended if it seems to put the server into the background: a process below it
    /// is in a session of its own.
    fn wait_for_background(&mut self) {
        let began = Instant::now();
        let session = |pid: i32| ProcessStat::of(pid).and_then(|stat| stat.field::<i32>(6));
        let group = self.group();
        let own = session(group);
        let leaves = |pid: &i32| session(*pid).is_some_and(|other| Some(other) != own);
        let may_leave = |waited: Duration| {
            waited < SETTLING || waited < BACKGROUND && descendants(group).iter().any(leaves)
        };
        while self.status().is_none() && may_leave(began.elapsed()) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The living processes that the server left in the background, outside of its group, without those below them.
    fn outside(&self) -> Vec<i32> {
        let own = std::process::id() as i32;
        let is_outside = |pid: &i32| {
            let stat = ProcessStat::of(*pid).filter(ProcessStat::is_alive);
            stat.is_some_and(|stat| stat.field(4) == Some(own) && stat.field(5) != Some(self.group()))
        };
        self.known.iter().copied().filter(is_outside).collect()
    }

    /// Whether no process of the server runs any more, except for those that its first process left in its group.
    fn is_over(&mut self) -> bool {
        self.status().is_some() && self.outside().is_empty()
    }

    /// How the first process ended; `None` while it runs.
    pub fn status(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Sends the signal, waits for the server's end, and kills it if it does not end in time. Instruments in the
    /// server write their results meanwhile.
    pub fn stop(&mut self, signal: i32) -> Option<ExitStatus> {
        if !self.is_over() {
            self.signal(signal);
            let patience = Patience::begin(self.group(), GRACE);
            while !self.is_over() && !patience.is_over() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let status = self.status();
        let below: Vec<i32> = self.outside().into_iter().flat_map(descendants).collect();
        self.signal(libc::SIGKILL);
        below.into_iter().for_each(|pid| send(pid, libc::SIGKILL));
        if status.is_none() {
            self.ended = self.child.wait().ok();
        }
        // A process that a wrapper left behind may still listen, and occupy the port of the next server.
        let patience = Patience::begin(self.group(), GRACE);
        while self.is_inhabited() && !patience.is_over() {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.ended
    }

    /// Interrupts the server so that it shuts down properly, and kills it if it does not. Some servers check for
    /// interruptions only between requests, so connections are made meanwhile.
    pub fn leave(&mut self, target: &Target) -> Option<ExitStatus> {
        if !self.is_over() {
            self.signal(libc::SIGINT);
        }
        let patience = Patience::begin(self.group(), GRACE);
        while !self.is_over() && !patience.is_over() {
            std::thread::sleep(Duration::from_millis(20));
            let _ = target.addresses.iter().any(accepts);
        }
        self.stop(libc::SIGTERM)
    }

    /// Whether a process of the server still runs.
    fn is_inhabited(&self) -> bool {
        patience::members(self.group()).next().is_some() || !self.outside().is_empty()
    }

    /// Sends a signal to the server's process group, which its first process leads, and to what it left in the
    /// background.
    fn signal(&self, signal: i32) {
        send(-self.group(), signal);
        self.outside().into_iter().for_each(|pid| send(pid, signal));
    }
}

/// Sends a signal to a process or, if the number is negative, to a group.
pub(super) fn send(to: i32, signal: i32) {
    // SAFETY: plain system call; the group or process is one that a server was started as, that it started, or that
    // observes it and has not been waited for.
    unsafe { libc::kill(to, signal) };
}

impl Drop for StartedServer {
    fn drop(&mut self) {
        self.stop(libc::SIGTERM);
    }
}

fn accepts(address: &Address) -> bool {
    socket::accepts(address, Duration::from_secs(1)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn servers_that_do_not_serve_are_named() {
        let (target, _) = Target::parse("http://127.0.0.1:9/").expect("a target");
        let start = |argv: &[&str]| {
            ServerCommand::of(words(argv))
                .start(&target, Duration::from_millis(300), &AtomicBool::new(false))
                .expect_err("no server")
                .to_string()
        };
        assert!(start(&[]).contains("no server was named"));
        assert!(start(&["/no/such/program"]).contains("there is no file ‘/no/such/program’"));
        assert!(start(&["sh", "-c", "exit 3"]).contains("exited with code 3"));
        assert!(start(&["sleep", "10"]).contains("accepts no connection"));
    }

    #[test]
    fn a_command_that_leaves_nothing_running_is_not_waited_for() {
        let (target, _) = Target::parse("http://127.0.0.1:9/").expect("a target");
        // Far longer than any test may take.
        let patience = Duration::from_secs(100_000);
        let start = |command: &str| {
            let command = ServerCommand::of(words(&["sh", "-c", command]));
            command.start(&target, patience, &AtomicBool::new(false)).expect_err("no server")
        };
        let error = start("exit 0");
        assert!(matches!(error, ServerError::NothingLeft { .. }), "{error}");
        // A process that was left in its own session ends later, and the test waits for it.
        let began = Instant::now();
        let error = start("setsid sleep 2 & exit 0");
        assert!(matches!(error, ServerError::NothingLeft { .. }), "{error}");
        assert!(began.elapsed() >= Duration::from_secs(2));
    }

    #[test]
    fn the_wait_for_a_server_can_be_interrupted() {
        let (target, _) = Target::parse("http://127.0.0.1:9/").expect("a target");
        let command = ServerCommand::of(words(&["sleep", "1000"]));
        let error = command.start(&target, Duration::from_secs(1000), &AtomicBool::new(true));
        assert!(matches!(error, Err(ServerError::Interrupted)), "{error:?}");
    }

    #[test]
    fn nothing_of_a_server_runs_once_it_was_stopped() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & sleep 600 & exit 0"]).process_group(0);
        let mut server =
            StartedServer { child: command.spawn().expect("a shell"), ended: None, known: Vec::new() };
        while server.status().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(server.is_inhabited(), "the shell has left two programs");
        assert!(server.stop(libc::SIGTERM).is_some_and(|status| status.success()));
        assert!(!server.is_inhabited());
    }

    /// A server that a shell starts in a session of its own, before it does what `then` says.
    fn in_a_session_of_its_own(then: &str) -> (StartedServer, Target) {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.expect("a free port").port();
        let (target, _) = Target::parse(&format!("http://127.0.0.1:{port}/")).expect("a target");
        let serve = format!("setsid python3 -m http.server --bind 127.0.0.1 {port} & {then}");
        let server = ServerCommand::of(words(&["sh", "-c", &serve])).start(
            &target,
            Duration::from_secs(1000),
            &AtomicBool::new(false),
        );
        (server.expect("a server"), target)
    }

    #[test]
    fn each_process_of_a_server_gets_a_signal_once() {
        let (server, _) = in_a_session_of_its_own("wait");
        let mut once = server.known.clone();
        once.sort_unstable();
        once.dedup();
        assert!(!once.is_empty() && once.len() == server.known.len(), "{:?}", server.known);
    }

    #[test]
    fn a_server_in_the_background_is_known_and_ended() {
        let (mut server, target) = in_a_session_of_its_own("exit 0");
        while server.status().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let pid = server.pid();
        assert!(pid != server.group() && is_alive(pid));
        // Another thread of this process may start programs for another purpose meanwhile.
        let mut unrelated = Command::new("sleep").arg("600").process_group(0).spawn().expect("sleep");
        assert!(server.found(&target, &[]).iter().all(|pid| *pid != unrelated.id() as i32));
        let _ = unrelated.kill().and_then(|()| unrelated.wait().map(|_| ()));
        drop(server);
        assert!(!is_alive(pid), "it still runs");
    }
}
