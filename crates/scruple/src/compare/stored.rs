//! Combines two stored runs into one run in which each arm is next to its counterpart.

use crate::fault::Fault;
use crate::run_report::Report;
use scruple_core::environment::Environments;
use scruple_core::harmless_text::list_names;
use scruple_core::judge::{Nodes, Pair, bench_cases};
use scruple_core::limit::Limit;
use scruple_core::run::{Run, Terms, unlike_readings};
use scruple_core::subject::{Arm, Role};
use scruple_stats::sorting;

/// Two runs, and the arms that they have in common.
pub struct RunPair<'a> {
    left: &'a Run,
    right: &'a Run,
    matched: Vec<(&'a Arm, &'a Arm)>,
    /// The combined run: each arm of the reference, followed by that of the other run, with names that contain those of
    /// the runs.
    pub run: Run,
}

impl<'a> RunPair<'a> {
    /// Combines a reference and another run. `names` are those that the user used for them.
    ///
    /// # Errors
    /// The runs are the same, or have no arm in common.
    pub fn of(names: (&str, &str), left: &'a Run, right: &'a Run) -> Result<RunPair<'a>, Fault> {
        if left.id == right.id {
            return Err(Fault::usage(format!(
                "‘{}’ and ‘{}’ are the same run, {}: name two different ones",
                names.0, names.1, left.id
            )));
        }
        let matched = matched_arms(left, right)?;
        let mut run = merged(left, right, &matched);
        run.terms.margin = left.terms.margin.max(right.terms.margin);
        Ok(RunPair { left, right, matched, run })
    }

    /// Compares the runs, taking the differences between their environments into account.
    pub fn report(&self, metrics: &[String], limits: &[Limit]) -> Report<'_> {
        let pairs: Vec<Pair<'_>> = self
            .run
            .arms
            .chunks(2)
            .zip(&self.matched)
            .map(|(pair, (reference, arm))| {
                let nodes =
                    Nodes { reference: &self.left.provenance.nodes, arm: &self.right.provenance.nodes };
                let tares =
                    bench_cases::tare_of(self.left, reference).zip(bench_cases::tare_of(self.right, arm));
                Pair { reference: &pair[0], arm: &pair[1], paired: false, tares, nodes }
            })
            .collect();
        let environments = Some(Environments::of(self.left, self.right));
        Report::of_pairs(&self.run, &pairs, metrics, limits, environments)
    }
}

/// Returns the corresponding arms of both runs: those with the same name, or the only one of each run.
fn matched_arms<'a>(left: &'a Run, right: &'a Run) -> Result<Vec<(&'a Arm, &'a Arm)>, Fault> {
    let subjects = |run: &'a Run| run.arms_of(Role::Subject).collect::<Vec<_>>();
    let (of_left, of_right) = (subjects(left), subjects(right));
    let by_name: Vec<_> = of_left
        .iter()
        .filter_map(|arm| Some((*arm, *of_right.iter().find(|other| other.name == arm.name)?)))
        .collect();
    match (by_name.is_empty(), of_left.as_slice(), of_right.as_slice()) {
        (false, ..) => Ok(by_name),
        (true, [one], [other]) => Ok(vec![(one, other)]),
        _ => {
            // A history has one arm of a subject for each version.
            let names =
                |arms: &[&Arm]| list_names(sorting::each_once(arms.iter().map(|arm| arm.name.as_str())));
            Err(Fault::usage(format!(
                "the runs {} ({}) and {} ({}) have no arm of the same name: give arms names with -n when measuring",
                left.id,
                names(&of_left),
                right.id,
                names(&of_right)
            )))
        }
    }
}

/// Combines two runs into one, in which each pair of arms is side by side, with names that contain those of the runs.
fn merged(left: &Run, right: &Run, matched: &[(&Arm, &Arm)]) -> Run {
    let tag =
        |run: &Run| run.label.clone().filter(|_| left.label != right.label).unwrap_or_else(|| run.id.clone());
    let of = |arm: &Arm, run: &Run| {
        let mut arm = arm.clone();
        arm.version = Some(tag(run));
        arm.name = format!("{} @{}", arm.name, tag(run));
        arm
    };
    let mut run = right.clone();
    run.arms = matched.iter().flat_map(|(a, b)| [of(a, left), of(b, right)]).collect();
    run.terms = Terms { looks: 1, limits: Vec::new(), ..right.terms.clone() };
    run.warnings.clear();
    run.warn(
        "not-side-by-side",
        "the two runs were not taken side by side: whatever else changed on the machine in between is part of the difference",
    );
    for (one, other) in [(left, right), (right, left)] {
        let is_matched =
            |arm: &Arm| matched.iter().any(|(a, b)| std::ptr::eq(*a, arm) || std::ptr::eq(*b, arm));
        let alone: Vec<&str> =
            one.arms_of(Role::Subject).filter(|arm| !is_matched(arm)).map(|arm| arm.name.as_str()).collect();
        run.warn_of_not_compared(&alone, &tag(one), &tag(other));
    }
    let unlike = unlike_readings(matched.iter().copied());
    run.warn_of_unlike_readings(&unlike, &tag(left), &tag(right));
    run
}
