//! JSON, schema 1: durations in nanoseconds, sizes in bytes, ratios as numbers.

use super::Report;
use crate::inspect::report::memory;
use crate::load::report::json;
use scruple_core::environment::Environments;
use scruple_core::evidence::Evidence;
use scruple_core::harmless_text::{shown, steers};
use scruple_core::judge::limits::Checked;
use scruple_core::judge::{GrowthFit, Judged, bench_cases, counted_blocks, estimate_of, headlines};
use scruple_core::limit::Limit;
use scruple_core::provenance::Provenance;
use scruple_core::run::{Run, Warning};
use scruple_core::sample::{Figure, Sample};
use scruple_core::sorting::SortedMap;
use scruple_core::stats::nodes::OverNodes;
use scruple_core::stats::tare::Net;
use scruple_core::subject::{Arm, Parameter, Role, Subject};
use scruple_core::verdict::{Direction, Verdict};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt::Write as _;

/// The version of the schema. New versions may add fields, but existing fields keep their meaning.
pub(crate) const SCHEMA: u32 = 1;

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

#[derive(Serialize)]
struct SchemaFields {
    version: &'static str,
    schema: u32,
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
        scruple: SchemaFields { version: env!("CARGO_PKG_VERSION"), schema: SCHEMA },
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

#[derive(Serialize)]
struct DocumentWithHead<'a, T: Serialize> {
    scruple: SchemaFields,
    #[serde(flatten)]
    rest: &'a T,
}

/// Writes a document that is not a run, with the same head.
pub fn document(rest: &impl Serialize) -> String {
    let scruple = SchemaFields { version: env!("CARGO_PKG_VERSION"), schema: SCHEMA };
    written(&DocumentWithHead { scruple, rest })
}

/// Writes a document as indented text. Serialization cannot fail: the keys of all documents are text.
pub(crate) fn written(document: &impl Serialize) -> String {
    inert(&(indented(&serde_json::to_string(document).unwrap_or_default()) + "\n"))
}

/// Breaks compact JSON into lines, indented by two spaces for each level.
///
/// serde_json's own indenting writer would be compiled for each type of a document, beside its compact writer.
fn indented(compact: &str) -> String {
    let mut out = String::with_capacity(2 * compact.len());
    let mut level = 0;
    let (mut quoted, mut escaped, mut empty) = (false, false, false);
    for c in compact.chars() {
        let closes = matches!(c, '}' | ']') && !quoted;
        level -= usize::from(closes);
        if !quoted && closes != empty {
            new_line(&mut out, level);
        }
        out.push(c);
        empty = matches!(c, '{' | '[') && !quoted;
        level += usize::from(empty);
        match c {
            ',' if !quoted => new_line(&mut out, level),
            ':' if !quoted => out.push(' '),
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
    }
    out
}

fn new_line(out: &mut String, level: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", level));
}

/// Escapes the characters of a JSON text that control a terminal.
pub(crate) fn inert(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let (shown, others) = rest.split_at(shown(rest));
        out.push_str(shown);
        let mut others = others.chars();
        match others.next() {
            Some(c) if steers(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            Some(c) => out.push(c),
            None => return out,
        }
        rest = others.as_str();
    }
}

/// Writes a moment, given in milliseconds since 1970, in the format of RFC 3339.
pub fn timestamp(milliseconds: i64) -> String {
    jiff::Timestamp::from_millisecond(milliseconds)
        .map_or_else(|_| milliseconds.to_string(), |moment| moment.to_string())
}

/// Writes a moment for readers, to the second: `2026-11-28 08:31:04 UTC`.
pub fn moment(milliseconds: i64) -> String {
    let text = timestamp(milliseconds);
    match text.get(..19).and_then(|text| text.split_once('T')) {
        Some((date, time)) => format!("{date} {time} UTC"),
        None => text,
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
    let counted = tare.map(|tare| counted_blocks::counted(sample, tare));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_indented_as_serde_json_does() {
        let values = serde_json::json!([
            {}, [], "", "{[,:\"\\", {"a\"b\\": [1, 2.5, null, true], "c": {"d": [], "e": {}, "f": [[[]]]}}, "\\", ["é\n"],
        ]);
        assert_eq!(indented(&values.to_string()), serde_json::to_string_pretty(&values).expect("JSON"));
        for value in values.as_array().expect("an array") {
            assert_eq!(indented(&value.to_string()), serde_json::to_string_pretty(value).expect("JSON"));
        }
    }
}
