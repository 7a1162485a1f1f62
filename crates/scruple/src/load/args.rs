//! The options of `scruple load`.

use crate::cli::shared_args::{ResultArgs, StoreArgs};
use crate::cli::values::{margin_help, percent};
use crate::fault::Fault;
use clap::{Args, ValueEnum};
use scruple_core::default_margins::{HIGHEST_RATES, SERVERS};
use std::path::PathBuf;
use std::str::FromStr;

/// Load a server and weigh its latency and its cost per request.
///
/// Without --rate, each connection sends its next request as soon as the previous one is answered (a closed loop). With
/// --rate, requests are due at fixed times, whatever the server does. Latency is measured from the due time, so a stall
/// counts for every request that it delays.
///
/// Scruple starts and ends the server whose command follows `--`. It finds a server that already runs on this machine
/// by its port; --pid names one that it cannot find. The cost per request comes from the kernel's accounts.
///
/// --export page.html writes a page with the latencies, their course over time, and the cost. --export load.hgrm writes
/// the distribution of response times in HdrHistogram's text format, and load.hlog their log over time, one file for
/// each server. --export all.jsonl or requests:all.csv writes every single request.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple load http://localhost:8080/ -c 10 --rate 2000 -d 10s
  scruple load :8080 --rate 500 --limit 'load.p99<20ms' --limit 'load.errors<0.1%' -- ./server --port 8080
  scruple load :8081 --rate 500 --against 'old=:8080 -- ./old 8080' --name new -- ./new 8081
  scruple load :8080 --profile knee --slo 'p99<20ms,errors<0.1%' -- ./server --port 8080
  scruple load unix:/run/app.sock --scenario shop.toml -c 20
")]
pub struct LoadArgs {
    /// Where requests go: http://host:port/path, https://…, :port/path, unix:/path.
    pub url: String,
    /// The command that starts the server.
    #[arg(last = true, value_name = "SERVER")]
    pub server: Vec<String>,
    /// How much is sent, and how fast.
    #[command(flatten)]
    pub amount: AmountArgs,
    /// What is sent.
    #[command(flatten)]
    pub request: RequestArgs,
    /// The connections.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// What is read of the server.
    #[command(flatten)]
    pub cost: CostArgs,
    /// Limits, comparisons, searches.
    #[command(flatten)]
    pub judging: JudgingArgs,
    /// Where results go.
    #[command(flatten)]
    pub results: ResultArgs,
    /// Send the state of the load to other programs each second.
    ///
    /// ‘http://HOST:4318’ is a collector of OpenTelemetry (OTLP over HTTP, in JSON), ‘:9464’ an address that Prometheus
    /// scrapes, and ‘FILE.prom’ a file in its text format.
    #[arg(long, value_name = "WHERE", help_heading = "Results", hide_short_help = true)]
    pub live: Option<String>,
    /// Where runs are kept.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Play windows from a file instead of loading (for tests).
    #[arg(long, hide = true, value_name = "FILE")]
    pub scripted: Option<PathBuf>,
}

/// What a load is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadProfile {
    /// Latency and cost, 10 s.
    Bench,
    /// Half an hour in thirty windows, with the memory map: what grows with time.
    Soak,
    /// The highest rate that keeps the limits of --slo (default: p99<100ms,errors<0.1%).
    Knee,
}

impl LoadProfile {
    /// Returns the duration of the load if --duration is not given.
    pub fn duration(self) -> &'static str {
        match self {
            LoadProfile::Bench | LoadProfile::Knee => "10s",
            LoadProfile::Soak => "30m",
        }
    }

    /// Returns the number of windows into which the load is divided.
    pub fn windows(self) -> u32 {
        match self {
            LoadProfile::Bench | LoadProfile::Knee => 10,
            LoadProfile::Soak => 30,
        }
    }
}

/// How much is sent, and how fast.
#[derive(Args, Debug)]
#[command(next_help_heading = "Load")]
pub struct AmountArgs {
    /// Measure latency and cost (bench), growth over a long load (soak), or the highest rate (knee).
    #[arg(long, value_enum, value_name = "PROFILE", default_value_t = LoadProfile::Bench, hide_possible_values = true)]
    pub profile: LoadProfile,
    /// Requests per second, whatever the server does (default: a closed loop).
    ///
    /// ‘poisson:RATE’ sends them with random gaps, as many independent users would. With --slo it is the range of
    /// the search, such as ‘100..1M’, or its start. With recorded requests, ‘2x’ sends them twice as fast.
    #[arg(short, long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Connections, over all threads (default: 10, or one for each user of a scenario).
    ///
    /// ‘10..40’ opens more when a request is due and none is free.
    #[arg(short, long, value_name = "N")]
    pub connections: Option<String>,
    /// Load each server for this long (default: 10s; soak: 30m).
    ///
    /// With --slo, each measurement lasts as long as one window: this time, divided by --windows.
    #[arg(short, long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Send this many requests to each server, if the duration allows.
    #[arg(short = 'n', long, value_name = "N")]
    pub requests: Option<u64>,
    /// Divide that into this many windows (for tests).
    #[arg(long, value_name = "N", hide = true)]
    pub windows: Option<u32>,
    /// The warm-up that is not measured: ‘auto’ finds where it ends, ‘off’ means none, and a time such as ‘5s’ loads
    /// the server that long before measuring.
    #[arg(long = "warmup", value_name = "WHAT", default_value = "auto", hide_short_help = true)]
    pub warm_up: String,
    /// Generator threads; ‘2@0,1’ pins them to these cores, in turn.
    #[arg(short, long, value_name = "N[@CORES]", default_value = "1", hide_short_help = true)]
    pub threads: String,
    /// Give the load generator a real-time priority, if the system permits it.
    #[arg(long, hide_short_help = true)]
    pub priority: bool,
    /// The seed of every random choice; it is printed with each result.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,
}

/// What is sent.
#[derive(Args, Debug)]
#[command(next_help_heading = "Requests")]
pub struct RequestArgs {
    /// The method (default: GET, or POST with a body).
    #[arg(short = 'X', long, value_name = "METHOD", conflicts_with = "scenario", hide_short_help = true)]
    pub method: Option<String>,
    /// A header, as ‘Name: value’.
    #[arg(short = 'H', long, value_name = "HEADER", conflicts_with = "scenario")]
    pub header: Vec<String>,
    /// The content of the request; ‘@FILE’ reads it from a file.
    #[arg(short, long, value_name = "TEXT", conflicts_with = "scenario")]
    pub body: Option<String>,
    /// What a good answer has: a status (default: 2xx and 3xx), or a text in its content.
    ///
    /// ‘200,4xx’ lists statuses; ‘text:TEXT’ requires this text in the content.
    #[arg(long, value_name = "WHAT", conflicts_with = "scenario", hide_short_help = true)]
    pub expect: Vec<String>,
    /// A file that says what is sent: kinds of requests, sessions of users, stages.
    ///
    /// A TOML file has tables, which docs/load.md explains. A HAR file (.har) or an access log is sent again at its own
    /// times. Any other file has a line ‘METHOD PATH’ for each request, followed by its ‘Name: value’ and ‘@FILE’
    /// lines.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
}

/// The connections.
#[derive(Args, Debug)]
#[command(next_help_heading = "Connections")]
pub struct ConnectionArgs {
    /// Use HTTP/2, with up to N concurrent requests on each connection; without TLS by prior knowledge.
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "1", hide_short_help = true)]
    pub http2: Option<u32>,
    /// Open a new connection for each request.
    #[arg(long, hide_short_help = true)]
    pub no_keep_alive: bool,
    /// The certificates that TLS trusts: authorities, or the server’s own certificate, in this PEM file; or
    /// ‘anyone’.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub trust: Option<PathBuf>,
    /// The longest time that an answer may take.
    #[arg(long, value_name = "TIME", default_value = "5s", hide_short_help = true)]
    pub timeout: String,
}

/// An instrument that is attached in a pass of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadInstrument {
    /// Instructions and calls by function, for this many requests.
    Instructions(u64),
    /// Where the time goes, kernel included.
    Samples,
    /// System calls.
    SystemCalls,
    /// The memory map before and after.
    MemoryMap,
}

impl FromStr for LoadInstrument {
    type Err = String;

    fn from_str(text: &str) -> Result<LoadInstrument, String> {
        let (name, count) = match text.split_once('=') {
            Some((name, count)) => (name, Some(count)),
            None => (text, None),
        };
        match (name, count) {
            ("instructions", None) => Ok(LoadInstrument::Instructions(600)),
            ("instructions", Some(count)) => match count.parse() {
                Ok(0) | Err(_) => Err(format!("‘{count}’ is not a number of requests")),
                Ok(count) => Ok(LoadInstrument::Instructions(count)),
            },
            ("samples", None) => Ok(LoadInstrument::Samples),
            ("syscalls", None) => Ok(LoadInstrument::SystemCalls),
            ("memory-map", None) => Ok(LoadInstrument::MemoryMap),
            _ => Err("known are instructions, instructions=N, samples, syscalls and memory-map".to_owned()),
        }
    }
}

/// What is read of the server.
#[derive(Args, Debug)]
#[command(next_help_heading = "Cost of a request")]
pub struct CostArgs {
    /// The server’s process, if Scruple does not start it and cannot find it by its port.
    #[arg(long, value_name = "PID", conflicts_with = "server", hide_short_help = true)]
    pub pid: Option<i32>,
    /// Do not measure what a request costs the server.
    #[arg(long)]
    pub no_cost: bool,
    /// Also attach: instructions, samples, syscalls, memory-map.
    ///
    /// Each takes a separate pass. ‘instructions’ counts instructions and calls by function: the server runs under
    /// Valgrind for 600 requests (instructions=N for N). ‘samples’ shows where its time goes, kernel included (the perf
    /// program). ‘syscalls’ counts system calls (the strace program). ‘memory-map’ shows the memory map before the load
    /// and after; pages and JSON always have it.
    #[arg(long = "with", value_name = "INSTRUMENTS", value_delimiter = ',')]
    pub instruments: Vec<LoadInstrument>,
    /// How long a server that Scruple starts may take until it accepts connections.
    #[arg(long, value_name = "TIME", default_value = "20s", hide_short_help = true)]
    pub patience: String,
}

impl CostArgs {
    /// Returns the number of requests for which instructions are counted, if they are.
    pub fn instructions(&self) -> Option<u64> {
        self.instruments.iter().find_map(|instrument| match instrument {
            LoadInstrument::Instructions(requests) => Some(*requests),
            _ => None,
        })
    }

    /// Whether an instrument is requested.
    pub fn has(&self, instrument: LoadInstrument) -> bool {
        self.instruments.contains(&instrument)
    }
}

/// Limits, comparisons, searches.
#[derive(Args, Debug)]
#[command(next_help_heading = "Judging")]
pub struct JudgingArgs {
    /// Compare with another server; the first is the reference.
    ///
    /// The servers are loaded in turn. A command after ‘ -- ’ starts it: --against 'old=:8080 -- ./old 8080'.
    #[arg(long, value_name = "[NAME=]URL")]
    pub against: Vec<String>,
    /// Also load a well-known server whose answers have the same size; it is not judged.
    #[arg(long, value_name = "SERVER", value_parser = ["nginx"], conflicts_with = "slo", hide_short_help = true)]
    pub yardstick: Option<String>,
    /// The name of the server in results (default: its URL, or ‘new’ with --against).
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub name: Option<String>,
    /// Find the highest rate that keeps these limits: 'p99<20ms,errors<0.1%'.
    #[arg(long, value_name = "LIMITS", conflicts_with_all = ["against", "requests"])]
    pub slo: Option<String>,
    /// With --slo, end the search within this time, with the result so far (default: 10min).
    ///
    /// The start of the server is not part of it. Without --budget, the first measurement may take longer.
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub budget: Option<String>,
    /// The largest difference that does not matter.
    #[arg(long, value_name = "PERCENT", help = margin_help(SERVERS), long_help = format!(
        "{}.\n\nWith --slo, the margin is the largest accepted width of the interval of the highest rate (default: {}).",
        margin_help(SERVERS), percent(HIGHEST_RATES)
    ))]
    pub margin: Option<String>,
    /// Exit with code 1 when a metric exceeds this, such as ‘load.p99<20ms’.
    ///
    /// The exit code is 3 when the readings cannot tell.
    #[arg(long, value_name = "LIMIT")]
    pub limit: Vec<String>,
    /// The metrics to compare: keys, families such as ‘request’, or ‘all’ (see `scruple inspect metrics`).
    #[arg(long, value_name = "KEYS", value_delimiter = ',', hide_short_help = true)]
    pub metrics: Vec<String>,
    /// Do not fail when requests fail.
    #[arg(short, long)]
    pub ignore_failure: bool,
}

/// The default limits of `--profile knee`.
const LIMITS: &str = "p99<100ms,errors<0.1%";

impl LoadArgs {
    /// Returns the limits for the search for the highest rate, if it is requested.
    pub fn slo(&self) -> Option<&str> {
        match self.amount.profile {
            LoadProfile::Knee => Some(self.judging.slo.as_deref().unwrap_or(LIMITS)),
            LoadProfile::Bench | LoadProfile::Soak => self.judging.slo.as_deref(),
        }
    }

    /// Refuses a time for a search where there is none.
    ///
    /// # Errors
    /// There is a time, and no search.
    pub fn refuse_budget_without_search(&self) -> Result<(), Fault> {
        match self.judging.budget.is_some() && self.slo().is_none() {
            true => Err(Fault::usage(
                "--budget is the time of a search: give its limits with --slo, or leave it out",
            )),
            false => Ok(()),
        }
    }

    /// Returns the duration of the load of each server.
    pub fn duration(&self) -> &str {
        self.amount.duration.as_deref().unwrap_or(self.amount.profile.duration())
    }

    /// Returns the number of windows of each server. Several servers have two windows in each turn and are compared by
    /// turns; five turns would give an interval of twice the width that ten give.
    pub fn windows(&self, servers: usize) -> u32 {
        let windows = self.amount.profile.windows();
        self.amount.windows.unwrap_or(if servers > 1 { 2 * windows } else { windows })
    }

    /// Whether the terminal shows the memory map.
    pub fn shows_the_map(&self) -> bool {
        self.amount.profile == LoadProfile::Soak || self.cost.has(LoadInstrument::MemoryMap)
    }
}
