//! What `scruple bench` prints besides what every run has.

pub mod matrix;
pub mod panel;
pub mod queues;
pub mod table;
