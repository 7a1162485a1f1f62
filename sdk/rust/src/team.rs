//! Threads that start together, and their readings.

use crate::barrier::Barrier;
use crate::clock::{self, Span};
use crate::heap::{Heap, Totals};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// The work of one thread.
pub type ThreadJob<'a> = Box<dyn FnOnce(&Barrier) -> Span + Send + 'a>;

/// The times of all threads and the counters of the process.
pub struct Measured {
    pub spans: Vec<Span>,
    pub before: Totals,
    pub after: Totals,
}

/// Why a case cannot run here: what unwinds out of its body.
pub struct Skip(pub String);

/// The message of a panic.
pub fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".into())
}

/// Detects threads that make no progress.
pub struct Watch<'a> {
    /// A number that grows with the work done.
    pub progress: &'a dyn Fn() -> u64,
    /// How long that number may stay the same until `stalled` is called, and called again.
    pub stall: Duration,
    /// Called with the last panic, if there was one, and the time since the last progress.
    pub stalled: &'a dyn Fn(Option<String>, Duration),
}

/// Runs each job on its own thread. A job must wait at the barrier once, and returns its times.
pub fn run(heap: Heap, jobs: Vec<ThreadJob<'_>>, watch: Option<Watch<'_>>) -> Result<Measured, String> {
    let (barrier, size) = (Barrier::new(jobs.len()), jobs.len());
    let (done, ended) = (Mutex::new(EndedThreads::default()), Condvar::new());
    thread::scope(|scope| {
        let handles: Vec<_> = jobs
            .into_iter()
            .map(|job| {
                let (barrier, done, ended) = (&barrier, &done, &ended);
                scope.spawn(move || {
                    let result = catch_unwind(AssertUnwindSafe(|| job(barrier)));
                    let mut done = done.lock().unwrap_or_else(|e| e.into_inner());
                    done.count += 1;
                    ended.notify_one();
                    result.map_err(|panic| done.end(panic)).ok()
                })
            })
            .collect();
        barrier.assemble();
        let before = heap.read();
        barrier.release();
        wait(&done, &ended, size, watch);
        let after = heap.read();
        let spans: Vec<Span> =
            handles.into_iter().filter_map(|handle| handle.join().ok().flatten()).collect();
        let mut done = done.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(skip) = done.skip.take() {
            resume_unwind(Box::new(skip));
        }
        match done.panic.take() {
            Some(panic) => Err(panic),
            None => Ok(Measured { spans, before, after }),
        }
    })
}

/// The number of threads that have ended, and the message of the last panic among them.
#[derive(Default)]
struct EndedThreads {
    count: usize,
    panic: Option<String>,
    skip: Option<Skip>,
}

impl EndedThreads {
    fn end(&mut self, panic: Box<dyn Any + Send>) {
        match panic.downcast::<Skip>() {
            Ok(skip) => self.skip = Some(*skip),
            Err(panic) => self.panic = Some(message(&*panic)),
        }
    }
}

fn wait(done: &Mutex<EndedThreads>, ended: &Condvar, size: usize, watch: Option<Watch<'_>>) {
    let mut done = done.lock().unwrap_or_else(|e| e.into_inner());
    let Some(Watch { progress, stall, stalled }) = watch else {
        while done.count < size {
            done = ended.wait(done).unwrap_or_else(|e| e.into_inner());
        }
        return;
    };
    let (mut last, mut since, mut told) = (0, clock::wall(), clock::wall());
    while done.count < size {
        done = ended.wait_timeout(done, Duration::from_millis(50)).unwrap_or_else(|e| e.into_inner()).0;
        let (moved, now) = (progress() + done.count as u64, clock::wall());
        if moved != last {
            (last, since, told) = (moved, now, now);
        } else if now - told > stall.as_nanos() as u64 && done.count < size {
            told = now;
            stalled(done.panic.clone(), Duration::from_nanos(now - since));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_panic_on_one_thread_is_reported_and_the_others_end() {
        let job = |i: usize| -> ThreadJob<'static> {
            Box::new(move |barrier| {
                barrier.stand();
                Span::of(|| assert!(i != 1, "a deliberate panic on thread {i}"))
            })
        };
        let result = run(Heap::look(), (0..3).map(job).collect(), None);
        assert_eq!(result.err().as_deref(), Some("a deliberate panic on thread 1"));
    }

    #[test]
    fn a_stall_is_noticed_and_progress_is_not() {
        let stalls = AtomicUsize::new(0);
        let moved = AtomicUsize::new(0);
        let busy = |step: usize| -> ThreadJob<'_> {
            let moved = &moved;
            Box::new(move |barrier| {
                barrier.stand();
                Span::of(|| {
                    for _ in 0..6 {
                        moved.fetch_add(step, Ordering::Relaxed);
                        thread::sleep(Duration::from_millis(100));
                    }
                })
            })
        };
        for (step, stalled) in [(1, false), (0, true)] {
            let watch = Watch {
                progress: &|| moved.load(Ordering::Relaxed) as u64,
                stall: Duration::from_millis(350),
                stalled: &|_, _| {
                    stalls.fetch_add(1, Ordering::Relaxed);
                },
            };
            assert!(run(Heap::look(), vec![busy(step)], Some(watch)).is_ok());
            assert_eq!(stalls.load(Ordering::Relaxed) > 0, stalled);
        }
    }
}
