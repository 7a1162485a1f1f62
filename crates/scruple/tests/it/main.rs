//! Whole exchanges with the `scruple` program: command lines, their output, and the files that they leave.
//!
//! The first files replay readings from scripts, so that every byte of an answer is known. The later ones run real
//! programs whose costs are known by construction; there counts are exact and times only ordinal, since no test may
//! depend on a quiet machine.

mod fake;
mod postgres_server;
mod programs;
mod repository;
mod script;
mod slurm_cluster;
mod support;

mod arms;
mod calls;
mod documents;
mod explain;
mod explain_fallback;
mod explain_haskell;
mod explain_script_servers;
mod explain_scripts;
mod explain_sources;
mod explain_stripped;
mod explain_variation;
mod formats;
mod launches;
mod limits;
mod load;
mod remarks;
mod scans;
mod screens;
mod series;
mod store;
mod store_server;
mod stored;
mod studies;
mod trend;
mod usage;
mod verdicts;

mod bad_programs;
mod bad_stores;
mod baseline;
mod bench;
mod bench_answers;
mod bench_faults;
mod bench_live;
mod costs;
mod farm;
mod farm_compare;
mod farm_lines;
mod farm_load;
mod farm_slurm;
mod farm_ssh;
mod gate;
mod gate_jobs;
mod ghc;
mod history;
mod history_benches;
mod history_builds;
mod history_cache;
mod history_faults;
mod history_forecast;
mod history_kills;
mod history_merges;
mod history_resumed;
mod history_selection;
mod history_sizes;
mod history_yardstick;
mod hostile;
mod hostile_texts;
mod hyperfine;
mod instructions;
mod interruption;
mod kills;
mod load_delayed;
mod load_exports;
mod load_planted;
mod load_refusals;
mod load_scenarios;
mod load_servers;
mod memory;
mod pages;
mod reports;
mod revisions;
mod surroundings;
mod trees;
