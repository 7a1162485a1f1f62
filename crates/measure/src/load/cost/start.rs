//! A server that Scruple starts and ends itself.

use crate::load::{Address, Target};
use crate::own_environment::withhold;
use std::ffi::OsString;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io};

/// How a server is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCommand {
    /// Program and arguments; at least the program.
    pub argv: Vec<OsString>,
    /// Variables added to Scruple's own environment.
    pub env: Vec<(OsString, OsString)>,
    /// The working folder; none for Scruple's own.
    pub folder: Option<PathBuf>,
}

/// A running server. Dropping it ends it and everything it started.
#[derive(Debug)]
pub struct Server {
    child: Child,
    ended: Option<ExitStatus>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// No program was named.
    #[error("no server was named: write its command behind --")]
    Nothing,
    /// It could not be started.
    #[error("cannot start {program}: {error}")]
    Start {
        /// The program.
        program: String,
        /// The system's error.
        error: io::Error,
    },
    /// Another program already answers there.
    #[error("something already listens at {0}: end it, or load it as it is, without a command behind ‘--’")]
    Occupied(String),
    /// It ended before it answered.
    #[error("the server ended ({how}) before it accepted a connection at {address}")]
    Ended {
        /// How it ended.
        how: String,
        /// Where a connection was expected.
        address: String,
    },
    /// It runs, but accepts no connection.
    #[error("the server runs, but after {seconds} s accepts no connection at {address}")]
    Deaf {
        /// How long it was given.
        seconds: u64,
        /// Where a connection was expected.
        address: String,
    },
    /// The user interrupted.
    #[error("interrupted while the server was starting")]
    Interrupted,
}

/// How long a server may take to end when asked to.
const GRACE: Duration = Duration::from_secs(5);

impl ServerCommand {
    /// A command without additions.
    pub fn of(argv: Vec<OsString>) -> ServerCommand {
        ServerCommand { argv, env: Vec::new(), folder: None }
    }

    /// Starts it, and waits until it accepts connections at one of the target's addresses.
    ///
    /// # Errors
    /// When it does not start, ends early, accepts no connection within `patience`, or `interrupted` is set meanwhile.
    pub fn start(
        &self,
        target: &Target,
        patience: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Server, ServerError> {
        self.start_heard(target, patience, interrupted, Stdio::null())
    }

    /// Like [`ServerCommand::start`], but with a standard error that is read.
    ///
    /// # Errors
    /// As for [`ServerCommand::start`].
    pub fn start_heard(
        &self,
        target: &Target,
        patience: Duration,
        interrupted: &AtomicBool,
        stderr: Stdio,
    ) -> Result<Server, ServerError> {
        let (program, arguments) = self.argv.split_first().ok_or(ServerError::Nothing)?;
        let address = target.addresses.first().map(Address::to_string).unwrap_or_default();
        if target.addresses.iter().any(accepts) {
            return Err(ServerError::Occupied(address));
        }
        let mut command = Command::new(program);
        withhold(&mut command);
        command.args(arguments).envs(self.env.iter().cloned()).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(stderr).process_group(0);
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
        let child = command
            .spawn()
            .map_err(|error| ServerError::Start { program: program.to_string_lossy().into_owned(), error })?;
        let mut server = Server { child, ended: None };
        let began = Instant::now();
        while began.elapsed() < patience {
            if target.addresses.iter().any(accepts) {
                return Ok(server);
            }
            // A server that goes into the background ends its first process with success.
            if let Some(status) = server.status()
                && !status.success()
            {
                return Err(ServerError::Ended { how: how(status), address });
            }
            if interrupted.load(Ordering::Relaxed) {
                return Err(ServerError::Interrupted);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        match server.status() {
            Some(status) => Err(ServerError::Ended { how: how(status), address }),
            None => Err(ServerError::Deaf { seconds: patience.as_secs(), address }),
        }
    }
}

impl Server {
    /// Its process.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// How it ended, if it has.
    pub fn status(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Asks it to end, waits, and kills it if it does not. Its instruments write their results in this time.
    pub fn stop(&mut self, signal: i32) -> Option<ExitStatus> {
        if self.status().is_none() {
            self.signal(signal);
            let began = Instant::now();
            while self.status().is_none() && began.elapsed() < GRACE {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let status = self.status();
        self.signal(libc::SIGKILL);
        if status.is_none() {
            self.ended = self.child.wait().ok();
        }
        // A process left by a wrapper may still listen, and keep the next server from its port.
        let began = Instant::now();
        while self.is_inhabited() && began.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.ended
    }

    /// Interrupts it, so that it ends in good order, and kills it if it does not. Servers that check for interruptions
    /// between requests are sent connections meanwhile.
    pub fn leave(&mut self, target: &Target) -> Option<ExitStatus> {
        if self.status().is_none() {
            self.signal(libc::SIGINT);
        }
        let began = Instant::now();
        while self.status().is_none() && began.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(20));
            let _ = target.addresses.iter().any(accepts);
        }
        self.stop(libc::SIGTERM)
    }

    /// Whether a process of its group still runs. One that has ended may take long to be reaped by others.
    fn is_inhabited(&self) -> bool {
        let own = self.pid().to_string();
        let runs = |stat: &str| {
            let mut fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split_whitespace();
            let state = fields.next();
            !matches!(state, None | Some("Z" | "X")) && fields.nth(1) == Some(own.as_str())
        };
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut stats = processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
        stats.any(|stat| runs(&stat))
    }

    /// Signals its whole process group, which it leads.
    fn signal(&self, signal: i32) {
        // SAFETY: plain system call; the group is the one that this server was started as.
        unsafe { libc::kill(-self.pid(), signal) };
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop(libc::SIGTERM);
    }
}

fn accepts(address: &Address) -> bool {
    match address {
        Address::Tcp(address) => TcpStream::connect_timeout(address, Duration::from_secs(1)).is_ok(),
        Address::Unix(path) => UnixStream::connect(path).is_ok(),
    }
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "for an unknown reason".to_owned(),
    }
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
        assert!(start(&["/no/such/program"]).contains("cannot start"));
        assert!(start(&["sh", "-c", "exit 3"]).contains("exit code 3"));
        assert!(start(&["sleep", "10"]).contains("accepts no connection"));
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
        let mut server = Server { child: command.spawn().expect("a shell"), ended: None };
        while server.status().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(server.is_inhabited(), "the shell has left two programs");
        assert!(server.stop(libc::SIGTERM).is_some_and(|status| status.success()));
        assert!(!server.is_inhabited());
    }
}
