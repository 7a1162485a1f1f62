//! `scruple load` on the nodes of a farm. Each of them starts the servers and loads them, and their readings are one
//! run.

use super::args::LoadArgs;
use super::limits::with_limits_of;
use super::remote_server::{RemoteHelper, RemoteServer};
use super::report::page;
use super::weighing;
use super::windows::{TargetServer, plan, sides};
use crate::config::Config;
use crate::farm::Farm;
use crate::farm::send_command_line::{NodeChoice, NodeWork, hand_out};
use crate::fault::{Code, Fault};
use crate::interruption;
use crate::new_run;
use crate::paths;
use crate::progress::Progress;
use crate::render::export::names;
use crate::render::output;
use crate::render::page::Section;
use crate::run_report::formats::{self, FORMATS};
use crate::run_report::{Report, metrics_and_limits, terminal};
use crate::store::open_store;
use scruple_core::provenance::Provenance;
use scruple_core::run::Run;
use scruple_measure::load::Address;
use std::path::{Path, PathBuf};

/// Has the nodes load the servers, stores the run, and prints the report.
pub fn load(args: &LoadArgs, config: &Config, mut farm: Farm) -> Result<Code, Fault> {
    check(args)?;
    metrics_and_limits::check_metrics(&args.judging.metrics)?;
    let sides = sides(args)?;
    let programs = weighing::programs(&sides);
    let programs: Vec<&Path> = programs.iter().map(PathBuf::as_path).collect();
    let mut head =
        new_run::empty_run(args.amount.seed, args.store.label.as_deref(), weighing::terms(args)?, &programs);
    // The command line is checked here, before any node is asked.
    let plan = plan(args, &sides[sides.len() - 1], head.seed)?;
    let limits = with_limits_of(&sides, metrics_and_limits::parse_limits(&args.judging.limit, &[])?)?;
    let arms: Vec<_> = sides
        .iter()
        .flat_map(|side| [side.arm(&plan)].into_iter().chain(side.parts(&plan, sides.len() > 1)))
        .collect();
    metrics_and_limits::check_limits(&limits, arms.iter())?;
    head.terms.limits.clone_from(&limits);
    let store = open_store::for_run(&args.store)?;
    let interrupted = interruption::flag()?;
    let progress = if args.results.json { Progress::hidden() } else { Progress::new() };
    let by = by(args, &sides);
    let measured =
        hand_out(&mut farm, config, &NodeWork { head: &head, by, versions: None }, &progress, &interrupted)?;
    let failed = measured.failed.clone();
    let (run, writer) = measured.store_in(store)?;
    let report = Report::of(&run, &args.judging.metrics, &limits);
    let footer = writer
        .address(&run)
        .map(|place| terminal::stored(&run.id, &place, &paths::store_option(&place), output::width()));
    let code = formats::write(&report, &args.results, footer.as_deref())?;
    if let Some(error) = &writer.fault {
        return Err(error.after_measuring());
    }
    match failed.first() {
        Some((_, why)) => Err(Fault::program(why)),
        None => Ok(code),
    }
}

/// Checks that nothing is requested that only this machine can measure.
fn check(args: &LoadArgs) -> Result<(), Fault> {
    let refused = |what: &str, why: &str| {
        Err(Fault::usage(format!(
            "{what} is not possible on a farm: {why}, or leave [farm] out of scruple.toml"
        )))
    };
    if args.slo().is_some() {
        return refused("a search for the highest rate", "load with one --rate");
    }
    if args.live.is_some() {
        return refused("--live", "leave it out");
    }
    if args.cost.pid.is_some() {
        return refused("--pid", "give the command of the server after ‘--’");
    }
    let formats = names(&FORMATS);
    args.results.export.checked(&formats).map(|_| ()).map_err(|fault| {
        Fault::usage(format!("{fault}; what a farm has loaded is written in these formats only"))
    })
}

/// Several nodes would load a running server at the same time. Only servers that listen on a port can be on another
/// node than their clients.
fn by(args: &LoadArgs, sides: &[TargetServer]) -> NodeChoice {
    let port =
        |side: &TargetServer| side.target.addresses.iter().all(|address| matches!(address, Address::Tcp(_)));
    match sides.iter().all(|side| side.command.is_some()) {
        false => NodeChoice::OneNode,
        true if args.judging.yardstick.is_none() && sides.iter().all(port) => NodeChoice::Pairs,
        true => NodeChoice::EachNode,
    }
}

/// What a node has loaded.
pub struct NodeLoad {
    /// The run with its readings.
    pub run: Run,
    /// The server that failed, if one did, and the reason.
    pub failures: Vec<(String, String)>,
    /// The sections of the run's page.
    pub sections: Vec<Section>,
    /// The name and the provenance of the node of the servers, if that is a different one.
    pub server: Option<(String, Provenance)>,
}

/// Loads the servers from this node. They are on the node that `beside` reaches, or else on this one.
pub fn load_on_node(args: &LoadArgs, beside: Option<&RemoteHelper>) -> Result<NodeLoad, Fault> {
    let link = beside.map(RemoteServer::start).transpose()?;
    let server = link.as_ref().map(|link| (link.node.clone(), link.machine.clone()));
    let weighing::FinishedLoad { mut loading, loads, stop, limits } = weighing::take(args, link)?;
    if let Some(fault) = stop {
        return Err(fault);
    }
    let errors_limited = limits.iter().any(|limit| limit.metric == "load.errors");
    let failed = match weighing::concluded(args, &loads, errors_limited, Code::Fine) {
        Ok(Code::GateFailed) => Some("a limit of the scenario was exceeded, which ended the load".to_owned()),
        Ok(_) => None,
        // Void windows give absent readings, so that limits and comparisons know of them.
        Err(fault) if fault.code == Code::Unknown => {
            loading.run.warn("void", fault.message);
            None
        }
        Err(fault) => Some(fault.message),
    };
    let failures = failed.into_iter().map(|why| ("load".to_owned(), why)).collect();
    Ok(NodeLoad { run: loading.run, failures, sections: page::sections(&loads), server })
}
