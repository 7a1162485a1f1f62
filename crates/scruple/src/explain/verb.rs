//! `scruple explain`: compares two commands, or one command at two revisions.

use super::args::ExplainArgs;
use super::call_costs::CallCosts;
use super::definitions::Definitions;
use super::effort::Effort;
use super::findings::{Findings, ROWS};
use super::gathered_launches::GatheredLaunches;
use super::hunks::{self, Hunk};
use super::means::Means;
use super::report::{FORMATS, json, terminal, trees};
use super::sides::{self, SideSource};
use super::touching_hunks::HunkFinder;
use super::{code_view, counted_launches, profiles, stored};
use crate::cli::values;
use crate::config::Config;
use crate::fault::{Code, Fault};
use crate::git::Repository;
use crate::inspect::{calls, single_launch};
use crate::interruption;
use crate::paths::{self, WorkFolder};
use crate::profile::{self, read};
use crate::render::export::{Export, checked, names, writer};
use crate::render::json::moment as moment_text;
use crate::render::output;
use crate::store::{Store, open_store};
use crate::versions::args::recipe;
use crate::versions::requested_subjects::{RequestedSubjects, files_outside_builds};
use crate::versions::two_revisions::{self, Revisions};
use crate::versions::{self, BuildStarter, Recipe, SubjectTemplate};
use scruple_code::{Binaries, Symbols};
use scruple_core::explain::Count;
use scruple_measure::calltree::ChosenTool;
use std::path::Path;
use std::time::Duration;

/// What a counter is needed for.
const AIM: &str = "explain anything";

/// Runs both sides, and reports the origin of their difference.
pub fn explain(args: &ExplainArgs) -> Result<Code, Fault> {
    exports(args)?;
    if let Some(run) = &args.keep {
        return keep(args, run);
    }
    let first = args.first.as_deref().unwrap_or_default();
    match (&args.second, args.command.is_empty()) {
        (_, false) => revisions(args, first),
        (None, true) => {
            Err(Fault::usage("name two commands to compare, or one or two revisions and a command after --"))
        }
        (Some(second), true) if args.case.is_none() && args.url.is_none() => {
            if [first, second].into_iter().any(read::is_profile) {
                let (mut found, gathered) = profiles::explained([first, second], args.metric.count())?;
                closer(args, &mut found, &gathered);
                return show(args, &found, &gathered);
            }
            match stored_runs(args, [first, second])? {
                Some(sources) => compared(args, sources),
                None => {
                    sides::named(args, second).and_then(|sources| compared(args, sources)).map_err(|fault| {
                        match fault.code {
                            Code::Usage => without_command([first, second]).unwrap_or(fault),
                            _ => fault,
                        }
                    })
                }
            }
        }
        (Some(second), true) => compared(args, sides::named(args, second)?),
    }
}

/// Returns what is wrong with two words that were not understood as commands, if they are revisions.
fn without_command(names: [&str; 2]) -> Option<Fault> {
    let here = Repository::at(Path::new("."));
    let [first, second] = names;
    names.iter().all(|name| here.commit(name).is_ok()).then(|| {
        Fault::usage(format!(
            "‘{first}’ and ‘{second}’ are revisions: give the command to run at both, such as `scruple explain {first} \
             {second} -- ./app`"
        ))
    })
}

/// Returns what two words name in the store, if both are runs there.
fn stored_runs(args: &ExplainArgs, names: [&str; 2]) -> Result<Option<[SideSource; 2]>, Fault> {
    let Ok(store) = open_store::existing(args.store.as_deref()) else { return Ok(None) };
    match names.iter().all(|name| stored::is_known(&store, name)) {
        true => stored::sources(args, &store, names).map(Some),
        false => Ok(None),
    }
}

/// Counts the sides if necessary, and shows where the difference comes from.
fn compared(args: &ExplainArgs, sources: [SideSource; 2]) -> Result<Code, Fault> {
    let kept = |source: &SideSource| matches!(source, SideSource::Kept { .. });
    let counter = match sources.iter().all(kept) {
        true => None,
        false if sources.iter().all(SideSource::needs_no_tree) && is_of_instructions(args) => {
            Some(calls::any_counter(AIM)?)
        }
        false => Some(calls::counter(AIM)?),
    };
    let work = WorkFolder::make()?;
    let means = means(args, counter.as_ref(), &work);
    let (mut found, gathered) = sides::explained(sources, &means)?;
    closer(args, &mut found, &gathered);
    show(args, &found, &gathered)
}

fn closer(args: &ExplainArgs, found: &mut Findings, gathered: &GatheredLaunches) {
    if args.lines {
        found.look_closer(gathered, &code_view::on_disk);
    }
}

fn means<'a>(args: &ExplainArgs, counter: Option<&'a ChosenTool>, work: &'a WorkFolder) -> Means<'a> {
    Means { counter, work: work.path(), effort: effort(args), requests: args.requests }
}

fn keep(args: &ExplainArgs, run: &str) -> Result<Code, Fault> {
    let address = paths::store_address(args.store.as_deref())?;
    open_store::existing(args.store.as_deref())?;
    let store = Store::open(&address)?;
    let counter = calls::counter("keep a call tree")?;
    let work = WorkFolder::make()?;
    let kept = stored::keep(args, &store, run, &means(args, Some(&counter), &work))?;
    output::print(&format!("Kept with the run ‘{run}’: the call trees of ‘{}’.\n", kept.join("’, ‘")))?;
    Ok(Code::Fine)
}

/// Whether instructions are explained, which callgrind counts as well where the call tree cannot be used.
fn is_of_instructions(args: &ExplainArgs) -> bool {
    args.metric.count() == Count::Instructions
}

fn effort(args: &ExplainArgs) -> Effort {
    let count = args.metric.count();
    let (strict, time) = (!args.ignore_failure, !args.no_time && count == Count::Instructions);
    let apart = args.no_parallel;
    Effort { count, runs: args.runs, once: true, strict, time, lines: args.lines, apart }
}

fn revisions(args: &ExplainArgs, first: &str) -> Result<Code, Fault> {
    let counter = if is_of_instructions(args) { calls::any_counter(AIM)? } else { calls::counter(AIM)? };
    let config = Config::find()?;
    let place = versions::place_of(args.build.repo.as_deref())?;
    let recipe = recipe(&args.build, config.recipe()?, &config)?;
    let wanted =
        RequestedSubjects { verb: "explain HEAD~1", command: &args.command, bench: false, names: &[] };
    let subjects = wanted.subjects(&config)?;
    let (left_behind, shared) = files_outside_builds(&recipe, &subjects, &config)?;
    output::warn_of_all(&left_behind);
    shared.iter().for_each(|(_, text)| output::warn(text));
    let at = AtRevisions {
        place: &place,
        first,
        second: args.second.as_deref(),
        recipe,
        subject: &subjects[0],
        limit: values::duration(&args.build.time_limit)?,
    };
    let (found, gathered) = at_revisions(&at, &counter, &effort(args))?;
    show(args, &found, &gathered)
}

/// A command at two revisions.
pub struct AtRevisions<'a> {
    /// The path or URL of the repository.
    pub place: &'a str,
    /// The first revision.
    pub first: &'a str,
    /// The second revision; `None` means the working tree.
    pub second: Option<&'a str>,
    /// How the revisions are built.
    pub recipe: Recipe,
    /// The command that is run.
    pub subject: &'a SubjectTemplate,
    /// The time limit of a launch.
    pub limit: Duration,
}

/// Builds both revisions, and explains how the command differs between them.
pub fn at_revisions(
    at: &AtRevisions<'_>,
    counter: &ChosenTool,
    effort: &Effort,
) -> Result<(Findings, GatheredLaunches), Fault> {
    let launchers = [single_launch::launcher()?, single_launch::launcher()?];
    let revisions = Revisions {
        reference: at.first.to_owned(),
        base: false,
        other: at.second.map(str::to_owned),
        written: Vec::new(),
    };
    let builder = single_launch::launcher()?;
    let interrupted = interruption::flag()?;
    let starter = BuildStarter { launcher: builder, weighing: Some(launchers[0].pid()), interrupted };
    let subjects = std::slice::from_ref(at.subject);
    let built =
        two_revisions::build(at.place, &revisions, at.recipe.clone(), subjects, Some(at.limit), starter)?;
    let jobs = [&built.prepared[0].job, &built.prepared[1].job];
    let work = WorkFolder::make()?;
    let tree = Repository::at(&built.objects);
    let at_commit = |side: usize, path: &str| {
        // Both were built in the same folder, which can contain only one of them now. Therefore the sources are read
        // from git.
        let inside = Path::new(path).strip_prefix(&built.objects).unwrap_or(Path::new(path));
        let commit = &built.commits[side];
        let shown = tree.ask(["show", "--no-textconv", &format!("{commit}:{}", inside.display())]).ok();
        shown.or_else(|| code_view::on_disk(side, path).filter(|_| inside.is_absolute()))
    };
    let old = |_: &Path, source: &Path| at_commit(0, source.to_str()?);
    let new = |_: &Path, source: &Path| at_commit(1, source.to_str()?);
    let gathered = counted_launches::gather(jobs, launchers, counter, work.path(), effort, [&old, &new])?;
    let mut found = Findings::of([jobs[0].name.clone(), jobs[1].name.clone()], &gathered, [&old, &new]);
    found.remarks.extend(built.remarks.iter().map(|(_, text)| text.clone()));
    found.notes.extend(built_earlier(&built.built_earlier));
    let [first, second] = &built.commits;
    let all = hunks::between(&tree, first, second, work.path());
    let files_with = |words: &[&str]| -> Vec<String> {
        let words = words.iter().flat_map(|word| ["-e", word]);
        let options = ["grep", "-l", "-I", "-w", "-F", "-z", "--no-color", "--full-name"];
        let answer = tree.ask(options.into_iter().chain(words).chain([second.as_str()])).unwrap_or_default();
        answer.split('\0').filter_map(|file| Some(file.split_once(':')?.1.to_owned())).collect()
    };
    let mut definitions = Definitions::of(&all, &at_commit, &files_with);
    find_hunks(&mut found, &gathered, &all, &mut definitions);
    if let (Some(found), Some(gathered)) = (&mut found.script, &gathered.script) {
        find_hunks(found, gathered, &all, &mut definitions);
    }
    if effort.lines {
        found.look_closer(&gathered, &at_commit);
    }
    Ok((found, gathered))
}

/// Says which versions were built earlier, and how to build them again: files outside the repository that the steps
/// read may have changed since.
fn built_earlier(versions: &[(String, i64)]) -> Option<String> {
    let name = |(label, moment): &(String, i64)| match moment {
        0 => format!("‘{label}’"),
        moment => format!("‘{label}’ ({})", moment_text(*moment)),
    };
    let names: Vec<String> = versions.iter().map(name).collect();
    let (were, builds) =
        if names.len() == 1 { ("was", "its build is") } else { ("were", "their builds are") };
    (!names.is_empty()).then(|| {
        format!(
            "{} {were} built earlier, from the same files by the same steps, and {builds} used again. If a step reads a file \
             outside the repository, --toolchain 'cc --version; sha256sum FILE' makes its content count as well; `scruple \
             history clean` removes all builds of the repository.",
            names.join(" and ")
        )
    })
}

/// Finds the part of the source difference that touches each of the first rows.
fn find_hunks(
    found: &mut Findings,
    gathered: &GatheredLaunches,
    hunks: &[Hunk],
    definitions: &mut Definitions<'_>,
) {
    let (mut symbols, binaries) = (Symbols::new(), Binaries::new());
    let sides = [&gathered.sides[0][0], &gathered.sides[1][0]];
    for explanation in &found.explanations {
        let costs = CallCosts::of(explanation, sides, &binaries);
        let mut finder = HunkFinder { hunks, definitions, sides, costs, symbols: &mut symbols };
        let rows = explanation.rows.iter().enumerate().take(ROWS);
        found.hunks.extend(rows.filter_map(|(at, row)| Some((explanation.count, at, finder.touching(row)?))));
    }
}

/// Returns the files to write, or an error if one of them cannot be written.
fn exports(args: &ExplainArgs) -> Result<Vec<Export>, Fault> {
    let files = args.results.export.all();
    if let Some(export) = files.iter().find(|export| export.format == calls::CALLS) {
        return Err(Fault::usage(format!(
            "cannot export ‘{}’: such a file holds the call tree of one program; `scruple inspect calls --export \
             FILE.calls -- COMMAND` writes it",
            export.path.display()
        )));
    }
    checked(files, &[names(&FORMATS), names(&profile::FORMATS)].concat())
}

fn show(args: &ExplainArgs, found: &Findings, gathered: &GatheredLaunches) -> Result<Code, Fault> {
    let exports = exports(args)?;
    let aside = exports.iter().any(|export| export.path == Path::new("-"));
    let files = exports.iter().filter_map(|export| {
        let text = writer(&FORMATS, &export.format)?;
        Some((export.path.as_path(), text(found, gathered)))
    });
    let mut unwritten = output::write_files(files)?;
    for export in &exports {
        if let Some(write) = writer(&profile::FORMATS, &export.format) {
            let bytes = trees(found, gathered, write);
            unwritten = output::write_bytes(&export.path, &bytes).err().or(unwritten);
        }
    }
    let text = match args.results.json {
        true => json::text(found),
        false => terminal::text(found, ROWS, output::width()),
    };
    output::print_beside(aside, &text)?;
    unwritten.map_or(Ok(Code::Fine), Err)
}
