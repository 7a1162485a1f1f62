//! The result of a gate, as rows and texts that every output format lays out in its own way; its sentences are in
//! `sentence`.

use super::origins::{Origins, RegressionOrigin};
use super::weighed_run::WeighedRun;
use crate::cli::shared_args::StoreArgs;
use crate::paths;
use crate::render::metric_words::{effect_text, title, verdict_words};
use crate::run_report::Report;
use scruple_core::evidence::MOST_OF_FEW;
use scruple_core::gate::{self, Finding, GateOutcome, GateRules};
use scruple_core::harmless_text::list_names;
use scruple_core::judge::Estimate;
use scruple_core::judge::limits::{Checked, Kept};
use scruple_core::metric::{Pass, Quality};
use scruple_core::plural::counted;
use scruple_core::run::{Run, Warning};
use scruple_core::sample::Sample;
use scruple_core::subject::{Arm, Role};
use scruple_core::unit::{Unit, exact, quantity};
use scruple_core::verdict::Comparison;
use scruple_stats::sorting::{self, SortedMap};
use std::collections::{BTreeSet, HashSet};

/// The information that a summary needs in addition to the runs.
#[derive(Default)]
pub struct SummaryContext {
    /// The names of the versions, the reference first.
    pub labels: Option<[String; 2]>,
    /// The name that identifies the gate's comment on a pull request.
    pub name: Option<String>,
    /// Why no measurement was needed, if none was made.
    pub not_measured: Option<String>,
    /// The functions that regressions come from.
    pub origins: Origins,
    /// Whether the command line gave the number of launches.
    pub launches_given: bool,
    /// The option with which another command finds the store, after a space; `None` if nothing is stored.
    pub store_option: Option<String>,
}

impl SummaryContext {
    /// What the options about the store mean for the gate.
    pub fn named(store: &StoreArgs) -> SummaryContext {
        let address = || paths::store_address(store.store.as_deref()).ok();
        let store_option = (!store.no_store).then(address).flatten().map(|place| paths::store_option(&place));
        SummaryContext { name: store.label.clone(), store_option, ..SummaryContext::default() }
    }
}

/// The result for one metric of one subject.
pub struct FoundRow {
    /// The finding that the texts describe.
    pub finding: Finding,
    /// The title of the metric.
    pub title: String,
    /// The reference's value.
    pub before: String,
    /// The new value.
    pub after: String,
    /// The change; empty if it is not known.
    pub change: String,
    /// The verdict in words.
    pub verdict: String,
    /// The unit of the metric.
    pub unit: Unit,
    /// Whether more readings may decide, and an option gives more of this metric.
    pub open_to_more: bool,
}

/// The result for a limit of one arm.
pub struct CheckedLimit {
    /// The limit, as the user wrote it.
    pub text: String,
    /// The name of the arm.
    pub arm: String,
    /// Whether the limit is kept.
    pub kept: Kept,
    /// The value that was found.
    pub found: String,
    /// The reason why the limit may be exceeded, if a commit accepts that.
    pub accepted: Option<String>,
}

/// The result of a gate.
pub struct GateSummary {
    /// The overall outcome.
    pub kept: Kept,
    /// The names of the versions, the reference first.
    pub labels: Option<[String; 2]>,
    /// The results for the metrics: those that decide first, the worst of them first.
    pub rows: Vec<FoundRow>,
    /// Which counts do not decide because they vary at the reference; empty if none.
    pub varying: String,
    /// The results for the limits.
    pub limits: Vec<CheckedLimit>,
    /// The functions that regressions come from.
    pub origins: Vec<RegressionOrigin>,
    /// Why no measurement was needed, if none was made.
    pub not_measured: Option<String>,
    /// The remarks on all runs.
    pub remarks: Vec<Warning>,
    /// Statements about the environment and the method.
    pub facts: Vec<String>,
    /// The command that repeats the gate.
    pub repeat: String,
    /// The ids of the runs.
    pub runs: Vec<String>,
    /// The name that identifies the gate's comment on a pull request.
    pub name: String,
    /// The option of the verb that makes the next measurement longer.
    pub longer: &'static str,
    /// Whether all launches were made that the command line asked for. If these are few, the last instruments have
    /// none.
    pub launches_given: bool,
}

/// The code of a remark that is left out, because the headline already says it.
const SAME_BUILD: &str = "same-build";

impl GateSummary {
    /// Judges the runs and writes the texts.
    pub fn of(weighed: &[WeighedRun], rules: &GateRules, context: SummaryContext) -> GateSummary {
        let (mut rows, mut limits) = (Vec::new(), Vec::new());
        let mut remarks: Vec<Warning> = Vec::new();
        let mut facts = Vec::new();
        for one in weighed {
            let report = Report::of(&one.run, &[], &one.limits);
            let found = gate::findings(&one.run, &report.judged, rules);
            rows.extend(found.into_iter().filter_map(|finding| row(&report, finding)));
            limits.extend(checked_by_gate(&report).map(|checked| {
                let (kept, accepted) = gate::of_limit(&one.run, checked, &one.limits, rules);
                CheckedLimit {
                    text: checked.limit.clone(),
                    arm: checked.arm.clone(),
                    kept,
                    found: checked.found.clone(),
                    accepted,
                }
            }));
            remarks.extend(one.run.warnings.iter().filter(|one| one.code != SAME_BUILD).cloned());
            remarks.extend(gate::without_counterpart(&one.run).iter().map(|(version, names)| {
                let (are, them) = if names.len() == 1 { ("is", "it") } else { ("are", "them") };
                let text =
                    format!("{} {are} not gated, because only {version} has {them}", list_names(names));
                Warning { code: "not-in-both".to_owned(), text }
            }));
            remarks.extend(gate::without_reference(&one.run).iter().map(|(name, version, why)| {
                let text = format!("‘{name}’ is not gated, because {version} does not run it: {why}");
                Warning { code: "not-in-both".to_owned(), text }
            }));
            if rules.metrics.is_empty() {
                remarks.extend(not_counted(&one.run));
            }
            facts.push(environment(&one.run));
        }
        // Each run has the remarks on the versions.
        let mut said = HashSet::new();
        remarks.retain(|remark| said.insert(remark.text.clone()));
        sorting::by_key(&mut rows, |row| (!row.finding.gates, row.finding.outcome));
        let findings: Vec<Finding> = rows.iter().map(|row| row.finding.clone()).collect();
        let unread = gate::without_findings(rules, &findings);
        if !unread.is_empty() && context.not_measured.is_none() {
            let lists = |option: &String| {
                let id = weighed.first().map_or("", |one| &one.run.id);
                format!("; `scruple show {id} --metrics all{option}` lists what was read")
            };
            let lists = context.store_option.as_ref().map_or_else(String::new, lists);
            let text = format!(
                "--gate names {}, which nothing compared: it decides nothing{lists}",
                list_names(unread)
            );
            remarks.push(Warning { code: "gate-not-read".to_owned(), text });
        }
        let unknown = context.origins.unknown;
        remarks.extend(unknown.into_iter().map(|text| Warning { code: "origin-unknown".to_owned(), text }));
        let of_limits: Vec<Kept> = limits.iter().map(|limit| limit.kept).collect();
        let kept = match context.not_measured {
            Some(_) => Kept::Yes,
            // A run that failed cannot show that limits are kept.
            None => match gate::overall_outcome(&findings, &of_limits) {
                Kept::Yes if weighed.iter().any(|one| one.fault.is_some()) => Kept::CantTell,
                kept => kept,
            },
        };
        if context.not_measured.is_none() {
            facts.insert(0, what_decides(&findings, !limits.is_empty()));
        }
        let words = weighed.first().map(|one| one.run.argv.as_slice()).unwrap_or_default();
        // The path of the program is replaced, to keep local paths private.
        let repeat = words.iter().skip(1).map(String::as_str);
        let repeat: Vec<&str> = words.first().map(|_| "scruple").into_iter().chain(repeat).collect();
        let of_load = weighed.iter().flat_map(|one| &one.run.arms).any(|arm| arm.course.is_some());
        GateSummary {
            kept,
            labels: context.labels,
            varying: varying(&rows),
            rows,
            limits,
            origins: context.origins.functions,
            not_measured: context.not_measured,
            remarks,
            facts,
            repeat: shell_words::join(repeat),
            launches_given: context.launches_given && weighed.iter().all(|one| one.fault.is_none()),
            runs: weighed.iter().map(|one| one.run.id.clone()).collect(),
            name: context.name.unwrap_or_else(|| "default".to_owned()),
            longer: match (of_load, context.launches_given) {
                (true, _) => "A longer load, with -d,",
                (false, true) => "More launches, with a larger -r,",
                (false, false) => "A larger --budget",
            },
        }
    }

    /// Returns the rows with this outcome, either those that decide or those that only inform.
    pub fn rows_of(&self, outcome: GateOutcome, gates: bool) -> impl Iterator<Item = &FoundRow> {
        self.rows.iter().filter(move |row| row.finding.outcome == outcome && row.finding.gates == gates)
    }
}

/// The limits as a gate checks them: not on the reference, which a change cannot mend, unless a limit names only it.
fn checked_by_gate<'r>(report: &'r Report<'_>) -> impl Iterator<Item = &'r Checked> {
    let is_reference = |arm: &str| report.judged.iter().any(|one| one.reference == arm);
    report.checked.iter().filter(move |checked| {
        let mut alike = report.checked.iter().filter(|other| other.limit == checked.limit);
        !is_reference(&checked.arm) || alike.all(|other| is_reference(&other.arm))
    })
}

/// Remarks on the counts that decide by default and that no version of a subject has, so that they decide nothing.
fn not_counted(run: &Run) -> Vec<Warning> {
    let of = |arm: &Arm| arm.version.as_ref().map(|_| gate::without_version(arm).to_owned());
    let mut found: SortedMap<(&str, &str), BTreeSet<String>> = SortedMap::new();
    for key in ["instructions", "malloc.count"] {
        for arm in run.arms_of(Role::Subject) {
            let Some(why) = arm.absent(key) else { continue };
            let has = |other: &Arm| of(other) == of(arm) && other.sample(key).is_some();
            if !run.arms_of(Role::Subject).any(has) {
                found.entry((key, why)).or_default().extend(of(arm));
            }
        }
    }
    let remark = |((key, why), names): ((&str, &str), BTreeSet<String>)| {
        let subjects = if names.is_empty() { String::new() } else { format!(" of {}", list_names(names)) };
        Warning {
            code: "not-counted".to_owned(),
            text: format!("{}{subjects} decide nothing: {why}", title(key)),
        }
    };
    found.into_iter().map(remark).collect()
}

/// Writes the texts of a finding. Returns `None` if the finding neither decides nor is shown.
fn row(report: &Report<'_>, finding: Finding) -> Option<FoundRow> {
    let key = &finding.metric;
    if !finding.gates && finding.varies.is_none() && !report.shown.contains(key) {
        return None;
    }
    let value = |name: &str| {
        let arm = report.run.arms.iter().find(|arm| arm.name == name && arm.role == Role::Subject);
        let known = arm.and_then(|arm| Some((arm.sample(key)?, report.estimate(arm, key)?)));
        known.map_or_else(|| "–".to_owned(), |(sample, estimate)| value_text(sample, &estimate))
    };
    let sample = report.run.arms.iter().find_map(|arm| arm.sample(key))?;
    let unit = sample.unit.clone();
    // Counts of cases, and of commands that were launched so often, take no more launches however long a budget is.
    let few = matches!(sample.pass, Pass::Memory | Pass::Counting);
    let is_full = |one: &Comparison| few && (report.of_cases() || one.evidence.readings() >= MOST_OF_FEW);
    let (before, after) = (value(&finding.reference), value(&finding.arm));
    let comparison = finding.comparison.as_ref();
    Some(FoundRow {
        title: title(key),
        before,
        after,
        change: comparison.map_or_else(String::new, |comparison| effect_text(key, comparison)),
        verdict: comparison.map_or_else(
            || "can’t tell".to_owned(),
            |comparison| verdict_words(key, comparison).into_owned(),
        ),
        unit,
        open_to_more: comparison.is_some_and(|one| one.more_blocks > 0 && !is_full(one)),
        finding,
    })
}

fn value_text(sample: &Sample, estimate: &Estimate) -> String {
    let value = match estimate.interval {
        None if sample.repeats() && sample.quality <= Quality::Near => exact(estimate.value, &sample.unit),
        _ => quantity(estimate.value, &sample.unit),
    };
    format!("{}{value}", sample.worth().mark())
}

/// Says which metrics decide.
fn what_decides(findings: &[Finding], limited: bool) -> String {
    let keys: Vec<&str> =
        sorting::distinct(findings.iter().filter(|one| one.gates).map(|one| one.metric.as_str()));
    let titles: Vec<String> = keys.into_iter().map(title).collect();
    match (titles.is_empty(), limited) {
        (false, _) => {
            format!("These decide: {}. All other figures are only shown.", titles.join(", "))
        }
        (true, true) => "Only the limits decide: no metric that decides was read.".to_owned(),
        (true, false) => {
            "No metric that decides was read: by default counts that repeat decide, and --gate names others."
                .to_owned()
        }
    }
}

/// Says which counts do not decide because they vary at the reference; empty if there are none.
fn varying(rows: &[FoundRow]) -> String {
    let parts: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let [low, high] = row.finding.varies?.map(|reading| exact(reading, &row.unit));
            Some(format!("{} of ‘{}’ ({low} to {high} at the reference)", row.title, row.finding.subject))
        })
        .collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!(
            "Not deciding, because they vary from launch to launch: {}; if --gate names them, they decide.",
            parts.join(", ")
        ),
    }
}

/// Says where and how a run was measured.
fn environment(run: &Run) -> String {
    let readings = |arm: &Arm| {
        let of = |key: &str, word: &'static str| Some((arm.sample(key)?.readings.len(), word));
        of("time.wall", "timing").or_else(|| of("load.rate", "window"))
    };
    let (fewest, word) = run.arms_of(Role::Subject).filter_map(readings).min().unwrap_or((0, "timing"));
    let (of, readings) = (&run.provenance, counted(fewest, word));
    format!(
        "{} · {readings} of each side, interleaved · seed {} · load {:.1} · kernel {} · run {}",
        of.machine_class, run.seed, of.load, of.kernel, run.id
    )
}
