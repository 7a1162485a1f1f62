//! Tests of the cost of a request, with servers whose cost is known because it was planted.

use super::free_port::free_port;
use super::servers::{self, Loop, Stall};
use super::{load, small};
use scruple_measure::load::cost::{
    instructions, process_tree::ProcessTree, sampled, server_process::ServerCommand, server_windows,
    sheet::Sheet, syscalls, window,
};
use scruple_measure::load::{Arrivals, Pace, Plan, Target, run_watched};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A value of `leak` that asks for a server with a thread for each connection, or with `work` for each request.
const THREADS: usize = usize::MAX;

/// The server of the other tests, which run this program again with a variable set. It serves until it is killed.
#[test]
fn server_of_the_cost_tests() {
    let Ok(wish) = std::env::var("SCRUPLE_TEST_SERVER") else { return };
    let mut words = wish.split(' ').map(|word| word.parse().expect("numbers"));
    let (port, leak, work) =
        (words.next().expect("port"), words.next().expect("leak"), words.next().expect("work"));
    let _server = match leak {
        THREADS => return servers::threads(port as u16, work > 0),
        _ => Loop::planted(port as u16, leak, work),
    };
    loop {
        std::thread::sleep(Duration::from_secs(60));
    }
}

/// A server that leaks `leak` bytes and works `work` steps per request.
fn server(leak: usize, work: usize) -> (ServerCommand, Target) {
    let port: u16 = free_port().parse().expect("a number");
    let own = std::env::current_exe().expect("this program");
    let mut command = ServerCommand::of(vec![
        own.into(),
        "cost::server_of_the_cost_tests".into(),
        "--exact".into(),
        "--test-threads=1".into(),
    ]);
    command.env.push(("SCRUPLE_TEST_SERVER".into(), format!("{port} {leak} {work}").into()));
    (command, Target::parse(&format!("http://127.0.0.1:{port}/")).expect("a target").0)
}

fn weigh(leak: usize, work: usize, plan: &Plan, lengths: &[u64]) -> Sheet {
    let (command, target) = server(leak, work);
    let running =
        command.start(&target, Duration::from_secs(30), &AtomicBool::new(false)).expect("it starts");
    let tree = ProcessTree::of(running.pid()).expect("it lives");
    let go = AtomicBool::new(false);
    let mut drive =
        |plan: &Plan, at_end: &(dyn Fn() + Sync)| run_watched(&target, plan, &go, &mut |_| {}, at_end);
    server_windows::weigh(&tree, plan, lengths, &mut drive, &mut Vec::new).expect("a sheet")
}

fn each(sheet: &Sheet, key: &str) -> f64 {
    let row = sheet.rows.iter().find(|row| row.key == key).expect("a row");
    row.cost.as_ref().expect("a cost").each.value
}

#[test]
fn a_leak_is_found_and_its_absence_too() {
    let lengths = window::lengths(24_000, 2);
    let plan = Plan { duration: Duration::from_secs(60), timeout: Duration::from_secs(10), ..small() };
    let leaky = weigh(100, 0, &plan, &lengths);
    let growth = leaky.growth.iter().find(|growth| growth.of == "anonymous").expect("a growth").per_thousand;
    // With the allocator's overhead a block of 100 bytes takes 112 bytes. A page is dirty from its first byte on, so
    // the memory at the end of each window matches the requests until then, except for a few pages.
    let mut served = 0;
    for window in &leaky.windows[1..] {
        served += window.requests;
        let grown = window.memory.anonymous.abs_diff(leaky.windows[0].memory.anonymous);
        assert!(
            grown.abs_diff(112 * served) < 64 << 10,
            "{grown} after {served} requests: {:?}",
            leaky.windows
        );
    }
    assert!((growth.value / 112_000.0 - 1.0).abs() < 0.05, "{growth:?}");
    assert!(leaky.growth.iter().any(|growth| growth.of == "anonymous" && growth.is_leak()), "{growth:?}");
    let tight = weigh(0, 0, &plan, &lengths);
    let growth = tight.growth.iter().find(|growth| growth.of == "anonymous").expect("a growth").per_thousand;
    // Memory may also shrink, if the kernel takes idle pages back.
    assert!(growth.value < 10_000.0, "{growth:?}");
    assert_eq!(tight.windows.len(), 6);
    assert_eq!(tight.windows.iter().map(|window| window.requests).sum::<u64>(), 24_000);
    assert!(tight.maps.0.total().private_dirty > 0 && tight.maps.1.total().private_dirty > 0);
}

#[test]
fn processor_time_is_divided_by_requests() {
    // The rate is fixed, because the cost of a request depends on how busy the server is.
    let plan = Plan {
        pace: Pace::Open { rate: 500.0, arrivals: Arrivals::Constant },
        duration: Duration::from_secs(60),
        timeout: Duration::from_secs(10),
        ..small()
    };
    let lengths = [200, 600, 400, 400, 200, 600];
    let (idle, busy) = (weigh(0, 0, &plan, &lengths), weigh(0, 200_000, &plan, &lengths));
    let (idle, busy) = (each(&idle, "time.cpu"), each(&busy, "time.cpu"));
    // 200,000 steps take at least a fifth of a millisecond.
    assert!(busy > idle + 100_000.0, "{idle} ns without, {busy} ns with work");
}

#[test]
fn threads_that_end_with_their_connection_are_counted_and_others_are_reported_as_uncounted() {
    let plan = Plan { duration: Duration::from_secs(60), timeout: Duration::from_secs(30), ..small() };
    // Other programs on the machine make threads wait, which averages out over several windows of each length.
    let lengths = [100, 400, 200, 400, 100, 200, 400, 100];
    let connections = weigh(THREADS, 0, &plan, &lengths);
    // Each request sleeps once, and its thread may also wait for the next request.
    let switches = each(&connections, "switches.voluntary");
    assert!((0.9..4.0).contains(&switches), "{switches}");
    let requests = weigh(THREADS, 1, &plan, &lengths);
    for key in ["time.wait", "switches.voluntary", "switches.involuntary"] {
        let row = requests.rows.iter().find(|row| row.key == key).expect("a row");
        let why = row.cost.as_ref().expect_err("the cost is unknown");
        assert!(why.contains("threads that began and ended"), "{why}");
    }
    assert!(each(&requests, "time.cpu") > 100_000.0);
}

#[test]
fn planted_instructions_are_found_by_function() {
    if let Err(why) = instructions::available() {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: {why}");
        return;
    }
    let weigh = |work| {
        let (command, target) = server(0, work);
        let mut drive = |requests| {
            let plan = Plan {
                connections: 1,
                max_requests: Some(requests),
                duration: Duration::from_secs(100),
                timeout: Duration::from_secs(30),
                ..small()
            };
            let result = load(&target, &plan).map_err(|error| error.to_string())?;
            if result.counts.answered == requests {
                Ok(result)
            } else {
                Err(format!("{:?}", result.counts.failures))
            }
        };
        let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("calltree");
        let mut profile = |requests| {
            instructions::weigh(&command, &target, requests, &cache, &AtomicBool::new(false), &mut drive)
        };
        // On a busy machine the server waits for requests more often in some batches. More requests are the advice then.
        match profile(600) {
            Err(why) if why.contains("count more requests") => profile(3000),
            found => found,
        }
        .expect("a profile")
    };
    // The planted work is so large that the server's own waiting loop is small beside it.
    let (without, with) = (weigh(0), weigh(20_000));
    let planted =
        with.functions.iter().find(|cost| cost.function.name.contains("planted")).expect("in the profile");
    assert!((planted.calls - 1.0).abs() < 1e-9, "{planted:?}");
    let inclusive = planted.inclusive.value;
    assert!(inclusive >= 20_000.0, "{planted:?}");
    let width = planted.inclusive.interval.map_or(0.0, |interval| interval.high - interval.low);
    assert!(width < 1.0, "the same work in each request: {planted:?}");
    let more = with.total.value - without.total.value;
    assert!((more / inclusive - 1.0).abs() < 0.2, "{more} more, {inclusive} in the function");
    let sum: f64 = with.functions.iter().map(|cost| cost.own.value).sum();
    // The cost of a function whose counts fall with the number of requests is 0, so the sum may exceed the total.
    let whole = sum / with.total.value;
    assert!((1.0 - 1e-9..1.1).contains(&whole), "the functions add up to {sum} of {:?}", with.total);
}

#[test]
fn samples_and_system_calls_are_divided_by_requests() {
    let (command, target) = server(0, 100_000);
    let running =
        command.start(&target, Duration::from_secs(30), &AtomicBool::new(false)).expect("it starts");
    let tree = ProcessTree::of(running.pid()).expect("it lives");
    let mut drive = || {
        let plan = Plan { max_requests: Some(1000), duration: Duration::from_secs(30), ..small() };
        load(&target, &plan).map(|result| result.generator.requests).map_err(|error| error.to_string())
    };
    match sampled::weigh(&tree, &mut drive) {
        Err(why) => println!("skipped: {why}"),
        Ok(profile) => {
            let planted =
                profile.functions.iter().find(|time| time.name.contains("planted")).expect("sampled");
            assert!(planted.inclusive > profile.total / 3.0, "{planted:?} of {}", profile.total);
            assert!(planted.interval.low <= planted.inclusive && planted.inclusive <= planted.interval.high);
        }
    }
    match syscalls::count(&tree, &mut drive) {
        Err(why) => println!("skipped: {why}"),
        Ok(calls) => {
            let sends = calls.get("write").or(calls.get("sendto")).copied().unwrap_or(0.0);
            assert!((0.99..1.1).contains(&sends), "{calls:?}");
        }
    }
}

#[test]
fn the_server_is_found_by_its_port() {
    let server = Loop::tcp(Stall::default());
    let found = scruple_measure::load::listener::listening_on_port(server.address.port());
    assert_eq!(found, Ok(std::process::id() as i32));
}
