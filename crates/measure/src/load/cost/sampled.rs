//! Processor time per request by function, including the kernel: `perf` samples the server's stacks by the
//! processor-time clock while it is loaded.
//!
//! On loopback the kernel does part of the client's receiving within the server's sends, and charges it to the
//! server.

use super::attached_tool::AttachedTool;
use super::process_tree::ProcessTree;
use crate::user_folder::TemporaryFolder;
use scruple_stats::Interval;
use scruple_stats::sorting::{self, SortedMap};
use serde::{Serialize, Serializer};
use std::process::{Command, Stdio};

/// Sampled processor time per request.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SampledTime {
    /// The number of samples.
    pub samples: u64,
    /// Processor time in nanoseconds per request.
    pub total: f64,
    /// Processor time in the kernel, in nanoseconds per request.
    pub kernel: f64,
    /// The time by function, the one with most own time first.
    pub functions: Vec<FunctionTime>,
}

/// The time of one function per request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionTime {
    /// The function's name; the name of the file in brackets if the function has none.
    pub name: String,
    /// The executable, library or kernel that contains the function.
    pub object: String,
    /// Whether the function belongs to the kernel.
    pub kernel: bool,
    /// Time in the function itself, in nanoseconds per request.
    pub own: f64,
    /// Time including callees, in nanoseconds per request.
    pub inclusive: f64,
    /// The 95 % interval of `inclusive`, assuming independent samples.
    #[serde(serialize_with = "ends")]
    pub interval: Interval,
}

/// Writes an interval as its two ends.
fn ends<S: Serializer>(interval: &Interval, serializer: S) -> Result<S::Ok, S::Error> {
    [interval.low, interval.high].serialize(serializer)
}

const MISSING: &str = "perf is not installed";
const FORBIDDEN: &str = "perf may not sample that process: see kernel.perf_event_paranoid";

/// Samples per second; a prime number, to avoid resonance with periodic work.
const FREQUENCY: u64 = 997;

/// Whether processes can be sampled here; tried on a program that does nothing.
///
/// # Errors
/// Says why they cannot be sampled, as a clause.
pub fn available() -> Result<(), String> {
    let mut tried = Command::new("perf");
    tried.args(["record", "-q", "-e", "cpu-clock", "-g", "-o", "/dev/null", "--", "true"]);
    super::works(tried, MISSING, FORBIDDEN)
}

/// Samples the processes of a tree while `load` runs, which returns how many requests it sent.
///
/// # Errors
/// Says why they cannot be sampled, as a clause.
pub fn weigh(
    tree: &ProcessTree,
    load: &mut dyn FnMut() -> Result<u64, String>,
) -> Result<SampledTime, String> {
    let folder = TemporaryFolder::new("perf")?;
    let file = folder.path().join("samples");
    let processes: Vec<String> = tree.processes().iter().map(i32::to_string).collect();
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-e", "cpu-clock", "-g", "-F", &FREQUENCY.to_string()]);
    command.args(["-p", &processes.join(",")]).arg("-o").arg(&file);
    let perf = AttachedTool::start(&mut command, has_events, [MISSING, FORBIDDEN])?;
    let requests = load();
    perf.end();
    let requests = requests?;
    let script = Command::new("perf")
        .args(["script", "-F", "comm,tid,period,ip,sym,dso", "-i"])
        .arg(&file)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("perf cannot read its own file: {error}"))?;
    let sampled = divide(&parse(&String::from_utf8_lossy(&script.stdout)), requests);
    if sampled.samples == 0 {
        return Err(
            "perf took no sample: the server used too little time, or the clock is not allowed".to_owned()
        );
    }
    Ok(sampled)
}

/// Whether a process receives events of the kernel. perf also opens some to see which there are, but does not map those.
fn has_events(pid: u32) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"));
    maps.is_ok_and(|maps| maps.contains("anon_inode:[perf_event]"))
}

/// A frame of a stack: the function and the object.
type StackFrame = (String, String);

/// A sample: the period in nanoseconds, and the stack from the innermost function outwards.
type StackSample = (u64, Vec<StackFrame>);

/// Parses the output of `perf script -F comm,tid,period,ip,sym,dso`.
fn parse(text: &str) -> Vec<StackSample> {
    let mut stacks: Vec<StackSample> = Vec::new();
    for line in text.lines() {
        let indented = line.starts_with([' ', '\t']) && !line.trim_end().ends_with(':');
        if let (true, Some(frame), Some((_, stack))) = (indented, frame(line.trim()), stacks.last_mut()) {
            stack.push(frame);
            continue;
        }
        // The name of the program may contain spaces; the period is the last number.
        let period = line.split_whitespace().last().and_then(|word| word.trim_end_matches(':').parse().ok());
        if let Some(period) = period {
            stacks.push((period, Vec::new()));
        }
    }
    stacks.retain(|(_, stack)| !stack.is_empty());
    stacks
}

/// Parses a frame such as `55d2 main (/bin/x)`.
fn frame(line: &str) -> Option<StackFrame> {
    let (address, rest) = line.split_once(char::is_whitespace)?;
    address.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
    let open = rest.rfind(" (")?;
    let object = rest[open + 2..].trim_end_matches(')');
    let object = object.rsplit('/').next().unwrap_or(object).to_owned();
    let name = rest[..open].trim();
    let name = name.rsplit_once("+0x").map_or(name, |(name, _)| name);
    Some((
        if name == "[unknown]" || name.is_empty() { format!("[{object}]") } else { name.to_owned() },
        object,
    ))
}

fn divide(stacks: &[StackSample], requests: u64) -> SampledTime {
    #[derive(Default)]
    struct TimeSums {
        own: f64,
        inclusive: f64,
        samples: u64,
    }
    let requests = requests.max(1) as f64;
    let mut sums: SortedMap<&StackFrame, TimeSums> = SortedMap::new();
    let (mut total, mut kernel) = (0.0, 0.0);
    for (period, stack) in stacks {
        let period = *period as f64;
        total += period;
        if stack.first().is_some_and(|(_, object)| is_kernel(object)) {
            kernel += period;
        }
        if let Some(leaf) = stack.first() {
            sums.entry(leaf).or_default().own += period;
        }
        for frame in sorting::distinct(stack) {
            let sum = sums.entry(frame).or_default();
            sum.inclusive += period;
            sum.samples += 1;
        }
    }
    let mut functions: Vec<FunctionTime> = sums
        .into_iter()
        .map(|((name, object), sum)| FunctionTime {
            name: name.clone(),
            object: object.clone(),
            kernel: is_kernel(object),
            own: sum.own / requests,
            inclusive: sum.inclusive / requests,
            interval: counted(sum.samples, sum.inclusive / requests / sum.samples as f64),
        })
        .collect();
    sorting::by(&mut functions, |left, right| {
        right.own.total_cmp(&left.own).then(right.inclusive.total_cmp(&left.inclusive))
    });
    SampledTime {
        samples: stacks.len() as u64,
        total: total / requests,
        kernel: kernel / requests,
        functions,
    }
}

fn is_kernel(object: &str) -> bool {
    object.starts_with("[kernel") || object.starts_with("[guest.kernel") || object.ends_with(".ko")
}

/// The 95 % score interval of a Poisson count, multiplied by `each`.
fn counted(samples: u64, each: f64) -> Interval {
    const Z: f64 = 1.96;
    let count = samples as f64;
    let (centre, half) = (count + Z * Z / 2.0, Z * (count + Z * Z / 4.0).sqrt());
    Interval { low: (centre - half).max(0.0) * each, high: (centre + half) * each, level: 0.95 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    #[test]
    fn damaged_output_of_perf_is_survived() {
        Corpus::named("perf").is_survived_by_text(|text| drop(divide(&parse(text), 10)));
    }

    const SCRIPT: &str = "\
nginx: worker p 4242    1003009: 
\tffffffff81a0c0de do_syscall_64+0x5e ([kernel.kallsyms])
\t    7f3dc0ffee00 writev+0x17 (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t    55d200001234 ngx_writev (/usr/sbin/nginx)

nginx: worker p 4242    1003009: 
\t    55d200001299 ngx_writev+0x99 (/usr/sbin/nginx)
\t    55d200001000 [unknown] (/usr/sbin/nginx)
\t    55d200001000 [unknown] (/usr/sbin/nginx)

";

    #[test]
    fn stacks_are_read_and_divided() {
        let sampled = divide(&parse(SCRIPT), 10);
        assert_eq!((sampled.samples, sampled.total, sampled.kernel), (2, 200_601.8, 100_300.9));
        let of = |name: &str| sampled.functions.iter().find(|f| f.name == name).expect("in the profile");
        assert_eq!((of("ngx_writev").own, of("ngx_writev").inclusive), (100_300.9, 200_601.8));
        assert!(of("do_syscall_64").kernel && !of("writev").kernel);
        assert_eq!(of("[nginx]").inclusive, 100_300.9);
        let interval = of("ngx_writev").interval;
        assert!(interval.low < 200_601.8 && interval.high > 200_601.8 && interval.low > 0.0);
    }
}
