//! Decides what to do next. The decision is made from the stored state each time, so that a killed history continues
//! where it was, and a finished one has nothing left to do.

use scruple_core::history::{Graph, READINGS, State};
use std::time::Duration;

/// Rounds that a version needs before it is compared: with fewer there is no interval at the level of 99 %.
const FIRST: u32 = 8;

/// Rounds that every version gets, however long they take: with fewer, times cannot be judged.
const LEAST: u32 = READINGS as u32;

/// The amount of measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEffort {
    /// Build and weigh the ends first, and then where the difference is.
    pub adaptive: bool,
    /// Also look between versions that do not differ, while there is time.
    pub fill: bool,
    /// Rounds for every version.
    pub rounds: u32,
    /// Rounds for versions on both sides of a difference, where adaptive.
    pub suspects: u32,
    /// Builds of every version, of which the first leaves the artefacts.
    pub builds: u32,
    /// Time after which no more is measured than must be; none where the rounds were given.
    pub budget: Option<Duration>,
}

/// What is known about one version.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Its state.
    pub state: State,
    /// The version that it shares its artefacts with.
    pub original: Option<usize>,
    /// Whether the memory and counting passes were taken once.
    pub counted: bool,
    /// Timing launches of the command that has the fewest.
    pub rounds: u32,
    /// How often it was built.
    pub builds: u32,
}

impl HistoryEffort {
    /// Rounds that every version gets, whatever the budget.
    pub fn least(&self) -> u32 {
        LEAST.min(self.rounds)
    }

    /// Rounds before a version is compared. Where fewer than are needed were requested, exact figures decide.
    pub fn first(&self) -> u32 {
        FIRST.min(self.rounds)
    }
}

impl Seen {
    fn open(&self) -> bool {
        matches!(self.state, State::Queued | State::Building | State::Skipped)
    }
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Build this version.
    Build(usize),
    /// Take the memory and counting passes of this version.
    Count(usize),
    /// Launch these once each, side by side.
    Block(Vec<usize>),
    /// Build these once more each, to see what building costs.
    Rebuild(Vec<usize>),
    /// Nothing.
    Done,
}

/// The next step. `differ` says whether two weighed versions differ beyond noise.
pub fn next_step(
    seen: &[Seen],
    graph: &Graph,
    effort: &HistoryEffort,
    spent: Duration,
    differ: impl Fn(usize, usize) -> bool,
) -> Step {
    let time_left = effort.budget.is_none_or(|budget| spent < budget);
    let build = match effort.adaptive {
        false => seen.iter().position(Seen::open),
        true => wanted(seen, graph, effort, time_left, &differ),
    };
    if let Some(index) = build {
        return Step::Build(index);
    }
    let built = |index: &usize| seen[*index].state == State::Built;
    let all: Vec<usize> = (0..seen.len()).filter(built).collect();
    if let Some(index) = all.iter().find(|index| !seen[**index].counted) {
        return Step::Count(*index);
    }
    match needy(seen, graph, effort, time_left, &differ) {
        Some((needy, _)) => Step::Block(beside(&needy, &all, graph)),
        None => rebuild(seen, effort),
    }
}

/// The versions that were built less often than they are to be. They are built in turns, so that what the machine does
/// meanwhile meets all of them.
fn rebuild(seen: &[Seen], effort: &HistoryEffort) -> Step {
    let few = |index: &usize| {
        let one = &seen[*index];
        let built = matches!(one.state, State::Built | State::SameBinary);
        built && effort.builds > 1 && one.builds < effort.builds
    };
    let few: Vec<usize> = (0..seen.len()).filter(few).collect();
    if few.is_empty() { Step::Done } else { Step::Rebuild(few) }
}

/// The built versions that need more rounds before all others, and how many each of them is to have.
fn needy(
    seen: &[Seen],
    graph: &Graph,
    effort: &HistoryEffort,
    time_left: bool,
    differ: &impl Fn(usize, usize) -> bool,
) -> Option<(Vec<usize>, u32)> {
    let all: Vec<usize> = (0..seen.len()).filter(|index| seen[*index].state == State::Built).collect();
    let below = |rounds: u32, of: &[usize]| -> Option<(Vec<usize>, u32)> {
        let found: Vec<usize> = of.iter().copied().filter(|index| seen[*index].rounds < rounds).collect();
        (!found.is_empty()).then_some((found, rounds))
    };
    let first = if effort.adaptive { effort.first() } else { effort.rounds };
    let least = below(if time_left { first } else { LEAST.min(first) }, &all);
    if least.is_some() || !effort.adaptive || !time_left {
        return least;
    }
    below(effort.suspects, &suspects(seen, graph, effort, differ)).or_else(|| below(effort.rounds, &all))
}

/// What can be done at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ahead {
    /// Versions to be built.
    pub builds: Vec<usize>,
    /// Versions for which the memory and counting passes are taken.
    pub count: Vec<usize>,
    /// Versions that are launched beside each other.
    pub beside: Vec<usize>,
    /// How many times.
    pub rounds: u32,
}

/// The steps that do not depend on what comes of each other, as if every build succeeded; rounds at most so many. Where
/// a farm has room for more builds than are needed, as many versions are built as fill it.
pub fn ahead(
    seen: &[Seen],
    graph: &Graph,
    effort: &HistoryEffort,
    spent: Duration,
    (places, most): (usize, u32),
    differ: impl Fn(usize, usize) -> bool,
) -> Ahead {
    let (mut seen, mut found) = (seen.to_vec(), Ahead::default());
    let begun = seen.iter().any(|one| one.state == State::Built);
    loop {
        match next_step(&seen, graph, effort, spent, &differ) {
            Step::Build(index) if found.count.is_empty() && found.beside.is_empty() => {
                seen[index].state = State::Built;
                found.builds.push(index);
            }
            Step::Count(_) if found.beside.is_empty() => {
                let more = places.saturating_sub(found.builds.len());
                if effort.adaptive && found.count.is_empty() && !found.builds.is_empty() && more > 0 {
                    for index in also(&seen, graph, effort, (begun, more), &differ) {
                        seen[index].state = State::Built;
                        found.builds.push(index);
                    }
                    found.builds.sort_unstable();
                }
                let open = |index: &usize| seen[*index].state == State::Built && !seen[*index].counted;
                found.count = (0..seen.len()).filter(open).collect();
                found.count.iter().for_each(|index| seen[*index].counted = true);
            }
            Step::Block(set) if found.rounds == 0 => {
                let time_left = effort.budget.is_none_or(|budget| spent < budget);
                let rounds = needy(&seen, graph, effort, time_left, &differ).map_or(1, |(needy, target)| {
                    // The set is another one as soon as one of them has enough.
                    let missing = needy.iter().map(|index| target - seen[*index].rounds);
                    missing.min().unwrap_or(1)
                });
                found.rounds = rounds.clamp(1, most.max(1));
                found.beside = set;
            }
            _ => return found,
        }
    }
}

/// Versions that a farm with room builds besides: evenly over the range before anything is known, then in the middle of
/// every stretch whose ends differ, then of the widest ones.
fn also(
    seen: &[Seen],
    graph: &Graph,
    effort: &HistoryEffort,
    (begun, more): (bool, usize),
    differ: &impl Fn(usize, usize) -> bool,
) -> Vec<usize> {
    if !begun {
        let open: Vec<usize> = (0..seen.len()).filter(|index| seen[*index].open()).collect();
        let more = more.min(open.len());
        return (0..more).map(|step| open[(2 * step + 1) * open.len() / (2 * more)]).collect();
    }
    let mut stretches: Vec<(bool, usize, Vec<usize>)> = Vec::new();
    for stretch in stretches_of(seen, graph, effort.first()) {
        let under_way = stretch.between.iter().any(|index| seen[*index].state == State::Built);
        let missing: Vec<usize> =
            stretch.between.iter().copied().filter(|index| seen[*index].open()).collect();
        let differs = differs(&stretch, differ);
        if !missing.is_empty() && !under_way && (differs || effort.fill) {
            stretches.push((differs, missing.len(), missing));
        }
    }
    stretches.sort_by_key(|(differs, length, _)| std::cmp::Reverse((*differs, *length)));
    stretches.iter().take(more).filter_map(|(_, _, missing)| middle(missing, graph)).collect()
}

/// These, and what they are to be compared with: the nearest built versions before and after each, and the first.
fn beside(needy: &[usize], all: &[usize], graph: &Graph) -> Vec<usize> {
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

/// Whether a version, or the one that it shares its artefacts with, can be compared.
fn weighed(seen: &[Seen], index: usize, first: u32) -> bool {
    let one = &seen[seen[index].original.unwrap_or(index)];
    one.state == State::Built && one.counted && one.rounds >= first
}

/// A version that can be compared, with those before it that can, and what is between.
struct Stretch {
    from: Vec<usize>,
    to: usize,
    between: Vec<usize>,
}

fn stretches_of(seen: &[Seen], graph: &Graph, first: u32) -> Vec<Stretch> {
    let known: Vec<bool> = (0..seen.len()).map(|index| weighed(seen, index, first)).collect();
    let line = graph.is_line();
    let stretch = |to: usize| {
        let (from, mut between) = graph.nearest(to, |other| known[other]);
        // What each version before it also has is not new. In a line that is nothing.
        for old in from.iter().filter(|_| !line) {
            let has = graph.ancestry(*old);
            between.retain(|version| !has[*version]);
        }
        Stretch { from, to, between }
    };
    (0..seen.len()).filter(|index| known[*index]).map(stretch).filter(|one| !one.from.is_empty()).collect()
}

/// The versions that can be compared, each with one directly before it.
pub fn neighbours(seen: &[Seen], graph: &Graph, first: u32) -> Vec<(usize, usize)> {
    let pairs = |one: Stretch| one.from.into_iter().map(move |from| (from, one.to));
    stretches_of(seen, graph, first).into_iter().flat_map(pairs).collect()
}

/// The version to build next: an end, or the middle of a stretch whose ends differ, or of the widest one.
fn wanted(
    seen: &[Seen],
    graph: &Graph,
    effort: &HistoryEffort,
    time_left: bool,
    differ: &impl Fn(usize, usize) -> bool,
) -> Option<usize> {
    let mut alive = (0..seen.len()).filter(|index| !seen[*index].state.failed());
    let (first, last) = (alive.next()?, alive.next_back());
    if let Some(end) = [Some(first), last].into_iter().flatten().find(|end| seen[*end].open()) {
        return Some(end);
    }
    if !time_left {
        return None;
    }
    let mut open: Vec<(Stretch, Vec<usize>)> = Vec::new();
    for stretch in stretches_of(seen, graph, effort.first()) {
        let missing: Vec<usize> =
            stretch.between.iter().copied().filter(|index| seen[*index].open()).collect();
        // Built versions within a stretch are weighed before more is built there.
        let under_way = stretch.between.iter().any(|index| seen[*index].state == State::Built);
        if !missing.is_empty() && !under_way {
            open.push((stretch, missing));
        }
    }
    if let Some((_, missing)) = open.iter().find(|(stretch, _)| differs(stretch, differ)) {
        return middle(missing, graph);
    }
    let waits = (0..seen.len())
        .any(|index| seen[index].state == State::Built && !weighed(seen, index, effort.first()));
    if !effort.fill || waits {
        return None;
    }
    open.iter().max_by_key(|(_, missing)| missing.len()).and_then(|(_, missing)| middle(missing, graph))
}

/// Whether the end of a stretch differs from all of its starts: what it shares with one, it has from there.
fn differs(stretch: &Stretch, differ: &impl Fn(usize, usize) -> bool) -> bool {
    stretch.from.iter().all(|from| differ(*from, stretch.to))
}

/// The version that divides the others most evenly.
fn middle(versions: &[usize], graph: &Graph) -> Option<usize> {
    let half = versions.len() / 2;
    let before = |version: usize| {
        let has = graph.ancestry(version);
        versions.iter().filter(|other| **other != version && has[**other]).count()
    };
    versions.iter().copied().min_by_key(|version| before(*version).abs_diff(half))
}

/// Versions on both sides of a difference that no version in between can explain any more.
fn suspects(
    seen: &[Seen],
    graph: &Graph,
    effort: &HistoryEffort,
    differ: &impl Fn(usize, usize) -> bool,
) -> Vec<usize> {
    let found = stretches_of(seen, graph, effort.first()).into_iter().filter(|one| differs(one, differ));
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
