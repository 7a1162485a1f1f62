//! Weighs commands of two versions side by side, here or on the nodes of a farm.

use super::args::CompareArgs;
use crate::cli::shared_args::StoreArgs;
use crate::cli::values;
use crate::command::args::SamplingArgs;
use crate::command::arms::{self, Prepared};
use crate::command::ignored_failures::IgnoredFailures;
use crate::command::passes::CommandPasses;
use crate::command::verb::{self, ReadingSource};
use crate::config::Config;
use crate::fault::{Fault, Stop};
use crate::history::report::pays_off;
use crate::new_run;
use crate::paths::WorkFolder;
use crate::progress::Progress;
use crate::render::export::names;
use crate::run_report::formats::FORMATS;
use crate::run_report::metrics_and_limits;
use crate::store::open_store;
use crate::versions::SubjectTemplate;
use crate::versions::requested_subjects::RequestedSubjects;
use scruple_core::default_margins;
use scruple_core::history::{BreakEven, VersionCosts};
use scruple_core::judge::{self, Judged};
use scruple_core::limit::Limit;
use scruple_core::run::{Run, Terms};
use scruple_core::subject::{Arm, Role};
use scruple_core::verdict::Verdict;
use scruple_stats::quantile::median;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What a command line asks to be weighed at two revisions.
pub struct RevisionsRequest {
    /// The commands.
    pub subjects: Vec<SubjectTemplate>,
    /// How much to measure.
    pub sampling: SamplingArgs,
    /// The terms by which the run is judged.
    pub terms: Terms,
    /// The limits of the command line.
    pub limits: Vec<Limit>,
    /// The time limit of a build step and of a launch.
    pub time_limit: Duration,
}

impl RevisionsRequest {
    /// Reads the command line.
    pub fn by(args: &CompareArgs, config: &Config) -> Result<RevisionsRequest, Fault> {
        metrics_and_limits::check_metrics(&args.metrics)?;
        args.results.export.checked(&names(&FORMATS))?;
        let limits = metrics_and_limits::parse_limits(&args.limit, &[])?;
        let wanted = RequestedSubjects {
            verb: "compare HEAD~1 HEAD",
            command: &args.command,
            bench: false,
            names: &args.names,
        };
        let subjects: Vec<_> = wanted.subjects(config)?.into_iter().filter(|one| !one.bench).collect();
        if subjects.is_empty() {
            return Err(Fault::usage(
                "scruple.toml has bench programs only: `scruple bench --against` compares two builds of one",
            ));
        }
        let sampling = sampling(args);
        let margin = values::margin(&sampling.margin)?;
        let terms = Terms { margin, limits: limits.clone(), ..Terms::default() };
        let time_limit = values::duration(&args.build.time_limit)?;
        Ok(RevisionsRequest { subjects, sampling, terms, limits, time_limit })
    }

    /// Returns the settings for weighing this, if builds did not begin clean.
    pub fn weighing<'a>(
        &'a self,
        args: &'a CompareArgs,
        source: ReadingSource,
        interrupted: Arc<AtomicBool>,
    ) -> RevisionSettings<'a> {
        RevisionSettings {
            source,
            sampling: &self.sampling,
            terms: self.terms.clone(),
            store: &args.store,
            interrupted,
            asked: verb::RequestedInstruments::by(&args.metrics, &self.limits),
            quiet: args.results.json,
            clean: false,
        }
    }
}

/// The settings for weighing commands of two versions.
pub struct RevisionSettings<'a> {
    /// The source of the readings.
    pub source: ReadingSource,
    /// How much to measure.
    pub sampling: &'a SamplingArgs,
    /// The terms by which the run is judged.
    pub terms: Terms,
    /// Where the run is stored.
    pub store: &'a StoreArgs,
    /// The flag that the user's interruption sets.
    pub interrupted: Arc<AtomicBool>,
    /// The additional instruments.
    pub asked: verb::RequestedInstruments,
    /// Whether to show no progress.
    pub quiet: bool,
    /// Whether builds began clean, so that their times can be compared.
    pub clean: bool,
}

impl RevisionSettings<'_> {
    /// Weighs the arms of both versions and the empty program side by side, and stores the run.
    pub fn weigh(
        self,
        mut prepared: Vec<Prepared>,
        remarks: Vec<(&'static str, String)>,
    ) -> Result<(CommandPasses, Result<(), Stop>), Fault> {
        let effort = verb::effort(self.sampling)?;
        let work = WorkFolder::make()?;
        let programs: Vec<&Path> = prepared.iter().map(|one| one.job.program.path.as_path()).collect();
        let label = self.store.label.as_deref();
        let mut run = new_run::empty_run(self.sampling.seed, label, self.terms, &programs);
        prepared.push(arms::tare_arm(work.path(), &prepared[0].job)?);
        remarks.into_iter().for_each(|(code, text)| run.warn(code, text));
        let store = open_store::for_run(self.store)?;
        let progress = if self.quiet { Progress::hidden() } else { Progress::new() };
        let weigher = self.source.into_weigher(&self.interrupted, &work, &self.asked)?;
        let mut passes = CommandPasses::new(
            weigher,
            prepared,
            run,
            store,
            self.interrupted,
            IgnoredFailures::Never,
            progress,
        )?;
        let result = passes.take(&effort);
        drop(work);
        if self.clean {
            remark_on_break_even(&mut passes.run);
        }
        Ok((passes, result))
    }
}

fn sampling(args: &CompareArgs) -> SamplingArgs {
    SamplingArgs {
        runs: args.runs,
        seed: args.seed,
        metrics: args.metrics.clone(),
        limit: args.limit.clone(),
        time_only: args.time_only,
        ..SamplingArgs::within(
            &args.budget,
            &args.margin.clone().unwrap_or_else(|| values::percent(default_margins::COMMANDS)),
        )
    }
}

/// Adds a remark on whether a version pays off that costs more to build and less to run, or the other way round. Only
/// builds that began clean can be compared.
pub fn remark_on_break_even(run: &mut Run) {
    let judged = judge::compare_pairs(&judge::pairs(run), &run.terms);
    let middle = |arm: &Arm, key: &str| arm.sample(key).map(|sample| median(&sample.readings));
    let subjects: Vec<&Arm> = run.arms_of(Role::Subject).collect();
    let builds: Vec<f64> = subjects.iter().filter_map(|arm| middle(arm, "build.time")).collect();
    let [before, after] = builds.as_slice() else { return };
    let sentences = subjects.chunks(2).filter_map(|pair| {
        let [old, new] = pair else { return None };
        let of_run = |one: &&Judged| one.metric == "time.wall" && one.arm == new.name;
        let verdict = judged.iter().find(of_run)?.comparison.verdict;
        let surely = matches!(verdict, Verdict::Different | Verdict::Small);
        let costs = |build: f64, arm: &Arm| Some(VersionCosts { build, run: middle(arm, "time.wall")? });
        let (name, _) = old.name.rsplit_once(" @")?;
        // The difference in build cost does not count as certain, because each version was built only once.
        let one = BreakEven::of(name, (0, 1), (costs(*before, old)?, costs(*after, new)?), [false, surely]);
        let label =
            |arm: &Arm| arm.name.rsplit_once(" @").map_or(String::new(), |(_, label)| label.to_owned());
        one.is_certain().then(|| pays_off(&one, &label(old), &label(new)))
    });
    let sentences: Vec<String> = sentences.collect();
    sentences.into_iter().for_each(|text| run.warn("break-even", text));
}
