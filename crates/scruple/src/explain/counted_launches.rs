//! Runs both sides under the call tree, and a few times without it.

use super::effort::Effort;
use super::gathered_launches::GatheredLaunches;
use super::program_pair::{BothPrograms, TrialRun, profiles, trial_run};
use super::repeated_launches::RepeatedLaunches;
use super::times::Time;
use super::variation::repeats;
use super::{interpreted, interpreters};
use crate::fault::Fault;
use crate::inspect::calls::{kind_of, remark_of};
use crate::inspect::single_launch::ProgramFile;
use crate::inspect::sites::remark_of_runtime;
use crate::interruption;
use crate::progress::Progress;
use scruple_code::{Side, SourceText, name_stripped};
use scruple_core::explain::Count;
use scruple_core::unit::{Unit, quantity};
use scruple_measure::calltree::{ChosenTool, Language, Trees, ValgrindTool};
use scruple_measure::command::{Commands, Job};
use scruple_measure::launcher::Launcher;
use std::path::Path;
use std::time::Duration;

/// The number of launches of each side whose time is measured: enough for an interval. If the times may contradict the
/// instructions, there are as many again.
const BLOCKS: u32 = 8;
/// The time from which a launch is long. Its time is then that of the first launch.
const LONG: Duration = Duration::from_millis(500);
/// How many times longer a program takes while it is counted: the least for loops over data, the most for programs that
/// call functions all the time (`bench/explain/run.py`).
pub const COSTS: (f64, f64) = (7.0, 30.0);

/// Runs both programs. `sources` are used to name functions if necessary. Two launchers allow both sides to run at the
/// same time, because counts do not depend on other load. They may depend on what the other program does to files,
/// locks and sockets: from the first launch that shows such effects on, each side runs alone, and what was counted at
/// the same time is used only if a launch of each alone has nearly the same totals.
pub fn gather(
    jobs: [&Job; 2],
    launchers: [Launcher; 2],
    counter: &ChosenTool,
    work: &Path,
    effort: &Effort,
    sources: [&SourceText<'_>; 2],
) -> Result<GatheredLaunches, Fault> {
    let interrupted = interruption::flag()?;
    let files = jobs.map(ProgramFile::of);
    let commands = launchers.map(|launcher| Commands::new(launcher, interrupted.clone(), Vec::new()));
    let mut both = BothPrograms::new(jobs, commands, counter, work, effort.strict);
    let trial =
        |_, commands: &mut Commands, job: &Job, _: &mut Trees| trial_run(commands, job, effort.strict);
    let mut trials = both.run(false, trial)?;
    // A first launch may print more than others: Guile names the files that it compiles.
    if remark_of_output(&trials).is_some() {
        trials = both.run(false, trial)?;
    }
    let mut remarks: Vec<String> = remark_of_output(&trials).into_iter().collect();
    let longest = trials[0].wall.max(trials[1].wall);
    if longest > LONG {
        let twice = |really: bool| 1 + u32::from(really);
        announce(longest, twice(effort.count.is_live()) * twice(effort.apart));
    }
    let mut times = match effort.time {
        true if longest > LONG => trials.each_ref().map(|trial| vec![trial.cpu]),
        true => both.times(BLOCKS)?,
        false => [Vec::new(), Vec::new()],
    };
    both.apart = effort.apart;
    let launches = RepeatedLaunches::of(&mut both, effort, sources)?;
    remarks.extend(launches.remarks());
    let RepeatedLaunches { mut sides, variation_of_totals, .. } = launches;
    let [first, second] =
        [&sides[0][0], &sides[1][0]].map(|side| side.tree.total(Count::Instructions).max(1) as f64);
    if Time::of(&times).is_some_and(|time| time.may_contradict(second / first)) {
        for (times, more) in times.iter_mut().zip(both.times(BLOCKS)?) {
            times.extend(more);
        }
    }
    files.iter().try_for_each(ProgramFile::require_same)?;
    name_stripped(&mut sides);
    let one_is_enough = variation_of_totals.is_some() && sides[0].len() == 1;
    let script = script_of(&mut both, work, effort, [&sides[0][0], &sides[1][0]], one_is_enough, longest)?;
    let script = script.and_then(|script| script.map_err(|why| remarks.push(why)).ok()).map(Box::new);
    let counter = both.counter();
    remarks.extend(remark_of(counter));
    remarks.extend(remark_of_other_work([&sides[0][0], &sides[1][0]], Some(counter)));
    remarks.extend(remarks_of_memory(jobs, effort.count));
    let (kind, counted_by) = (kind_of(counter), Some(counter.describe()));
    let count = effort.count;
    Ok(GatheredLaunches { sides, variation_of_totals, times, remarks, kind, count, counted_by, script })
}

/// Says that the two programs print different output, if they do.
fn remark_of_output(trials: &[TrialRun; 2]) -> Option<String> {
    let [first, second] = trials.each_ref().map(|trial| &trial.output);
    let is_other = first.is_some() && second.is_some() && first != second;
    is_other.then(|| "the two programs print different output, so they may not do the same work".to_owned())
}

/// Counts both programs by functions of their own language, if they have the same one and their interpreter can count
/// them. It does not count memory. The inner error says why nothing was counted.
fn script_of(
    both: &mut BothPrograms<'_>,
    work: &Path,
    effort: &Effort,
    first_launches: [&Side; 2],
    one_is_enough: bool,
    longest: Duration,
) -> Result<Option<Result<GatheredLaunches, String>>, Fault> {
    let language = interpreters::common_language(first_launches);
    let Some(language) = language.filter(|_| effort.count == Count::Instructions) else { return Ok(None) };
    if longest > LONG {
        interpreted::announce(language, longest);
    }
    let names = both.jobs.map(|job| job.name.as_str());
    let mut run = |language| {
        both.run(false, |_, commands, job, _| {
            interpreted::counted(language, job, commands, work, effort.strict)
        })
    };
    interpreted::gather(names, language, one_is_enough, effort.runs as usize, &mut run).map(Some)
}

/// Says how the runtime of a program works differently while it is counted.
pub fn remark_of_other_work(sides: [&Side; 2], counter: Option<&ChosenTool>) -> Option<String> {
    let by_tool = counter.is_some_and(|counter| counter.kind == ValgrindTool::Calltree);
    let any = |is: fn(&Side) -> bool| sides.into_iter().any(is);
    let remark = match () {
        () if any(Side::is_go) => {
            "Go’s collector stopped all goroutines while it marked (GODEBUG=gcstoptheworld=1, unless the command sets that \
             itself), because counts vary less then: they contain the work of collections, but goroutines do not help to \
             mark, and their writes do not inform the collector"
        }
        () if by_tool && any(|side| interpreters::language(side) == Some(Language::JavaScript)) => {
            "V8 compiled and collected in the program’s own thread (--single-threaded), because counts vary less then"
        }
        () => return None,
    };
    Some(remark.to_owned())
}

/// Says what a reader of figures of memory must know: which heap is not malloc's, and which figures are added up.
fn remarks_of_memory(jobs: [&Job; 2], count: Count) -> Option<String> {
    if count == Count::Instructions {
        return None;
    }
    jobs.into_iter().find_map(remark_of_runtime)
}

/// Announces how long counting will take, if that is long: `times` times as long as counting the longer program once.
fn announce(longest: Duration, times: u32) {
    let seconds = |factor: f64| quantity(longest.as_secs_f64() * factor * 1e9, &Unit::Nanoseconds);
    let times = f64::from(times);
    let (least, most) = (COSTS.0 * times, COSTS.1 * times);
    Progress::new().say(&format!(
        "the call tree takes about {} to {}, because the longer program takes {} alone and {least} to {most} times as long \
         until both are counted",
        seconds(least),
        seconds(most),
        seconds(1.0),
    ));
}

/// Runs one program until it is known whether its counts repeat. If they do not, runs it as often as the effort says.
pub fn count(
    job: &Job,
    launcher: Launcher,
    counter: &ChosenTool,
    work: &Path,
    effort: &Effort,
) -> Result<Vec<Side>, Fault> {
    let mut commands = Commands::new(launcher, interruption::flag()?, Vec::new());
    let mut trees = Trees::new(counter, work);
    let file = ProgramFile::of(job);
    let runs = until_known(effort.runs, || {
        profiles(&mut commands, job, &mut trees, effort.strict).map(|(profiles, _)| Side::of(&profiles))
    })?;
    file.require_same()?;
    Ok(runs)
}

/// Repeats `run` until it is known whether counts repeat: twice if they do, and otherwise `most` times.
pub fn until_known(most: u32, mut run: impl FnMut() -> Result<Side, Fault>) -> Result<Vec<Side>, Fault> {
    let mut runs = vec![run()?, run()?];
    while runs.len() < most as usize && !repeats(&runs) {
        runs.push(run()?);
    }
    Ok(runs)
}
