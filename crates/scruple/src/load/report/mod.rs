//! What `scruple load` prints and draws.

pub mod export;
mod instructions;
pub mod json;
pub mod memory_map;
pub mod page;
pub mod sheet;
pub mod terminal;
