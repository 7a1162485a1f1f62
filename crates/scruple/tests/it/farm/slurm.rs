//! Histories on a real Slurm cluster: where units run, what happens if its daemons are killed, and that the figures
//! equal those of a local history.

use super::unit_processes::{kill, units_of};
use crate::programs::{or_skip, send};
use crate::repository::{BUILD, Repository, blocks};
use crate::slurm_cluster::Cluster;
use crate::support::{Answer, Place};
use std::process::{Child, Stdio};

const VERSIONS: usize = 20;
const STEP: usize = 12;
const ROUNDS: usize = 6;

/// A repository of 20 versions. From version `STEP` on, each allocates twice as much as those before.
fn planted(place: &Place) -> Repository {
    let repository = Repository::new(place, "repo");
    for index in 0..VERSIONS {
        let bytes = if index < STEP { 10_000 } else { 20_000 };
        // A variable makes each version's program a different binary that does the same work.
        repository.commit_program(
            &format!("version {index}"),
            1000,
            bytes,
            &format!("volatile int v = {index}; (void)v;"),
        );
    }
    repository
}

/// Restricts the measurements to nodes of the class m1.
fn of_class_m1(place: &Place) {
    place.write("scruple.toml", "[farm]\nkind = \"slurm\"\nconstraint = \"m1\"\n");
}

fn words() -> Vec<&'static str> {
    let words = ["history", "--repo", "repo", "--all", "--rounds", "6", "--seed", "7"];
    words.iter().chain(&BUILD).chain(&["--", "./app"]).copied().collect()
}

/// The indices of the versions at which the metric changes.
fn changes(answer: &Answer, metric: &str) -> Vec<u64> {
    let all = answer.json();
    let series = all["series"].as_array().expect("series").clone();
    let one = series.iter().find(|one| one["metric"] == metric).expect("a series");
    one["changes"].as_array().expect("changes").iter().filter_map(|change| change["at"].as_u64()).collect()
}

fn check(place: &Place) {
    let recorded = place.recorded();
    assert_eq!(recorded.states(), vec!["built"; VERSIONS]);
    assert_eq!(recorded.ended(), "complete");
    for index in 0..VERSIONS {
        let title = format!("version {index}");
        assert_eq!(recorded.readings(&title, "time.wall").len(), ROUNDS, "{title}");
    }
    // Block numbers that strictly rise show that no reading was merged twice.
    for arm in recorded.arms() {
        assert!(blocks(arm).windows(2).all(|pair| pair[0] < pair[1]), "{:?}", blocks(arm));
    }
    let report = place.run(["history", "report", "--repo", "repo", "--json"]);
    assert_eq!(changes(&report, "malloc.bytes"), [STEP as u64], "{}", report.exchange());
}

#[test]
fn a_history_by_slurm_has_the_figures_of_here_and_runs_on_nodes_of_its_class_only() {
    let Some(cluster) = or_skip(Cluster::start()) else { return };
    let (here, there) = (Place::new(), Place::new());
    let (_one, _other) = (planted(&here), planted(&there));
    let answer = here.run(words());
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    check(&here);
    of_class_m1(&there);
    let answer = there.finish(cluster.configure(&mut there.command(words())));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    check(&there);
    let used = cluster.used();
    assert!(
        !used.is_empty() && used.iter().all(|node| ["n1", "n2", "n3"].contains(&node.as_str())),
        "{used:?}"
    );
    let (ours, theirs) = (here.recorded(), there.recorded());
    for index in 0..VERSIONS {
        let title = format!("version {index}");
        for metric in ["malloc.count", "malloc.bytes", "malloc.peak", "build.bytes"] {
            let (mut ours, mut theirs) = (ours.readings(&title, metric), theirs.readings(&title, metric));
            ours.dedup();
            theirs.dedup();
            assert!(ours.len() == 1 && ours == theirs, "{title}, {metric}: {ours:?} and {theirs:?}");
        }
    }
    let again = there.finish(cluster.configure(&mut there.command(words())));
    assert!(
        again.code == 0 && !again.stderr.contains("rounds on"),
        "nothing is left to do: {}",
        again.exchange()
    );
    cluster.assert_no_jobs();
}

#[test]
fn a_history_by_slurm_has_the_verdicts_of_here() {
    let Some(cluster) = or_skip(Cluster::start()) else { return };
    // One version allocates more, and a later one needs twice the time.
    let answers: Vec<Answer> = [false, true]
        .map(|by_slurm| {
            let place = Place::new();
            let repository = Repository::new(&place, "repo");
            for index in 0..8 {
                let (steps, bytes) =
                    (if index < 5 { 3_000_000 } else { 6_000_000 }, if index < 3 { 10_000 } else { 20_000 });
                let other = format!("volatile int v = {index}; (void)v;");
                repository.commit_program(&format!("version {index}"), steps, bytes, &other);
            }
            if by_slurm {
                of_class_m1(&place);
            }
            let words = ["history", "--repo", "repo", "--all", "--rounds", "20", "--seed", "7", "--json"];
            let mut command = place.command(words.iter().chain(&BUILD).chain(&["--", "./app"]));
            let answer = place.finish(cluster.configure(&mut command));
            assert_eq!(answer.code, 0, "{}", answer.exchange());
            answer
        })
        .into();
    for answer in &answers {
        assert_eq!(changes(answer, "malloc.bytes"), [3], "{}", answer.exchange());
        assert!(changes(answer, "time.cpu").contains(&5), "{}", answer.exchange());
    }
    let nodes = answers[1].json()["provenance"]["nodes"].as_array().map_or(0, Vec::len);
    assert!((1..=3).contains(&nodes), "{nodes} nodes: {}", answers[1].exchange());
}

#[test]
fn units_daemons_and_the_sender_may_be_killed_and_nothing_is_lost_or_counted_twice() {
    let Some(cluster) = or_skip(Cluster::start()) else { return };
    let place = Place::new();
    let _repository = planted(&place);
    of_class_m1(&place);
    // Builds take half a second, so that some kills hit a build under way.
    let mut words = words();
    words.splice(3..3, ["--build", "sleep 0.5"]);
    let start = |name: &str| -> Child {
        let output = place.create(name);
        let mut command = place.command(&words);
        cluster.configure(&mut command).stdout(Stdio::null()).stderr(output).spawn().expect("scruple runs")
    };
    let farm = || -> Option<std::path::PathBuf> {
        let builds = std::fs::read_dir(place.work().join("history")).ok()?.flatten().next()?;
        Some(std::fs::read_dir(builds.path().join("farm")).ok()?.flatten().next()?.path())
    };
    let results =
        || farm().and_then(|farm| Some(std::fs::read_dir(farm.join("results")).ok()?.count())).unwrap_or(0);
    let units = || units_of(&place);
    let mut sender = start("output-1");
    assert!(cluster.eventually(|| !units().is_empty()), "no unit begins: {}", place.read("output-1"));
    // Kill a unit: Slurm does not start its job again.
    if let Some(unit) = units().first() {
        kill(unit);
    }
    assert!(cluster.eventually(|| results() > 0), "{}", place.read("output-1"));
    // Kill the daemon of a node: a job that it was about to launch never begins.
    let running = || cluster.ask(&["squeue", "-h", "-t", "R", "-o", "%N"]);
    assert!(cluster.eventually(|| running().lines().next().is_some()), "{}", place.read("output-1"));
    let daemon = format!("slurmd.{}", running().lines().next().unwrap_or("n1"));
    cluster.kill(&daemon);
    cluster.restart(&daemon);
    // Kill the sender: the jobs that it sent continue, and the next sender finds them.
    sender.kill().expect("a kill");
    sender.wait().expect("an end");
    let before = results();
    assert!(cluster.eventually(|| results() > before), "units do not go on without the sender");
    let mut sender = start("output-2");
    assert!(
        // The second sender has asked the controller for its nodes, which has to be up when a farm starts.
        cluster.eventually(|| {
            results() > before + 1 && !units().is_empty() && place.read("output-2").contains("next, of")
        }),
        "{}",
        place.read("output-2")
    );
    // Kill the controller: jobs continue, and the restarted controller finds them.
    cluster.kill("slurmctld");
    std::thread::sleep(std::time::Duration::from_secs(1));
    cluster.restart("slurmctld");
    let finished = (0..4).any(|_| {
        cluster.eventually(|| {
            cluster.resume_drained();
            farm().is_none()
        })
    });
    assert!(finished, "{}\n{}", place.read("output-2"), cluster.state());
    assert!(
        cluster.eventually(|| place.read("output-2").contains("rounds on")),
        "{}",
        place.read("output-2")
    );
    assert!(sender.wait().expect("an end").success(), "{}", place.read("output-2"));
    check(&place);
}

#[test]
fn an_interruption_takes_back_the_jobs_that_were_sent() {
    let Some(cluster) = or_skip(Cluster::start()) else { return };
    let place = Place::new();
    let _repository = planted(&place);
    of_class_m1(&place);
    let other = cluster.ask(&[
        "sbatch",
        "--parsable",
        "--exclusive",
        "-C",
        "m2",
        "--output=/dev/null",
        "--wrap",
        "sleep 600",
    ]);
    let mut words = words();
    words.splice(3..3, ["--build", "sleep 30"]);
    let mut command = place.command(&words);
    let mut child =
        cluster.configure(&mut command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("scruple");
    assert!(cluster.eventually(|| !units_of(&place).is_empty()), "no unit begins");
    send(&child, "INT");
    assert_eq!(child.wait().expect("an end").code(), Some(130));
    // Jobs of other users stay in the queue.
    let left = || cluster.ask(&["squeue", "-h", "-o", "%i"]);
    assert!(cluster.eventually(|| left().trim() == other.trim()), "{}", left());
    assert!(cluster.eventually(|| units_of(&place).is_empty()), "a unit lives on");
}
