//! Reads hyperfine's `--export-json`: the time of every run, and processor time and memory if the file has them.

use super::figures::{add, add_absence, add_summary, shift_blocks};
use super::{ImportError, Imported, clean, parameter};
use scruple_core::metric::Quality;
use scruple_core::plural::counted;
use scruple_core::subject::{Arm, Role, Subject, with_values};
use scruple_stats::sorting::SortedMap;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct HyperfineImport {
    results: Vec<HyperfineEntry>,
}

#[derive(Deserialize)]
struct HyperfineEntry {
    command: String,
    mean: Option<f64>,
    user: Option<f64>,
    system: Option<f64>,
    times: Option<Vec<f64>>,
    memory_usage_byte: Option<Vec<f64>>,
    exit_codes: Option<Vec<Option<i32>>>,
    parameters: Option<SortedMap<String, Value>>,
}

/// Reads an export.
pub(super) fn read(text: &str) -> Result<Imported, ImportError> {
    let export: HyperfineImport = serde_json::from_str(text)?;
    let mut imported = Imported::of("hyperfine");
    let mut taken = 0;
    for entry in &export.results {
        let mut arm = arm(entry)?;
        // The parameters may be in the preparation only, so that they do not show in the command.
        let same = export.results.iter().filter(|other| other.command == entry.command).count();
        if same > 1 {
            arm.name = with_values(&arm.name, &arm.params);
        }
        // hyperfine runs the commands one after the other, so that no two readings share a block.
        shift_blocks(&mut arm, taken);
        taken = taken.saturating_add(entry.times.as_ref().map_or(1, |times| times.len().max(1) as u32));
        remarks(entry, &arm.name, &mut imported);
        imported.arms.push(arm);
    }
    if imported.arms.len() > 1 {
        imported.remark(
            "not-side-by-side",
            "hyperfine ran these commands one after the other: whatever else changed on the machine in between is \
             part of the difference",
        );
    }
    imported.finished()
}

fn arm(entry: &HyperfineEntry) -> Result<Arm, ImportError> {
    let argv = shell_words::split(&entry.command).ok().filter(|words| !words.is_empty());
    let argv = argv.unwrap_or_else(|| vec![entry.command.clone()]);
    let mut arm = Arm::new(entry.command.clone(), Subject::Command { argv }, Role::Subject);
    let parameters = entry.parameters.iter().flatten();
    arm.params = parameters.map(|(name, value)| (clean(name), parameter(value))).collect();
    match (&entry.times, entry.mean) {
        // The median would be 0, which is not a time that any command takes.
        (Some(times), _) if !times.is_empty() && 2 * zeros(entry) >= times.len() => {
            add_absence(&mut arm, "time.wall", "hyperfine wrote 0 for half of the runs or more");
        }
        (Some(times), _) if !times.is_empty() => {
            let times = times.iter().map(|seconds| seconds * 1e9).collect();
            add(&mut arm, "time.wall", Quality::Noisy, "hyperfine, each run", times)?;
        }
        (_, Some(mean)) => add_summary(&mut arm, "time.wall", "hyperfine, mean", mean * 1e9)?,
        _ => return Err(ImportError::of(&entry.command, "it has neither times nor a mean")),
    }
    for (key, mean) in [("time.user", entry.user), ("time.sys", entry.system)] {
        if let Some(mean) = mean {
            add_summary(&mut arm, key, "hyperfine, mean of all runs", mean * 1e9)?;
        }
    }
    if let Some(bytes) = &entry.memory_usage_byte {
        // The kernel reports the largest value of all child processes that have ended, so that this is only an upper
        // bound.
        let source = "hyperfine, greatest resident size of any run so far";
        add(&mut arm, "memory.peak", Quality::Estimated, source, bytes.clone())?;
    }
    Ok(arm)
}

fn zeros(entry: &HyperfineEntry) -> usize {
    entry.times.iter().flatten().filter(|time| **time == 0.0).count()
}

fn remarks(entry: &HyperfineEntry, name: &str, imported: &mut Imported) {
    let name = clean(name);
    let failed = entry.exit_codes.iter().flatten().filter(|code| **code != Some(0)).count();
    if failed > 0 {
        imported.remark("exit-code", format!("‘{name}’ did not exit with code 0 in {failed} of its runs"));
    }
    let zeros = zeros(entry);
    if zeros > 0 {
        let readings = counted(zeros, "reading");
        imported.remark(
            "below-resolution",
            format!(
                "‘{name}’ has {readings} of exactly 0: hyperfine subtracts the time of its shell, and writes 0 \
                if the result is negative"
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_without_its_parameters_is_named_by_them() {
        let entry = |n: u32| {
            format!(
                "{{\"command\": \"./app\", \"times\": [1.0], \"exit_codes\": [7], \"parameters\": {{\"n\": \"{n}\"}}}}"
            )
        };
        let imported = read(&format!("{{\"results\": [{}, {}]}}", entry(1), entry(2))).expect("readable");
        let names: Vec<&str> = imported.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, ["./app (n=1)", "./app (n=2)"]);
        let remark = &imported.warnings[1].text;
        assert_eq!(remark, "‘./app (n=2)’ did not exit with code 0 in 1 of its runs");
    }

    #[test]
    fn commands_without_words_have_a_name() {
        let entry = |command: &str| format!("{{\"command\": \"{command}\", \"times\": [1.0]}}");
        let imported = read(&format!("{{\"results\": [{}, {}]}}", entry(""), entry(" "))).expect("readable");
        let names: Vec<&str> = imported.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, ["unnamed", "unnamed #2"]);
    }

    #[test]
    fn commands_for_which_half_of_the_times_are_zero_have_no_time_and_are_not_called_equal() {
        let entry = |times: &str| format!("{{\"command\": \"a\", \"times\": [{times}], \"user\": 0.1}}");
        let read = |times| read(&format!("{{\"results\": [{}]}}", entry(times))).expect("readable");
        let arms = [read("0, 0, 0, 0.001").arms, read("0, 0, 0.002, 0.001, 0.001").arms];
        assert_eq!(arms[0][0].absent("time.wall"), Some("hyperfine wrote 0 for half of the runs or more"));
        assert_eq!(arms[1][0].sample("time.wall").map(|sample| sample.readings.len()), Some(5));
    }
}
