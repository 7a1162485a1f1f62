//! The schema of a load in JSON, in addition to the readings of the arms. Durations are in nanoseconds.

use super::sheet::title;
use super::{instructions, memory_map, terminal};
use crate::load::windows::{ExcludedPart, Loads, Pool, ServerResults, Slice};
use scruple_core::knee::{KneeInterval, RateOutcome};
use scruple_core::per_request::{Bounds, PerRequest};
use scruple_core::sample::Reading;
use scruple_measure::load::cost::collections::Pauses;
use scruple_measure::load::cost::instructions::RequestInstructions;
use scruple_measure::load::cost::sampled::SampledTime;
use scruple_measure::load::cost::sheet::Sheet;
use scruple_measure::load::{
    Arrivals, Doubt, FailedCheck, GeneratorCost, Latencies, Pace, RequestKind, RowOf, Stall,
};
use scruple_stats::sorting::SortedMap;
use serde::Serialize;

/// The results of a load.
#[derive(Serialize)]
pub(crate) struct LoadJson<'a> {
    pace: &'static str,
    rate: Option<f64>,
    turns: u32,
    poisson: bool,
    connections: u32,
    servers: Vec<ServerView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<SearchView<'a>>,
}

#[derive(Serialize)]
struct ServerView<'a> {
    arm: &'a str,
    #[serde(flatten)]
    turns: TurnFields<'a>,
    #[serde(flatten)]
    requests: RequestsView<'a>,
    #[serde(flatten)]
    times: TimesView,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rows: Vec<GroupView<'a>>,
    #[serde(flatten)]
    course: Course<'a>,
    #[serde(flatten)]
    costs: CostsView<'a>,
}

/// How long the server was loaded, and which turns count.
#[derive(Serialize)]
struct TurnFields<'a> {
    windows: usize,
    void: usize,
    valid: bool,
    gone: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<&'a str>,
    span: u64,
    behind: u64,
}

/// The numbers of requests, by their outcome.
#[derive(Serialize)]
struct RequestsView<'a> {
    rate: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    least_rate: Option<f64>,
    due: u64,
    answered: u64,
    failed: SortedMap<&'static str, u64>,
    #[serde(skip_serializing_if = "SortedMap::is_empty")]
    bad_statuses: &'a SortedMap<u16, u64>,
    #[serde(skip_serializing_if = "SortedMap::is_empty")]
    failed_checks: &'a SortedMap<String, FailedCheck>,
    #[serde(skip_serializing_if = "SortedMap::is_empty")]
    causes: SortedMap<&'static str, SortedMap<&'a str, u64>>,
    bytes: u64,
    backlog: u64,
    reconnects: u64,
    #[serde(skip_serializing_if = "is_zero")]
    repeated: u64,
    #[serde(skip_serializing_if = "is_zero")]
    unfinished_sessions: u64,
}

/// How long requests and connections took.
#[derive(Serialize)]
struct TimesView {
    response: Distribution,
    service: Distribution,
    lag: Distribution,
    lateness: Distribution,
    #[serde(skip_serializing_if = "Option::is_none")]
    delayed: Option<DelayedResponses>,
    connect: Distribution,
}

/// The load over time, and the parts of it that do not count or are in doubt.
#[derive(Serialize)]
struct Course<'a> {
    timeline: &'a [Slice],
    stalls: &'a [Stall],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set_apart: Vec<SetApart>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    doubts: Vec<&'a Doubt>,
}

/// What the load cost the generator and the server.
#[derive(Serialize)]
struct CostsView<'a> {
    generator: GeneratorCost,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cost: Vec<CostView<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    memory: Vec<MemoryGrowth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_map: Option<memory_map::BeforeAndAfter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<FoundOrAbsent<SortedMap<&'a str, FoundOrAbsent<f64>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pauses: Option<FoundOrAbsent<&'a Pauses>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<FoundOrAbsent<InstructionTable<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<FoundOrAbsent<&'a SampledTime>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    syscalls: Option<FoundOrAbsent<&'a SortedMap<String, f64>>>,
}

/// The results for a kind of request, a group or a session.
#[derive(Serialize)]
struct GroupView<'a> {
    name: &'a str,
    of: RowOf,
    answered: u64,
    failed: SortedMap<&'static str, u64>,
    response: Distribution,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The responses that contain a delay of the generator.
#[derive(Serialize)]
struct DelayedResponses {
    count: u64,
    /// All responses without these delays.
    least: Distribution,
}

/// The parts of a load that do not count, with what happened in them.
#[derive(Serialize)]
struct SetApart {
    why: &'static str,
    span: u64,
    answered: u64,
    failed: SortedMap<&'static str, u64>,
    longest_stall: Option<u64>,
    response: Distribution,
}

/// A distribution: quantiles, and all occupied buckets as pairs of value and count.
#[derive(Serialize)]
struct Distribution {
    count: u64,
    mean: Option<f64>,
    p50: Option<u64>,
    p90: Option<u64>,
    p99: Option<u64>,
    p999: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p9999: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99999: Option<u64>,
    max: Option<u64>,
    buckets: Vec<(u64, u64)>,
}

#[derive(Serialize)]
struct CostView<'a> {
    counter: &'a str,
    title: &'a str,
    unit: &'a str,
    quality: &'static str,
    source: &'a str,
    idle_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    below_resolution: Option<f64>,
    #[serde(flatten)]
    found: FoundOrAbsent<PerRequest>,
}

#[derive(Serialize)]
struct MemoryGrowth {
    of: &'static str,
    bytes_per_thousand: f64,
    interval: Option<[f64; 2]>,
    leak: Option<bool>,
}

#[derive(Serialize)]
struct InstructionTable<'a> {
    total: f64,
    interval: Option<[f64; 2]>,
    batches: &'a [u64],
    by: &'a str,
    files: Vec<(String, f64)>,
    functions: Vec<FunctionInstructions<'a>>,
}

#[derive(Serialize)]
struct FunctionInstructions<'a> {
    name: &'a str,
    object: &'a str,
    own: f64,
    own_interval: Option<[f64; 2]>,
    inclusive: f64,
    inclusive_interval: Option<[f64; 2]>,
    calls: f64,
}

/// A result, or the reason why it is absent.
#[derive(Serialize)]
#[serde(untagged)]
enum FoundOrAbsent<T> {
    Found(T),
    Absent { absent: String },
}

#[derive(Serialize)]
struct SearchView<'a> {
    limits: &'a str,
    #[serde(flatten)]
    found: KneeInterval,
    measurements: Vec<RateFields<'a>>,
}

#[derive(Serialize)]
struct RateFields<'a> {
    rate: f64,
    outcome: RateOutcome,
    broken: &'a [String],
    achieved: f64,
    behind: u64,
    answered: u64,
    failed: u64,
    p50: Option<u64>,
    p99: Option<u64>,
    generator_busy: f64,
    late: f64,
}

fn pair(bounds: Bounds) -> Option<[f64; 2]> {
    bounds.interval.map(|interval| [interval.low, interval.high])
}

pub(crate) fn document(loads: &Loads) -> LoadJson<'_> {
    LoadJson {
        pace: if loads.plan.rate().is_some() { "open" } else { "closed" },
        rate: loads.plan.rate(),
        turns: loads.division.turns,
        poisson: matches!(loads.plan.pace, Pace::Open { arrivals: Arrivals::Poisson, .. }),
        connections: loads.plan.connections,
        servers: loads.servers.iter().map(server).collect(),
        search: loads.capacity.as_ref().map(|sought| SearchView {
            limits: &sought.limits,
            found: sought.found.found,
            measurements: sought
                .found
                .points
                .iter()
                .map(|point| RateFields {
                    rate: point.rate,
                    outcome: point.outcome,
                    broken: &point.broken,
                    achieved: point.load.rate(),
                    behind: point.load.behind,
                    answered: point.load.counts.answered,
                    failed: point.load.counts.failures.total(),
                    p50: point.response.quantile(0.5),
                    p99: point.response.quantile(0.99),
                    generator_busy: point.load.generator.busy(),
                    late: point.late,
                })
                .collect(),
        }),
    }
}

fn delayed(pool: &Pool) -> Option<DelayedResponses> {
    let count = pool.times.delayed.count();
    let least = || distribution(&pool.times.delayed.least_of(&pool.times.response));
    (count > 0).then(|| DelayedResponses { count, least: least() })
}

fn server(server: &ServerResults) -> ServerView<'_> {
    let pool = &server.pool;
    ServerView {
        arm: &server.name,
        turns: TurnFields {
            windows: pool.windows,
            void: server.void,
            valid: server.void == 0 && !pool.doubts.iter().any(|(doubt, _)| doubt.voids),
            gone: pool.gone,
            ended: server.ended.as_deref(),
            span: pool.span,
            behind: pool.behind,
        },
        requests: requests(pool),
        times: TimesView {
            response: distribution(&pool.times.response),
            service: distribution(&pool.times.service),
            lag: distribution(&pool.times.lag),
            lateness: distribution(&pool.times.lateness),
            delayed: delayed(pool),
            connect: distribution(&pool.connect),
        },
        rows: rows(pool),
        course: Course {
            timeline: &pool.timeline,
            stalls: &pool.stalls,
            set_apart: pool.aside.iter().map(aside).collect(),
            doubts: pool.doubts.iter().map(|(doubt, _)| doubt).collect(),
        },
        costs: costs(server),
    }
}

fn requests(pool: &Pool) -> RequestsView<'_> {
    let mut causes: SortedMap<&str, SortedMap<&str, u64>> = SortedMap::new();
    for ((class, cause), count) in pool.counts.failures.causes() {
        causes.entry(class.name()).or_default().insert(cause, *count);
    }
    RequestsView {
        rate: pool.rate(),
        least_rate: pool.least_rate(),
        due: pool.counts.due,
        answered: pool.counts.answered,
        failed: SortedMap::from_iter(pool.counts.failures.each().map(|(class, count)| (class.name(), count))),
        bad_statuses: pool.counts.failures.statuses(),
        failed_checks: pool.counts.failures.checks(),
        causes,
        bytes: pool.counts.bytes,
        backlog: pool.counts.backlog,
        reconnects: pool.reconnects,
        repeated: pool.repeated,
        unfinished_sessions: pool.unfinished,
    }
}

fn costs(server: &ServerResults) -> CostsView<'_> {
    let heap = server.heap.as_ref().and_then(|heap| heap.as_ref().ok());
    let runtime = server.runtime.as_ref().and_then(|runtime| runtime.as_ref().ok());
    CostsView {
        generator: server.pool.generator,
        cost: server.sheet.iter().chain(heap).flat_map(sheet_costs).collect(),
        memory: server.sheet.iter().flat_map(growths).collect(),
        memory_map: server.sheet.as_ref().and_then(|sheet| memory_map::before_and_after(&sheet.maps)),
        runtime: server.runtime.as_ref().map(|runtime| match runtime {
            Ok(runtime) => FoundOrAbsent::Found(runtime.each.iter().map(counted).collect()),
            Err(why) => FoundOrAbsent::Absent { absent: why.to_string() },
        }),
        pauses: runtime.map(|runtime| part(&runtime.pauses, |pauses| pauses)),
        instructions: server.instructions.as_ref().map(|found| part(found, instruction_table)),
        sampled: server.sampled.as_ref().map(|found| part(found, |found| found)),
        syscalls: server.syscalls.as_ref().map(|found| part(found, |calls| calls)),
    }
}

fn instruction_table(found: &RequestInstructions) -> InstructionTable<'_> {
    let functions = found.functions.iter().map(|cost| FunctionInstructions {
        name: instructions::name(cost),
        object: &cost.function.object,
        own: cost.own.value,
        own_interval: pair(cost.own),
        inclusive: cost.inclusive.value,
        inclusive_interval: pair(cost.inclusive),
        calls: cost.calls,
    });
    InstructionTable {
        total: found.total.value,
        interval: pair(found.total),
        batches: &found.batches,
        by: &found.by,
        files: instructions::by_file(found),
        functions: functions.collect(),
    }
}

fn part<'a, T, U>(found: &'a Result<T, String>, view: impl Fn(&'a T) -> U) -> FoundOrAbsent<U> {
    match found {
        Ok(found) => FoundOrAbsent::Found(view(found)),
        Err(why) => FoundOrAbsent::Absent { absent: why.clone() },
    }
}

fn rows(pool: &Pool) -> Vec<GroupView<'_>> {
    let row =
        |kind: &'_ RequestKind| pool.rows.iter().find(|(name, of, _)| *name == kind.name && *of == kind.of);
    let view = |kind| {
        let (.., response) = row(kind)?;
        Some(GroupView {
            name: &kind.name,
            of: kind.of,
            answered: kind.answered,
            failed: SortedMap::from_iter(kind.failures.each().map(|(class, count)| (class.name(), count))),
            response: distribution(response),
        })
    };
    pool.kinds.iter().filter(|_| pool.rows.len() > 1).filter_map(view).collect()
}

fn aside(aside: &ExcludedPart) -> SetApart {
    SetApart {
        why: aside.why,
        span: aside.span,
        answered: aside.answered,
        failed: SortedMap::from_iter(aside.failures.each().map(|(class, count)| (class.name(), count))),
        longest_stall: aside.stall,
        response: distribution(&aside.response),
    }
}

fn distribution(latencies: &Latencies) -> Distribution {
    let rare = |q: f64| latencies.quantile(q).filter(|_| terminal::known(latencies, q));
    Distribution {
        count: latencies.count(),
        mean: latencies.mean(),
        p50: latencies.quantile(0.5),
        p90: latencies.quantile(0.9),
        p99: latencies.quantile(0.99),
        p999: latencies.quantile(0.999),
        p9999: rare(0.9999),
        p99999: rare(0.99999),
        max: latencies.max(),
        buckets: latencies.each().to_vec(),
    }
}

fn sheet_costs(sheet: &Sheet) -> impl Iterator<Item = CostView<'_>> {
    sheet.rows.iter().map(|row| CostView {
        counter: &row.key,
        title: title(&row.key),
        unit: row.unit.name(),
        quality: row.quality.word(),
        source: &row.source,
        idle_per_second: row.idle,
        below_resolution: row.cost.as_ref().ok().and_then(PerRequest::below_resolution),
        found: match &row.cost {
            Ok(cost) => FoundOrAbsent::Found(*cost),
            Err(why) => FoundOrAbsent::Absent { absent: why.clone() },
        },
    })
}

fn growths(sheet: &Sheet) -> impl Iterator<Item = MemoryGrowth> + '_ {
    sheet.growth.iter().map(|growth| MemoryGrowth {
        of: growth.of,
        bytes_per_thousand: growth.per_thousand.value,
        interval: growth.per_thousand.interval.map(|interval| [interval.low, interval.high]),
        leak: (!growth.is_undecided()).then(|| growth.is_leak()),
    })
}

fn counted(reading: &Reading) -> (&str, FoundOrAbsent<f64>) {
    (&reading.key, part(&reading.value, |value| *value))
}
