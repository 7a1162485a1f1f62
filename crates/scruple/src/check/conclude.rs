//! Ends a gate: writes the summary to all requested outputs.

use super::report;
use super::summary::{GateSummary, SummaryContext};
use super::weighed_run::WeighedRun;
use crate::cli::shared_args::ResultArgs;
use crate::fault::{Code, Fault, Stop};
use crate::render::export::{names, writer};
use crate::render::output;
use crate::store::StoreError;
use scruple_core::gate::GateRules;
use std::path::Path;

/// Returns why a measurement of commands ended early, if it did.
pub fn why_stopped(result: Result<(), Stop>, unstored: &Option<StoreError>) -> Option<Fault> {
    match result {
        Err(Stop::Failed(fault)) => Some(fault),
        Err(Stop::Interrupted) => Some(Fault {
            code: Code::Interrupted,
            message: "interrupted: the readings so far decide nothing".to_owned(),
        }),
        Ok(()) => unstored.as_ref().map(StoreError::after_measuring),
    }
}

/// Writes the summary, and returns the exit code of the gate. Failures of runs are reported after the summary.
pub fn conclude(
    weighed: &[WeighedRun],
    rules: &GateRules,
    context: SummaryContext,
    results: &ResultArgs,
) -> Result<Code, Fault> {
    let summary = GateSummary::of(weighed, rules, context);
    let files = results.export.checked(&names(&report::FORMATS))?;
    let file_on_stdout = files.iter().any(|file| file.path == Path::new("-"));
    let texts = files.iter().filter_map(|file| {
        let text = writer(&report::FORMATS, &file.format)?;
        Some((file.path.as_path(), text(&summary, weighed)))
    });
    let unwritten = output::write_files(texts)?;
    let text = match results.json {
        true => report::json::text(&summary),
        false => report::terminal::text(&summary, output::width()),
    };
    output::print_beside(file_on_stdout, &text)?;
    if let Some(fault) = weighed.iter().find_map(|one| one.fault.as_ref()).or(unwritten.as_ref()) {
        return Err(Fault { code: fault.code, message: fault.message.clone() });
    }
    Ok(summary.kept.into())
}
