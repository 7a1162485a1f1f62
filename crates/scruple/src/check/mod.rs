//! `scruple check`: the gate. It compares results that were weighed side by side with limits and with the reference.

pub mod against_merge_base;
pub mod args;
pub mod conclude;
pub mod origins;
pub mod report;
pub mod request;
pub mod sentence;
pub mod summary;
pub mod verb;
pub mod weighed_run;
