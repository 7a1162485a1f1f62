//! Says what to do if the verdict of a comparison is can't tell.

use super::Report;
use super::few_readings::gives_runs;
use scruple_core::evidence::{Evidence, MOST_OF_FEW, Replicate};
use scruple_core::metric::Pass;
use scruple_core::plural::noun;
use scruple_core::unit::grouped;
use scruple_core::verdict::Comparison;
use scruple_stats::paired::Why;

/// The number of further blocks from which on no number is predicted.
const TOO_MANY: usize = 100_000;

/// The number of further turns, each of a second or more, from which on no number is predicted.
const TOO_MANY_TURNS: usize = 1000;

/// The largest predicted number of blocks, as a multiple of those that were measured. Beyond that, readings often have
/// several levels, and intervals of their medians do not become narrower as fast as those of one level.
const MOST_PREDICTED: usize = 100;

/// Says what to do if the verdict is can't tell.
pub(super) fn advice(report: &Report<'_>, comparison: &Comparison, key: &str) -> String {
    let few = matches!(super::declared(key).pass, Pass::Memory | Pass::Counting);
    if few && !report.of_cases() && comparison.evidence.readings() >= MOST_OF_FEW {
        return "; no more launches are made for it".to_owned();
    }
    let more = comparison.more_blocks;
    let of_load = report.run.arms.iter().any(|arm| arm.course.is_some());
    let of_processes = matches!(comparison.evidence, Evidence::Interval { of: Replicate::Process, .. });
    let (block, too_many) = match of_load {
        true => ("turn", TOO_MANY_TURNS),
        false => (if of_processes { "process" } else { "block" }, TOO_MANY),
    };
    let is_predictable = more < too_many && more / MOST_PREDICTED <= comparison.evidence.readings();
    let over_nodes = matches!(comparison.evidence, Evidence::Interval { of: Replicate::Nodes { .. }, .. });
    if over_nodes || matches!(comparison.evidence.why(), Some(Why::FewNodes { .. })) {
        return "; more nodes may decide".to_owned();
    }
    // Without an interval, the number is the least that a verdict needs. Whether that is enough is not known.
    let least = comparison.evidence.why().is_some();
    // An option of Scruple does not make another tool measure more.
    if let Some(tool) = &report.run.provenance.tool {
        return match more {
            _ if least || more == 0 => String::new(),
            _ if is_predictable => {
                let what = if of_processes { "processes of" } else { "by" };
                format!("; about {} more {what} {tool} would tell", grouped(more as f64))
            }
            _ => "; no reasonable number of readings would tell".to_owned(),
        };
    }
    if let Some(Why::FewProcesses { have, need }) = comparison.evidence.why() {
        // Of the processes of the run, only some may have readings that count.
        let all = report.run.arms.iter().filter_map(|arm| Some(arm.sample(key)?.by_process().len())).max();
        let asked = (all.unwrap_or(have) * need).div_ceil(have.max(1));
        return format!("; --processes {} may decide", asked.max(need));
    }
    match more {
        0 => String::new(),
        // The scenario may decide how many turns a load has that is too short for an interval.
        _ if of_load && least => String::new(),
        _ if is_predictable => {
            let option = match (report.of_cases(), report.side_by_side) {
                (true, true) if of_processes => {
                    format!("--processes {}", comparison.evidence.readings() + more)
                }
                (true, _) => "--processes asks for more".to_owned(),
                (_, true) if of_load => turns_option(comparison.evidence.readings(), more),
                (_, true) if few => super::few_readings::option(&report.run.argv).to_owned(),
                (_, true) => blocks_option(&report.run.argv, comparison.evidence.readings() + more),
                (_, false) => "in each of two new runs; one run that measures both needs fewer".to_owned(),
            };
            let (about, tell) = if least { ("", "may tell") } else { ("about ", "would tell") };
            format!("; {about}{} more {} {tell} ({option})", grouped(more as f64), noun(more as u64, block))
        }
        _ => format!("; no reasonable number of {} would tell", noun(2_u8, block)),
    }
}

/// Returns the options with which a load has this many more turns of the present length. A turn has at least two
/// windows, so a longer load alone would only have longer turns.
fn turns_option(turns: usize, more: usize) -> String {
    let all = turns + more;
    format!("--windows {} and a load {} times as long, with -d", 2 * all, all.div_ceil(turns.max(1)))
}

/// Returns the option with which a command line measures this many blocks. It cannot be given beside --runs.
fn blocks_option(argv: &[String], blocks: usize) -> String {
    match gives_runs(argv) {
        true => format!("-m {blocks} instead of -r"),
        false => format!("-m {blocks}"),
    }
}
