//! Units done by Slurm: an array of jobs for each stage, each job alone on its node.
//!
//! What there is a result of is done, and nothing else is known for sure: a job whose script is killed is not sent again by
//! Slurm, one whose node is lost may run twice, and what the queue tells is gone some minutes after a job has ended. So the
//! queue is asked only for what is still under way, and units that are neither there nor done are sent again.

mod stuck;

use super::script::Script;
use super::{ATTEMPTS, Dispatch, FarmEntry, Order, failure};
use crate::digest::digest;
use crate::fault::Fault;
use crate::history::build_process::interrupted;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use stuck::Stuck;

/// How often the queue is asked.
const POLL: Duration = Duration::from_secs(1);
/// A unit that is neither in the queue nor done for so long is sent again: a shared file system may show a result late.
const GRACE: Duration = Duration::from_secs(5);
/// A job that ends for so long without a result has ended: Slurm waits more than a minute for a node that was lost.
const ENDING: Duration = Duration::from_secs(10);
/// The longest array where the controller does not say.
const ARRAY: usize = 1000;

/// A cluster.
pub struct Slurm {
    script: Script,
    words: Vec<String>,
    asked: Option<String>,
}

/// Why units were not sent.
enum Unsent {
    /// Slurm did not take them, or did not answer.
    Refused(String),
    /// Sending them again makes no sense.
    Fault(Fault),
}

/// One job of the queue.
#[derive(Clone, Debug, PartialEq)]
struct Job {
    id: String,
    /// The number that its script knows.
    number: String,
    state: String,
    reason: String,
}

impl Slurm {
    /// Jobs of this script, with the options that the configuration names.
    pub fn new(script: Script, entry: &FarmEntry) -> Slurm {
        let mut words = Vec::new();
        words.extend(entry.constraint.as_ref().map(|class| format!("--constraint={class}")));
        words.extend(entry.partition.as_ref().map(|name| format!("--partition={name}")));
        words.extend(entry.options.iter().cloned());
        Slurm { script, words, asked: entry.partition.clone() }
    }

    /// The first words of the names of jobs of a folder, by which they are found again.
    fn prefix(order: &Order<'_>) -> String {
        format!("scruple-{}", &digest(&order.folder.path().display().to_string())[..12])
    }

    /// Sends units as arrays that wait for the jobs of the stage before; hands back their ids.
    fn send(&self, order: &Order<'_>, units: &[String], after: &[String]) -> Result<Vec<String>, Unsent> {
        let longest = longest_array();
        let mut ids = Vec::new();
        for part in units.chunks(longest) {
            let lists = order.folder.path().join("lists");
            let number = numbers(&lists).last().map_or(0, |last| last + 1);
            let list = lists.join(number.to_string());
            order.folder.replace(&list, &(part.join("\n") + "\n")).map_err(Unsent::Fault)?;
            let mut command = Command::new("sbatch");
            command.args(["--parsable", "--exclusive", "--requeue", "--export=NIL", "--open-mode=append"]);
            command.arg(format!("--array=0-{}", part.len() - 1));
            command.arg(format!("--job-name={}-{number}", Slurm::prefix(order)));
            command.arg("--output=logs/%x.%a").arg("--chdir").arg(order.folder.path());
            if !after.is_empty() {
                command.arg(format!("--dependency=afterok:{}", after.join(":")));
                command.arg("--kill-on-invalid-dep=yes");
            }
            let text = format!(
                "#!/bin/sh\ntrue >begun/$SLURM_JOB_ID\nnode=$SLURMD_NODENAME\nunit=$PWD/units/$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" lists/{number})\n{}",
                self.script.text(order.environment)
            );
            match ask(command.args(&self.words), Some(&text)) {
                // `--parsable` adds the name of the cluster where there are several.
                Ok(said) => ids.push(said.trim().split(';').next().unwrap_or_default().to_owned()),
                // The list stays: the answer may have been lost, and not the jobs.
                Err(why) => return Err(Unsent::Refused(why)),
            }
        }
        Ok(ids)
    }

    /// The jobs of this folder that are in the queue, by unit; several where a unit was sent again too early.
    fn queue(order: &Order<'_>) -> Result<HashMap<String, Vec<Job>>, String> {
        let prefix = Slurm::prefix(order);
        let lists = order.folder.path().join("lists");
        let numbers = numbers(&lists);
        let names: Vec<String> = numbers.iter().map(|number| format!("{prefix}-{number}")).collect();
        let mut found: HashMap<String, Vec<Job>> = HashMap::new();
        if names.is_empty() {
            return Ok(found);
        }
        let said = ask(
            Command::new("squeue").args(["-h", "-r", "-o", "%j|%F_%K|%A|%T|%r", "-n"]).arg(names.join(",")),
            None,
        )?;
        let mut units: HashMap<String, Vec<String>> = HashMap::new();
        for line in said.lines() {
            let [name, id, number, state, reason] = line.split('|').collect::<Vec<_>>()[..] else { continue };
            let sent = name.rsplit('-').next().unwrap_or_default();
            let index = id.rsplit('_').next().and_then(|index| index.parse::<usize>().ok());
            let list = units.entry(sent.to_owned()).or_insert_with(|| {
                let text = fs::read_to_string(lists.join(sent)).unwrap_or_default();
                text.lines().map(str::to_owned).collect()
            });
            if let Some(unit) = index.and_then(|index| list.get(index)) {
                let [id, number, state, reason] = [id, number, state, reason].map(str::to_owned);
                found.entry(unit.clone()).or_default().push(Job { id, number, state, reason });
            }
        }
        Ok(found)
    }

    /// Ends all jobs of this folder.
    fn cancel(order: &Order<'_>) {
        if let Ok(queue) = Slurm::queue(order) {
            let ids: BTreeSet<String> = queue.into_values().flatten().map(|job| job.id).collect();
            for some in ids.into_iter().collect::<Vec<_>>().chunks(500) {
                // A job that has ended by itself meanwhile is no error.
                let _ = ask(Command::new("scancel").args(some), None);
            }
        }
    }

    fn wait(&mut self, order: &Order<'_>) -> Result<(), Fault> {
        let all: Vec<String> = order.stages.iter().flatten().cloned().collect();
        let mut attempts: BTreeMap<String, u32> = BTreeMap::new();
        let mut missing: HashMap<String, Instant> = HashMap::new();
        let mut ending: HashMap<String, Instant> = HashMap::new();
        let mut stuck = Stuck::default();
        let mut told = BTreeSet::new();
        let mut once = |what: String| {
            if told.insert(what.clone()) {
                order.progress.say(&what);
            }
        };
        let mut first = true;
        loop {
            let done = order.folder.done()?;
            failure(order.folder, &all)?;
            let open: Vec<&String> = all.iter().filter(|name| !done.contains(*name)).collect();
            order.progress.tell("units", all.len() - open.len(), all.len(), "waiting for Slurm");
            if open.is_empty() {
                return Ok(());
            }
            if order.interrupted.load(Ordering::Relaxed) {
                return Err(interrupted());
            }
            let queue = match Slurm::queue(order) {
                Ok(queue) => queue,
                Err(why) => {
                    once(format!("Slurm does not answer ({why}): waiting for it, and for results"));
                    pause(order);
                    continue;
                }
            };
            let now = Instant::now();
            stuck.help(order, &done, &queue).into_iter().for_each(&mut once);
            let mut lost: Vec<String> = Vec::new();
            for name in open {
                let jobs = queue.get(name).map_or(&[][..], Vec::as_slice);
                let is_ending = !jobs.is_empty() && jobs.iter().all(|job| job.state == "COMPLETING");
                if !is_ending {
                    ending.remove(name);
                }
                let ended = is_ending && now - *ending.entry(name.clone()).or_insert(now) > ENDING;
                if !jobs.is_empty() && !ended {
                    missing.remove(name);
                } else if first || ended || now - *missing.entry(name.clone()).or_insert(now) > GRACE {
                    lost.push(name.clone());
                }
            }
            first = false;
            if !lost.is_empty() {
                match self.send_again(order, &lost, &done, &queue, &mut attempts) {
                    Ok(()) => {}
                    Err(Unsent::Fault(fault)) => return Err(fault),
                    Err(Unsent::Refused(why)) if Slurm::queue(order).is_ok() => {
                        return Err(Fault::usage(format!("Slurm does not take the units: {why}")));
                    }
                    Err(Unsent::Refused(why)) => {
                        once(format!("Slurm does not answer ({why}): waiting for it, and for results"));
                    }
                }
                missing.clear();
                ending.clear();
            }
            pause(order);
        }
    }

    /// Sends what is neither under way nor done, stage by stage. A stage whose predecessor was not done could not begin,
    /// which counts as no attempt.
    fn send_again(
        &self,
        order: &Order<'_>,
        lost: &[String],
        done: &BTreeSet<String>,
        queue: &HashMap<String, Vec<Job>>,
        attempts: &mut BTreeMap<String, u32>,
    ) -> Result<(), Unsent> {
        let mut after: Vec<String> = Vec::new();
        let mut ready = true;
        for stage in order.stages {
            let units: Vec<String> = stage.iter().filter(|name| lost.contains(name)).cloned().collect();
            for name in units.iter() {
                if attempts.get(name).is_some_and(|count| *count >= ATTEMPTS) {
                    return Err(Unsent::Fault(Fault::usage(format!(
                        "a unit ended {ATTEMPTS} times without a result; what it wrote is in ‘{}’. Nodes must see that folder and \
                         ‘scruple’: [farm] folder and program name others",
                        order.folder.path().join("logs").display()
                    ))));
                }
            }
            let under_way =
                stage.iter().filter(|name| !done.contains(*name)).filter_map(|name| queue.get(name));
            let mut next: Vec<String> = under_way.flatten().map(|job| job.id.clone()).collect();
            if !units.is_empty() {
                next.extend(self.send(order, &units, &after)?);
                units
                    .iter()
                    .filter(|_| ready)
                    .for_each(|name| *attempts.entry(name.clone()).or_default() += 1);
            }
            // What has just left the queue may still have a result: the next stage waits until that is known.
            let known =
                |name: &&String| done.contains(*name) || lost.contains(name) || queue.contains_key(*name);
            if !stage.iter().all(|name| known(&name)) {
                return Ok(());
            }
            ready &= next.is_empty();
            after = next;
        }
        Ok(())
    }
}

impl Dispatch for Slurm {
    fn places(&mut self) -> Result<usize, Fault> {
        let mut command = Command::new("sinfo");
        command.args(["-h", "-N", "-o", "%N|%T|%f"]);
        if let Some(partition) = &self.asked {
            command.args(["-p", partition]);
        }
        let said = ask(&mut command, None).map_err(|why| {
            Fault::usage(format!("Slurm does not answer: {why}; is this a machine from which jobs are sent?"))
        })?;
        let wanted = self.words.iter().find_map(|word| word.strip_prefix("--constraint="));
        let nodes: BTreeSet<&str> = said
            .lines()
            .filter_map(|line| {
                let [name, state, features] = line.split('|').collect::<Vec<_>>()[..] else { return None };
                let up = !["down", "drain", "fail"].iter().any(|bad| state.starts_with(bad));
                let fits = wanted.is_none_or(|class| {
                    features.split(',').any(|feature| feature == class) || class.contains(['&', '|', '['])
                });
                (up && fits).then_some(name)
            })
            .collect();
        Ok(nodes.len().max(1))
    }

    fn run(&mut self, order: &Order<'_>) -> Result<(), Fault> {
        let result = self.wait(order);
        if result.is_err() {
            Slurm::cancel(order);
        }
        result
    }
}

/// A second, or less where the user interrupts.
fn pause(order: &Order<'_>) {
    let began = Instant::now();
    while began.elapsed() < POLL && !order.interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The numbers of submissions so far, rising.
fn numbers(lists: &std::path::Path) -> Vec<u64> {
    let entries = fs::read_dir(lists).into_iter().flatten().flatten();
    let mut numbers: Vec<u64> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

fn longest_array() -> usize {
    let said = ask(Command::new("scontrol").args(["show", "config"]), None).unwrap_or_default();
    let line = said.lines().find(|line| line.starts_with("MaxArraySize"));
    let size = line.and_then(|line| line.rsplit('=').next()?.trim().parse::<usize>().ok());
    size.unwrap_or(ARRAY).max(1)
}

/// What a program of Slurm's says; its error otherwise.
fn ask(command: &mut Command, input: Option<&str>) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    if let Some(mut pipe) = child.stdin.take() {
        // A program that does not read to the end says why by its exit code.
        let _ = pipe.write_all(input.unwrap_or_default().as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| format!("{name}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or_default().to_owned();
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{name}: {said}")),
    }
}
