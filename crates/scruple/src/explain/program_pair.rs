//! Both programs and their launchers: they run side by side, or one after the other.

use super::effort::Effort;
use crate::fault::{Code, Fault};
use crate::inspect::calls::tree_of;
use crate::inspect::single_launch::{ended, failure};
use scruple_code::{Profiles, SeenEffect, Side, SourceText};
use scruple_core::explain::Count;
use scruple_core::harmless_text::plain;
use scruple_core::metric::Pass;
use scruple_measure::calltree::{ChosenTool, CountDetail, Trees, ValgrindTool};
use scruple_measure::command::{Commands, Job, Weigher};
use scruple_measure::streams::Captured;
use std::path::Path;
use std::time::{Duration, Instant};

/// Both programs, and what runs them.
pub struct BothPrograms<'a> {
    /// The programs.
    pub jobs: [&'a Job; 2],
    /// Whether each runs alone. Otherwise both run at the same time.
    pub apart: bool,
    /// An action of one program that the other may notice, in words, if one was seen.
    pub effect: Option<String>,
    /// Whether the second program acted before the first when both were counted last; `None` if it is unknown. The time
    /// of an action is when a program began to do something that others notice. If not both did, the ends of the
    /// programs are compared.
    second_acted_first: Option<bool>,
    commands: [Commands; 2],
    trees: [Trees; 2],
    strict: bool,
}

/// A launch of one program under the call tree.
pub struct CalltreeRun {
    /// All instructions.
    pub total: u64,
    /// The number of its processes that outlived it.
    pub left_behind: u32,
    /// The call tree.
    pub side: Side,
    /// A file that it found, and that an earlier launch of either program had left or changed.
    pub leftover: Option<String>,
    effect: Option<SeenEffect>,
}

/// A launch of one program in which only its instructions were counted.
pub struct TotalRun {
    /// All instructions.
    pub total: u64,
    /// A file that it found, and that an earlier launch of either program had left or changed.
    pub leftover: Option<String>,
}

impl<'a> BothPrograms<'a> {
    /// Runs these programs, each alone until `apart` is unset. `strict` says whether an exit code other than 0 is an
    /// error.
    pub fn new(
        jobs: [&'a Job; 2],
        commands: [Commands; 2],
        counter: &ChosenTool,
        work: &Path,
        strict: bool,
    ) -> BothPrograms<'a> {
        let trees = [Trees::new(counter, work), Trees::new(counter, work)];
        BothPrograms { jobs, apart: true, effect: None, second_acted_first: None, commands, trees, strict }
    }

    /// The tool that counts.
    pub fn counter(&self) -> &ChosenTool {
        self.trees[0].counter()
    }

    /// Does the same with both programs. If each runs alone, `swapped` says whether the second program runs first.
    pub fn run<T: Send>(
        &mut self,
        swapped: bool,
        one: impl Fn(usize, &mut Commands, &Job, &mut Trees) -> Result<T, Fault> + Sync,
    ) -> Result<[T; 2], Fault> {
        let ([left, right], [first, second]) = (&mut self.commands, &mut self.trees);
        let jobs = self.jobs;
        if self.apart {
            if swapped {
                let later = one(1, right, jobs[1], second)?;
                return Ok([one(0, left, jobs[0], first)?, later]);
            }
            return Ok([one(0, left, jobs[0], first)?, one(1, right, jobs[1], second)?]);
        }
        std::thread::scope(|scope| {
            let beside = scope.spawn(|| one(0, left, jobs[0], first));
            let here = one(1, right, jobs[1], second);
            let beside = beside.join().unwrap_or_else(|_| Err(Fault::internal("a launch was lost")));
            Ok([beside?, here?])
        })
    }

    /// Runs both under the call tree, after `earlier` launches of this kind, and returns whether they ran at the same
    /// time. From then on each runs alone if it may disturb the other, or if the tool cannot see whether it does. If
    /// the tool fails on the first launch, the next best one counts; if a program fails while the other one runs, both
    /// run again alone. The two programs take turns at running first, so that the effect of files that one finds from
    /// the other varies, and is not taken for the program's own cost.
    pub fn count_trees(
        &mut self,
        effort: &Effort,
        earlier: usize,
        sources: [&SourceText<'_>; 2],
    ) -> Result<([CalltreeRun; 2], bool), Fault> {
        loop {
            let beside = !self.apart;
            let counted = self.count(CountDetail::Tree, earlier % 2 == 1, |_, counts| counts);
            let runs = counted.map(|counted| {
                let [first, second] = Side::both(counted.each_ref(), sources);
                let run = |counts: &Profiles, side| CalltreeRun {
                    total: counts.total(),
                    left_behind: counts.left_behind,
                    effect: counts.effect().cloned(),
                    leftover: counts.leftover().map(plain),
                    side,
                };
                [run(&counted[0], first), run(&counted[1], second)]
            });
            match runs {
                Err(_) if earlier == 0 && effort.count == Count::Instructions && self.use_weaker_tool() => {}
                Err(fault) if beside && fault.code == Code::ProgramFailed => self.apart = true,
                runs => {
                    let runs = runs?;
                    let mut of_each = runs.iter().zip(["A", "B"]);
                    self.effect = of_each.find_map(|(run, name)| {
                        Some(format!("{name} {}", plain(&run.effect.as_ref()?.what)))
                    });
                    // A program may end long after it did what the other one notices.
                    if let [Some(first), Some(second)] = runs.each_ref().map(|run| run.effect.as_ref())
                        && beside
                    {
                        self.second_acted_first = second.is_before(first);
                    }
                    let is_seen = self.counter().kind == ValgrindTool::Calltree;
                    self.apart |= self.effect.is_some() || !is_seen;
                    return Ok((runs, beside));
                }
            }
        }
    }

    /// Whether it is known which program acted first when both were counted last.
    pub fn is_order_known(&self) -> bool {
        self.second_acted_first.is_some()
    }

    /// Runs both under the call tree, which counts only their instructions. If each runs alone, the program that acted
    /// last runs first. If one program finds something that the other left, its counts then differ.
    pub fn totals(&mut self) -> Result<[TotalRun; 2], Fault> {
        let swapped = self.second_acted_first != Some(true);
        self.count(CountDetail::Total, swapped, |_, counts| TotalRun {
            total: counts.total(),
            leftover: counts.leftover().map(plain),
        })
    }

    /// Runs both under the call tree, which counts their live blocks.
    pub fn live(&mut self) -> Result<[Profiles; 2], Fault> {
        self.count(CountDetail::Sites, false, |_, counts| counts)
    }

    fn count<T: Send>(
        &mut self,
        counts: CountDetail,
        swapped: bool,
        read: impl Fn(usize, Profiles) -> T + Sync,
    ) -> Result<[T; 2], Fault> {
        let strict = self.strict;
        let counted = self.run(swapped, |which, commands, job, trees| {
            trees.count(counts);
            let (counted, ended) = profiles(commands, job, trees, strict)?;
            Ok((read(which, counted), ended))
        })?;
        self.second_acted_first = Some(counted[1].1 < counted[0].1);
        Ok(counted.map(|(counts, _)| counts))
    }

    /// Counts both by the next best tool from now on, if Valgrind itself failed under the present one.
    fn use_weaker_tool(&mut self) -> bool {
        let failure = self.trees.iter().find_map(Trees::failure);
        let weaker = failure.and_then(|why| self.trees[0].counter().weaker(why));
        if let Some(counter) = &weaker {
            self.trees.iter_mut().for_each(|trees| trees.count_by(counter));
        }
        weaker.is_some()
    }

    /// The processor times of both programs, which run one after the other in this many blocks.
    pub fn times(&mut self, blocks: u32) -> Result<[Vec<f64>; 2], Fault> {
        let mut times = [Vec::new(), Vec::new()];
        for block in 0..blocks {
            for side in if block % 2 == 0 { [0, 1] } else { [1, 0] } {
                let weighed = self.commands[0].weigh(self.jobs[side], Pass::Timing, block, 0);
                times[side].push(nanoseconds(ended(self.jobs[side], weighed)?.cpu));
            }
        }
        Ok(times)
    }
}

/// A launch of one program without the call tree.
pub struct TrialRun {
    /// Its output, if that was captured.
    pub output: Option<Captured>,
    /// How long it took.
    pub wall: Duration,
    /// Its processor time, in nanoseconds.
    pub cpu: f64,
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

/// Runs a program once without the call tree.
pub fn trial_run(commands: &mut Commands, job: &Job, strict: bool) -> Result<TrialRun, Fault> {
    let weighed = commands.weigh(job, Pass::Memory, 0, 0);
    let weighing = ended(job, weighed)?;
    if let Some(fault) = failure(job, &weighing, "; -i explains it regardless").filter(|_| strict) {
        return Err(fault);
    }
    Ok(TrialRun { output: weighing.captured, wall: weighing.wall, cpu: nanoseconds(weighing.cpu) })
}

/// Runs a program once under the call tree. Also returns when it ended.
pub fn profiles(
    commands: &mut Commands,
    job: &Job,
    trees: &mut Trees,
    strict: bool,
) -> Result<(Profiles, Instant), Fault> {
    let aim = format!("where ‘{}’ spends its instructions", job.name);
    let hint = strict.then_some(" under the call tree; -i explains it regardless");
    tree_of(commands, job, trees, &aim, hint)
}
