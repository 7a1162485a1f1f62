//! Which sites keep memory: the growth of what each leaves at the end, between two sizes of the work.

use super::args::LeakSitesWhen;
use super::command_sites::CommandSites;
use super::site_rows::{self, SiteRow};
use super::sites::{counter, exact, sampled};
use crate::fault::{Code, Fault};
use crate::progress::{Progress, in_words};
use scruple_code::allocation_sites::{MemoryBlocks, SiteFrame};
use scruple_measure::calltree::ChosenTool;
use scruple_measure::command::{Commands, Job};
use scruple_measure::heap::SiteSampling;
use scruple_stats::leak::{GrowthDoubt, Retained};
use scruple_stats::sorting;
use std::collections::HashMap;
use std::time::Duration;

/// The longest time that the launches may be expected to take if they were not requested.
const AFFORDABLE: Duration = Duration::from_secs(60);
/// The assumed cost of a launch under valgrind and of one whose allocations are all recorded, as multiples of the time
/// of a plain one, and a constant (`bench/heap/sites.py` and `bench/heap/sampled_sites.py`).
const SLOWER: u32 = 30;
const SLOWER_RECORDED: u32 = 12;
const START: Duration = Duration::from_secs(2);
/// The smallest ratio of two sizes between which growth shows.
const LEAST_RANGE: f64 = 2.0;

/// What counts the blocks of every site.
#[derive(Clone, Debug)]
pub enum BlockCounter {
    /// Scruple's call tree, under valgrind.
    Tree(ChosenTool),
    /// The counter that is loaded into the program, which records every allocation.
    Recorder,
}

/// The growth between two sizes.
pub struct LeakSites {
    /// What counted.
    pub by: BlockCounter,
    /// Remarks on the counts, each a sentence.
    pub remarks: Vec<String>,
    /// The sizes of the work, and all blocks that were left at the end.
    pub sizes: [(f64, MemoryBlocks); 2],
    /// The sites whose blocks grow or shrink, the most growth first.
    pub rows: Vec<GrowingSite>,
}

/// A site with what it left at the end of both launches.
pub struct GrowingSite {
    /// The site and its callers in the larger launch.
    pub row: SiteRow,
    /// What it left at the end, at the smaller and at the larger size.
    pub left: [MemoryBlocks; 2],
}

/// The result of looking for sites.
pub enum Sites {
    /// The sites.
    Found(LeakSites),
    /// There is nothing to look for.
    NotWanted,
    /// The reason why the sites are not known.
    Unknown(String),
}

/// A size of the work, its command, and how long it took.
pub struct SizedCommand {
    /// The size.
    pub size: f64,
    /// The command.
    pub job: Job,
    /// The wall time of its fastest launch.
    pub wall: Duration,
}

impl LeakSites {
    /// Returns growth as bytes, and as blocks, for each unit of work.
    pub fn per_unit(&self, left: [MemoryBlocks; 2]) -> (f64, f64) {
        let units = self.sizes[1].0 - self.sizes[0].0;
        let growth = |of: fn(&MemoryBlocks) -> u64| (of(&left[1]) as f64 - of(&left[0]) as f64) / units;
        (growth(|blocks| blocks.bytes), growth(|blocks| blocks.blocks))
    }

    /// Returns the growth of all sites together.
    pub fn total(&self) -> (f64, f64) {
        self.per_unit(self.sizes.map(|(_, left)| left))
    }
}

/// Looks for the sites, if the verdict is growth, `metric` is malloc's, and the launches are affordable in the time
/// that is left.
pub fn find(
    commands: &mut Commands,
    sizes: Vec<SizedCommand>,
    metric: &str,
    verdict: &Retained,
    when: LeakSitesWhen,
    left: Duration,
) -> Result<Sites, Fault> {
    let grows = matches!(verdict, Retained::Grows { .. } | Retained::Unknown(GrowthDoubt::Form { .. }));
    if when == LeakSitesWhen::Never || (when == LeakSitesWhen::Auto && !grows) {
        return Ok(Sites::NotWanted);
    }
    if metric != "malloc.live" {
        return Ok(Sites::Unknown(match metric {
            "heap.live" | "heap.live_max" => {
                "the objects are in the heap of a language runtime, where the sites of malloc \
                                              say nothing; the runtime’s own heap profiler shows them"
                    .to_owned()
            }
            _ => format!("sites are of malloc.live, and the figure is {metric}"),
        }));
    }
    let (by, ChosenSizes { small, large, cost }) = match by(&sizes, when, left.min(AFFORDABLE)) {
        Ok(chosen) => chosen,
        Err(why) => return Ok(Sites::Unknown(why)),
    };
    let progress = Progress::new();
    let how = match by {
        BlockCounter::Tree(_) => "under valgrind",
        BlockCounter::Recorder => "with every allocation recorded",
    };
    progress.note(&format!("finding the sites: two more launches, {how}, up to about {}", in_words(cost)));
    let found = [small, large].map(|sized| Ok((sized.size, count(commands, &sized.job, &by)?)));
    progress.clear();
    let [small, large] = found;
    match (small, large) {
        (Ok(small), Ok(large)) => Ok(Sites::Found(growth(by, small, large))),
        (Err(fault), _) | (_, Err(fault)) => failed(fault, when),
    }
}

/// Returns the counter and the sizes as [`chosen`]. The counter is the call tree, or the recorder if the call tree
/// cannot be used or would take too long.
fn by(
    sizes: &[SizedCommand],
    when: LeakSitesWhen,
    affordable: Duration,
) -> Result<(BlockCounter, ChosenSizes<'_>), String> {
    let tree = counter().map_err(|fault| fault.message);
    match tree.and_then(|counter| Ok((BlockCounter::Tree(counter), chosen(sizes, when, SLOWER, affordable)?)))
    {
        Ok(found) => Ok(found),
        Err(_) => Ok((BlockCounter::Recorder, chosen(sizes, when, SLOWER_RECORDED, affordable)?)),
    }
}

/// Handles a failure of these launches: the verdict stands without sites, unless the user asked for them.
fn failed(fault: Fault, when: LeakSitesWhen) -> Result<Sites, Fault> {
    let is_final = matches!(fault.code, Code::Interrupted | Code::Internal);
    match when == LeakSitesWhen::Auto && !is_final {
        true => Ok(Sites::Unknown(fault.message)),
        false => Err(fault),
    }
}

fn count(commands: &mut Commands, job: &Job, by: &BlockCounter) -> Result<CommandSites, Fault> {
    match by {
        BlockCounter::Tree(counter) => exact(commands, job, counter, false),
        BlockCounter::Recorder => sampled(commands, job, SiteSampling { mean: 1, seed: 1 }, false),
    }
}

/// The two sizes that are compared, and how long launches of both are expected to take.
struct ChosenSizes<'a> {
    small: &'a SizedCommand,
    large: &'a SizedCommand,
    cost: Duration,
}

/// Returns the smallest size and the largest affordable one, if launches take this many times as long as plain ones.
fn chosen(
    sizes: &[SizedCommand],
    when: LeakSitesWhen,
    slower: u32,
    affordable: Duration,
) -> Result<ChosenSizes<'_>, String> {
    let mut order: Vec<&SizedCommand> = sizes.iter().collect();
    sorting::by(&mut order, |a, b| a.size.total_cmp(&b.size));
    let Some((small, larger)) = order.split_first() else { return Err("there are no sizes".to_owned()) };
    let expected = |sized: &SizedCommand| sized.wall * slower + START;
    let mut costly = None;
    for large in larger.iter().rev().filter(|large| large.size >= LEAST_RANGE * small.size) {
        let cost = expected(small) + expected(large);
        if when == LeakSitesWhen::Always || cost <= affordable {
            return Ok(ChosenSizes { small, large, cost });
        }
        costly = Some(cost);
    }
    Err(match costly {
        Some(cost) => format!(
            "two launches that count them may take {}; --sites=always takes the smallest and the largest size regardless",
            in_words(cost)
        ),
        None => "no size is at least twice the smallest".to_owned(),
    })
}

/// Compares what sites leave at the end of two launches, in all their processes.
fn growth(
    by: BlockCounter,
    (small, at_small): (f64, CommandSites),
    (large, at_large): (f64, CommandSites),
) -> LeakSites {
    let mut sites: HashMap<SiteFrame, GrowingSite> = HashMap::new();
    let mut totals = [MemoryBlocks::default(); 2];
    for (at, found) in [&at_small, &at_large].into_iter().enumerate() {
        for process in &found.processes {
            totals[at] += process.total.at_end;
            for row in site_rows::rows(process, |amounts| amounts.at_end.bytes) {
                let site = sites
                    .entry(row.frame.clone())
                    .or_insert_with(|| GrowingSite { row: row.clone(), left: Default::default() });
                site.left[at] += row.amounts.at_end;
                if at == 1 {
                    site.row = row;
                }
            }
        }
    }
    let mut rows: Vec<GrowingSite> =
        sites.into_values().filter(|site| site.left[0] != site.left[1]).collect();
    let growth = |site: &GrowingSite| site.left[1].bytes as i128 - site.left[0].bytes as i128;
    rows.sort_by_cached_key(|site| (std::cmp::Reverse(growth(site)), site_rows::place(&site.row.frame)));
    let mut remarks = at_large.remarks;
    remarks
        .extend(at_small.remarks.into_iter().filter(|remark| !remarks.contains(remark)).collect::<Vec<_>>());
    LeakSites { by, remarks, sizes: [(small, totals[0]), (large, totals[1])], rows }
}
