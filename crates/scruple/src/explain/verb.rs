//! `scruple explain`: two commands, or one command at two revisions.

use super::args::ExplainArgs;
use super::counted_runs::{self, Effort, Gathered};
use super::findings::Found;
use super::hunks;
use super::report::{FORMATS, ROWS, json, terminal};
use crate::command::{arms, shell};
use crate::config::Config;
use crate::fault::{Code, Fault};
use crate::git::Repository;
use crate::history::resolve::recipe;
use crate::history::two_revisions::{self, Revisions};
use crate::history::{self, Recipe, Starter, Template};
use crate::inspect::{calls, launch};
use crate::new_run;
use crate::paths::WorkFolder;
use crate::show::export::{names, writer};
use crate::show::output;
use scruple_measure::calltree::{Counter, Symbols};
use scruple_measure::launcher::Launcher;
use std::path::Path;
use std::time::Duration;

/// Runs both, and reports the origin of their difference.
pub fn explain(args: &ExplainArgs) -> Result<Code, Fault> {
    args.results.export.checked(&names(&FORMATS))?;
    let launchers = [launch::launcher()?, launch::launcher()?];
    match args.command.is_empty() {
        true => commands(args, launchers),
        false => revisions(args, launchers),
    }
}

fn effort(args: &ExplainArgs) -> Effort {
    Effort { runs: args.runs, strict: !args.ignore_failure, time: !args.no_time }
}

fn commands(args: &ExplainArgs, launchers: [Launcher; 2]) -> Result<Code, Fault> {
    let Some(second) = &args.second else {
        return Err(Fault::usage(
            "name two commands to explain the difference of; or a revision or two, and the command behind --",
        ));
    };
    let job = |text: &String| launch::job(&shell::words(text)?, Some(&args.build.time_limit));
    let (first, second) = (job(&args.first)?, job(second)?);
    let counter = calls::counter("explain anything")?;
    let work = WorkFolder::make()?;
    let gathered = counted_runs::gather([&first, &second], launchers, &counter, work.path(), &effort(args))?;
    let found = Found::of([first.name.clone(), second.name.clone()], &gathered);
    show(args, &found, &gathered)
}

fn revisions(args: &ExplainArgs, launchers: [Launcher; 2]) -> Result<Code, Fault> {
    let counter = calls::counter("explain anything")?;
    drop(launchers);
    let config = Config::find()?;
    let place = history::place_of(args.build.repo.as_deref())?;
    let at = At {
        place: &place,
        first: &args.first,
        second: args.second.as_deref(),
        recipe: recipe(&args.build, config.history()?.recipe()?)?,
        subject: &Template::new(&args.command, None)?,
        limit: arms::duration(&args.build.time_limit)?,
    };
    let (found, gathered) = at_revisions(&at, &counter, &effort(args))?;
    show(args, &found, &gathered)
}

/// A command at two revisions.
pub struct At<'a> {
    /// The repository.
    pub place: &'a str,
    /// The first revision.
    pub first: &'a str,
    /// The other one; none for the working tree.
    pub second: Option<&'a str>,
    /// How they are built.
    pub recipe: Recipe,
    /// The command.
    pub subject: &'a Template,
    /// How long a launch may take.
    pub limit: Duration,
}

/// Builds both revisions, and explains the difference of the command at them.
pub fn at_revisions(at: &At<'_>, counter: &Counter, effort: &Effort) -> Result<(Found, Gathered), Fault> {
    let launchers = [launch::launcher()?, launch::launcher()?];
    let revisions =
        Revisions { reference: at.first.to_owned(), base: false, other: at.second.map(str::to_owned) };
    let builder = launch::launcher()?;
    let interrupted = new_run::interruption_flag()?;
    let starter = Starter { launcher: builder, weighing: Some(launchers[0].pid()), interrupted };
    let subjects = std::slice::from_ref(at.subject);
    let built =
        two_revisions::build(at.place, &revisions, at.recipe.clone(), subjects, Some(at.limit), starter)?;
    let jobs = [&built.prepared[0].job, &built.prepared[1].job];
    let work = WorkFolder::make()?;
    let gathered = counted_runs::gather(jobs, launchers, counter, work.path(), effort)?;
    let mut found = Found::of([jobs[0].name.clone(), jobs[1].name.clone()], &gathered);
    found.remarks.extend(built.remarks.iter().map(|(_, text)| text.clone()));
    let [first, second] = &built.commits;
    let all = hunks::between(&Repository::at(&built.objects), first, second);
    let mut symbols = Symbols::new();
    let rows = found.main().rows.iter().enumerate().take(ROWS);
    let touched = rows.filter_map(|(index, row)| {
        Some((index, hunks::touching(&all, row, &gathered.sides[1][0], &mut symbols)?.clone()))
    });
    found.hunks = touched.collect();
    let rows = found.explanations.iter().skip(1).flat_map(|one| one.rows.iter().take(ROWS));
    let touched = rows.filter_map(|row| {
        let hunk = hunks::touching(&all, row, &gathered.sides[1][0], &mut symbols)?;
        Some((row.name.clone(), hunk.clone()))
    });
    found.hunks_of_allocations = touched.collect();
    Ok((found, gathered))
}

fn show(args: &ExplainArgs, found: &Found, gathered: &Gathered) -> Result<Code, Fault> {
    let exports = args.results.export.checked(&names(&FORMATS))?;
    let aside = exports.iter().any(|export| export.path == Path::new("-"));
    let files = exports.iter().filter_map(|export| {
        let text = writer(&FORMATS, &export.format)?;
        Some((export.path.as_path(), text(found, gathered)))
    });
    let unwritten = output::write_files(files)?;
    let text = match args.results.json {
        true => json::text(found),
        false => terminal::text(found, ROWS, output::width()),
    };
    output::print_beside(aside, &text)?;
    unwritten.map_or(Ok(Code::Fine), Err)
}
