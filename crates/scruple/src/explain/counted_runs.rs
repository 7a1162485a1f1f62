//! Runs both sides under the call tree, and a few times without it.

use super::script;
use crate::fault::Fault;
use crate::inspect::calls::tree_of;
use crate::inspect::launch::{ended, failure};
use crate::new_run;
use crate::profile::read::{Kind, OWN};
use scruple_core::metric::Pass;
use scruple_measure::calltree::{Counter, Side, SourceText, Trees, as_built};
use scruple_measure::command::{Commands, Job, Weigher};
use scruple_measure::launcher::Launcher;
use scruple_measure::streams::Captured;
use std::path::Path;
use std::time::Duration;

/// The measurements of both programs.
pub struct Gathered {
    /// The call trees of each run, for the first and for the second program.
    pub sides: [Vec<Side>; 2],
    /// The processor times of launches in shared blocks, in nanoseconds; empty if they were not requested.
    pub times: [Vec<f64>; 2],
    /// Sentences that the user should read.
    pub remarks: Vec<String>,
    /// The meaning of the counts.
    pub kind: Kind,
    /// The same programs by functions of their own language, where the interpreter could count these.
    pub script: Option<Box<Gathered>>,
}

/// How much to run.
pub struct Effort {
    /// The number of runs of each side if counts do not repeat.
    pub runs: u32,
    /// Whether an exit code other than 0 is an error.
    pub strict: bool,
    /// Whether time is measured.
    pub time: bool,
    /// Whether source lines and machine code are shown.
    pub lines: bool,
}

/// The numbers of launches of each side without the call tree: enough for an interval, or fewer for long launches.
const BLOCKS: u32 = 8;
const FEW: u32 = 2;
/// The time from which a launch is long.
const LONG: Duration = Duration::from_millis(500);

/// Runs both programs. `sources` are used to name functions if necessary. Two launchers allow both sides to run at the
/// same time, because counts do not depend on other load.
pub fn gather(
    jobs: [&Job; 2],
    launchers: [Launcher; 2],
    counter: &Counter,
    work: &Path,
    effort: &Effort,
    sources: [&SourceText<'_>; 2],
) -> Result<Gathered, Fault> {
    let interrupted = new_run::interruption_flag()?;
    let mut remarks = Vec::new();
    let mut times = [Vec::new(), Vec::new()];
    let [mut left, mut right] =
        launchers.map(|launcher| Commands::new(launcher, interrupted.clone(), Vec::new()));
    let looks = [look(&mut left, jobs[0], effort.strict)?, look(&mut left, jobs[1], effort.strict)?];
    if let (Some(first), Some(second)) = (&looks[0].0, &looks[1].0)
        && first != second
    {
        remarks.push("the two print different things, so that they may not do the same work".to_owned());
    }
    if effort.time {
        let longest = looks[0].1.max(looks[1].1);
        for block in 0..if longest > LONG { FEW } else { BLOCKS } {
            for side in if block % 2 == 0 { [0, 1] } else { [1, 0] } {
                let weighed = left.weigh(jobs[side], Pass::Timing, block, 0);
                let weighing = ended(jobs[side], weighed)?;
                let cpu = weighing.readings.iter().find(|reading| reading.key == "time.cpu");
                times[side].extend(cpu.and_then(|reading| reading.value.clone().ok()));
            }
        }
    }
    let mut trees = [Trees::new(counter, work), Trees::new(counter, work)];
    let mut sides = [Vec::new(), Vec::new()];
    let mut wanted = 2;
    while sides[0].len() < wanted {
        let [first, second] = &mut trees;
        let (one, other) = (&mut left, &mut right);
        let both = std::thread::scope(|scope| {
            let beside = scope.spawn(|| side(one, jobs[0], first, effort.strict, sources[0]));
            let here = side(other, jobs[1], second, effort.strict, sources[1]);
            let beside = beside.join().unwrap_or_else(|_| Err(Fault::internal("a run was lost")));
            Ok::<_, Fault>([beside?, here?])
        })?;
        for (runs, run) in sides.iter_mut().zip(both) {
            runs.push(run);
        }
        if sides.iter().any(|runs| !repeats(runs)) {
            wanted = effort.runs as usize;
        }
    }
    let first_runs = [&sides[0][0], &sides[1][0]];
    let script = match script::gather(jobs, first_runs, &mut left, work, effort)? {
        Some(Ok(script)) => Some(Box::new(script)),
        Some(Err(why)) => {
            remarks.push(why);
            None
        }
        None => None,
    };
    Ok(Gathered { sides, times, remarks, kind: Kind::counted(OWN), script })
}

/// Runs one program until it is known whether its counts repeat. If they do not, runs it as often as the effort says.
pub fn count(
    job: &Job,
    launcher: Launcher,
    counter: &Counter,
    work: &Path,
    effort: &Effort,
) -> Result<Vec<Side>, Fault> {
    let mut commands = Commands::new(launcher, new_run::interruption_flag()?, Vec::new());
    let mut trees = Trees::new(counter, work);
    until_known(effort.runs, || side(&mut commands, job, &mut trees, effort.strict, &as_built))
}

/// Repeats `run` until it is known whether counts repeat: twice if they do, and otherwise `most` times.
pub fn until_known(most: u32, mut run: impl FnMut() -> Result<Side, Fault>) -> Result<Vec<Side>, Fault> {
    let mut runs = vec![run()?, run()?];
    while runs.len() < most as usize && !repeats(&runs) {
        runs.push(run()?);
    }
    Ok(runs)
}

/// Runs a program once without the call tree. Returns its output and its duration.
fn look(commands: &mut Commands, job: &Job, strict: bool) -> Result<(Option<Captured>, Duration), Fault> {
    let weighed = commands.weigh(job, Pass::Memory, 0, 0);
    let weighing = ended(job, weighed)?;
    if let Some(fault) = failure(job, &weighing).filter(|_| strict) {
        return Err(Fault { message: format!("{}; -i explains it regardless", fault.message), ..fault });
    }
    Ok((weighing.captured, weighing.wall))
}

/// Runs a program once under the call tree.
fn side(
    commands: &mut Commands,
    job: &Job,
    trees: &mut Trees,
    strict: bool,
    sources: &SourceText<'_>,
) -> Result<Side, Fault> {
    let aim = format!("where ‘{}’ spends its instructions", job.name);
    let hint = strict.then_some(" under the call tree; -i explains it regardless");
    tree_of(commands, job, trees, &aim, hint).map(|profiles| Side::with_sources(&profiles, sources))
}

/// Whether all runs gave the same counts for every function.
pub fn repeats(runs: &[Side]) -> bool {
    let sums = |side: &Side| {
        let mut sums = std::collections::BTreeMap::new();
        for context in &side.tree.contexts {
            let function = &side.tree.functions[context.function];
            let sum: &mut (u64, u64, u64) =
                sums.entry((function.module.clone(), function.name.clone())).or_default();
            sum.0 += context.cost.instructions;
            sum.1 += context.calls + context.recursive;
            sum.2 += context.cost.bytes;
        }
        sums
    };
    let Some((first, rest)) = runs.split_first() else { return true };
    let first = sums(first);
    rest.iter().all(|run| sums(run) == first)
}
