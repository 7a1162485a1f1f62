//! Writes the gate as JSON.

use crate::check::sentence;
use crate::check::summary::GateSummary;
use crate::render::json::document;
use scruple_core::gate::GateOutcome;
use scruple_core::judge::limits::Kept;
use scruple_core::run::Warning;
use scruple_core::verdict::Verdict;
use serde::Serialize;

#[derive(Serialize)]
struct CheckFields<'a> {
    check: CheckDocument<'a>,
}

#[derive(Serialize)]
struct CheckDocument<'a> {
    gate: &'static str,
    summary: String,
    versions: Option<&'a [String; 2]>,
    runs: &'a [String],
    findings: Vec<FindingView<'a>>,
    limits: Vec<LimitView<'a>>,
    origins: Vec<OriginView<'a>>,
    warnings: &'a [Warning],
}

#[derive(Serialize)]
struct FindingView<'a> {
    subject: &'a str,
    metric: &'a str,
    reference: &'a str,
    arm: &'a str,
    decides: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    varies: Option<[f64; 2]>,
    outcome: GateOutcome,
    verdict: Option<Verdict>,
    effect: Option<f64>,
    interval: Option<[f64; 2]>,
    difference: Option<f64>,
    before: &'a str,
    after: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

#[derive(Serialize)]
struct LimitView<'a> {
    limit: &'a str,
    arm: &'a str,
    result: Kept,
    found: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<&'a str>,
}

#[derive(Serialize)]
struct OriginView<'a> {
    subject: &'a str,
    metric: &'a str,
    function: &'a str,
    difference: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<&'a str>,
    same_code: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<(u32, u32)>,
}

/// Writes the summary as JSON.
pub fn text(summary: &GateSummary) -> String {
    let findings = summary.rows.iter().map(|row| {
        let finding = &row.finding;
        let evidence = finding.comparison.as_ref().map(|comparison| &comparison.evidence);
        FindingView {
            subject: &finding.subject,
            metric: &finding.metric,
            reference: &finding.reference,
            arm: &finding.arm,
            decides: finding.gates,
            varies: finding.varies,
            outcome: finding.outcome,
            verdict: finding.comparison.as_ref().map(|comparison| comparison.verdict),
            effect: evidence.and_then(|evidence| evidence.effect()),
            interval: evidence
                .and_then(|evidence| evidence.interval())
                .map(|interval| [interval.low, interval.high]),
            difference: evidence.and_then(|evidence| evidence.difference()),
            before: &row.before,
            after: &row.after,
            why: finding.why.as_deref(),
        }
    });
    let limits = summary.limits.iter().map(|limit| LimitView {
        limit: &limit.text,
        arm: &limit.arm,
        result: limit.kept,
        found: &limit.found,
        accepted: limit.accepted.as_deref(),
    });
    let origins = summary.origins.iter().map(|origin| OriginView {
        subject: &origin.subject,
        metric: &origin.metric,
        function: &origin.function,
        difference: origin.delta,
        counts: origin.counts.as_deref(),
        same_code: origin.same_code,
        file: origin.hunk.as_ref().map(|hunk| hunk.file.as_str()),
        lines: origin.hunk.as_ref().map(|hunk| hunk.lines),
    });
    document(&CheckFields {
        check: CheckDocument {
            gate: summary.kept.word(),
            summary: sentence::outcome(summary),
            versions: summary.labels.as_ref(),
            runs: &summary.runs,
            findings: findings.collect(),
            limits: limits.collect(),
            origins: origins.collect(),
            warnings: &summary.remarks,
        },
    })
}
