//! Tests of the statistics and verdicts: against other implementations, by simulation, and by laws.

mod aa;
mod backgrounds;
mod builds;
mod changes;
mod coverage;
mod drifting_runs;
mod entries;
mod evidence;
mod graphs;
mod growth;
mod guards;
mod histories;
mod laws;
mod leak;
mod loads;
mod next_run;
mod nodes;
mod noise;
mod oracle;
mod range;
mod sampled_bytes;
mod sequences;
mod shared_core;
mod ticks;
mod uneven_noise;
mod verdicts;
