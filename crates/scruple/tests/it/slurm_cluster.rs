//! A Slurm cluster for one test: a controller and nodes on the loopback. Its folder is removed when the test ends.

use crate::support::free_port;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A shell script that starts a cluster, and stops it and removes its folder at the end of standard input, which comes
/// however the test ends. It ignores signals to the process group.
const KEEP: &str = r#"
PATH=$PATH:/usr/sbin:/sbin
trap '' INT TERM HUP
mkdir -p "$D/spool" "$D/state" "$D/log"
(umask 077; head -c 128 /dev/urandom > "$D/munge.key")
# Without --force munged refuses folders below a /tmp that belongs to neither root nor this user.
munged --force --key-file="$D/munge.key" --socket="$D/munge.sock" --pid-file="$D/munged.pid" \
  --log-file="$D/log/munged.log" --seed-file="$D/munge.seed" || exit 1
slurmctld || exit 1
for node in $NODES; do slurmd -N "$node" || exit 1; done
echo ready
cat >/dev/null
scancel -u "$(id -un)" 2>/dev/null
for i in 1 2 3 4 5 6 7 8 9 10; do [ -z "$(squeue -h 2>/dev/null)" ] && break; sleep 0.3; done
for file in "$D"/slurmctld.pid "$D"/slurmd.*.pid "$D"/munged.pid; do
  [ -s "$file" ] && kill -9 "$(cat "$file")" 2>/dev/null
done
# The process of a job that has not reported its end to the controller would try that for minutes.
for process in /proc/[0-9]*; do
  [ "$(cat "$process/comm" 2>/dev/null)" = slurmstepd ] && grep -qsz "^SLURM_CONF=$D/" "$process/environ" &&
    kill -9 "${process#/proc/}"
done
rm -rf "$D"
"#;

/// The names of the nodes, each with its feature.
const NODES: [(&str, &str); 5] = [("n1", "m1"), ("n2", "m1"), ("n3", "m1"), ("other", "m2"), ("apart", "m1")];

/// The nodes of each partition. The first partition is the default.
const PARTITIONS: [(&str, &str); 2] = [("bench", "n[1-3],other"), ("aside", "n3,apart")];

/// A running cluster. Its default partition has three nodes with the feature m1 and one with m2.
pub struct Cluster {
    folder: PathBuf,
    keeper: Child,
}

impl Cluster {
    /// Starts a cluster, or returns why this machine cannot run one.
    pub fn start() -> Result<Cluster, String> {
        // Nodes of a busy machine may be slow to answer.
        Cluster::with_timeout(60)
    }

    /// Starts a cluster that takes a node for dead when it has not answered for this many seconds, or returns why this
    /// machine cannot run one.
    pub fn with_timeout(seconds: u32) -> Result<Cluster, String> {
        for program in ["munged", "slurmctld", "slurmd", "sbatch"] {
            let found = Command::new("sh")
                .args(["-c", &format!("PATH=$PATH:/usr/sbin:/sbin; command -v {program}")])
                .output();
            if !found.is_ok_and(|output| output.status.success()) {
                return Err(format!("{program} is not installed: see .ci/packages-test.txt"));
            }
        }
        let folder = tempfile::Builder::new().prefix("slurm-").tempdir_in("/tmp").expect("a folder").keep();
        std::fs::write(folder.join("slurm.conf"), configuration(&folder, seconds)).expect("a file");
        let names: Vec<&str> = NODES.iter().map(|(name, _)| *name).collect();
        let mut keeper = Command::new("sh")
            .args(["-c", KEEP])
            .env("D", &folder)
            .env("NODES", names.join(" "))
            .env("SLURM_CONF", folder.join("slurm.conf"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.join("output")).expect("a file"))
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        let out = keeper.stdout.take().expect("a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("an answer");
        let cluster = Cluster { folder, keeper };
        if line != "ready\n" {
            return Err(format!("no cluster can be started here: {}", cluster.read("output")));
        }
        if !cluster.eventually(|| cluster.idle() == NODES.len()) {
            return Err(format!("no cluster can be started here: {}", cluster.read("log/slurmctld.log")));
        }
        Ok(cluster)
    }

    /// Points a Slurm program to this cluster.
    pub fn configure<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("SLURM_CONF", self.folder.join("slurm.conf"))
    }

    /// The standard output of a Slurm program. It is empty if the controller is down.
    pub fn ask(&self, words: &[&str]) -> String {
        let output = self.configure(Command::new(words[0]).args(&words[1..]).stdin(Stdio::null())).output();
        String::from_utf8_lossy(&output.expect("a program of Slurm's").stdout).into_owned()
    }

    /// Kills a daemon (`slurmctld` or `slurmd.NODE`) with SIGKILL.
    pub fn kill(&self, daemon: &str) {
        let pid = self.read(&format!("{daemon}.pid"));
        let killed = Command::new("kill").args(["-9", pid.trim()]).status();
        assert!(killed.is_ok_and(|status| status.success()), "{daemon} runs as {pid:?}");
        // The id may become that of another process, which is not to be killed at the end of the test.
        std::fs::remove_file(self.folder.join(format!("{daemon}.pid"))).expect("a file");
    }

    /// Starts a killed daemon again.
    pub fn restart(&self, daemon: &str) {
        let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
        let mut command = match daemon.split_once('.') {
            Some((program, node)) => {
                let mut command = Command::new(format!("/usr/sbin/{program}"));
                command.args(["-N", node]);
                command
            }
            None => Command::new(format!("/usr/sbin/{daemon}")),
        };
        command.env("PATH", path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(
            self.configure(&mut command).status().is_ok_and(|status| status.success()),
            "{daemon} starts"
        );
        assert!(self.eventually(|| !self.ask(&["sinfo", "-h"]).is_empty()), "{daemon} answers");
    }

    /// Resumes drained nodes, as an administrator would. A controller that was killed sends jobs again that it had just
    /// launched; Slurm drains their nodes, because it knows the jobs ("Duplicate jobid").
    pub fn resume_drained(&self) {
        for node in self.ask(&["sinfo", "-h", "-N", "-t", "drain", "-o", "%N"]).lines() {
            self.ask(&["scontrol", "update", &format!("nodename={node}"), "state=resume"]);
        }
    }

    /// The state of the cluster, for the message of a failed test.
    pub fn state(&self) -> String {
        let log = self.read("log/slurmctld.log");
        let lines: Vec<&str> = log.lines().collect();
        format!(
            "{}{}{}{}",
            self.ask(&["squeue"]),
            self.ask(&["sinfo", "-N", "-l"]),
            self.ask(&["sinfo", "-R", "-l"]),
            lines[lines.len().saturating_sub(100)..].join("\n")
        )
    }

    /// Fails if jobs stay in the queue. The script of a job ends a little after the unit has written its result.
    pub fn assert_no_jobs(&self) {
        assert!(self.eventually(|| self.ask(&["squeue", "-h"]).is_empty()), "{}", self.state());
    }

    fn idle(&self) -> usize {
        let printed = self.ask(&["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"]);
        NODES.iter().filter(|(name, _)| printed.lines().any(|line| line == *name)).count()
    }

    /// Polls `holds` until it returns true. Returns false after two minutes.
    pub fn eventually(&self, holds: impl Fn() -> bool) -> bool {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(120) {
            if holds() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }

    /// The nodes on which finished jobs ran.
    pub fn used(&self) -> Vec<String> {
        let log = self.read("jobcomp.txt");
        let nodes = log.split_whitespace().filter_map(|word| word.strip_prefix("NodeList="));
        let mut nodes: Vec<String> = nodes.filter(|name| *name != "(null)").map(str::to_owned).collect();
        nodes.sort();
        nodes.dedup();
        nodes
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // A test cannot handle a failure of the keeper.
        let _ = self.keeper.wait();
    }
}

fn configuration(folder: &Path, timeout: u32) -> String {
    let printed = |words: &[&str]| {
        let output = Command::new(words[0]).args(&words[1..]).output().expect("a program");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let (host, user) = (printed(&["hostname", "-s"]), printed(&["id", "-un"]));
    let (d, port) = (folder.display(), free_port());
    let mut text = format!(
        "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={port}\nAuthType=auth/munge\n\
         AuthInfo=socket={d}/munge.sock\nSlurmUser={user}\nSlurmdUser={user}\nStateSaveLocation={d}/state\n\
         SlurmdSpoolDir={d}/spool/%n\nSlurmctldPidFile={d}/slurmctld.pid\nSlurmdPidFile={d}/slurmd.%n.pid\n\
         SlurmctldLogFile={d}/log/slurmctld.log\nSlurmdLogFile={d}/log/slurmd.%n.log\n\
         ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
         CommunicationParameters=NoCtldInAddrAny,NoInAddrAny\nReturnToService=2\nSlurmdTimeout={timeout}\n\
         SlurmctldTimeout=10\nJobAcctGatherType=jobacct_gather/none\n\
         AccountingStorageType=accounting_storage/none\nJobCompType=jobcomp/filetxt\nJobCompLoc={d}/jobcomp.txt\n\
         SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1\nKillWait=5\n"
    );
    for (name, feature) in NODES {
        let port = free_port();
        text += &format!(
            "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 Boards=1 SocketsPerBoard=1 \
             CoresPerSocket=1 ThreadsPerCore=1 RealMemory=100 Feature={feature}\n"
        );
    }
    for (name, nodes) in PARTITIONS {
        let default = if name == PARTITIONS[0].0 { "YES" } else { "NO" };
        text += &format!(
            "PartitionName={name} Nodes={nodes} Default={default} OverSubscribe=EXCLUSIVE MaxTime=INFINITE State=UP\n"
        );
    }
    text
}
