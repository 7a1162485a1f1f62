//! Puts a server under load and measures its latency.
//!
//! A [`Session`] keeps the connections to a server. A turn of a session has one schedule, from the first request to
//! the last. Parts of the turn are intervals on its clock, and marks are moments at which another thread reads the
//! server's accounts. When the turn is over, the threads' records are merged: the parts, the stalls in them, the
//! warm-up, whether the server kept up, and the doubts about the figures. No record is discarded: records that do not
//! count stay in parts that do not count.
//!
//! [`run`] loads one server with one plan and reports response times, which start when a request was due. So a stall
//! of the server counts for every request that it delayed, and not only for those in flight at that moment. [`run`]
//! also reports how late the generator was, and declares figures void if the generator made them wrong.

mod abort;
mod backlog;
mod capacity;
mod clock;
mod connection;
pub mod cost;
mod doubt;
mod exchange;
mod failure;
mod find_doubts;
mod generator;
mod generator_delays;
mod generator_thread;
mod hdr_log;
mod http1;
mod http2;
mod latencies;
mod latency_buckets;
mod latency_counts;
pub mod listener;
mod merge;
mod nginx;
mod pauses;
mod plan;
mod receive_times;
mod replay;
mod request;
mod request_sink;
mod result;
mod scenario;
mod send_times;
mod session;
mod shared;
mod socket;
mod stalls;
mod target;
mod thread_record;
mod tls;
mod tls_verifier;
mod warm_up;

pub use capacity::{Capacity, LONGEST_MEASUREMENT, RatePoint, capacity, measurement};
pub use doubt::Doubt;
pub use failure::{FailedCheck, Failure, Failures};
pub use find_doubts::{delay_bounds, few_requests};
pub use generator_delays::Delayed;
pub use hdr_log::hdr_log;
pub use latencies::Latencies;
pub use nginx::{Nginx, NginxError};
pub use plan::{Arrivals, GeneratorThreads, LATE, Pace, Plan, PlannedRow, Polling, RowOf, WarmUp};
pub use replay::{access_log, har, is_access_log};
pub use request::{AnswerCheck, Request, RequestOrder, request_file};
pub use request_sink::{EachRequest, RequestBatch, RequestReceiver};
pub use result::{
    ConnectionOutcomes, Ended, GeneratorCost, LoadResult, PartRow, RequestCounts, RequestKind, RequestTimes,
    RunPart, SlowRequest, Unanswered,
};
pub use scenario::{Abort, Model, RequestFileContent, Scenario, Stage, scenario};
pub use session::{Handled, LoadError, Session, TurnEvent, run, run_watched};
pub use shared::LoadProgress;
pub use socket::allow_descriptors;
pub use stalls::Stall;
pub use target::{Address, Protocol, Target, TargetError, Trust};
pub use thread_record::{LIVE_BOUNDS, LiveRecord};
pub use tls::client_tls;
