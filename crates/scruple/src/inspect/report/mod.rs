//! What the verbs that look at one program print.

pub mod calls;
pub mod leak;
pub mod memory;
pub mod pauses;
pub mod profile;
