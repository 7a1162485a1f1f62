//! `scruple run` and `scruple bench` on a farm: each node runs the whole command line, and Scruple merges their
//! readings into one run.

use super::names;
use super::unit_processes::{kill, units_of, words_of};
use crate::fake::{bench, bench_words};
use crate::programs::or_skip;
use crate::repository::blocks;
use crate::slurm_cluster::Cluster;
use crate::support::{Answer, Place, at};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Compiles the programs `one` and `two`. `two` does twice the work and uses twice the memory.
pub fn programs(place: &Place) {
    program(place, "one", 1);
    program(place, "two", 2);
}

/// Compiles a program that does `times` times the work of `one`.
fn program(place: &Place, name: &str, times: u32) {
    let text = format!(
        "#include <stdlib.h>\n#include <string.h>\nint main(void) {{\n volatile unsigned long sum = 0;\n \
         for (unsigned long i = 0; i < {times} * 1000000ul; i++) sum += i;\n \
         char *volatile kept = malloc({times} * 100000);\n memset(kept, 1, {times} * 100000);\n return 0;\n}}\n"
    );
    place.compile(name, &text, &[]);
}

/// The words of a run of both programs.
pub const WORDS: [&str; 8] = ["run", "--seed", "7", "-r", "15", "--json", "./one", "./two"];

/// Configures a farm of four units on this machine. Its program does nothing until the file `go` exists.
fn four_units(place: &Place) {
    place.shell_script(
        "on-a-node",
        &format!(
            "[ -e {} ] || exit 0\nexec {} \"$@\"",
            place.file("go").display(),
            env!("CARGO_BIN_EXE_scruple")
        ),
    );
    place.write("scruple.toml", "[farm]\nkind = \"here\"\nnodes = 4\nprogram = \"./on-a-node\"\n");
}

/// The folder of the only command line that was distributed.
pub fn folder(place: &Place) -> PathBuf {
    let mut all = std::fs::read_dir(place.file("cache/scruple/farm/lines")).expect("a folder").flatten();
    all.find(|entry| entry.path().is_dir()).expect("a command line").path()
}

fn unit(place: &Place, name: &str, node: &str) -> Answer {
    let mut command = place.command(["unit", "--node", node]);
    command.arg(folder(place).join("units").join(name)).env("XDG_CACHE_HOME", place.file(node));
    place.finish(&mut command)
}

/// The arm with this name in the JSON of a run.
pub fn arm<'a>(document: &'a Value, name: &str) -> &'a Value {
    let all = document["arms"].as_array().expect("arms");
    all.iter().find(|arm| arm["name"] == name).expect("an arm")
}

/// The readings of a metric of an arm in the JSON of a run.
pub fn readings(document: &Value, name: &str, metric: &str) -> Vec<f64> {
    let all = arm(document, name)["metrics"][metric]["readings"].as_array().cloned().unwrap_or_default();
    all.iter().filter_map(Value::as_f64).collect()
}

fn comparison<'a>(document: &'a Value, metric: &str) -> &'a Value {
    let all = document["comparisons"].as_array().expect("comparisons");
    all.iter().find(|one| one["metric"] == metric).expect("a comparison")
}

#[test]
fn four_nodes_do_a_command_line_and_are_joined_and_a_node_of_another_class_is_not() {
    let place = Place::new();
    programs(&place);
    let here = place.run(WORDS).json();
    four_units(&place);
    let answer = place.run(WORDS);
    assert!(answer.code == 2 && answer.stderr.contains("without a result"), "{}", answer.exchange());
    let units = names(folder(&place).join("units"));
    assert_eq!(units.len(), 4);
    for (name, node) in units.iter().zip(["a", "b", "c", "d"]) {
        let answer = unit(&place, name, node);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
    }
    // Change one result so that it comes from another machine class.
    let result = folder(&place).join("results").join(&units[3]);
    let text = std::fs::read_to_string(&result).expect("a result");
    let mut document: Value = serde_json::from_str(&text).expect("JSON");
    document["machine"]["machine_class"] = "another/1/class".into();
    std::fs::write(&result, document.to_string()).expect("a result");
    let answer = place.run(WORDS);
    assert!(answer.code == 2 && answer.stderr.contains("mixed = true"), "{}", answer.exchange());
    let left = names(folder(&place).join("results"));
    assert!(left.len() == 3, "its part is to be measured again: {left:?}");
    let lost = units.iter().find(|name| !left.contains(name)).expect("one");
    assert_eq!(unit(&place, lost, "e").code, 0);
    let answer = place.run(WORDS);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let document = answer.json();
    assert_eq!(document["run"]["state"], "complete");
    for name in ["./one", "./two"] {
        assert_eq!(readings(&document, name, "time.cpu").len(), 24, "six of each node");
        let blocks = blocks(arm(&document, name));
        assert!(blocks.windows(2).all(|pair| pair[0] < pair[1]), "{blocks:?}");
        let mut exact = readings(&document, name, "malloc.count");
        exact.dedup();
        let mut exact_here = readings(&here, name, "malloc.count");
        exact_here.dedup();
        assert_eq!(exact, exact_here, "the same everywhere");
    }
    let cpu = comparison(&document, "time.cpu");
    assert_eq!(*at(cpu, "/nodes/of_class"), true);
    assert_eq!(at(cpu, "/nodes/effects").as_object().expect("nodes").len(), 4);
    assert_eq!(cpu["method"], "mean of nodes, Student over nodes");
    assert_eq!(cpu["blocks"], 4);
    assert_eq!(comparison(&document, "malloc.bytes")["verdict"], "different");
    // The stored run has the same judgement in every output format.
    let id = document["run"]["id"].as_str().expect("an id");
    let shown = place.run(["show", id]);
    assert!(shown.unwrapped().contains("nodes differ"), "{}", shown.exchange());
    assert_eq!(comparison(&place.run(["show", id, "--json"]).json(), "time.cpu"), cpu);
    assert_eq!(place.run(["store", "list", "--json"]).stdout.matches(id).count(), 1);
    let left = names(place.file("cache/scruple/farm/lines"));
    assert_eq!(left, Vec::<String>::new(), "what is in the store is not kept twice");
}

#[test]
fn a_unit_refuses_other_programs_another_configuration_and_a_program_that_fails() {
    let place = Place::new();
    programs(&place);
    four_units(&place);
    assert_eq!(place.run(WORDS).code, 2);
    let units = names(folder(&place).join("units"));
    let configured = place.read("scruple.toml");
    place.write("scruple.toml", format!("{configured}# changed\n"));
    let answer = unit(&place, &units[0], "a");
    assert!(
        answer.code == 2 && answer.stderr.contains("scruple.toml has changed since"),
        "{}",
        answer.exchange()
    );
    place.write("scruple.toml", configured);
    program(&place, "two", 3);
    let answer = unit(&place, &units[0], "a");
    assert!(
        answer.code == 2 && answer.stderr.contains("is not the same file on this node"),
        "{}",
        answer.exchange()
    );
    assert_eq!(names(folder(&place).join("results")), Vec::<String>::new());
    std::fs::remove_dir_all(place.file("cache/scruple/farm")).expect("units");
    // If a program fails on a node, the error names the node and the reason.
    place.write("go", "");
    place.shell_script("two", "echo broken >&2; exit 3");
    let answer = place.run(WORDS);
    assert!(
        answer.code == 4 && answer.stderr.contains("failed on here; ") && answer.stderr.contains("broken"),
        "{}",
        answer.exchange()
    );
    place.assert_no_processes();
}

#[test]
fn cases_are_weighed_by_units_as_well() {
    let place = Place::new();
    let cases = [r#"{"name":"zoo/ant","cost":5,"bytes":16}"#, r#"{"name":"zoo/bee","cost":10}"#];
    let here = bench(&place, &["--json"], &cases);
    assert_eq!(here.code, 0, "{}", here.exchange());
    place.write("scruple.toml", "[farm]\nkind = \"here\"\nnodes = 2\n");
    let answer = bench(&place, &["--json"], &cases);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let (here, document) = (here.json(), answer.json());
    for name in ["zoo/ant", "zoo/bee"] {
        let ours = readings(&here, name, "time.wall").len();
        assert_eq!(
            readings(&document, name, "time.wall").len(),
            2 * ours,
            "{name}: three processes of each unit"
        );
    }
    assert_eq!(
        at(&document, "/provenance/nodes").as_array().expect("nodes").len(),
        1,
        "one machine did both"
    );
}

#[test]
fn slurm_runs_a_command_line_on_its_nodes_though_a_unit_and_the_sender_are_killed() {
    let Some(cluster) = or_skip(Cluster::start()) else { return };
    let place = Place::new();
    programs(&place);
    let here = place.run(WORDS).json();
    place.write("scruple.toml", "[farm]\nkind = \"slurm\"\n");
    let words = [&WORDS[..], &["--prepare", "sleep 0.2"]].concat();
    let units = || units_of(&place);
    let start = |output: &str| {
        let output = place.create(output);
        let mut command = place.command(&words);
        cluster.configure(&mut command).stdout(Stdio::null()).stderr(output).spawn().expect("scruple runs")
    };
    let mut sender = start("output-1");
    assert!(cluster.eventually(|| !units().is_empty()), "no unit begins: {}", place.read("output-1"));
    if let Some(unit) = units().first() {
        kill(unit);
    }
    sender.kill().expect("a kill");
    sender.wait().expect("an end");
    let answer = place.finish(cluster.configure(&mut place.command(&words)));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let document = answer.json();
    let nodes = at(&document, "/provenance/nodes").as_array().expect("nodes");
    for name in ["./one", "./two"] {
        assert_eq!(readings(&document, name, "time.cpu").len(), 24, "four units of six blocks, each once");
        for metric in ["malloc.count", "malloc.bytes"] {
            let (mut ours, mut theirs) = (readings(&here, name, metric), readings(&document, name, metric));
            ours.dedup();
            theirs.dedup();
            assert!(ours.len() == 1 && ours == theirs, "{name}, {metric}: {ours:?} and {theirs:?}");
        }
    }
    // A busy controller may give two units to the same node.
    let cpu = comparison(&document, "time.cpu");
    match nodes.len() {
        4 => assert_eq!(*at(cpu, "/nodes/of_class"), true),
        0 | 1 => assert_eq!(cpu["nodes"], Value::Null),
        _ => assert_ne!(cpu["method"], "mean of nodes, Student over nodes"),
    }
    assert_eq!(place.run(["store", "list", "--json"]).stdout.matches("\"complete\"").count(), 2);
    cluster.assert_no_jobs();
}

/// The id of the parent of a process that runs.
fn parent_of(pid: &str) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process that runs");
    stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)).expect("a parent").to_owned()
}

#[test]
fn the_unit_of_a_node_that_dies_is_done_by_another_node() {
    let Some(cluster) = or_skip(Cluster::with_timeout(10)) else { return };
    let place = Place::new();
    programs(&place);
    place.write("scruple.toml", "[farm]\nkind = \"slurm\"\n");
    let words = [&WORDS[..], &["--prepare", "sleep 0.5"]].concat();
    let output = place.create("output");
    let mut command = place.command(&words);
    let sender =
        cluster.configure(&mut command).stdout(Stdio::piped()).stderr(output).spawn().expect("scruple runs");
    assert!(cluster.eventually(|| !units_of(&place).is_empty()), "no unit begins: {}", place.read("output"));
    // All processes of one node end at once: its daemon, the process of the job, its script, and the unit.
    let unit = units_of(&place).into_iter().next().expect("a unit");
    let words = words_of(&unit);
    let node = words.iter().skip_while(|word| *word != "--node").nth(1).expect("a node").clone();
    let script = parent_of(&unit);
    let job = parent_of(&script);
    assert!(words_of(&job)[0].contains("slurmstepd"), "{:?}", words_of(&job));
    cluster.kill(&format!("slurmd.{node}"));
    let killed = Command::new("kill").args(["-9", &job, &script, &unit]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let answer = Answer::of(sender.wait_with_output().expect("an end"), place.path());
    assert_eq!(answer.code, 0, "{}{}", answer.exchange(), place.read("output"));
    let document = answer.json();
    for name in ["./one", "./two"] {
        assert_eq!(readings(&document, name, "time.cpu").len(), 24, "four units of six blocks, each once");
    }
    let nodes = at(&document, "/provenance/nodes").as_array().expect("nodes");
    assert!(nodes.iter().all(|one| one["name"] != *node), "{node} has died: {nodes:?}");
}

#[test]
fn slurm_gets_the_partition_and_the_options_of_the_configuration() {
    let Some(cluster) = or_skip(Cluster::start()) else { return };
    let place = Place::new();
    programs(&place);
    // The partition has two nodes, one of which the options exclude.
    place.write(
        "scruple.toml",
        "[farm]\nkind = \"slurm\"\npartition = \"aside\"\noptions = [\"--exclude=n3\", \"--comment=x y\"]\n",
    );
    // The first time, the controller is just restarting.
    let refused = place.file("refused").display().to_string();
    let sbatch = format!(
        "#!/bin/sh\nmkdir '{refused}' 2>/dev/null && echo 'Unexpected missing socket error' >&2 && exit 1\n\
         exec /usr/bin/sbatch \"$@\"\n"
    );
    std::fs::create_dir(place.file("bin")).expect("a folder");
    place.executable("bin/sbatch", &sbatch);
    let folders = std::env::var("PATH").unwrap_or_default();
    let mut command = place.command(WORDS);
    command.env("PATH", format!("{}:{folders}", place.file("bin").display()));
    let answer = place.finish(cluster.configure(&mut command));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(place.file("refused").exists(), "{}", answer.exchange());
    assert_eq!(readings(&answer.json(), "./two", "time.cpu").len(), 12, "two units of six blocks");
    assert_eq!(cluster.used(), ["apart"]);
    place.write("scruple.toml", "[farm]\nkind = \"slurm\"\npartition = \"none\"\n");
    let answer = place.finish(cluster.configure(&mut place.command(WORDS)));
    assert!(answer.code == 2 && answer.stderr.contains("partition"), "{}", answer.exchange());
    place.write("scruple.toml", "[farm]\nkind = \"slurm\"\nnodes = 1\noptions = [\"--no-such-option\"]\n");
    let answer = place.finish(cluster.configure(&mut place.command(WORDS)));
    assert!(answer.code == 2 && answer.stderr.contains("no-such-option"), "{}", answer.exchange());
}

#[test]
fn slurm_weighs_cases_on_its_nodes_and_two_such_runs_are_compared_on_the_nodes_of_both() {
    let Some(cluster) = or_skip(Cluster::start()) else { return };
    let place = Place::new();
    place.write("scruple.toml", "[farm]\nkind = \"slurm\"\n");
    let cases = [r#"{"name":"zoo/ant","cost":5,"bytes":16}"#, r#"{"name":"zoo/bee","cost":10}"#];
    let fixed = ["--json", "--processes", "3", "--blocks", "12", "--seed"];
    let nodes_of = |seed: &str| -> Vec<String> {
        let words = bench_words(&place, &[&fixed[..], &[seed]].concat(), &cases);
        let answer = place.finish(cluster.configure(&mut place.command(words)));
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        let document = answer.json();
        for name in ["zoo/ant", "zoo/bee"] {
            assert_eq!(readings(&document, name, "time.wall").len(), 4 * 3 * 12, "{name}: each unit once");
        }
        let nodes = at(&document, "/provenance/nodes").as_array().expect("nodes").clone();
        nodes.iter().filter_map(|node| node["name"].as_str().map(str::to_owned)).collect()
    };
    let (first, second) = (nodes_of("7"), nodes_of("8"));
    let answer = place.run(["compare", "last~1", "last", "--json"]);
    let document = answer.json();
    let times = document["comparisons"].as_array().expect("comparisons").iter();
    let times: Vec<&Value> = times.filter(|one| one["metric"] == "time.wall").collect();
    assert_eq!(times.len(), 2, "{}", answer.exchange());
    for one in times {
        let effects = one.pointer("/nodes/effects").and_then(Value::as_object);
        let mut named: Vec<&String> = effects.into_iter().flat_map(|all| all.keys()).collect();
        named.sort();
        let mut common: Vec<&String> = first.iter().filter(|node| second.contains(node)).collect();
        common.sort();
        // One node says nothing about others.
        assert_eq!(named, if common.len() > 1 { common } else { Vec::new() }, "{one}");
    }
}
