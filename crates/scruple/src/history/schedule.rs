//! Decides what to do next. Each decision depends on the stored state only, so that a killed history continues where it
//! was, and a finished one has no work left.

use scruple_core::history::{Graph, READINGS, VersionState};
use scruple_stats::sorting;
use std::time::Duration;

/// The number of rounds that a version needs before it is compared. Fewer give no interval at the level of 99 %.
const FIRST: u32 = 8;

/// The number of rounds that every version gets, however long they take. With fewer, times cannot be judged.
const LEAST: u32 = READINGS as u32;

/// How much to measure in a history.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEffort {
    /// Whether to build and weigh the ends first, and then versions where the ends differ.
    pub adaptive: bool,
    /// Whether to weigh versions between ones that do not differ as well, while there is time.
    pub fill: bool,
    /// The number of launches of each command in all passes together, if the user gave one. The numbers of rounds
    /// follow from it.
    pub launches: Option<u32>,
    /// The number of rounds for every version; 0 if no time is wanted.
    pub rounds: u32,
    /// The number of rounds for versions on both sides of a difference, in an adaptive history.
    pub suspects: u32,
    /// The number of builds of every version. The artefacts are those of the first build.
    pub builds: u32,
    /// The time after which only the necessary minimum is measured. In an adaptive history, builds are part of it. It is
    /// `None` if the user gave the rounds.
    pub budget: Option<Duration>,
}

/// What is known about one version.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VersionProgress {
    /// The state of the version.
    pub state: VersionState,
    /// The index of the weighed version with the same artefacts.
    pub original: Option<usize>,
    /// Whether the memory and counting passes were run.
    pub counted: bool,
    /// The number of timing launches of the command that was launched least often.
    pub rounds: u32,
    /// The number of times that the version was built.
    pub builds: u32,
}

impl HistoryEffort {
    /// Returns the number of rounds before a version is compared. If the user requests fewer than an interval needs,
    /// only exact figures can show differences.
    pub fn first(&self) -> u32 {
        FIRST.min(self.rounds)
    }

    /// Returns the number of launches for a count that differs from launch to launch. It is smaller if the user
    /// requests few rounds. A history without rounds has only counts, so these get the usual number of launches.
    pub fn counted(&self) -> u32 {
        match self.rounds {
            0 => LEAST,
            rounds => LEAST.min(rounds),
        }
    }
}

impl VersionProgress {
    /// Whether the version was not built yet.
    pub fn open(&self) -> bool {
        matches!(self.state, VersionState::Queued | VersionState::Building | VersionState::Skipped)
    }
}

/// A step of a history.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Build this version.
    Build(usize),
    /// Run the memory and counting passes of this version.
    Count(usize),
    /// Launch each of these versions once, in one block.
    Block(Vec<usize>),
    /// Build each of these versions once more, to measure what building costs.
    Rebuild(Vec<usize>),
    /// No work is left.
    Done,
}

/// Returns the next step. `difference` says by how much two weighed versions differ: 0 if by no more than noise, in any
/// unit else.
pub fn next_step(
    seen: &[VersionProgress],
    graph: &Graph,
    effort: &HistoryEffort,
    spent: Duration,
    difference: impl Fn(usize, usize) -> f64,
) -> Step {
    let time_left = effort.budget.is_none_or(|budget| spent < budget);
    let build = match effort.adaptive {
        false => seen.iter().position(VersionProgress::open),
        true => wanted(seen, graph, effort, room_for_another(seen, effort, spent), &difference),
    };
    if let Some(index) = build {
        return Step::Build(index);
    }
    let built = |index: &usize| seen[*index].state == VersionState::Built;
    let all: Vec<usize> = (0..seen.len()).filter(built).collect();
    if let Some(index) = all.iter().find(|index| !seen[**index].counted) {
        return Step::Count(*index);
    }
    match needy(seen, graph, effort, time_left, &difference) {
        Some((needy, _)) => Step::Block(with_neighbours(&needy, &all, graph)),
        None => rebuild(seen, effort),
    }
}

/// Whether the budget has room for another version, if that takes as long as those so far took on average.
fn room_for_another(seen: &[VersionProgress], effort: &HistoryEffort, spent: Duration) -> bool {
    let tried = seen.iter().filter(|one| !one.open()).count().max(1);
    effort.budget.is_none_or(|budget| spent + spent / tried as u32 <= budget)
}

/// Returns the step that builds the versions with too few builds. They are built in turns, so that disturbances of the
/// machine affect all of them.
fn rebuild(seen: &[VersionProgress], effort: &HistoryEffort) -> Step {
    let few = |index: &usize| {
        let one = &seen[*index];
        let built = matches!(one.state, VersionState::Built | VersionState::SameBinary);
        built && effort.builds > 1 && one.builds < effort.builds
    };
    let few: Vec<usize> = (0..seen.len()).filter(few).collect();
    if few.is_empty() { Step::Done } else { Step::Rebuild(few) }
}

/// Returns the built versions that need more rounds before all others, and the number of rounds that each of them is to
/// reach.
fn needy(
    seen: &[VersionProgress],
    graph: &Graph,
    effort: &HistoryEffort,
    time_left: bool,
    difference: &impl Fn(usize, usize) -> f64,
) -> Option<(Vec<usize>, u32)> {
    let all: Vec<usize> = (0..seen.len()).filter(|index| seen[*index].state == VersionState::Built).collect();
    let below = |rounds: u32, of: &[usize]| -> Option<(Vec<usize>, u32)> {
        let found: Vec<usize> = of.iter().copied().filter(|index| seen[*index].rounds < rounds).collect();
        (!found.is_empty()).then_some((found, rounds))
    };
    let first = if effort.adaptive { effort.first() } else { effort.rounds };
    let least = below(if time_left { first } else { LEAST.min(first) }, &all);
    if least.is_some() || !effort.adaptive || !time_left {
        return least;
    }
    below(effort.suspects, &suspects(seen, graph, effort, difference)).or_else(|| below(effort.rounds, &all))
}

/// The work that is possible now, without knowing the results of any of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParallelWork {
    /// The versions to build.
    pub builds: Vec<usize>,
    /// The versions whose memory and counting passes are to run.
    pub count: Vec<usize>,
    /// The versions to launch in the same blocks.
    pub beside: Vec<usize>,
    /// The number of rounds for the versions in `beside`.
    pub rounds: u32,
}

/// Returns the steps that do not depend on each other's results, assuming that every build succeeds. If a farm has more
/// free places than builds are needed, more versions are built to fill it.
pub fn ahead(
    seen: &[VersionProgress],
    graph: &Graph,
    effort: &HistoryEffort,
    spent: Duration,
    places: usize,
    difference: impl Fn(usize, usize) -> f64,
) -> ParallelWork {
    let (mut seen, mut found) = (seen.to_vec(), ParallelWork::default());
    let begun = seen.iter().any(|one| one.state == VersionState::Built);
    loop {
        match next_step(&seen, graph, effort, spent, &difference) {
            Step::Build(index) if found.count.is_empty() && found.beside.is_empty() => {
                seen[index].state = VersionState::Built;
                found.builds.push(index);
            }
            Step::Count(_) if found.beside.is_empty() => {
                let more = places.saturating_sub(found.builds.len());
                if effort.adaptive && found.count.is_empty() && !found.builds.is_empty() && more > 0 {
                    for index in also(&seen, graph, effort, (begun, more), &difference) {
                        seen[index].state = VersionState::Built;
                        found.builds.push(index);
                    }
                    found.builds.sort_unstable();
                }
                let open = |index: &usize| seen[*index].state == VersionState::Built && !seen[*index].counted;
                found.count = (0..seen.len()).filter(open).collect();
                found.count.iter().for_each(|index| seen[*index].counted = true);
            }
            Step::Block(set) if found.rounds == 0 => {
                let time_left = effort.budget.is_none_or(|budget| spent < budget);
                let rounds =
                    needy(&seen, graph, effort, time_left, &difference).map_or(1, |(needy, target)| {
                        // The set of versions changes as soon as one of them has enough rounds.
                        let missing = needy.iter().map(|index| target - seen[*index].rounds);
                        missing.min().unwrap_or(1)
                    });
                found.rounds = rounds.max(1);
                found.beside = set;
            }
            _ => return found,
        }
    }
}

/// Returns additional versions that a farm with free places builds. Before anything is known, they are spread evenly
/// over the range. Later, they are the middles of the stretches whose ends differ most, and then of the widest ones. Of
/// equally good choices, the older version comes first.
fn also(
    seen: &[VersionProgress],
    graph: &Graph,
    effort: &HistoryEffort,
    (begun, more): (bool, usize),
    difference: &impl Fn(usize, usize) -> f64,
) -> Vec<usize> {
    if !begun {
        let open: Vec<usize> = (0..seen.len()).filter(|index| seen[*index].open()).collect();
        let more = more.min(open.len());
        return (0..more).map(|step| open[(2 * step + 1) * open.len() / (2 * more)]).collect();
    }
    let mut stretches: Vec<(f64, Vec<usize>)> = Vec::new();
    for stretch in stretches_of(seen, graph, effort.first()) {
        let under_way = stretch.between.iter().any(|index| seen[*index].state == VersionState::Built);
        let missing: Vec<usize> =
            stretch.between.iter().copied().filter(|index| seen[*index].open()).collect();
        let size = size(&stretch, difference);
        if !missing.is_empty() && !under_way && (size > 0.0 || effort.fill) {
            stretches.push((size, missing));
        }
    }
    sorting::by(&mut stretches, |one, other| other.0.total_cmp(&one.0).then(other.1.len().cmp(&one.1.len())));
    stretches.iter().take(more).filter_map(|(_, missing)| middle(missing, graph)).collect()
}

/// Returns these versions and those that they are compared with: the nearest built versions before and after each, and
/// the first.
fn with_neighbours(needy: &[usize], all: &[usize], graph: &Graph) -> Vec<usize> {
    let mut set: Vec<usize> = needy.to_vec();
    set.extend(all.first());
    for &index in all {
        let before = graph.nearest(index, |other| all.binary_search(&other).is_ok()).0;
        let own = needy.contains(&index);
        for other in before {
            if own {
                set.push(other);
            } else if needy.contains(&other) {
                set.push(index);
            }
        }
    }
    set.sort_unstable();
    set.dedup();
    set
}

/// Whether a version, or the one that represents it, has enough readings to be compared.
fn weighed(seen: &[VersionProgress], index: usize, first: u32) -> bool {
    let one = &seen[seen[index].original.unwrap_or(index)];
    one.state == VersionState::Built && one.counted && one.rounds >= first
}

/// A version that can be compared, the comparable versions before it, and the versions between.
struct VersionStretch {
    from: Vec<usize>,
    to: usize,
    between: Vec<usize>,
}

fn stretches_of(seen: &[VersionProgress], graph: &Graph, first: u32) -> Vec<VersionStretch> {
    let known: Vec<bool> = (0..seen.len()).map(|index| weighed(seen, index, first)).collect();
    let line = graph.is_line();
    let stretch = |to: usize| {
        let (from, mut between) = graph.nearest(to, |other| known[other]);
        // Versions that are ancestors of an earlier comparable version are not new. In a linear history there are none.
        for old in from.iter().filter(|_| !line) {
            let Some(&floor) = between.first() else { break };
            let has = graph.ancestry(*old, floor);
            between.retain(|version| !has.has(*version));
        }
        VersionStretch { from, to, between }
    };
    (0..seen.len()).filter(|index| known[*index]).map(stretch).filter(|one| !one.from.is_empty()).collect()
}

/// Returns pairs of comparable versions, one directly before the other.
pub fn neighbours(seen: &[VersionProgress], graph: &Graph, first: u32) -> Vec<(usize, usize)> {
    let pairs = |one: VersionStretch| one.from.into_iter().map(move |from| (from, one.to));
    stretches_of(seen, graph, first).into_iter().flat_map(pairs).collect()
}

/// Returns the version to build next: an end of the range, the middle of the stretch whose ends differ most, or the
/// middle of the widest stretch. Of equally good choices, the older version comes first.
fn wanted(
    seen: &[VersionProgress],
    graph: &Graph,
    effort: &HistoryEffort,
    time_left: bool,
    difference: &impl Fn(usize, usize) -> f64,
) -> Option<usize> {
    let mut alive = (0..seen.len()).filter(|index| !seen[*index].state.failed());
    let (first, last) = (alive.next()?, alive.next_back());
    if let Some(end) = [Some(first), last].into_iter().flatten().find(|end| seen[*end].open()) {
        return Some(end);
    }
    if !time_left {
        return None;
    }
    let mut open: Vec<(VersionStretch, Vec<usize>)> = Vec::new();
    let mut pending: f64 = 0.0;
    for stretch in stretches_of(seen, graph, effort.first()) {
        let missing: Vec<usize> =
            stretch.between.iter().copied().filter(|index| seen[*index].open()).collect();
        // Built versions within a stretch are weighed before more versions are built there.
        let under_way = stretch.between.iter().any(|index| seen[*index].state == VersionState::Built);
        if under_way {
            pending = pending.max(size(&stretch, difference));
        } else if !missing.is_empty() {
            open.push((stretch, missing));
        }
    }
    // While a version in a stretch with a much larger difference waits to be weighed, smaller differences wait as well.
    let matters = |size: f64| size > 0.0 && 2.0 * size >= pending;
    let sizes = open.iter().map(|(stretch, missing)| (size(stretch, difference), missing));
    // Of equal elements, `max_by` returns the last one, and the oldest stretch comes first.
    let largest =
        sizes.filter(|(size, _)| matters(*size)).rev().max_by(|one, other| one.0.total_cmp(&other.0));
    if let Some((_, missing)) = largest {
        return middle(missing, graph);
    }
    let waits = (0..seen.len())
        .any(|index| seen[index].state == VersionState::Built && !weighed(seen, index, effort.first()));
    if !effort.fill || waits {
        return None;
    }
    open.iter().rev().max_by_key(|(_, missing)| missing.len()).and_then(|(_, missing)| middle(missing, graph))
}

/// Returns by how much the end of a stretch differs from the most similar of its starts. If it equals one of them, it
/// has inherited that one's costs.
fn size(stretch: &VersionStretch, difference: &impl Fn(usize, usize) -> f64) -> f64 {
    stretch.from.iter().map(|from| difference(*from, stretch.to)).fold(f64::INFINITY, f64::min)
}

/// Returns the version that divides the others most evenly. `versions` is in ascending order.
fn middle(versions: &[usize], graph: &Graph) -> Option<usize> {
    let half = versions.len() / 2;
    if graph.is_line() {
        return versions.get(half).copied();
    }
    let before = graph.ancestors_among(versions);
    versions
        .iter()
        .copied()
        .zip(before)
        .min_by_key(|(_, before)| before.abs_diff(half))
        .map(|(version, _)| version)
}

/// Returns the versions on both sides of a difference that has no unweighed version in between.
fn suspects(
    seen: &[VersionProgress],
    graph: &Graph,
    effort: &HistoryEffort,
    difference: &impl Fn(usize, usize) -> f64,
) -> Vec<usize> {
    let found =
        stretches_of(seen, graph, effort.first()).into_iter().filter(|one| size(one, difference) > 0.0);
    let mut found: Vec<usize> = found
        .flat_map(|one| one.from.into_iter().chain([one.to]))
        .map(|index| seen[index].original.unwrap_or(index))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests;
