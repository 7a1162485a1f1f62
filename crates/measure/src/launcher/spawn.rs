//! Starting one program with as little as possible between the clock and its first instruction.

use super::wire::Request;
use crate::launch::Shield;
use std::ffi::{c_char, c_int, c_void};
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::Instant;

/// A process that has been made, and will execute its program if it can.
pub(super) struct Spawned {
    pub(super) pid: libc::pid_t,
    pub(super) started: Instant,
    child: Box<Child>,
    // The child stands on it until it executes its program.
    _stack: Vec<u8>,
}

impl Spawned {
    /// The step at which the start failed, if it did. To be asked after the process has ended.
    pub(super) fn failure(&self) -> Option<(String, io::Error)> {
        // SAFETY: both fields belong to `child`; another process wrote them, which the compiler must not overlook.
        let (errno, step) = unsafe {
            (
                ptr::read_volatile(&raw const self.child.errno),
                ptr::read_volatile(&raw const self.child.failed_step),
            )
        };
        (errno != 0).then(|| (STEPS[step.min(2)].to_owned(), io::Error::from_raw_os_error(errno)))
    }

    /// Why the shield could not be raised, if so. To be asked after the process has ended.
    pub(super) fn shield_refused(&self) -> Option<String> {
        // SAFETY: as above.
        let errno = unsafe { ptr::read_volatile(&raw const self.child.shield_errno) };
        (errno != 0).then(|| io::Error::from_raw_os_error(errno).to_string())
    }
}

/// The steps of a start, so that a failure can be named.
const STEPS: [&str; 3] = ["enter its working folder", "connect its standard streams", "execute it"];

/// All that the child needs, laid out before the clock starts; the child shares our memory until it executes.
struct Child {
    path: *const c_char,
    folder: *const c_char,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    stdio: [c_int; 3],
    fixed_addresses: bool,
    traced: bool,
    own_group: bool,
    shield: Option<(libc::cpu_set_t, bool)>,
    shield_errno: c_int,
    failed_step: usize,
    errno: c_int,
}

const STACK: usize = 256 * 1024;
const TOUCHED: usize = 16 * 1024;

/// Starts the program. The clone shares memory, so that the cost of the start does not depend on anyone's size, and has
/// a stack of its own. We are not suspended until the exec, as vfork would have it: being woken in the middle of the
/// start and going back to sleep costs the program's own time. Until the process has ended we only wait for it.
pub(super) fn spawn(request: &Request) -> Result<Spawned, (String, io::Error)> {
    let mut child = Box::new(lay_out(request));
    let mut stack = vec![0_u8; STACK];
    // The pages that the child will stand on are there before the clock starts.
    stack[STACK - TOUCHED..].fill(1);
    // SAFETY: the pointer is one past the end of `stack`, aligned down to 16; `child` and `stack` go into the result,
    // which is kept until the process has ended, so they outlive its use of them.
    let (pid, started) = unsafe {
        let top = stack.as_mut_ptr().add(STACK);
        let top = top.sub(top as usize % 16);
        let started = Instant::now();
        let flags = libc::CLONE_VM | libc::SIGCHLD;
        (libc::clone(run_child, top.cast(), flags, (&raw mut *child).cast()), started)
    };
    match pid {
        -1 => Err(("become a process".to_owned(), io::Error::last_os_error())),
        pid => Ok(Spawned { pid, started, child, _stack: stack }),
    }
}

fn lay_out(request: &Request) -> Child {
    let mut strings =
        request.strings.split_inclusive(|byte| *byte == 0).map(|part| part.as_ptr().cast::<c_char>());
    let path = strings.next().unwrap_or(c"".as_ptr());
    let folder = strings.next().unwrap_or(c"".as_ptr());
    let mut argv: Vec<*const c_char> = strings.by_ref().take(request.arguments).collect();
    argv.push(ptr::null());
    let mut env: Vec<*const c_char> = strings.collect();
    env.push(ptr::null());
    Child {
        path,
        folder,
        argv,
        env,
        stdio: [0, 1, 2].map(|i| request.stdio[i].as_raw_fd()),
        fixed_addresses: request.options.fixed_addresses,
        traced: request.options.trace_memory || request.options.read_counters,
        // A program that reads from a terminal must stay in the group that the terminal listens to.
        // SAFETY: asks about a descriptor that we own.
        own_group: unsafe { libc::isatty(request.stdio[0].as_raw_fd()) } == 0,
        shield: request.options.shield.as_ref().map(core_set),
        shield_errno: 0,
        failed_step: 0,
        errno: 0,
    }
}

fn core_set(shield: &Shield) -> (libc::cpu_set_t, bool) {
    // SAFETY: an all-zero set is the empty set; CPU_SET is given cores within the set's size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for core in shield.cores.iter().filter(|core| **core < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(*core, &mut set);
        }
        (set, !shield.cores.is_empty())
    }
}

/// The child between clone and exec: system calls only, no allocation, nothing that could unwind.
extern "C" fn run_child(argument: *mut c_void) -> c_int {
    // SAFETY: the argument is the `Child` that the parent keeps and leaves alone until we have ended, and every pointer
    // in it is valid as long.
    unsafe {
        let child = &mut *argument.cast::<Child>();
        if child.own_group {
            libc::setpgid(0, 0);
        }
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if let Some((cores, pinned)) = &child.shield {
            let priority = libc::sched_param { sched_priority: 1 };
            if (*pinned && libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cores) != 0)
                || libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority) != 0
            {
                child.shield_errno = *libc::__errno_location();
            }
        }
        if child.fixed_addresses {
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
        }
        if *child.folder != 0 && libc::chdir(child.folder) != 0 {
            return fail(child, 0);
        }
        // The three descriptors were received above 2 (0, 1 and 2 are open in the launcher), so none is overwritten.
        for (target, source) in child.stdio.iter().enumerate() {
            if libc::dup2(*source, target as c_int) < 0 {
                return fail(child, 1);
            }
        }
        if child.traced {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
        }
        libc::execve(child.path, child.argv.as_ptr(), child.env.as_ptr());
        fail(child, 2)
    }
}

/// # Safety
/// Only for the child between clone and exec.
unsafe fn fail(child: &mut Child, step: usize) -> c_int {
    child.failed_step = step;
    // SAFETY: the C library's error number of this thread; _exit runs no handlers of the parent's.
    unsafe {
        child.errno = *libc::__errno_location();
        libc::_exit(127)
    }
}

/// Blocks until the process has ended, without reaping it, so that its last accounts can still be read.
pub(super) fn wait_until_exit(pid: libc::pid_t, mut interrupted: impl FnMut()) {
    loop {
        // SAFETY: an all-zero siginfo is valid, and the kernel fills it in.
        let result = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, libc::WEXITED | libc::WNOWAIT)
        };
        if result == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
        interrupted();
    }
}

/// Reaps a process that has ended, with what it and the children it waited for consumed.
pub(super) fn reap(pid: libc::pid_t) -> (c_int, libc::rusage) {
    // SAFETY: status and usage are plain data that the kernel fills in; zero is valid for both.
    unsafe {
        let mut status = 0;
        let mut usage: libc::rusage = std::mem::zeroed();
        while libc::wait4(pid, &mut status, libc::__WALL, &mut usage) < 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
        (status, usage)
    }
}
