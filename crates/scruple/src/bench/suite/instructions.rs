//! Counts the instructions of one iteration, from the differences between processes that run more or fewer of them.
//!
//! The instructions that a process executes in addition to its iterations (its start, reading requests, writing
//! answers) are the same in all processes, except for the digits of the times in its answers. Each repeat consists of
//! three processes. The first runs few iterations of case and tare, the second runs more of the case, and the third
//! more of the tare. The differences from the first, divided by the additional iterations, are the costs of case and
//! tare; the rest is the intercept.

use super::cases::{Cases, Weighed};
use super::counting_plan;
use super::effort::SuiteEffort;
use super::programs::{Programs, reason};
use super::progress_screen::ProgressScreen;
use super::record::SuiteRecord;
use crate::fault::Stop;
use crate::progress::in_words;
use scruple_core::evidence::DIFFER;
use scruple_core::harmless_text::list_names;
use scruple_core::judge::resolution_key;
use scruple_core::metric::{Metric, Pass, Quality, metric};
use scruple_core::protocol::LoopKind;
use scruple_core::sample::Reading;
use scruple_core::unit::Unit;
use scruple_measure::bench::BenchError;
use scruple_measure::instructions::Instructions;
use std::time::{Duration, Instant};

/// The key of the instructions that do not grow with the number of iterations.
pub const INTERCEPT: &str = "instructions.intercept";

/// The number of repeats: enough to show whether counts differ, and enough for a verdict if they do.
const REPEATS: u32 = DIFFER as u32;
const ENOUGH: u32 = 4;

/// The number of iterations in the first try, and the largest number. Every number in between is a power of ten, so
/// that two versions of a case run the same number.
const LEAST: u64 = 10;
const MOST: u64 = 1_000_000;

/// The number of instructions of a case above which iterations are no longer added, unless there would be fewer than
/// `LEAST`.
const CLEAR: f64 = 3e7;

/// The time for all cases, unless the budget is longer. A process that is counted runs twenty to fifty times as long.
const LEAST_BUDGET: Duration = Duration::from_secs(120);

/// The variation of a count, in instructions, that the text of an answer may cause. An answer has numbers of up to
/// twenty digits for each of a few readings.
const ANSWER: f64 = 500.0;

/// The counts of one repeat, for one iteration.
struct IterationCounts {
    net: f64,
    tare: f64,
    intercept: f64,
}

/// The pass that counts instructions.
pub(super) struct InstructionPass<'a> {
    pub(super) programs: &'a Programs,
    pub(super) cases: &'a Cases,
    pub(super) effort: &'a SuiteEffort,
    pub(super) record: &'a mut SuiteRecord,
    pub(super) screen: &'a ProgressScreen,
    pub(super) counter: &'a mut Instructions,
}

impl InstructionPass<'_> {
    /// Counts the instructions of every case that the time suffices for: the first one, which shows how long cases take,
    /// and those that a limit needs, in any case.
    pub(super) fn run(mut self) -> Result<(), Stop> {
        let cases = self.cases;
        let budget = self.effort.budget.max(LEAST_BUDGET);
        let unlimited = self.effort.counts_without_limit();
        let (began, mut longest, mut counted) = (Instant::now(), Duration::ZERO, 0);
        let mut left_out = Vec::new();
        let open: Vec<&Weighed> = cases.weighed.iter().filter(|weighed| weighed.is_open()).collect();
        for (index, weighed) in open.iter().enumerate() {
            self.programs.stop_if_interrupted()?;
            let elapsed = began.elapsed();
            let rest = longest * (open.len() - index) as u32;
            let name = self.record.name(weighed);
            let decides = || counting_plan::decides(&self.record.run.terms.limits, name);
            if counted > 0 && elapsed + longest > budget && !unlimited && !decides() {
                left_out.push(name.to_owned());
                self.absent(weighed, &time_is_spent(longest, budget));
                continue;
            }
            if index == 1 && rest > counting_plan::SHORT {
                let all = if unlimited { rest } else { rest.min(budget.saturating_sub(elapsed)) };
                self.screen.progress.say(&counting_plan::announced("instructions", all, unlimited));
            }
            let rest = if index == 0 { String::new() } else { format!(" · about {} left", in_words(rest)) };
            self.screen.progress.steps(&format!("counting instructions{rest}"), index, open.len(), name);
            self.count(weighed)?;
            counted += 1;
            longest = longest.max(began.elapsed() - elapsed);
        }
        if !left_out.is_empty() {
            let text = format!(
                "instructions of {} are not counted: {}; raise --budget, select with --filter, or use --count-only",
                list_names(&left_out),
                time_is_spent(longest, budget)
            );
            self.record.run.warn("left-out", text);
        }
        Ok(())
    }

    fn absent(&mut self, weighed: &Weighed, why: &str) {
        let absent = metric("instructions").map(|metric| Reading::absent(metric, why));
        self.record.keep(weighed.arm, Pass::Counting, 0, absent.into_iter().collect());
    }

    fn count(&mut self, weighed: &Weighed) -> Result<(), Stop> {
        let counted = self
            .iterations_to_count(weighed)
            .and_then(|iterations| Ok((self.repeats(weighed, iterations)?, iterations)));
        let (counted, iterations) = match counted {
            Ok(counted) => counted,
            Err(error) => {
                let why = reason(&error)?;
                self.absent(weighed, &why);
                return Ok(());
            }
        };
        let resolution = ANSWER / iterations as f64;
        let (nets, net_quality) = counts_and_quality(counted.iter().map(|one| one.net), resolution);
        let (tares, tare_quality) = counts_and_quality(counted.iter().map(|one| one.tare), resolution);
        for (repeat, one) in counted.iter().enumerate() {
            let mut of_case = of("instructions", nets[repeat], net_quality);
            if net_quality != Quality::Exact {
                let key = resolution_key("instructions");
                let metric = Metric::custom(&key, Unit::Count, Quality::Exact, Pass::Counting);
                of_case.push(Reading::of(
                    &metric,
                    resolution,
                    "lengths of answers, divided by the iterations",
                ));
            }
            of_case.extend(of(INTERCEPT, one.intercept, Quality::Near));
            self.record.keep(weighed.arm, Pass::Counting, repeat as u32, of_case);
            self.record.keep(
                weighed.tare,
                Pass::Counting,
                repeat as u32,
                of("instructions", tares[repeat], tare_quality),
            );
        }
        Ok(())
    }

    /// Returns the number of iterations at which differences are large compared with the cost of writing an answer.
    fn iterations_to_count(&mut self, weighed: &Weighed) -> Result<u64, BenchError> {
        let most = weighed.case.max_iterations.unwrap_or(u64::MAX) / 2;
        if most < 1 {
            let why = "the case runs only once in a process, so two numbers of iterations cannot be compared";
            return Err(BenchError::NotCounted(why.to_owned()));
        }
        let least = LEAST.min(most);
        let few = self.process(weighed, least, least)?;
        let more = self.process(weighed, 2 * least, least)?;
        let each = (more.saturating_sub(few) as f64 / least as f64).max(1.0);
        let mut iterations = least;
        while iterations * 10 <= MOST.min(most) && iterations as f64 * 10.0 * each <= CLEAR {
            iterations *= 10;
        }
        Ok(iterations)
    }

    fn repeats(&mut self, weighed: &Weighed, iterations: u64) -> Result<Vec<IterationCounts>, BenchError> {
        let mut counted = Vec::new();
        let mut wanted = REPEATS;
        while counted.len() < wanted as usize {
            // All requests contain numbers with the same number of digits.
            let base = self.process(weighed, iterations, iterations)? as f64;
            let case = self.process(weighed, 2 * iterations, iterations)? as f64;
            let tare = self.process(weighed, iterations, 2 * iterations)? as f64;
            let intercept = 3.0 * base - case - tare;
            let (case, tare) = ((case - base) / iterations as f64, (tare - base) / iterations as f64);
            counted.push(IterationCounts { net: case - tare, tare, intercept });
            let resolution = ANSWER / iterations as f64;
            if counts_and_quality(counted.iter().map(|one| one.net), resolution).1 != Quality::Exact {
                wanted = ENOUGH;
            }
        }
        Ok(counted)
    }

    /// Counts all instructions of a process that runs these numbers of iterations of case and tare.
    fn process(&mut self, weighed: &Weighed, case: u64, tare: u64) -> Result<u64, BenchError> {
        let side = &self.programs.sides[weighed.side];
        let mut bench = self.counter.start_bench(&side.start(0, None, true))?;
        self.programs.hello(&mut bench.program)?;
        let batches = vec![weighed.batch(LoopKind::Tare, tare), weighed.batch(LoopKind::Case, case)];
        self.programs.block(weighed, &mut bench.program, batches)?;
        self.counter.end_bench(bench)
    }
}

fn time_is_spent(each: Duration, budget: Duration) -> String {
    format!("a case takes about {}, and the {} for counting were spent", in_words(each), in_words(budget))
}

/// Returns the counts of the repeats and their quality, which is exact if all are one whole number, up to the variation
/// that answers cause. Equal counts alone are not: other answers would change them all alike.
fn counts_and_quality(counts: impl Iterator<Item = f64>, resolution: f64) -> (Vec<f64>, Quality) {
    let counts: Vec<f64> = counts.collect();
    let whole = counts.first().map_or(0.0, |first| first.round());
    let is_whole = |count: &f64| (count - whole).abs() <= resolution;
    if resolution <= 0.1 && counts.iter().all(is_whole) {
        return (vec![whole; counts.len()], Quality::Exact);
    }
    (counts, Quality::Near)
}

fn of(key: &str, value: f64, quality: Quality) -> Vec<Reading> {
    let reading = metric(key).map(|metric| {
        Reading::of(metric, value, "difference of two numbers of iterations").with_quality(quality)
    });
    reading.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_exact_where_all_repeats_are_one_whole_number_to_within_the_answers() {
        assert_eq!(
            counts_and_quality([57.004, 57.004].into_iter(), 0.05),
            (vec![57.0, 57.0], Quality::Exact)
        );
        assert_eq!(counts_and_quality([57.02, 56.99].into_iter(), 0.1), (vec![57.0, 57.0], Quality::Exact));
        assert_eq!(counts_and_quality([57.02, 58.0].into_iter(), 0.1).1, Quality::Near);
        assert_eq!(counts_and_quality([57.4, 57.4].into_iter(), 0.1), (vec![57.4, 57.4], Quality::Near));
        // If answers cost as much as iterations, the whole number is not known, however often they are the same.
        assert_eq!(counts_and_quality([57.0, 57.0].into_iter(), 5.0).1, Quality::Near);
    }
}
