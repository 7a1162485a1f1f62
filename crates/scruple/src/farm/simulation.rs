//! Simulates how long a history takes on farms of 1 to 1000 nodes, with the decisions of a real history and recorded
//! costs.
//!
//! No version is built or launched. The clock of the simulation advances by the time that the units of each step would
//! take, distributed to nodes as these become free. `bench/simulate/run.sh` prints a table.

use crate::history::schedule::{HistoryEffort, ParallelWork, VersionProgress, ahead};
use scruple_core::history::{Graph, VersionState};
use scruple_stats::Pcg;
use std::io::Write;
use std::time::Duration;

/// The smallest number of rounds in a unit.
const FEWEST: u32 = 2;

/// The recorded and assumed costs, in seconds.
struct SimulatedCosts {
    /// The recorded times of builds.
    builds: Vec<f64>,
    /// The recorded times of one launch of each subject.
    launches: Vec<f64>,
    /// The overhead of a unit: the time to send, start and collect it.
    unit: f64,
    /// The time that the store needs for a reading.
    reading: f64,
}

/// A history with known changes.
struct SimulatedHistory {
    versions: usize,
    subjects: usize,
    /// The indices of the versions that bring a change, in ascending order.
    steps: Vec<usize>,
}

impl SimulatedHistory {
    fn new(versions: usize, subjects: usize, steps: usize) -> SimulatedHistory {
        let mut random = Pcg::new(7);
        let mut places: Vec<usize> =
            (0..steps).map(|_| 1 + (random.unit() * (versions - 1) as f64) as usize).collect();
        places.sort_unstable();
        places.dedup();
        SimulatedHistory { versions, subjects, steps: places }
    }

    /// Whether a change lies after the earlier of two versions, up to the later one.
    fn differ(&self, a: usize, b: usize) -> bool {
        let (a, b) = (a.min(b), a.max(b));
        self.steps.iter().any(|step| a < *step && *step <= b)
    }
}

/// The result of a simulated history.
#[derive(Debug, PartialEq)]
struct SimulationResult {
    hours: f64,
    node_hours: f64,
    found: usize,
    batches: usize,
    units: usize,
    readings: usize,
}

/// Returns the time at which the last of these durations ends, if they are distributed in order to this many nodes.
fn makespan(units: &[f64], nodes: usize) -> f64 {
    let mut free = vec![0.0_f64; nodes.max(1)];
    for unit in units {
        let first = (0..free.len()).min_by(|a, b| free[*a].total_cmp(&free[*b])).unwrap_or(0);
        free[first] += unit;
    }
    free.into_iter().fold(0.0, f64::max)
}

fn simulate(world: &SimulatedHistory, costs: &SimulatedCosts, nodes: usize) -> SimulationResult {
    let effort = HistoryEffort {
        adaptive: true,
        fill: false,
        launches: None,
        rounds: 10,
        suspects: 20,
        budget: None,
        builds: 1,
    };
    let graph: Graph = (0..world.versions)
        .map(|version| version.checked_sub(1).into_iter().collect::<Vec<usize>>())
        .collect();
    let queued =
        VersionProgress { state: VersionState::Queued, original: None, counted: false, rounds: 0, builds: 0 };
    let mut seen = vec![queued; world.versions];
    let mut outcome =
        SimulationResult { hours: 0.0, node_hours: 0.0, found: 0, batches: 0, units: 0, readings: 0 };
    let launch = |number: usize| costs.launches[number % costs.launches.len()];
    let round: f64 = (0..world.subjects).map(launch).sum();
    loop {
        let now = ahead(&seen, &graph, &effort, Duration::ZERO, nodes, |a, b| f64::from(world.differ(a, b)));
        if now == ParallelWork::default() {
            break;
        }
        let builds: Vec<f64> =
            now.builds.iter().map(|index| costs.unit + costs.builds[index % costs.builds.len()]).collect();
        // Units are divided as in a real history: counts and rounds by subjects, and rounds in rows.
        let rows = (nodes as u32).min(now.rounds.div_ceil(FEWEST)).max(1) as usize;
        let groups =
            |most: usize| world.subjects.div_ceil(world.subjects.div_ceil(most.clamp(1, world.subjects)));
        let (counting, timing) = (groups(nodes), groups(nodes.div_ceil(rows)));
        let mut measures = Vec::new();
        if !now.count.is_empty() {
            let all = 4.0 * round * now.count.len() as f64;
            measures.extend(vec![costs.unit + all / counting as f64; counting]);
        }
        if now.rounds > 0 {
            let all = f64::from(now.rounds) * round * now.beside.len() as f64;
            measures.extend(vec![costs.unit + all / (rows * timing) as f64; rows * timing]);
        }
        let readings = world.subjects * (now.count.len() * 20 + now.beside.len() * now.rounds as usize * 4);
        let stored = readings as f64 * costs.reading;
        outcome.hours += (makespan(&builds, nodes) + makespan(&measures, nodes) + stored) / 3600.0;
        outcome.node_hours += builds.iter().chain(&measures).sum::<f64>() / 3600.0;
        outcome.batches += 1;
        outcome.units += builds.len() + measures.len();
        outcome.readings += readings;
        now.builds.iter().for_each(|index| seen[*index].state = VersionState::Built);
        now.count.iter().for_each(|index| seen[*index].counted = true);
        now.beside.iter().for_each(|index| seen[*index].rounds += now.rounds);
    }
    let built = |index: usize| seen[index].state == VersionState::Built;
    outcome.found = world.steps.iter().filter(|step| built(**step) && built(**step - 1)).count();
    outcome
}

/// Returns the recorded costs. The file contains nanoseconds; bench/simulate/record.py writes it.
fn recorded() -> SimulatedCosts {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/simulate/costs.json");
    let text = std::fs::read_to_string(path).expect("the recorded costs");
    let costs: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let seconds = |key: &str| -> Vec<f64> {
        let list = costs[key].as_array().expect("numbers");
        list.iter().filter_map(serde_json::Value::as_f64).map(|nanoseconds| nanoseconds / 1e9).collect()
    };
    let one = |key: &str| costs[key].as_f64().expect("a number");
    SimulatedCosts {
        builds: seconds("build.time"),
        launches: seconds("time.wall"),
        unit: one("seconds_a_unit"),
        reading: one("seconds_a_reading"),
    }
}

#[test]
fn on_any_number_of_nodes_every_step_is_found_and_more_nodes_take_no_longer() {
    let world = SimulatedHistory::new(400, 6, 5);
    let costs = SimulatedCosts { builds: vec![27.0], launches: vec![5.0], unit: 0.5, reading: 0.005 };
    let all: Vec<SimulationResult> = [1, 3, 10, 30].map(|nodes| simulate(&world, &costs, nodes)).into();
    assert!(all.iter().all(|one| one.found == world.steps.len()), "{all:?}");
    // A single node bisects: it makes about ten builds for each step, and does not build all versions.
    assert!(all[0].units < 400 && all[0].batches > 5, "{all:?}");
    assert!(all.windows(2).all(|pair| pair[1].hours <= 1.1 * pair[0].hours), "{all:?}");
    assert!(
        all.iter()
            .zip([1.0, 3.0, 10.0, 30.0])
            .all(|(one, nodes)| one.node_hours <= nodes * one.hours * 1.001)
    );
}

#[test]
#[ignore = "takes minutes; prints a table"]
fn table() {
    let (world, costs) = (SimulatedHistory::new(10_000, 200, 40), recorded());
    let say = |line: &str| _ = writeln!(std::io::stderr(), "{line}");
    say("| nodes | hours | node hours | used | steps found | batches | units | readings stored |");
    say("|---|---|---|---|---|---|---|---|");
    for nodes in [1, 3, 10, 30, 100, 300, 1000] {
        let one = simulate(&world, &costs, nodes);
        say(&format!(
            "| {nodes} | {:.1} | {:.0} | {:.0} % | {} of {} | {} | {} | {} |",
            one.hours,
            one.node_hours,
            100.0 * one.node_hours / (one.hours * nodes as f64),
            one.found,
            world.steps.len(),
            one.batches,
            one.units,
            one.readings
        ));
    }
}
