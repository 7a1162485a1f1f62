//! The command line of `history bisect` and `history extend`, completed from the words that began the stored history.

use crate::cli::{Cli, Verb};
use crate::history::args::{BUILD_LIMIT, BuildArgs, HistoryVerb, SelectArgs, TIME_LIMIT, TakeArgs};
use crate::history::{self, Which};
use crate::paths;
use clap::Parser;

/// The same words with the command of the newest history of the repository and how its versions are built, where they
/// name no command.
pub fn completed(args: &TakeArgs) -> TakeArgs {
    let mut args = args.clone();
    // Without a history, what is missing is reported where it is needed.
    if args.command.is_empty()
        && let Some(past) = past(&args)
    {
        if !selects(&args) {
            args.select.first_parent = past.select.first_parent;
        }
        args.effort.time_only |= past.effort.time_only;
        args.effort.yardstick = args.effort.yardstick.take().or(past.effort.yardstick);
        args.effort.builds = args.effort.builds.or(past.effort.builds);
        fill(&mut args.build, past.build);
        fill_list(&mut args.names, past.names);
        (args.command, args.bench) = (past.command, past.bench);
    }
    args
}

/// Whether any commits are named or selected.
pub fn selects(args: &TakeArgs) -> bool {
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

fn past(args: &TakeArgs) -> Option<TakeArgs> {
    let place = history::place_of(args.build.repo.as_deref()).ok()?;
    let store = paths::existing_store(args.store.store.as_deref()).ok()?;
    let argv = history::stored(&place, &Which::Weighed, &store).ok()?.run.argv;
    match Cli::try_parse_from(argv).ok()?.verb {
        Verb::History(past) => match past.verb {
            None => Some(past.take),
            Some(HistoryVerb::Bisect(past) | HistoryVerb::Extend(past)) => Some(*past),
            Some(_) => None,
        },
        _ => None,
    }
}

fn fill(args: &mut BuildArgs, past: BuildArgs) {
    fill_list(&mut args.build, past.build);
    fill_list(&mut args.artifact, past.artifact);
    fill_list(&mut args.env, past.env);
    fill_list(&mut args.toolchain, past.toolchain);
    args.check = args.check.take().or(past.check);
    args.clean |= past.clean;
    args.same_output |= past.same_output;
    if args.build_limit == BUILD_LIMIT {
        args.build_limit = past.build_limit;
    }
    if args.time_limit == TIME_LIMIT {
        args.time_limit = past.time_limit;
    }
}

fn fill_list(given: &mut Vec<String>, past: Vec<String>) {
    if given.is_empty() {
        *given = past;
    }
}
