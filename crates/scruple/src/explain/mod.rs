//! `scruple explain`: says where in the code the difference between two programs comes from.

pub mod args;
mod call_costs;
pub mod causes;
pub mod changes;
pub mod closures;
mod code_view;
mod core_view;
pub mod counted_launches;
mod definitions;
pub mod findings;
pub mod hunks;
mod interpreted;
mod interpreters;
mod outside_causes;
mod pairing;
pub mod profiles;
mod program_pair;
mod repeated_launches;
pub mod report;
mod servers;
pub mod sides;
pub mod stored;
mod times;
mod touching_hunks;
mod variation;
pub mod verb;
