//! The launcher's main loop: it receives a request, runs the program, and sends the answer.

use super::follow_processes::Follower;
use super::go_processes::GoProcesses;
use super::spawn::{self, Spawned};
use super::{end_leftovers, kernel_accounts, peak_memory, wire};
use crate::launcher::{Ending, LaunchAnswer, LaunchResult};
use crate::process_stat::shows_own_namespace;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// Set by the handler of the signal that orders the launcher to end the running program.
pub(super) static STOP: AtomicBool = AtomicBool::new(false);

/// The id of the process that the launcher serves.
static PARENT: AtomicI32 = AtomicI32::new(0);

/// The period at which the timer wakes a waiting launcher once a limit has passed or the stop signal has come.
const TICK: Duration = Duration::from_millis(20);

/// Handles the stop signal. The timer makes sure that it takes effect even if it arrived just before a blocking call.
extern "C" fn on_stop(_signal: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
    set_timer(Some(TICK));
}

extern "C" fn on_tick(_signal: libc::c_int) {}

/// Serves launches until the other end closes the socket or the process `parent` has ended.
pub(super) fn serve(socket: BorrowedFd<'_>, parent: libc::pid_t) -> io::Result<()> {
    set_up(parent);
    // Figures of stopped processes are read from /proc.
    let can_read = shows_own_namespace();
    while let Some(mut request) = wire::receive_request(socket)? {
        request.options.trace_memory &= can_read;
        request.options.read_counters &= can_read;
        if orphaned() {
            return Ok(());
        }
        if STOP.swap(false, Ordering::Relaxed) {
            set_timer(None);
        }
        if request.options.trace_memory {
            peak_memory::forget_own_mark();
        }
        let pressure = kernel_accounts::pressure();
        let answer = match spawn::spawn(&request) {
            Ok(spawned) => {
                let outcome = follow(&spawned, &request, pressure);
                spawned.failure().map_or_else(|| LaunchAnswer::Ran(Box::new(outcome)), not_started)
            }
            Err(failure) => not_started(failure),
        };
        drop(request);
        wire::send_answer(socket, &answer)?;
    }
    Ok(())
}

fn not_started((step, error): (String, io::Error)) -> LaunchAnswer {
    LaunchAnswer::NotStarted { step, errno: error.raw_os_error().unwrap_or(0) }
}

/// Sets up the launcher process: it reaps orphans, ends with its parent, and ignores the terminal's signals.
fn set_up(parent: libc::pid_t) {
    PARENT.store(parent, Ordering::Relaxed);
    // SAFETY: plain system calls, and handlers that only store to an atomic and set a timer. Unlike ignored signals,
    // handlers are not inherited by executed programs, which therefore start with default handling of these signals.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
        libc::prctl(libc::PR_SET_NAME, c"scruple-launch".as_ptr());
        for (signal, handler) in [
            (libc::SIGTERM, on_stop as extern "C" fn(libc::c_int)),
            (libc::SIGINT, on_tick),
            (libc::SIGHUP, on_tick),
            (libc::SIGQUIT, on_tick),
            (libc::SIGALRM, on_tick),
        ] {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
}

/// Whether the process that the launcher serves has ended.
fn orphaned() -> bool {
    // SAFETY: a system call that cannot fail.
    unsafe { libc::getppid() != PARENT.load(Ordering::Relaxed) }
}

/// Starts a timer that interrupts blocking calls after `first` and then at every tick; `None` stops the timer.
fn set_timer(first: Option<Duration>) {
    let interval = |duration: Duration| libc::timeval {
        tv_sec: duration.as_secs() as libc::time_t,
        tv_usec: libc::suseconds_t::from(duration.subsec_micros().max(1)),
    };
    let (value, every) = match first {
        Some(first) => (interval(first), interval(TICK)),
        None => (libc::timeval { tv_sec: 0, tv_usec: 0 }, libc::timeval { tv_sec: 0, tv_usec: 0 }),
    };
    let timer = libc::itimerval { it_interval: every, it_value: value };
    // SAFETY: the timer value is initialised; the old one is not asked for.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()) };
}

/// The state of a running tree with respect to its limits: it is checked whenever a wait is interrupted.
struct TreeWatch<'a> {
    pid: libc::pid_t,
    started: Instant,
    request: &'a wire::LaunchRequest,
    ended_because: Option<Ending>,
    unshielded: bool,
    ending: end_leftovers::TreeEnding,
}

impl TreeWatch<'_> {
    /// Checks the limits, and kills or unshields the tree if one has passed.
    fn enforce_limits(&mut self) {
        let elapsed = self.started.elapsed();
        let options = &self.request.options;
        if self.ended_because.is_none() {
            if STOP.load(Ordering::Relaxed) || orphaned() {
                self.ended_because = Some(Ending::Interrupted);
            } else if options.time_limit.is_some_and(|limit| elapsed >= limit) {
                self.ended_because = Some(Ending::TimedOut);
            }
        }
        if self.ended_because.is_some() {
            self.ending.proceed(self.pid, options.grace());
            set_timer(Some(TICK));
        } else if let Some(shield) = &options.shield
            && !self.unshielded
            && elapsed >= shield.cap
        {
            self.unshielded = true;
            end_leftovers::unshield(self.pid);
        }
    }
}

/// Waits for the program and the processes that it leaves behind, and collects the kernel's accounts.
fn follow(spawned: &Spawned, request: &wire::LaunchRequest, pressure: Option<u64>) -> LaunchResult {
    let options = &request.options;
    let limit = options.time_limit.into_iter().chain(options.shield.as_ref().map(|shield| shield.cap)).min();
    if limit.is_some() {
        set_timer(limit);
    }
    let mut watch = TreeWatch {
        pid: spawned.pid,
        started: spawned.started,
        request,
        ended_because: None,
        unshielded: false,
        ending: end_leftovers::TreeEnding::default(),
    };
    // The stop signal may have arrived while the program was being started.
    watch.enforce_limits();
    let mut follower = Follower::of(spawned.pid, options);
    match &mut follower {
        Some(follower) => follower.until_exit(|| watch.enforce_limits()),
        None => spawn::wait_until_exit(spawned.pid, || watch.enforce_limits()),
    }
    let wall = spawned.started.elapsed();
    if limit.is_some() || watch.ended_because.is_some() {
        set_timer(None);
    }
    let scheduled = kernel_accounts::scheduled(spawned.pid);
    let (status, usage) = spawn::reap(spawned.pid);
    let mut outcome = outcome_of(wall, status, &usage);
    let behind = end_leftovers::end_what_is_left(
        spawned.pid,
        watch.ended_because.is_some(),
        options.grace(),
        follower.as_mut(),
    );
    outcome.user += behind.user;
    outcome.system += behind.system;
    outcome.left_behind = behind.ended;
    outcome.scheduled = scheduled;
    outcome.pressure =
        kernel_accounts::pressure().zip(pressure).and_then(|(after, before)| after.checked_sub(before));
    if let Some(mut follower) = follower {
        follower.reaped(spawned.pid, &usage);
        outcome.command_missing = follower.command_missing;
        outcome.seen = follower.programs.seen;
        outcome.memory = follower.memory.unwrap_or_default();
        outcome.exits = follower.go.map(GoProcesses::exits).unwrap_or_default();
    }
    outcome.unshielded = watch.unshielded;
    outcome.shield_refused = spawned.shield_refused();
    if let Some(because) = watch.ended_because {
        outcome.ending = because;
    }
    outcome
}

fn outcome_of(wall: Duration, status: libc::c_int, usage: &libc::rusage) -> LaunchResult {
    let ending = if libc::WIFSIGNALED(status) {
        Ending::Signaled(libc::WTERMSIG(status))
    } else {
        Ending::Exited(libc::WEXITSTATUS(status))
    };
    // The kernel counts block input and output in units of 512 bytes.
    LaunchResult {
        wall: wall.as_nanos() as u64,
        user: kernel_accounts::nanoseconds(usage.ru_utime),
        system: kernel_accounts::nanoseconds(usage.ru_stime),
        faults: (usage.ru_minflt as u64, usage.ru_majflt as u64),
        switches: (usage.ru_nvcsw as u64, usage.ru_nivcsw as u64),
        blocks: (usage.ru_inblock as u64 * 512, usage.ru_oublock as u64 * 512),
        resident: peak_memory::own_peak(usage),
        ..LaunchResult::ended(ending)
    }
}
