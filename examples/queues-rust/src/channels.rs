//! Channels of the standard library, crossbeam and flume, unbounded and bounded, beside two made by hand.

use scruple_bench::{Bench, Consumer, Producer};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

const CAPACITY: usize = 1024;

/// Producers and consumers, by which the channels are compared.
const SIZES: [(usize, usize); 3] = [(1, 1), (2, 1), (2, 2)];

/// Clones one end this many times and drops the original, so that the channel closes with the last clone.
fn ends<T: Clone, E>(count: usize, end: T, make: impl Fn(T) -> E) -> Vec<E> {
    (0..count).map(|_| make(end.clone())).collect()
}

fn declare_one<P: Producer, C: Consumer>(
    bench: &mut Bench,
    name: &str,
    (p, c): (usize, usize),
    capacity: Option<usize>,
    open: impl FnMut() -> (Vec<P>, Vec<C>) + 'static,
) {
    let case = bench.queue(&format!("channels/{p}x{c}/{name}"), p, c, open).tag("channel");
    if let Some(capacity) = capacity {
        case.capacity(capacity);
    }
}

fn standard(bench: &mut Bench, (p, c): (usize, usize)) {
    if c > 1 {
        return; // Its receiver cannot be shared.
    }
    declare_one(bench, "std mpsc, unbounded", (p, c), None, move || {
        let (tx, rx) = mpsc::channel();
        (ends(p, tx, |tx| move |x| tx.send(x).is_ok()), vec![move || rx.recv().ok()])
    });
    declare_one(bench, "std mpsc, bounded", (p, c), Some(CAPACITY), move || {
        let (tx, rx) = mpsc::sync_channel(CAPACITY);
        (ends(p, tx, |tx| move |x| tx.send(x).is_ok()), vec![move || rx.recv().ok()])
    });
}

fn crossbeam(bench: &mut Bench, (p, c): (usize, usize)) {
    for bound in [None, Some(CAPACITY)] {
        let name =
            if bound.is_none() { "crossbeam-channel, unbounded" } else { "crossbeam-channel, bounded" };
        declare_one(bench, name, (p, c), bound, move || {
            let (tx, rx) = bound.map_or_else(crossbeam_channel::unbounded, crossbeam_channel::bounded);
            (ends(p, tx, |tx| move |x| tx.send(x).is_ok()), ends(c, rx, |rx| move || rx.recv().ok()))
        });
    }
}

fn flume(bench: &mut Bench, (p, c): (usize, usize)) {
    for bound in [None, Some(CAPACITY)] {
        let name = if bound.is_none() { "flume, unbounded" } else { "flume, bounded" };
        declare_one(bench, name, (p, c), bound, move || {
            let (tx, rx) = bound.map_or_else(flume::unbounded, flume::bounded);
            (ends(p, tx, |tx| move |x| tx.send(x).is_ok()), ends(c, rx, |rx| move || rx.recv().ok()))
        });
    }
}

/// A deque behind a lock: the others must be faster.
fn locked(bench: &mut Bench, (p, c): (usize, usize)) {
    declare_one(bench, "Mutex<VecDeque>, bounded", (p, c), Some(CAPACITY), move || {
        let deque = Arc::new(Mutex::new(VecDeque::with_capacity(CAPACITY)));
        (ends(p, deque.clone(), |deque| move |x| put(&deque, x)), ends(c, deque, |deque| move || get(&deque)))
    });
}

/// Eight such deques, dealt to in turn: fast, but elements of one producer overtake each other. The ledger shows it as
/// `queue.order_broken`.
fn sharded(bench: &mut Bench, (p, c): (usize, usize)) {
    declare_one(bench, "eight shards, bounded", (p, c), Some(8 * CAPACITY), move || {
        let shards: Arc<Vec<Mutex<VecDeque<u64>>>> = Arc::new((0..8).map(|_| Mutex::default()).collect());
        let turns = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let next = |which: usize, turns: &[AtomicUsize; 2]| turns[which].fetch_add(1, Ordering::Relaxed) % 8;
        let both = (shards, turns);
        (
            ends(p, both.clone(), |(shards, turns)| move |x| put(&shards[next(0, &turns)], x)),
            ends(c, both, |(shards, turns)| {
                move || {
                    let first = next(1, &turns);
                    (0..8).find_map(|i| get(&shards[(first + i) % 8]))
                }
            }),
        )
    });
}

fn put(deque: &Mutex<VecDeque<u64>>, element: u64) -> bool {
    let mut deque = deque.lock().unwrap_or_else(|e| e.into_inner());
    let room = deque.len() < CAPACITY;
    if room {
        deque.push_back(element);
    }
    room
}

fn get(deque: &Mutex<VecDeque<u64>>) -> Option<u64> {
    deque.lock().unwrap_or_else(|e| e.into_inner()).pop_front()
}

pub fn declare(bench: &mut Bench) {
    for size in SIZES {
        for one in [standard, crossbeam, flume, locked, sharded] {
            one(bench, size);
        }
    }
}
