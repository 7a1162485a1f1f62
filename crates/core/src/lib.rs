//! The numbers of Scruple: what is weighed, in which units, by which plan, and what may be concluded.
//!
//! Nothing here can read a clock, open a file or start a thread; everything is a function from readings to
//! statements about them, so that all of it can be tested bit for bit.
#![forbid(unsafe_code)]

pub mod budget;
pub mod changepoint;
pub mod compare;
pub mod environment;
pub mod evidence;
pub mod explain;
pub mod gate;
pub mod harmless_text;
pub mod history;
pub mod judge;
pub mod knee;
pub mod metric;
pub mod per_request;
pub mod plan;
pub mod protocol;
pub mod provenance;
pub mod run;
pub mod sample;
pub mod stats;
pub mod subject;
pub mod unit;
pub mod warm_up;
mod words;
