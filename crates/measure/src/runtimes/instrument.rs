//! The instrument that adds the agent to a launch and reads the records of the runtimes.

use super::Runtime;
use super::agent_folder::{AgentFolder, Mark};
use super::agent_records::{self, AgentOutput, AgentRecord, HookFile};
use super::elf::Elf;
use super::figures::{self, COMMON, RuntimeReport};
use super::go::EmptyProgram;
use super::stderr_report::StderrPipe;
use super::{ghc, go, jvm, ocaml, recognise, sbcl};
use crate::instrument::Instrument;
use crate::launcher::{Launch, LaunchResult};
use crate::program::{FileKind, Program};
use scruple_core::sample::Reading;
use std::ffi::OsString;

/// The instruments for language runtimes: a single one recognises all runtimes.
pub fn all() -> Vec<Box<dyn Instrument>> {
    vec![Box::new(Runtimes::new())]
}

/// Queries the language runtimes in the processes of a launch.
#[derive(Debug, Default)]
pub struct Runtimes {
    place: Option<AgentFolder>,
    cut: Option<StderrPipe>,
    nothing: String,
    expects_exit: bool,
    /// Why the counters of a stripped Go program cannot be read.
    stripped: Option<String>,
    log_collections: bool,
    collect_fully: bool,
    /// The runtimes of programs in the tree that cannot be asked, because nothing can be loaded into them.
    unreached: Vec<String>,
    reports: Vec<RuntimeReport>,
    logs: Vec<(i32, ghc::log::CollectionLog)>,
    pauses: Vec<(u64, u64)>,
}

impl Runtimes {
    /// An instrument that has not been attached yet.
    pub fn new() -> Runtimes {
        Runtimes::default()
    }

    /// Makes runtimes log every collection. Afterwards [`Runtimes::logs`] and [`Runtimes::pauses`] return the
    /// distribution and the times of pauses.
    pub fn logging_collections(mut self) -> Runtimes {
        self.log_collections = true;
        self
    }

    /// Makes runtimes perform full collections repeatedly, and reads the live size after them as [`figures::LIVE`].
    /// Other figures of such a launch do not describe the undisturbed program.
    pub fn collecting_fully(mut self) -> Runtimes {
        self.collect_fully = true;
        self
    }

    /// The reports of the processes of the last launch.
    pub fn reports(&self) -> &[RuntimeReport] {
        &self.reports
    }

    /// The processes of the current launch in which a runtime was found so far. Go programs are not among them.
    pub fn processes(&self) -> Vec<i32> {
        self.place.as_ref().map(|place| agent_records::processes(place.folder())).unwrap_or_default()
    }

    /// The times at which collections stopped processes of the last launch: start and end in nanoseconds on the
    /// monotonic clock. The stops of Go programs are not here: [`go::counters`] reads them from memory.
    ///
    /// # Errors
    /// Fails if a runtime collected without recording the times; says which.
    pub fn pauses(&self) -> Result<&[(u64, u64)], String> {
        let collected = |report: &&RuntimeReport| {
            report
                .figures
                .as_ref()
                .is_ok_and(|all| all.iter().any(|one| one.key == "gc.count" && one.value > 0.0))
        };
        let mut collected = self.reports.iter().filter(collected);
        match collected.clone().find(|report| !report.runtime.tells_when()) {
            Some(report) => {
                Err(format!("the runtime ({}) does not say when it collects", report.runtime.word()))
            }
            // A program without the agent, or whose runtime refuses, reports only sums.
            None if collected.any(|report| report.missing.is_some() || report.pid == 0) => {
                Err("the runtime could not be asked for each collection of this program".to_owned())
            }
            None => Ok(&self.pauses),
        }
    }

    /// The logs of collections of the last launch, by process id.
    pub fn logs(&self) -> &[(i32, ghc::log::CollectionLog)] {
        &self.logs
    }
}

impl Instrument for Runtimes {
    fn name(&self) -> &'static str {
        "runtimes"
    }

    fn available(&self, program: &Program) -> Result<(), String> {
        // The loader of another architecture would print an error about our library.
        let foreign = matches!(program.kind(), Ok(FileKind::Elf { native: false, .. }));
        match program.changes_user() || foreign {
            true => Err(recognise::nothing(program)),
            false => Ok(()),
        }
    }

    fn metrics(&self) -> &'static [&'static str] {
        COMMON
    }

    fn reads_go(&self) -> bool {
        true
    }

    fn decorate(&mut self, launch: &mut Launch) -> Result<(), String> {
        let place = match self.place.take() {
            Some(place) => place,
            None => AgentFolder::make()?,
        };
        let place = self.place.insert(place);
        // An interrupted launch may have left files behind.
        let _ = agent_records::take(place.folder());
        place
            .mark(Mark::EveryCollection, self.log_collections)
            .and_then(|()| place.mark(Mark::FullCollections, self.collect_fully))
            .map_err(|error| format!("the runtimes' folder cannot be written: {error}"))?;
        let program = Program { path: launch.path.clone() }.resolved();
        let wrapped = recognise::executed_by(&launch.argv, &launch.folder);
        self.nothing = recognise::nothing(wrapped.as_ref().unwrap_or(&program));
        self.cut = None;
        self.expects_exit = false;
        self.unreached = launch.options.seen.unreached.iter().cloned().collect();
        self.stripped = None;
        launch.options.read_counters = launch.options.seen.go;
        launch.options.empty_programs = go::empty_programs(&launch.options.seen);
        if self.collect_fully {
            let (often, much) = go::COLLECT_OFTEN;
            append(&mut launch.env, often, "", much, |user| !user.is_empty());
            append(&mut launch.env, "GODEBUG", ",", go::COLLECT_STOPPED, |user| {
                user.contains("gcstoptheworld")
            });
        }
        let Some(elf) = Elf::read(&program.path) else {
            place.preload(&mut launch.env);
            return Ok(());
        };
        let is = |runtime: Runtime| (runtime.adapter().find)(&elf).is_some();
        if let Some(behind) = &wrapped
            && Elf::read(&behind.path).is_some_and(|elf| go::is_stripped_go(&elf))
        {
            launch.options.empty_programs.extend(go::empty_program_of(&behind.path).ok());
        }
        if is(Runtime::Go) {
            let empty = go::is_stripped_go(&elf).then(|| go::empty_program_of(&program.path));
            launch.options.empty_programs.extend(empty.iter().flatten().cloned());
            self.expects_exit = !matches!(empty, Some(Err(_)));
            launch.options.read_counters = true;
            // Only the collections can be known of a program whose layout cannot be learnt.
            let unknown = empty.as_ref().is_some_and(Result::is_err)
                || launch.options.empty_programs.iter().any(EmptyProgram::is_missing);
            if empty.is_some()
                && unknown
                && append(&mut launch.env, "GODEBUG", ",", "gctrace=1", |words| words.contains("gctrace"))
            {
                self.cut = StderrPipe::into_stderr(Runtime::Go, &mut launch.stdio[2]).ok();
            }
            self.stripped = empty.and_then(Result::err);
        } else if !elf.dynamic && is(Runtime::Ghc) && ghc::grants_reports(&elf) {
            if append(&mut launch.env, "GHCRTS", " ", "-t", ghc::asks_for_reports) {
                self.cut = StderrPipe::into_stderr(Runtime::Ghc, &mut launch.stdio[2]).ok();
            }
        } else if !elf.dynamic && is(Runtime::Ocaml) {
            if append(&mut launch.env, "OCAMLRUNPARAM", ",", "v=0x400", |words| words.contains("v=")) {
                self.cut = StderrPipe::into_stderr(Runtime::Ocaml, &mut launch.stdio[2]).ok();
            }
        } else if launch.path == program.path
            && let Some(at) =
                if is(Runtime::Sbcl) { Some(0) } else { sbcl::index_in_wrapper(&launch.argv, &launch.folder) }
            && let Some(words) = sbcl::with_hook(&launch.argv[at..], &place.folder().join("hook.lisp"))
        {
            launch.argv.splice(at.., words);
        }
        place.preload(&mut launch.env);
        Ok(())
    }

    fn read(&mut self, outcome: &LaunchResult) -> Vec<Reading> {
        let left = self.place.as_ref().map(|place| agent_records::take(place.folder())).unwrap_or_default();
        self.reports = left
            .records
            .iter()
            .filter(|record| !record.only_executed())
            .map(|it| report_of(it, &left))
            .collect();
        self.reports.extend(of_forks(&left));
        self.logs = left
            .records
            .iter()
            .filter(|record| record.runtime == Runtime::Ghc)
            .filter_map(|record| Some((record.pid, ghc::log::read(&record.text())?)))
            .collect();
        let of_node = left.answers.iter().filter(|answer| answer.runtime == Runtime::Node);
        self.pauses = of_node.flat_map(super::node::pauses).collect();
        self.pauses.extend(left.records.iter().flat_map(|record| record.pauses.iter().copied()));
        // The log of a stripped Go program also contains the collections of other Go programs in the tree. The log
        // counts only if the counters of one of these programs are not known, because log and counters together would
        // count collections twice.
        let unknown = self.stripped.take().or_else(|| go::unknown_place(&outcome.exits));
        let log = self.cut.take().map(of_cut).and_then(|log| match log.runtime {
            Runtime::Go => unknown.map(|why| RuntimeReport { missing: Some(why), ..log }),
            _ => Some(log),
        });
        if !log.as_ref().is_some_and(|log| log.runtime == Runtime::Go) {
            self.reports.extend(outcome.exits.iter().map(|exit| go::report_of(exit, self.collect_fully)));
            if self.expects_exit && outcome.exits.is_empty() {
                self.reports.push(go::not_stopped());
            }
        }
        self.reports.extend(log);
        let mut readings = figures::readings(&self.reports, &self.nothing);
        if self.collect_fully {
            let live = [figures::LIVE, figures::LIVE_AT_MOST];
            readings.extend(live.map(|key| figures::live(key, &self.reports, &self.nothing)));
        }
        let lacking = match (&self.unreached[..], left.not_followed) {
            ([], 0) => None,
            ([], _) => Some(NOT_FOLLOWED.to_owned()),
            (runtimes, _) => Some(format!("{} {UNREACHED}", runtimes.join(", "))),
        };
        if let Some(why) = lacking {
            let unknown =
                |reading: &Reading| reading.value.as_ref().map_or_else(|why| *why == self.nothing, |_| true);
            for reading in readings.iter_mut().filter(|reading| unknown(reading)) {
                reading.value = Err(why.clone());
            }
        }
        readings
    }
}

/// The reason for absence where a program of the tree could not be followed.
const NOT_FOLLOWED: &str = "a program of the tree was started where the library that asks runtimes cannot be read (in a \
                            sandbox, below another root, or as another user), so what its runtime did is not known";

/// The reason for absence, after the names of runtimes.
const UNREACHED: &str = "in a program of the tree that is static or changes its user, so that nothing can be loaded into \
                         it: its figures are not known";

fn report_of(record: &AgentRecord, left: &AgentOutput) -> RuntimeReport {
    let mine = |answer: &&HookFile| answer.runtime == record.runtime && answer.pid == record.pid;
    let answers: Vec<&HookFile> = left.answers.iter().filter(mine).collect();
    let figures = match record.forked() && record.runtime.adapter().counts_from_its_parent {
        true => Err(format!(
            "a forked {0} process: its counters continue from those of its parent, which are not known",
            record.runtime.word()
        )),
        false => (record.runtime.adapter().figures_of)(record, &answers),
    };
    let missing = match (record.runtime, &figures) {
        (Runtime::Ghc, _) if record.refused() || !record.asked() => Some(ghc::FROM_MEMORY.to_owned()),
        (Runtime::Jvm, Ok(figures)) => jvm::why_no_live(record, figures),
        _ => None,
    };
    RuntimeReport { runtime: record.runtime, pid: record.pid, figures, missing }
}

/// The reports of forked children. Hooks answer in them too, but the agent keeps no record of them.
fn of_forks(left: &AgentOutput) -> Vec<RuntimeReport> {
    let known = |answer: &HookFile| {
        left.records.iter().any(|record| (record.runtime, record.pid) == (answer.runtime, answer.pid))
    };
    let mut reports: Vec<RuntimeReport> = Vec::new();
    for answer in left.answers.iter().filter(|answer| !known(answer)) {
        let (runtime, pid) = (answer.runtime, answer.pid);
        let figures = (runtime.adapter().figures_of)(&AgentRecord::of_fork(runtime, pid), &[answer]);
        reports.push(RuntimeReport { runtime, pid, figures, missing: None });
    }
    reports
}

fn of_cut(cut: StderrPipe) -> RuntimeReport {
    let (runtime, text) = cut.finish();
    let reports = match runtime {
        Runtime::Ghc => text.matches(ghc::report::BEGIN).count(),
        Runtime::Ocaml => text.lines().filter(|line| line.starts_with("minor_collections: ")).count(),
        _ => 1,
    };
    if reports > 1 {
        let why = format!(
            "{reports} processes of this static {} program reported on one stream, and the counters of a forked one \
             continue from those of its parent: link it dynamically",
            runtime.word()
        );
        return RuntimeReport { runtime, pid: 0, figures: Err(why), missing: None };
    }
    let figures = match runtime {
        Runtime::Ghc => ghc::report::one_line(&text).map(|report| report.figures()),
        Runtime::Go => go::gctrace_log::figures(&text),
        _ => ocaml::summary(&text),
    };
    let silent = || format!("the {} program ended without its report: it was killed", runtime.word());
    let missing = (runtime == Runtime::Ghc).then(|| format!("ghc: {}", ghc::STATIC));
    RuntimeReport { runtime, pid: 0, figures: figures.ok_or_else(silent), missing }
}

/// Appends words to a variable after the user's own words. Returns false, and changes nothing, if the user's words
/// already set the same, as `taken` determines.
fn append(
    env: &mut Vec<(OsString, OsString)>,
    name: &str,
    between: &str,
    words: &str,
    taken: impl Fn(&str) -> bool,
) -> bool {
    let own = env.iter().position(|(other, _)| other == name);
    let mut value = own.map(|at| env[at].1.clone()).unwrap_or_default();
    if taken(&value.to_string_lossy()) {
        return false;
    }
    if !value.is_empty() {
        value.push(between);
    }
    value.push(words);
    if let Some(at) = own {
        env.remove(at);
    }
    env.push((name.into(), value));
    true
}
