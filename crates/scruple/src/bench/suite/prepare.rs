//! Gets the cases ready in a fresh process: each is checked, warmed up and calibrated.

use super::answers::unexpected;
use super::calibrate::Calibration;
use super::cases::Weighed;
use super::programs::Programs;
use super::readings;
use super::record::SuiteRecord;
use super::warm_up::CaseWarmUp;
use crate::fault::Stop;
use scruple_core::metric::Pass;
use scruple_core::protocol::{BenchRequest, ProgramError, Reply};
use scruple_measure::bench::{BenchError, BenchProgram};
use std::time::Duration;

/// The preparation of one process.
pub(super) struct Preparation<'a> {
    programs: &'a Programs,
    record: &'a mut SuiteRecord,
    warm_up: CaseWarmUp<'a>,
    calibration: Calibration<'a>,
    /// Whether this is the first process, which checks the cases and determines their iterations.
    first: bool,
}

impl<'a> Preparation<'a> {
    pub(super) fn new(
        programs: &'a Programs,
        record: &'a mut SuiteRecord,
        (budget, cases): (Duration, usize),
        first: bool,
    ) -> Preparation<'a> {
        let (warm_up, calibration) =
            (CaseWarmUp::new(programs, budget, cases, first), Calibration::new(programs, budget, cases));
        Preparation { programs, record, warm_up, calibration, first }
    }

    /// Gets a case ready. Cases that are warmed up in turn are not warm yet. Replaces a program that has ended by a new
    /// one.
    pub(super) fn prepare_case(
        &mut self,
        weighed: &mut Weighed,
        program: &mut BenchProgram,
    ) -> Result<(), Stop> {
        let result = self.try_prepare_case(weighed, program);
        self.programs.tolerate(weighed, self.record, program, result)?;
        Ok(())
    }

    fn try_prepare_case(
        &mut self,
        weighed: &mut Weighed,
        program: &mut BenchProgram,
    ) -> Result<(), BenchError> {
        if self.first {
            self.check(weighed, program)?;
            self.calibration.of_cold(weighed, program)?;
        }
        if self.warm_up.is_in_turn(weighed) {
            return Ok(());
        }
        self.warm_up.alone(weighed, program)?;
        if self.first { self.calibration.of_warm(weighed, program) } else { Ok(()) }
    }

    /// Warms up the cases that are warmed up in turn, and completes what [`Preparation::prepare_case`] has left open
    /// for them.
    pub(super) fn prepare_in_turn(
        &mut self,
        place: usize,
        cases: &mut [Weighed],
        program: &mut BenchProgram,
    ) -> Result<(), Stop> {
        let here = |weighed: &&mut Weighed| weighed.place == place && self.warm_up.is_in_turn(weighed);
        let mut cases: Vec<&mut Weighed> = cases.iter_mut().filter(here).collect();
        self.warm_up.in_turn(&mut cases, self.record, program)?;
        for weighed in cases.into_iter().filter(|weighed| weighed.is_open()) {
            let result = match self.first {
                true => self.calibration.of_warm(weighed, program),
                false => self.calibration.of_late(weighed, program),
            };
            self.programs.tolerate(weighed, self.record, program, result)?;
        }
        Ok(())
    }

    /// Runs the check of the case once, before any of its figures count.
    fn check(&mut self, weighed: &Weighed, program: &mut BenchProgram) -> Result<(), BenchError> {
        let case = &weighed.case;
        if !case.checked && case.concurrency.is_none() && case.readings.is_empty() {
            return Ok(());
        }
        match self.programs.ask(weighed, program, &BenchRequest::Once(case.id))? {
            Reply::Once(once) if once.ok => {
                let readings = readings::of_once(case, &once);
                self.record.keep(weighed.arm, Pass::Counting, 0, readings);
                Ok(())
            }
            Reply::Once(once) => Err(BenchError::Complained(ProgramError {
                error: format!(
                    "its check failed: {}",
                    once.why.unwrap_or_else(|| "no reason given".to_owned())
                ),
                kind: "check".to_owned(),
                id: Some(once.once),
                fatal: false,
            })),
            other => Err(unexpected("once", &other)),
        }
    }
}
