//! Does units on a few machines over ssh. GNU parallel distributes them, one at a time to each machine.
//!
//! GNU parallel does not distinguish a lost connection from a killed unit. Therefore only results show which units are
//! done, and units without a result are distributed again.

use super::node_script::NodeScript;
use super::{ATTEMPTS, Dispatch, FarmEntry, WorkOrder, failure, have_results_late};
use crate::fault::Fault;
use scruple_core::harmless_text::plain;
use scruple_stats::sorting;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A farm of machines that are reached by ssh.
pub struct Ssh {
    script: NodeScript,
    hosts: Vec<String>,
    options: Vec<String>,
}

impl Ssh {
    /// Creates a farm of the hosts that the configuration names.
    pub fn new(script: NodeScript, entry: &FarmEntry) -> Result<Ssh, Fault> {
        let odd =
            |host: &&String| host.is_empty() || host.starts_with('-') || host.contains(['/', ',', ' ', '\n']);
        match entry.hosts.iter().find(odd) {
            Some(host) => Err(Fault::usage(format!("[farm]: ‘{host}’ is not the name of a host"))),
            None if entry.hosts.is_empty() => {
                Err(Fault::usage("[farm]: kind = \"ssh\" needs hosts, such as hosts = [\"m1\", \"m2\"]"))
            }
            None => Ok(Ssh { script, hosts: entry.hosts.clone(), options: entry.options.clone() }),
        }
    }

    /// Returns the words that begin each ssh command. The batch mode is set because no user can answer questions.
    fn ssh(&self) -> Vec<&str> {
        ["ssh", "-o", "BatchMode=yes"].into_iter().chain(self.options.iter().map(String::as_str)).collect()
    }

    /// Starts the units of a stage. GNU parallel writes its log to `log`.
    fn start(&self, order: &WorkOrder<'_>, units: &[&String], log: &Path) -> Result<Child, Fault> {
        let failed = |error| Fault::usage(format!("cannot start GNU parallel: {error}; install it"));
        let folder = order.folder.path().display().to_string();
        let folder = shell_words::quote(&folder);
        let beside = if order.pairs { self.second_host_arguments(order) } else { String::new() };
        let text = format!(
            "cd {folder} && node=$PARALLEL_SSHHOST && unit=$PWD/units/{{}} && printf %s $$ > pids/\"$node\" && \
             exec 2>>logs/{{}} && {beside}{}",
            self.script.text(order.environment).trim_end().replace('\n', "; ")
        );
        // Of each pair of hosts, the first one loads the servers on the second one.
        let every = if order.pairs { 2 } else { 1 };
        let paired = if order.pairs { self.hosts.len() / 2 * 2 } else { self.hosts.len() };
        let hosts: Vec<String> =
            self.hosts[..paired].iter().step_by(every).map(|host| format!("1/{host}")).collect();
        let errors = fs::File::create(log.with_extension("stderr")).map_err(failed)?;
        Command::new("parallel")
            .args([
                "--will-cite",
                "--ssh",
                &shell_words::join(self.ssh()),
                "-S",
                &hosts.join(","),
                "--joblog",
            ])
            .arg(log)
            .arg(text)
            .arg(":::")
            .args(units)
            // The user's configuration of GNU parallel is ignored, because it is meant for other work.
            .env("PARALLEL_HOME", order.folder.path().join("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .map_err(failed)
    }

    /// Returns the commands that set the arguments of a unit with two hosts: how a process is started on the second
    /// one, and its address. The first host reaches it as this machine does, by the same options of ssh. The unit
    /// itself has only the variables of the order, so that the user's ssh agent is named to ssh alone.
    fn second_host_arguments(&self, order: &WorkOrder<'_>) -> String {
        let quoted = |word: &str| shell_words::quote(word).into_owned();
        let units = quoted(&order.folder.path().join("units").display().to_string());
        let ssh = self.ssh();
        let begin: Vec<String> = ssh.iter().map(|word| quoted(&format!("--beside={word}"))).collect();
        let case = |pair: &[String]| {
            let [host, other] = [quoted(&pair[0]), quoted(&pair[1])];
            let words = self.script.words_beside(order.environment, &other);
            // ssh gives its words to a shell of the other host.
            let words = format!("{} {units}/{{}}", shell_words::join(&words)).replace('\n', "; ");
            format!(
                "{host}) address=$({} -G {other} | sed -n 's/^hostname //p') && set -- --reach \"$address\" --beside=env \
                 \"--beside=SSH_AUTH_SOCK=$SSH_AUTH_SOCK\" {} --beside={other} {};; ",
                shell_words::join(&ssh),
                begin.join(" "),
                quoted(&format!("--beside={words}")),
            )
        };
        let cases: String = self.hosts.chunks_exact(2).map(case).collect();
        format!("case $node in {cases}esac && ")
    }

    /// Ends the processes that parallel has started, on this machine and on the hosts.
    fn cancel(&self, order: &WorkOrder<'_>, child: &mut Child) {
        // Failures are ignored, because the process may have ended in the meantime.
        let _ = child.kill();
        let _ = child.wait();
        for host in &self.hosts {
            let Ok(pid) = fs::read_to_string(order.folder.path().join("pids").join(host)) else { continue };
            if !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()) {
                let ssh = self.ssh();
                let mut command = Command::new(ssh[0]);
                // The unit may have ended long ago, and its id be that of another process of the user.
                let end = format!("grep -qs units/ /proc/{pid}/cmdline && kill -INT {pid}");
                command.args(&ssh[1..]).args([host, &end]);
                let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            }
        }
    }

    fn wait(&self, order: &WorkOrder<'_>, child: &mut Child, all: &[String]) -> Result<(), Fault> {
        loop {
            let done = order.folder.done()?.iter().filter(|name| all.contains(name)).count();
            order.progress.steps("units", done, all.len(), "waiting for the hosts");
            failure(order.folder, all)?;
            if order.interrupted.load(Ordering::Relaxed) {
                return Err(Fault::interrupted());
            }
            match child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(100)),
                Ok(Some(_)) => return failure(order.folder, all),
                Err(error) => return Err(Fault::internal(format!("cannot wait for GNU parallel: {error}"))),
            }
        }
    }
}

/// Says which commands of ssh failed according to the log of GNU parallel, and what was written last as an error. If
/// several hosts failed, it is not known which of them that is from.
fn failures(log: &Path) -> String {
    let jobs = fs::read_to_string(log).unwrap_or_default();
    let failed = |job: &str| {
        let mut cells = job.split('\t').skip(1);
        let (host, code) = (cells.next()?, cells.nth(4)?);
        (code != "0" && code != "Exitval").then(|| format!("`ssh {host}` ended with exit code {code}"))
    };
    let all = sorting::distinct(jobs.lines().filter_map(failed)).join(", ");
    let errors = fs::read_to_string(log.with_extension("stderr")).unwrap_or_default();
    let last = errors.trim().lines().last().unwrap_or_default();
    plain(&match (all.as_str(), last) {
        ("", "") => "no answer from the hosts".to_owned(),
        (one, "") | ("", one) => one.to_owned(),
        (all, last) if all.contains(", ") => format!("{all}; the last error is: {last}"),
        (one, last) => format!("{one}: {last}"),
    })
}

impl Dispatch for Ssh {
    fn places(&mut self) -> Result<usize, Fault> {
        Ok(self.hosts.len())
    }

    fn pairs(&mut self) -> Result<usize, Fault> {
        Ok(self.hosts.len() / 2)
    }

    fn run(&mut self, order: &WorkOrder<'_>) -> Result<(), Fault> {
        let log = order.folder.path().join("logs/parallel");
        for stage in order.stages {
            for attempt in 1.. {
                let done: BTreeSet<String> = order.folder.done()?;
                let open: Vec<&String> = stage.iter().filter(|name| !done.contains(*name)).collect();
                if open.is_empty() {
                    break;
                }
                let has_begun = |name: &&String| order.folder.path().join("logs").join(name).exists();
                if attempt > ATTEMPTS && open.iter().any(has_begun) && have_results_late(order, &open)? {
                    break;
                }
                let (left, all) = (open.len(), stage.len());
                if attempt > ATTEMPTS {
                    return Err(Fault::usage(format!(
                        "no result of {left} of {all} units, sent {ATTEMPTS} times ({}); hosts must see ‘{}’ and \
                         ‘scruple’: [farm] folder and program name others",
                        failures(&log),
                        order.folder.path().display()
                    )));
                }
                if attempt == 2 {
                    let why = failures(&log);
                    order.progress.say(&format!("no result of {left} of {all} units, sent again ({why})"));
                }
                let mut child = self.start(order, &open, &log)?;
                let result = self.wait(order, &mut child, stage);
                if result.is_err() {
                    self.cancel(order, &mut child);
                }
                result?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_belongs_to_a_host_only_if_no_other_one_failed() {
        let place = tempfile::tempdir().expect("a folder");
        let log = place.path().join("parallel");
        let said = |jobs: &[(&str, u8)], errors: &str| {
            let lines = jobs.iter().map(|(host, code)| format!("1\t{host}\t0\t0\t0\t0\t{code}\t0\tunit\n"));
            let head = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";
            fs::write(&log, format!("{head}{}", lines.collect::<String>())).expect("a file");
            fs::write(log.with_extension("stderr"), errors).expect("a file");
            failures(&log)
        };
        let refused = "m1: refused\n";
        assert_eq!(said(&[], ""), "no answer from the hosts");
        assert_eq!(said(&[], refused), "m1: refused");
        assert_eq!(
            said(&[("m1", 255), ("m2", 0), ("m1", 255)], refused),
            "`ssh m1` ended with exit code 255: m1: refused"
        );
        assert_eq!(
            said(&[("m1", 255), ("m2", 127)], refused),
            "`ssh m1` ended with exit code 255, `ssh m2` ended with exit code 127; the last error is: m1: refused"
        );
    }
}
