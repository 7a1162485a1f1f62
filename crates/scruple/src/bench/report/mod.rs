//! The output of `scruple bench` besides that of every run.

pub mod matrix;
pub mod panel;
pub mod queues;
pub mod table;
