//! Bodies that are futures: each iteration is awaited before the next begins.

use crate::body::{self, Body, Check, Kind, Task, Verdict};
use crate::opaque::opaque;
use crate::team::Measured;
use std::cell::RefCell;
use std::future::{Future, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};

/// The iterations of a batch as a future, which `block_on` of a runtime completes.
pub type Iterations<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls the future on this thread, which sleeps between wake-ups.
pub fn on_this_thread(work: Iterations<'_>) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut work = pin!(work);
    while work.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        thread::park();
    }
}

/// A body without an argument that returns a future.
pub struct Awaited<F, B, R> {
    pub body: F,
    pub block_on: B,
    pub check: Check<R>,
}

impl<R, T, F, B> Body for Awaited<F, B, R>
where
    R: 'static,
    T: Future<Output = R>,
    F: FnMut() -> T,
    B: for<'a> FnMut(Iterations<'a>),
{
    fn batch(&mut self, Task { kind, iterations, heap, .. }: Task) -> Result<Measured, String> {
        let body = &mut self.body;
        let work: Iterations<'_> = match kind {
            Kind::Case => Box::pin(async move {
                for _ in 0..iterations {
                    drop(opaque(body().await));
                }
            }),
            Kind::Tare => Box::pin(async move {
                for _ in 0..iterations {
                    let nothing = opaque(ready(0_u8)).await;
                    opaque(nothing);
                    body::tare::<(), R>(());
                }
            }),
        };
        let block_on = &mut self.block_on;
        body::measure(heap, || block_on(work))
    }

    fn once(&mut self) -> Option<Verdict> {
        let checks = RefCell::new(None);
        let (body, check) = (&mut self.body, &self.check);
        (self.block_on)(Box::pin(async {
            let result = body().await;
            checks.replace(body::judge(check, &result));
        }));
        checks.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bench;
    use std::cell::Cell;
    use std::task::Poll;
    use std::time::Duration;

    #[test]
    fn a_future_that_another_thread_completes_is_waited_for() {
        let done = Cell::new(0);
        on_this_thread(Box::pin(async {
            let (tx, rx) = std::sync::mpsc::channel();
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(5));
                tx.send(7).expect("somebody waits");
            });
            done.set(
                std::future::poll_fn(|context| {
                    // The future is polled until the channel has the value.
                    context.waker().wake_by_ref();
                    rx.try_recv().map_or(Poll::Pending, Poll::Ready)
                })
                .await,
            );
        }));
        assert_eq!(done.get(), 7);
    }

    #[test]
    fn a_case_may_be_run_by_the_runtime_of_the_user() {
        let polls = std::rc::Rc::new(Cell::new(0));
        let seen = polls.clone();
        let mut bench = Bench::new();
        let runtime = move |work: Iterations<'_>| {
            seen.set(seen.get() + 1);
            on_this_thread(work);
        };
        bench.case_async_on("async", runtime, || async { 1 + 1 }).check(|two| match two {
            2 => Ok(None),
            other => Err(other.to_string()),
        });
        let crate::Work::Body(body) = &mut bench.entries[0].work else { panic!("it is a body") };
        assert_eq!(body.once(), Some(Ok(None)));
        assert_eq!(polls.get(), 1);
    }
}
