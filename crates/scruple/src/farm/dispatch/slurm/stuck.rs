//! Finds jobs that Slurm delays longer than necessary. If one of its daemons dies while a job is launched or ends,
//! Slurm notices minutes later that the job was never launched or has ended.

use super::super::WorkOrder;
use super::{ENDING, GRACE, QueuedJob, ask};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::process::Command;
use std::time::{Duration, Instant};

/// A job that has been in the state running for this long, without a sign that its script has begun, was never
/// launched. A shared file system may show the sign late, so that a job is requeued at most once.
const LAUNCH: Duration = Duration::from_secs(20);

/// The problem of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum JobProblem {
    /// Slurm will send the job again by itself, but only after minutes.
    Delayed,
    /// Slurm could not launch the job, for example on a node whose daemon has just died, and may have drained the node.
    Held,
    /// The job is in the state running, but its script has not begun.
    NotLaunched,
    /// The job is in the state running, but its unit has a result or its script has ended.
    Ended,
    /// The job waits for jobs whose units have results.
    Waiting,
    /// The nodes on which the job may run are down or drained.
    NoNode,
}

/// What the script of a job has noted in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScriptProgress {
    Unseen,
    Begun,
    Ended,
}

/// Which problems were seen.
#[derive(Default)]
pub struct StuckJobs {
    since: HashMap<(String, JobProblem), Instant>,
    helped: HashSet<(String, JobProblem)>,
}

impl StuckJobs {
    /// Asks Slurm to continue with the jobs that are stuck. Returns what the user should know.
    pub fn help(
        &mut self,
        order: &WorkOrder<'_>,
        done: &BTreeSet<String>,
        queue: &HashMap<String, Vec<QueuedJob>>,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut earlier_done = true;
        for stage in order.stages {
            for name in stage {
                for job in queue.get(name).into_iter().flatten() {
                    let script = || match &job.number {
                        number if order.folder.has_ended(number) => ScriptProgress::Ended,
                        number if order.folder.has_begun(number) => ScriptProgress::Begun,
                        _ => ScriptProgress::Unseen,
                    };
                    wrong.extend(
                        problem_of(job, done.contains(name), earlier_done, script)
                            .map(|problem| (job, problem)),
                    );
                }
            }
            earlier_done &= stage.iter().all(|name| done.contains(name));
        }
        self.since
            .retain(|(id, problem), _| wrong.iter().any(|(job, other)| job.id == *id && other == problem));
        let now = Instant::now();
        let mut messages = Vec::new();
        for (job, problem) in wrong {
            let key = (job.id.clone(), problem);
            let since = *self.since.entry(key.clone()).or_insert(now);
            let patience = match problem {
                JobProblem::Delayed | JobProblem::Held => Duration::ZERO,
                JobProblem::NotLaunched | JobProblem::NoNode => LAUNCH,
                JobProblem::Waiting => ENDING,
                // Slurm also cancels the jobs that wait for this one. By this time none of them waits for it any more,
                // and its node is needed.
                JobProblem::Ended => ENDING + GRACE,
            };
            if now - since < patience || (problem != JobProblem::Delayed && !self.helped.insert(key)) {
                continue;
            }
            messages.extend(help(job, problem));
        }
        messages
    }
}

fn problem_of(
    job: &QueuedJob,
    has_result: bool,
    earlier_done: bool,
    script: impl FnOnce() -> ScriptProgress,
) -> Option<JobProblem> {
    match (job.state.as_str(), job.reason.as_str()) {
        (_, "BeginTime") => Some(JobProblem::Delayed),
        (_, reason) if reason.starts_with("JobHeld") || reason.contains("held") => Some(JobProblem::Held),
        ("RUNNING", _) if has_result => Some(JobProblem::Ended),
        ("RUNNING", _) => match script() {
            ScriptProgress::Unseen => Some(JobProblem::NotLaunched),
            ScriptProgress::Begun => None,
            ScriptProgress::Ended => Some(JobProblem::Ended),
        },
        ("PENDING", "Dependency") if earlier_done => Some(JobProblem::Waiting),
        ("PENDING", reason) if reason.starts_with("ReqNodeNotAvail") => Some(JobProblem::NoNode),
        _ => None,
    }
}

fn help(job: &QueuedJob, problem: JobProblem) -> Option<String> {
    let id = format!("JobId={}", job.id);
    let words = match problem {
        JobProblem::Delayed => vec!["scontrol", "update", &id, "StartTime=now"],
        JobProblem::Held => vec!["scontrol", "release", &job.id],
        JobProblem::NotLaunched => vec!["scontrol", "requeue", &job.id],
        JobProblem::Ended => vec!["scancel", &job.id],
        JobProblem::Waiting => vec!["scontrol", "update", &id, "Dependency="],
        // Only an administrator can help. The same sentence for all jobs is shown once.
        JobProblem::NoNode => {
            return Some("Slurm has no node for the units that wait: `sinfo -R` says why".to_owned());
        }
    };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    let refused = ask(&mut command, None).err();
    match problem {
        JobProblem::NotLaunched => {
            Some(format!("Slurm has not launched the job {}: it is queued again", job.id))
        }
        JobProblem::Held if refused.is_some() => Some(format!(
            "Slurm holds the job {} ({}): `scontrol release {}` releases it; if a node was drained, `scontrol \
             update nodename=NODE state=resume` resumes it",
            job.id, job.reason, job.id
        )),
        // If the state of a job has changed in the meantime, the job is examined again later.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_stuck_when_slurm_and_the_folder_of_units_disagree() {
        let problem = |state: &str, reason: &str, has_result, earlier_done, script| {
            let [id, number, state, reason] = ["7_1", "8", state, reason].map(str::to_owned);
            problem_of(&QueuedJob { id, number, state, reason }, has_result, earlier_done, || script)
        };
        assert_eq!(problem("RUNNING", "None", false, true, ScriptProgress::Begun), None);
        assert_eq!(problem("RUNNING", "None", false, true, ScriptProgress::Ended), Some(JobProblem::Ended));
        assert_eq!(
            problem("RUNNING", "None", false, true, ScriptProgress::Unseen),
            Some(JobProblem::NotLaunched)
        );
        assert_eq!(problem("RUNNING", "None", true, true, ScriptProgress::Begun), Some(JobProblem::Ended));
        assert_eq!(
            problem("PENDING", "Dependency", false, true, ScriptProgress::Begun),
            Some(JobProblem::Waiting)
        );
        assert_eq!(problem("PENDING", "Dependency", false, false, ScriptProgress::Begun), None);
        assert_eq!(
            problem("PENDING", "BeginTime", false, true, ScriptProgress::Begun),
            Some(JobProblem::Delayed)
        );
        assert_eq!(
            problem("PENDING", "JobHeldUser", false, true, ScriptProgress::Begun),
            Some(JobProblem::Held)
        );
        assert_eq!(
            problem("PENDING", "ReqNodeNotAvail, UnavailableNodes:n1", false, true, ScriptProgress::Unseen),
            Some(JobProblem::NoNode)
        );
        assert_eq!(problem("PENDING", "Resources", false, true, ScriptProgress::Begun), None);
    }
}
