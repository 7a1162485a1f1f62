//! `scruple history`: every version of a range, built once and weighed side by side.

mod clean;
pub mod page;

use super::args::{
    AcceptArgs, HistoryArgs, HistoryVerb, PageArgs, StatusArgs, StoredArgs, TakeArgs, WhichArgs,
};
use super::{Aim, HistoryChoice, WeighingTools, resolve};
use crate::command::verb::{ReadingSource, RequestedInstruments};
use crate::config::Config;
use crate::explain::changes;
use crate::farm::Farm;
use crate::fault::{Code, Fault};
use crate::git::{GitError, Repository};
use crate::history;
use crate::interruption;
use crate::new_run;
use crate::paths::WorkFolder;
use crate::progress::Progress;
use crate::render::json::moment;
use crate::render::output;
use crate::run_report::metrics_and_limits;
use crate::store::open_store;
use crate::versions::{self, BuildStarter, accepted_changes, environment};
use clap::Subcommand as _;
use scruple_core::harmless_text::plain;
use scruple_core::history::{Acceptance, History, VersionState};
use scruple_core::provenance::short_commit;
use scruple_measure::launcher::Launcher;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// Runs the subcommand; without one, weighs a range.
pub fn history(args: &HistoryArgs) -> Result<Code, Fault> {
    match &args.verb {
        None => {
            refuse_misplaced_subcommand(&args.take)?;
            take(&args.take, Aim::Selection)
        }
        Some(HistoryVerb::Bisect(args)) => take(args, Aim::Sets),
        Some(HistoryVerb::Extend(args)) => take(args, Aim::Beside),
        Some(HistoryVerb::Accept(args)) => accept(args),
        Some(HistoryVerb::Status(args)) => status(args),
        Some(HistoryVerb::Report(args)) => report(args),
        Some(HistoryVerb::Clean(args)) => clean::clean(args),
    }
}

/// Returns an error if the range is a subcommand that stands behind options, and no revision.
fn refuse_misplaced_subcommand(args: &TakeArgs) -> Result<(), Fault> {
    let Some(word) = args.range.as_deref().filter(|word| HistoryVerb::has_subcommand(word)) else {
        return Ok(());
    };
    let place = versions::place_of(args.build.repo.as_deref())?;
    match Repository::at(Path::new(&place)).commit(word) {
        Ok(_) => Ok(()),
        Err(_) => Err(Fault::usage(format!(
            "‘{word}’ is no revision; if it is the subcommand, write it before all options: `scruple history {word} …`"
        ))),
    }
}

fn take(args: &TakeArgs, aim: Aim) -> Result<Code, Fault> {
    let launcher = start_launcher()?;
    let source = ReadingSource::open(args.scripted.as_deref())?;
    let (request, terms) = resolve::resolve(args, aim)?;
    let effort = &args.effort;
    let store = open_store::for_history(&args.store)?;
    let farm = match &source {
        ReadingSource::Machine(_) => Farm::of(&Config::find()?)?,
        ReadingSource::Script(_) => None,
    };
    if request.effort.builds > 1 && farm.as_ref().is_some_and(Farm::builds_on_nodes) {
        return Err(Fault::usage(
            "nodes build every version only once: leave out --builds, or write builds = \"here\" into [farm]",
        ));
    }
    let work = WorkFolder::make()?;
    let interrupted = interruption::flag()?;
    let label = args.store.label.as_deref();
    let fresh = match &source {
        ReadingSource::Script(_) => new_run::scripted_run(effort.seed, label, terms),
        ReadingSource::Machine(_) => {
            let mut run = new_run::empty_run(effort.seed, label, terms, &[]);
            environment::record(&mut run.provenance);
            run
        }
    };
    let starter = BuildStarter { launcher, weighing: source.pid(), interrupted: interrupted.clone() };
    let asked = if request.of.time_only {
        RequestedInstruments::default()
    } else {
        RequestedInstruments::by(&args.page.metrics, &[])
    };
    let weighing = WeighingTools {
        weigher: source.into_weigher(&interrupted, &work, &asked)?,
        progress: Progress::new(),
        work: work.path().to_owned(),
        instructions: asked.instructions,
        requested: asked.requested,
    };
    let explained = args.explain.then(|| (request.place.clone(), request.of.clone()));
    let (history, fault) = history::take(request, starter, weighing, store, farm, || fresh)?;
    drop(work);
    let mut explanations = String::new();
    if let (Some((place, of)), None) = (explained, &fault) {
        let store = open_store::for_history(&args.store)?;
        let of = changes::RebuildContext {
            place: &place,
            recipe: &of.recipe,
            subjects: &of.subjects,
            limit: of.time_limit,
            store: Some(&store),
        };
        explanations = changes::explained(&history, &of)?;
    }
    let known = changes::known(&open_store::for_history(&args.store)?, &history.run.id)?;
    page::show(&history, known, &args.page)?;
    if !explanations.is_empty() {
        output::print_beside(args.page.json, &explanations)?;
    }
    match fault {
        Some(fault) => Err(fault),
        None if history.versions.iter().any(|version| version.state == VersionState::Built) => Ok(Code::Fine),
        None => Err(Fault::program(
            "no version could be built and weighed: `scruple history status` says why, and --retry tries again",
        )),
    }
}

/// Starts the launcher of builds. It is forked while this process is small.
pub fn start_launcher() -> Result<Launcher, Fault> {
    Launcher::start().map_err(|error| Fault::internal(format!("cannot fork the launcher process: {error}")))
}

fn status(args: &StatusArgs) -> Result<Code, Fault> {
    let history = stored(&args.which, HistoryChoice::Newest)?;
    match args.json {
        true => {
            page::show_stored(&history, Vec::new(), &PageArgs { json: true, ..PageArgs::default() }, None)?
        }
        false => output::print(&(states(&history) + &others(&args.which, &history)?))?,
    }
    Ok(Code::Fine)
}

fn report(args: &StoredArgs) -> Result<Code, Fault> {
    page::check(&args.page)?;
    let history = stored(&args.which, HistoryChoice::Weighed)?;
    let known = changes::known(&open_store::existing(args.which.store.as_deref())?, &history.run.id)?;
    page::show_stored(&history, known, &args.page, args.pair.as_deref())?;
    Ok(Code::Fine)
}

fn stored(args: &WhichArgs, unnamed: HistoryChoice<'_>) -> Result<History, Fault> {
    let store = open_store::existing(args.store.as_deref())?;
    match &args.history {
        Some(name) => history::stored("", &HistoryChoice::Named(name), &store),
        None => history::stored(&versions::place_of(args.repo.as_deref())?, &unnamed, &store),
    }
}

/// Lists the other histories of the repository, and how to name them.
fn others(args: &WhichArgs, shown: &History) -> Result<String, Fault> {
    let Ok(place) = versions::place_of(args.repo.as_deref()) else { return Ok(String::new()) };
    let listed = open_store::existing(args.store.as_deref())?.histories_of(&place)?;
    let mut text = String::new();
    for other in listed.iter().filter(|listed| listed.id != shown.run.id) {
        if text.is_empty() {
            text.push_str("\nOther histories of this repository (`status` and `report` show them by id):\n");
        }
        let words = shell_words::join(&other.argv);
        let started = moment(other.started);
        let _ = writeln!(text, "{}  {started}  {}  {}", other.id, other.state, plain(&words));
    }
    Ok(text)
}

/// Lists the state of each version, with reasons.
fn states(history: &History) -> String {
    let state = history.run.state.word();
    let [repository, range] = [&history.repository, &history.range].map(|text| plain(text));
    let mut text = format!("{}  {repository}  {range}  {state}\n", history.run.id);
    for version in &history.versions {
        let _ = write!(text, "{}  {:12}  {}", version.short(), version.state.word(), plain(&version.title));
        if let Some(same) = &version.same_as {
            let _ = write!(text, "  (as {})", short_commit(same));
        }
        text.push('\n');
        for more in version.why.iter().chain(&version.log) {
            let _ = writeln!(text, "            {}", plain(more));
        }
    }
    text
}

fn accept(args: &AcceptArgs) -> Result<Code, Fault> {
    metrics_and_limits::check_metrics(args.metric.as_slice())?;
    let place = versions::place_of(args.repo.as_deref())?;
    let repository = Repository::at(Path::new(&place));
    let commit = repository.commit(&args.commit).map_err(|refused| match refused {
        GitError::Message(_) => {
            let named = &args.commit;
            Fault::usage(format!("there is no commit ‘{named}’ in ‘{place}’: `git log` lists what there is"))
        }
        refused => refused.fault(""),
    })?;
    let reason = args.reason.trim().to_owned();
    if reason.is_empty() || reason.contains('\n') {
        return Err(Fault::usage("a reason is one line of text: give it with --reason"));
    }
    let named = |name: &Option<String>| name.clone().filter(|name| name != "*");
    let acceptance = Acceptance { subject: named(&args.subject), metric: named(&args.metric), reason };
    let text = accepted_changes::text(&acceptance);
    if text.contains('\n') || accepted_changes::parse(&text).as_ref() != Some(&acceptance) {
        let name = plain(args.subject.as_deref().unwrap_or_default());
        return Err(Fault::usage(format!(
            "an acceptance cannot name ‘{name}’: a subject is one line, without a colon and a space after it"
        )));
    }
    if !args.file {
        output::print(&format!("{}: {text}\n", accepted_changes::TRAILER))?;
        return Ok(Code::Fine);
    }
    let path = Path::new(&place).join(accepted_changes::FILE);
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| writeln!(file, "{commit} {text}"));
    written.map_err(|error| Fault::usage(format!("cannot write ‘{}’: {error}", path.display())))?;
    output::print(&format!("added to ‘{}’: commit it\n", path.display()))?;
    Ok(Code::Fine)
}
