//! The options of `scruple load`.

use crate::cli::{ResultArgs, StoreArgs};
use clap::Args;
use std::path::PathBuf;

/// Load a server and weigh its latency and its cost per request.
///
/// Without --rate every connection sends its next request when the last was answered (a closed loop). With --rate
/// requests are due at set times whatever the server does, and latency counts from then, so that a stall counts for
/// every request that it held up. The load is cut into windows; a window that the generator itself spoilt is void.
///
/// A server behind `--` is started, loaded and ended; one that runs already is found by its port, where it is on this
/// machine, or named by --pid. Its cost per request is then read from the kernel's accounts.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple load http://localhost:8080/ -c 10 --rate 2000 -d 10s
  scruple load :8080 --rate 500 --limit 'load.p99<20ms' --limit 'load.errors<0.1%' -- ./server --port 8080
  scruple load :8081 --rate 500 --against 'old=:8080 -- ./old 8080' --name new -- ./new 8081
  scruple load :8080 --slo 'p99<20ms,errors<0.1%' -- ./server --port 8080
  scruple load unix:/run/app.sock --scenario shop.toml -c 20
")]
pub struct LoadArgs {
    /// Where requests go: http://host:port/path, https://…, :port/path, or unix:/path/to.sock.
    pub url: String,
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
    /// Write a page with the distribution, the course and the cost.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub html: Option<PathBuf>,
    /// Write the distribution of the response in HdrHistogram's text format (.hgrm); several servers give several files.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub hdr: Option<PathBuf>,
    /// Where runs are kept.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Play windows from a file instead of loading (for tests).
    #[arg(long, hide = true, value_name = "FILE")]
    pub scripted: Option<PathBuf>,
    /// The command that starts the server.
    #[arg(last = true, value_name = "SERVER")]
    pub server: Vec<String>,
}

/// How much is sent, and how fast.
#[derive(Args, Debug)]
#[command(next_help_heading = "Load")]
pub struct AmountArgs {
    /// Send this many requests per second, whatever the server does (default: a closed loop).
    #[arg(short, long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Gaps as between many users who know nothing of one another, not all alike.
    #[arg(long)]
    pub poisson: bool,
    /// Connections, over all threads.
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    pub connections: u32,
    /// Open up to this many connections when a request is due and none is free.
    #[arg(long, value_name = "N", requires = "rate")]
    pub grow: Option<u32>,
    /// Load each server for this long.
    #[arg(short, long, value_name = "TIME", default_value = "10s")]
    pub duration: String,
    /// Send this many requests to each server, if the duration allows.
    #[arg(short = 'n', long, value_name = "N")]
    pub requests: Option<u64>,
    /// Divide that into this many windows; those of several servers alternate.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub windows: u32,
    /// What is taken off at the beginning: ‘auto’ finds what differs from the rest, ‘off’, or a time before the first window.
    #[arg(long, value_name = "WHAT", default_value = "auto")]
    pub warm_up: String,
    /// Generator threads.
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub threads: u32,
    /// Pin the threads to these cores, in turn.
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    pub cores: Vec<usize>,
    /// Ask for a real-time priority for the generator.
    #[arg(long)]
    pub priority: bool,
    /// Seed of every random choice; printed with each result.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// What is sent.
#[derive(Args, Debug)]
#[command(next_help_heading = "Requests")]
pub struct RequestArgs {
    /// The method (default: GET, or POST with a body).
    #[arg(short = 'X', long, value_name = "METHOD", conflicts_with_all = ["request_file", "scenario"])]
    pub method: Option<String>,
    /// A header, as ‘Name: value’.
    #[arg(short = 'H', long, value_name = "HEADER", conflicts_with_all = ["request_file", "scenario"])]
    pub header: Vec<String>,
    /// The content; ‘@FILE’ reads it from a file.
    #[arg(short, long, value_name = "TEXT", conflicts_with_all = ["request_file", "scenario"])]
    pub body: Option<String>,
    /// The status of good answers, such as 200 or 4xx (default: 2xx and 3xx).
    #[arg(long, value_name = "STATUS", value_delimiter = ',', conflicts_with_all = ["request_file", "scenario"])]
    pub expect: Vec<String>,
    /// A text that good answers contain.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["request_file", "scenario"])]
    pub expect_text: Option<String>,
    /// Requests from a file: a line ‘METHOD PATH’ each, ‘Name: value’ and ‘@FILE’ lines behind it.
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    pub request_file: Option<PathBuf>,
    /// Requests from a TOML file: [[request]] with name, method, path, headers, body, weight, check.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Send the requests of a file one after the other, not at random by weight.
    #[arg(long)]
    pub in_turn: bool,
}

/// The connections.
#[derive(Args, Debug)]
#[command(next_help_heading = "Connections")]
pub struct ConnectionArgs {
    /// Speak HTTP/2, without TLS by prior knowledge.
    #[arg(long)]
    pub http2: bool,
    /// Requests under way at a time on one HTTP/2 connection.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "http2")]
    pub streams: u32,
    /// One request on each connection.
    #[arg(long)]
    pub no_keep_alive: bool,
    /// Trust the authorities, or the server’s own certificate, in this PEM file.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Do not look at the server’s certificate.
    #[arg(long)]
    pub insecure: bool,
    /// How long an answer may take.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub timeout: String,
}

/// What is read of the server.
#[derive(Args, Debug)]
#[command(next_help_heading = "Cost of a request")]
pub struct CostArgs {
    /// The server’s process, where neither its command nor its port tells.
    #[arg(long, value_name = "PID", conflicts_with = "server")]
    pub pid: Option<i32>,
    /// Read latencies only.
    #[arg(long)]
    pub no_cost: bool,
    /// Count instructions and calls by function: the server runs under callgrind for that many requests, and for few.
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "600", requires = "server")]
    pub instructions: Option<u64>,
    /// Sample where the server’s time goes, kernel included, in a window of its own (the perf program).
    #[arg(long)]
    pub profile: bool,
    /// Count system calls in a window of its own (the strace program).
    #[arg(long)]
    pub syscalls: bool,
    /// Show the memory map of the server before the load and after; the page and JSON always have it.
    #[arg(long, conflicts_with = "no_cost")]
    pub memory_map: bool,
    /// How long a server that is started may take to accept connections.
    #[arg(long, value_name = "TIME", default_value = "20s")]
    pub patience: String,
}

/// Limits, comparisons, searches.
#[derive(Args, Debug)]
#[command(next_help_heading = "Judging")]
pub struct JudgingArgs {
    /// Compare with another server, whose windows alternate with this one’s; the first is the reference. A command
    /// behind ‘ -- ’ starts it: --against 'old=:8080 -- ./old 8080'.
    #[arg(long, value_name = "[NAME=]URL [-- SERVER]")]
    pub against: Vec<String>,
    /// Show a well-known server beside, started here and loaded alike, which answers as many bytes; it is not judged.
    #[arg(long, value_name = "SERVER", value_parser = ["nginx"], conflicts_with = "slo")]
    pub yardstick: Option<String>,
    /// The name of the server in results (default: its URL, or ‘new’ with --against).
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Find the highest rate at which the server keeps these limits: --slo 'p99<20ms,errors<0.1%'.
    #[arg(long, value_name = "LIMITS", conflicts_with_all = ["against", "rate", "requests"])]
    pub slo: Option<String>,
    /// The first rate that is tried.
    #[arg(long, value_name = "RATE", default_value = "100", requires = "slo")]
    pub from: String,
    /// No higher rate is tried.
    #[arg(long, value_name = "RATE", default_value = "1M", requires = "slo")]
    pub most: String,
    /// The ends of the interval of the highest rate lie so close to each other when the search is over.
    #[arg(long, value_name = "PERCENT", default_value = "10%", requires = "slo")]
    pub precision: String,
    /// Differences within this margin do not matter.
    #[arg(long, value_name = "PERCENT", default_value = "5%")]
    pub margin: String,
    /// Fail with exit code 1 when a metric exceeds a limit, with 3 when the readings cannot tell.
    #[arg(long, value_name = "LIMIT")]
    pub limit: Vec<String>,
    /// The metrics to compare: keys, families such as ‘request’, or ‘all’ (see `scruple inspect metrics`).
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Do not fail when requests fail.
    #[arg(short, long)]
    pub ignore_failure: bool,
}
