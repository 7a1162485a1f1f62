//! A run as JSON.

use super::Report;
use crate::inspect::report::memory;
use crate::load::report::json;
use crate::render::json::{SchemaFields, timestamp, written};
use scruple_core::environment::Environments;
use scruple_core::evidence::Evidence;
use scruple_core::judge::limits::Checked;
use scruple_core::judge::{GrowthFit, Judged, bench_cases, estimate_of, headlines, undisturbed_blocks};
use scruple_core::limit::Limit;
use scruple_core::provenance::Provenance;
use scruple_core::run::{Run, Warning};
use scruple_core::sample::{Figure, Sample};
use scruple_core::subject::{Arm, Parameter, Role, Subject};
use scruple_core::verdict::{Direction, Verdict};
use scruple_stats::nodes::OverNodes;
use scruple_stats::sorting::SortedMap;
use scruple_stats::tare::Net;
use serde::Serialize;
use std::collections::HashMap;

#[derive(Serialize)]
struct RunJson<'a> {
    scruple: SchemaFields,
    run: RunHead<'a>,
    provenance: &'a Provenance,
    arms: Vec<ArmResult<'a>>,
    comparisons: Vec<ComparisonResult<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environments: Option<&'a Environments>,
    #[serde(skip_serializing_if = "<[GrowthFit]>::is_empty")]
    growth: &'a [GrowthFit],
    #[serde(skip_serializing_if = "<[Checked]>::is_empty")]
    limits: &'a [Checked],
    warnings: &'a [Warning],
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<json::LoadJson<'a>>,
}

/// The fields that describe a run.
#[derive(Serialize)]
pub(crate) struct RunHead<'a> {
    id: &'a str,
    label: Option<&'a str>,
    started: String,
    state: &'static str,
    seed: u64,
    argv: &'a [String],
    margin: f64,
    level: f64,
    looks: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'a str>,
    #[serde(skip_serializing_if = "<[Limit]>::is_empty")]
    limits: &'a [Limit],
}

/// The fields that describe an arm, which are the same in every document.
#[derive(Serialize)]
pub(crate) struct ArmHead<'a> {
    name: &'a str,
    role: &'static str,
    subject: &'a Subject,
    version: Option<&'a str>,
    params: &'a SortedMap<String, Parameter>,
}

impl<'a> ArmHead<'a> {
    pub(crate) fn of(arm: &'a Arm) -> ArmHead<'a> {
        ArmHead {
            name: &arm.name,
            role: arm.role.word(),
            subject: &arm.subject,
            version: arm.version.as_deref(),
            params: &arm.params,
        }
    }
}

#[derive(Serialize)]
struct ArmResult<'a> {
    #[serde(flatten)]
    head: ArmHead<'a>,
    metrics: SortedMap<&'a str, MetricResult<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_map: Option<memory::MemoryReport<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every value is the large one, and they live for one document"
)]
enum MetricResult<'a> {
    Read {
        unit: &'a str,
        pass: &'static str,
        quality: &'static str,
        source: &'a str,
        n: usize,
        estimate: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        interval: Option<[f64; 2]>,
        #[serde(skip_serializing_if = "Option::is_none")]
        level: Option<f64>,
        method: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        counted: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        net: Option<Net>,
        readings: &'a [f64],
        #[serde(skip_serializing_if = "Option::is_none")]
        blocks: Option<&'a [u32]>,
    },
    Absent {
        absent: &'a str,
    },
}

#[derive(Serialize)]
struct ComparisonResult<'a> {
    metric: &'a str,
    reference: &'a str,
    arm: &'a str,
    evidence: &'static str,
    effect: Option<f64>,
    interval: Option<[f64; 2]>,
    level: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranges: Option<[[f64; 2]; 2]>,
    difference: Option<f64>,
    margin: f64,
    verdict: Verdict,
    direction: Option<Direction>,
    blocks: usize,
    more_blocks: usize,
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    headline: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<NodesResult<'a>>,
}

/// How far the nodes of a farm agree about a comparison.
#[derive(Serialize)]
struct NodesResult<'a> {
    of_class: bool,
    effects: SortedMap<&'a str, f64>,
    spread: Option<f64>,
    share: Option<f64>,
}

impl<'a> NodesResult<'a> {
    fn of(found: &'a OverNodes) -> Option<NodesResult<'a>> {
        let joined = found.joined.as_ref().ok()?;
        let effects = found.names.iter().map(String::as_str).zip(joined.each.iter().copied()).collect();
        Some(NodesResult { of_class: joined.of_class, effects, spread: joined.spread, share: joined.share })
    }
}

/// Writes the whole report, with every reading.
pub fn text(report: &Report<'_>) -> String {
    let run = report.run;
    let quoted = headlines(&report.judged, &report.shown);
    let document = RunJson {
        scruple: SchemaFields::CURRENT,
        run: run_head(run),
        provenance: &run.provenance,
        arms: run.arms.iter().map(|arm| arm_result(report, arm)).collect(),
        comparisons: report
            .judged
            .iter()
            .enumerate()
            .map(|(at, judged)| comparison_result(judged, &quoted, report.over_nodes.get(&at)))
            .collect(),
        environments: report.environments.as_ref(),
        growth: &report.fits,
        limits: &report.checked,
        warnings: &run.warnings,
        load: report.loads.map(json::document),
    };
    // Keys are text and numbers are made finite below, so serialization cannot fail.
    written(&document)
}

/// Returns the fields that describe a run, which are the same in every document.
pub(crate) fn run_head(run: &Run) -> RunHead<'_> {
    RunHead {
        id: &run.id,
        label: run.label.as_deref(),
        started: timestamp(run.started),
        state: run.state.word(),
        seed: run.seed,
        argv: &run.argv,
        margin: run.terms.margin,
        level: run.terms.level,
        looks: run.terms.looks,
        reference: run.terms.reference.as_deref(),
        limits: &run.terms.limits,
    }
}

fn arm_result<'a>(report: &'a Report<'_>, arm: &'a Arm) -> ArmResult<'a> {
    let level = report.run.terms.level;
    let tare = super::tare_of(report.run, arm);
    let metrics = arm
        .figures
        .iter()
        .map(|(key, figure)| {
            let result = match figure {
                Figure::Sample(sample) => sample_result(arm, key, sample, tare, level),
                Figure::Absent { absent } => MetricResult::Absent { absent },
            };
            (key.as_str(), result)
        })
        .collect();
    ArmResult { head: ArmHead::of(arm), metrics, memory_map: arm.memory.as_ref().map(memory::report) }
}

fn sample_result<'a>(
    arm: &Arm,
    key: &str,
    sample: &'a Sample,
    tare: Option<&Arm>,
    level: f64,
) -> MetricResult<'a> {
    let counted = tare.map(|tare| undisturbed_blocks::counted(sample, tare));
    let estimate = estimate_of(arm, key, counted.as_ref().unwrap_or(sample), level);
    let net = tare
        .filter(|_| arm.role == Role::Subject && key.starts_with("time."))
        .and_then(|tare| bench_cases::net(arm, tare, key, level));
    let in_order = sample.blocks.iter().enumerate().all(|(i, block)| *block as usize == i);
    MetricResult::Read {
        unit: sample.unit.name(),
        pass: sample.pass.word(),
        quality: sample.worth().word(),
        source: &sample.source,
        n: sample.readings.len(),
        estimate: estimate.value,
        interval: estimate.interval.map(|interval| [interval.low, interval.high]),
        level: estimate.interval.map(|interval| interval.level),
        method: estimate.method,
        counted: counted.map(|counted| counted.readings.len()),
        net,
        readings: &sample.readings,
        blocks: (!in_order).then_some(&sample.blocks),
    }
}

fn comparison_result<'a>(
    judged: &'a Judged,
    quoted: &HashMap<&str, &Judged>,
    over_nodes: Option<&'a OverNodes>,
) -> ComparisonResult<'a> {
    let comparison = &judged.comparison;
    let evidence = &comparison.evidence;
    ComparisonResult {
        metric: &judged.metric,
        reference: &judged.reference,
        arm: &judged.arm,
        evidence: evidence.kind(),
        effect: evidence.effect(),
        interval: evidence.interval().map(|interval| [interval.low, interval.high]),
        level: evidence.interval().map(|interval| interval.level),
        ranges: match evidence {
            Evidence::Ranges { reference, arm, .. } => {
                Some([[reference.low, reference.high], [arm.low, arm.high]])
            }
            _ => None,
        },
        difference: match evidence {
            Evidence::Ranges { reference, arm, .. } => Some(arm.middle - reference.middle),
            _ => evidence.difference(),
        },
        margin: comparison.margin,
        verdict: comparison.verdict,
        direction: comparison.direction,
        blocks: evidence.readings(),
        more_blocks: comparison.more_blocks,
        method: evidence.method(),
        why: evidence.why().map(|why| why.to_string()),
        headline: quoted.get(judged.arm.as_str()).is_some_and(|quoted| std::ptr::eq(*quoted, judged)),
        nodes: over_nodes.and_then(NodesResult::of),
    }
}
