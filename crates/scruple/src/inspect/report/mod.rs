//! The reports of the commands that examine one program.

pub mod calls;
pub mod leak;
pub mod memory;
pub mod pauses;
pub mod profile;
