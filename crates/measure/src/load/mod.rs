//! Puts a server under load and measures its latency.
//!
//! A [`Session`] keeps the connections to a server. A turn of it has one schedule, from the first request to the last;
//! parts of the turn are moments on its clock, and marks are moments at which another thread reads the server's
//! accounts. The records of the threads are merged when the turn is over: the parts, the stalls in them, the warm-up,
//! whether the server kept up, and the doubts about the figures. Nothing is discarded: what does not count stays in
//! parts that do not count.
//!
//! [`run`] drives one server with one plan and reports response times: from the time when a request was due, so that a
//! stall of the server counts for every request that it delayed, and not only for those in flight at that moment. It
//! also reports how late the generator was itself, and declares figures void that it spoilt.

mod abort;
mod arrival;
mod backlog;
mod capacity;
mod clock;
mod connection;
pub mod cost;
mod delayed;
mod doubt;
mod failure;
mod find_doubts;
mod generator;
mod hdr_log;
mod http1;
mod http2;
mod latencies;
pub mod listener;
mod merge;
mod nginx;
mod pace;
mod pauses;
mod plan;
mod record;
mod replay;
mod request;
mod request_sink;
mod result;
mod scenario;
mod session;
mod shared;
mod socket;
mod stalls;
mod target;
mod thread_account;
mod tls;
mod tls_verifier;

pub use capacity::{Capacity, LONGEST_MEASUREMENT, Point, capacity};
pub use delayed::Delayed;
pub use doubt::Doubt;
pub use failure::{Failure, Failures};
pub use hdr_log::hdr_log;
pub use latencies::{Buckets, Latencies};
pub use nginx::{Nginx, NginxError};
pub use plan::{Arrivals, LATE, Order, Pace, Plan, Polling, Row, RowOf, WarmUp};
pub use record::Slow;
pub use replay::{access_log, har, is_access_log};
pub use request::{Check, Request, request_file};
pub use request_sink::{Batch, EachRequest, Listeners};
pub use result::{GeneratorCost, Kind, LoadResult, Part, PartRow};
pub use scenario::{Abort, Model, Read, Scenario, Stage, scenario};
pub use session::{Handled, LoadError, Moment, Session, run, run_watched};
pub use shared::{Ended, LIVE_BOUNDS, Progress};
pub use socket::allow_descriptors;
pub use stalls::Stall;
pub use target::{Address, Protocol, Target, TargetError, Trust};
pub use tls::client_tls;
