//! Finds the origin of regressions: the functions, and the lines that the change touched.

use super::weighed_run::WeighedRun;
use crate::explain::counted_launches::COSTS;
use crate::explain::effort::Effort;
use crate::explain::findings::Findings;
use crate::explain::hunks::Hunk;
use crate::explain::verb::{self, at_revisions};
use crate::inspect::calls;
use crate::secrets::without_secrets;
use crate::versions::args::BuildArgs;
use crate::versions::{Recipe, SubjectTemplate};
use scruple_core::explain::{Count, FunctionDifference};
use scruple_core::gate::{self, GateOutcome, GateRules};
use scruple_core::harmless_text::list_names;
use scruple_core::judge;
use scruple_core::provenance::short_commit;
use scruple_core::subject::Role;
use scruple_stats::quantile::median;
use std::time::{Duration, Instant};

/// A function that contributes to a regression.
pub struct RegressionOrigin {
    /// The name of the subject.
    pub subject: String,
    /// The key of the metric.
    pub metric: String,
    /// The name of the function.
    pub function: String,
    /// The additional cost of the function.
    pub delta: f64,
    /// The unit of the additional cost if it is not that of the metric: what an interpreter counts for a script's
    /// function.
    pub counts: Option<String>,
    /// Whether the code of the function is the same in both versions, so that the cause is elsewhere.
    pub same_code: bool,
    /// The part of the source change that touches the function.
    pub hunk: Option<Hunk>,
}

/// Where regressions come from, as far as that is known.
#[derive(Default)]
pub struct Origins {
    /// The functions, the largest contribution to each regression first.
    pub functions: Vec<RegressionOrigin>,
    /// Why the functions of a subject are not known, in sentences.
    pub unknown: Vec<String>,
}

/// What is needed to build and run the measured subjects again.
pub struct WeighedSubjects<'a> {
    /// The path or URL of the repository.
    pub place: &'a str,
    /// The reference commit.
    pub first: &'a str,
    /// The other commit; `None` means the working tree.
    pub second: Option<&'a str>,
    /// How versions are built.
    pub recipe: &'a Recipe,
    /// How the command line said that.
    pub build: &'a BuildArgs,
    /// The subjects that were measured.
    pub subjects: &'a [SubjectTemplate],
    /// The time limit of a launch.
    pub limit: Duration,
}

/// The largest number of functions that are named for each metric.
const NAMED: usize = 3;

/// Returns the functions that cause deciding regressions of commands. The gate does not depend on them, so that they are
/// not looked for if that surely takes longer than `budget`.
pub fn origins(
    weighed: &[WeighedRun],
    rules: &GateRules,
    at: &WeighedSubjects<'_>,
    budget: Duration,
) -> Origins {
    let mut origins = Origins::default();
    let wanted = wanted(weighed, rules, at);
    let counter = match calls::any_counter("say where regressions come from") {
        _ if wanted.is_empty() => return origins,
        Ok(counter) => counter,
        Err(fault) => {
            origins.unknown.push(fault.message);
            return origins;
        }
    };
    let start = Instant::now();
    let mut left_out: Vec<&SubjectTemplate> = Vec::new();
    for (template, metrics) in wanted {
        let least = launch_time(weighed, &template.name) * COSTS.0;
        if start.elapsed() > budget || least > budget.as_secs_f64() {
            left_out.push(template);
            continue;
        }
        let revisions = verb::AtRevisions {
            place: at.place,
            first: at.first,
            second: at.second,
            recipe: at.recipe.clone(),
            subject: template,
            limit: at.limit,
        };
        let effort = Effort {
            count: Count::Instructions,
            runs: 3,
            once: true,
            strict: true,
            time: false,
            lines: false,
            apart: false,
        };
        match at_revisions(&revisions, &counter, &effort) {
            Ok((found, _)) => {
                let of = |metric: &String| of_metric(&found, &template.name, metric);
                origins.functions.extend(metrics.iter().flat_map(of));
            }
            Err(fault) => origins.unknown.push(format!(
                "it is not known where regressions of ‘{}’ come from: {}",
                template.name, fault.message
            )),
        }
    }
    if let Some(first) = left_out.first() {
        let (commit, build) = (short_commit(at.first), without_secrets(at.build.words()));
        let before = ["scruple", "explain"].into_iter().chain(build.iter().map(String::as_str));
        let words = before.chain([commit, "--"]).chain(first.words.iter().map(String::as_str));
        let of_first = if left_out.len() > 1 { format!(" of ‘{}’", first.name) } else { String::new() };
        origins.unknown.push(format!(
            "--budget left no time to find where regressions of {} come from: `{}` says it{of_first}",
            list_names(left_out.iter().map(|template| template.name.as_str())),
            shell_words::join(words)
        ));
    }
    origins
}

/// Returns the commands with deciding regressions that a call tree can explain, and their metrics.
fn wanted<'a>(
    weighed: &[WeighedRun],
    rules: &GateRules,
    at: &WeighedSubjects<'a>,
) -> Vec<(&'a SubjectTemplate, Vec<String>)> {
    let mut wanted: Vec<(&SubjectTemplate, Vec<String>)> = Vec::new();
    for one in weighed.iter().filter(|one| one.fault.is_none()) {
        let judged = judge::compare_pairs(&judge::pairs(&one.run), &one.run.terms);
        for found in gate::findings(&one.run, &judged, rules) {
            let template = at.subjects.iter().find(|subject| subject.name == found.subject && !subject.bench);
            let is_regression = found.gates && found.outcome == GateOutcome::Regression;
            let Some(template) = template.filter(|_| is_regression && count_of(&found.metric).is_some())
            else {
                continue;
            };
            match wanted.iter_mut().find(|(known, _)| known.name == template.name) {
                Some((_, metrics)) => metrics.push(found.metric),
                None => wanted.push((template, vec![found.metric])),
            }
        }
    }
    wanted
}

/// The time of a launch of the slower version, in seconds; 0 if it was not measured.
fn launch_time(weighed: &[WeighedRun], subject: &str) -> f64 {
    let arms = weighed.iter().flat_map(|one| one.run.arms_of(Role::Subject));
    let times = arms
        .filter(|arm| gate::without_version(arm) == subject)
        .filter_map(|arm| Some(median(&arm.sample("time.wall")?.readings) / 1e9));
    times.fold(0.0, f64::max)
}

/// Returns the functions to name for a metric: for instructions those of a script, if they say where the difference
/// originates.
fn of_metric(found: &Findings, subject: &str, metric: &str) -> Vec<RegressionOrigin> {
    let Some(count) = count_of(metric) else { return Vec::new() };
    let of_script = count == Count::Instructions && found.origin().main().delta() > 0.0;
    let found = if of_script { found.origin() } else { found };
    let Some(explanation) = found.explanations.iter().find(|one| one.count == count) else {
        return Vec::new();
    };
    let counts = Some(found.word(count)).filter(|word| *word != count.word()).map(str::to_owned);
    // Unchanged code of an interpreter only shows the effect of the script.
    let only_shows = |row: &FunctionDifference| row.same_code == Some(true) && found.originates_in_script();
    let worse = found.shown_rows(explanation).filter(|row| row.delta > 0.0 && !only_shows(row)).take(NAMED);
    let origin = |row: &FunctionDifference| RegressionOrigin {
        subject: subject.to_owned(),
        metric: metric.to_owned(),
        function: row.name.clone(),
        delta: row.delta,
        counts: counts.clone(),
        same_code: row.same_code == Some(true),
        hunk: found.hunk_of(explanation, row).cloned(),
    };
    worse.map(origin).collect()
}

/// The count of the call tree that explains a metric.
fn count_of(metric: &str) -> Option<Count> {
    Some(match metric {
        "instructions" => Count::Instructions,
        "malloc.count" => Count::Allocations,
        "malloc.bytes" => Count::Bytes,
        _ => return None,
    })
}
