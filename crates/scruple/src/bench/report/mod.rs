//! The parts of the output of `scruple bench` that other runs do not have.

pub mod matrix;
pub mod panel;
pub mod queues;
pub mod table;
