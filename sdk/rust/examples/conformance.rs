//! The example cases of sdk/conformance: the test of this SDK.

use scruple_bench::{Bench, Case};
use std::cell::Cell;
use std::collections::VecDeque;
use std::hint::spin_loop;
use std::io::Write;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

fn linear(h: u32) -> u32 {
    (0..1000).fold(h, |h, i| (h ^ i).wrapping_mul(16777619))
}

#[derive(Default)]
struct Ring {
    elements: Mutex<VecDeque<u64>>,
    puts: AtomicU64,
}

impl Ring {
    fn put(&self, element: u64) -> bool {
        let mut elements = self.elements.lock().expect("no thread panics with the lock");
        let room = elements.len() < 64;
        if room {
            elements.push_back(element);
        }
        room
    }

    fn put_most(&self, element: u64) -> bool {
        self.puts.fetch_add(1, Ordering::Relaxed) % 100 == 99 || self.put(element)
    }

    fn get(&self) -> Option<u64> {
        self.elements.lock().expect("no thread panics with the lock").pop_front()
    }
}

fn queue(bench: &mut Bench, name: &str, put: fn(&Ring, u64) -> bool, get: fn(&Ring) -> Option<u64>) {
    let case = bench.queue(name, 2, 2, move || {
        let ring = Arc::new(Ring::default());
        let producer = |ring: Arc<Ring>| move |element| put(&ring, element);
        let consumer = |ring: Arc<Ring>| move || get(&ring);
        (vec![producer(ring.clone()), producer(ring.clone())], vec![consumer(ring.clone()), consumer(ring)])
    });
    let case = case.capacity(64);
    if name.contains("stuck") {
        case.stall(Duration::from_millis(300));
    }
}

fn sleep_for_ever() -> ! {
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

fn queues(bench: &mut Bench) {
    queue(bench, "queue/fifo", Ring::put, Ring::get);
    queue(bench, "queue/lossy", Ring::put_most, Ring::get);
    queue(
        bench,
        "queue/stuck idle",
        |ring, element| ring.put(element) || sleep_for_ever(),
        |_| sleep_for_ever(),
    );
    queue(bench, "queue/stuck busy", Ring::put, |_| {
        loop {
            spin_loop();
        }
    });
}

#[cfg(unix)]
fn forks() {
    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    }
    // SAFETY: the program has one thread only, and the child ends before this process goes on.
    unsafe {
        let child = fork();
        if child != 0 {
            waitpid(child, std::ptr::null_mut(), 0);
        }
    }
}

fn examples(bench: &mut Bench) {
    bench.case_with("identity", 7u32, |h| h);
    bench.case_with("linear", 7u32, linear);
    bench.case_with("alloc/known", 4096, Vec::<u8>::with_capacity).param("bytes", 4096);
    bench.case("throws", || panic!("a deliberate failure"));
    bench.case("skips", || -> u32 { scruple_bench::skip("no such device") });
    #[cfg(unix)]
    bench.case("forks", forks);
    bench.case("hangs/idle", || sleep_for_ever());
    bench.case("hangs/busy", || {
        loop {
            spin_loop();
        }
    });
    bench.case_threads("threads/two", &[1, 2], || linear(7));
    let used = |used: &mut bool| {
        assert!(!*used, "this input was used before");
        *used = true;
    };
    bench.case_input("input/per-iteration", || false, used).max_iterations(100);
    let setups = Rc::new(Cell::new(0));
    let count = {
        let setups = setups.clone();
        move || setups.set(setups.get() + 1)
    };
    bench.case_setup("setup/counted", count, |_| ()).check(move |_| Ok(Some(setups.get().to_string())));
    bench.case_setup("setup/throws", || panic!("a deliberate failure of the setup"), |_: &mut ()| ());
    bench.case("check/passes", || ()).check(|_| Ok(Some("cafe".into())));
    bench.case("check/fails", || ()).check(|_| Err("a deliberate refusal".into()));
    bench.case("prints", || {
        let mut out = std::io::stdout();
        writeln!(out, "printed by a case").and_then(|()| out.flush()).expect("stdout is there");
    });
    for n in [0u32, 1, 2, 3, 10, 100] {
        bench.case_with("growth", n, |n| (0..n).map(scruple_bench::black_box).count()).param("n", n);
    }
    bench.case("budgets", || ()).budget("time.wall", 1_000_000).budget("alloc.bytes", "+5%");
    let fields: Case<'_, ()> =
        bench.case("fields", || ()).group("another group").tag("slow").tag("two words");
    fields.throughput_bytes(4096).fresh().time_limit(Duration::from_secs(5));
    for name in ["\"quoted\" and \\backslash", "tab\ttab", "grün λ 東京 🐎", "a//b/c"] {
        bench.case(&format!("names/{name}"), || ());
    }
}

fn main() {
    let mut bench = Bench::new();
    if std::env::args().skip(1).eq(["many"]) {
        for i in 0..10_000u32 {
            bench.case_with(&format!("many/{i:05}"), i, |i| i).param("index", i);
        }
    } else {
        examples(&mut bench);
        queues(&mut bench);
    }
    bench.main()
}
