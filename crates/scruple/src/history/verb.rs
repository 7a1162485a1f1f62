//! `scruple history`: every version of a range, built once and weighed side by side.

mod clean;
mod page;
mod resumed;
pub mod wanted;

use super::args::{
    AcceptArgs, BuildArgs, HistoryArgs, HistoryVerb, PageArgs, StatusArgs, StoredArgs, TakeArgs, WhichArgs,
};
use super::build_process::SHARED;
use super::config::ConfiguredHistory;
use super::{
    Aim, HistoryEffort, Recipe, Request, Selection, Starter, Weighing, Which, accepted_changes, environment,
};
use crate::command::arms;
use crate::command::verb::{Asked, Source};
use crate::config::Config;
use crate::explain::changes;
use crate::fault::{Code, Fault};
use crate::git::Repository;
use crate::history;
use crate::new_run;
use crate::paths;
use crate::paths::WorkFolder;
use crate::progress::Progress;
use crate::show::json::timestamp;
use crate::show::output;
use scruple_core::harmless_text::plain;
use scruple_core::history::{Acceptance, History, State};
use scruple_core::run::Terms;
use scruple_measure::launcher::Launcher;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;
use wanted::{Wanted, check_size, put_here};

/// Rounds where the user does not say how many.
const ROUNDS: u32 = 20;
const ADAPTIVE_ROUNDS: u32 = 10;

/// Runs the sub-verb; without one, weighs a range.
pub fn history(args: &HistoryArgs) -> Result<Code, Fault> {
    match &args.verb {
        None => take(&args.take, Aim::Selection),
        Some(HistoryVerb::Bisect(args)) => take(args, Aim::Sets),
        Some(HistoryVerb::Extend(args)) => take(args, Aim::Beside),
        Some(HistoryVerb::Accept(args)) => accept(args),
        Some(HistoryVerb::Status(args)) => status(args),
        Some(HistoryVerb::Report(args)) => report(args),
        Some(HistoryVerb::Clean(args)) => clean::clean(args),
    }
}

fn take(args: &TakeArgs, aim: Aim) -> Result<Code, Fault> {
    let narrow = aim == Aim::Sets;
    page::check(&args.page)?;
    let launcher = start_launcher()?;
    let source = Source::open(args.scripted.as_deref())?;
    let args = &match aim {
        Aim::Selection => args.clone(),
        Aim::Sets | Aim::Beside => resumed::completed(args),
    };
    let config = Config::find()?;
    let configured = config.history()?;
    let effort = &args.effort;
    let time_limit = arms::duration(&args.build.time_limit)?;
    let terms = Terms { margin: arms::margin(&effort.margin)?, ..Terms::default() };
    let mut recipe = recipe(&args.build, configured.clone())?;
    recipe.clean |= effort.builds.is_some();
    put_here(&mut recipe, &config)?;
    let wanted = Wanted { command: &args.command, bench: args.bench, names: &args.names };
    let mut subjects = wanted.subjects(&config)?;
    check_size(&recipe, &subjects)?;
    if let Some(words) = &args.effort.yardstick {
        subjects.push(wanted::yardstick(words, &subjects, &config)?);
    }
    let request = Request {
        place: history::place_of(args.build.repo.as_deref())?,
        selection: selection(args, configured.range.clone())?,
        as_listed: narrow && !resumed::selects(args),
        recipe,
        subjects,
        effort: HistoryEffort {
            adaptive: narrow,
            fill: !narrow,
            rounds: effort.rounds.unwrap_or(if narrow || effort.adaptive { ADAPTIVE_ROUNDS } else { ROUNDS }),
            builds: effort.builds.unwrap_or(1),
            suspects: effort.rounds.unwrap_or(if narrow { 2 * ROUNDS } else { ROUNDS }),
            budget: match effort.rounds {
                Some(_) => None,
                None => Some(arms::duration(&effort.budget)?),
            },
        },
        adaptive: (narrow || effort.adaptive).then_some(true).or(effort.all.then_some(false)),
        same_output: args.build.same_output,
        time_limit: Some(time_limit),
        time_only: effort.time_only,
        retry: args.retry,
        keep_going: args.keep_going,
        aim,
    };
    let Some(store) = paths::open_store(&args.store)? else {
        return Err(Fault::usage("a history goes on from what is stored: leave out --no-store"));
    };
    let work = WorkFolder::make()?;
    let interrupted = new_run::interruption_flag()?;
    let label = args.store.label.as_deref();
    let fresh = match &source {
        Source::Script(_) => new_run::scripted_run(effort.seed, label, terms),
        Source::Machine(_) => {
            let mut run = new_run::empty_run(effort.seed, label, terms, &[]);
            environment::pin(&mut run.provenance);
            run
        }
    };
    let starter = Starter { launcher, weighing: source.pid(), interrupted: interrupted.clone() };
    let asked = if effort.time_only { Asked::default() } else { Asked::by(&args.page.metrics, &[]) };
    let weighing = Weighing {
        weigher: source.into_weigher(&interrupted, &work, &asked),
        progress: Progress::new(),
        work: work.path().to_owned(),
        instructions: asked.instructions,
    };
    let parts = || (request.place.clone(), request.recipe.clone(), request.subjects.clone());
    let explained = args.explain.then(parts);
    let (history, fault) = history::take(request, starter, weighing, store, || fresh)?;
    drop(work);
    page::show(&history, &args.page)?;
    if let Some((place, recipe, subjects)) = explained.filter(|_| fault.is_none()) {
        let of = changes::Of { place: &place, recipe: &recipe, subjects: &subjects, limit: time_limit };
        output::print_beside(args.page.json, &changes::explained(&history, &of)?)?;
    }
    match fault {
        Some(fault) => Err(fault),
        None if history.versions.iter().any(|version| version.state == State::Built) => Ok(Code::Fine),
        None => Err(Fault::program(
            "no version could be built and weighed: `scruple history status` says why, and --retry tries again",
        )),
    }
}

/// The launcher of builds, forked while the process is small.
pub fn start_launcher() -> Result<Launcher, Fault> {
    Launcher::start().map_err(|error| Fault::internal(format!("cannot fork the launcher process: {error}")))
}

fn selection(args: &TakeArgs, configured: Option<String>) -> Result<Selection, Fault> {
    let select = &args.select;
    let mut commits = Vec::new();
    let file = select.commits_from.as_ref().map(|path| format!("@{}", path.display()));
    for named in select.commits.iter().chain(&file) {
        // `@`, `@~2`, `@^` and `@{u}` are revisions.
        match named.strip_prefix('@').filter(|path| !path.is_empty() && !path.starts_with(['~', '^', '{'])) {
            Some(path) => commits.extend(commits_in(Path::new(path))?),
            None => commits.push(named.clone()),
        }
    }
    Ok(Selection {
        range: args.range.clone().or(configured.filter(|_| commits.is_empty())),
        first_parent: select.first_parent,
        merges: select.merges.then_some(true).or(select.no_merges.then_some(false)),
        tags: select.tags,
        every: select.every.map(|every| every as usize),
        steps: select.steps.map(|steps| steps as usize),
        since: select.since.clone(),
        until: select.until.clone(),
        commits,
    })
}

/// The commits that a file lists.
fn commits_in(path: &Path) -> Result<Vec<String>, Fault> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Fault::usage(format!("cannot read the commits in ‘{}’: {error}", path.display())))?;
    let commits: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    match commits.is_empty() {
        false => Ok(commits),
        true => Err(Fault::usage(format!("‘{}’ lists no commits: write one to a line", path.display()))),
    }
}

/// The recipe: the command line overrides the configuration.
pub fn recipe(args: &BuildArgs, configured: ConfiguredHistory) -> Result<Recipe, Fault> {
    let mut env = configured.env;
    for pair in &args.env {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| Fault::usage(format!("‘{pair}’ sets no variable: write --env NAME=VALUE")))?;
        env.insert(name.to_owned(), value.to_owned());
    }
    for name in SHARED {
        let outside = |value: &&String| Path::new(value.as_str()).is_absolute() || value.contains("..");
        if let Some(folder) = env.get(name).filter(outside) {
            return Err(Fault::usage(format!(
                "{name} is set to ‘{folder}’, which versions would share, and one could be weighed as the other: leave it out, \
                 or name a folder of the tree"
            )));
        }
    }
    let either = |given: &Vec<String>, configured: Vec<String>| match given.is_empty() {
        true => configured,
        false => given.clone(),
    };
    let limit: Duration = arms::duration(configured.limit.as_ref().unwrap_or(&args.build_limit))?;
    Ok(Recipe {
        steps: either(&args.build, configured.steps),
        artefacts: either(&args.artifact, configured.artefacts),
        check: args.check.clone().or(configured.check),
        env,
        toolchain: either(&args.toolchain, configured.toolchain),
        clean: args.clean || configured.clean,
        limit: Some(limit),
        overlays: configured.overlays,
        params: configured.params,
        size: configured.size,
    })
}

fn status(args: &StatusArgs) -> Result<Code, Fault> {
    let history = stored(&args.which, Which::Newest)?;
    match args.json {
        true => page::show_stored(&history, &PageArgs { json: true, ..PageArgs::default() }, None)?,
        false => output::print(&(states(&history) + &others(&args.which, &history)?))?,
    }
    Ok(Code::Fine)
}

fn report(args: &StoredArgs) -> Result<Code, Fault> {
    page::check(&args.page)?;
    let history = stored(&args.which, Which::Weighed)?;
    page::show_stored(&history, &args.page, args.pair.as_deref())?;
    Ok(Code::Fine)
}

fn stored(args: &WhichArgs, unnamed: Which<'_>) -> Result<History, Fault> {
    let store = paths::existing_store(args.store.as_deref())?;
    match &args.history {
        Some(name) => history::stored("", &Which::Named(name), &store),
        None => history::stored(&history::place_of(args.repo.as_deref())?, &unnamed, &store),
    }
}

/// The other histories of the repository, and how they are named.
fn others(args: &WhichArgs, shown: &History) -> Result<String, Fault> {
    let Ok(place) = history::place_of(args.repo.as_deref()) else { return Ok(String::new()) };
    let listed = paths::existing_store(args.store.as_deref())?.histories_of(&place)?;
    let mut text = String::new();
    for other in listed.iter().filter(|listed| listed.id != shown.run.id) {
        if text.is_empty() {
            text.push_str(
                "\nOther histories of this repository, which `status` and `report` show by their ids:\n",
            );
        }
        let words = shell_words::join(&other.argv);
        let started = timestamp(other.started);
        let _ = writeln!(text, "{}  {started}  {}  {}", other.id, other.state, plain(&words));
    }
    Ok(text)
}

/// The state of each version, with reasons.
fn states(history: &History) -> String {
    let state = history.run.state.word();
    let mut text = format!("{}  {}  {}  {state}\n", history.run.id, history.repository, history.range);
    for version in &history.versions {
        let _ = write!(text, "{}  {:12}  {}", version.short(), version.state.word(), version.title);
        if let Some(same) = &version.same_as {
            let _ = write!(text, "  (as {})", same.get(..10).unwrap_or(same));
        }
        text.push('\n');
        for more in version.why.iter().chain(&version.log) {
            let _ = writeln!(text, "            {more}");
        }
    }
    text
}

fn accept(args: &AcceptArgs) -> Result<Code, Fault> {
    output::check_metrics(args.metric.as_slice())?;
    let place = history::place_of(args.repo.as_deref())?;
    let repository = Repository::at(Path::new(&place));
    let revision = format!("{}^{{commit}}", args.commit);
    let commit = repository
        .ask(["rev-parse", "--verify", "--end-of-options", &revision])
        .map_err(|refused| refused.fault(&format!("there is no commit ‘{}’ in ‘{place}’", args.commit)))?;
    let reason = args.reason.trim().to_owned();
    if reason.is_empty() || reason.contains('\n') {
        return Err(Fault::usage("a reason is one line that says something: give it with --reason"));
    }
    let acceptance = Acceptance { subject: args.subject.clone(), metric: args.metric.clone(), reason };
    let text = accepted_changes::text(&acceptance);
    if !args.file {
        output::print(&format!("{}: {text}\n", accepted_changes::TRAILER))?;
        return Ok(Code::Fine);
    }
    let path = Path::new(&place).join(accepted_changes::FILE);
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| writeln!(file, "{commit} {text}"));
    written.map_err(|error| Fault::usage(format!("cannot write ‘{}’: {error}", path.display())))?;
    output::print(&format!("added to {}: commit it\n", path.display()))?;
    Ok(Code::Fine)
}
