//! A history under way: builds versions, weighs them, and stores the result of each step before the next one begins.

mod adopt;
mod building;
mod builds;
mod counting;
mod forecast;
mod given_launches;
mod hand_out;
mod instruments;
mod journal;
mod known;
mod questions;
mod scope;
mod split_into_units;
mod visits;
mod within_unit;

use super::arms::Arms;
use super::benches::Benches;
use super::remarks;
use super::request::{Aim, HistoryRequest, WeighingTools};
use super::schedule::{HistoryEffort, Step, VersionProgress, next_step};
use crate::farm::Farm;
use crate::fault::Fault;
use crate::progress::Progress;
use crate::store::{Store, StoredHistory};
use crate::versions::build::VersionBuilder;
use crate::versions::environment;
use building::Building;
use builds::Builds;
use counting::Counting;
use forecast::{Basis, Forecast};
use given_launches::GivenLaunches;
use instruments::Instruments;
use journal::Journal;
use known::CampaignView;
use questions::OpenQuestions;
use scope::Scope;
use scruple_core::history::{Graph, History, Version, VersionState};
use scruple_core::metric::Pass;
use scruple_core::plural::counted;
use scruple_core::run;
use scruple_core::visit_order::VisitOrder;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use visits::Visits;

/// How many versions with the same artefacts are timed as well, at most. The spread among them is the noise floor.
const MOST_SAME_BINARY: usize = 2;

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

impl Campaign {
    /// Creates a campaign that continues from the current state of the history.
    pub fn new(
        store: Store,
        history: StoredHistory,
        trees: HashMap<String, String>,
        builder: VersionBuilder,
        (weighing, interrupted): (WeighingTools, Arc<AtomicBool>),
        request: &HistoryRequest,
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
                environment: environment::recorded(&history.run.provenance),
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
            questions: OpenQuestions::new(Graph::of(&versions)),
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
            campaign.questions.narrow(&campaign.journal);
        }
        Ok(campaign)
    }

    /// Continues until no work is left. If an error ends the run, the work before it is kept. `begun` says that the
    /// store already lists the history as running.
    pub fn run(&mut self, begun: bool, mut farm: Option<&mut Farm>) -> Result<(), Fault> {
        let (mut begun, mut idle) = (begun, true);
        let mut result = Ok(());
        let (started, before) = (Instant::now(), self.journal.build_time());
        while result.is_ok() {
            let seen = self.known().seen();
            let unclear = self.questions.unclear(&self.journal, &self.scope, &seen);
            let spent = self.journal.spent(self.scope.effort.adaptive);
            let next = |effort: &HistoryEffort| {
                next_step(&seen, &self.questions.graph, effort, spent, |a, b| {
                    self.questions.difference(&self.journal, &unclear, a, b)
                })
            };
            let within_budget = next(&self.scope.effort);
            let cut_short = idle
                && within_budget == Step::Done
                && next(&HistoryEffort { budget: None, ..self.scope.effort.clone() }) != Step::Done;
            let step = match within_budget {
                Step::Done => {
                    self.questions.unconfirmed(&self.journal, &self.scope).map_or(Step::Done, Step::Count)
                }
                step => step,
            };
            if step == Step::Done {
                if let Some(budget) = self.scope.effort.budget.filter(|_| cut_short) {
                    forecast::tell_spent(spent, budget, &self.progress);
                }
                break;
            }
            idle = false;
            if !begun {
                begun = true;
                result = self.journal.begin();
            }
            let places = farm.as_mut().map(|farm| farm.places()).transpose();
            result = result.and_then(|()| self.announce(&seen, places?));
            if result.is_ok()
                && let Some(farm) = &mut farm
                && !matches!(step, Step::Rebuild(_))
            {
                result = self.hand_out_step(farm, step, &seen);
            } else if result.is_ok() {
                result = match step {
                    Step::Build(index) => self.build_and_try(index),
                    Step::Count(index) => self.count(index),
                    Step::Block(set) => self.recording_time(set[0], |campaign| campaign.take_block(&set)),
                    Step::Rebuild(set) => {
                        let interrupted = self.interrupted.clone();
                        self.building().rebuild(&set, &interrupted)
                    }
                    Step::Done => Ok(()),
                };
            }
        }
        self.progress.clear();
        if result.is_ok() && farm.is_none() {
            forecast::tell_time(started.elapsed(), self.journal.build_time() - before, &self.progress);
        }
        if !begun && self.journal.history.run.state != run::RunState::Complete {
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
        self.journal.history.view()
    }

    /// Builds a version. If no cost of this history is known, it is counted at once: only a launch shows what is ahead.
    fn build_and_try(&mut self, index: usize) -> Result<(), Fault> {
        match self.scope.effort.adaptive {
            true => self.recording_time(index, |campaign| campaign.building().build(index))?,
            false => self.building().build(index)?,
        }
        let tried = !self.scope.has_other_passes()
            || self.journal.history.entries.iter().any(|entry| entry.counted > 0);
        match self.journal.history.entries[index].version.state {
            VersionState::Built if !tried => self.count(index),
            _ => Ok(()),
        }
    }

    /// Works on a version, and records the time that this takes besides what its samples hold.
    fn recording_time(
        &mut self,
        index: usize,
        work: impl FnOnce(&mut Campaign) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let (began, before) = (Instant::now(), self.journal.sampled_time(true));
        work(self)?;
        let sampled = self.journal.sampled_time(true).saturating_sub(before);
        self.journal.history.entries[index].other_time += began.elapsed().saturating_sub(sampled);
        self.journal.put(index, &[])
    }

    /// Counts a version, if its artefacts are available.
    fn count(&mut self, index: usize) -> Result<(), Fault> {
        self.recording_time(index, |campaign| campaign.run_other_passes(index))
    }

    fn run_other_passes(&mut self, index: usize) -> Result<(), Fault> {
        if !self.building().is_at_hand(index)? {
            return Ok(());
        }
        let Campaign { journal, builds, instruments, scope, interrupted, progress, forecast, .. } = self;
        let visits = Visits { journal, builds, instruments, scope, interrupted };
        Counting { visits, first_launch: &mut forecast.launch, progress }.count(index)
    }

    fn building(&mut self) -> Building<'_> {
        let Campaign { journal, builds, scope, progress, .. } = self;
        Building { journal, builds, subjects: &scope.subjects, progress }
    }

    fn visits(&mut self) -> Visits<'_> {
        let Campaign { journal, builds, instruments, scope, interrupted, .. } = self;
        Visits { journal, builds, instruments, scope, interrupted }
    }

    fn announce(&mut self, seen: &[VersionProgress], places: Option<usize>) -> Result<(), Fault> {
        let instruments = self.instruments.weigher.counting_launches();
        let Campaign { journal, builds, scope, questions, forecast, progress, .. } = self;
        let graph = &questions.graph;
        let basis = Basis { journal, builds, scope, graph, instruments, seen, places };
        forecast.announce(&basis, progress)
    }

    fn known(&self) -> CampaignView<'_> {
        let Campaign { journal, builds, scope, instruments, .. } = self;
        let attached = scope.attached(instruments.weigher.counting_launches());
        CampaignView { journal, builds, scope, attached, instructions: instruments.instructions }
    }

    /// Launches each command of these versions once, in an order drawn from the seed.
    fn take_block(&mut self, set: &[usize]) -> Result<(), Fault> {
        let same_binary = self.journal.history.entries.iter().enumerate().filter(|(_, entry)| {
            let original = entry.version.same_as.as_ref();
            entry.version.state == VersionState::SameBinary
                && set
                    .iter()
                    .any(|index| Some(&self.journal.history.entries[*index].version.commit) == original)
        });
        let same_binary: Vec<usize> = same_binary.map(|(index, _)| index).take(MOST_SAME_BINARY).collect();
        let all: Vec<usize> = set.iter().copied().chain(same_binary).collect();
        for index in &all {
            self.building().is_at_hand(*index)?;
        }
        let visits: Vec<(usize, (usize, usize))> = all
            .iter()
            .flat_map(|index| self.visits().launches(*index).into_iter().map(move |launch| (*index, launch)))
            .collect();
        let plan = VisitOrder::new(visits.len(), self.journal.history.run.seed);
        let block = self.block;
        self.block += 1;
        for (visited, place) in plan.order(block).into_iter().enumerate() {
            let (index, launch) = visits[place];
            let version = &self.journal.history.entries[index].version;
            if !matches!(version.state, VersionState::Built | VersionState::SameBinary) {
                continue;
            }
            let doing = format!("weighing · round {}", block + 1);
            self.progress.steps(&doing, visited, visits.len(), version.short());
            self.visits().visit(index, launch, Pass::Timing, block, plan.padding(block))?;
        }
        self.progress.done(&format!("round {}: timed {}", block + 1, counted(all.len(), "version")));
        Ok(())
    }
}
