//! The margins within which a difference does not matter, unless the user says otherwise.

/// The margin of commands, also when a history or a gate weighs them.
pub const COMMANDS: f64 = 0.02;
/// The margin of the cases of bench programs.
pub const CASES: f64 = 0.01;
/// The margin of servers at a given rate.
pub const SERVERS: f64 = 0.05;
/// The largest accepted width of the interval of the highest rate that a server keeps up with.
pub const HIGHEST_RATES: f64 = 0.25;
