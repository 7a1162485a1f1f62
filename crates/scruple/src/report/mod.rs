//! Reports: one view of a run and what may be said of it, written in several formats.

mod align;
mod cases;
mod chart;
pub mod csv;
mod detail;
mod flame;
pub mod history;
pub mod json;
pub mod junit;
pub mod leak;
mod load;
mod load_map;
pub mod load_page;
mod load_sheet;
mod load_view;
pub mod markup;
mod matrix;
pub mod memory;
pub mod pauses;
mod picture;
pub mod profile;
mod queues;
mod sentence;
mod svg;
pub mod terminal;

use crate::loading::Loads;
use scruple_core::budget::{Budget, Checked, Kept, check};
use scruple_core::compare::{Comparison, Direction, Verdict};
use scruple_core::judge::{self, Estimate, Fit, Judged, Pair};
use scruple_core::metric::{Better, DEFAULT_METRICS, Metric, metric};
use scruple_core::run::Run;
use scruple_core::subject::{Arm, Role, Subject};
use scruple_core::unit::{Unit, change, change_between, share};
use scruple_measure::memory_map::Course;
use std::borrow::Cow;

/// A run and what may be said of it.
pub struct Report<'a> {
    /// The run.
    pub run: &'a Run,
    /// The comparisons, in every metric.
    pub judged: Vec<Judged>,
    /// How metrics grow with parameters.
    pub fits: Vec<Fit>,
    /// Limits and whether they were kept.
    pub checked: Vec<Checked>,
    /// The keys of the metrics to show in tables, in order.
    pub shown: Vec<String>,
    /// Show the diagnostic panel of each case.
    pub detail: bool,
    /// Whether the arms were taken in the same blocks.
    pub side_by_side: bool,
    /// The memory of the arms that was watched, by their names.
    pub memory_maps: Vec<(&'a str, &'a Course)>,
    /// What a load brought besides the readings; none for a stored run.
    pub loads: Option<&'a Loads>,
}

impl<'a> Report<'a> {
    /// Judges a run whose arms were taken side by side.
    pub fn of(run: &'a Run, metrics: &[String], budgets: &[Budget]) -> Report<'a> {
        Report::of_pairs(run, &judge::pairs(run), metrics, budgets)
    }

    /// Judges these pairs of a run's arms.
    pub fn of_pairs(run: &'a Run, pairs: &[Pair<'_>], metrics: &[String], budgets: &[Budget]) -> Report<'a> {
        let subjects: Vec<&Arm> = run.arms_of(Role::Subject).collect();
        let shown = shown_metrics(&subjects, metrics);
        let judged = judge::compare_pairs(pairs, &run.terms);
        let of_cases = is_of_cases(run);
        let fitted: Vec<String> = match of_cases {
            true => ["time.wall", "alloc.bytes", "malloc.bytes"].map(str::to_owned).to_vec(),
            false => shown.clone(),
        };
        let sample_of = |arm: &Arm, key: &str| {
            let sample = arm.sample(key)?;
            Some(match tare_of(run, arm) {
                Some(tare) => judge::cases::counted(sample, tare),
                None => sample.clone(),
            })
        };
        let fits = judge::fits(&subjects, &fitted, run.terms.level, sample_of);
        let side_by_side = pairs.iter().all(|pair| pair.paired);
        let mut report = Report {
            run,
            judged,
            fits,
            checked: Vec::new(),
            shown,
            side_by_side,
            detail: false,
            memory_maps: Vec::new(),
            loads: None,
        };
        report.checked = report.check(budgets, pairs);
        report
    }

    fn check(&self, budgets: &[Budget], pairs: &[Pair<'_>]) -> Vec<Checked> {
        let mut checked = Vec::new();
        let several = self.run.arms_of(Role::Subject).count() > 1;
        // An arm of the same name in an earlier run is not this arm.
        let reference = |arm: &Arm| pairs.iter().any(|pair| std::ptr::eq(pair.reference, arm));
        for budget in budgets {
            let key = &budget.metric;
            let own = || self.run.arms.iter().find_map(|arm| Some(judge::declaration(key, arm.sample(key)?)));
            let metric = metric(key).cloned().or_else(own).unwrap_or_else(|| declared(key));
            let relative = budget.limit.is_relative() && budget.against.is_none();
            for arm in self.run.arms_of(Role::Subject).filter(|arm| meant(budget, arm)) {
                // A reference has nothing to be relative to; and where it is an earlier run, it is not on trial at all.
                if reference(arm) && several && (relative || !self.side_by_side) {
                    continue;
                }
                let estimate = self.estimate(arm, key).map(|estimate| judge::widened(estimate, arm, key));
                let with_case = self.against_case(budget, arm);
                let judged = match budget.against {
                    Some(_) => with_case.as_ref(),
                    None => self.judged_of(&arm.name, &budget.metric),
                };
                checked.push(check(
                    budget,
                    &arm.name,
                    &metric,
                    estimate.as_ref(),
                    judged,
                    arm.absent(&budget.metric),
                ));
            }
        }
        checked
    }

    /// The comparison of an arm with the case that a budget names, of the same version.
    fn against_case(&self, budget: &Budget, arm: &Arm) -> Option<Judged> {
        let name = budget.against.as_ref()?;
        let full = arm.version.as_ref().map_or(name.clone(), |version| format!("{name} @{version}"));
        let reference = self.run.arms_of(Role::Subject).find(|other| other.name == full)?;
        let tares = tare_of(self.run, reference).zip(tare_of(self.run, arm));
        let pair = Pair { reference, arm, paired: true, tares };
        judge::compare_pairs(&[pair], &self.run.terms)
            .into_iter()
            .find(|judged| judged.metric == budget.metric)
    }

    /// Whether the arms are cases of bench programs.
    pub fn of_cases(&self) -> bool {
        is_of_cases(self.run)
    }

    /// The estimate of a metric of an arm; of a case, over the blocks that count.
    pub fn estimate(&self, arm: &Arm, key: &str) -> Option<Estimate> {
        let sample = arm.sample(key)?;
        let level = self.run.terms.level;
        Some(match tare_of(self.run, arm) {
            Some(tare) => judge::estimate(&judge::cases::counted(sample, tare), level),
            None => judge::estimate(sample, level),
        })
    }

    /// The comparison of an arm with the reference in one metric.
    pub fn judged_of(&self, arm: &str, key: &str) -> Option<&Judged> {
        self.judged.iter().find(|judged| judged.arm == arm && judged.metric == key)
    }

    /// The arms that tables have rows for: subjects, the shell and the twin; the tare has a line of its own.
    pub fn rows(&self) -> impl Iterator<Item = &'a Arm> {
        self.run.arms.iter().filter(|arm| arm.role != Role::Tare)
    }

    /// Whether limits were kept, all in all: exceeded outweighs unknown.
    pub fn kept(&self) -> Kept {
        self.checked.iter().map(|checked| checked.kept).fold(Kept::Yes, |all, one| match (all, one) {
            (Kept::No, _) | (_, Kept::No) => Kept::No,
            (Kept::Unknown, _) | (_, Kept::Unknown) => Kept::Unknown,
            _ => Kept::Yes,
        })
    }
}

/// Whether a limit is meant for an arm, by its name with or without its version.
pub fn meant(budget: &Budget, arm: &Arm) -> bool {
    let plain = arm.version.as_ref().and_then(|version| arm.name.strip_suffix(version)?.strip_suffix(" @"));
    budget.applies_to(&arm.name) || plain.is_some_and(|name| budget.applies_to(name))
}

/// Whether the arms are servers under load.
fn is_of_requests(run: &Run) -> bool {
    matches!(run.arms.first().map(|arm| &arm.subject), Some(Subject::Request { .. }))
}

fn is_of_cases(run: &Run) -> bool {
    matches!(run.arms.first().map(|arm| &arm.subject), Some(Subject::Case { .. }))
}

/// The arm that bears witness to how disturbed the blocks of a case were; a tare is its own.
pub(crate) fn tare_of<'a>(run: &'a Run, arm: &Arm) -> Option<&'a Arm> {
    if !is_of_cases(run) {
        return None;
    }
    // Ten thousand cases are asked for their tares: the position is told by the address, without a search.
    let offset = std::ptr::from_ref(arm).addr().checked_sub(run.arms.as_ptr().addr())?;
    let position = offset / size_of::<Arm>();
    run.arms.get(position).filter(|found| std::ptr::eq(*found, arm))?;
    match arm.role {
        Role::Tare => Some(&run.arms[position]),
        _ => judge::cases::tare_at(run, position),
    }
}

/// The metrics that tables show: those asked for, or the default ones of which something is known.
fn shown_metrics(arms: &[&Arm], asked: &[String]) -> Vec<String> {
    let mut keys = judge::keys_of(arms);
    if asked.is_empty() {
        let read = |key: &String| arms.iter().any(|arm| arm.sample(key).is_some());
        keys.retain(|key| match metric(key) {
            // An absent runtime is the ordinary case; absent allocations are news.
            Some(_) => {
                DEFAULT_METRICS.contains(&key.as_str()) && (read(key) || key.starts_with("malloc.count"))
            }
            None => true,
        });
        return keys;
    }
    keys.retain(|key| asked.iter().any(|pattern| declared(key).matches(pattern)));
    keys
}

fn declared(key: &str) -> Metric {
    use scruple_core::metric::{Pass, Quality};
    metric(key).cloned().unwrap_or_else(|| Metric::custom(key, Unit::Count, Quality::Noisy, Pass::Timing))
}

/// The column head of a metric.
fn title(key: &str) -> String {
    declared(key).title.into_owned()
}

/// A verdict in the words of its metric.
fn verdict_words(key: &str, comparison: &Comparison) -> Cow<'static, str> {
    let metric = declared(key);
    let time = metric.unit == Unit::Nanoseconds && (key.starts_with("time.") || key.starts_with("load."));
    let higher = metric.better == Better::Higher;
    let word = match (comparison.verdict, comparison.direction) {
        // A floor of the metric may be far above the margin, which a reader of the effect beside it has to know.
        (Verdict::Same, _) if comparison.interval.is_none() && (comparison.effect - 1.0).abs() > 0.02 => {
            return format!("same within {}", share(comparison.margin)).into();
        }
        (Verdict::Same, _) => "same",
        (Verdict::DontKnow, _) => "can’t tell",
        (Verdict::Different, Some(Direction::Better)) if time => "faster",
        (Verdict::Different, Some(Direction::Worse)) if time => "slower",
        (Verdict::Different, Some(Direction::Better)) if !higher => "less",
        (Verdict::Different, Some(Direction::Worse)) if higher => "less",
        (Verdict::Different, _) => "more",
        (Verdict::Small, Some(Direction::Better)) if time => "slightly faster",
        (Verdict::Small, Some(Direction::Worse)) if time => "slightly slower",
        (Verdict::Small, Some(Direction::Better)) if !higher => "slightly less",
        (Verdict::Small, Some(Direction::Worse)) if higher => "slightly less",
        (Verdict::Small, _) => "slightly more",
    };
    word.into()
}

/// The effect of a comparison with its interval, as a table shows it.
fn effect_text(key: &str, comparison: &Comparison) -> String {
    if let (None, Some(difference), Verdict::Different) =
        (comparison.interval, comparison.difference, comparison.verdict)
        && comparison.method.starts_with("exact")
    {
        let sign = if difference > 0.0 { "+" } else { "" };
        let exact = scruple_core::unit::exact(difference, &declared(key).unit);
        return match comparison.effect.is_finite() && comparison.effect != 0.0 {
            true => format!("{} ({sign}{exact})", change(comparison.effect)),
            false => format!("{sign}{exact}"),
        };
    }
    match (comparison.interval, comparison.verdict) {
        (Some(interval), _) => change_between(comparison.effect, interval.low, interval.high),
        (None, Verdict::Same) if comparison.effect == 1.0 => "±0".to_owned(),
        (None, _) if comparison.effect.is_finite() => change(comparison.effect),
        (None, _) => String::new(),
    }
}
