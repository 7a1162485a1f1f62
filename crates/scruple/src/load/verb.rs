//! `scruple load`: loads servers, and weighs the cost of their requests.

use super::args::LoadArgs;
use super::on_farm;
use super::report::export::{self, requests};
use super::weighing::{FinishedLoad, concluded, take};
use crate::config::Config;
use crate::farm::Farm;
use crate::fault::{Code, Fault};
use crate::paths;
use crate::render::export::{names, writer};
use crate::render::output;
use crate::run_report::formats::{self, FORMATS};
use crate::run_report::{Report, terminal};

/// Loads the servers, stores the run, and prints the report.
pub fn load(args: &LoadArgs) -> Result<Code, Fault> {
    let formats = [names(&FORMATS), names(&export::FORMATS), names(&requests::FORMATS)].concat();
    let exports = args.results.export.checked(&formats)?;
    // A script plays the same windows on every machine.
    let config = Config::find()?;
    if args.scripted.is_none()
        && let Some(farm) = Farm::of(&config)?
    {
        return on_farm::load(args, &config, farm);
    }
    let FinishedLoad { loading, loads, stop, limits } = take(args, None)?;
    let mut report = Report::of(&loading.run, &args.judging.metrics, &limits);
    report.loads = Some(&loads);
    let footer = loading.stored_at().map(|place| {
        terminal::stored(&loading.run.id, &place, &paths::store_option(&place), output::width())
    });
    let code = formats::write(&report, &args.results, footer.as_deref())?;
    for file in &exports {
        if let Some(write) = writer(&export::FORMATS, &file.format) {
            write(&file.path, &loads)?;
        }
    }
    drop(report);
    if let Some(fault) = stop {
        return Err(fault);
    }
    match &loading.writer.fault {
        Some(error) => Err(error.after_measuring()),
        None => {
            let errors_limited = limits.iter().any(|limit| limit.metric == "load.errors");
            concluded(args, &loads, errors_limited, code)
        }
    }
}
