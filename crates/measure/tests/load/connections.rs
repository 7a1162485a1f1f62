//! When connections are closed and made again.

use scruple_measure::load::{LoadResult, Plan};

use crate::servers::{self, HELLO};
use crate::{load, small, target};

#[test]
fn connections_are_renewed_when_the_server_or_the_plan_says_so() {
    let closes = servers::answers_and_closes(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end");
    let result = load(&target(closes), &small()).expect("a run");
    assert_eq!((result.counts.answered, result.counts.bytes, result.counts.failures.total()), (100, 1000, 0));
    assert!(result.reconnects >= 90 && result.connect.count() >= 90);
    let says_so = |result: &LoadResult| result.doubts.iter().any(|doubt| doubt.code == "server-closes");
    assert!(says_so(&result), "{:?}", result.doubts);
    let keeps = servers::answers_and_closes(HELLO);
    let result = load(&target(keeps), &Plan { keep_alive: false, ..small() }).expect("a run");
    assert_eq!((result.counts.answered, result.counts.failures.total()), (100, 0));
    assert!(!says_so(&result), "{:?}", result.doubts);
}
