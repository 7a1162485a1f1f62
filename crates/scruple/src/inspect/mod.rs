//! `scruple inspect`: examines one program by itself.

pub mod args;
pub mod calls;
pub mod command_sites;
pub mod ghc;
pub mod leak;
pub mod leak_judgement;
pub mod leak_points;
pub mod leak_schedule;
pub mod leak_sites;
pub mod memory;
pub mod metrics;
pub mod report;
pub mod single_launch;
pub mod site_rows;
pub mod sites;
pub mod verb;
