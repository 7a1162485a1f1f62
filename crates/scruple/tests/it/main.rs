//! Whole exchanges with the `scruple` program: command lines, their output, and the files that they leave.
//!
//! The first files replay readings from scripts, so that every byte of an answer is known. The later ones run real
//! programs whose costs are known by construction; there counts are exact and times only ordinal, since no test may
//! depend on a quiet machine.

mod fake;
#[path = "../../../measure/tests/load/free_port.rs"]
mod free_port;
mod postgres_server;
mod programs;
mod repository;
mod scripted_readings;
mod slurm_cluster;
mod support;

mod arms;
mod calls;
mod documents;
mod explain;
mod formats;
mod launches;
mod leaks;
mod limits;
mod load;
mod parameters;
mod remarks;
mod series;
mod sites;
mod store;
mod studies;
mod table_widths;
mod trend;
mod usage;
mod verdicts;

mod bad_programs;
mod baseline;
mod bench;
mod costs;
mod farm;
mod gate;
mod ghc;
mod history;
mod hostile;
mod hostile_texts;
mod hyperfine;
mod instructions;
mod interruption;
mod kills;
mod memory;
mod pages;
mod process_trees;
mod reports;
mod revisions;
mod surroundings;
