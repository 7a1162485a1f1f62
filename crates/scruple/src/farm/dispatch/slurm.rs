//! Does units with Slurm: an array of jobs for each stage. Each job is alone on its node.
//!
//! A unit is done if and only if it has a result, because the state of jobs is not reliable: Slurm does not send a job
//! again if its script is killed, a job may run twice if its node is lost, and the queue forgets a job some minutes
//! after its end. Therefore the queue is only asked for jobs under way, and units that are neither in the queue nor
//! done are sent again.

mod stuck;

use super::node_script::NodeScript;
use super::{ATTEMPTS, Dispatch, FarmEntry, WorkOrder, failure, have_results_late};
use crate::digest::digest;
use crate::fault::Fault;
use scruple_stats::sorting::{self, SortedMap};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use stuck::StuckJobs;

/// The interval between queries of the queue.
const POLL: Duration = Duration::from_secs(1);
/// The time after which a unit that is neither in the queue nor done is sent again. It is necessary because a shared
/// file system may show a result late.
const GRACE: Duration = Duration::from_secs(5);
/// The time after which a job without a result counts as ended if its state is completing. Slurm itself waits more than
/// a minute for a lost node.
const ENDING: Duration = Duration::from_secs(10);
/// The largest size of an array if the controller does not report one.
const ARRAY: usize = 1000;

/// The number of lines of a Slurm program's error message that are shown.
const LINES: usize = 3;

/// Whether `sbatch`, or a program of Slurm that a job starts, may need this variable.
fn sbatch_reads(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    ["PATH", "LD_LIBRARY_PATH", "HOME", "USER", "LOGNAME"].contains(&&*name)
        || ["SLURM", "SBATCH", "SPANK"].iter().any(|prefix| name.starts_with(prefix))
}

/// A farm that is a Slurm cluster.
pub struct Slurm {
    script: NodeScript,
    words: Vec<String>,
    asked: Option<String>,
}

/// Why units could not be sent.
enum SendFailure {
    /// Slurm refused the units, or did not answer.
    Refused(String),
    /// An error that would occur again.
    Fault(Fault),
}

/// A job in the queue.
#[derive(Clone, Debug, PartialEq)]
struct QueuedJob {
    id: String,
    /// The job id that the script of the job knows.
    number: String,
    state: String,
    reason: String,
}

impl Slurm {
    /// Creates a farm whose jobs run this script, with the options of the configuration.
    pub fn new(script: NodeScript, entry: &FarmEntry) -> Slurm {
        let mut words = Vec::new();
        words.extend(entry.constraint.as_ref().map(|class| format!("--constraint={class}")));
        words.extend(entry.partition.as_ref().map(|name| format!("--partition={name}")));
        words.extend(entry.options.iter().cloned());
        Slurm { script, words, asked: entry.partition.clone() }
    }

    /// Returns the prefix of the names of a folder's jobs, by which they are found again.
    fn prefix(order: &WorkOrder<'_>) -> String {
        format!("scruple-{}", &digest(&order.folder.path().display().to_string())[..12])
    }

    /// Sends units as arrays that wait for the jobs of the previous stage. Returns the ids of the arrays.
    fn send(
        &self,
        order: &WorkOrder<'_>,
        units: &[String],
        after: &[String],
    ) -> Result<Vec<String>, SendFailure> {
        let longest = longest_array();
        let mut ids = Vec::new();
        for part in units.chunks(longest) {
            let lists = order.folder.path().join("lists");
            let number = numbers(&lists).last().map_or(0, |last| last + 1);
            let list = lists.join(number.to_string());
            order.folder.replace(&list, &(part.join("\n") + "\n")).map_err(SendFailure::Fault)?;
            let mut command = Command::new("sbatch");
            // The unit gets its environment from the script. `NIL` would say the same, but before Slurm 23 it is the name of
            // a variable, and each job then waits for a login shell.
            command.env_clear().envs(std::env::vars_os().filter(|(name, _)| sbatch_reads(name)));
            command.args(["--parsable", "--exclusive", "--requeue", "--export=ALL", "--open-mode=append"]);
            command.arg(format!("--array=0-{}", part.len() - 1));
            command.arg(format!("--job-name={}-{number}", Slurm::prefix(order)));
            command.arg("--output=logs/%x.%a").arg("--chdir").arg(order.folder.path());
            if order.pairs {
                command.args(["--nodes=2", "--ntasks-per-node=1"]);
            }
            if !after.is_empty() {
                command.arg(format!("--dependency=afterok:{}", after.join(":")));
                command.arg("--kill-on-invalid-dep=yes");
            }
            let beside = if order.pairs { self.second_node_arguments(order) } else { String::new() };
            // The end is noted by the shell, because a unit that is killed cannot do so itself. A job that Slurm sends
            // again has the same id.
            let text = format!(
                "#!/bin/sh\nrm -f ended/$SLURM_JOB_ID\ntrue >begun/$SLURM_JOB_ID\nnode=$SLURMD_NODENAME\n\
                 unit=$PWD/units/$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" lists/{number})\n{beside}(\n{})\n\
                 code=$?\ntrue >ended/$SLURM_JOB_ID\nexit $code\n",
                self.script.text(order.environment)
            );
            match ask(command.args(&self.words), Some(&text)) {
                // `--parsable` appends the name of the cluster if there are several.
                Ok(answer) => ids.push(answer.trim().split(';').next().unwrap_or_default().to_owned()),
                // The list of units stays, because Slurm may have accepted the jobs although its answer was lost.
                Err(why) => return Err(SendFailure::Refused(why)),
            }
        }
        Ok(ids)
    }

    /// Returns the commands that set the arguments of a unit with two nodes: how a process is started on the second
    /// one, and its address. The unit itself has no variables of Slurm, which srun needs.
    fn second_node_arguments(&self, order: &WorkOrder<'_>) -> String {
        let words = self.script.words_beside(order.environment, "$SLURMD_NODENAME");
        let words: Vec<String> =
            words.iter().map(|word| shell_words::quote(&format!("--beside={word}")).into_owned()).collect();
        let configuration = std::env::var("SLURM_CONF")
            .map_or(String::new(), |path| format!("export SLURM_CONF={}\n", shell_words::quote(&path)));
        format!(
            "{configuration}other=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | sed -n 2p)\n\
             address=$(scontrol show node -o \"$other\" | sed -n 's/.* NodeAddr=\\([^ ]*\\).*/\\1/p')\n\
             set -- --reach \"$address\" --beside=env\n\
             for name in $(env | sed -n 's/^\\(SLURM[A-Z0-9_]*\\)=.*/\\1/p'); do\n\
             eval \"value=\\$$name\"\nset -- \"$@\" \"--beside=$name=$value\"\ndone\n\
             set -- \"$@\" --beside=srun --beside=--nodes=1 --beside=--ntasks=1 --beside=--relative=1 \
             --beside=--export=ALL {} \"--beside=$unit\"\n",
            words.join(" ")
        )
    }

    /// Returns the jobs of this folder that are in the queue, by unit. A unit has several jobs if it was sent again too
    /// early.
    fn queue(order: &WorkOrder<'_>) -> Result<HashMap<String, Vec<QueuedJob>>, String> {
        let prefix = Slurm::prefix(order);
        let lists = order.folder.path().join("lists");
        let numbers = numbers(&lists);
        let names: Vec<String> = numbers.iter().map(|number| format!("{prefix}-{number}")).collect();
        let mut found: HashMap<String, Vec<QueuedJob>> = HashMap::new();
        if names.is_empty() {
            return Ok(found);
        }
        let answer = ask(
            Command::new("squeue").args(["-h", "-r", "-o", "%j|%F_%K|%A|%T|%r", "-n"]).arg(names.join(",")),
            None,
        )?;
        let mut units: HashMap<String, Vec<String>> = HashMap::new();
        for line in answer.lines() {
            let [name, id, number, state, reason] = line.split('|').collect::<Vec<_>>()[..] else { continue };
            let sent = name.rsplit('-').next().unwrap_or_default();
            let index = id.rsplit('_').next().and_then(|index| index.parse::<usize>().ok());
            let list = units.entry(sent.to_owned()).or_insert_with(|| {
                let text = fs::read_to_string(lists.join(sent)).unwrap_or_default();
                text.lines().map(str::to_owned).collect()
            });
            if let Some(unit) = index.and_then(|index| list.get(index)) {
                let [id, number, state, reason] = [id, number, state, reason].map(str::to_owned);
                found.entry(unit.clone()).or_default().push(QueuedJob { id, number, state, reason });
            }
        }
        Ok(found)
    }

    /// Cancels all jobs of this folder.
    fn cancel(order: &WorkOrder<'_>) {
        if let Ok(queue) = Slurm::queue(order) {
            let ids = sorting::distinct(queue.into_values().flatten().map(|job| job.id));
            for some in ids.chunks(500) {
                // A failure is ignored, because a job may have ended in the meantime.
                let _ = ask(Command::new("scancel").args(some), None);
            }
        }
    }

    fn wait(&mut self, order: &WorkOrder<'_>) -> Result<(), Fault> {
        let all: Vec<String> = order.stages.iter().flatten().cloned().collect();
        let mut attempts: SortedMap<String, u32> = SortedMap::new();
        let mut missing: HashMap<String, Instant> = HashMap::new();
        let mut ending: HashMap<String, Instant> = HashMap::new();
        let mut stuck = StuckJobs::default();
        let mut printed = BTreeSet::new();
        let mut once = |what: String| {
            if printed.insert(what.clone()) {
                order.progress.say(&what);
            }
        };
        let mut first = true;
        // The units that Slurm refused just now. A controller that restarts refuses what it accepts a moment later.
        let mut refused: Vec<String> = Vec::new();
        loop {
            let done = order.folder.done()?;
            failure(order.folder, &all)?;
            let open: Vec<&String> = all.iter().filter(|name| !done.contains(*name)).collect();
            order.progress.steps("units", all.len() - open.len(), all.len(), "waiting for Slurm");
            if open.is_empty() {
                return Ok(());
            }
            if order.interrupted.load(Ordering::Relaxed) {
                return Err(Fault::interrupted());
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
                } else if first
                    || ended
                    || refused.contains(name)
                    || now - *missing.entry(name.clone()).or_insert(now) > GRACE
                {
                    lost.push(name.clone());
                }
            }
            first = false;
            if !lost.is_empty() {
                match self.send_again(order, &lost, &done, &queue, &mut attempts) {
                    Ok(()) => refused.clear(),
                    Err(SendFailure::Fault(fault)) => return Err(fault),
                    Err(SendFailure::Refused(why)) if Slurm::queue(order).is_ok() => {
                        if !refused.is_empty() {
                            return Err(Fault::usage(format!("Slurm rejects the units: {why}")));
                        }
                        refused = lost;
                    }
                    Err(SendFailure::Refused(why)) => {
                        once(format!("Slurm does not answer ({why}): waiting for it, and for results"));
                    }
                }
                missing.clear();
                ending.clear();
            }
            pause(order);
        }
    }

    /// Sends the units that are neither under way nor done, stage by stage. If a previous stage was not done, the units
    /// of a stage could not begin, and this does not count as an attempt.
    fn send_again(
        &self,
        order: &WorkOrder<'_>,
        lost: &[String],
        done: &BTreeSet<String>,
        queue: &HashMap<String, Vec<QueuedJob>>,
        attempts: &mut SortedMap<String, u32>,
    ) -> Result<(), SendFailure> {
        let mut after: Vec<String> = Vec::new();
        let mut ready = true;
        for stage in order.stages {
            let units: Vec<String> = stage.iter().filter(|name| lost.contains(name)).cloned().collect();
            for name in units.iter() {
                if attempts.get(name).is_some_and(|count| *count >= ATTEMPTS)
                    && !have_results_late(order, &[name]).map_err(SendFailure::Fault)?
                {
                    return Err(SendFailure::Fault(Fault::usage(format!(
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
            // A unit that has just left the queue may still have a result. The next stage waits until this is certain.
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
        command.args(["-h", "-N", "-o", "%N|%T|%f|%P"]);
        if let Some(partition) = &self.asked {
            command.args(["-p", partition]);
        }
        let answer = ask(&mut command, None).map_err(|why| {
            Fault::usage(format!(
                "Slurm does not answer: {why}; check that jobs can be submitted from this machine"
            ))
        })?;
        let wanted = self.words.iter().find_map(|word| word.strip_prefix("--constraint="));
        let named = self.words.iter().any(|word| word.starts_with("-p") || word.starts_with("--partition"));
        let default = !named && answer.lines().any(|line| line.ends_with('*'));
        let nodes: BTreeSet<&str> = answer
            .lines()
            .filter_map(|line| {
                let [name, state, features, partition] = line.split('|').collect::<Vec<_>>()[..] else {
                    return None;
                };
                // An asterisk marks the default partition.
                let reached = !default || partition.ends_with('*');
                let up = !["down", "drain", "fail"].iter().any(|bad| state.starts_with(bad));
                let fits = wanted.is_none_or(|class| {
                    features.split(',').any(|feature| feature == class) || class.contains(['&', '|', '['])
                });
                (up && fits && reached).then_some(name)
            })
            .collect();
        Ok(nodes.len().max(1))
    }

    fn pairs(&mut self) -> Result<usize, Fault> {
        Ok(self.places()? / 2)
    }

    fn run(&mut self, order: &WorkOrder<'_>) -> Result<(), Fault> {
        let result = self.wait(order);
        if result.is_err() {
            Slurm::cancel(order);
        }
        result
    }
}

/// Pauses for the polling interval, or less if the user interrupts.
fn pause(order: &WorkOrder<'_>) {
    let began = Instant::now();
    while began.elapsed() < POLL && !order.interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the numbers of the submissions so far, in ascending order.
fn numbers(lists: &std::path::Path) -> Vec<u64> {
    let entries = fs::read_dir(lists).into_iter().flatten().flatten();
    let mut numbers: Vec<u64> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

fn longest_array() -> usize {
    let answer = ask(Command::new("scontrol").args(["show", "config"]), None).unwrap_or_default();
    let line = answer.lines().find(|line| line.starts_with("MaxArraySize"));
    let size = line.and_then(|line| line.rsplit('=').next()?.trim().parse::<usize>().ok());
    size.unwrap_or(ARRAY).max(1)
}

/// Returns the output of a Slurm program, or its error message.
fn ask(command: &mut Command, input: Option<&str>) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    if let Some(mut pipe) = child.stdin.take() {
        // A program that does not read its whole input reports the reason by its exit code.
        let _ = pipe.write_all(input.unwrap_or_default().as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| format!("{name}: {error}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    // The last lines may only say where the help is.
    let lines: Vec<&str> = errors.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("; ");
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{name}: {last}")),
    }
}
