//! A run and its conclusions, and how they are written.

pub mod advice;
pub mod csv;
pub mod document_table;
pub mod few_readings;
pub mod formats;
pub mod hyperfine;
pub mod json;
pub mod junit;
pub mod metrics_and_limits;
pub mod net;
pub mod ranking;
pub mod scaling;
pub mod sentence;
pub mod terminal;
pub mod unlike_medians;

use crate::load::windows::Loads;
use crate::render::metric_words::declared;
use scruple_core::environment::Environments;
use scruple_core::gate;
use scruple_core::judge::limits::{Checked, Kept, LimitedValue, check};
use scruple_core::judge::{self, Estimate, GrowthFit, Judged, Nodes, Pair, RESOLUTION};
use scruple_core::limit::Limit;
use scruple_core::metric::{DEFAULT_METRICS, Metric, metric};
use scruple_core::run::Run;
use scruple_core::sample::Sample;
use scruple_core::subject::{Arm, Role, Subject};
use scruple_core::unit::relative_spread;
use scruple_stats::nodes::OverNodes;
use scruple_stats::sorting::SortedMap;
use std::collections::{HashMap, HashSet};

/// A run and its conclusions.
pub struct Report<'a> {
    /// The run that is reported.
    pub run: &'a Run,
    /// The comparisons of arms, in every metric.
    pub judged: Vec<Judged>,
    /// The fits that say how metrics grow with parameters.
    pub fits: Vec<GrowthFit>,
    /// The limits, and whether they were kept.
    pub checked: Vec<Checked>,
    /// The keys of the metrics that tables show, in order.
    pub shown: Vec<String>,
    /// Whether the diagnostic panel of each case is shown.
    pub detail: bool,
    /// Whether the arms were measured in the same blocks.
    pub side_by_side: bool,
    /// The results of a load test in addition to its readings; `None` for a stored run.
    pub loads: Option<&'a Loads>,
    /// How the environments of two stored runs are related; `None` within one run.
    pub environments: Option<Environments>,
    /// How far the nodes of a farm agree about each comparison that several nodes have measured, by its index in
    /// `judged`.
    pub over_nodes: SortedMap<usize, OverNodes>,
    /// The indices in `judged` of the comparisons of each arm.
    by_arm: HashMap<String, Vec<usize>>,
}

impl<'a> Report<'a> {
    /// Judges a run whose arms were measured in the same blocks.
    pub fn of(run: &'a Run, metrics: &[String], limits: &[Limit]) -> Report<'a> {
        Report::of_pairs(run, &judge::pairs(run), metrics, limits, None)
    }

    /// Judges these pairs of arms. If the references come from another run, `environments` relates the environments of
    /// both.
    pub fn of_pairs(
        run: &'a Run,
        pairs: &[Pair<'_>],
        metrics: &[String],
        limits: &[Limit],
        environments: Option<Environments>,
    ) -> Report<'a> {
        let subjects: Vec<&Arm> = run.arms_of(Role::Subject).collect();
        let shown = shown_metrics(&subjects, metrics);
        let mut judged = judge::compare_pairs(pairs, &run.terms);
        if let Some(environments) = &environments {
            environments.withhold(&mut judged, |key| metric_of(run, key));
        }
        let of_cases = is_of_cases(run);
        let fitted: Vec<String> = match of_cases {
            true => ["time.wall", "alloc.bytes", "malloc.bytes"].map(str::to_owned).to_vec(),
            false => shown.clone(),
        };
        let fits = judge::fits(&subjects, &fitted, run.terms.level, |arm, key| counted(run, arm, key));
        let mut by_names: HashMap<(&str, &str), &Pair<'_>> = HashMap::new();
        for pair in pairs {
            by_names.entry((&pair.arm.name, &pair.reference.name)).or_insert(pair);
        }
        let agreement = |judged: &Judged| {
            let pair = by_names.get(&(judged.arm.as_str(), judged.reference.as_str()))?;
            judge::over_nodes(pair, &judged.metric, run.terms.level)
        };
        let over_nodes = judged.iter().enumerate().filter_map(|(at, judged)| Some((at, agreement(judged)?)));
        let over_nodes = over_nodes.collect();
        let mut by_arm: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, one) in judged.iter().enumerate() {
            by_arm.entry(one.arm.clone()).or_default().push(at);
        }
        let side_by_side = pairs.iter().all(|pair| pair.paired);
        let mut report = Report {
            run,
            judged,
            fits,
            checked: Vec::new(),
            shown,
            side_by_side,
            detail: false,
            loads: None,
            environments,
            over_nodes,
            by_arm,
        };
        report.checked = report.check(limits, pairs);
        report
    }

    fn check(&self, limits: &[Limit], pairs: &[Pair<'_>]) -> Vec<Checked> {
        let mut checked = Vec::new();
        let several = self.run.arms_of(Role::Subject).count() > 1;
        // Arms are compared by address, because an arm of an earlier run may have the same name.
        let references: HashSet<*const Arm> =
            pairs.iter().map(|pair| std::ptr::from_ref(pair.reference)).collect();
        let compared: HashSet<*const Arm> = pairs.iter().map(|pair| std::ptr::from_ref(pair.arm)).collect();
        let reference = |arm: &Arm| references.contains(&std::ptr::from_ref(arm));
        let alone = |arm: &Arm| !reference(arm) && !compared.contains(&std::ptr::from_ref(arm));
        // A case of the base that the change does not have does not decide a limit.
        let base = self.run.arms.first().and_then(|arm| arm.version.as_ref());
        let versions = base.is_some() && self.run.arms.iter().any(|arm| arm.version.as_ref() != base);
        let removed = |arm: &Arm| versions && arm.version.as_ref() == base && alone(arm);
        for limit in limits {
            let key = &limit.metric;
            let metric = metric_of(self.run, key);
            let relative = limit.bound.is_relative() && limit.against.is_none();
            let arms: Vec<&Arm> = self.run.arms.iter().filter(|arm| limit_applies(limit, arm)).collect();
            // Relative limits do not apply to a reference. A reference from an earlier run and the earlier version of a
            // subject are not judged at all: the later version may have mended what exceeds a limit there.
            let earlier = |arm: &Arm| arm.version.is_some() || !self.side_by_side;
            let exempt = |arm: &Arm| match reference(arm) {
                true => several && (relative || earlier(arm)),
                // A case that only one side has does not fail a limit on the changes of all cases.
                false => removed(arm) || relative && alone(arm),
            };
            // A limit that names references only is checked, so that it does not count as kept.
            let only_exempt = arms.iter().all(|arm| exempt(arm));
            for arm in arms.into_iter().filter(|arm| only_exempt || !exempt(arm)) {
                if removed(arm) && limit.applies_to(gate::without_version(arm)) {
                    let found = "only this version has it".to_owned();
                    let (limit, arm) = (limit.text.clone(), arm.name.clone());
                    checked.push(Checked { limit, arm, kept: Kept::CantTell, found });
                    continue;
                }
                let with_case = self.against_case(limit, arm);
                let judged = match limit.against {
                    Some(_) => with_case.as_ref(),
                    None => self.judged_of(&arm.name, key),
                };
                checked.push(check(
                    limit,
                    &arm.name,
                    &metric,
                    self.limited_value(arm, key),
                    judged,
                    // A case that failed or was skipped has its reason instead of its time.
                    arm.absent(key).or_else(|| arm.absent("time.wall")),
                ));
            }
        }
        checked
    }

    /// Returns the value and the bounds of a metric of an arm, which an absolute limit is compared with.
    fn limited_value(&self, arm: &Arm, key: &str) -> Option<LimitedValue> {
        let sample = counted(self.run, arm, key)?;
        let level = self.run.terms.level;
        let value = judge::estimate_of(arm, key, &sample, level).value;
        Some(LimitedValue { value, bounds: judge::amount_bounds(arm, key, &sample, level) })
    }

    /// Returns the comparison of an arm with the case that a limit names, at the same version.
    fn against_case(&self, limit: &Limit, arm: &Arm) -> Option<Judged> {
        let name = limit.against.as_ref()?;
        let full = arm.version.as_ref().map_or(name.clone(), |version| format!("{name} @{version}"));
        let reference = self.run.arms_of(Role::Subject).find(|other| other.name == full)?;
        let tares = tare_of(self.run, reference).zip(tare_of(self.run, arm));
        let pair = Pair { reference, arm, paired: true, tares, nodes: Nodes::of(self.run) };
        judge::compare_pairs(&[pair], &self.run.terms)
            .into_iter()
            .find(|judged| judged.metric == limit.metric)
    }

    /// Whether tables show this metric.
    pub fn is_shown(&self, key: &str) -> bool {
        self.shown.iter().any(|shown| shown == key)
    }

    /// Whether the arms are servers under load.
    pub fn of_requests(&self) -> bool {
        matches!(self.run.arms.first().map(|arm| &arm.subject), Some(Subject::Request { .. }))
    }

    /// Whether the arms are cases of bench programs.
    pub fn of_cases(&self) -> bool {
        is_of_cases(self.run)
    }

    /// Returns the estimate of a metric of an arm. For a case it comes from undisturbed blocks, and for a load test
    /// from all requests together.
    pub fn estimate(&self, arm: &Arm, key: &str) -> Option<Estimate> {
        let level = self.run.terms.level;
        Some(judge::estimate_of(arm, key, &counted(self.run, arm, key)?, level))
    }

    /// Whether another arm of this run was compared with this one. That of a stored run may have the same name.
    pub fn is_reference(&self, arm: &Arm) -> bool {
        self.judged.iter().any(|one| one.reference == arm.name && one.arm != arm.name)
    }

    /// Says what an arm without a quoted comparison is to the others.
    pub fn uncompared(&self, arm: &Arm) -> &'static str {
        let base = self.run.arms.first().and_then(|arm| arm.version.as_ref());
        let of_base = arm.version.is_some() && arm.version.as_ref() == base;
        // The references may be those of another run.
        let has_counterpart = arm.version.is_none() && self.environments.is_none()
            || self.judged.iter().any(|one| one.arm == arm.name);
        match () {
            () if self.judged.is_empty() || arm.ended().is_some() => "",
            () if self.is_reference(arm) || of_base && !self.is_alone(arm) => "reference",
            () if has_counterpart => "",
            () => "no counterpart",
        }
    }

    /// Whether no other program has this case.
    fn is_alone(&self, arm: &Arm) -> bool {
        let plain = |arm: &Arm| arm.name.rsplit_once(" @").map(|(name, _)| name.to_owned());
        !self.rows().any(|other| other.version != arm.version && plain(other) == plain(arm))
    }

    /// Returns the comparison of an arm with the reference in one metric.
    pub fn judged_of(&self, arm: &str, key: &str) -> Option<&Judged> {
        self.by_arm.get(arm)?.iter().map(|at| &self.judged[*at]).find(|judged| judged.metric == key)
    }

    /// Returns what a reader of two stored runs must know before any figure.
    pub fn preface(&self) -> Vec<String> {
        let Some(environments) = &self.environments else { return Vec::new() };
        let shown: Vec<Metric> = self.shown.iter().map(|key| metric_of(self.run, key)).collect();
        let mut sentences = environments.sentences(&shown);
        sentences.extend(self.wider_margins());
        sentences
    }

    /// Says why the margins of times of two runs are wider than that of the terms.
    fn wider_margins(&self) -> Option<String> {
        let margin = |key: &String| {
            let compared = |one: &&Judged| one.metric == *key && one.comparison.interval().is_some();
            let judged = self.judged.iter().filter(compared);
            judged.map(|judged| judged.comparison.margin).fold(self.run.terms.margin, f64::max)
        };
        let times = self.shown.iter().filter(|key| key.starts_with("time."));
        let wider = times.filter(|key| margin(key) > self.run.terms.margin);
        let wider: Vec<String> = wider
            .map(|key| format!("{} {}", metric_of(self.run, key).title, relative_spread(margin(key))))
            .collect();
        let causes = match self.of_cases() {
            true => "The core’s clock, or other work on the core,",
            false => "The time of the empty program, or the waiting for a core,",
        };
        (!wider.is_empty()).then(|| {
            format!(
                "Wider margins: {}. {causes} may have changed by so much between the two runs.",
                wider.join(", ")
            )
        })
    }

    /// Returns the arms that have rows in tables: subjects, yardsticks, the shell and the twin. The tare has a line of
    /// its own, and parts have a table of their own.
    pub fn rows(&self) -> impl Iterator<Item = &'a Arm> {
        self.run.arms.iter().filter(|arm| !matches!(arm.role, Role::Tare | Role::Part))
    }

    /// Returns the overall outcome of the limits. An exceeded limit outweighs an undecided one.
    pub fn kept(&self) -> Kept {
        self.checked.iter().map(|checked| checked.kept).fold(Kept::Yes, |all, one| match (all, one) {
            (Kept::No, _) | (_, Kept::No) => Kept::No,
            (Kept::CantTell, _) | (_, Kept::CantTell) => Kept::CantTell,
            _ => Kept::Yes,
        })
    }
}

/// Whether a limit applies to an arm, by the arm's name with or without its version. A limit for all arms applies to
/// subjects only.
pub fn limit_applies(limit: &Limit, arm: &Arm) -> bool {
    if arm.role != Role::Subject && (arm.role != Role::Part || limit.arm == "*") {
        return false;
    }
    limit.applies_to(&arm.name) || limit.applies_to(gate::without_version(arm))
}

fn is_of_cases(run: &Run) -> bool {
    matches!(run.arms.first().map(|arm| &arm.subject), Some(Subject::Case { .. }))
}

/// Returns the arm whose witness shows how disturbed the blocks of a case were: the tare of the case, or the arm
/// itself if it is a tare.
pub(crate) fn tare_of<'a>(run: &'a Run, arm: &Arm) -> Option<&'a Arm> {
    if !is_of_cases(run) {
        return None;
    }
    // The index is derived from the address, because a search would be slow for a suite of ten thousand cases.
    let offset = std::ptr::from_ref(arm).addr().checked_sub(run.arms.as_ptr().addr())?;
    let position = offset / size_of::<Arm>();
    run.arms.get(position).filter(|found| std::ptr::eq(*found, arm))?;
    match arm.role {
        Role::Tare => Some(&run.arms[position]),
        _ => judge::bench_cases::tare_at(run, position),
    }
}

/// Returns the readings of a metric of an arm that are used. For a case, these come from undisturbed blocks.
fn counted(run: &Run, arm: &Arm, key: &str) -> Option<Sample> {
    let sample = arm.sample(key)?;
    Some(match tare_of(run, arm) {
        Some(tare) => judge::undisturbed_blocks::counted(sample, tare),
        None => sample.clone(),
    })
}

/// Returns the metrics that tables show: the requested ones, or the default ones that have readings.
fn shown_metrics(arms: &[&Arm], asked: &[String]) -> Vec<String> {
    let mut keys = judge::keys_of(arms);
    if asked.is_empty() {
        let read = |key: &String| arms.iter().any(|arm| arm.sample(key).is_some());
        keys.retain(|key| match metric(key) {
            // A missing runtime is usual, while missing allocation counts and a missing peak are notable.
            Some(_) => {
                let notable = key.starts_with("malloc.count") || key == "memory.peak";
                DEFAULT_METRICS.contains(&key.as_str()) && (read(key) || notable)
            }
            // How often a case ran within a reading, and what a reading may be wrong by, are no costs.
            None => !key.starts_with("batch.") && !key.ends_with(RESOLUTION),
        });
        return keys;
    }
    keys.retain(|key| asked.iter().any(|pattern| declared(key).matches(pattern)));
    keys
}

/// Returns the declaration of a metric, whether Scruple or a bench program declares it.
fn metric_of(run: &Run, key: &str) -> Metric {
    let own = || run.arms.iter().find_map(|arm| Some(judge::declaration(key, arm.sample(key)?)));
    metric(key).cloned().or_else(own).unwrap_or_else(|| declared(key))
}
