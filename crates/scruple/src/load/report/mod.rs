//! Writes the output of `scruple load`.

pub mod export;
mod instructions;
pub mod json;
pub mod memory_map;
mod pace;
pub mod page;
pub mod search;
pub mod sheet;
pub mod terminal;
