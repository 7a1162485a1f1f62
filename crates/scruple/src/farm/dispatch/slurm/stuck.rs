//! Finds jobs that Slurm delays longer than necessary. If one of its daemons dies while a job is launched or ends,
//! Slurm notices minutes later that the job was never launched or has ended.

use super::super::Order;
use super::{ENDING, GRACE, Job, ask};
use std::collections::{BTreeSet, HashMap};
use std::process::Command;
use std::time::{Duration, Instant};

/// A job that has been in the state running for this long, without a sign that its script has begun, was never
/// launched. A shared file system may show the sign late, so that a job is requeued at most once.
const LAUNCH: Duration = Duration::from_secs(20);

/// The problem of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Wrong {
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
enum Script {
    Unseen,
    Begun,
    Ended,
}

/// Which problems were seen.
#[derive(Default)]
pub struct Stuck {
    since: HashMap<(String, Wrong), Instant>,
    helped: BTreeSet<(String, Wrong)>,
}

impl Stuck {
    /// Asks Slurm to continue with the jobs that are stuck. Returns what the user should know.
    pub fn help(
        &mut self,
        order: &Order<'_>,
        done: &BTreeSet<String>,
        queue: &HashMap<String, Vec<Job>>,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut earlier_done = true;
        for stage in order.stages {
            for name in stage {
                for job in queue.get(name).into_iter().flatten() {
                    let script = || match &job.number {
                        number if order.folder.has_ended(number) => Script::Ended,
                        number if order.folder.has_begun(number) => Script::Begun,
                        _ => Script::Unseen,
                    };
                    wrong.extend(
                        wrong_with(job, done.contains(name), earlier_done, script).map(|it| (job, it)),
                    );
                }
            }
            earlier_done &= stage.iter().all(|name| done.contains(name));
        }
        self.since.retain(|(id, it), _| wrong.iter().any(|(job, other)| job.id == *id && other == it));
        let now = Instant::now();
        let mut told = Vec::new();
        for (job, it) in wrong {
            let key = (job.id.clone(), it);
            let since = *self.since.entry(key.clone()).or_insert(now);
            let patience = match it {
                Wrong::Delayed | Wrong::Held => Duration::ZERO,
                Wrong::NotLaunched | Wrong::NoNode => LAUNCH,
                Wrong::Waiting => ENDING,
                // Slurm also cancels the jobs that wait for this one. By this time none of them waits for it any more, and
                // its node is needed.
                Wrong::Ended => ENDING + GRACE,
            };
            if now - since < patience || (it != Wrong::Delayed && !self.helped.insert(key)) {
                continue;
            }
            told.extend(help(job, it));
        }
        told
    }
}

fn wrong_with(
    job: &Job,
    has_result: bool,
    earlier_done: bool,
    script: impl FnOnce() -> Script,
) -> Option<Wrong> {
    match (job.state.as_str(), job.reason.as_str()) {
        (_, "BeginTime") => Some(Wrong::Delayed),
        (_, reason) if reason.starts_with("JobHeld") || reason.contains("held") => Some(Wrong::Held),
        ("RUNNING", _) if has_result => Some(Wrong::Ended),
        ("RUNNING", _) => match script() {
            Script::Unseen => Some(Wrong::NotLaunched),
            Script::Begun => None,
            Script::Ended => Some(Wrong::Ended),
        },
        ("PENDING", "Dependency") if earlier_done => Some(Wrong::Waiting),
        ("PENDING", reason) if reason.starts_with("ReqNodeNotAvail") => Some(Wrong::NoNode),
        _ => None,
    }
}

fn help(job: &Job, wrong: Wrong) -> Option<String> {
    let id = format!("JobId={}", job.id);
    let words = match wrong {
        Wrong::Delayed => vec!["scontrol", "update", &id, "StartTime=now"],
        Wrong::Held => vec!["scontrol", "release", &job.id],
        Wrong::NotLaunched => vec!["scontrol", "requeue", &job.id],
        Wrong::Ended => vec!["scancel", &job.id],
        Wrong::Waiting => vec!["scontrol", "update", &id, "Dependency="],
        // Only an administrator can help. The same sentence for all jobs is shown once.
        Wrong::NoNode => {
            return Some("Slurm has no node for the units that wait: `sinfo -R` says why".to_owned());
        }
    };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    let refused = ask(&mut command, None).err();
    match wrong {
        Wrong::NotLaunched => Some(format!("Slurm has not launched the job {}: it is queued again", job.id)),
        Wrong::Held if refused.is_some() => Some(format!(
            "Slurm holds the job {} ({}): `scontrol release {}` lets it go; where a node was drained, `scontrol update \
             nodename=NODE state=resume` brings it back",
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
        let wrong = |state: &str, reason: &str, has_result, earlier_done, script| {
            let [id, number, state, reason] = ["7_1", "8", state, reason].map(str::to_owned);
            wrong_with(&Job { id, number, state, reason }, has_result, earlier_done, || script)
        };
        assert_eq!(wrong("RUNNING", "None", false, true, Script::Begun), None);
        assert_eq!(wrong("RUNNING", "None", false, true, Script::Ended), Some(Wrong::Ended));
        assert_eq!(wrong("RUNNING", "None", false, true, Script::Unseen), Some(Wrong::NotLaunched));
        assert_eq!(wrong("RUNNING", "None", true, true, Script::Begun), Some(Wrong::Ended));
        assert_eq!(wrong("PENDING", "Dependency", false, true, Script::Begun), Some(Wrong::Waiting));
        assert_eq!(wrong("PENDING", "Dependency", false, false, Script::Begun), None);
        assert_eq!(wrong("PENDING", "BeginTime", false, true, Script::Begun), Some(Wrong::Delayed));
        assert_eq!(wrong("PENDING", "JobHeldUser", false, true, Script::Begun), Some(Wrong::Held));
        assert_eq!(
            wrong("PENDING", "ReqNodeNotAvail, UnavailableNodes:n1", false, true, Script::Unseen),
            Some(Wrong::NoNode)
        );
        assert_eq!(wrong("PENDING", "Resources", false, true, Script::Begun), None);
    }
}
