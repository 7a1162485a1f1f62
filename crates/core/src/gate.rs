//! Gates: which comparisons of a run decide, and the outcome.
//!
//! By default counts that repeat decide, and times only inform: on a shared machine counts repeat, and times do not. A
//! gate is never more certain than the verdicts that it rests on: where a comparison can't tell, neither can the gate.

use crate::history::Acceptance;
use crate::judge::limits::{Checked, Kept};
use crate::judge::{self, Judged, Pair, declaration};
use crate::limit::Limit;
use crate::metric::{Better, DEFAULT_METRICS, Metric, Pass, Quality, key_matches, metric};
use crate::run::Run;
use crate::sample::Sample;
use crate::subject::{Arm, Role};
use crate::unit::Unit;
use crate::verdict::{Comparison, Direction, Verdict};
use crate::words::words;
use scruple_stats::sorting::{self, SortedMap};

/// The settings of a gate.
#[derive(Clone, Debug, Default)]
pub struct GateRules {
    /// The keys and families of the metrics that decide. If empty, counted metrics that repeat decide.
    pub metrics: Vec<String>,
    /// The changes that are declared as intended.
    pub accepted: Vec<Acceptance>,
}

words! {
    /// The outcome of one comparison.
    pub enum GateOutcome {
        /// The verdict is different, and the arm is worse.
        Regression = "regression",
        /// The verdict is different, the arm is worse, and the change was accepted as intended.
        Accepted = "accepted",
        /// The arm may be worse.
        CantTell = "can't tell",
        /// The verdict is different, and the arm is better.
        Improvement = "improvement",
        /// The arm is not worse, or not by more than the margin.
        Same = "same",
    }
}

/// One metric of one arm, as a gate judges it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The name of the subject, without its version.
    pub subject: String,
    /// The name of the reference.
    pub reference: String,
    /// The name of the arm.
    pub arm: String,
    /// The key of the metric.
    pub metric: String,
    /// The comparison; absent where the metric could not be read of one of the two arms.
    pub comparison: Option<Comparison>,
    /// Whether the finding decides the gate; else it only informs.
    pub gates: bool,
    /// The smallest and the largest reading of the reference, if their difference prevents a count from deciding.
    pub varies: Option<[f64; 2]>,
    /// The outcome of the comparison.
    pub outcome: GateOutcome,
    /// Why a change is accepted, or why the outcome is unknown.
    pub why: Option<String>,
}

/// Metrics whose differences count only beyond the margin: instructions change a little with every change of a program,
/// even in its start-up.
const WITH_MARGIN: [&str; 2] = ["instructions", "request.instructions"];

/// What a case declares about itself: the work of an iteration, which is no cost.
const DECLARED: [&str; 2] = ["work.bytes", "work.items"];

/// What a program gives back is no cost: a leak is not less of it, and what mends one is not more. It decides only where
/// the rules name its key.
const GIVEN_BACK: [&str; 2] = ["malloc.frees", "malloc.freed"];

/// Readings of the reference count as repeating if they differ by at most this share of the margin.
const REPEATS: f64 = 0.1;

/// The findings on every metric of every compared pair of arms: the worst outcome first, else in the order of the run.
pub fn findings(run: &Run, judged: &[Judged], rules: &GateRules) -> Vec<Finding> {
    let mut found: Vec<Finding> = judged.iter().filter_map(|one| finding(run, one, rules)).collect();
    found.extend(lost(run, rules));
    let arms: Vec<&str> = run.arms.iter().map(|arm| arm.name.as_str()).collect();
    let place = |one: &Finding| arms.iter().position(|name| *name == one.arm).unwrap_or(usize::MAX);
    sorting::by_key(&mut found, |one| (one.outcome, !one.gates, place(one)));
    found
}

/// The keys and families in the rules that match no metric of the findings, so that they decide nothing.
pub fn without_findings<'a>(rules: &'a GateRules, findings: &[Finding]) -> Vec<&'a str> {
    let is_found = |pattern: &str| findings.iter().any(|one| key_matches(&one.metric, pattern));
    rules.metrics.iter().map(String::as_str).filter(|pattern| !is_found(pattern)).collect()
}

fn finding(run: &Run, judged: &Judged, rules: &GateRules) -> Option<Finding> {
    let arm = subject(run, &judged.arm)?;
    let sample = subject(run, &judged.reference)?.sample(&judged.metric)?;
    let metric = declaration(&judged.metric, arm.sample(&judged.metric)?);
    let name = without_version(arm).to_owned();
    let decided = outcome(&judged.comparison, &metric);
    let weight = weight(&metric, sample, run.terms.margin, rules);
    let accepted = (decided == GateOutcome::Regression).then(|| accepted(rules, &name, &metric)).flatten();
    Some(Finding {
        subject: name,
        reference: judged.reference.clone(),
        arm: judged.arm.clone(),
        metric: judged.metric.clone(),
        comparison: Some(judged.comparison.clone()),
        gates: weight.gates,
        varies: weight.varies,
        outcome: if accepted.is_some() { GateOutcome::Accepted } else { decided },
        why: accepted.or(judged.comparison.evidence.why().map(|why| why.to_string())),
    })
}

/// The findings on deciding metrics that the reference has and the arm lacks: their outcome is can't tell. An arm that
/// was skipped lacks all of them, so that nothing was judged of it.
fn lost(run: &Run, rules: &GateRules) -> Vec<Finding> {
    let mut found = Vec::new();
    for Pair { reference, arm, .. } in judge::pairs(run) {
        if arm.role != Role::Subject {
            continue;
        }
        for key in reference.figures.keys() {
            let Some(sample) = reference.sample(key).filter(|_| arm.sample(key).is_none()) else { continue };
            let weight = weight(&declaration(key, sample), sample, run.terms.margin, rules);
            if !weight.gates {
                continue;
            }
            found.push(Finding {
                subject: without_version(arm).to_owned(),
                reference: reference.name.clone(),
                arm: arm.name.clone(),
                metric: key.clone(),
                comparison: None,
                gates: true,
                varies: None,
                outcome: GateOutcome::CantTell,
                why: Some(
                    arm.absent(key)
                        .map(str::to_owned)
                        .or_else(|| arm.ended())
                        .unwrap_or_else(|| "it could be read at the reference, but not here".to_owned()),
                ),
            });
        }
    }
    found
}

/// The subjects whose reference was skipped or has failed, so that nothing compares them, with the version and the
/// reason.
pub fn without_reference(run: &Run) -> Vec<(&str, &str, String)> {
    let references = judge::pairs(run).into_iter().map(|pair| pair.reference);
    references.filter_map(|arm| Some((without_version(arm), arm.version.as_deref()?, arm.ended()?))).collect()
}

/// The subject with this name.
fn subject<'a>(run: &'a Run, name: &str) -> Option<&'a Arm> {
    run.arms.iter().find(|arm| arm.name == name && arm.role == Role::Subject)
}

/// The name of an arm without its version.
pub fn without_version(arm: &Arm) -> &str {
    let Some(version) = &arm.version else { return &arm.name };
    // The name of a revision may have a label instead of the version, and a label may contain the separator.
    let whole = arm.name.strip_suffix(version.as_str()).and_then(|name| name.strip_suffix(" @"));
    whole.or_else(|| Some(arm.name.rsplit_once(" @")?.0)).unwrap_or(&arm.name)
}

/// The subjects that only one of several versions has, by version: nothing compares them.
pub fn without_counterpart(run: &Run) -> SortedMap<&str, Vec<&str>> {
    let named = run.arms_of(Role::Subject).filter_map(|arm| {
        let version = arm.version.as_deref()?;
        let name = without_version(arm);
        (name != arm.name).then_some((version, name))
    });
    let named: Vec<(&str, &str)> = named.collect();
    let mut found: SortedMap<&str, Vec<&str>> = SortedMap::new();
    for (version, name) in &named {
        let mut others = named.iter().filter(|(other, _)| other != version).peekable();
        if others.peek().is_some() && !others.any(|(_, other)| other == name) {
            found.entry(*version).or_default().push(*name);
        }
    }
    found
}

/// Whether a metric decides, and if not although it would, what prevents it.
struct Weight {
    gates: bool,
    varies: Option<[f64; 2]>,
}

/// A metric decides because the rules name it, or because it is counted, is shown in tables, and repeated at the
/// reference in this run.
fn weight(metric: &Metric, reference: &Sample, margin: f64, rules: &GateRules) -> Weight {
    if !rules.metrics.is_empty() {
        let given_back = GIVEN_BACK.contains(&metric.key.as_ref());
        let named = |pattern: &String| metric.matches(pattern) && (!given_back || *pattern == metric.key);
        return Weight { gates: rules.metrics.iter().any(named), varies: None };
    }
    let counted =
        metric.pass == Pass::Counting && metric.quality <= Quality::Near && metric.unit != Unit::Nanoseconds;
    let shown = DEFAULT_METRICS.contains(&metric.key.as_ref()) || metric.key == "instructions";
    let own = self::metric(&metric.key).is_none()
        && !DECLARED.contains(&metric.key.as_ref())
        && !metric.key.ends_with(crate::judge::RESOLUTION);
    let would = counted && (shown || own);
    let low = reference.readings.iter().copied().fold(f64::INFINITY, f64::min);
    let high = reference.readings.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let repeats = high - low <= low.abs() * margin * REPEATS;
    Weight { gates: would && repeats, varies: (would && !repeats).then_some([low, high]) }
}

fn outcome(comparison: &Comparison, metric: &Metric) -> GateOutcome {
    let bounds = comparison.evidence.ratio_bounds();
    let limit = 1.0 + comparison.margin;
    let not_more = bounds.is_ok_and(|(_, high)| high <= limit);
    let not_less = bounds.is_ok_and(|(low, _)| low >= 1.0 / limit);
    let not_worse = if metric.better == Better::Lower { not_more } else { not_less };
    let within = not_more && not_less && WITH_MARGIN.contains(&metric.key.as_ref());
    match (comparison.verdict, comparison.direction) {
        (Verdict::Same, _) => GateOutcome::Same,
        (Verdict::Different, _) if within => GateOutcome::Same,
        (Verdict::Different, Some(Direction::Worse)) => GateOutcome::Regression,
        (Verdict::Different, _) => GateOutcome::Improvement,
        // Better by an unknown amount, or not worse by more than the margin: the gate passes.
        (Verdict::Small, Some(Direction::Better)) => GateOutcome::Same,
        _ if not_worse => GateOutcome::Same,
        _ => GateOutcome::CantTell,
    }
}

/// The reason that the rules give for accepting a change of this metric of this subject; `None` where they give none.
pub fn accepted(rules: &GateRules, subject: &str, metric: &Metric) -> Option<String> {
    let about = |one: &&Acceptance| {
        one.subject.as_deref().is_none_or(|name| name == subject)
            && one.metric.as_deref().is_none_or(|pattern| metric.matches(pattern))
    };
    rules.accepted.iter().find(about).map(|one| one.reason.clone())
}

/// The outcome of a limit, with the reason if it was accepted. An accepted change also accepts limits relative to the
/// reference; an absolute limit holds for every change.
pub fn of_limit(run: &Run, checked: &Checked, limits: &[Limit], rules: &GateRules) -> (Kept, Option<String>) {
    let limit = limits.iter().find(|limit| limit.text == checked.limit);
    let relative = limit.filter(|limit| limit.bound.is_relative() && checked.kept == Kept::No);
    let reason = relative.and_then(|limit| {
        accepted(rules, without_version(subject(run, &checked.arm)?), metric(&limit.metric)?)
    });
    (if reason.is_some() { Kept::Yes } else { checked.kept }, reason)
}

/// The outcome of all findings and limits together. A regression takes precedence over can't tell; where nothing
/// decides, the outcome is can't tell.
pub fn overall_outcome(findings: &[Finding], limits: &[Kept]) -> Kept {
    let deciding = || findings.iter().filter(|one| one.gates).map(|one| one.outcome);
    if limits.contains(&Kept::No) || deciding().any(|outcome| outcome == GateOutcome::Regression) {
        return Kept::No;
    }
    let doubt =
        limits.contains(&Kept::CantTell) || deciding().any(|outcome| outcome == GateOutcome::CantTell);
    let nothing = limits.is_empty() && deciding().next().is_none();
    if doubt || nothing { Kept::CantTell } else { Kept::Yes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{compare_pairs, pairs};
    use crate::sample::{Figure, Reading};
    use crate::subject::Subject;

    fn arm(version: &str, readings: &[(&str, &[f64])]) -> Arm {
        let mut arm = Arm::new(
            format!("app @{version}"),
            Subject::Command { argv: vec!["app".to_owned()] },
            Role::Subject,
        );
        arm.version = Some(version.to_owned());
        for (key, values) in readings {
            let own = Metric::custom(key, Unit::Count, Quality::Exact, Pass::Counting);
            let metric = metric(key).unwrap_or(&own);
            let mut figure = None;
            for (block, value) in values.iter().enumerate() {
                Figure::add(&mut figure, Reading::of(metric, *value, "a test"), metric.pass, block as u32);
            }
            arm.figures.extend(figure.map(|figure| ((*key).to_owned(), figure)));
        }
        arm
    }

    fn run(old: &[(&str, &[f64])], new: &[(&str, &[f64])]) -> Run {
        Run::of(vec![arm("old", old), arm("new", new)])
    }

    fn outcomes_of_run(run: &Run, rules: &GateRules) -> (Kept, Vec<(String, bool, GateOutcome)>) {
        let found = findings(run, &compare_pairs(&pairs(run), &run.terms), rules);
        let all = found.iter().map(|one| (one.metric.clone(), one.gates, one.outcome)).collect();
        (overall_outcome(&found, &[]), all)
    }

    #[test]
    fn one_byte_more_is_a_regression_and_slower_times_only_inform() {
        let slow: Vec<f64> = (0..20).map(|i| 2e6 + f64::from(i)).collect();
        let fast: Vec<f64> = slow.iter().map(|time| time / 2.0).collect();
        let run = run(
            &[("malloc.bytes", &[4096.0; 3]), ("time.cpu", &fast)],
            &[("malloc.bytes", &[4097.0; 3]), ("time.cpu", &slow)],
        );
        let (kept, found) = outcomes_of_run(&run, &GateRules::default());
        assert_eq!(kept, Kept::No);
        assert_eq!(found[0], ("malloc.bytes".to_owned(), true, GateOutcome::Regression));
        assert_eq!(found[1], ("time.cpu".to_owned(), false, GateOutcome::Regression));
        let of_time = GateRules { metrics: vec!["malloc.count".to_owned()], ..GateRules::default() };
        assert_eq!(outcomes_of_run(&run, &of_time).0, Kept::CantTell, "nothing decides");
    }

    #[test]
    fn instructions_decide_beyond_the_margin() {
        let few = run(&[("instructions", &[1000.0; 3])], &[("instructions", &[1010.0; 3])]);
        assert_eq!(outcomes_of_run(&few, &GateRules::default()).0, Kept::Yes);
        let many = run(&[("instructions", &[1000.0; 3])], &[("instructions", &[1030.0; 3])]);
        assert_eq!(outcomes_of_run(&many, &GateRules::default()).0, Kept::No);
        for (less, outcome) in [(990.0, GateOutcome::Same), (970.0, GateOutcome::Improvement)] {
            let run = run(&[("instructions", &[1000.0; 3])], &[("instructions", &[less; 3])]);
            assert_eq!(outcomes_of_run(&run, &GateRules::default()).1[0].2, outcome);
        }
    }

    #[test]
    fn giving_less_or_more_back_decides_only_by_its_own_key() {
        let leaks =
            [("malloc.bytes", &[64.0; 3][..]), ("malloc.frees", &[0.0; 3]), ("malloc.freed", &[0.0; 3])];
        let mended =
            [("malloc.bytes", &[64.0; 3][..]), ("malloc.frees", &[1.0; 3]), ("malloc.freed", &[72.0; 3])];
        let of = |metrics: &[&str]| {
            let metrics = metrics.iter().map(|&key| key.to_owned()).collect();
            outcomes_of_run(&run(&leaks, &mended), &GateRules { metrics, ..GateRules::default() }).0
        };
        assert_eq!((of(&[]), of(&["malloc"]), of(&["malloc.freed"])), (Kept::Yes, Kept::Yes, Kept::No));
    }

    #[test]
    fn counts_that_vary_at_the_reference_decide_only_if_they_are_named() {
        let vary = run(&[("malloc.bytes", &[4096.0, 5000.0, 4800.0])], &[("malloc.bytes", &[9000.0; 3])]);
        assert!(outcomes_of_run(&vary, &GateRules::default()).1.iter().all(|(_, gates, _)| !gates));
        let found = findings(&vary, &compare_pairs(&pairs(&vary), &vary.terms), &GateRules::default());
        assert_eq!(found[0].varies, Some([4096.0, 5000.0]));
        let named = GateRules { metrics: vec!["malloc".to_owned()], ..GateRules::default() };
        assert!(outcomes_of_run(&vary, &named).1.iter().all(|(_, gates, _)| *gates));
    }

    #[test]
    fn an_accepted_change_is_reported_and_passes() {
        let run = run(&[("malloc.bytes", &[4096.0; 3])], &[("malloc.bytes", &[5000.0; 3])]);
        let accept = |subject: Option<&str>, metric: &str| GateRules {
            accepted: vec![Acceptance {
                subject: subject.map(str::to_owned),
                metric: Some(metric.to_owned()),
                reason: "a cache".to_owned(),
            }],
            ..GateRules::default()
        };
        assert_eq!(outcomes_of_run(&run, &accept(Some("app"), "malloc")).0, Kept::Yes);
        assert_eq!(outcomes_of_run(&run, &accept(None, "malloc.bytes")).1[0].2, GateOutcome::Accepted);
        assert_eq!(outcomes_of_run(&run, &accept(Some("other"), "malloc.bytes")).0, Kept::No);
        assert_eq!(outcomes_of_run(&run, &accept(None, "malloc.count")).0, Kept::No);
    }

    #[test]
    fn a_missing_count_is_undecided() {
        let run = run(
            &[("malloc.bytes", &[4096.0; 3]), ("malloc.count", &[1.0; 3])],
            &[("malloc.count", &[1.0; 3])],
        );
        let (kept, found) = outcomes_of_run(&run, &GateRules::default());
        assert_eq!(kept, Kept::CantTell);
        assert_eq!(found[0], ("malloc.bytes".to_owned(), true, GateOutcome::CantTell));
    }

    /// A run of two versions with 40 blocks. The readings of each lie evenly between the ends of its range, in another order
    /// than that of the blocks.
    fn run_of_own_metric(declared: &Metric, ranges: [[f64; 2]; 2]) -> Run {
        let mut run = run(&[], &[]);
        for (arm, [low, high]) in run.arms.iter_mut().zip(ranges) {
            let mut figure = None;
            for block in 0..40 {
                let value = 1e6 * (low + (high - low) * f64::from(block * 7 % 40) / 39.0);
                Figure::add(&mut figure, Reading::of(declared, value, "a test"), declared.pass, block);
            }
            arm.figures.extend(figure.map(|figure| (declared.key.to_string(), figure)));
        }
        run
    }

    /// The margin of a command is 2 %.
    #[test]
    fn what_may_be_worse_by_more_than_the_margin_cannot_pass_whichever_direction_is_worse() {
        let (lower, higher) = (Unit::Nanoseconds, Unit::Other("items/s".into()));
        let named = GateRules { metrics: vec!["own".to_owned()], ..GateRules::default() };
        for (unit, range, expected) in [
            (&lower, [1.00, 1.04], GateOutcome::CantTell),
            (&lower, [0.96, 1.00], GateOutcome::Same),
            (&lower, [1.00, 1.01], GateOutcome::Same),
            (&lower, [1.04, 1.07], GateOutcome::Regression),
            (&higher, [0.96, 1.00], GateOutcome::CantTell),
            (&higher, [1.00, 1.04], GateOutcome::Same),
            (&higher, [0.99, 1.00], GateOutcome::Same),
            (&higher, [0.93, 0.96], GateOutcome::Regression),
        ] {
            let metric = Metric::custom("own", unit.clone(), Quality::Noisy, Pass::Timing);
            let run = run_of_own_metric(&metric, [[1.0; 2], range]);
            let (_, found) = outcomes_of_run(&run, &named);
            assert_eq!(found, [("own".to_owned(), true, expected)], "{unit:?} {range:?}");
        }
    }

    #[test]
    fn only_counts_that_hardly_vary_decide_without_being_named() {
        let gates = |quality, pass, unit: Unit, range: [f64; 2]| {
            let run = run_of_own_metric(&Metric::custom("own", unit, quality, pass), [range, [1.0; 2]]);
            outcomes_of_run(&run, &GateRules::default()).1.iter().any(|(_, gates, _)| *gates)
        };
        assert!(gates(Quality::Near, Pass::Counting, Unit::Count, [0.9985, 1.0]), "less than 0.2 %");
        assert!(!gates(Quality::Near, Pass::Counting, Unit::Count, [0.99, 1.0]), "half of the margin");
        assert!(!gates(Quality::Noisy, Pass::Counting, Unit::Count, [1.0, 1.0]));
        assert!(!gates(Quality::Exact, Pass::Timing, Unit::Count, [1.0, 1.0]));
        assert!(!gates(Quality::Exact, Pass::Counting, Unit::Nanoseconds, [1.0, 1.0]));
    }

    #[test]
    fn the_work_that_a_case_declares_is_no_cost_and_never_decides() {
        let arm = [("malloc.bytes", &[8.0; 3][..]), ("work.bytes", &[460.0]), ("work.items", &[2.0; 3])];
        let run = run(&arm, &arm);
        let (kept, found) = outcomes_of_run(&run, &GateRules::default());
        let deciding: Vec<&str> =
            found.iter().filter(|(_, gates, _)| *gates).map(|(key, _, _)| key.as_str()).collect();
        assert_eq!((kept, deciding), (Kept::Yes, vec!["malloc.bytes"]));
    }

    #[test]
    fn an_accepted_change_lifts_limits_against_the_reference_and_no_others() {
        let run = run(&[("malloc.bytes", &[4096.0; 3])], &[("malloc.bytes", &[5000.0; 3])]);
        let rules = GateRules {
            accepted: vec![Acceptance { subject: None, metric: None, reason: "a cache".to_owned() }],
            ..GateRules::default()
        };
        let kept = |text: &str, kept: Kept| {
            let limit = Limit::parse(text).expect("a limit");
            let checked =
                Checked { limit: limit.text.clone(), arm: "app @new".to_owned(), kept, found: String::new() };
            of_limit(&run, &checked, &[limit], &rules).0
        };
        assert_eq!(kept("malloc.bytes<+3%", Kept::No), Kept::Yes);
        assert_eq!(kept("malloc.bytes<+3%", Kept::CantTell), Kept::CantTell);
        assert_eq!(kept("malloc.bytes<4.5kB", Kept::No), Kept::No);
    }

    #[test]
    fn a_gate_without_anything_that_decides_does_not_pass_and_a_regression_outweighs_doubt() {
        assert_eq!(overall_outcome(&[], &[]), Kept::CantTell);
        assert_eq!(overall_outcome(&[], &[Kept::Yes]), Kept::Yes);
        assert_eq!(overall_outcome(&[], &[Kept::CantTell, Kept::No]), Kept::No);
        let doubt_and_regression = run(
            &[("malloc.bytes", &[4096.0; 3]), ("malloc.count", &[1.0; 3])],
            &[("malloc.count", &[2.0; 3])],
        );
        assert_eq!(outcomes_of_run(&doubt_and_regression, &GateRules::default()).0, Kept::No);
    }
}
