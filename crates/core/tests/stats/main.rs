//! Tests of the statistics and verdicts: against other implementations, by simulation, and by laws.

mod builds;
mod changes;
mod coverage;
mod growth;
mod histories;
mod laws;
mod noise;
mod oracle;
mod range;
mod verdicts;
