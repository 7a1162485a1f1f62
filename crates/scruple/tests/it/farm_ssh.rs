//! A history over ssh on two hosts, which are two names of this machine.

use crate::repository::{BUILD, Repository, blocks};
use crate::support::{Place, free_port};
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
        place.write(
            "sshd.conf",
            format!(
                "Port {}\nPort {}\nListenAddress 127.0.0.1\nHostKey {d}/host\nAuthorizedKeysFile {d}/user.pub\n\
                 StrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile {d}/sshd.pid\n",
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
            let said =
                Command::new("ssh").arg("-F").arg(config).args([host, "true"]).stdin(Stdio::null()).output();
            said.is_ok_and(|output| output.status.success())
        };
        match ["m1", "m2"].iter().all(|host| (0..50).any(|_| answers(host))) {
            true => Ok(hosts),
            false => Err(format!("no connection to the own machine: {}", hosts.place.read("sshd.log"))),
        }
    }
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
    let hosts = match Hosts::start() {
        Ok(hosts) => hosts,
        Err(why) => {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "skipped: {why}");
            return;
        }
    };
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000, 1000, 2000]);
    let ssh = hosts.place.file("ssh.conf").display().to_string();
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
    place.write(
        "scruple.toml",
        format!(
            "[farm]\nkind = \"ssh\"\nhosts = [\"m1\", \"m2\"]\noptions = [\"-F\", \"{ssh}\"]\nscratch = \"scratch\"\n\
             program = \"{}\"\n",
            program.display()
        ),
    );
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
    let nodes = report["provenance"]["nodes"].as_array().expect("nodes");
    let names: Vec<&str> = nodes.iter().filter_map(|node| node["name"].as_str()).collect();
    assert!(!names.is_empty() && names.iter().all(|name| ["m1", "m2"].contains(name)), "{names:?}");
}
