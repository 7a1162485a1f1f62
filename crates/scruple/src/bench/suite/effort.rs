//! How long and how often the cases of a suite are measured.

use crate::new_run::Passes;
use std::time::Duration;

/// With more cases than this, not all of them need to be weighed.
pub(super) const MANY: usize = 200;

/// The number of processes from which on an interval says how far apart processes are, however much they differ. If one
/// of three took ten times as long as the others, any cost is possible.
pub(super) const SOME: u32 = 5;

/// How long and how often to measure.
#[derive(Clone, Debug)]
pub struct SuiteEffort {
    /// The smallest and the largest number of fresh processes.
    pub processes: (u32, u32),
    /// The number of blocks in each process.
    pub blocks: u32,
    /// Whether the user requested this number of processes, so that the budget does not limit it.
    pub exact_processes: bool,
    /// Whether the user requested this number of blocks, so that the budget does not limit it.
    pub exact_blocks: bool,
    /// The measuring time after which no further process is started.
    pub budget: Duration,
    /// The time after the start within which an answer is wanted: as many processes are started as fit into it, but at
    /// least the smallest number, and [`SOME`] where fewer give no figure.
    pub answer_within: Option<Duration>,
    /// The time limit of one batch, and of the program's first answers.
    pub case_limit: Duration,
    /// The passes to run.
    pub passes: Passes,
    /// Whether cases are only listed.
    pub list_only: bool,
    /// Whether the process that lists the cases is the first to be timed. Callers that run other programs in between
    /// keep no process waiting.
    pub lists_in_first: bool,
    /// Whether counts decide a gate, so that every case is counted, often enough, even beyond the budget.
    pub counts_decide: bool,
}

/// The shortest time in which a case can be calibrated and weighed.
const LEAST_TIME: Duration = Duration::from_micros(300);

impl SuiteEffort {
    /// Returns the largest number of cases that the budget may suffice for. Further cases get no arms.
    pub(super) fn most_cases(&self) -> usize {
        match self.exact_processes || self.exact_blocks || self.list_only || self.counts_decide {
            true => usize::MAX,
            false => MANY.max((self.budget.as_nanos() / LEAST_TIME.as_nanos()) as usize),
        }
    }

    /// Whether a first answer is complete after so many processes: another would end too late, at `next`, unless some
    /// figure is still missing, or none is needed.
    pub(super) fn has_answered(
        &self,
        processes: u32,
        next: Duration,
        is_right: impl FnOnce() -> bool,
        is_vague: impl FnOnce() -> bool,
    ) -> bool {
        let Some(within) = self.answer_within.filter(|_| processes >= self.processes.0) else { return false };
        let is_late = next > within && (processes >= SOME || !is_vague());
        is_late || is_right()
    }

    /// Whether every case is counted, however long it takes: where counts decide, or nothing else is measured.
    pub(super) fn counts_without_limit(&self) -> bool {
        self.counts_decide || !self.passes.time()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_answer_takes_as_many_processes_as_fit_into_its_time() {
        let effort = SuiteEffort {
            processes: (3, 8),
            blocks: 12,
            exact_processes: false,
            exact_blocks: false,
            budget: Duration::from_secs(2),
            answer_within: Some(Duration::from_millis(900)),
            case_limit: Duration::from_secs(60),
            passes: Passes::asked(true, false),
            list_only: false,
            lists_in_first: true,
            counts_decide: false,
        };
        let answered = |effort: &SuiteEffort, processes: u32, next: u64, right: bool| {
            effort.has_answered(processes, Duration::from_millis(next), || right, || false)
        };
        let vague = |processes| effort.has_answered(processes, Duration::from_secs(9), || false, || true);
        assert!(!vague(3) && !vague(4) && vague(5), "three processes that disagree give no figure");
        assert!(!answered(&effort, 2, 5000, true), "two processes do not show how much processes differ");
        assert!(answered(&effort, 3, 300, true) && !answered(&effort, 3, 300, false));
        assert!(!answered(&effort, 7, 900, false) && answered(&effort, 7, 901, false));
        let whole = SuiteEffort { answer_within: None, ..effort };
        assert!(!answered(&whole, 8, 5000, true), "other rules end a complete answer");
    }
}
