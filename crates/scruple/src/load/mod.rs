//! `scruple load`: loads servers, and weighs their requests.

pub mod announcement;
pub mod args;
pub mod limits;
pub mod live;
pub mod on_farm;
mod remarks;
pub mod remote_server;
pub mod report;
pub mod verb;
pub mod watchers;
pub mod weighing;
pub mod windows;
