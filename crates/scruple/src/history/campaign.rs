//! A history under way: builds versions, weighs them, and stores the result of each step before the next one begins.

mod builds;
mod do_unit;
mod forecast;
mod given_launches;
mod journal;
mod known;
mod rebuilding;
mod refinement;
mod split_into_units;
mod visits;

use super::arms::Arms;
use super::benches::Benches;
use super::schedule::{HistoryEffort, Step, next_step};
use super::{Aim, Request, remarks, view};
use crate::farm::Farm;
use crate::fault::Fault;
use crate::progress::Progress;
use crate::store::{Entry, Store, StoredHistory};
use crate::versions::artefacts::Artefacts;
use crate::versions::build::{Builder, Outcome};
use crate::versions::environment;
use crate::versions::subjects::Template;
use builds::{BUILD, Builds, EARLIER_BUILD};
use forecast::Forecast;
use given_launches::GivenLaunches;
use journal::Journal;
use refinement::Suspected;
use scruple_core::history::{Graph, History, READINGS, State, Version, find_changes};
use scruple_core::metric::{Pass, metric};
use scruple_core::run;
use scruple_core::sample::{BLOCKS_OF_A_VISIT, Reading};
use scruple_core::sorting;
use scruple_core::unit::{Unit, quantity};
use scruple_core::visit_order::VisitOrder;
use scruple_measure::command::Weigher;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How many versions with the same artefacts are timed as well, at most. The spread among them is the noise floor.
const TWINS: usize = 2;
/// The number of launches of the memory pass, and of each instrument in the counting pass, if a launch takes between
/// `BRIEF` and `LONG`. Programs that take longer get one launch. Briefer ones get as many as a verdict needs; in
/// the counting pass only if their counts differ.
const REPEATS: u32 = 2;
const LONG: Duration = Duration::from_secs(20);
const BRIEF: Duration = Duration::from_secs(5);
/// How many times, at different moments, the versions on both sides of an exact change are counted.
const VISITS: u32 = 2;
/// The false discovery rate: the accepted share of false changes among the reported ones.
pub const ERROR: f64 = 0.05;

/// A history under way.
pub struct Campaign {
    journal: Journal,
    builds: Builds,
    instruments: Instruments,
    scope: Scope,
    questions: OpenQuestions,
    forecast: Forecast,
    progress: Progress,
    interrupted: Arc<AtomicBool>,
    /// The number of the next round.
    block: u32,
}

/// What weighs the versions, always in the same environment.
struct Instruments {
    weigher: Box<dyn Weigher>,
    benches: Benches,
    /// The environment of counting launches.
    environment: Vec<(OsString, OsString)>,
    time_limit: Option<Duration>,
    /// Whether instructions are counted.
    instructions: bool,
    /// Whether the user asked for instructions.
    requested: bool,
}

/// What is weighed, and how often.
struct Scope {
    subjects: Vec<Template>,
    /// The indices of the subjects that are weighed; `None` means all.
    part: Option<Vec<usize>>,
    effort: HistoryEffort,
    /// How the launches of a command are divided, if the user gave their number.
    given: Option<GivenLaunches>,
    same_output: bool,
    time_only: bool,
}

/// Where the versions that cause changes are still looked for.
struct OpenQuestions {
    graph: Graph,
    suspected: Vec<Suspected>,
    /// Versions that need to be counted again. The next one to count is at the end.
    again: Vec<usize>,
}

impl Campaign {
    /// Creates a campaign that continues from the current state of the history.
    pub fn new(
        store: Store,
        history: StoredHistory,
        trees: HashMap<String, String>,
        builder: Builder,
        (weighing, interrupted): (super::Weighing, Arc<AtomicBool>),
        request: &Request,
        effort: HistoryEffort,
    ) -> Result<Campaign, Fault> {
        let blocks = history.run.arms.iter().filter_map(|arm| arm.sample("time.wall")?.blocks.iter().max());
        let block = blocks.max().map_or(0, |last| last + 1);
        let versions: Vec<Version> = history.entries.iter().map(|entry| entry.version.clone()).collect();
        let time_limit = Some(request.of.time_limit);
        let instruments = weighing.weigher.counting_launches();
        let given =
            effort.launches.map(|launches| GivenLaunches::of(launches, instruments, request.of.time_only));
        let effort = match given {
            Some(given) => HistoryEffort { rounds: given.timed, suspects: given.timed, ..effort },
            None => effort,
        };
        let mut campaign = Campaign {
            instruments: Instruments {
                weigher: weighing.weigher,
                benches: Benches::new(weighing.work, weighing.instructions, interrupted.clone(), time_limit),
                environment: environment::pinned(&history.run.provenance),
                time_limit,
                instructions: weighing.instructions,
                requested: weighing.requested,
            },
            scope: Scope {
                subjects: request.of.subjects.clone(),
                part: None,
                effort,
                given,
                same_output: request.of.same_output,
                time_only: request.of.time_only,
            },
            questions: OpenQuestions {
                graph: Graph::of(&versions),
                suspected: Vec::new(),
                again: Vec::new(),
            },
            forecast: Forecast::default(),
            progress: weighing.progress,
            interrupted,
            block,
            journal: {
                let arms = Arms::of(&history.run, &request.of.subjects, &builder);
                Journal::resume(store, history, arms)?
            },
            builds: Builds::new(builder, trees, request.keep_going),
        };
        if request.aim == Aim::Sets {
            campaign.narrow();
        }
        Ok(campaign)
    }

    /// Continues until no work is left. If an error ends the run, the work before it is kept. `begun` says that the
    /// store already lists the history as running.
    pub fn run(&mut self, begun: bool, mut farm: Option<&mut Farm>) -> Result<(), Fault> {
        let mut begun = begun;
        let mut result = Ok(());
        while result.is_ok() {
            let seen = self.seen();
            let unclear = self.unclear(&seen);
            let step = match next_step(
                &seen,
                &self.questions.graph,
                &self.scope.effort,
                self.journal.spent(self.scope.effort.adaptive),
                |a, b| self.difference(&unclear, a, b),
            ) {
                Step::Done => self.unconfirmed().map_or(Step::Done, Step::Count),
                step => step,
            };
            if step == Step::Done {
                break;
            }
            if !begun {
                begun = true;
                result = self.journal.begin();
            }
            let places = farm.as_mut().map(|farm| farm.places()).transpose();
            result = result.and_then(|()| self.foretell(&seen, places?));
            if result.is_ok()
                && let Some(farm) = &mut farm
                && !matches!(step, Step::Rebuild(_))
            {
                result = self.hand_out_step(farm, step, &seen);
            } else if result.is_ok() {
                result = match step {
                    Step::Build(index) => self.build_and_try(index),
                    Step::Count(index) => self.count(index),
                    Step::Block(set) => self.take_block(&set),
                    Step::Rebuild(set) => self.rebuild(&set),
                    Step::Done => Ok(()),
                };
            }
        }
        self.progress.clear();
        if !begun && self.journal.history.run.state != run::State::Complete {
            // The interrupted history had no work left.
            begun = true;
            self.journal.begin()?;
        }
        if !begun {
            remarks::end(&mut self.journal.history);
        }
        match begun {
            true => self.journal.end(result),
            false => result,
        }
    }

    /// Converts the campaign into the history that reports use.
    pub fn into_history(self) -> History {
        view(self.journal.history)
    }

    /// Returns the next version on either side of an exact change that was not counted again yet. Counting again is
    /// necessary because a program may depend on things outside the repository, which two consecutive counts do not
    /// reveal.
    fn unconfirmed(&mut self) -> Option<usize> {
        if self.scope.time_only || self.scope.given.is_some() {
            return None;
        }
        if self.questions.again.is_empty() {
            let entries = &self.journal.history.entries;
            let original = |index: usize| match &entries[index].version.same_as {
                Some(same) => entries.iter().position(|entry| entry.version.commit == *same).unwrap_or(index),
                None => index,
            };
            let judged = find_changes(&self.journal.view(), ERROR).series;
            let counts =
                judged.iter().filter(|one| (one.exact || one.shifting) && !one.metric.starts_with("build."));
            let sides: BTreeSet<usize> =
                sorting::set(counts.flat_map(|series| series.borders.as_flattened()).copied().map(original));
            let open = |index: &usize| {
                entries[*index].version.state == State::Built && entries[*index].counted < VISITS
            };
            self.questions.again = sides.into_iter().rev().filter(open).collect();
        }
        self.questions.again.pop()
    }

    /// Builds a version. If no cost of this history is known, it is counted at once: only a launch shows what is ahead.
    fn build_and_try(&mut self, index: usize) -> Result<(), Fault> {
        self.build(index)?;
        let tried =
            self.scope.time_only || self.journal.history.entries.iter().any(|entry| entry.counted > 0);
        match self.journal.history.entries[index].version.state {
            State::Built if !tried => self.count(index),
            _ => Ok(()),
        }
    }

    fn build(&mut self, index: usize) -> Result<(), Fault> {
        let version = &mut self.journal.history.entries[index].version;
        version.state = State::Building;
        let commit = version.commit.clone();
        let tried = |entry: &&Entry| entry.artefacts.is_some() || entry.version.state.failed();
        let built = self.journal.history.entries.iter().filter(tried).count();
        let title = &self.journal.history.entries[index].version.title;
        self.progress.tell("building", built, self.journal.history.entries.len(), title);
        self.journal.put(index, &[])?;
        let outcome = match self.builds.build(&commit) {
            Ok(outcome) => outcome,
            Err(fault) => {
                self.journal.history.entries[index].version.state = State::Queued;
                self.journal.put(index, &[])?;
                return Err(fault);
            }
        };
        let title = &self.journal.history.entries[index].version;
        let name = format!("{} {}", title.short(), title.title);
        let number = format!("{} of {}", built + 1, self.journal.history.entries.len());
        match outcome {
            Outcome::Failed(state, why) => {
                self.progress.done(&format!("version {number} failed: {name}: {why}"));
                let log = self.builds.log(&commit).display().to_string();
                let version = &mut self.journal.history.entries[index].version;
                (version.state, version.why, version.log) = (state, Some(why), Some(log.clone()));
                self.journal.put(index, &[])?;
                self.builds.failed(&name, &log)
            }
            Outcome::Ready(artefacts) => {
                self.builds.succeeded();
                let took = quantity(artefacts.time as f64, &Unit::Nanoseconds);
                let how = if artefacts.reused { "was built before," } else { "built" };
                self.progress.done(&format!("version {number} {how} in {took}: {name}"));
                self.built(index, &commit, &artefacts)
            }
        }
    }

    /// Records a successful build: the state of the version, its arms, and the cost of the build.
    fn built(&mut self, index: usize, commit: &str, artefacts: &Artefacts) -> Result<(), Fault> {
        let effective = self.builds.builder.effective(commit);
        let twin = self.journal.history.entries.iter().find(|other| {
            let theirs = || self.builds.builder.effective(&other.version.commit);
            other.version.state == State::Built
                && other.artefacts.as_ref() == Some(&artefacts.digest)
                && (theirs().params, theirs().env) == (effective.params.clone(), effective.env.clone())
        });
        let same_as = twin.map(|twin| twin.version.commit.clone());
        let entry = &mut self.journal.history.entries[index];
        entry.version.state = if same_as.is_some() { State::SameBinary } else { State::Built };
        (entry.version.same_as, entry.artefacts) = (same_as, Some(artefacts.digest.clone()));
        self.add_arms(index)?;
        let Some(arm) = self.journal.arms.launched(0, commit).first().copied() else { return Ok(()) };
        // Without build steps there is no build, and therefore no build time and no size.
        let nothing = self.builds.builder.effective(commit).steps.is_empty();
        if nothing || self.journal.history.run.arms[arm].figures.contains_key("build.bytes") {
            return Ok(());
        }
        let reading = |key: &str, value: f64, source: &str| Some(Reading::of(metric(key)?, value, source));
        let readings = [
            reading(
                "build.time",
                artefacts.time as f64,
                if artefacts.reused { EARLIER_BUILD } else { BUILD },
            ),
            reading("build.bytes", artefacts.bytes as f64, "sizes of files"),
        ];
        self.journal.keep(arm, Pass::Build, 0, readings.into_iter().flatten().collect())
    }

    /// Creates the arms of a version, unless they exist, and stores the version.
    fn add_arms(&mut self, index: usize) -> Result<(), Fault> {
        let commit = &self.journal.history.entries[index].version.commit.clone();
        let effective = self.builds.builder.effective(commit);
        let mut arms = Vec::new();
        for (subject, template) in self.scope.subjects.iter().enumerate() {
            if self.journal.arms.launched(subject, commit).is_empty() {
                arms.extend(template.arms(commit, &effective).into_iter().map(|arm| (subject, arm)));
            }
        }
        self.journal.add_arms(index, arms)
    }

    /// Makes sure that the artefacts of a version exist, and builds them again if they were removed. Returns false if
    /// that is no longer possible, and records the reason as the state of the version.
    fn is_at_hand(&mut self, index: usize) -> Result<bool, Fault> {
        let entry = &self.journal.history.entries[index];
        let digest = entry.artefacts.clone().unwrap_or_default();
        if self.builds.builder.cache.has(&digest)? {
            return Ok(true);
        }
        let commit = entry.version.commit.clone();
        self.progress.tell("building", index, self.journal.history.entries.len(), "what was cleaned away");
        match self.builds.build(&commit)? {
            Outcome::Ready(artefacts) => {
                // A rebuilt version counts as the same commit even if its artefacts are not byte for byte the same.
                self.journal.history.entries[index].artefacts = Some(artefacts.digest);
                self.journal.put(index, &[]).map(|()| true)
            }
            Outcome::Failed(state, why) => self.reject(index, state, why, "").map(|()| false),
        }
    }

    /// Runs the memory and counting passes of one version.
    fn count(&mut self, index: usize) -> Result<(), Fault> {
        if !self.is_at_hand(index)? {
            return Ok(());
        }
        let counting = self.instruments.weigher.counting_launches();
        let first_block = self.journal.history.entries[index].counted * BLOCKS_OF_A_VISIT;
        for (subject, launch) in self.launches(index) {
            if self.scope.subjects[subject].yardstick {
                continue;
            }
            let mut first = None;
            for (pass, least, most) in self.other_passes(self.scope.subjects[subject].bench, counting) {
                for block in 0..most {
                    let by_number = pass == Pass::Memory && self.scope.effort.budget.is_none();
                    let long = |limit| !by_number && first.is_some_and(|first| first > limit);
                    if block >= least && long(LONG) {
                        break;
                    }
                    let repeats = || self.repeats(index, (subject, launch), first_block);
                    let settled = || long(BRIEF) || pass == Pass::Counting && repeats();
                    if block == least * REPEATS && settled() {
                        break;
                    }
                    let block = first_block + block;
                    let Some(weighing) = self.visit(index, (subject, launch), pass, block, 0)? else {
                        match self.journal.history.entries[index].version.state {
                            State::Built => break,
                            _ => return Ok(()),
                        }
                    };
                    first = first.or(Some(weighing));
                    self.forecast.launch = self.forecast.launch.or(Some(weighing));
                }
            }
        }
        self.journal.history.entries[index].counted += 1;
        let version = &self.journal.history.entries[index].version;
        self.progress.done(&format!("counted and checked: {} {}", version.short(), version.title));
        self.journal.put(index, &[])
    }

    /// Returns the passes besides the timing pass, each with the launches after which every instrument has run once, and
    /// with the most launches.
    fn other_passes(&self, bench: bool, instruments: u32) -> Vec<(Pass, u32, u32)> {
        // If the user wants few rounds, these passes have few launches as well.
        let enough = (READINGS as u32).min(self.scope.effort.rounds).max(REPEATS);
        let usual = GivenLaunches { timed: 0, memory: enough, instruments, counted: enough };
        let given = self.scope.given.unwrap_or(usual);
        match bench {
            // The memory of the process does not belong to any single case.
            true => vec![(Pass::Counting, 1, REPEATS.min(given.others()))],
            false => vec![
                (Pass::Memory, 1, given.memory),
                (Pass::Counting, given.instruments, given.instruments * given.counted),
            ],
        }
    }

    /// Whether the counts of a command, from a given block on, are the same in each launch.
    fn repeats(&self, index: usize, (subject, launch): (usize, usize), from: u32) -> bool {
        let launched =
            self.journal.arms.launched(subject, &self.journal.history.entries[index].version.commit);
        let Some(arm) = launched.get(launch).map(|place| &self.journal.history.run.arms[*place]) else {
            return true;
        };
        let samples = arm.figures.keys().filter_map(|key| arm.sample(key));
        samples.filter(|sample| sample.pass == Pass::Counting).all(|sample| {
            let readings = sample.blocks.iter().zip(&sample.readings);
            let mut recent = readings.filter(|(block, _)| **block >= from).map(|(_, value)| value);
            let first = recent.next();
            recent.all(|value| Some(value) == first)
        })
    }

    /// Returns the launches of one block at a version: the index of each subject with the number of the launch.
    fn launches(&self, index: usize) -> Vec<(usize, usize)> {
        let effective = self.builds.builder.effective(&self.journal.history.entries[index].version.commit);
        let of = |(subject, template): (usize, &Template)| {
            (0..template.launches(&effective).len()).map(move |launch| (subject, launch))
        };
        let taken = |subject: &usize| self.scope.part.as_ref().is_none_or(|part| part.contains(subject));
        self.scope.subjects.iter().enumerate().filter(|(subject, _)| taken(subject)).flat_map(of).collect()
    }

    /// Launches each command of these versions once, in an order drawn from the seed.
    fn take_block(&mut self, set: &[usize]) -> Result<(), Fault> {
        let twins = self.journal.history.entries.iter().enumerate().filter(|(_, entry)| {
            let original = entry.version.same_as.as_ref();
            entry.version.state == State::SameBinary
                && set
                    .iter()
                    .any(|index| Some(&self.journal.history.entries[*index].version.commit) == original)
        });
        let twins: Vec<usize> = twins.map(|(index, _)| index).take(TWINS).collect();
        let all: Vec<usize> = set.iter().copied().chain(twins).collect();
        for index in &all {
            self.is_at_hand(*index)?;
        }
        let visits: Vec<(usize, (usize, usize))> = all
            .iter()
            .flat_map(|index| self.launches(*index).into_iter().map(move |launch| (*index, launch)))
            .collect();
        let plan = VisitOrder::new(visits.len(), self.journal.history.run.seed);
        let block = self.block;
        self.block += 1;
        for (visited, place) in plan.order(block).into_iter().enumerate() {
            let (index, launch) = visits[place];
            let version = &self.journal.history.entries[index].version;
            if !matches!(version.state, State::Built | State::SameBinary) {
                continue;
            }
            let doing = format!("weighing · round {}", block + 1);
            self.progress.tell(&doing, visited, visits.len(), version.short());
            self.visit(index, launch, Pass::Timing, block, plan.padding(block))?;
        }
        let versions = if all.len() == 1 { "version" } else { "versions" };
        self.progress.done(&format!("round {}: timed {} {versions}", block + 1, all.len()));
        Ok(())
    }
}
