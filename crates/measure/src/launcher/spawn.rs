//! Starts one program with as little work as possible between the start of the clock and the first instruction.

use super::system_call::system_call;
use super::wire::LaunchRequest;
use crate::launcher::Shield;
use crate::terminal;
use std::ffi::{c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::time::Instant;

/// A process that was cloned to execute a program.
pub(super) struct Spawned {
    pub(super) pid: libc::pid_t,
    pub(super) started: Instant,
    child: Box<Child>,
    // The child's stack until it executes its program.
    _stack: Vec<u8>,
}

impl Spawned {
    /// The step at which the start failed, and the error; `None` if it did not fail. Valid after the process has
    /// ended.
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

    /// Why real-time priority was refused; `None` if it was not. Valid after the process has ended.
    pub(super) fn shield_refused(&self) -> Option<String> {
        // SAFETY: as above.
        let errno = unsafe { ptr::read_volatile(&raw const self.child.shield_errno) };
        (errno != 0).then(|| io::Error::from_raw_os_error(errno).to_string())
    }
}

/// The steps of a start, as errors name them.
const STEPS: [&str; 3] = ["enter its working folder", "connect its standard streams", "execute the file"];

/// Everything that the child needs. It is prepared before the clock starts, since the child shares the launcher's
/// memory until it executes its program.
struct Child {
    path: *const c_char,
    folder: *const c_char,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    stdio: [c_int; 3],
    fixed_addresses: bool,
    traced: bool,
    own_group: bool,
    terminal: Option<OwnedFd>,
    shield: Option<(libc::cpu_set_t, bool)>,
    shield_errno: c_int,
    failed_step: usize,
    errno: c_int,
}

const STACK: usize = 256 * 1024;
const TOUCHED: usize = 16 * 1024;

/// Starts the program. The clone shares memory, so that the cost of the start does not depend on the size of any
/// process, and has its own stack. Unlike with vfork, the launcher is not suspended until the exec: waking up in the
/// middle of the start and going back to sleep would add to the program's time. Until the process has ended the
/// launcher only waits.
pub(super) fn spawn(request: &LaunchRequest) -> Result<Spawned, (String, io::Error)> {
    let mut child = Box::new(lay_out(request));
    let mut stack = vec![0_u8; STACK];
    // The pages of the child's stack are mapped before the clock starts.
    stack[STACK - TOUCHED..].fill(1);
    // SAFETY: `top` is one past the end of `stack`, aligned down to 16. `child` and `stack` are moved into the
    // result, which is kept until the process has ended, so they outlive the process's use of them.
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

fn lay_out(request: &LaunchRequest) -> Child {
    let mut strings =
        request.strings.split_inclusive(|byte| *byte == 0).map(|part| part.as_ptr().cast::<c_char>());
    let path = strings.next().unwrap_or(c"".as_ptr());
    let folder = strings.next().unwrap_or(c"".as_ptr());
    let mut argv: Vec<*const c_char> = strings.by_ref().take(request.arguments).collect();
    argv.push(ptr::null());
    let mut env: Vec<*const c_char> = strings.collect();
    env.push(ptr::null());
    // A program that reads from a terminal must stay in the terminal's foreground group.
    // SAFETY: asks about a descriptor that we own.
    let own_group = unsafe { libc::isatty(request.stdio[0].as_raw_fd()) } == 0;
    Child {
        path,
        folder,
        argv,
        env,
        stdio: [0, 1, 2].map(|i| request.stdio[i].as_raw_fd()),
        fixed_addresses: request.options.fixed_addresses,
        traced: request.options.trace_memory || request.options.read_counters,
        own_group,
        terminal: if own_group { terminal::controlling() } else { None },
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

/// The child's code between clone and exec. It makes system calls only. It must not allocate or unwind, and must not
/// call functions of the C library, because those set the `errno` of the launcher, which keeps running.
extern "C" fn run_child(argument: *mut c_void) -> c_int {
    // SAFETY: the argument is the `Child`, which the parent keeps and does not touch until this process has ended;
    // every pointer in it is valid until then.
    unsafe {
        let child = &mut *argument.cast::<Child>();
        if child.own_group {
            system_call(libc::SYS_setpgid, [0; 4]);
        }
        if let Some(terminal) = &child.terminal {
            let request = libc::TIOCNOTTY as usize;
            system_call(libc::SYS_ioctl, [terminal.as_raw_fd() as usize, request, 0, 0]);
        }
        system_call(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as usize, libc::SIGKILL as usize, 0, 0]);
        if let Some((cores, pinned)) = &child.shield {
            child.shield_errno = -raise_shield(cores, *pinned) as c_int;
        }
        if child.fixed_addresses {
            system_call(libc::SYS_personality, [libc::ADDR_NO_RANDOMIZE as usize, 0, 0, 0]);
        }
        if *child.folder != 0 {
            let result = system_call(libc::SYS_chdir, [child.folder as usize, 0, 0, 0]);
            if result < 0 {
                fail(child, 0, result);
            }
        }
        // The three descriptors were received above 2 (0, 1 and 2 are open in the launcher), so none is overwritten.
        for target in 0..3 {
            let result = system_call(libc::SYS_dup3, [child.stdio[target] as usize, target, 0, 0]);
            if result < 0 {
                fail(child, 1, result);
            }
        }
        if child.traced {
            system_call(libc::SYS_ptrace, [libc::PTRACE_TRACEME as usize, 0, 0, 0]);
        }
        let (words, variables) = (child.argv.as_ptr(), child.env.as_ptr());
        let result =
            system_call(libc::SYS_execve, [child.path as usize, words as usize, variables as usize, 0]);
        fail(child, 2, result)
    }
}

/// # Safety
/// May only be called by the child between clone and exec.
unsafe fn raise_shield(cores: &libc::cpu_set_t, pinned: bool) -> isize {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: both structures outlive the calls, and the size is that of the set.
    unsafe {
        let set = [0, size_of::<libc::cpu_set_t>(), ptr::from_ref(cores) as usize, 0];
        let confined = if pinned { system_call(libc::SYS_sched_setaffinity, set) } else { 0 };
        if confined < 0 {
            return confined;
        }
        let real_time = [0, libc::SCHED_FIFO as usize, &raw const priority as usize, 0];
        system_call(libc::SYS_sched_setscheduler, real_time)
    }
}

/// # Safety
/// May only be called by the child between clone and exec.
unsafe fn fail(child: &mut Child, step: usize, result: isize) -> ! {
    child.failed_step = step;
    child.errno = -result as c_int;
    loop {
        // SAFETY: takes no pointers, and runs no handlers of the parent's.
        unsafe { system_call(libc::SYS_exit_group, [127, 0, 0, 0]) };
    }
}

/// Blocks until the process has ended. The process is not reaped, so that its last accounts can still be read.
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

/// Reaps a process that has ended. Returns its status, and the resources that it and the children it waited for used.
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used)]

    use super::*;
    use crate::launcher::LaunchOptions;
    use std::fs::File;

    fn request(path: &str, folder: &str) -> LaunchRequest {
        let null = || OwnedFd::from(File::open("/dev/null").unwrap());
        let strings = format!("{path}\0{folder}\0{path}\0").into_bytes();
        LaunchRequest {
            options: LaunchOptions::default(),
            strings,
            arguments: 1,
            stdio: [null(), null(), null()],
        }
    }

    #[test]
    fn a_child_that_fails_leaves_the_error_number_of_the_launcher_alone() {
        // SAFETY: the C library's error number of this thread.
        let mine = || unsafe { *libc::__errno_location() };
        for (path, folder, step) in [("/nonexistent", "", STEPS[2]), ("/bin/true", "/nonexistent", STEPS[0])]
        {
            let request = request(path, folder);
            let spawned = spawn(&request).unwrap();
            wait_until_exit(spawned.pid, || {});
            let after = mine();
            reap(spawned.pid);
            let (failed, error) = spawned.failure().unwrap();
            assert_eq!((failed.as_str(), error.raw_os_error()), (step, Some(libc::ENOENT)));
            assert_ne!(after, libc::ENOENT);
        }
    }

    #[test]
    fn a_refused_shield_is_reported_and_the_program_runs() {
        let mut request = request("/bin/true", "/");
        // This core number does not exist on any machine.
        let cores = vec![libc::CPU_SETSIZE as usize - 1];
        request.options.shield = Some(Shield { cores, cap: std::time::Duration::from_secs(1) });
        let spawned = spawn(&request).unwrap();
        wait_until_exit(spawned.pid, || {});
        let (status, _) = reap(spawned.pid);
        assert_eq!((status, spawned.failure().is_none()), (0, true));
        assert!(spawned.shield_refused().is_some());
    }
}
