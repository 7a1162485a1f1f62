//! Statistics: one idea per file, each with its source.
//!
//! Functions take readings as plain numbers in the unit of the metric, and return estimates with their intervals. An
//! interval that is not available at the requested level is absent, never narrower. Nothing here reads a clock, opens a
//! file or starts a thread. The simulations, and the comparison with SciPy, are beside those of verdicts, in
//! `crates/core/tests/stats`.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod bootstrap;
pub mod changepoint;
pub mod false_discovery;
pub mod growth;
pub mod holm;
pub mod leak;
pub mod median_interval;
pub mod nodes;
pub mod normal;
pub mod ols;
pub mod outlier;
pub mod paired;
pub mod pooled;
pub mod power;
pub mod processes;
pub mod quantile;
pub mod ranks;
pub mod rng;
pub mod sampled_bytes;
pub mod share_crossing;
pub mod sorting;
pub mod summary;
pub mod tare;

pub use interval::Interval;
pub use paired::{Effect, Why};
pub use rng::Pcg;
pub use summary::Summary;

mod interval;
pub(crate) mod pair_order_statistics;
