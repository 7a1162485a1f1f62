//! Takes readings from a script instead of the machine, so that tests have the same figures everywhere.

use crate::command::{Job, WeighError, WeighedLaunch, Weigher, seen};
use crate::error_output::shown_lines;
use crate::launcher::Ending;
use crate::memory_map::MemoryMap;
use crate::streams::{Captured, Digest};
use scruple_core::memory_map::{Divided, Largest, MemoryCourse, Moment};
use scruple_core::metric::{Metric, Pass, Quality, metric};
use scruple_core::sample::Reading;
use scruple_core::unit::Unit;
use scruple_stats::sorting::SortedMap;
use serde::Deserialize;
use std::collections::HashMap;
use std::time::Duration;

/// A script: for each arm by name, the launches of each pass in order. The last launch repeats when more are requested.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The launches in order, by the name of the arm and the name of the pass.
    pub arms: SortedMap<String, SortedMap<String, Vec<ScriptedLaunch>>>,
}

/// One scripted launch.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedLaunch {
    /// The readings, by the key of the metric.
    #[serde(default)]
    pub readings: SortedMap<String, f64>,
    /// The metrics that could not be read, each with the reason.
    #[serde(default)]
    pub absent: SortedMap<String, String>,
    /// The exit code of the program.
    #[serde(default)]
    pub exit: i32,
    /// The signal that ended the program instead of an exit.
    pub signal: Option<i32>,
    /// The program's standard output.
    #[serde(default)]
    pub stdout: String,
    /// The program's standard error.
    #[serde(default)]
    pub stderr: String,
    /// The peak resident size by the kernel's account, in bytes.
    #[serde(default)]
    pub resident: Option<u64>,
    /// The number of processes that the program left behind.
    #[serde(default)]
    pub left_behind: u32,
    /// The record of a memory watcher. An entry with a record stands under ‘map’ instead of the name of a pass.
    #[serde(default)]
    pub watched: Option<ScriptedCourse>,
}

/// Memory over time, as a watcher records it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCourse {
    /// The memory map of the largest process, in the format of `/proc/PID/smaps`.
    pub smaps: String,
    /// For each moment, the time in milliseconds, and resident, proportional and unique bytes.
    pub moments: Vec<(u64, u64, u64, u64)>,
}

impl ScriptedCourse {
    /// The memory course that the script describes; the map belongs to the largest moment.
    fn course(&self) -> Result<MemoryCourse, String> {
        let moment = |(at, resident, proportional, unique): &(u64, u64, u64, u64)| Moment {
            at: Duration::from_millis(*at),
            processes: 1,
            resident: *resident,
            anonymous: *unique,
            divided: Some(Divided { proportional: *proportional, unique: *unique }),
        };
        let moments: Vec<Moment> = self.moments.iter().map(moment).collect();
        let high_water = moments.iter().map(|moment| moment.resident).max().unwrap_or(0);
        let mut course = MemoryCourse { moments, high_water, ..MemoryCourse::default() };
        if let Some(Moment { at, processes, resident, .. }) = course.peak().copied() {
            let (pid, name) = (1, "scripted".to_owned());
            course.map = MemoryMap::parse(&self.smaps)?.rows();
            course.largest = Some(Largest { pid, name, at, processes, resident });
        }
        Ok(course)
    }
}

/// The weigher that plays a script.
#[derive(Debug)]
pub struct Scripted {
    script: Script,
    played: HashMap<(String, &'static str), usize>,
}

impl Scripted {
    /// Creates a weigher that plays this script.
    pub fn new(script: Script) -> Scripted {
        Scripted { script, played: HashMap::new() }
    }
}

impl Scripted {
    fn next(&mut self, job: &Job, word: &'static str) -> Result<&ScriptedLaunch, WeighError> {
        let missing = || WeighError::Script(format!("the script has no {word} launches of ‘{}’", job.name));
        let entries =
            self.script.arms.get(&job.name).and_then(|passes| passes.get(word)).ok_or_else(missing)?;
        let played = self.played.entry((job.name.clone(), word)).or_default();
        let entry = entries.get(*played).or(entries.last()).ok_or_else(missing)?;
        *played += 1;
        Ok(entry)
    }
}

impl Weigher for Scripted {
    fn weigh(
        &mut self,
        job: &Job,
        pass: Pass,
        _block: u32,
        _padding: usize,
    ) -> Result<WeighedLaunch, WeighError> {
        let entry = self.next(job, pass.word())?;
        let mut readings: Vec<Reading> = entry
            .readings
            .iter()
            .map(|(key, value)| Reading::of(&declared_or_custom(key, pass), *value, "script"))
            .collect();
        readings.extend(
            entry
                .absent
                .iter()
                .map(|(key, why)| Reading::absent(&declared_or_custom(key, pass), why.clone())),
        );
        let time = |key: &str| Duration::from_nanos(entry.readings.get(key).copied().unwrap_or(0.0) as u64);
        let (wall, cpu) = (time("time.wall"), time("time.cpu"));
        Ok(WeighedLaunch {
            readings,
            ending: entry.signal.map_or(Ending::Exited(entry.exit), Ending::Signaled),
            captured: (pass == Pass::Memory)
                .then(|| Captured { stdout: digest_of(&entry.stdout), stderr: digest_of(&entry.stderr) }),
            error_output: match pass {
                Pass::Timing => String::new(),
                _ => shown_lines(entry.stderr.as_bytes()),
            },
            command_missing: false,
            left_behind: entry.left_behind,
            shield_lost: None,
            wall,
            cpu,
            resident: entry.resident,
            not_launched: None,
        })
    }

    fn watch(&mut self, job: &Job) -> Result<(WeighedLaunch, MemoryCourse), WeighError> {
        let watched = self.next(job, "map")?.watched.clone().unwrap_or_default();
        let course = watched.course().map_err(WeighError::Script)?;
        Ok((WeighedLaunch::not_launched(seen(&course), "its memory was watched instead".to_owned()), course))
    }

    fn counting_launches(&self) -> u32 {
        1
    }

    fn held_up_by_quota(&self) -> Option<f64> {
        None
    }
}

fn declared_or_custom(key: &str, pass: Pass) -> Metric {
    metric(key).cloned().unwrap_or_else(|| Metric::custom(key, Unit::Count, Quality::Noisy, pass))
}

/// A substitute for the real digest. It suffices that it differs for different texts: scripted outputs are only
/// compared with each other.
fn digest_of(text: &str) -> Digest {
    let hash = text.bytes().fold(7_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
    Digest { hash, length: text.len() as u64 }
}
