//! Counts what programs execute by functions of their own, where the interpreter of both sides can count that.

use super::gathered_launches::GatheredLaunches;
use super::variation;
use crate::fault::Fault;
use crate::inspect::single_launch::{ended, failure};
use crate::profile::read::Kind;
use crate::progress::Progress;
use scruple_core::explain::Count;
use scruple_core::metric::Pass;
use scruple_core::unit::{Unit, quantity};
use scruple_measure::calltree::{Language, ScriptCounts, ScriptSession};
use scruple_measure::command::{Commands, Job, Weigher};
use scruple_measure::launcher::Ending;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// One launch of both programs, each of which counts itself.
pub type RunBoth<'a> = dyn FnMut(Language) -> Result<[Result<ScriptCounts, String>; 2], Fault> + 'a;

/// Counts both sides by functions of their language. Returns a sentence that says why, if nothing was counted.
/// `one_is_enough` says that the instructions of the interpreter repeated well enough in two launches, so that one launch
/// suffices for the counts of the script; otherwise there are `most` launches at most.
pub fn gather(
    names: [&str; 2],
    language: Language,
    one_is_enough: bool,
    most: usize,
    run: &mut RunBoth<'_>,
) -> Result<Result<GatheredLaunches, String>, Fault> {
    let mut remarks = BTreeSet::new();
    let mut sides = [Vec::new(), Vec::new()];
    while sides[0].is_empty() || !(one_is_enough || variation::are_enough(&sides, most, 0)) {
        for (which, counts) in run(language)?.into_iter().enumerate() {
            let name = names[which];
            let counts = match counts {
                Ok(counts) => counts,
                Err(why) => return Ok(Err(why)),
            };
            if counts.processes == 0 {
                let why = match counts.lost {
                    0 => not_counted(language, name),
                    _ => format!("the processes of ‘{name}’ ended without their counts: {}", lost(language)),
                };
                return Ok(Err(format!("the functions of the script cannot be counted: {why}")));
            }
            if counts.lost > 0 {
                remarks.insert(format!(
                    "{} processes of {} ended without their counts in ‘{name}’: {}",
                    counts.lost,
                    language.name(),
                    lost(language)
                ));
            }
            if counts.partial > 0 {
                remarks.insert(format!("‘{name}’ {}", in_part(language)));
            }
            sides[which].push(counts.side);
        }
    }
    if !language.has_all_callers() {
        remarks.insert(format!(
            "of functions in {} the callers are known only if calls by name make all calls: a difference of others is \
            listed at the function that shows it, which may not be the one that causes it",
            language.name()
        ));
    }
    let word = Some(language.word().to_owned());
    let kind = Kind { word, has_heap: false, ..Kind::counted(language.name()) };
    let remarks = remarks.into_iter().collect();
    let times = [Vec::new(), Vec::new()];
    Ok(Ok(GatheredLaunches {
        sides,
        variation_of_totals: None,
        times,
        remarks,
        counted_by: None,
        kind,
        count: Count::Instructions,
        script: None,
    }))
}

/// Announces how long a launch takes in which a program counts its functions. `longest` is the time that the longer
/// program takes alone.
pub fn announce(language: Language, longest: Duration) {
    let Some((least, most)) = costs(language) else { return };
    let time = |factor: f64| quantity(longest.as_secs_f64() * factor * 1e9, &Unit::Nanoseconds);
    Progress::new().say(&format!(
        "the functions of {} are counted in separate launches, each of which takes about {} to {}",
        language.name(),
        time(least),
        time(most)
    ));
}

/// How many times longer a program takes while its interpreter counts: the least for work in functions that are written
/// in C, the most for arithmetic and short calls. Coverage of V8 takes a third more time than no coverage.
fn costs(language: Language) -> Option<(f64, f64)> {
    match language {
        Language::Python => Some((1.2, 7.5)),
        Language::Ruby => Some((1.5, 20.0)),
        Language::Guile => Some((10.0, 120.0)),
        Language::JavaScript => None,
    }
}

/// How processes end without writing their counts.
fn lost(language: Language) -> &'static str {
    match language {
        Language::Ruby => "killed, replaced by exec, or left by exit!",
        Language::Guile => "killed, replaced by exec, or left by primitive-exit",
        Language::Python | Language::JavaScript => {
            "killed, or left by os._exit, as those of multiprocessing are"
        }
    }
}

/// Why a program was counted in part only.
fn in_part(language: Language) -> &'static str {
    match language {
        Language::Guile => "has several threads, of which only the main one is counted",
        Language::Ruby => "has several Ractors, of which only the main one is counted",
        Language::Python | Language::JavaScript => {
            "sets a trace function of its own, from which on the functions of the script are not counted"
        }
    }
}

/// Why no process of a program counted.
fn not_counted(language: Language, name: &str) -> String {
    match language {
        Language::Python => format!(
            "‘{name}’ did not import the module that counts, for which Python 3.7 or later, in a build with the global lock, \
             has to read PYTHONPATH (which the command must extend, not set anew) and import `site` (without -E, -I and -S)"
        ),
        Language::JavaScript => format!(
            "‘{name}’ wrote no coverage of V8, which Node 12 or later does when it ends by itself, not by a signal, and \
             runs code of files"
        ),
        Language::Ruby => format!(
            "‘{name}’ did not require the library that counts, for which Ruby 3.1 or later has to read RUBYOPT (without \
             --disable=rubyopt)"
        ),
        Language::Guile => format!(
            "‘{name}’ did not load the module that counts, for which the program guile of Guile 3.0 has to read \
             GUILE_LOAD_PATH"
        ),
    }
}

/// Runs a program once, counting itself.
pub fn counted(
    language: Language,
    job: &Job,
    commands: &mut Commands,
    work: &Path,
    strict: bool,
) -> Result<Result<ScriptCounts, String>, Fault> {
    let session = ScriptSession::start(language, work)
        .map_err(|error| Fault::internal(format!("cannot write to ‘{}’: {error}", work.display())))?;
    let set = |name: &str| job.env.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let given = |name: &str| -> Option<OsString> { set(name).or_else(|| std::env::var_os(name)) };
    let mut job = job.clone();
    job.env.extend(session.env(given));
    let weighed = commands.weigh(&job, Pass::Timing, 0, 0);
    let unknown = |why: String| Ok(Err(format!("the functions of the script are not known: {why}")));
    if weighed.as_ref().is_ok_and(|weighing| weighing.ending == Ending::TimedOut) {
        return unknown(format!("‘{}’ exceeded its time limit while {} counted", job.name, language.name()));
    }
    let weighing = ended(&job, weighed)?;
    let hint = format!(" while {} counted", language.name());
    if let Some(fault) = failure(&job, &weighing, &hint).filter(|_| strict) {
        return unknown(fault.message);
    }
    Ok(session.read().map_err(|why| format!("the functions of the script are not known: {why}")))
}
