//! `scruple load` on a farm: nodes start servers and load them, and their readings are one run.

use super::command_lines::folder;
use super::unit_processes::{kill, units_of, words_of};
use crate::load::planted::SERVER;
use crate::programs::{eventually, or_skip};
use crate::slurm_cluster::Cluster;
use crate::support::{Answer, Place, at, free_port};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

/// Enough requests for the processor time of a window to be known.
const REQUESTS: &str = "10000";

/// How many milliseconds a server pauses after each hundred requests, so that a load takes longer than a question to the
/// process beside the servers.
const PAUSE: &str = "20";

/// The words of a load of one server, which starts on each node that does the command line.
pub fn words(place: &Place) -> Vec<String> {
    words_with_pauses(place, "0")
}

fn words_with_pauses(place: &Place, pause: &str) -> Vec<String> {
    place.compile("server", SERVER, &[]);
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/");
    let words = ["load", &url, "--json", "--seed", "7", "-c", "1", "-n", REQUESTS, "-d", "3s", "-i"];
    let behind = ["--name", "hello", "--", "./server", &port, "10000", "0", pause];
    words.iter().chain(&behind).map(|word| (*word).to_owned()).collect()
}

/// What Slurm and `here` reported about one load, in which each request was counted.
pub fn check(document: &Value, nodes: &[&str]) {
    let named = at(document, "/provenance/nodes").as_array().expect("nodes");
    let named: Vec<&str> = named.iter().filter_map(|node| node["name"].as_str()).collect();
    assert_eq!(named, nodes);
    let metrics = at(document, "/arms/0/metrics");
    // On a busy machine the generator may have been late in every turn. Such turns say nothing about the server.
    if metrics["load.p99"]["absent"].as_str().is_some_and(|why| why.contains("void")) {
        return;
    }
    for metric in ["request.cpu", "request.malloc.count"] {
        let readings = at(metrics, &format!("/{metric}/readings")).as_array().map_or(0, Vec::len);
        assert!(readings >= nodes.len(), "{metric}: {metrics}");
    }
}

#[test]
fn nodes_load_servers_of_their_own_and_their_loads_are_one_run() {
    let place = Place::new();
    let words = words(&place);
    // A program that does nothing leaves the units to the test.
    place.write("scruple.toml", "[farm]\nkind = \"here\"\nnodes = 4\nprogram = \"/bin/true\"\n");
    let answer = place.run(&words);
    assert!(answer.code == 2 && answer.stderr.contains("without a result"), "{}", answer.exchange());
    let folder = folder(&place);
    let units = std::fs::read_dir(folder.join("units")).expect("units").flatten();
    for (unit, node) in units.zip(["a", "b"]) {
        let mut command = place.command(["unit", "--node", node]);
        let answer = place.finish(command.arg(unit.path()).env("XDG_CACHE_HOME", place.file(node)));
        assert_eq!(answer.code, 0, "{}", answer.exchange());
    }
    let answer = place.run(&words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    check(&answer.json(), &["a", "b"]);
    let shown = place.run(["report", "last", "--export", "page.html"]);
    assert!(shown.code == 0 && place.read("page.html").contains(", on b"), "{}", shown.exchange());
}

/// The process beside the servers of this place.
fn beside(place: &Place) -> Option<String> {
    units_of(place).into_iter().find(|pid| words_of(pid).iter().any(|word| word == "--serve"))
}

#[test]
fn servers_on_another_node_are_started_and_read_there_also_where_the_process_beside_them_is_killed() {
    let place = Place::new();
    place.write("scruple.toml", "[farm]\nkind = \"here\"\n");
    let few = words_with_pauses(&place, PAUSE);
    // Without a number of requests the load lasts as long as was asked for.
    let mut long = few.clone();
    let number = long.iter().position(|word| word == "-n").expect("a number of requests");
    long.drain(number..number + 2);
    for (words, delay) in [(few, Duration::ZERO), (long, Duration::from_secs(2))] {
        let output = place.create("output");
        let child =
            place.command(&words).stdout(Stdio::piped()).stderr(output).spawn().expect("scruple runs");
        assert!(eventually(|| beside(&place).is_some()), "{}", place.read("output"));
        std::thread::sleep(delay);
        if let Some(pid) = beside(&place) {
            kill(&pid);
        }
        let answer = Answer::of(child.wait_with_output().expect("an end"), place.path());
        assert_eq!(answer.code, 0, "{}{}", answer.exchange(), place.read("output"));
        check(&answer.json(), &["here → servers"]);
        assert!(beside(&place).is_none());
        place.assert_no_processes();
    }
}

#[test]
fn a_process_beside_servers_that_waits_for_its_node_ends_when_the_one_that_loads_has_ended() {
    let place = Place::new();
    place.write("scruple.toml", "[farm]\nkind = \"here\"\nprogram = \"/bin/true\"\n");
    assert_eq!(place.run(words(&place)).code, 2, "units are written and not done");
    let folder = folder(&place);
    let unit =
        std::fs::read_dir(folder.join("units")).expect("units").flatten().next().expect("a unit").path();
    // Another unit measures on this node for as long as the test lasts.
    std::fs::create_dir_all(place.file("node/scruple/nodes")).expect("a folder");
    let lock = std::fs::File::create(place.file("node/scruple/nodes/unit.lock")).expect("a file");
    lock.lock().expect("a lock");
    let mut command = place.command(["unit", "--serve", "--node", "node"]);
    command.arg(unit).env("XDG_CACHE_HOME", place.file("node"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("scruple runs");
    drop(child.stdin.take());
    let mut ended = None;
    assert!(eventually(|| {
        ended = child.try_wait().expect("a status");
        ended.is_some()
    }));
    assert!(ended.is_some_and(|status| status.success()));
    drop(lock);
}

#[test]
fn slurm_puts_the_servers_of_a_load_on_another_node_than_their_clients() {
    let Some(cluster) = or_skip(Cluster::start()) else { return };
    let place = Place::new();
    let words = words(&place);
    // Nodes of one machine cannot have servers at the same port at the same time.
    place.write("scruple.toml", "[farm]\nkind = \"slurm\"\nnodes = 2\n");
    let answer = place.finish(cluster.configure(&mut place.command(&words)));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let document = answer.json();
    let node = at(&document, "/provenance/nodes/0/name").as_str().expect("a name").to_owned();
    let (client, server) = node.split_once(" → ").expect("two nodes");
    assert!(client != server && [client, server].iter().all(|name| !name.is_empty()), "{node}");
    check(&document, &[&node]);
    cluster.assert_no_jobs();
    place.assert_no_processes();
}

#[test]
fn options_that_a_farm_cannot_serve_are_refused_before_any_node_is_asked() {
    let place = Place::new();
    place.write("scruple.toml", "[farm]\nkind = \"here\"\nprogram = \"/bin/false\"\n");
    let refused = [
        (&["--slo", "p99<5ms"][..], "a search for the highest rate is not possible on a farm"),
        (&["--live", "127.0.0.1:0"], "--live is not possible on a farm"),
        (&["--export", "requests.jsonl"], "jsonl"),
    ];
    for (words, why) in refused {
        let answer = place.run(["load", "http://127.0.0.1:9/"].iter().chain(words));
        assert!(answer.code == 2 && answer.stderr.contains(why), "{}", answer.exchange());
        assert!(!place.file("cache/scruple/farm").exists());
    }
}
