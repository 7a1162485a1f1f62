//! What a gate asks to be measured.

use super::report;
use crate::cli::shared_args::ResultArgs;
use crate::command::deciding::Deciding;
use crate::fault::Fault;
use crate::render::export::names;
use crate::render::metric_words::declared;
use crate::run_report::metrics_and_limits;
use scruple_core::metric::{METRICS, Pass};

/// The metric that is otherwise only counted on request. It is among those that decide by default.
const INSTRUCTIONS: &str = "instructions";

/// Returns the metrics that a gate needs: those to show, and those that decide. By default instructions are among them.
pub fn needed_metrics(gate: &[String], metrics: &[String]) -> Vec<String> {
    let mut all: Vec<String> = metrics.iter().chain(gate).cloned().collect();
    if gate.is_empty() {
        all.push(INSTRUCTIONS.to_owned());
    }
    all
}

/// Checks the requested outputs and metrics before anything is weighed.
pub fn check_requests(results: &ResultArgs, gate: &[String]) -> Result<(), Fault> {
    metrics_and_limits::check_metrics(gate)?;
    results.export.checked(&names(&report::FORMATS)).map(|_| ())
}

/// Returns which of the metrics that are measured decide a gate with these keys and families.
pub fn deciding(gate: &[String]) -> Deciding {
    let of = |pass: Pass| {
        METRICS
            .iter()
            .filter(move |metric| metric.pass == pass && gate.iter().any(|pattern| metric.matches(pattern)))
    };
    Deciding {
        counts: gate.is_empty() || of(Pass::Counting).next().is_some(),
        times: of(Pass::Timing).map(|metric| metric.key.clone().into_owned()).collect(),
    }
}

/// Whether these metrics include instructions.
pub fn wants_instructions(asked: &[String]) -> bool {
    asked.iter().any(|pattern| pattern != "all" && declared(INSTRUCTIONS).matches(pattern))
}
