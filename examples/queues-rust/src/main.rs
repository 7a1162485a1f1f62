//! Queues and event schedulers side by side: throughput by element, whether everything arrives exactly once, and how nearly
//! first-in first-out it is.

mod channels;
mod events;
mod schedulers;

use scruple_bench::Bench;

fn main() {
    let mut bench = Bench::new();
    channels::declare(&mut bench);
    events::declare(&mut bench);
    bench.main()
}
