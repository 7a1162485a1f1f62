//! Declares cases that Scruple weighs: what a function costs in time, allocations and more.
//!
//! A program declares its cases and calls `main`. `scruple bench` starts it, asks for batches, and does all sampling
//! and statistics, so this crate only names cases, loops, and reads clocks and counters. In `benches/sums.rs`, with
//! `harness = false` under `[[bench]]`:
//!
//! ```no_run
//! use scruple_bench::Bench;
//!
//! fn main() {
//!     let mut bench = Bench::new();
//!     bench.case_with("one step of FNV-1a", 2166136261u32, |h| (h ^ 7).wrapping_mul(16777619));
//!     for n in [10u64, 100, 1000] {
//!         bench.case_with("sum", n, |n| (0..n).sum::<u64>()).param("n", n).throughput_items(n);
//!     }
//!     bench.case_input("sort", || vec![3, 1, 2], |v| v.sort()).tag("slow");
//!     bench.main()
//! }
//! ```
//!
//! `cargo bench` then weighs them: if the program is started by hand, it executes `scruple bench` with itself.
//! `cargo test --benches` runs each case once. A tare shows the harness's own cost: the same loop around the identity,
//! or around a constant of the result's size.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod awaited;
mod barrier;
mod body;
mod by_hand;
mod case;
mod chain;
mod clock;
mod fairness;
mod heap;
mod json;
mod ledger;
mod opaque;
mod queue;
mod serve;
mod team;
mod test_run;

pub use awaited::Iterations;
pub use body::Verdict;
pub use case::{Case, Limit, Param};
pub use queue::{Consumer, Flow, Producer};
pub use std::hint::black_box;

use awaited::Awaited;
use body::{Body, Check, Each, Plain, SetUp, SharedBody, Timing};
use case::Declaration;
use queue::{Pass, Passing};
use std::any::type_name;
use std::future::Future;
use std::time::Duration;

/// Ends the case that runs, because it cannot run here: Scruple shows it as skipped, with this reason. Not with `panic =
/// "abort"`.
pub fn skip(why: &str) -> ! {
    // Unlike a panic, this prints nothing.
    std::panic::resume_unwind(Box::new(team::Skip(why.to_owned())))
}

/// The body or the queue of a case.
enum Work {
    Body(Box<dyn Body>),
    Flow(Box<dyn Pass>),
}

struct Entry {
    declaration: Declaration,
    work: Work,
}

/// The cases of one program.
#[derive(Default)]
pub struct Bench {
    entries: Vec<Entry>,
}

/// Results that are not futures: the time of a future that nobody awaits is not that of its work. A body that returns a
/// future has two implementations to choose from, so that it does not compile.
///
/// ```compile_fail
/// let mut bench = scruple_bench::Bench::new();
/// bench.case("async", || async { 1 + 1 });
/// ```
///
/// The compiler then cannot infer `IfNotAFuture`. What is wanted is
///
/// ```
/// let mut bench = scruple_bench::Bench::new();
/// bench.case_async("async", || async { 1 + 1 });
/// ```
pub trait NotAFuture<Declared> {}

/// How cases whose bodies return their results are declared.
pub struct ByCase;

/// How cases whose bodies return futures are declared: by [`Bench::case_async`] or [`Bench::case_async_on`].
pub struct ByCaseAsync;

impl<R> NotAFuture<ByCase> for R {}
impl<R: Future> NotAFuture<ByCaseAsync> for R {}

/// Names the types of argument and result. Cases with the same types share their tare.
fn shape<A, R>() -> Option<String> {
    Some(format!("{} -> {}", type_name::<A>(), type_name::<R>()))
}

impl Bench {
    /// Creates a suite without cases.
    pub fn new() -> Bench {
        Bench::default()
    }

    fn add<R>(&mut self, declaration: Declaration, checker: Check<R>, work: Work) -> Case<'_, R> {
        self.entries.push(Entry { declaration, work });
        let entry = self.entries.last_mut().expect("an entry was added");
        Case { declaration: &mut entry.declaration, checker }
    }

    /// Declares a case whose body has no argument. Pass values that the compiler must not know through [`black_box`].
    #[track_caller]
    pub fn case<R: NotAFuture<IfNotAFuture> + 'static, IfNotAFuture>(
        &mut self,
        name: &str,
        mut body: impl FnMut() -> R + 'static,
    ) -> Case<'_, R> {
        self.case_with(name, (), move |()| body())
    }

    /// Declares a case whose argument is copied for every iteration.
    #[track_caller]
    pub fn case_with<A: Copy + 'static, R: NotAFuture<IfNotAFuture> + 'static, IfNotAFuture>(
        &mut self,
        name: &str,
        argument: A,
        body: impl FnMut(A) -> R + 'static,
    ) -> Case<'_, R> {
        let check = Check::default();
        let work = Work::Body(Box::new(Plain { argument, body, check: check.clone() }));
        let can_chain = chain::is_scalar::<A>() && chain::is_scalar::<R>();
        let timing = if can_chain { Timing::Latency } else { Timing::Throughput };
        let declaration = Declaration { shape: shape::<A, R>(), can_chain, timing, ..Declaration::new(name) };
        self.add(declaration, check, work)
    }

    /// Declares a case whose input is made at the first request for the case, and dropped at the end.
    #[track_caller]
    pub fn case_setup<S: 'static, R: NotAFuture<IfNotAFuture> + 'static, IfNotAFuture>(
        &mut self,
        name: &str,
        setup: impl FnMut() -> S + 'static,
        body: impl FnMut(&mut S) -> R + 'static,
    ) -> Case<'_, R> {
        let check = Check::default();
        let work = Work::Body(Box::new(SetUp { setup, input: None, body, check: check.clone() }));
        self.add(Declaration { shape: shape::<&mut S, R>(), ..Declaration::new(name) }, check, work)
    }

    /// Declares a case whose body consumes its input: every iteration gets a new one, made and dropped outside of the
    /// timed part.
    #[track_caller]
    pub fn case_input<I: 'static, R: NotAFuture<IfNotAFuture> + 'static, IfNotAFuture>(
        &mut self,
        name: &str,
        make: impl FnMut() -> I + 'static,
        body: impl FnMut(&mut I) -> R + 'static,
    ) -> Case<'_, R> {
        let check = Check::default();
        let work = Work::Body(Box::new(Each { make, body, check: check.clone(), inputs: Vec::new() }));
        let declaration = Declaration {
            shape: shape::<&mut I, R>().map(|shape| format!("each {shape}")),
            per_iteration_input: true,
            max_iterations: Some(1000),
            ..Declaration::new(name)
        };
        self.add(declaration, check, work)
    }

    /// Declares a case whose body returns a future, which is awaited before the next iteration begins. It is polled on
    /// this thread; for a future that needs a runtime, use [`Bench::case_async_on`].
    #[track_caller]
    pub fn case_async<R: 'static, T: Future<Output = R> + 'static>(
        &mut self,
        name: &str,
        body: impl FnMut() -> T + 'static,
    ) -> Case<'_, R> {
        self.case_async_on(name, awaited::on_this_thread, body)
    }

    /// Declares a case whose futures need a runtime: `block_on` gets all iterations of a batch as one future and
    /// returns when it is complete, such as `|iterations| runtime.block_on(iterations)` with Tokio.
    #[track_caller]
    pub fn case_async_on<R: 'static, T: Future<Output = R> + 'static>(
        &mut self,
        name: &str,
        block_on: impl for<'a> FnMut(Iterations<'a>) + 'static,
        body: impl FnMut() -> T + 'static,
    ) -> Case<'_, R> {
        let check = Check::default();
        let work = Work::Body(Box::new(Awaited { body, block_on, check: check.clone() }));
        let shape = Some(format!("async {}", type_name::<R>()));
        self.add(Declaration { shape, ..Declaration::new(name) }, check, work)
    }

    /// Declares a case whose body several threads run together: one reading for each number of threads in the list.
    #[track_caller]
    pub fn case_threads<R: NotAFuture<IfNotAFuture> + 'static, IfNotAFuture>(
        &mut self,
        name: &str,
        threads: &[usize],
        body: impl Fn() -> R + Sync + 'static,
    ) -> Case<'_, R> {
        let check = Check::default();
        let work = Work::Body(Box::new(SharedBody { body, check: check.clone() }));
        let declaration = Declaration { threads: threads.to_vec(), ..Declaration::new(name) };
        self.add(Declaration { shape: shape::<(), R>(), ..declaration }, check, work)
    }

    /// Declares a queue between producers and consumers: throughput by element, the ledger of the elements that were
    /// put and taken, and how close to first-in first-out it is. `open` makes a new queue and its ends; closures are
    /// ends, too.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// let mut bench = scruple_bench::Bench::new();
    /// bench.queue("mpsc", 2, 1, || {
    ///     let (tx, rx) = mpsc::channel();
    ///     let put = |tx: mpsc::Sender<u64>| move |element| tx.send(element).is_ok();
    ///     (vec![put(tx.clone()), put(tx)], vec![move || rx.recv().ok()])
    /// });
    /// ```
    #[track_caller]
    pub fn queue<P: Producer, C: Consumer>(
        &mut self,
        name: &str,
        producers: usize,
        consumers: usize,
        open: impl FnMut() -> (Vec<P>, Vec<C>) + 'static,
    ) -> Case<'_, Flow> {
        let stall = Duration::from_secs(1);
        let passing = Passing { producers, consumers, capacity: None, once_elements: 20_000, stall };
        let declaration = Declaration {
            max_iterations: Some(1_000_000),
            checked: true,
            passing: Some(passing),
            ..Declaration::new(name)
        };
        self.add(declaration, Check::default(), Work::Flow(Box::new(open)))
    }

    /// Serves the declared cases to Scruple until it sends `bye`. If the program was started by hand, it executes
    /// `scruple bench` with itself; if `cargo test` started it, it runs each case once.
    pub fn main(self) -> ! {
        std::process::exit(serve::main(self.entries))
    }
}

/// Defines a whole program in a few lines: for each case its name, its argument if it has one, and its body.
///
/// ```no_run
/// scruple_bench::main! {
///     "fnv/one step"(h: u32 = 2166136261) => (h ^ 7).wrapping_mul(16777619);
///     "collect"() => (0..100).collect::<Vec<u32>>();
/// }
/// ```
#[macro_export]
macro_rules! main {
    ($($cases:tt)*) => {
        fn main() {
            let mut bench = $crate::Bench::new();
            $crate::cases!(bench; $($cases)*);
            bench.main()
        }
    };
}

/// Adds cases, written as in [`main!`], to a [`Bench`]: `cases!(bench; "name"() => work();)`.
#[macro_export]
macro_rules! cases {
    ($bench:ident; ) => {};
    ($bench:ident; $name:literal () => $body:expr; $($rest:tt)*) => {
        $bench.case($name, || $body);
        $crate::cases!($bench; $($rest)*);
    };
    ($bench:ident; $name:literal ($argument:ident : $type:ty = $value:expr) => $body:expr; $($rest:tt)*) => {
        $bench.case_with($name, $value, |$argument: $type| $body);
        $crate::cases!($bench; $($rest)*);
    };
}
