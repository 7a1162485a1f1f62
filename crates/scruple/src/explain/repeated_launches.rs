//! The launches of both programs under the call tree, as many as their counts need.

use super::effort::Effort;
use super::program_pair::{BothPrograms, CalltreeRun, TotalRun};
use super::{interpreters, variation};
use crate::fault::Fault;
use crate::inspect::calls::remark_of_orphans;
use crate::progress::Progress;
use scruple_code::{Side, SourceText};
use scruple_core::explain::Count;
use scruple_core::unit::{Unit, quantity};
use scruple_measure::calltree::Language;
use std::time::{Duration, Instant};

/// The time from which further launches are announced if more are needed than were announced before.
const SILENT: Duration = Duration::from_secs(5);
/// The relative difference of two totals of one program up to which the other program is not suspected.
const NEGLIGIBLE: f64 = 1e-5;

/// The launches of both programs under the call tree, and observations about them.
#[derive(Default)]
pub struct RepeatedLaunches {
    /// The call trees of each launch, for the first and for the second program.
    pub sides: [Vec<Side>; 2],
    /// If each side ran once more to count only its total: by how much a total differed from that of the first launch.
    pub variation_of_totals: Option<u64>,
    /// The totals of launches in which each program was alone, until they are used.
    alone: Option<[TotalRun; 2]>,
    /// The effect of one program on the other, if their totals differ when they run at the same time.
    disturbed: Option<String>,
    /// A file that each program found, and that earlier launches had left.
    leftovers: [Option<String>; 2],
    /// The remark about processes that outlived the program.
    orphans: Vec<String>,
}

impl RepeatedLaunches {
    /// Runs both programs until it is known whether their counts repeat, or as often as the effort says.
    pub fn of(
        both: &mut BothPrograms<'_>,
        effort: &Effort,
        sources: [&SourceText<'_>; 2],
    ) -> Result<RepeatedLaunches, Fault> {
        let most = effort.runs as usize;
        let mut launches = RepeatedLaunches::default();
        loop {
            let began = Instant::now();
            let (runs, beside) = both.count_trees(effort, launches.sides[0].len(), sources)?;
            if beside && both.apart && launches.are_disturbed(&runs, both)? {
                continue;
            }
            let totals = runs.each_ref().map(|run| run.total);
            launches.add(runs);
            if effort.count.is_live() {
                launches.add_live(both)?;
            }
            if effort.once && launches.sides[0].len() == 1 {
                launches.compare_totals(totals, both)?;
            }
            if launches.are_enough(effort) {
                return Ok(launches);
            }
            let runs = launches.sides[0].len();
            if runs == 2 || (runs == 1 && effort.once) {
                announce_more_launches(most - runs, began.elapsed());
            }
        }
    }

    /// Whether each program alone has other totals than in these runs, which were at the same time. If not, the totals
    /// are kept.
    fn are_disturbed(&mut self, runs: &[CalltreeRun; 2], both: &mut BothPrograms<'_>) -> Result<bool, Fault> {
        let totals = runs.each_ref().map(|run| run.total);
        let is_order_known = both.is_order_known();
        let mut again = both.totals()?;
        // Only the other order can show that one program finds what the other one leaves.
        if !is_order_known && !differ(&again, totals) {
            again = both.totals()?;
        }
        if differ(&again, totals) {
            self.disturbed = both.effect.clone();
            return Ok(true);
        }
        self.alone = Some(again);
        Ok(false)
    }

    /// Adds a launch of both.
    fn add(&mut self, runs: [CalltreeRun; 2]) {
        for (which, run) in runs.into_iter().enumerate() {
            if self.sides[which].is_empty()
                && let Some(remark) = remark_of_orphans(run.left_behind)
            {
                self.orphans.push(format!("{}: {remark}", ["A", "B"][which]));
            }
            self.note_leftover(which, run.leftover);
            self.sides[which].push(run.side);
        }
    }

    /// Adds the live blocks of the last launch of both, which are counted in a launch of their own.
    fn add_live(&mut self, both: &mut BothPrograms<'_>) -> Result<(), Fault> {
        let live = both.live()?;
        for (runs, live) in self.sides.iter_mut().zip(&live) {
            if let Some(last) = runs.last_mut() {
                last.add_live(live);
            }
        }
        Ok(())
    }

    /// Compares the totals of the first launches with those of a second one, unless a program never repeats them.
    fn compare_totals(&mut self, totals: [u64; 2], both: &mut BothPrograms<'_>) -> Result<(), Fault> {
        if self.alone.is_none() && self.sides.iter().any(|runs| never_repeats(&runs[0])) {
            return Ok(());
        }
        let again = self.alone.take().map_or_else(|| both.totals(), Ok)?;
        self.variation_of_totals = Some(distance(&again, totals));
        for (which, run) in again.into_iter().enumerate() {
            self.note_leftover(which, run.leftover);
        }
        Ok(())
    }

    fn note_leftover(&mut self, which: usize, found: Option<String>) {
        if self.leftovers[which].is_none() {
            self.leftovers[which] = found;
        }
    }

    fn are_enough(&self, effort: &Effort) -> bool {
        let of_totals = self.variation_of_totals;
        let one_is_enough = |of_totals| {
            let firsts = [&self.sides[0][0], &self.sides[1][0]];
            of_totals == 0
                || effort.count == Count::Instructions && variation::one_is_enough(firsts, of_totals)
        };
        of_totals.is_some_and(one_is_enough)
            || variation::are_enough(&self.sides, effort.runs as usize, of_totals.unwrap_or(0))
    }

    /// Sentences that the user should read.
    pub fn remarks(&self) -> Vec<String> {
        let disturbed = self.disturbed.as_ref().filter(|_| self.variation_of_totals == Some(0));
        let disturbed = disturbed.map(|effect| {
            format!(
                "when both run at the same time, they execute other numbers of instructions than alone ({effect}); only \
                 launches alone are shown"
            )
        });
        let mut remarks = self.orphans.clone();
        remarks.extend(disturbed);
        remarks.extend(remark_of_leftovers(&self.leftovers));
        remarks
    }
}

/// By how much the totals of the launches differ from these, at most.
fn distance(runs: &[TotalRun; 2], totals: [u64; 2]) -> u64 {
    runs.iter().zip(totals).map(|(run, total)| run.total.abs_diff(total)).max().unwrap_or(0)
}

/// Whether a total is so far from that of these launches that the other program may be the reason. Smaller differences
/// come from the programs themselves, for example from random names of temporary files.
fn differ(runs: &[TotalRun; 2], totals: [u64; 2]) -> bool {
    runs.iter().zip(totals).any(|(run, total)| run.total.abs_diff(total) as f64 > NEGLIGIBLE * total as f64)
}

/// Whether the runtime of a program depends on time, so that totals always differ a little: the monitor of Go's runtime
/// wakes by the clock, V8 reads the clock when it collects, and Guile's collector marks in several threads.
fn never_repeats(run: &Side) -> bool {
    run.is_go() || matches!(interpreters::language(run), Some(Language::JavaScript | Language::Guile))
}

/// Says which program found files that earlier launches had left or changed.
fn remark_of_leftovers(found: &[Option<String>; 2]) -> Option<String> {
    let finds = match found {
        [Some(first), Some(second)] if first == second => format!("A and B find ‘{first}’"),
        [Some(first), Some(second)] => format!("A finds ‘{first}’ and B finds ‘{second}’"),
        [Some(first), None] => format!("A finds ‘{first}’"),
        [None, Some(second)] => format!("B finds ‘{second}’"),
        [None, None] => return None,
    };
    Some(format!(
        "{finds}, which earlier launches of A or B have left or changed; the counts may depend on that"
    ))
}

/// Says how many more launches may be needed because counts vary, if they take long. `each` is the time of the launch
/// before.
fn announce_more_launches(most: usize, each: Duration) {
    if each * most as u32 <= SILENT {
        return;
    }
    let time = |runs: usize| quantity(each.as_secs_f64() * runs as f64 * 1e9, &Unit::Nanoseconds);
    let (runs, time) = match most {
        1 => (most.to_string(), time(most)),
        _ => (format!("1 to {most}"), format!("{} to {}", time(1), time(most))),
    };
    Progress::new().say(&format!(
        "the counts vary from launch to launch; more launches of each follow: {runs}, about {time}"
    ));
}
