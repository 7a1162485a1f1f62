//! Drives the load engine from a terminal: `load [-c N] [-r RATE] [-d SECONDS] [-n REQUESTS] [-t THREADS] [-P] [-S] [-2
//! -m STREAMS] [-k FILE] URL`.
//!
//! This example is for trying the engine and for comparing it with other generators; use `scruple load` for real
//! measurements.

use scruple_measure::load::{Arrivals, Pace, Plan, Polling, Protocol, Request, Target, Trust, WarmUp, run};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[allow(clippy::print_stdout, clippy::print_stderr)]
fn main() {
    if let Err(message) = drive() {
        eprintln!("{message}");
        std::process::exit(2);
    }
}

#[allow(clippy::print_stdout)]
fn drive() -> Result<(), String> {
    let mut plan = Plan::of(Request::get("/"));
    let mut words = std::env::args().skip(1);
    let mut url = None;
    let mut poisson = false;
    let mut trust = None;
    let mut rate = None;
    let mut http2 = false;
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: String| text.parse::<f64>().map_err(|_| format!("{text} is not a number"));
        match word.as_str() {
            "-c" => plan.connections = number(value()?)? as u32,
            "-d" => plan.duration = Duration::from_secs_f64(number(value()?)?),
            "-n" => plan.max_requests = Some(number(value()?)? as u64),
            "-t" => plan.threads.count = number(value()?)? as u32,
            "-r" => rate = Some(number(value()?)?),
            "-w" => plan.warm_up = WarmUp::For(Duration::from_secs_f64(number(value()?)?)),
            "-a" => plan.threads.cores = vec![number(value()?)? as usize],
            "-T" => plan.timeout = Duration::from_secs_f64(number(value()?)?),
            "-k" => trust = Some(Trust::File(value()?.into())),
            "-W" => plan.warm_up = WarmUp::Off,
            "-S" => plan.threads.polling = Polling::Off,
            "-s" => plan.threads.polling = Polling::On,
            "-P" => poisson = true,
            "-F" => plan.threads.priority = true,
            "-C" => plan.keep_alive = false,
            "-2" => http2 = true,
            "-m" => plan.streams = number(value()?)? as u32,
            _ => url = Some(word),
        }
    }
    if let Some(rate) = rate {
        plan.pace =
            Pace::Open { rate, arrivals: if poisson { Arrivals::Poisson } else { Arrivals::Constant } };
    }
    let (mut target, path) =
        Target::parse(&url.ok_or("a URL is needed")?).map_err(|error| error.to_string())?;
    if let (Some(trust), Some(_)) = (trust, &target.tls) {
        target.tls = Some(trust);
    }
    if http2 {
        target.protocol = Protocol::Http2;
    }
    plan.requests = vec![Request::get(&path)];
    let result =
        run(&target, &plan, &AtomicBool::new(false), &mut |_| {}).map_err(|error| error.to_string())?;
    println!(
        "{:?}: {} answered, {} failed, {:.0}/s over {:.3} s, {} B, backlog {}, {} reconnects, warm-up {} of {} slices",
        result.ended,
        result.counts.answered,
        result.counts.failures.total(),
        result.rate(),
        result.span as f64 / 1e9,
        result.counts.bytes,
        result.counts.backlog,
        result.reconnects,
        result.warm_up,
        result.parts.len(),
    );
    for (name, latencies) in [
        ("response", &result.times.response),
        ("service", &result.times.service),
        ("lag", &result.times.lag),
        ("lateness", &result.times.lateness),
        ("connect", &result.connect),
    ] {
        let ms = |q| latencies.quantile(q).map_or(f64::NAN, |value| value as f64 / 1e6);
        println!(
            "{name:>9} ms: p50 {:.4}  p90 {:.4}  p95 {:.4}  p99 {:.4}  p99.9 {:.4}  max {:.4}  n {}",
            ms(0.5),
            ms(0.9),
            ms(0.95),
            ms(0.99),
            ms(0.999),
            ms(1.0),
            latencies.count()
        );
    }
    for (class, count) in result.counts.failures.each() {
        println!("{count:>9} {}", class.meaning());
    }
    let own = result.generator;
    let each = |time: u64| time as f64 / 1e3 / own.requests.max(1) as f64;
    println!(
        "generator: user {:.2} µs, sys {:.2} µs per request, busy {:.0} %, waited {:.1} %, preempted {}",
        each(own.user),
        each(own.system),
        own.busy() * 100.0,
        own.starved() * 100.0,
        own.preempted
    );
    for doubt in &result.doubts {
        println!("{}: {}: {}", if doubt.voids { "void" } else { "note" }, doubt.code, doubt.text);
    }
    Ok(())
}
