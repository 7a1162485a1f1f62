//! Which cases are counted in which processes, and which the budget does not suffice for.
//!
//! A process of a compiled program starts in a millisecond, and each case is then counted in processes of its own. A
//! process that takes a second to start, such as that of a test framework, counts all cases instead.

use super::cases::{Cases, Weighed};
use super::effort::SuiteEffort;
use super::own_time::VisitTime;
use crate::progress::in_words;
use scruple_core::evidence::{APART, DIFFER, Evidence};
use scruple_core::judge;
use scruple_core::limit::Limit;
use scruple_core::metric::{Pass, metric};
use scruple_core::run::Run;
use scruple_stats::paired::Why;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The number of processes in which a case is counted by itself. Each of them runs an uncounted iteration first. One
/// process cannot show that counts repeat, because random values that it draws at its start, such as the seed of its
/// hash tables, affect all of its counts.
pub(super) const PROCESSES: u32 = DIFFER as u32;

/// The number of readings of each case in a process that it shares with others, and the number of such processes. A slow
/// case is read once.
const REPEATS: u32 = 3;
const SHARED: u32 = 2;
pub(super) const SLOW: Duration = Duration::from_millis(50);

/// Counting each case by itself may take this many budgets before the rest of the cases share processes.
const TOLERATED: u32 = 2;

/// A process that takes longer to start than this many budgets is not started a second time.
const SECOND_START: u32 = 2;

/// With more cases than this, they share processes, since starting one for each case would take longer than measuring.
const FRESH_CASES: usize = 200;

/// A case is left out if the budget is spent and its own iterations take more than this part of the budget; or if the
/// whole pass has taken this many budgets; or this many, with the time in which it waited for a core. A suite of quick
/// cases is thus counted completely, though other programs disturb it, or the first of them sets up what all of them use.
const COSTLY: u32 = 4;
const AT_MOST: u32 = 5;
const AT_MOST_WITH_WAITS: u32 = 60;

/// Counting that is expected to take less is not announced.
pub(super) const SHORT: Duration = Duration::from_secs(15);

/// A case that is to be counted in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CountingVisit {
    /// The index of the case.
    pub(super) case: usize,
    /// The number of the process, among those that count the case.
    pub(super) process: u32,
    /// Whether the process counts this case only.
    pub(super) alone: bool,
    /// The number of readings in this process.
    pub(super) repeats: u32,
}

/// The visits of a counting pass, and the time that they take.
pub(super) struct CountingPlan {
    visits: Vec<CountingVisit>,
    /// How long each visit is expected to take.
    expected: Vec<Duration>,
    /// What all visits from one on take together.
    from: Vec<Duration>,
    budget: Option<Duration>,
    /// How long a process of each program takes to start.
    starting: Vec<Duration>,
    /// Whether shared processes are started a second time.
    twice: bool,
    /// Whether there are too many cases to count them all, however quick they are.
    many: bool,
    began: Instant,
    /// How long the starts of shared processes took, which the budget does not include.
    started: Duration,
    /// How long Scruple and the programs waited for a core, because other programs ran.
    waited: Duration,
    /// The number of visits so far, and the time that they took beyond what was expected.
    so_far: (u32, Duration),
}

impl CountingPlan {
    /// Plans the visits. `starting` is how long a process of each program takes to start.
    pub(super) fn new(cases: &Cases, effort: &SuiteEffort, starting: &[Duration]) -> CountingPlan {
        let few = cases.len() <= FRESH_CASES && cases.declared.tight_budget.is_none();
        let unlimited = effort.counts_without_limit();
        let start = starting.iter().sum::<Duration>();
        let mut plan = CountingPlan {
            visits: Vec::new(),
            expected: Vec::new(),
            from: Vec::new(),
            starting: starting.to_vec(),
            budget: (!unlimited && cases.declared.tight_budget.is_none()).then_some(effort.budget),
            twice: unlimited || start <= SECOND_START * effort.budget,
            many: cases.len() > FRESH_CASES,
            began: Instant::now(),
            started: Duration::ZERO,
            waited: Duration::ZERO,
            so_far: Default::default(),
        };
        let all: Vec<usize> = (0..cases.len()).collect();
        // Counts of the first iteration of a process include a set-up that several cases share, so such cases are
        // counted by themselves.
        let (single, others): (Vec<usize>, Vec<usize>) = match few {
            true => all.iter().partition(|case| is_single(&cases.weighed[**case])),
            false => (Vec::new(), all.clone()),
        };
        if few {
            plan.lay_out(&all, &[], cases);
        }
        let whole = plan.from.first().copied().unwrap_or_default();
        if !few || (!unlimited && whole > effort.budget) {
            plan.lay_out(&single, &others, cases);
        }
        plan
    }

    /// Plans that these cases are counted by themselves, and then these others in shared processes.
    fn lay_out(&mut self, alone: &[usize], shared: &[usize], cases: &Cases) {
        let by_itself = |case: &usize| {
            let case = *case;
            (0..PROCESSES).map(move |process| CountingVisit { case, process, alone: true, repeats: 1 })
        };
        self.visits = alone.iter().flat_map(by_itself).collect();
        for process in 0..if self.twice { SHARED } else { 1 } {
            let visit = |case: &usize| {
                let repeats = if iteration_of(&cases.weighed[*case]) > SLOW { 1 } else { REPEATS };
                CountingVisit { case: *case, process, alone: false, repeats }
            };
            // Something that one case leaves behind may change the counts of another case. The opposite order then
            // shows that.
            match process % 2 {
                0 => self.visits.extend(shared.iter().map(visit)),
                _ => self.visits.extend(shared.iter().rev().map(visit)),
            }
        }
        self.expect(cases);
    }

    /// Plans one more process for each case whose counts in two programs vary and do not overlap, so that one more
    /// reading of each decides. Returns whether there are any.
    pub(super) fn once_more(&mut self, run: &Run, cases: &Cases) -> bool {
        let lacks_one = |evidence: &Evidence| match evidence {
            Evidence::Absent { why: Why::TooFew { have, need: APART }, .. } => have + 1 == APART,
            _ => false,
        };
        let judged = judge::compare_pairs(&judge::pairs(run), &run.terms);
        let nearly = judged.iter().filter(|one| lacks_one(&one.comparison.evidence));
        let names: BTreeSet<&str> = nearly.flat_map(|one| [one.reference.as_str(), &one.arm]).collect();
        let name = |case: &usize| run.arms[cases.weighed[*case].arm].name.as_str();
        let of: Vec<usize> = (0..cases.len()).filter(|case| names.contains(name(case))).collect();
        if of.is_empty() || self.counts_once() {
            return false;
        }
        let visit = |case: &usize| CountingVisit { case: *case, process: PROCESSES, alone: true, repeats: 1 };
        self.visits.extend(of.iter().map(visit));
        self.expect(cases);
        true
    }

    /// Estimates how long the visits take.
    fn expect(&mut self, cases: &Cases) {
        let expected = self.visits.iter().map(|visit| {
            let weighed = &cases.weighed[visit.case];
            let start = self.starting.get(weighed.side).filter(|_| visit.alone);
            work_of(weighed, *visit) + start.copied().unwrap_or_default()
        });
        self.expected = expected.collect();
        self.from.clone_from(&self.expected);
        for at in (1..self.from.len()).rev() {
            let after = self.from[at];
            self.from[at - 1] += after;
        }
    }

    /// Lets the cases from this visit on share processes, if the visits so far show that the budget does not suffice
    /// for counting each by itself. Returns whether the plan has changed; its visits then begin anew.
    pub(super) fn share_from(&mut self, at: usize, cases: &Cases) -> bool {
        let Some(budget) = self.budget else { return false };
        let rest = &self.visits[at..];
        let can = |visit: &CountingVisit| visit.alone && !is_single(&cases.weighed[visit.case]);
        if rest[0].process > 0 || !can(&rest[0]) || self.elapsed() + self.left(at) <= TOLERATED * budget {
            return false;
        }
        let firsts = || rest.iter().filter(|visit| visit.process == 0);
        let shared: Vec<usize> = firsts().filter(|visit| can(visit)).map(|visit| visit.case).collect();
        let alone: Vec<usize> = firsts().filter(|visit| !can(visit)).map(|visit| visit.case).collect();
        self.lay_out(&alone, &shared, cases);
        self.so_far = Default::default();
        true
    }

    pub(super) fn len(&self) -> usize {
        self.visits.len()
    }

    /// Whether there are cases that are counted in one process only.
    pub(super) fn counts_once(&self) -> bool {
        !self.twice && self.visits.last().is_some_and(|last| !last.alone)
    }

    pub(super) fn visit(&self, at: usize) -> CountingVisit {
        self.visits[at]
    }

    /// Notes how long a shared process took to start.
    pub(super) fn started(&mut self, time: Duration) {
        self.started += time;
    }

    /// The part of the budget that has been spent, without the time in which other programs ran.
    fn elapsed(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.started + self.waited)
    }

    /// Notes how long a visit took, without the start of a shared process.
    pub(super) fn took(&mut self, at: usize, time: VisitTime) {
        self.so_far.0 += 1;
        self.so_far.1 += time.own().saturating_sub(self.expected[at]);
        self.waited += time.waited;
    }

    /// The expected time of the visits from this one on, at most what is left of the budget, if it is worth telling.
    pub(super) fn announcement(&self, from: usize) -> Option<Duration> {
        let more = self.visits[from..].last().is_some_and(|last| !last.alone && last.process > 0);
        let start =
            if more && self.visits[from].process == 0 { self.starting.iter().sum() } else { Duration::ZERO };
        let rest = self.left(from) + start;
        let left = self.budget.map(|budget| (AT_MOST * budget).saturating_sub(self.elapsed()));
        Some(rest.min(left.unwrap_or(rest))).filter(|rest| *rest > SHORT)
    }

    /// How long the visits from this one on are expected to take, without starts of shared processes.
    fn left(&self, from: usize) -> Duration {
        self.from[from] + self.overhead() * (self.len() - from) as u32
    }

    /// How long the iterations of a visit, and the start of its process, are expected to take, if the budget does not
    /// suffice for them. The first visit is always made. The additional time of other visits says nothing about this
    /// one: the first visit of a process may have set up something that all of them use.
    pub(super) fn too_long(&self, at: usize) -> Option<Duration> {
        let (budget, elapsed) = (self.budget?, self.elapsed());
        let expected = self.expected[at];
        let costly = self.many || expected > budget / COSTLY;
        let ends = (costly && elapsed + expected > budget)
            || elapsed > AT_MOST * budget
            || self.began.elapsed() > AT_MOST_WITH_WAITS * budget;
        (at > 0 && ends).then_some(expected)
    }

    /// The mean time that a visit takes beyond the iterations and the start: the set-up of its case.
    fn overhead(&self) -> Duration {
        self.so_far.1 / self.so_far.0.max(1)
    }
}

/// Says how long a pass that counts will take, and where no budget ends it.
pub(super) fn announced(what: &str, time: Duration, unlimited: bool) -> String {
    let unlimited = if unlimited { ": every case is counted, however short --budget is" } else { "" };
    format!("counting {what} will take about {}{unlimited}", in_words(time))
}

/// How long the iterations of a case take in a process that counts it: one that does not count, those that do, and in the
/// first process a batch.
fn work_of(weighed: &Weighed, visit: CountingVisit) -> Duration {
    let batch = weighed.iterations > 1 && visit.process == 0;
    iteration_of(weighed) * (1 + visit.repeats) + if batch { weighed.batch_time } else { Duration::ZERO }
}

/// Whether a case is counted by itself however long a start takes.
fn is_single(weighed: &Weighed) -> bool {
    weighed.case.fresh || weighed.case.first
}

/// The time of one iteration, as far as it is known.
pub(super) fn iteration_of(weighed: &Weighed) -> Duration {
    weighed.batch_time.div_f64(weighed.iterations.max(1) as f64)
}

/// Whether a limit depends on what is counted for an arm of this name, which must then be counted.
pub(super) fn decides(limits: &[Limit], arm: &str) -> bool {
    let counted = |limit: &Limit| metric(&limit.metric).is_none_or(|metric| metric.pass == Pass::Counting);
    limits.iter().any(|limit| limit.applies_to(arm) && counted(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan of two quick visits. The first took `elapsed`, and waited `waited` of that for a core.
    fn after_one(elapsed: u64, waited: u64) -> CountingPlan {
        let visit = CountingVisit { case: 0, process: 0, alone: true, repeats: 1 };
        let [elapsed, waited] = [elapsed, waited].map(Duration::from_secs);
        let mut plan = CountingPlan {
            visits: vec![visit; 2],
            expected: vec![Duration::from_millis(1); 2],
            from: vec![Duration::from_millis(2), Duration::from_millis(1)],
            budget: Some(Duration::from_secs(2)),
            starting: vec![Duration::from_millis(1)],
            twice: true,
            many: false,
            began: Instant::now() - elapsed,
            started: Duration::ZERO,
            waited: Duration::ZERO,
            so_far: Default::default(),
        };
        plan.took(0, VisitTime { elapsed, waited });
        plan
    }

    #[test]
    fn who_gives_a_short_budget_hears_that_counts_which_decide_do_not_keep_it() {
        let time = Duration::from_secs(150);
        let all = announced("instructions", time, true);
        assert!(all.ends_with(": every case is counted, however short --budget is"), "{all}");
        assert!(!announced("instructions", time, false).contains("--budget"));
    }

    #[test]
    fn waiting_for_a_core_spends_nothing_of_the_budget() {
        assert_eq!(after_one(50, 45).too_long(1), None);
        assert_eq!(after_one(50, 0).too_long(1), Some(Duration::from_millis(1)));
        assert_eq!(after_one(50, 45).overhead(), Duration::from_millis(4999));
        // However busy the machine is, the pass ends.
        assert_eq!(after_one(200, 199).too_long(1), Some(Duration::from_millis(1)));
    }
}
