//! Concurrency cases: producers and consumers around a queue, the ledger of its elements, and its fairness.

use crate::barrier::{Barrier, pause};
use crate::body::Kind;
use crate::clock::{self, Span};
use crate::heap::Heap;
use crate::team::{self, Measured, ThreadJob, Watch};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Marks the handle of a concurrency case.
pub struct Flow;

/// The put end of a queue. Its thread drops it after the last put.
pub trait Producer: Send {
    /// Puts an element. Returns false if the queue is full: the call is then repeated.
    fn put(&mut self, element: u64) -> bool;
}

/// The get end of a queue.
pub trait Consumer: Send {
    /// Takes an element, or returns `None` if the queue is empty now or permanently. It may also block, but not after all
    /// producers are dropped.
    fn get(&mut self) -> Option<u64>;
}

impl<F: FnMut(u64) -> bool + Send> Producer for F {
    #[inline]
    fn put(&mut self, element: u64) -> bool {
        self(element)
    }
}

impl<F: FnMut() -> Option<u64> + Send> Consumer for F {
    #[inline]
    fn get(&mut self) -> Option<u64> {
        self()
    }
}

/// The properties of a concurrency case.
pub struct Passing {
    pub producers: usize,
    pub consumers: usize,
    pub capacity: Option<usize>,
    pub once_elements: u64,
    pub stall: Duration,
}

/// The number of low bits of an element that hold its number in its producer's sequence. The bits above hold the number
/// of the producer.
pub const SEQUENCE_BITS: u32 = 40;

/// The records of one thread. A producer records starts, a consumer all three.
#[derive(Default)]
pub struct PassLog {
    pub elements: Vec<u64>,
    pub starts: Vec<u64>,
    pub ends: Vec<u64>,
}

/// A counter on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Moved(AtomicU64);

/// The records of one pass of elements through a queue.
pub struct Passed {
    pub measured: Measured,
    pub moved: Vec<u64>,
    pub producers: usize,
    pub logs: Vec<PassLog>,
}

/// Memory that has been written to, so that the timed part has no page faults.
fn room(n: u64) -> Vec<u64> {
    let mut room = vec![1; n as usize];
    room.clear();
    room
}

/// A guard that a producer's thread drops when it ends, also by panic, and before the producer itself. The last guard
/// signals the end.
struct Leaving<'a>(&'a AtomicUsize, &'a AtomicBool);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if self.0.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.1.store(true, Ordering::Release);
        }
    }
}

/// Opens a queue and passes elements through it.
pub trait Pass {
    fn pass(&mut self, how: &Passing, order: PassParameters<'_>) -> Result<Passed, String>;
}

/// The parameters of one pass.
pub struct PassParameters<'a> {
    pub kind: Kind,
    pub elements: u64,
    pub stamped: bool,
    pub heap: Heap,
    pub stalled: &'a dyn Fn(u64, u64, Option<String>, Duration),
}

impl<P, C, F> Pass for F
where
    P: Producer,
    C: Consumer,
    F: FnMut() -> (Vec<P>, Vec<C>),
{
    fn pass(&mut self, how: &Passing, order: PassParameters<'_>) -> Result<Passed, String> {
        let PassParameters { kind, elements, stamped, heap, stalled } = order;
        let (p, c) = (how.producers, how.consumers);
        let share = |members: usize, i: usize| {
            elements / members as u64 + u64::from((i as u64) < elements % members as u64)
        };
        let moved: Vec<Moved> = (0..p + c).map(|_| Moved::default()).collect();
        let (left, over) = (AtomicUsize::new(p), AtomicBool::new(false));
        let mut logs: Vec<PassLog> = (0..p + c).map(|_| PassLog::default()).collect();
        for (i, log) in logs.iter_mut().enumerate() {
            if i >= p {
                log.elements = room(elements);
            }
            if stamped {
                log.starts = room(if i < p { share(p, i) } else { elements });
                log.ends = room(if i < p { 0 } else { elements });
            }
        }
        let mut jobs: Vec<ThreadJob> = Vec::with_capacity(p + c);
        let (before, after) = logs.split_at_mut(p);
        if kind == Kind::Tare {
            let shares = (0..p).map(|i| (i, share(p, i))).chain((0..c).map(|i| (i, share(c, i))));
            for (((who, n), log), moved) in shares.zip(before.iter_mut().chain(after)).zip(&moved) {
                jobs.push(Box::new(move |barrier: &Barrier| pretend(barrier, who, n, log, moved)));
            }
        } else {
            let (producers, consumers) = self();
            if (producers.len(), consumers.len()) != (p, c) {
                return Err(format!(
                    "{p} producers and {c} consumers are declared, {} and {} were opened",
                    producers.len(),
                    consumers.len()
                ));
            }
            let (over, left) = (&over, &left);
            for (who, ((producer, log), moved)) in producers.into_iter().zip(before).zip(&moved).enumerate() {
                let n = share(p, who);
                jobs.push(Box::new(move |barrier: &Barrier| {
                    let mut producer = producer;
                    let _leaving = Leaving(left, over);
                    if stamped {
                        produce::<true, P>(barrier, &mut producer, who, n, log, moved)
                    } else {
                        produce::<false, P>(barrier, &mut producer, who, n, log, moved)
                    }
                }));
            }
            for ((consumer, log), moved) in consumers.into_iter().zip(after).zip(&moved[p..]) {
                jobs.push(Box::new(move |barrier: &Barrier| {
                    let mut consumer = consumer;
                    if stamped {
                        consume::<true, C>(barrier, &mut consumer, over, log, moved)
                    } else {
                        consume::<false, C>(barrier, &mut consumer, over, log, moved)
                    }
                }));
            }
        }
        let sum = |part: &[Moved]| part.iter().map(|m| m.0.load(Ordering::Relaxed)).sum::<u64>();
        let watch = Watch {
            progress: &|| sum(&moved),
            stall: how.stall,
            stalled: &|panic, since| stalled(sum(&moved[..p]), sum(&moved[p..]), panic, since),
        };
        let measured = team::run(heap, jobs, Some(watch))?;
        let moved = moved.into_iter().map(|m| m.0.into_inner()).collect();
        Ok(Passed { measured, moved, producers: p, logs })
    }
}

fn produce<const STAMPED: bool, P: Producer>(
    barrier: &Barrier,
    producer: &mut P,
    who: usize,
    n: u64,
    log: &mut PassLog,
    moved: &Moved,
) -> Span {
    let first = (who as u64) << SEQUENCE_BITS;
    barrier.stand();
    Span::of(|| {
        for i in 0..n {
            if STAMPED {
                log.starts.push(clock::wall());
            }
            let mut turns = 900;
            while !producer.put(black_box(first | i)) {
                pause(&mut turns);
            }
            moved.0.store(i + 1, Ordering::Relaxed);
        }
    })
}

fn consume<const STAMPED: bool, C: Consumer>(
    barrier: &Barrier,
    consumer: &mut C,
    over: &AtomicBool,
    log: &mut PassLog,
    moved: &Moved,
) -> Span {
    let room = log.elements.capacity();
    let (mut got, mut turns) = (0, 900);
    barrier.stand();
    Span::of(|| {
        loop {
            // `over` is read before the attempt, because a queue that is empty after the end stays empty.
            let ended = over.load(Ordering::Acquire);
            let start = if STAMPED { clock::wall() } else { 0 };
            if let Some(element) = consumer.get() {
                if log.elements.len() < room {
                    log.elements.push(element);
                    if STAMPED {
                        log.starts.push(start);
                        log.ends.push(clock::wall());
                    }
                }
                got += 1;
                moved.0.store(got, Ordering::Relaxed);
                turns = 900;
            } else if ended {
                break;
            } else {
                pause(&mut turns);
            }
        }
    })
}

/// The tare of both roles: elements are generated and kept or recorded, without a queue.
fn pretend(barrier: &Barrier, who: usize, n: u64, log: &mut PassLog, moved: &Moved) -> Span {
    let first = (who as u64) << SEQUENCE_BITS;
    let records = log.elements.capacity() > 0;
    barrier.stand();
    Span::of(|| {
        for i in 0..n {
            let element = black_box(first | i);
            if records {
                log.elements.push(element);
            }
            moved.0.store(i + 1, Ordering::Relaxed);
        }
    })
}
