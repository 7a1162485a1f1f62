//! A barrier that opens when all threads of a team have a core at the same time.

use crate::clock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How long a thread spins before it sleeps for a moment, in nanoseconds. Other programs then let it run when it wakes.
const SPIN: u64 = 100_000;

/// How long it sleeps.
const SLEEP: Duration = Duration::from_micros(50);

/// Threads that answer within this time have a core; in nanoseconds.
const PROMPT: u64 = 2_000;

/// The barrier opens in any case after this time, in nanoseconds.
const LONGEST_WAIT: u64 = 5_000_000;

/// The number of bits of a call that count its answers.
const COUNT: u32 = 16;

/// The state of an open barrier.
const OPEN: u64 = u64::MAX;

/// A barrier that releases all threads together.
pub struct Barrier {
    size: usize,
    ready: AtomicUsize,
    go: AtomicBool,
    has_caller: AtomicBool,
    /// The number of a call, and in its last bits the number of answers; or `OPEN`.
    call: AtomicU64,
    cores: cores::Cores,
}

impl Barrier {
    /// A barrier for this many threads.
    pub fn new(size: usize) -> Barrier {
        Barrier {
            size,
            ready: AtomicUsize::new(0),
            go: AtomicBool::new(false),
            has_caller: AtomicBool::new(false),
            call: AtomicU64::new(0),
            cores: cores::Cores::default(),
        }
    }

    /// Waits until all threads have come.
    pub fn assemble(&self) {
        while self.ready.load(Ordering::Acquire) < self.size {
            std::thread::yield_now();
        }
    }

    /// Releases the threads.
    pub fn release(&self) {
        self.go.store(true, Ordering::Release);
    }

    /// Waits at the barrier until the threads have been released and all have a core.
    pub fn stand(&self) {
        self.ready.fetch_add(1, Ordering::AcqRel);
        let mut turns = 0;
        while !self.go.load(Ordering::Acquire) {
            pause(&mut turns);
        }
        self.meet();
    }

    /// The first thread to come calls, and opens the barrier once all others have answered a call promptly: none starts
    /// late then.
    fn meet(&self) {
        let mut waiting = Waiting { cores: &self.cores, core: self.cores.own(None), since: clock::wall() };
        if !self.has_caller.swap(true, Ordering::AcqRel) {
            let until = waiting.since + LONGEST_WAIT;
            let mut number = 1;
            while !self.is_answered_promptly(number) && waiting.since < until {
                waiting.sleep_if_due();
                number += 1;
            }
            self.call.store(OPEN, Ordering::Release);
            return;
        }
        let mut answered = 0;
        loop {
            let call = self.call.load(Ordering::Acquire);
            if call == OPEN {
                return;
            }
            if call >> COUNT == answered {
                waiting.sleep_if_due();
            } else if self.call.compare_exchange(call, call + 1, Ordering::AcqRel, Ordering::Acquire).is_ok()
            {
                answered = call >> COUNT;
            }
        }
    }

    fn is_answered_promptly(&self, number: u64) -> bool {
        let complete = number << COUNT | (self.size as u64 - 1);
        self.call.store(number << COUNT, Ordering::Release);
        let asked = clock::wall();
        loop {
            let all = self.call.load(Ordering::Acquire) == complete;
            // The clock is read after the answers: this thread may have lost its core in between.
            let is_late = clock::wall() - asked >= PROMPT;
            if all || is_late {
                return all && !is_late;
            }
        }
    }
}

/// Spins a few times, then yields the processor.
#[inline]
pub fn pause(turns: &mut u32) {
    *turns += 1;
    if *turns > 1000 { std::thread::yield_now() } else { std::hint::spin_loop() }
}

struct Waiting<'a> {
    cores: &'a cores::Cores,
    core: Option<usize>,
    since: u64,
}

impl Waiting<'_> {
    fn sleep_if_due(&mut self) {
        if clock::wall() - self.since >= SPIN {
            std::thread::sleep(SLEEP);
            self.core = self.cores.own(self.core);
            self.since = clock::wall();
        } else {
            std::hint::spin_loop();
        }
    }
}

#[cfg(target_os = "linux")]
mod cores {
    use std::ffi::c_int;
    use std::sync::atomic::{AtomicU64, Ordering};

    unsafe extern "C" {
        fn sched_getcpu() -> c_int;
        fn sched_getaffinity(thread: c_int, size: usize, cores: *mut u64) -> c_int;
        fn sched_setaffinity(thread: c_int, size: usize, cores: *const u64) -> c_int;
    }

    /// The cores on which threads of the team are, as bits. Cores beyond these are left to the kernel.
    const WORDS: usize = 16;
    type Mask = [u64; WORDS];

    #[derive(Default)]
    pub struct Cores([AtomicU64; WORDS]);

    impl Cores {
        /// Makes this thread leave its core if another thread of the team is there: the kernel chooses one of the
        /// others. Returns the core that is now this thread's; `mine` is the result of the previous call.
        pub fn own(&self, mine: Option<usize>) -> Option<usize> {
            let core = current()?;
            if Some(core) == mine {
                return mine;
            }
            let bit = |core: usize| 1_u64 << (core % 64);
            if let Some(mine) = mine {
                self.0[mine / 64].fetch_and(!bit(mine), Ordering::AcqRel);
            }
            if self.0[core / 64].fetch_or(bit(core), Ordering::AcqRel) & bit(core) == 0 {
                return Some(core);
            }
            let all = allowed()?;
            let other = self.without(&all);
            if other.iter().any(|word| *word != 0) && allow(&other) {
                allow(&all);
            }
            None
        }

        /// These cores without those on which a thread of the team is.
        pub(super) fn without(&self, all: &Mask) -> Mask {
            std::array::from_fn(|word| all[word] & !self.0[word].load(Ordering::Acquire))
        }
    }

    pub(super) fn current() -> Option<usize> {
        // SAFETY: the function has no arguments.
        usize::try_from(unsafe { sched_getcpu() }).ok().filter(|core| *core < 64 * WORDS)
    }

    /// The cores that this thread may use.
    pub(super) fn allowed() -> Option<Mask> {
        let mut mask = Mask::default();
        // SAFETY: the pointer and the size describe `mask`.
        (unsafe { sched_getaffinity(0, size_of::<Mask>(), mask.as_mut_ptr()) } >= 0).then_some(mask)
    }

    pub(super) fn allow(mask: &Mask) -> bool {
        // SAFETY: the pointer and the size describe `mask`.
        unsafe { sched_setaffinity(0, size_of::<Mask>(), mask.as_ptr()) == 0 }
    }
}

#[cfg(not(target_os = "linux"))]
mod cores {
    /// Where the kernel places threads is left to it.
    #[derive(Default)]
    pub struct Cores;

    impl Cores {
        pub fn own(&self, _: Option<usize>) -> Option<usize> {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_barrier_waits_for_threads_that_do_not_answer() {
        let barrier = Barrier::new(2);
        let began = clock::wall();
        barrier.meet();
        assert!(clock::wall() - began >= LONGEST_WAIT);
    }

    #[test]
    fn a_call_that_all_answer_opens_the_barrier() {
        let barrier = Barrier::new(3);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| barrier.stand());
            }
            barrier.assemble();
            barrier.release();
        });
        assert_eq!(barrier.call.load(Ordering::Acquire), OPEN);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_leaves_the_core_of_another_of_its_team() {
        let whole = cores::allowed().expect("the kernel says where threads may run");
        let team = cores::Cores::default();
        let first = cores::current().expect("a core");
        let mut only = [0; 16];
        only[first / 64] = 1 << (first % 64);
        assert!(cores::allow(&only));
        assert_eq!(team.own(None), Some(first));
        let other = team.without(&whole);
        assert_eq!(std::array::from_fn::<_, 16, _>(|word| other[word] | only[word]), whole);
        assert_eq!(
            other[first / 64] & only[first / 64],
            0,
            "the core of this thread is not offered to others"
        );
        // Another thread can only use the core of this one.
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(team.own(None), None));
        });
        assert!(cores::allow(&whole));
    }
}
