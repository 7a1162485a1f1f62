//! The pure part of Scruple: metrics, units, samples, plans and verdicts. The statistics are in `scruple-stats`.
//!
//! Nothing here reads a clock, opens a file or starts a thread. Every result depends on the arguments only, so it can
//! be tested bit for bit.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod default_margins;
pub mod environment;
pub mod evidence;
pub mod explain;
pub mod gate;
pub mod harmless_text;
pub mod history;
pub mod judge;
pub mod knee;
pub mod launch_shares;
pub mod limit;
pub mod line_number;
pub mod memory_map;
pub mod metric;
pub mod nearest_word;
pub mod number_map;
pub mod per_request;
pub mod plural;
pub mod protocol;
pub mod provenance;
pub mod run;
pub mod sample;
pub mod subject;
pub mod unit;
pub mod verdict;
pub mod visit_order;
pub mod warm_up;
mod words;
