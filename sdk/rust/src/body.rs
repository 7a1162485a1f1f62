//! Bodies of cases: the argument, the loop, and the tare of the same shape.

use crate::barrier::Barrier;
use crate::chain;
use crate::clock::Span;
use crate::heap::Heap;
use crate::opaque::opaque;
use crate::team::{self, Measured};
use std::any::TypeId;
use std::cell::RefCell;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::rc::Rc;

/// Whether a batch runs the case or its tare.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Case,
    Tare,
}

/// What the time of an iteration means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// The time from argument to result: every iteration waits for the previous one.
    Latency,
    /// The time from one result to the next: iterations are independent and may overlap.
    Throughput,
}

/// One batch to run.
#[derive(Clone, Copy)]
pub struct Task {
    pub kind: Kind,
    pub timing: Timing,
    pub iterations: u64,
    pub threads: usize,
    pub heap: Heap,
}

/// The result of a check: an optional digest, or why the checked result is wrong.
pub type Verdict = Result<Option<String>, String>;

/// A check of the result of one run. The body and the handle of the declaration share it.
pub type Check<R> = Rc<RefCell<Option<Box<dyn Fn(&R) -> Verdict>>>>;

pub fn judge<R>(check: &Check<R>, result: &R) -> Option<Verdict> {
    check.borrow().as_ref().map(|check| check(result))
}

/// A case as the server uses it. Every method may panic.
pub trait Body {
    fn prepare(&mut self) {}
    fn dismiss(&mut self) {}
    fn batch(&mut self, task: Task) -> Result<Measured, String>;
    /// Runs the body once. Returns `None` if there is no check.
    fn once(&mut self) -> Option<Verdict>;
}

/// Runs one iteration of the tare: the identity if argument and result have the same type, else a constant of the
/// result's size.
#[inline(always)]
pub fn tare<A: 'static, R: 'static>(argument: A) {
    if TypeId::of::<A>() == TypeId::of::<R>() {
        opaque(argument);
    } else {
        opaque(argument);
        opaque(MaybeUninit::<R>::zeroed());
    }
}

/// Reads the counters, then the clocks, runs the loop, and reads both in reverse order.
#[inline(always)]
pub fn measure(heap: Heap, timed: impl FnOnce()) -> Result<Measured, String> {
    let before = heap.read();
    let span = Span::of(timed);
    let after = heap.read();
    Ok(Measured { spans: vec![span], before, after })
}

#[inline(always)]
fn repeat(iterations: u64, mut one: impl FnMut()) {
    for _ in 0..iterations {
        one();
    }
}

/// A body with an argument that is copied for every iteration.
pub struct Plain<A, R, F> {
    pub argument: A,
    pub body: F,
    pub check: Check<R>,
}

impl<A: Copy + 'static, R: 'static, F: FnMut(A) -> R> Body for Plain<A, R, F> {
    fn batch(&mut self, task: Task) -> Result<Measured, String> {
        let Task { kind, timing, iterations, heap, .. } = task;
        let (argument, body) = (self.argument, &mut self.body);
        match (kind, chain::is_scalar::<A>(), timing) {
            (Kind::Case, true, Timing::Latency) => {
                measure(heap, || chain::repeat::<A, R, true>(iterations, argument, body))
            }
            (Kind::Case, true, Timing::Throughput) => {
                measure(heap, || chain::repeat::<A, R, false>(iterations, argument, body))
            }
            (Kind::Tare, true, Timing::Latency) => {
                measure(heap, || chain::tare::<A, R, true>(iterations, argument))
            }
            (Kind::Tare, true, Timing::Throughput) => {
                measure(heap, || chain::tare::<A, R, false>(iterations, argument))
            }
            (Kind::Case, false, _) => {
                measure(heap, || repeat(iterations, || drop(opaque(body(opaque(argument))))))
            }
            (Kind::Tare, false, _) => measure(heap, || repeat(iterations, || tare::<A, R>(opaque(argument)))),
        }
    }

    fn once(&mut self) -> Option<Verdict> {
        let result = (self.body)(self.argument);
        judge(&self.check, &result)
    }
}

/// A body with an input that is set up at the first request for the case.
pub struct SetUp<S, R, M, F> {
    pub setup: M,
    pub input: Option<S>,
    pub body: F,
    pub check: Check<R>,
}

impl<S: 'static, R: 'static, M: FnMut() -> S, F: FnMut(&mut S) -> R> Body for SetUp<S, R, M, F> {
    fn prepare(&mut self) {
        if self.input.is_none() {
            self.input = Some((self.setup)());
        }
    }

    fn dismiss(&mut self) {
        self.input = None;
    }

    fn batch(&mut self, Task { kind, iterations, heap, .. }: Task) -> Result<Measured, String> {
        let body = &mut self.body;
        let input = self.input.as_mut().ok_or("the case is not set up")?;
        match kind {
            Kind::Case => measure(heap, || repeat(iterations, || drop(opaque(body(black_box(&mut *input)))))),
            Kind::Tare => measure(heap, || {
                repeat(iterations, || {
                    black_box(&mut *input);
                    tare::<(), R>(());
                })
            }),
        }
    }

    fn once(&mut self) -> Option<Verdict> {
        self.prepare();
        let result = (self.body)(self.input.as_mut()?);
        judge(&self.check, &result)
    }
}

/// A body with a separate input for every iteration.
pub struct Each<I, R, M, F> {
    pub make: M,
    pub body: F,
    pub check: Check<R>,
    pub inputs: Vec<I>,
}

impl<I: 'static, R: 'static, M: FnMut() -> I, F: FnMut(&mut I) -> R> Body for Each<I, R, M, F> {
    fn batch(&mut self, Task { kind, iterations, heap, .. }: Task) -> Result<Measured, String> {
        self.inputs.clear();
        self.inputs.extend((0..iterations).map(|_| (self.make)()));
        let (body, inputs) = (&mut self.body, &mut self.inputs);
        let measured = match kind {
            Kind::Case => measure(heap, || {
                for input in inputs.iter_mut() {
                    drop(opaque(body(black_box(input))));
                }
            }),
            Kind::Tare => measure(heap, || {
                for input in inputs.iter_mut() {
                    black_box(input);
                    tare::<(), R>(());
                }
            }),
        };
        self.inputs.clear();
        measured
    }

    fn once(&mut self) -> Option<Verdict> {
        let result = (self.body)(&mut (self.make)());
        judge(&self.check, &result)
    }
}

/// A body that several threads run together.
pub struct SharedBody<R, F> {
    pub body: F,
    pub check: Check<R>,
}

impl<R: 'static, F: Fn() -> R + Sync> Body for SharedBody<R, F> {
    fn batch(&mut self, Task { kind, iterations, threads, heap, .. }: Task) -> Result<Measured, String> {
        let body = &self.body;
        let timed = || match kind {
            Kind::Case => repeat(iterations, || drop(opaque(body()))),
            Kind::Tare => repeat(iterations, || tare::<(), R>(())),
        };
        if threads == 1 {
            return measure(heap, timed);
        }
        let job = |barrier: &Barrier| Span::among(|| barrier.stand(), timed);
        let jobs = (0..threads).map(|_| Box::new(job) as team::ThreadJob).collect();
        team::run(heap, jobs, None)
    }

    fn once(&mut self) -> Option<Verdict> {
        let result = (self.body)();
        judge(&self.check, &result)
    }
}
