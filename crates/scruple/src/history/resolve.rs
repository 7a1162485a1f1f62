//! Converts the command line and the configuration into the request of a history. Every check is made here.

use super::args::{SelectArgs, TakeArgs};
use super::verb::page;
use super::{Aim, Definition, HistoryChoice, HistoryEffort, HistoryRequest};
use crate::cli::values;
use crate::config::Config;
use crate::fault::Fault;
use crate::history;
use crate::render::output;
use crate::store::open_store;
use crate::versions::args::{TIME_LIMIT, recipe};
use crate::versions::requested_subjects::{
    RequestedSubjects, check_work_size, files_outside_builds, named, yardstick,
};
use crate::versions::{self, VersionSelection};
use scruple_core::default_margins;
use scruple_core::metric::{METRICS, Pass};
use scruple_core::run::Terms;
use std::path::Path;

/// The default numbers of rounds, for histories that are not adaptive and for adaptive ones.
const ROUNDS: u32 = 20;
const ADAPTIVE_ROUNDS: u32 = 10;

/// Returns what to do and how to judge it. For `bisect` and `extend` without a command, the definition of the
/// repository's newest history is the base, and the command line overrides it.
pub fn resolve(args: &TakeArgs, aim: Aim) -> Result<(HistoryRequest, Terms), Fault> {
    page::check(&args.page)?;
    let effort = &args.effort;
    let margin = effort.margin.as_deref().map(values::margin).transpose()?;
    let terms = Terms { margin: margin.unwrap_or(default_margins::COMMANDS), ..Terms::default() };
    let config = Config::find()?;
    let place = versions::place_of(args.build.repo.as_deref())?;
    let continued = aim != Aim::Selection && args.command.is_empty();
    let past = if continued { past(&place, args) } else { None };
    let mut selection = selection(args, config.range())?;
    let base = match past {
        Some(past) => {
            selection.first_parent |= !selects(args) && past.first_parent;
            Definition { subjects: named(past.subjects, &args.names)?, ..past }
        }
        None => {
            let wanted = RequestedSubjects {
                verb: "history",
                command: &args.command,
                bench: args.bench,
                names: &args.names,
            };
            Definition {
                recipe: config.recipe()?,
                subjects: wanted.subjects(&config)?,
                time_limit: values::duration(TIME_LIMIT)?,
                ..Definition::default()
            }
        }
    };
    let of = overridden(base, args, selection.first_parent, &config)?;
    let narrow = aim == Aim::Sets;
    // Counts need no launches for time, so a bisection of counts makes none unless the command line asks for some.
    let counts = narrow
        && !of.time_only
        && !of.subjects.iter().any(|subject| subject.yardstick)
        && counts_only(&args.page.metrics);
    let given = effort.rounds.or(effort.runs).or(counts.then_some(0));
    if effort.runs == Some(1) && of.same_output {
        return Err(Fault::usage(
            "a single launch is timed, and its output is not read for --same-output: give -r 2 or more",
        ));
    }
    let request = HistoryRequest {
        place,
        selection,
        as_listed: narrow && !selects(args),
        effort: HistoryEffort {
            adaptive: narrow,
            fill: !narrow,
            launches: effort.runs,
            rounds: given.unwrap_or(if narrow || effort.adaptive { ADAPTIVE_ROUNDS } else { ROUNDS }),
            builds: of.builds.unwrap_or(1),
            suspects: given.unwrap_or(if narrow { 2 * ROUNDS } else { ROUNDS }),
            budget: match given {
                Some(_) => None,
                None => Some(values::duration(&effort.budget)?),
            },
        },
        of,
        margin,
        adaptive: (narrow || effort.adaptive).then_some(true).or(effort.all.then_some(false)),
        retry: args.retry,
        keep_going: args.keep_going,
        aim,
    };
    Ok((request, terms))
}

/// Whether metrics are named, and none of them is read in the timing pass.
fn counts_only(metrics: &[String]) -> bool {
    let timed = |pattern: &String| {
        METRICS.iter().any(|metric| metric.pass == Pass::Timing && metric.matches(pattern))
    };
    !metrics.is_empty() && !metrics.iter().any(timed)
}

/// Returns the base definition with the changes of the command line.
fn overridden(
    base: Definition,
    args: &TakeArgs,
    first_parent: bool,
    config: &Config,
) -> Result<Definition, Fault> {
    let mut recipe = recipe(&args.build, base.recipe, config)?;
    let builds = args.effort.builds.or(base.builds);
    recipe.clean |= builds.is_some();
    let mut subjects = base.subjects;
    if let Some(words) = &args.effort.yardstick {
        subjects.retain(|subject| !subject.yardstick);
        subjects.push(yardstick(words, &subjects, config)?);
    }
    check_work_size(&recipe, &subjects)?;
    let (left_behind, shared) = files_outside_builds(&recipe, &subjects, config)?;
    output::warn_of_all(&left_behind);
    shared.iter().for_each(|(_, text)| output::warn(text));
    Ok(Definition {
        recipe,
        subjects,
        same_output: base.same_output || args.build.same_output,
        time_only: base.time_only || args.effort.time_only,
        time_limit: match args.build.time_limit == TIME_LIMIT {
            true => base.time_limit,
            false => values::duration(&args.build.time_limit)?,
        },
        first_parent,
        builds,
    })
}

/// Returns the definition of the repository's newest history in which a version was weighed. Without such a history,
/// missing settings are reported where they are needed.
fn past(place: &str, args: &TakeArgs) -> Option<Definition> {
    let store = open_store::existing(args.store.store.as_deref()).ok()?;
    history::definition(place, &HistoryChoice::Weighed, &store).ok()?
}

/// Whether the command line names or selects any commits.
fn selects(args: &TakeArgs) -> bool {
    let SelectArgs {
        first_parent,
        merges,
        no_merges,
        tags,
        every,
        steps,
        since,
        until,
        commits,
        commits_from,
    } = &args.select;
    let flags = [*first_parent, *merges, *no_merges, *tags, every.is_some(), steps.is_some()];
    flags.contains(&true)
        || since.is_some()
        || until.is_some()
        || !commits.is_empty()
        || commits_from.is_some()
        || args.range.is_some()
}

fn selection(args: &TakeArgs, configured: Option<String>) -> Result<VersionSelection, Fault> {
    let select = &args.select;
    let mut commits = Vec::new();
    let file = select.commits_from.as_ref().map(|path| format!("@{}", path.display()));
    for named in select.commits.iter().chain(&file) {
        // `@`, `@~2`, `@^` and `@{u}` are revisions rather than files.
        match named.strip_prefix('@').filter(|path| !path.is_empty() && !path.starts_with(['~', '^', '{'])) {
            Some(path) => commits.extend(commits_in(Path::new(path))?),
            None => commits.push(named.clone()),
        }
    }
    Ok(VersionSelection {
        range: args.range.clone().or(configured.filter(|_| commits.is_empty())),
        first_parent: select.first_parent,
        merges: select.merges.then_some(true).or(select.no_merges.then_some(false)),
        tags: select.tags,
        every: select.every.map(|every| every as usize),
        steps: select.steps.map(|steps| steps as usize),
        since: select.since.clone(),
        until: select.until.clone(),
        commits,
        beyond_shallow: false,
    })
}

/// Returns the commits that a file lists.
fn commits_in(path: &Path) -> Result<Vec<String>, Fault> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Fault::usage(format!("cannot read the commits in ‘{}’: {error}", path.display())))?;
    let commits: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    match commits.is_empty() {
        false => Ok(commits),
        true => Err(Fault::usage(format!("‘{}’ lists no commits: write one to a line", path.display()))),
    }
}
