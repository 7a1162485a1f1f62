//! Windows with known costs.

use super::super::process_tree::TreeMemory;
use super::super::{cost_row, window};
use super::*;
use scruple_core::metric::Quality;
use scruple_core::unit::Unit;

#[test]
fn windows_differ_and_add_up() {
    let lengths = window::lengths(12_000, 2);
    assert_eq!(lengths, [1000, 3000, 2000, 2000, 1000, 3000]);
    assert_eq!(window::lengths(0, 0), [1, 3, 2]);
}

/// On a busy machine the thread that reads the accounts may lose its core between reading the count and the
/// accounts.
#[test]
fn a_window_with_too_few_handled_requests_is_continued() {
    let tree = ProcessTree::of(std::process::id() as i32).expect("we are here");
    let mut watch = ServerWindows::of(&tree, &mut Vec::new).expect("accounts");
    let counts = std::cell::RefCell::new(vec![2000, 2000, 600, 600, 600, 590].into_iter());
    let handled = || counts.borrow_mut().next_back().unwrap_or_default();
    watch.begin(&handled, &mut Vec::new).expect("accounts");
    watch.mark(&handled, &mut Vec::new).expect("accounts");
    watch.end(&handled, None, &mut Vec::new);
    let requests: Vec<u64> = watch.windows.iter().map(|window| window.requests).collect();
    assert_eq!(requests, [0, 2000 - 595]);
    let costs = watch.costs_from(0);
    assert!(costs[0].is_empty() && costs[1].iter().any(|(key, _)| key == "time.cpu"), "{costs:?}");
}

/// Windows whose costs fall with their requests, as noise produces them if a request costs next to nothing.
#[test]
fn no_end_of_a_request_s_cost_is_below_nothing() {
    let windows = |costs: [f64; 4]| -> Vec<Window> {
        let window = |(requests, cost): (u64, f64)| Window {
            requests,
            elapsed: 1_000_000_000,
            grown: vec![("time.cpu".to_owned(), cost)],
            memory: TreeMemory::default(),
        };
        [100, 300, 200, 400].into_iter().zip(costs).map(window).collect()
    };
    let known = [Reading {
        key: "time.cpu".into(),
        unit: Unit::Nanoseconds,
        quality: Quality::Noisy,
        source: "test".into(),
        value: Ok(0.0),
    }];
    let maps = || (MemoryMap::default(), MemoryMap::default());
    let sheet = Sheet::of(&known, windows([5000.0, 4000.0, 9000.0, 4500.0]), &[], maps());
    let each = sheet.rows[0].cost.as_ref().expect("a cost").each;
    let interval = each.interval.expect("four windows");
    assert!(each.value == 0.0 && interval.low == 0.0 && interval.high > 0.0, "{each:?}");
    let below = |sheet: &Sheet| sheet.rows[0].cost.as_ref().expect("a cost").below_resolution();
    assert_eq!(below(&sheet), Some(interval.high), "the fit gives no cost, and only its upper end is known");
    let sheet = Sheet::of(&known, windows([1000.0, 3100.0, 2000.0, 4000.0]), &[], maps());
    assert_eq!(below(&sheet), None, "{sheet:?}");
    let sheet = Sheet::of(&known, windows([0.0; 4]), &[], maps());
    assert_eq!(below(&sheet), None, "the counter never changed");
    let two = windows([5000.0, 4000.0, 9000.0, 4500.0])[..2].to_vec();
    let sheet = Sheet::of(&known, two, &[], maps());
    assert!(sheet.rows[0].cost.as_ref().is_err_and(|why| why.contains("cost less")), "{sheet:?}");
    let sheet = Sheet::of(&known, windows([9000.0, 7000.1, 8000.0, 6000.0]), &[], maps());
    assert!(sheet.rows[0].cost.as_ref().is_err_and(|why| why.contains("without requests")), "{sheet:?}");
}

#[test]
fn counters_grow_between_readings_and_absent_ones_say_why() {
    let reading = |key: &str, value: Result<f64, &str>| Reading {
        key: key.into(),
        unit: Unit::Count,
        quality: Quality::Exact,
        source: "test".into(),
        value: value.map_err(str::to_owned),
    };
    let before = [reading("a", Ok(5.0)), reading("b", Err("none here"))];
    let after = [reading("a", Ok(8.0)), reading("b", Err("none here")), reading("c", Ok(1.0))];
    assert_eq!(grown(&before, &after), [("a".to_owned(), 3.0)]);
    assert_eq!(cost_row::row(&after[1], &[], &[]).cost, Err("none here".to_owned()));
}

/// The windows of a server that needs 5 µs for each request and 1 ms per second besides, and waits 10 ns for each.
fn watched(unseen: u64) -> ServerWindows {
    let tree = ProcessTree::of(std::process::id() as i32).expect("we are here");
    let reading = |key: &str| Reading {
        key: key.into(),
        unit: Unit::Nanoseconds,
        quality: Quality::Noisy,
        source: "test".into(),
        value: Ok(0.0),
    };
    let mut watch = ServerWindows {
        tree,
        idle: vec![("time.cpu".to_owned(), 1e6)],
        map_before: None,
        windows: Vec::new(),
        before: None,
        known: ["time.cpu", "time.wait"].map(reading).to_vec(),
        unseen: UnseenThreads::default(),
        collected_by: None,
    };
    for (requests, seconds) in [(100, 2.0), (300, 1.0), (200, 4.0), (400, 1.0)] {
        let cpu = 5000.0 * requests as f64;
        watch.windows.push(Window {
            requests,
            elapsed: (seconds * 1e9) as u64,
            grown: vec![
                ("time.cpu".to_owned(), cpu + 1e6 * seconds),
                ("time.wait".to_owned(), 10.0 * requests as f64),
            ],
            memory: TreeMemory::default(),
        });
        watch.unseen.add(requests, unseen * requests, cpu as u64);
    }
    watch
}

#[test]
fn what_a_server_does_without_requests_is_no_cost_of_them() {
    let watch = watched(0);
    let each = |costs: &[(String, f64)]| costs.iter().map(|(_, cost)| cost.round()).collect::<Vec<_>>();
    assert!(watch.costs_from(0).iter().all(|window| each(window) == [5000.0, 10.0]), "{watch:?}");
    assert_eq!(watch.costs_from(3).len(), 1);
    let sheet = watch.finish();
    let costs = sheet.rows.iter().map(|row| row.cost.as_ref().expect("a cost").each.value.round());
    assert_eq!(costs.collect::<Vec<_>>(), [5000.0, 10.0]);
}

#[test]
fn waits_of_threads_that_nobody_saw_are_absent_from_windows_and_sheets_also_on_another_node() {
    let watch = watched(4000);
    let keys = |costs: &[(String, f64)]| costs.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
    assert!(watch.costs_from(0).iter().all(|window| keys(window) == ["time.cpu"]), "{watch:?}");
    let sheet_input = serde_json::to_string(&watch.sheet_input()).expect("plain data");
    let sheet = serde_json::from_str::<SheetInput>(&sheet_input).expect("the same").sheet();
    assert!(sheet.rows[0].cost.is_ok());
    assert!(sheet.rows[1].cost.as_ref().is_err_and(|why| why.contains("began and ended")), "{sheet:?}");
}

/// A collected heap that grows is no leak yet, also if the server has ended under the load. This process, like one that
/// has ended, has no runtime.
#[test]
fn the_runtime_of_a_server_is_known_after_its_end() {
    let mut watch = watched(0);
    assert_eq!(watch.clone().sheet_input().collected_by, None);
    watch.collected_by = Some("node".to_owned());
    assert_eq!(watch.sheet_input().collected_by.as_deref(), Some("node"));
}

#[test]
fn a_single_event_is_no_steady_background() {
    let tree = ProcessTree::of(std::process::id() as i32).expect("we are here");
    // Three observations, in which the counter grows by 100, 0 and 90.
    let mut values = [0.0, 100.0, 100.0, 100.0, 100.0, 190.0].into_iter();
    let mut more = || {
        let value = values.next().ok_or_else(|| "a seventh look".to_owned());
        vec![Reading {
            key: "events".into(),
            unit: Unit::Count,
            quality: Quality::Exact,
            source: "test".into(),
            value,
        }]
    };
    let idle = idle(&tree, &mut more).expect("accounts");
    assert_eq!(idle.iter().find(|(key, _)| key == "events"), Some(&("events".to_owned(), 0.0)));
}
