//! What remains of a load that is interrupted.

use super::{small, target};
use crate::servers::{self, HELLO};
use scruple_measure::load::{Arrivals, Ended, Pace, Plan, run};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[test]
fn an_interruption_ends_it_with_the_figures_so_far() {
    let address = servers::answers(HELLO);
    let interrupted = AtomicBool::new(false);
    let mut seen = 0;
    let plan = Plan {
        pace: Pace::Open { rate: 500.0, arrivals: Arrivals::Constant },
        duration: Duration::from_secs(60),
        max_requests: None,
        ..small()
    };
    let began = Instant::now();
    let result = run(&target(address), &plan, &interrupted, &mut |progress| {
        seen += 1;
        if seen == 3 {
            assert!(progress.answered > 0);
            interrupted.store(true, Ordering::Relaxed);
        }
    })
    .expect("a part of a run");
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(result.ended, Ended::Interrupted);
    assert!(result.counts.answered > 0 && result.counts.failures.total() == 0);
}

#[test]
fn an_interrupted_closed_loop_lasted_until_then_though_its_server_hung() {
    let address = servers::serve(|mut stream| {
        let _ = servers::request(&mut stream) && stream.write_all(HELLO).is_ok();
        while servers::request(&mut stream) {}
    });
    let interrupted = AtomicBool::new(false);
    let (mut last, mut at) = (None, 0.0);
    let plan = Plan { max_requests: None, ..small() };
    let result = run(&target(address), &plan, &interrupted, &mut |progress| {
        last = last.or((progress.answered == 4).then_some(progress.elapsed));
        // Until the hanging requests have waited for longer than any answer took.
        let long = last.is_some_and(|last| progress.elapsed > 2.0 * last + 0.3);
        if long && !interrupted.swap(true, Ordering::Relaxed) {
            at = progress.elapsed;
        }
    })
    .expect("a part of a run");
    assert_eq!((result.ended, result.counts.answered), (Ended::Interrupted, 4));
    assert!(result.rate() <= 4.0 / at, "{} in {at} s", result.rate());
    assert_eq!(result.unanswered.requests, 4);
    let said = "when 4 requests had no answer; the oldest had waited ";
    assert!(result.doubts.iter().any(|doubt| doubt.text.contains(said)), "{:?}", result.doubts);
}
