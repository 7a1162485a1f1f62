//! Histories, runs, benches, loads and comparisons over ssh on two hosts, which are two names of this machine.

use super::{compare, load};
use crate::fake::{bench, bench_words};
use crate::farm::command_lines::{WORDS, programs, readings};
use crate::programs::{eventually, or_skip, skip};
use crate::repository::{BUILD, Repository, blocks};
use crate::support::{Place, at, free_port};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// An sshd for two hosts. It ends when this value is dropped.
struct Hosts {
    place: Place,
}

impl Hosts {
    /// Starts the server, or returns why this machine cannot run one.
    fn start() -> Result<Hosts, String> {
        for program in ["/usr/sbin/sshd", "/usr/bin/parallel", "/usr/bin/ssh-keygen"] {
            if !Path::new(program).exists() {
                return Err(format!("{program} is not installed: see .ci/packages-test.txt"));
            }
        }
        let place = Place::new();
        for key in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(place.file(key))
                .status();
            assert!(made.expect("ssh-keygen").success());
        }
        // sshd started as root requires this folder. Its package creates it only where services are managed.
        let _ = std::fs::create_dir_all("/run/sshd");
        let (d, ports) = (place.path().display(), [free_port(), free_port()]);
        // Another home, so that shells do not read the start-up files of this machine's user.
        place.write(
            "sshd.conf",
            format!(
                "Port {}\nPort {}\nListenAddress 127.0.0.1\nHostKey {d}/host\nAuthorizedKeysFile {d}/user.pub\n\
                 StrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile {d}/sshd.pid\nSetEnv HOME={d}\n",
                ports[0], ports[1]
            ),
        );
        let host =
            |(name, port): (&str, &String)| format!("Host {name}\n HostName 127.0.0.1\n Port {port}\n");
        let hosts: String = ["m1", "m2"].into_iter().zip(&ports).map(host).collect();
        place.write(
            "ssh.conf",
            format!(
                "{hosts}Host *\n IdentityFile {d}/user\n IdentitiesOnly yes\n UserKnownHostsFile /dev/null\n \
                 StrictHostKeyChecking no\n LogLevel ERROR\n"
            ),
        );
        let server = Command::new("/usr/sbin/sshd")
            .arg("-f")
            .arg(place.file("sshd.conf"))
            .arg("-E")
            .arg(place.file("sshd.log"))
            .status();
        assert!(server.expect("sshd").success(), "{}", place.read("sshd.log"));
        let hosts = Hosts { place };
        let answers = |host: &str| {
            let config = hosts.place.file("ssh.conf");
            let errors =
                Command::new("ssh").arg("-F").arg(config).args([host, "true"]).stdin(Stdio::null()).output();
            errors.is_ok_and(|output| output.status.success())
        };
        match ["m1", "m2"].iter().all(|host| (0..50).any(|_| answers(host))) {
            true => Ok(hosts),
            false => Err(format!("no connection to the own machine: {}", hosts.place.read("sshd.log"))),
        }
    }
}

impl Hosts {
    /// Configures a farm of both hosts, with more lines of `[farm]`.
    fn configure(&self, place: &Place, more: &str) {
        let ssh = self.place.file("ssh.conf");
        place.write(
            "scruple.toml",
            format!(
                "[farm]\nkind = \"ssh\"\nhosts = [\"m1\", \"m2\"]\noptions = [\"-F\", \"{}\"]\nscratch = \"scratch\"\n{more}",
                ssh.display()
            ),
        );
    }
}

/// The names of the nodes in the JSON of a run.
fn nodes(document: &Value) -> Vec<&str> {
    let nodes = at(document, "/provenance/nodes").as_array().expect("nodes");
    nodes.iter().filter_map(|node| node["name"].as_str()).collect()
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if let Ok(pid) = std::fs::read_to_string(self.place.file("sshd.pid")) {
            // `kill` may fail because the server has already ended, which is fine.
            let _ = Command::new("kill").arg(pid.trim()).status();
        }
    }
}

#[test]
fn a_history_over_ssh_has_each_round_on_one_host_and_goes_on_where_units_vanish() {
    let Some(hosts) = or_skip(Hosts::start()) else { return };
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000, 1000, 2000]);
    // On each host, the first start of scruple ends without a result.
    let program = place.write(
        "scruple",
        format!(
            "#!/bin/sh\nmkdir \"$XDG_CACHE_HOME.seen\" 2>/dev/null && exit 1\nexec {} \"$@\"\n",
            env!("CARGO_BIN_EXE_scruple")
        ),
    );
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    std::fs::create_dir_all(place.file("scratch")).expect("a folder");
    hosts.configure(&place, &format!("program = \"{}\"\n", program.display()));
    let words = ["history", "--repo", "repo", "--all", "--rounds", "6", "--seed", "7"];
    let words: Vec<&str> = words.iter().chain(&BUILD).chain(&["--", "./app"]).copied().collect();
    let answer = place.run(&words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    assert_eq!(recorded.states(), ["built", "same-binary", "built"]);
    for title in ["version 0", "version 1", "version 2"] {
        assert_eq!(recorded.readings(title, "time.wall").len(), 6, "{title}");
    }
    for arm in recorded.arms() {
        assert!(blocks(arm).windows(2).all(|pair| pair[0] < pair[1]));
    }
    let report = place.run(["history", "report", "--repo", "repo", "--json"]).json();
    let names = nodes(&report);
    assert!(!names.is_empty() && names.iter().all(|name| ["m1", "m2"].contains(name)), "{names:?}");
}

#[test]
fn hosts_that_ssh_reaches_run_commands_and_cases_and_their_readings_are_one_run() {
    let Some(hosts) = or_skip(Hosts::start()) else { return };
    let place = Place::new();
    programs(&place);
    let cases = [r#"{"name":"zoo/ant","cost":5,"bytes":16}"#, r#"{"name":"zoo/bee","cost":10}"#];
    let (run_here, bench_here) = (place.run(WORDS).json(), bench(&place, &["--json"], &cases).json());
    hosts.configure(&place, "");
    let answer = place.run(WORDS);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let document = answer.json();
    assert_eq!(nodes(&document), ["m1", "m2"]);
    for name in ["./one", "./two"] {
        assert_eq!(readings(&document, name, "time.cpu").len(), 12, "six blocks of each host");
        for metric in ["malloc.count", "malloc.bytes"] {
            let (mut ours, mut theirs) =
                (readings(&run_here, name, metric), readings(&document, name, metric));
            ours.dedup();
            theirs.dedup();
            assert!(ours.len() == 1 && ours == theirs, "{name}, {metric}: {ours:?} and {theirs:?}");
        }
    }
    let fixed = ["--json", "--processes", "3", "--blocks", "12", "--seed", "7"];
    let answer = place.run(bench_words(&place, &fixed, &cases));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let document = answer.json();
    assert_eq!(nodes(&document), ["m1", "m2"]);
    for name in ["zoo/ant", "zoo/bee"] {
        let here = readings(&bench_here, name, "time.wall").len();
        assert_eq!(readings(&document, name, "time.wall").len(), 2 * here, "{name}");
    }
}

#[test]
fn over_ssh_one_host_has_the_servers_of_a_load_and_another_one_loads_them() {
    let Some(hosts) = or_skip(Hosts::start()) else { return };
    let place = Place::new();
    let words = load::words(&place);
    hosts.configure(&place, "");
    let answer = place.run(&words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    load::check(&answer.json(), &["m1 → m2"]);
    // A single host has both.
    hosts.configure(&place, "nodes = 1\n");
    let answer = place.run(&words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let document = answer.json();
    assert_eq!(nodes(&document).len(), 1);
    load::check(&document, &nodes(&document));
    place.assert_no_processes();
}

#[test]
fn hosts_that_ssh_reaches_weigh_two_revisions_that_were_built_once() {
    let Some(hosts) = or_skip(Hosts::start()) else { return };
    let (place, _repository) = compare::place_with_versions();
    hosts.configure(&place, "");
    let answer = place.run(compare::words(&["HEAD~1", "HEAD"]));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let document = answer.json();
    compare::check(&document, ["./app @HEAD~1", "./app @HEAD"], 2);
    assert_eq!(nodes(&document), ["m1", "m2"]);
}

#[test]
fn an_interruption_ends_the_unit_of_a_host_and_no_process_that_has_the_id_of_an_earlier_one() {
    let Some(hosts) = or_skip(Hosts::start()) else { return };
    let place = Place::new();
    hosts.configure(&place, "nodes = 1\nfolder = \"farm\"\n");
    place.shell_script("long", "touch began; exec sleep 600");
    let mut other = Command::new("sleep").arg("600").spawn().expect("it starts");
    let mut command = place.command(["run", "--time-only", "-r", "1", "./long"]);
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("scruple runs");
    assert!(eventually(|| place.file("began").exists()));
    let lines = std::fs::read_dir(place.file("farm/lines")).expect("a folder").flatten();
    let line = lines.map(|entry| entry.path()).find(|path| path.is_dir()).expect("a command line");
    let pids = ["m1", "m2"].map(|host| line.join("pids").join(host));
    let idle = pids.iter().find(|file| !file.exists()).expect("one host is idle");
    std::fs::write(idle, other.id().to_string()).expect("a file");
    let sent = Command::new("kill").args(["-INT", &run.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
    run.wait().expect("an end");
    assert!(other.try_wait().expect("a state").is_none(), "a process of somebody else was ended");
    other.kill().and_then(|()| other.wait()).expect("it ends");
    place.assert_no_processes();
}

#[test]
fn a_connection_that_fails_is_reported_at_once_with_the_message_of_ssh() {
    if !Path::new("/usr/bin/parallel").exists() {
        return skip("GNU parallel is not installed");
    }
    let place = Place::new();
    place.write(
        "scruple.toml",
        "[farm]\nkind = \"ssh\"\nhosts = [\"m1\"]\nfolder = \"farm\"\nscratch = \"scratch\"\n",
    );
    place.shell_script("ssh", "echo 'ssh: connect to host m1: refused' >&2; exit 255");
    let path = format!("{}:{}", place.path().display(), std::env::var("PATH").unwrap_or_default());
    let output = place.command(["run", "-r", "2", "true"]).env("PATH", path).output().expect("an end");
    let said = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "(`ssh m1` ended with exit code 255: ssh: connect to host m1: refused)";
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("no result of 1 of 1 units, sent again {why}")), "{said}");
    assert!(
        said.contains(&format!("no result of 1 of 1 units, sent 3 times {why}; hosts must see")),
        "{said}"
    );
}
