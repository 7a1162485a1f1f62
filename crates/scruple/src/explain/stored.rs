//! Explains stored runs. Their commands are counted now, unless their call trees are stored.

use super::args::ExplainArgs;
use super::means::Means;
use super::sides::{self, SideSource};
use crate::fault::Fault;
use crate::inspect::single_launch;
use crate::profile::read;
use crate::store::Store;
use scruple_code::Side;
use scruple_core::harmless_text::list_names;
use scruple_core::run::Run;
use scruple_core::subject::{Arm, Role, Subject};
use scruple_measure::load::cost::server_process::ServerCommand;
use std::path::Path;

/// Whether the store has what a word names: a run, or in the form RUN@COMMIT a version of a history.
pub fn is_known(store: &Store, word: &str) -> bool {
    let run = word.split_once('@').map_or(word, |(run, _)| run);
    !run.is_empty() && store.find_id(run).is_ok()
}

/// Returns the subjects of both runs to compare: those with the requested name, or the only one that both runs have.
pub fn sources(args: &ExplainArgs, store: &Store, names: [&str; 2]) -> Result<[SideSource; 2], Fault> {
    if let [Some(first), Some(second)] = names.map(|name| name.split_once('@')) {
        return Ok([version(args, store, first)?, version(args, store, second)?]);
    }
    let runs = [store.find(names[0])?, store.find(names[1])?];
    let [first, second] = arms(args, &runs)?;
    let second_source = source(store, &runs[1], second, names[1])?;
    Ok([source(store, &runs[0], first, names[0])?, second_source])
}

/// Counts the subjects of a run now, and stores their call trees with it. Returns their names.
pub fn keep(args: &ExplainArgs, store: &Store, name: &str, means: &Means<'_>) -> Result<Vec<String>, Fault> {
    let run = store.find(name)?;
    let wanted = |arm: &&Arm| args.name.as_ref().is_none_or(|name| arm.name == *name);
    let mut kept = Vec::new();
    for arm in run.arms_of(Role::Subject).filter(wanted) {
        let source = launched(&run, arm, name)?;
        let runs = sides::runs_of(source, means, &mut None)?;
        let parts: Vec<Vec<u8>> =
            runs.iter().map(|side| read::own_format_bytes(&arm.name, true, side)).collect();
        store.put_calls(&run.id, &arm.name, &parts)?;
        kept.push(arm.name.clone());
    }
    match kept.is_empty() {
        true => Err(Fault::usage(format!("the run ‘{name}’ has no subject of that name"))),
        false => Ok(kept),
    }
}

/// Returns the call trees of a version of a history, which were stored when its changes were explained.
fn version(args: &ExplainArgs, store: &Store, (run, commit): (&str, &str)) -> Result<SideSource, Fault> {
    let id = store.find_id(run)?;
    let all = store.names_of_calls(&id)?;
    let is_wanted = |name: &&String| {
        let subject = name.split_once(' ').map_or("", |(_, subject)| subject);
        !commit.is_empty()
            && name.starts_with(commit)
            && args.name.as_ref().is_none_or(|wanted| wanted == subject)
    };
    let found: Vec<&String> = all.iter().filter(is_wanted).collect();
    match found.as_slice() {
        [name] => {
            let parts = store.calls(&id, name)?;
            Ok(SideSource::Kept { name: (*name).clone(), runs: sides_of(&parts, run)? })
        }
        [] => Err(Fault::usage(format!(
            "no call tree of the version ‘{commit}’ is kept with ‘{run}’: `scruple history --explain` keeps those on both \
             sides of each change"
        ))),
        several => {
            let names: Vec<&str> = several.iter().map(|name| name.as_str()).collect();
            Err(Fault::usage(format!("‘{commit}’ may be {}: name one with --name", list_names(&names))))
        }
    }
}

fn sides_of(parts: &[Vec<u8>], run: &str) -> Result<Vec<Side>, Fault> {
    let of = |bytes: &Vec<u8>| -> Result<Side, Fault> {
        let damaged =
            |why| Fault::usage(format!("the tree that was kept with the run ‘{run}’ is damaged: {why}"));
        Ok(read::parse(bytes).map_err(damaged)?.side)
    };
    parts.iter().map(of).collect()
}

fn arms<'a>(args: &ExplainArgs, runs: &'a [Run; 2]) -> Result<[&'a Arm; 2], Fault> {
    let subjects = |run: &'a Run| run.arms_of(Role::Subject).collect::<Vec<&Arm>>();
    let [first, second] = [subjects(&runs[0]), subjects(&runs[1])];
    let find = |arms: &[&'a Arm], name: &str| arms.iter().find(|arm| arm.name == name).copied();
    if let Some(name) = &args.name {
        return match (find(&first, name), find(&second, name)) {
            (Some(one), Some(other)) => Ok([one, other]),
            _ => Err(Fault::usage(format!("not both runs have a subject that is called ‘{name}’"))),
        };
    }
    let both: Vec<[&Arm; 2]> =
        first.iter().filter_map(|arm| Some([*arm, find(&second, &arm.name)?])).collect();
    match (both.as_slice(), first.as_slice(), second.as_slice()) {
        ([one], _, _) => Ok(*one),
        ([], [one], [other]) => Ok([one, other]),
        ([], _, _) => {
            Err(Fault::usage("the runs have no subject of the same name, so nothing can be compared"))
        }
        _ => {
            let names: Vec<&str> = both.iter().map(|pair| pair[0].name.as_str()).collect();
            Err(Fault::usage(format!("both runs have {}: name one with --name", list_names(&names))))
        }
    }
}

fn source(store: &Store, run: &Run, arm: &Arm, name: &str) -> Result<SideSource, Fault> {
    let parts = store.calls(&run.id, &arm.name)?;
    if parts.is_empty() {
        return launched(run, arm, name);
    }
    Ok(SideSource::Kept {
        name: format!("{} of {name}, as kept with it", arm.name),
        runs: sides_of(&parts, name)?,
    })
}

/// Returns the source that launches a weighed subject again, if its program still exists.
fn launched(run: &Run, arm: &Arm, name: &str) -> Result<SideSource, Fault> {
    let folder = Path::new(&run.provenance.folder);
    let job = |words: &[String]| {
        let mut job = single_launch::job_in(words, folder)?;
        let path = job.program.path.display().to_string();
        let was = run.provenance.programs.get(&path);
        if let (Some(was), Some(is)) = (was, scruple_code::file_digest(&job.program.path))
            && *was != is
        {
            let commit = run.provenance.commit.as_deref().map_or(String::new(), |commit| {
                let commit = &commit[..10.min(commit.len())];
                format!("; it was taken at commit {commit}, which `scruple explain --build … {commit} … -- …` builds")
            });
            return Err(Fault::usage(format!(
                "‘{path}’ is another program than when the run ‘{name}’ was taken, and its call tree was not kept \
                 (`scruple explain --keep RUN` keeps it){commit}"
            )));
        }
        job.name = format!("{} of {name}", arm.name);
        Ok(Box::new(job))
    };
    match &arm.subject {
        Subject::Command { argv } => Ok(SideSource::Command(job(argv)?)),
        Subject::Case { name, program, .. } => {
            Ok(SideSource::Case { job: job(program)?, name: name.clone() })
        }
        Subject::Request { url, server, .. } if !server.is_empty() => {
            let mut command = ServerCommand::of(server.iter().map(Into::into).collect());
            command.folder = Some(folder.to_owned());
            Ok(SideSource::Server { command, url: url.clone() })
        }
        Subject::Request { .. } => Err(Fault::usage(format!(
            "the server of the run ‘{name}’ was not started by Scruple, so it cannot be counted: explain two commands \
             with --url"
        ))),
    }
}
