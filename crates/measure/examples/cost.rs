//! Prints the cost sheet of a server: `cost [-r RATE] [-c N] [-n REQUESTS] [-i N1,N2] [-s] URL -- COMMAND…`.
//!
//! `-i` adds instructions by function from two numbers of requests, `-s` adds sampled time and system calls. This
//! example is for trying the engine; use `scruple load` for real measurements.

use scruple_measure::load::cost::process_tree::ProcessTree;
use scruple_measure::load::cost::server_process::ServerCommand;
use scruple_measure::load::cost::{instructions, sampled, server_windows, syscalls, window};
use scruple_measure::load::{Arrivals, Pace, Plan, Request, Target, WarmUp, run};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[allow(clippy::print_stderr)]
fn main() {
    if let Err(message) = drive() {
        eprintln!("{message}");
        std::process::exit(2);
    }
}

#[allow(clippy::print_stdout)]
fn drive() -> Result<(), String> {
    let mut words = std::env::args().skip(1);
    let (mut rate, mut connections, mut requests, mut counts, mut sampling, mut url) =
        (1000.0, 10_u32, 12_000_u64, None, false, None);
    while let Some(word) = words.next().filter(|word| word != "--") {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: &str| text.parse::<f64>().map_err(|_| format!("{text} is not a number"));
        match word.as_str() {
            "-r" => rate = number(&value()?)?,
            "-c" => connections = number(&value()?)? as u32,
            "-n" => requests = number(&value()?)? as u64,
            "-i" => {
                let both = value()?;
                let (few, many) = both.split_once(',').ok_or("two counts are expected: -i 100,1100")?;
                counts = Some((number(few)? as u64, number(many)? as u64));
            }
            "-s" => sampling = true,
            _ => url = Some(word),
        }
    }
    let server = ServerCommand::of(words.map(Into::into).collect());
    let (target, path) = Target::parse(&url.ok_or("a URL is needed")?).map_err(|error| error.to_string())?;
    let plan = Plan {
        pace: Pace::Open { rate, arrivals: Arrivals::Constant },
        connections,
        duration: Duration::from_secs(300),
        warm_up: WarmUp::Off,
        ..Plan::of(Request::get(&path))
    };
    let go = AtomicBool::new(false);
    let load = |plan: &Plan| run(&target, plan, &go, &mut |_| {});
    let running = server.start(&target, Duration::from_secs(20), &go).map_err(|error| error.to_string())?;
    let tree = ProcessTree::of(running.pid())?;
    let lengths = window::lengths(requests, 2);
    let sheet = server_windows::weigh(&tree, &plan, &lengths, &mut |plan, _| load(plan), &mut Vec::new)
        .map_err(|error| error.to_string())?;
    println!(
        "{} processes, {rate}/s, {connections} connections, windows {lengths:?}",
        tree.processes().len()
    );
    for row in &sheet.rows {
        match &row.cost {
            Err(why) => println!("{:24} absent: {why}", row.key),
            Ok(cost) => {
                let interval =
                    cost.each.interval.map_or(String::new(), |i| format!("[{:.3}, {:.3}]", i.low, i.high));
                println!(
                    "{:24} {:12.3} {interval} {} per request, {:.0} per window, {:.0} idle/s, R² {:.4}",
                    row.key,
                    cost.each.value,
                    row.unit.name(),
                    cost.fixed.value,
                    row.idle,
                    cost.r_squared
                );
            }
        }
    }
    for growth in &sheet.growth {
        println!(
            "grows {:18} {:12.0} bytes per 1000 requests, leak: {}",
            growth.of,
            growth.per_thousand.value,
            growth.is_leak()
        );
    }
    for window in &sheet.windows {
        println!("window: {} requests in {:.3} s", window.requests, window.elapsed as f64 / 1e9);
    }
    if sampling {
        let mut some = || {
            let result = load(&Plan { max_requests: Some(requests / 4), ..plan.clone() })
                .map_err(|e| e.to_string())?;
            Ok(result.generator.requests)
        };
        match sampled::weigh(&tree, &mut some) {
            Err(why) => println!("no samples: {why}"),
            Ok(sampled) => {
                println!(
                    "{} samples: {:.1} µs per request, kernel {:.1}",
                    sampled.samples,
                    sampled.total / 1e3,
                    sampled.kernel / 1e3
                );
                for time in sampled.functions.iter().take(12) {
                    println!(
                        "  {:8.2} µs own {:8.2} inclusive  {} ({})",
                        time.own / 1e3,
                        time.inclusive / 1e3,
                        time.name,
                        time.object
                    );
                }
            }
        }
        println!("system calls: {:?}", syscalls::count(&tree, &mut some));
    }
    drop(running);
    if let Some(counts) = counts {
        let mut exactly = |count| {
            let plan = Plan {
                pace: Pace::Closed,
                connections: 1,
                max_requests: Some(count),
                timeout: Duration::from_secs(60),
                ..plan.clone()
            };
            let result = load(&plan).map_err(|error| error.to_string())?;
            if result.counts.answered == count {
                Ok(result)
            } else {
                Err(format!("{:?}", result.counts.failures))
            }
        };
        let cache = std::env::temp_dir().join("scruple-calltree");
        let found = instructions::weigh(&server, &target, counts.1, &cache, &go, &mut exactly)?;
        println!("{:.0} instructions per request in user space", found.total.value);
        for cost in found.functions.iter().take(15) {
            println!(
                "  {:10.0} {:5.1} % {:8.2} calls  {} ({})",
                cost.own.value,
                cost.own.value / found.total.value * 100.0,
                cost.calls,
                cost.function.name,
                cost.function.object
            );
        }
    }
    Ok(())
}
