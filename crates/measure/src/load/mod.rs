//! Load on a server, and the truth about its latency.
//!
//! [`run`] drives one server with one plan and says how long answers took: from the time a request was due, so that a
//! stall of the server counts for every request that it held up, and not only for those that happened to be under way.
//! It also says how late the generator was itself, and declares figures void that it spoilt.

mod backlog;
mod capacity;
mod clock;
mod connection;
pub mod cost;
mod generator;
mod http1;
mod http2;
mod latencies;
mod pace;
mod plan;
mod record;
mod request;
mod result;
mod shared;
mod socket;
mod stalls;
mod target;
mod threads;
mod tls;
mod trust;
mod verdict;
mod yardstick;

pub use capacity::{Capacity, Point, capacity};
pub use latencies::Latencies;
pub use plan::{Arrivals, Order, Pace, Plan, Polling, WarmUp};
pub use record::{Failure, Failures, Slow};
pub use request::{Check, Request, request_file, scenario};
pub use result::{GeneratorCost, Kind, LoadResult, Slice};
pub use shared::{Ended, Progress};
pub use socket::allow_descriptors;
pub use stalls::Stall;
pub use target::{Address, Protocol, Target, TargetError, Trust};
pub use threads::{LoadError, run, run_watched};
pub use verdict::Doubt;
pub use yardstick::{Nginx, NginxError};
