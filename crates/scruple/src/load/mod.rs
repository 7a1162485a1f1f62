//! `scruple load`: the requests of servers.

pub mod args;
pub mod limits;
pub mod live;
pub mod report;
pub mod verb;
pub mod watchers;
pub mod windows;
