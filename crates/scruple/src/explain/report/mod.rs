//! Findings, for people and for programs.

pub mod json;
pub mod markdown;
pub mod page;
pub mod terminal;
mod words;
