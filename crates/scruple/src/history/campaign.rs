//! A history under way: builds versions, weighs them, and stores the result of each step before the next one begins.

mod do_unit;
mod forecast;
mod known;
mod rebuilding;
mod refinement;
mod split_into_units;
mod visits;

use super::arms::Arms;
use super::artefacts::Artefacts;
use super::benches::Benches;
use super::build::{Builder, Outcome};
use super::schedule::{HistoryEffort, Step, next_step};
use super::subjects::Template;
use super::{Aim, Request, environment, remarks, view};
use crate::farm::Farm;
use crate::fault::Fault;
use crate::progress::Progress;
use crate::store::{Entry, Store, StoredHistory, add_readings};
use forecast::Forecast;
use refinement::Suspected;
use scruple_core::history::{Graph, History, READINGS, State, Version, find_changes};
use scruple_core::metric::{Pass, metric};
use scruple_core::run;
use scruple_core::sample::{BLOCKS_OF_A_VISIT, Reading};
use scruple_core::subject::Arm;
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
/// The number of consecutive failed builds that suggests one mistake rather than many bad versions.
const FAILURES: u32 = 6;
/// The false discovery rate: the accepted share of false changes among the reported ones.
pub const ERROR: f64 = 0.05;

/// A history under way.
pub struct Campaign {
    store: Store,
    history: StoredHistory,
    graph: Graph,
    trees: HashMap<String, String>,
    builder: Builder,
    weigher: Box<dyn Weigher>,
    subjects: Vec<Template>,
    effort: HistoryEffort,
    same_output: bool,
    time_only: bool,
    instructions: bool,
    requested: bool,
    time_limit: Option<Duration>,
    suspected: Vec<Suspected>,
    /// Versions that need to be counted again. The next one to count is at the end.
    again: Vec<usize>,
    interrupted: Arc<AtomicBool>,
    progress: Progress,
    sequence: u64,
    block: u32,
    arms: Arms,
    benches: Benches,
    /// The environment of counting launches.
    environment: Vec<(OsString, OsString)>,
    forecast: Forecast,
    /// The indices of the versions that could not be built a second time.
    built_once: BTreeSet<usize>,
    /// How many builds failed since the last success.
    failures: u32,
    keep_going: bool,
    /// The indices of the subjects that are weighed; `None` means all.
    part: Option<Vec<usize>>,
    /// Whether the history in memory differs from the stored one, because the results of units could not be stored.
    half_adopted: bool,
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
        let sequence = store.next_sequence(&history.run.id)?;
        let arms = Arms::of(&history.run, &request.of.subjects, &builder);
        let blocks = history.run.arms.iter().filter_map(|arm| arm.sample("time.wall")?.blocks.iter().max());
        let block = blocks.max().map_or(0, |last| last + 1);
        let versions: Vec<Version> = history.entries.iter().map(|entry| entry.version.clone()).collect();
        let mut campaign = Campaign {
            store,
            trees,
            builder,
            weigher: weighing.weigher,
            progress: weighing.progress,
            subjects: request.of.subjects.clone(),
            effort,
            same_output: request.of.same_output,
            time_only: request.of.time_only,
            instructions: weighing.instructions,
            requested: weighing.requested,
            time_limit: Some(request.of.time_limit),
            suspected: Vec::new(),
            again: Vec::new(),
            benches: Benches::new(
                weighing.work,
                weighing.instructions,
                interrupted.clone(),
                Some(request.of.time_limit),
            ),
            interrupted,
            sequence,
            block,
            arms,
            environment: environment::pinned(&history.run.provenance),
            forecast: Forecast::default(),
            built_once: BTreeSet::new(),
            failures: 0,
            keep_going: request.keep_going,
            part: None,
            half_adopted: false,
            graph: Graph::of(&versions),
            history,
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
            let open = |a, b| unclear.iter().any(|stretch| stretch.holds(&self.graph, a, b));
            let differ = |a, b| open(a, b) || self.differ(a, b);
            let step = match next_step(&seen, &self.graph, &self.effort, self.spent(), differ) {
                Step::Done => self.unconfirmed().map_or(Step::Done, Step::Count),
                step => step,
            };
            if step == Step::Done {
                break;
            }
            if !begun {
                begun = true;
                result = self.store.resume_history(&self.history).map_err(Fault::from);
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
        if !begun && self.history.run.state != run::State::Complete {
            // The interrupted history had no work left.
            begun = true;
            self.store.resume_history(&self.history)?;
        }
        if !begun {
            remarks::end(&mut self.history);
        }
        match begun {
            true if self.half_adopted => result,
            true => self.rest(result),
            false => result,
        }
    }

    /// Converts the campaign into the history that reports use.
    pub fn into_history(self) -> History {
        view(self.history)
    }

    fn rest(&mut self, result: Result<(), Fault>) -> Result<(), Fault> {
        self.history.run.state = match &result {
            Ok(()) => run::State::Complete,
            Err(fault) if fault.code == crate::fault::Code::Interrupted => run::State::Interrupted,
            Err(_) => run::State::Failed,
        };
        let mut stored = Ok(());
        for index in 0..self.history.entries.len() {
            let version = &mut self.history.entries[index].version;
            if result.is_ok() && matches!(version.state, State::Queued | State::Building) {
                version.state = State::Skipped;
                stored = stored.and_then(|()| self.put(index, &[]));
            }
        }
        remarks::end(&mut self.history);
        let stored = stored.and_then(|()| Ok(self.store.rest_history(&self.history.run)?));
        result.and(stored)
    }

    /// Returns the next version on either side of an exact change that was not counted again yet. Counting again is
    /// necessary because a program may depend on things outside the repository, which two consecutive counts do not
    /// reveal.
    fn unconfirmed(&mut self) -> Option<usize> {
        if self.time_only {
            return None;
        }
        if self.again.is_empty() {
            let entries = &self.history.entries;
            let original = |index: usize| match &entries[index].version.same_as {
                Some(same) => entries.iter().position(|entry| entry.version.commit == *same).unwrap_or(index),
                None => index,
            };
            let judged = find_changes(&view(self.history.clone()), ERROR).series;
            let counts =
                judged.iter().filter(|one| (one.exact || one.shifting) && !one.metric.starts_with("build."));
            let sides: BTreeSet<usize> =
                counts.flat_map(|series| series.borders.as_flattened()).copied().map(original).collect();
            let open = |index: &usize| {
                entries[*index].version.state == State::Built && entries[*index].counted < VISITS
            };
            self.again = sides.into_iter().rev().filter(open).collect();
        }
        self.again.pop()
    }

    fn put(&self, index: usize, arms: &[(usize, &Arm)]) -> Result<(), Fault> {
        let (run, entry) = (&self.history.run.id, &self.history.entries[index]);
        Ok(self.store.put_version(run, index, entry, arms)?)
    }

    /// Builds a version. If no cost of this history is known, it is counted at once: only a launch shows what is ahead.
    fn build_and_try(&mut self, index: usize) -> Result<(), Fault> {
        self.build(index)?;
        let tried = self.time_only || self.history.entries.iter().any(|entry| entry.counted > 0);
        match self.history.entries[index].version.state {
            State::Built if !tried => self.count(index),
            _ => Ok(()),
        }
    }

    fn build(&mut self, index: usize) -> Result<(), Fault> {
        let version = &mut self.history.entries[index].version;
        version.state = State::Building;
        let commit = version.commit.clone();
        let tried = |entry: &&Entry| entry.artefacts.is_some() || entry.version.state.failed();
        let built = self.history.entries.iter().filter(tried).count();
        let title = &self.history.entries[index].version.title;
        self.progress.tell("building", built, self.history.entries.len(), title);
        self.put(index, &[])?;
        let tree = self.trees.get(&commit).cloned().unwrap_or_default();
        let outcome = match self.builder.build(&commit, &tree) {
            Ok(outcome) => outcome,
            Err(fault) => {
                self.history.entries[index].version.state = State::Queued;
                self.put(index, &[])?;
                return Err(fault);
            }
        };
        let title = &self.history.entries[index].version;
        let name = format!("{} {}", title.short(), title.title);
        let number = format!("{} of {}", built + 1, self.history.entries.len());
        match outcome {
            Outcome::Failed(state, why) => {
                self.progress.done(&format!("version {number} failed: {name}: {why}"));
                let log = self.builder.cache.log(&commit).display().to_string();
                let version = &mut self.history.entries[index].version;
                (version.state, version.why, version.log) = (state, Some(why), Some(log.clone()));
                self.put(index, &[])?;
                self.failures += 1;
                match self.failures >= FAILURES && !self.keep_going {
                    true => Err(Fault::program(format!(
                        "{FAILURES} builds failed one after the other, the last at {name}; see {log}. If the build steps are \
                         right, the same command goes on with other versions, and --keep-going does not stop again; else \
                         mend them, or build these again with --retry"
                    ))),
                    false => Ok(()),
                }
            }
            Outcome::Ready(artefacts) => {
                self.failures = 0;
                let took = quantity(artefacts.time as f64, &Unit::Nanoseconds);
                self.progress.done(&format!("version {number} built in {took}: {name}"));
                self.built(index, &commit, &artefacts)
            }
        }
    }

    /// Records a successful build: the state of the version, its arms, and the cost of the build.
    fn built(&mut self, index: usize, commit: &str, artefacts: &Artefacts) -> Result<(), Fault> {
        let effective = self.builder.effective(commit);
        let twin = self.history.entries.iter().find(|other| {
            let theirs = || self.builder.effective(&other.version.commit);
            other.version.state == State::Built
                && other.artefacts.as_ref() == Some(&artefacts.digest)
                && (theirs().params, theirs().env) == (effective.params.clone(), effective.env.clone())
        });
        let same_as = twin.map(|twin| twin.version.commit.clone());
        let entry = &mut self.history.entries[index];
        entry.version.state = if same_as.is_some() { State::SameBinary } else { State::Built };
        (entry.version.same_as, entry.artefacts) = (same_as, Some(artefacts.digest.clone()));
        self.add_arms(index)?;
        let Some(arm) = self.arms.launched(0, commit).first().copied() else { return Ok(()) };
        // Without build steps there is no build, and therefore no build time and no size.
        let nothing = self.builder.effective(commit).steps.is_empty();
        if nothing || self.history.run.arms[arm].figures.contains_key("build.bytes") {
            return Ok(());
        }
        let reading = |key: &str, value: f64, source: &str| Some(Reading::of(metric(key)?, value, source));
        let readings = [
            reading("build.time", artefacts.time as f64, "the build steps' elapsed time"),
            reading("build.bytes", artefacts.bytes as f64, "sizes of files"),
        ];
        self.keep(arm, Pass::Build, 0, readings.into_iter().flatten().collect())
    }

    /// Creates the arms of a version, unless they exist, and stores the version.
    fn add_arms(&mut self, index: usize) -> Result<(), Fault> {
        let commit = &self.history.entries[index].version.commit.clone();
        let effective = self.builder.effective(commit);
        let mut added = Vec::new();
        for (subject, template) in self.subjects.iter().enumerate() {
            if !self.arms.launched(subject, commit).is_empty() {
                continue;
            }
            for arm in template.arms(commit, &effective) {
                let place = self.history.run.arms.len();
                self.arms.add(subject, commit, place, &arm);
                added.push(place);
                self.history.run.arms.push(arm);
            }
        }
        let arms: Vec<(usize, &Arm)> =
            added.iter().map(|place| (*place, &self.history.run.arms[*place])).collect();
        self.put(index, &arms)
    }

    /// Makes sure that the artefacts of a version exist, and builds them again if they were removed. Returns false if
    /// that is no longer possible, and records the reason as the state of the version.
    fn is_at_hand(&mut self, index: usize) -> Result<bool, Fault> {
        let entry = &self.history.entries[index];
        let digest = entry.artefacts.clone().unwrap_or_default();
        if self.builder.cache.has(&digest)? {
            return Ok(true);
        }
        let commit = entry.version.commit.clone();
        self.progress.tell("building", index, self.history.entries.len(), "what was cleaned away");
        let tree = self.trees.get(&commit).cloned().unwrap_or_default();
        match self.builder.build(&commit, &tree)? {
            Outcome::Ready(artefacts) => {
                // A rebuilt version counts as the same commit even if its artefacts are not byte for byte the same.
                self.history.entries[index].artefacts = Some(artefacts.digest);
                self.put(index, &[]).map(|()| true)
            }
            Outcome::Failed(state, why) => self.reject(index, state, why, "").map(|()| false),
        }
    }

    fn keep(&mut self, arm: usize, pass: Pass, block: u32, readings: Vec<Reading>) -> Result<(), Fault> {
        let run = &self.history.run.id;
        self.store.journal(run, self.sequence, arm, pass, block, &readings)?;
        self.sequence += 1;
        add_readings(&mut self.history.run.arms[arm], readings, pass, block);
        Ok(())
    }

    /// Runs the memory and counting passes of one version.
    fn count(&mut self, index: usize) -> Result<(), Fault> {
        if !self.is_at_hand(index)? {
            return Ok(());
        }
        let counting = self.weigher.counting_launches();
        let first_block = self.history.entries[index].counted * BLOCKS_OF_A_VISIT;
        for (subject, launch) in self.launches(index) {
            if self.subjects[subject].yardstick {
                continue;
            }
            let mut first = None;
            // If the user wants few rounds, these passes have few launches as well.
            let enough = (READINGS as u32).min(self.effort.rounds).max(REPEATS);
            let passes = match self.subjects[subject].bench {
                // The memory of the process does not belong to any single case.
                true => vec![(Pass::Counting, 1, REPEATS)],
                false => vec![(Pass::Memory, 1, enough), (Pass::Counting, counting, counting * enough)],
            };
            for (pass, least, most) in passes {
                for block in 0..most {
                    let by_number = pass == Pass::Memory && self.effort.budget.is_none();
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
                        match self.history.entries[index].version.state {
                            State::Built => break,
                            _ => return Ok(()),
                        }
                    };
                    first = first.or(Some(weighing));
                    self.forecast.launch = self.forecast.launch.or(Some(weighing));
                }
            }
        }
        self.history.entries[index].counted += 1;
        let version = &self.history.entries[index].version;
        self.progress.done(&format!("counted and checked: {} {}", version.short(), version.title));
        self.put(index, &[])
    }

    /// Whether the counts of a command, from a given block on, are the same in each launch.
    fn repeats(&self, index: usize, (subject, launch): (usize, usize), from: u32) -> bool {
        let launched = self.arms.launched(subject, &self.history.entries[index].version.commit);
        let Some(arm) = launched.get(launch).map(|place| &self.history.run.arms[*place]) else { return true };
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
        let effective = self.builder.effective(&self.history.entries[index].version.commit);
        let of = |(subject, template): (usize, &Template)| {
            (0..template.launches(&effective).len()).map(move |launch| (subject, launch))
        };
        let taken = |subject: &usize| self.part.as_ref().is_none_or(|part| part.contains(subject));
        self.subjects.iter().enumerate().filter(|(subject, _)| taken(subject)).flat_map(of).collect()
    }

    /// Launches each command of these versions once, in an order drawn from the seed.
    fn take_block(&mut self, set: &[usize]) -> Result<(), Fault> {
        let twins = self.history.entries.iter().enumerate().filter(|(_, entry)| {
            let original = entry.version.same_as.as_ref();
            entry.version.state == State::SameBinary
                && set.iter().any(|index| Some(&self.history.entries[*index].version.commit) == original)
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
        let plan = VisitOrder::new(visits.len(), self.history.run.seed);
        let block = self.block;
        self.block += 1;
        for (visited, place) in plan.order(block).into_iter().enumerate() {
            let (index, launch) = visits[place];
            let version = &self.history.entries[index].version;
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
