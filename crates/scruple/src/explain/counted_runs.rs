//! Runs both sides under the call tree, and a few times without it.

use super::interpreters;
use super::script;
use super::variation::{self, repeats};
use crate::fault::Fault;
use crate::inspect::calls::{kind_of, remark_of, remark_of_orphans, tree_of};
use crate::inspect::launch::{ended, failure};
use crate::inspect::sites::remark_of_runtime;
use crate::new_run;
use crate::profile::read::Kind;
use crate::progress::Progress;
use scruple_core::explain::Count;
use scruple_core::metric::Pass;
use scruple_core::unit::{Unit, quantity};
use scruple_measure::calltree::{CountDetail, Counter, Profiles, Side, SourceText, Trees, name_stripped};
use scruple_measure::command::{Commands, Job, Weigher};
use scruple_measure::launcher::Launcher;
use scruple_measure::streams::Captured;
use std::path::Path;
use std::time::{Duration, Instant};

/// The measurements of both programs.
pub struct GatheredRuns {
    /// The call trees of each run, for the first and for the second program.
    pub sides: [Vec<Side>; 2],
    /// Whether each side ran once more to count only its total, and the totals were those of the first runs.
    pub totals_repeat: bool,
    /// The processor times of launches in shared blocks, in nanoseconds; empty if they were not requested.
    pub times: [Vec<f64>; 2],
    /// Sentences that the user should read.
    pub remarks: Vec<String>,
    /// What counted, if it was not read from a file.
    pub counted_by: Option<String>,
    /// The meaning of the counts.
    pub kind: Kind,
    /// What is explained first.
    pub count: Count,
    /// The same programs by functions of their own language, where the interpreter could count these.
    pub script: Option<Box<GatheredRuns>>,
}

/// How much to run.
pub struct Effort {
    /// What is explained first. Live blocks take a run of their own.
    pub count: Count,
    /// The number of runs of each side if counts do not repeat.
    pub runs: u32,
    /// Whether an exit code other than 0 is an error.
    pub strict: bool,
    /// Whether each side is counted only once if a second run, which counts only the total, gives the same total.
    pub once: bool,
    /// Whether time is measured.
    pub time: bool,
    /// Whether source lines and machine code are shown.
    pub lines: bool,
}

/// The numbers of launches of each side without the call tree: enough for an interval, or fewer for long launches.
const BLOCKS: u32 = 8;
const FEW: u32 = 1;
/// The time from which a launch is long.
const LONG: Duration = Duration::from_millis(500);
/// The longest time without a word when more runs are needed than were foretold.
const SILENT: Duration = Duration::from_secs(5);
/// How many times as long as alone programs take until they are counted: loops over data the least, programs that call
/// functions all the time the most (`bench/explain/run.py`).
const COSTS: (f64, f64) = (7.0, 30.0);

/// Runs both programs. `sources` are used to name functions if necessary. Two launchers allow both sides to run at the
/// same time, because counts do not depend on other load.
pub fn gather(
    jobs: [&Job; 2],
    launchers: [Launcher; 2],
    counter: &Counter,
    work: &Path,
    effort: &Effort,
    sources: [&SourceText<'_>; 2],
) -> Result<GatheredRuns, Fault> {
    let interrupted = new_run::interruption_flag()?;
    let mut remarks = Vec::new();
    let commands = launchers.map(|launcher| Commands::new(launcher, interrupted.clone(), Vec::new()));
    let trees = [Trees::new(counter, work), Trees::new(counter, work)];
    let mut both = Both { jobs, commands, trees, strict: effort.strict };
    let looks = both.run(|_, commands, job, _| trial_run(commands, job, effort.strict))?;
    if let (Some(first), Some(second)) = (&looks[0].0, &looks[1].0)
        && first != second
    {
        remarks.push("the two programs print different output, so they may not do the same work".to_owned());
    }
    let longest = looks[0].1.max(looks[1].1);
    if longest > LONG {
        foretell(if effort.count.is_live() { 2 * longest } else { longest });
    }
    let times = match effort.time {
        true => both.times(if longest > LONG { FEW } else { BLOCKS })?,
        false => [Vec::new(), Vec::new()],
    };
    let mut sides = [Vec::new(), Vec::new()];
    let mut totals_repeat = false;
    let most = effort.runs as usize;
    loop {
        let began = Instant::now();
        let counted = loop {
            let counted = both.count(false, |which, counts| {
                (counts.total(), counts.left_behind, Side::with_sources(counts, sources[which]))
            });
            match counted {
                Err(_)
                    if sides[0].is_empty()
                        && effort.count == Count::Instructions
                        && both.use_weaker_tool() => {}
                counted => break counted?,
            }
        };
        let live = match effort.count.is_live() {
            true => Some(both.live()?),
            false => None,
        };
        let totals = counted.each_ref().map(|(total, _, _)| *total);
        for (name, (runs, (_, left_behind, run))) in ["A", "B"].into_iter().zip(sides.iter_mut().zip(counted))
        {
            if let Some(remark) = remark_of_orphans(left_behind).filter(|_| runs.is_empty()) {
                remarks.push(format!("{name}: {remark}"));
            }
            runs.push(run);
        }
        for (runs, live) in sides.iter_mut().zip(live.iter().flatten()) {
            if let Some(last) = runs.last_mut() {
                last.add_live(live);
            }
        }
        let runs = sides[0].len();
        if effort.once && runs == 1 {
            totals_repeat = both.count(true, |_, counts| counts.total())? == totals;
        }
        if totals_repeat || variation::are_enough(&sides, most) {
            break;
        }
        match runs {
            1 if effort.once => foretell_more(1, most - 1, began.elapsed()),
            2 => foretell_more(most - 2, most - 2, began.elapsed()),
            _ => {}
        }
    }
    name_stripped(&mut sides);
    let languages = [&sides[0][0], &sides[1][0]].map(interpreters::language);
    let mut by_script = |language| {
        both.run(|_, commands, job, _| script::counted(language, job, commands, work, effort.strict))
    };
    let names = jobs.map(|job| job.name.as_str());
    let script = match effort.count {
        Count::Instructions => script::gather(names, languages, totals_repeat, most, &mut by_script)?,
        // What the interpreter counts is no memory.
        _ => None,
    };
    let script = script.and_then(|script| script.map_err(|why| remarks.push(why)).ok()).map(Box::new);
    let counter = both.trees[0].counter();
    remarks.extend(remark_of(counter));
    remarks.extend(remarks_of_memory(jobs, effort.count));
    let (kind, counted_by) = (kind_of(counter), Some(counter.describe()));
    let count = effort.count;
    Ok(GatheredRuns { sides, totals_repeat, times, remarks, kind, count, counted_by, script })
}

/// Both programs, and what runs them.
pub struct Both<'a> {
    /// The programs.
    pub jobs: [&'a Job; 2],
    commands: [Commands; 2],
    trees: [Trees; 2],
    strict: bool,
}

impl Both<'_> {
    /// Does the same with both programs at the same time.
    pub fn run<T: Send>(
        &mut self,
        one: impl Fn(usize, &mut Commands, &Job, &mut Trees) -> Result<T, Fault> + Sync,
    ) -> Result<[T; 2], Fault> {
        let ([left, right], [first, second]) = (&mut self.commands, &mut self.trees);
        let jobs = self.jobs;
        std::thread::scope(|scope| {
            let beside = scope.spawn(|| one(0, left, jobs[0], first));
            let here = one(1, right, jobs[1], second);
            let beside = beside.join().unwrap_or_else(|_| Err(Fault::internal("a run was lost")));
            Ok([beside?, here?])
        })
    }

    /// Runs both programs under the call tree, which counts their live blocks.
    fn live(&mut self) -> Result<[Profiles; 2], Fault> {
        let strict = self.strict;
        self.run(|_, commands, job, trees| {
            trees.count(CountDetail::Sites);
            profiles(commands, job, trees, strict)
        })
    }

    /// Runs both programs under the call tree, and reads something of their counts.
    fn count<T: Send>(
        &mut self,
        only_totals: bool,
        read: impl Fn(usize, &Profiles) -> T + Sync,
    ) -> Result<[T; 2], Fault> {
        let strict = self.strict;
        self.run(|which, commands, job, trees| {
            trees.count(if only_totals { CountDetail::Total } else { CountDetail::Tree });
            profiles(commands, job, trees, strict).map(|profiles| read(which, &profiles))
        })
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
    fn times(&mut self, blocks: u32) -> Result<[Vec<f64>; 2], Fault> {
        let mut times = [Vec::new(), Vec::new()];
        for block in 0..blocks {
            for side in if block % 2 == 0 { [0, 1] } else { [1, 0] } {
                let weighed = self.commands[0].weigh(self.jobs[side], Pass::Timing, block, 0);
                let weighing = ended(self.jobs[side], weighed)?;
                let cpu = weighing.readings.iter().find(|reading| reading.key == "time.cpu");
                times[side].extend(cpu.and_then(|reading| reading.value.clone().ok()));
            }
        }
        Ok(times)
    }
}

/// Says what a reader of memory must know: which heap is not malloc's, and what is added up.
fn remarks_of_memory(jobs: [&Job; 2], count: Count) -> Option<String> {
    if count == Count::Instructions {
        return None;
    }
    jobs.into_iter().find_map(remark_of_runtime)
}

/// Says how long it will take to count, if that is long.
fn foretell(longest: Duration) {
    let seconds = |factor: f64| quantity(longest.as_secs_f64() * factor * 1e9, &Unit::Nanoseconds);
    let (least, most) = (seconds(COSTS.0), seconds(COSTS.1));
    Progress::new().say(&format!(
        "the call tree takes about {least} to {most}, because the longer program takes {} alone and {} to {} times as \
         long while it is counted",
        seconds(1.0),
        COSTS.0,
        COSTS.1
    ));
}

/// Says how many more runs are needed because counts vary, if they take long. `each` is the time of the run before.
fn foretell_more(least: usize, most: usize, each: Duration) {
    if each * most as u32 <= SILENT {
        return;
    }
    let time = |runs: usize| quantity(each.as_secs_f64() * runs as f64 * 1e9, &Unit::Nanoseconds);
    let (runs, time) = match least == most {
        true => (most.to_string(), time(most)),
        false => (format!("{least} to {most}"), format!("{} to {}", time(least), time(most))),
    };
    Progress::new()
        .say(&format!("the counts vary from run to run; more runs of each follow: {runs}, about {time}"));
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
    until_known(effort.runs, || {
        profiles(&mut commands, job, &mut trees, effort.strict).map(|profiles| Side::of(&profiles))
    })
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
fn trial_run(
    commands: &mut Commands,
    job: &Job,
    strict: bool,
) -> Result<(Option<Captured>, Duration), Fault> {
    let weighed = commands.weigh(job, Pass::Memory, 0, 0);
    let weighing = ended(job, weighed)?;
    if let Some(fault) = failure(job, &weighing).filter(|_| strict) {
        return Err(Fault { message: format!("{}; -i explains it regardless", fault.message), ..fault });
    }
    Ok((weighing.captured, weighing.wall))
}

/// Runs a program once under the call tree.
fn profiles(commands: &mut Commands, job: &Job, trees: &mut Trees, strict: bool) -> Result<Profiles, Fault> {
    let aim = format!("where ‘{}’ spends its instructions", job.name);
    let hint = strict.then_some(" under the call tree; -i explains it regardless");
    tree_of(commands, job, trees, &aim, hint)
}
